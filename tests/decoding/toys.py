"""Models small enough to know the answer, for the tests of searches."""

from dataclasses import dataclass

import torch
from torch import nn

VOCABULARY = 7  # four specials and the words 4, 5, 6
WORDS = [4, 5, 6]


@dataclass
class Prefixes:
    rows: list[tuple[int, ...]]  # source id, then the tokens fed
    attention: torch.Tensor | None = None

    def select(self, rows, *, width=1):
        attention = None if self.attention is None else self.attention[rows]
        return Prefixes([self.rows[row] for row in rows.tolist()], attention)


class TableModel(nn.Module):
    """Logits, and weights where asked for, looked up by (first source id, tokens so far)."""

    source_vocabulary = target_vocabulary = VOCABULARY

    def __init__(self, logits, weights=None):
        super().__init__()
        self.logits, self.weights = logits, weights
        self.attends = weights is not None

    def start(self, source, source_length, *, keep_attention=False):
        self.keep_attention = keep_attention
        return Prefixes([(row,) for row in source[:, 0].tolist()])

    def step(self, token, state):
        rows = [(*row, word) for row, word in zip(state.rows, token.tolist(), strict=True)]
        attention = torch.stack([self.weights(row[0], row[2:]) for row in rows]) if self.keep_attention else None
        return torch.stack([self.logits(row[0], row[2:]) for row in rows]), Prefixes(rows, attention)


def random_logits(seed, spread=1.5):
    def logits(sentence, words):
        generator = torch.Generator().manual_seed(hash((seed, sentence, *words)) % 2**31)
        return torch.randn(VOCABULARY, generator=generator) * spread

    return logits


def random_weights(seed, length):
    def weights(sentence, words):
        generator = torch.Generator().manual_seed(hash((seed, 99, sentence, *words)) % 2**31)
        return (torch.randn(length, generator=generator) * 2).softmax(-1)

    return weights


def sources(*first_ids, length=4):
    source = torch.full((len(first_ids), length), 5)
    source[:, 0] = torch.tensor(first_ids)
    return source, torch.full((len(first_ids),), length)
