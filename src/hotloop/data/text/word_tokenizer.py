"""Words, numbers and punctuation as tokens, joined again without loss."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from hotloop.data.text.normalisation import detokenize
from hotloop.data.text.tokenizer import State
from hotloop.errors import UserError
from hotloop.vocabulary import EOS, SPECIALS, UNK

# Marks the side on which a token touches its neighbour. A control character: normalised text holds none.
_JOIN = "\x1f"
_JOIN_SHOWN = "￭"
_CACHED_WORDS = 50_000  # 98 % of running text, some 20 MB

_LETTER = r"[\w\u0300-\u036f]"  # combining accents belong to the word they stand in
_TOKEN = re.compile(
    rf"""
    (?P<whole>  (?<!{_LETTER}) (?: aujourd['’]hui | quelqu['’]une? ) (?!{_LETTER})
             |  (?<!{_LETTER}) \d+ (?: [.,]\d+ )+ (?!{_LETTER}) )        # 3,14  1.000.000
  | (?P<elision> (?<!{_LETTER}) (?: [cdjlmnst] | (?:jus|lors|puis|quoi)?qu ) ['’] (?={_LETTER}) )
  | (?P<clitic> (?<={_LETTER}) (?: n['’]t | ['’](?:s|m|d|t|re|ve|ll) ) (?!{_LETTER}) )
  | (?P<word> {_LETTER}+? (?= n['’]t (?!{_LETTER}) ) | {_LETTER}+ )
  | (?P<mark> (?P<char>.) (?P=char)* )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def split_word(word: str) -> list[str]:
    """Tokens of a stretch of text without white space; words carry no join mark, their neighbours do.

    "l'homme," gives ["l'" + mark, "homme", mark + ","]; "don't" gives ["do", mark + "n't"].
    """
    tokens: list[str] = []
    before = ""
    for match in _TOKEN.finditer(word):
        kind, token = match.lastgroup or "", match.group()
        if before:
            if kind in ("clitic", "mark"):
                token = _JOIN + token
            else:
                tokens[-1] += _JOIN
        tokens.append(token)
        before = kind
    return tokens


class WordTokenizer:
    """A vocabulary of words, most frequent first.

    `language` is set for corpora that come tokenised (Moses): then tokens are what white space divides, and
    `decode` gives natural text in that language.
    """

    def __init__(self, vocabulary: Sequence[str], *, language: str = "") -> None:
        self._tokens = [*SPECIALS, *vocabulary]
        self._language = language
        self._ids = _WordIds(
            {token: number for number, token in enumerate(self._tokens) if number > EOS}, whole=bool(language)
        )

    @classmethod
    def train(
        cls, counts: Mapping[str, int], *, size: int, min_frequency: int = 1, language: str = ""
    ) -> WordTokenizer:
        """The `size` - 4 most frequent tokens of `counts` (stretches between white space, with frequencies)."""
        frequencies: Counter[str] = Counter()
        for word, count in counts.items():
            for token in [word] if language else split_word(word):
                frequencies[token] += count
        kept = [token for token, count in frequencies.items() if count >= min_frequency]
        kept.sort(key=lambda token: (-frequencies[token], token))
        if not kept:
            raise UserError(
                f"no word occurs {min_frequency} times in the training text: lower data.tokenizer.min_frequency"
            )
        return cls(kept[: size - len(SPECIALS)], language=language)

    @property
    def size(self) -> int:
        """Number of ids, the four specials included."""
        return len(self._tokens)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids of each line; unknown tokens become UNK."""
        ids_of = self._ids.__getitem__
        return [list(chain.from_iterable(map(ids_of, line.split()))) for line in lines]

    def decode(self, rows: Iterable[Sequence[int]], *, show_unknown: bool = False) -> list[str]:
        """Text of each row without specials."""
        tokens, lines = self._tokens, []
        for row in rows:
            kept = [tokens[i] for i in row if i > EOS or (show_unknown and i == UNK)]
            text = " ".join(kept).replace(f" {_JOIN}", "").replace(f"{_JOIN} ", "").replace(_JOIN, "")
            lines.append(text)
        return detokenize(lines, self._language) if self._language else lines

    def pieces(self, row: Sequence[int]) -> list[str]:
        """Tokens with ￭ on the sides where they touch their neighbour."""
        return [self._tokens[i].replace(_JOIN, _JOIN_SHOWN) for i in row]

    def state(self) -> State:
        """See `load_tokenizer`."""
        words = "\n".join(self._tokens[len(SPECIALS) :])
        return {"kind": "word", "vocabulary": words, "size": self.size, "language": self._language}

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> WordTokenizer:
        """Raises UserError when the vocabulary is not what `state` writes."""
        words, size, language = state.get("vocabulary"), state.get("size"), state.get("language", "")
        if not isinstance(words, str) or not isinstance(language, str):
            raise UserError("the word tokeniser's state must hold its vocabulary and language as text")
        vocabulary = words.split("\n")
        if any(not word or word.split() != [word] for word in (w.replace(_JOIN, "￭") for w in vocabulary)):
            raise UserError("the word tokeniser's vocabulary holds an empty entry or white space")
        if len(set(vocabulary)) != len(vocabulary) or size != len(vocabulary) + len(SPECIALS):
            raise UserError(
                f"the word tokeniser's state says {size} ids, but holds {len(set(vocabulary))} different words "
                f"and {len(SPECIALS)} specials"
            )
        return cls(vocabulary, language=language)


class _WordIds(dict[str, list[int]]):
    """Ids of what stands between two white spaces; most of a text is a few thousand such words."""

    def __init__(self, ids: Mapping[str, int], *, whole: bool) -> None:
        super().__init__()
        self._token_ids, self._whole = ids, whole

    def __missing__(self, word: str) -> list[int]:
        tokens = [word] if self._whole else split_word(word)
        ids = [self._token_ids.get(token, UNK) for token in tokens]
        if len(self) < _CACHED_WORDS:
            self[word] = ids
        return ids
