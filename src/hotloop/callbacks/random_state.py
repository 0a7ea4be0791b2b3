"""Dropout that an interruption does not change."""

from typing import Any

import lightning.pytorch as pl
import torch

_MASK = (1 << 64) - 1


def mix(*numbers: int) -> int:
    """A 63-bit seed from whole numbers: near inputs give unrelated seeds (splitmix64, Steele et al. 2014)."""
    state = 0
    for number in numbers:
        state = (state ^ (number & _MASK)) + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state >> 1


class SeedEveryStep(pl.Callback):
    """Seeds PyTorch before each training batch from (seed, rank, epoch, batch number).

    A run that was stopped and resumed then draws the same dropout masks as one that went through, on every
    device, without a generator state in the checkpoint. Only PyTorch's own generators are set: those of
    Python and NumPy, and the generators that samplers hold, go their own way.

    Args:
        seed: the run's seed.
    """

    def __init__(self, *, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        seed = mix(self.seed, trainer.global_rank, trainer.current_epoch, batch_idx)
        # torch.manual_seed would do, but where CUDA is built in and not in use it notes the whole call stack
        # for later, a hundred times the cost of the seeding.
        torch.default_generator.manual_seed(seed)
        if pl_module.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        elif pl_module.device.type == "mps":
            torch.mps.manual_seed(seed)
