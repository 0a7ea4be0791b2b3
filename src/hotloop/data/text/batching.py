"""Batches of pairs of like length."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotloop.data.sampling import BatchSampler
from hotloop.errors import UserError

log = logging.getLogger(__name__)


class PaddingShare(NamedTuple):
    """Padding positions over all positions of an epoch, each side by itself."""

    source: float
    target: float


class BucketBatchSampler(BatchSampler):
    """A `BatchSampler` of pairs.

    With `bucketing` the pairs are sorted by source length, then target length (ties at random in each epoch) and
    cut into batches, so that most batches have one source length; the batches then come in random order
    (`shuffle`) or longest first. Batches hold `batch_size` pairs, or as many as keep rows × the longer side
    within `max_tokens` positions, padding counted; a pair longer than that is a batch by itself. The batches of the
    ranks in one step are of like size.
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
        super().__init__(
            len(source_lengths),
            batch_size=batch_size or 1,
            shuffle=shuffle,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        self._source, self._target, self._bucketing = source_lengths, target_lengths, bucketing
        if max_tokens is not None:
            self._cuts = self._cut_by_tokens(max_tokens)

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

    def _order(self) -> NDArray[np.int64]:
        if not self._bucketing:
            return super()._order()
        ties = self._generator(0).random(self._count) if self._shuffle else np.arange(self._count)
        return np.lexsort((ties, self._target, self._source))

    def _step_order(self) -> NDArray[np.int64]:
        steps = super()._step_order()
        return steps[::-1] if self._bucketing and not self._shuffle else steps

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
