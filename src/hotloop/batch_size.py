"""The largest training batch that fits: found by whole training steps on a copy of the model."""

import copy
import logging
from typing import Any

import lightning.pytorch as pl
import psutil
import torch

from hotloop.errors import UserError

log = logging.getLogger(__name__)

TRIALS = 10
FULL = ("out of memory", "not enough memory", "can't allocate", "failed to allocate")


def find_batch_size(task: Any, data: Any, trainer: pl.Trainer) -> int:
    """Double `data.batch_size` until a step no longer fits, the training set is used up, or `TRIALS` steps are done.

    Each trial is a step (forward, backward, optimiser) on the batch that needs most memory, such as that of the longest
    sentences. The task, its optimiser and the random state are left as they were: a copy does the work.

    Args:
        task: a `Task`.
        data: set up; has `batch_size`, `heaviest_batch(size)` and `dataset("train")`.
        trainer: gives device and precision.

    Raises:
        UserError: not even the first size fits, or there are several processes.
    """
    if trainer.world_size > 1:
        raise UserError("auto_batch_size=true works in one process: run it there once, then give data.batch_size=…")
    if getattr(data, "max_tokens", None) is not None:
        raise UserError("auto_batch_size=true and data.max_tokens exclude each other: give one of them")
    count = len(data.dataset("train"))
    size, found = min(data.batch_size, count), 0
    for _ in range(TRIALS):
        room = step_fits(task, data.heaviest_batch(size), trainer)
        if room is None:
            break
        found = size
        if size == count or room < 2:
            break
        size = min(2 * size, count)
    if not found:
        raise UserError(f"auto_batch_size=true: a batch of {size} does not fit; give a smaller data.batch_size")
    log.info("auto_batch_size → data.batch_size=%d (give that to skip the search)", found)
    return found


def step_fits(task: Any, batch: Any, trainer: pl.Trainer) -> float | None:
    """How many times as much memory as this step needs is free; None where the step does not fit.

    A device of its own tells when it is full; the memory of a CPU has to be left before that, so it is estimated.
    """
    device = trainer.strategy.root_device
    trial: Any = None
    optimizer: Any = None
    loss: Any = None
    try:
        with torch.random.fork_rng(), torch.enable_grad():
            trial = trainer.precision_plugin.convert_module(copy.deepcopy(task)).to(device).train()
            optimizer = trial.optimizer_factory(trial.model, scaled_and_clipped=False)
            before = psutil.Process().memory_info().rss
            with trainer.precision_plugin.forward_context():
                loss = trial.training_losses(batch.to(device)).mean()
            used = max(psutil.Process().memory_info().rss - before, 1)
            loss.backward()
            optimizer.step()
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and not any(text in str(error).lower() for text in FULL):
            raise
        return None
    finally:
        trial = optimizer = loss = None
        if device.type == "cuda":
            torch.cuda.empty_cache()
    # Twice the batch needs twice the memory, and half as much again for gradients.
    return float("inf") if device.type != "cpu" else psutil.virtual_memory().available / (1.5 * used)
