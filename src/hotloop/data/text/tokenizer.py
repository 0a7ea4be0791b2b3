"""Text to ids and back: what every tokeniser offers, and how one is rebuilt from a checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hotloop.errors import UserError

State = dict[str, str | int | bool]
KINDS = ("word", "bpe", "unigram")


class Tokenizer(Protocol):
    """Ids 0 to 3 are PAD, UNK, BOS, EOS; only UNK is ever made from text."""

    @property
    def size(self) -> int:
        """Number of ids, the four specials included."""
        ...

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids of each line, without BOS and EOS; an empty line gives an empty list."""
        ...

    def decode(self, rows: Iterable[Sequence[int]], *, show_unknown: bool = False) -> list[str]:
        """Text of each row; specials are left out (UNK is written <unk> if `show_unknown`)."""
        ...

    def pieces(self, row: Sequence[int]) -> list[str]:
        """One readable label per id, for the axes of a plot."""
        ...

    def state(self) -> State:
        """Plain values that `load_tokenizer` turns back into the same tokeniser."""
        ...


def load_tokenizer(state: Mapping[str, object]) -> Tokenizer:
    """The tokeniser that wrote `state`. Raises UserError for anything else: files come from strangers."""
    from hotloop.data.text.subword_tokenizer import SubwordTokenizer
    from hotloop.data.text.word_tokenizer import WordTokenizer

    kind = state.get("kind") if isinstance(state, Mapping) else None
    if kind == "word":
        return WordTokenizer.from_state(state)
    if kind in ("bpe", "unigram"):
        return SubwordTokenizer.from_state(state)
    raise UserError(f"the tokeniser's kind must be word, bpe or unigram, the file says {kind!r}")


@dataclass(frozen=True, kw_only=True)
class TokenizerOptions:
    """How the two vocabularies are made."""

    kind: str = "bpe"  # word, bpe or unigram
    vocabulary_size: int = 8_000  # ids of one side (of both when shared), the four specials included
    target_vocabulary_size: int | None = None  # of the target side, where it differs
    min_frequency: int = 2  # word only: rarer words become UNK
    shared: bool = False  # one vocabulary for both sides
    # Training pairs, evenly spaced, that the vocabularies are learnt from. None: a million, or 100,000 for unigram,
    # whose training takes some 3 GB and minutes for each million where the other kinds only count words.
    sample: int | None = None

    @property
    def sampled_pairs(self) -> int:
        """`sample`, or what None stands for."""
        return self.sample or (100_000 if self.kind == "unigram" else 1_000_000)

    def of_side(self, side: str) -> TokenizerOptions:
        """The options for "source" or "target" (or both, when shared), `vocabulary_size` being that side's."""
        if side == "target" and self.target_vocabulary_size is not None:
            return replace(self, vocabulary_size=self.target_vocabulary_size)
        return self

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(f"data.tokenizer.kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if not isinstance(self.shared, bool):
            raise UserError(f"data.tokenizer.shared must be true or false, got {self.shared!r}")
        if self.shared and self.target_vocabulary_size is not None:
            raise UserError("data.tokenizer.target_vocabulary_size has no meaning with data.tokenizer.shared=true")
        for name, low, high in (
            ("vocabulary_size", 8, 1_000_000),
            ("target_vocabulary_size", 8, 1_000_000),
            ("min_frequency", 1, 1_000_000),
            ("sample", 1, 100_000_000),
        ):
            value = getattr(self, name)
            if name in ("target_vocabulary_size", "sample") and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise UserError(f"data.tokenizer.{name} must be a whole number from {low} to {high:,}, got {value!r}")


def train_tokenizer(counts: Mapping[str, int], options: TokenizerOptions, *, language: str = "") -> Tokenizer:
    """A tokeniser from words (stretches between white space) with their frequencies.

    `language` is given for text that comes tokenised; see `detokenize`.
    """
    from hotloop.data.text.subword_tokenizer import SubwordTokenizer
    from hotloop.data.text.word_tokenizer import WordTokenizer

    size = options.vocabulary_size
    if options.kind == "word":
        return WordTokenizer.train(counts, size=size, min_frequency=options.min_frequency, language=language)
    return SubwordTokenizer.train(counts, kind=options.kind, size=size, language=language)


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each stretch between white space occurs."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts
