"""Sentence pairs as arrays; a whole batch is one gather."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.utils.data import Dataset

from hotloop.data.text.batch import Batch
from hotloop.data.text.preparing.store import TokenRows
from hotloop.data.text.tokenizer import Tokenizer
from hotloop.errors import UserError
from hotloop.vocabulary import BOS, EOS


class BitextDataset(Dataset[Batch]):
    """Pairs by number. Source rows end with EOS; target rows begin with BOS and end with EOS."""

    def __init__(self, source: TokenRows, target: TokenRows) -> None:
        if len(source) != len(target):
            raise ValueError(f"{len(source)} source rows, {len(target)} target rows")
        self.source, self.target = source, target

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, ids: Sequence[int]) -> Batch:
        """The pairs with these numbers, padded, in the order given."""
        numbers = np.asarray(ids, dtype=np.int64)
        source, source_length = self.source.gather(numbers)
        target, target_length = self.target.gather(numbers)
        return Batch(
            source=torch.from_numpy(source),
            source_length=torch.from_numpy(source_length),
            target=torch.from_numpy(target),
            target_length=torch.from_numpy(target_length),
            ids=torch.from_numpy(numbers),
        )


def encode_pairs(
    source_lines: Sequence[str],
    target_lines: Sequence[str],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
) -> BitextDataset:
    """A data set of normalised lines in memory; every line is kept, an empty one too. Raises UserError."""
    if len(source_lines) != len(target_lines):
        raise UserError(f"{len(source_lines):,} source lines, but {len(target_lines):,} target lines")
    source = ([*row, EOS] for row in source_tokenizer.encode(source_lines))
    target = ([BOS, *row, EOS] for row in target_tokenizer.encode(target_lines))
    return BitextDataset(TokenRows.from_lists(source), TokenRows.from_lists(target))
