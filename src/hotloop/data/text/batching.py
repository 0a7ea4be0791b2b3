"""Batches of pairs of like length, dealt to ranks, in an order that a seed and an epoch decide."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler

from hotloop.errors import UserError

log = logging.getLogger(__name__)


class PaddingShare(NamedTuple):
    """Padding positions over all positions of an epoch, each side by itself."""

    source: float
    target: float


class BucketBatchSampler(Sampler[list[int]]):
    """Yields lists of sample numbers: the `sampler` of a DataLoader with `batch_size=None`.

    With `bucketing` the pairs are sorted by source length, then target length (ties at random in each epoch) and
    cut into batches, so that most batches have one source length; the batches then come in random order
    (`shuffle`) or longest first. Batches hold `batch_size` pairs, or as many as keep rows × the longer side
    within `max_tokens` positions, padding counted; a pair longer than that is a batch by itself.

    Ranks: neighbouring batches, which are of like size, go to the ranks of one step. Batches that do not fill the
    last step are divided by rows; only a batch with fewer rows than ranks to feed is repeated. Every rank makes
    the same number of steps, and together they see every pair.
    """

    def __init__(
        self,
        source_lengths: NDArray[np.int32],
        target_lengths: NDArray[np.int32],
        *,
        batch_size: int | None = None,
        max_tokens: int | None = None,
        shuffle: bool,
        bucketing: bool = True,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if (batch_size is None) == (max_tokens is None):
            raise ValueError("give either batch_size or max_tokens")
        if max_tokens is not None and not bucketing:
            raise UserError("data.max_tokens needs data.bucketing=true; use data.batch_size without bucketing")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} of {world_size}")
        self._source, self._target = source_lengths, target_lengths
        self._shuffle, self._bucketing, self._seed = shuffle, bucketing, seed
        self._rank, self._world_size = rank, world_size
        self.epoch = 0
        self._resume = (0, 0)  # epoch, batches of it that are done
        count = len(source_lengths)
        if batch_size is not None:
            self._cuts = np.append(np.arange(0, count, batch_size), count)
        else:
            self._cuts = self._cut_by_tokens(max_tokens or 0)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration (Lightning calls this)."""
        self.epoch = epoch

    def resume(self, *, epoch: int, batches_done: int) -> None:
        """Leave out the first `batches_done` batches of this rank when epoch `epoch` is iterated."""
        self._resume = (epoch, batches_done)

    def __len__(self) -> int:
        """Steps of a whole epoch, the same on every rank."""
        return -(-(len(self._cuts) - 1) // self._world_size)

    def __iter__(self) -> Iterator[list[int]]:
        epoch, done = self._resume
        order = self._order()
        steps = self._step_order()
        for step in steps[done if epoch == self.epoch else 0 :]:
            yield order[self._rows_of(int(step))].tolist()

    def padding_share(self) -> PaddingShare:
        """Share of positions that hold padding, over the batches of all ranks."""
        if len(self._source) == 0:
            return PaddingShare(0.0, 0.0)
        order = self._order()
        rows = np.diff(self._cuts)
        shares = []
        for lengths in (self._source[order], self._target[order]):
            positions = int((np.maximum.reduceat(lengths, self._cuts[:-1]) * rows.astype(np.int64)).sum())
            shares.append(1 - int(lengths.sum(dtype=np.int64)) / positions)
        return PaddingShare(*shares)

    def _generator(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, self.epoch, purpose])

    def _order(self) -> NDArray[np.int64]:
        """All sample numbers in the order in which they are cut into batches."""
        count = len(self._source)
        if not self._bucketing:
            return self._generator(0).permutation(count) if self._shuffle else np.arange(count)
        ties = self._generator(0).random(count) if self._shuffle else np.arange(count)
        return np.lexsort((ties, self._target, self._source))

    def _step_order(self) -> NDArray[np.int64]:
        steps = np.arange(len(self))
        if self._shuffle:
            return self._generator(1).permutation(steps)
        return steps[::-1] if self._bucketing else steps

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
        rows, ranks, part = int(end - start), next_rank - first_rank, self._rank - first_rank
        if rows < ranks:  # too few pairs to divide: repeat them
            return slice(start + part % rows, start + part % rows + 1)
        return slice(start + rows * part // ranks, start + rows * (part + 1) // ranks)

    def _cut_by_tokens(self, max_tokens: int) -> NDArray[np.int64]:
        """Where batches begin, and the end. The lengths in sorted order are the same in every epoch."""
        order = np.lexsort((self._target, self._source))
        longer = np.maximum(self._source, self._target)[order].tolist()
        cuts, start, widest = [0], 0, 0
        for position, length in enumerate(longer):
            widest = max(widest, length)
            if position > start and widest * (position - start + 1) > max_tokens:
                cuts.append(position)
                start, widest = position, length
        too_long = sum(length > max_tokens for length in longer)
        if too_long and self._rank == 0:
            log.warning("%d pairs are longer than max_tokens %d: a batch each", too_long, max_tokens)
        return np.array([*cuts, len(longer)] if longer else [0])
