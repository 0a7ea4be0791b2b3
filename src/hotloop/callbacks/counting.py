"""What each training step did, added up without waiting for the device."""

from typing import Any

import torch
from torch import Tensor

from hotloop.callbacks.accounting import Totals

HELD = 512  # losses and lengths kept as tensors before they are summed


class StepCounter:
    """Adds up samples, tokens, losses and padding of training steps.

    Losses stay on the device, and lengths as they came, until `read`: a step costs two list entries.
    """

    def __init__(self, totals: Totals | None = None) -> None:
        self._totals = totals or Totals()
        self._losses: list[Tensor] = []
        self._lengths: list[Tensor] = []
        self._last: Any = None

    def count(self, result: Any, batch: Any) -> None:
        """Count one step.

        Args:
            result: the task's `last_step`: `loss_sum` (0-dim), `tokens`, `samples`; the same object as before
                means that the step was skipped. None: only the samples of the batch are known.
            batch: what the loader gave; `source`, `source_length`, `target`, `target_length` tell the padding.
        """
        totals = self._totals
        if result is None:
            totals.samples += samples_in(batch)
        elif result is not self._last:
            self._last = result
            totals.samples += result.samples
            totals.tokens += result.tokens
            totals.losses += 1
            self._losses.append(result.loss_sum)
        for side in ("source", "target"):
            length = getattr(batch, f"{side}_length", None)
            if length is not None:
                totals.cells += getattr(batch, side).numel()
                self._lengths.append(length)
        if len(self._losses) >= HELD or len(self._lengths) >= 2 * HELD:
            self.read()

    def read(self) -> Totals:
        """The totals so far; waits for the device."""
        if self._losses:
            self._totals.loss_sum += sum(torch.stack(self._losses).tolist())
            self._losses = []
        if self._lengths:
            self._totals.real_cells += int(torch.cat(self._lengths).sum())
            self._lengths = []
        return self._totals.copy()


def samples_in(batch: Any) -> int:
    """Samples in a batch of any common shape: its own length, or the first tensor's first dimension."""
    if isinstance(batch, Tensor):
        return batch.shape[0] if batch.dim() else 1
    if isinstance(batch, dict):
        return samples_in(next(iter(batch.values()))) if batch else 0
    if isinstance(batch, (list, tuple)):
        first = batch[0] if batch else 0
        return samples_in(first) if isinstance(first, (Tensor, dict, list, tuple)) else len(batch)
    return len(batch) if hasattr(batch, "__len__") else 0
