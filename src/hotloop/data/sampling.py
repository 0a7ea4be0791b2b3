"""Batches of sample numbers, dealt to ranks, in an order that a seed and an epoch decide."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler

log = logging.getLogger(__name__)


class BatchSampler(Sampler[Any]):
    """Yields lists of sample numbers: the `sampler` of a DataLoader with `batch_size=None`.

    The samples come in random order (`shuffle`, another one in each epoch) or in that of their numbers.

    Ranks: neighbouring batches go to the ranks of one step. Batches that do not fill the last step are divided by
    rows; only a batch with too few rows for the ranks to feed is repeated. Every rank makes the same number of
    steps, and together they see every sample.

    Args:
        count: samples.
        batch_size: samples in a batch.
        shuffle: see above.
        seed: with the epoch, decides the order.
        rank, world_size: of this process among those that share the batches.
        at_least_two: no batch of one sample, where there is a way: batch normalisation needs two. A single one left
            at the end joins the batch before, and ranks repeat samples rather than have one each.
    """

    def __init__(
        self,
        count: int,
        *,
        batch_size: int,
        shuffle: bool,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        at_least_two: bool = False,
    ) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} of {world_size}")
        self._count, self._shuffle, self._seed = count, shuffle, seed
        self._rank, self._world_size = rank, world_size
        self._smallest = 2 if at_least_two and batch_size > 1 else 1  # rows, where a batch is divided among ranks
        self.epoch = 0
        self._resume = (0, 0)  # epoch, batches of it that are done
        self._cuts = np.append(np.arange(0, count, batch_size), count)
        if self._smallest == 2 and count > batch_size and count % batch_size == 1:
            self._cuts = np.delete(self._cuts, -2)
            if rank == 0:
                log.info("the last batch would hold a single sample: it joins the batch before")

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration (Lightning calls this)."""
        self.epoch = epoch

    def resume(self, *, epoch: int, batches_done: int) -> None:
        """Leave out the first `batches_done` batches of this rank when epoch `epoch` is iterated."""
        self._resume = (epoch, batches_done)

    def __len__(self) -> int:
        """Steps of a whole epoch, the same on every rank."""
        return -(-(len(self._cuts) - 1) // self._world_size)

    def __iter__(self) -> Iterator[Any]:
        epoch, done = self._resume
        order = self._order()
        steps = self._step_order()
        for step in steps[done if epoch == self.epoch else 0 :]:
            yield order[self._rows_of(int(step))].tolist()

    def _generator(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, self.epoch, purpose])

    def _order(self) -> NDArray[np.int64]:
        """All sample numbers in the order in which they are cut into batches."""
        return self._generator(0).permutation(self._count) if self._shuffle else np.arange(self._count)

    def _step_order(self) -> NDArray[np.int64]:
        steps = np.arange(len(self))
        return self._generator(1).permutation(steps) if self._shuffle else steps

    def _rows_of(self, step: int) -> slice:
        """This rank's stretch of the order in `step`."""
        first = step * self._world_size
        if first + self._world_size < len(self._cuts):
            return slice(self._cuts[first + self._rank], self._cuts[first + self._rank + 1])
        # Fewer batches than ranks are left: each is divided among the ranks whose share of the step it is.
        left = len(self._cuts) - 1 - first
        batch = self._rank * left // self._world_size
        first_rank, next_rank = (-(-b * self._world_size // left) for b in (batch, batch + 1))
        start, end = self._cuts[first + batch], self._cuts[first + batch + 1]
        rows, ranks = int(end - start), next_rank - first_rank
        parts = max(min(ranks, rows // self._smallest), 1)  # fewer than ranks: some ranks take the same rows
        part = (self._rank - first_rank) % parts
        return slice(start + rows * part // parts, start + rows * (part + 1) // parts)
