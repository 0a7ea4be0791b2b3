"""Unknown words of a translation, replaced by source words (Jean et al. 2015, section 3.3; Luong et al. 2015b)."""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from hotloop.vocabulary import EOS, SPECIALS, UNK

WORD_START = "▁"  # of sub-word tokenisers
JOINER = "￭"  # of word tokenisers: no space on this side
_WORD = re.compile(r"\w+(?:[-.,]\w+)*")
_WORD_OR_MARKS = re.compile(rf"{_WORD.pattern}|[^\w\s]+")


class Source(Protocol):
    """What is asked of a tokeniser of the source side."""

    @property
    def size(self) -> int: ...

    def encode(self, lines: Sequence[str]) -> list[list[int]]: ...

    def pieces(self, row: Sequence[int]) -> list[str]: ...


class Target(Protocol):
    """What is asked of a tokeniser of the target side."""

    def decode(self, rows: Iterable[Sequence[int]], *, show_unknown: bool = False) -> list[str]: ...


def replace_unknown(
    source_tokenizer: Source, target_tokenizer: Target, line: str, tokens: Sequence[int], looked_at: Sequence[int]
) -> str:
    """The text of ``tokens``, each UNK in it replaced by the word of ``line`` that its step looked at.

    ``looked_at`` names a token of the source for each of ``tokens``. Of a word in pieces the whole word is taken.
    """
    [plain] = target_tokenizer.decode([tokens])
    if UNK not in tokens:
        return plain
    words = surface_words(source_tokenizer, line)
    mark = SPECIALS[UNK]
    [text] = target_tokenizer.decode([tokens], show_unknown=True)
    parts = text.split(mark)
    filled, last = parts[0], 0
    for place, token in enumerate(tokens):
        if token != UNK:
            continue
        # A text may hold these letters by itself: what is decoded up to here says which of them stands for this token.
        [before] = target_tokenizer.decode([tokens[: place + 1]], show_unknown=True)
        which = before.count(mark)
        if last < which < len(parts):
            filled += "".join(mark + part for part in parts[last + 1 : which]) + words[looked_at[place]] + parts[which]
            last = which
    return filled + "".join(mark + part for part in parts[last + 1 :])


def surface_words(tokenizer: Source, line: str) -> list[str]:
    """For each token of ``line`` the word as it is written there: known or not, whole or in pieces."""
    labels = tokenizer.pieces(range(EOS + 1, min(tokenizer.size, EOS + 1000)))
    in_pieces = any(label.startswith(WORD_START) for label in labels)
    found: list[str] = []
    for word in line.split():
        [ids] = tokenizer.encode([word])
        plain = [piece.replace(JOINER, "").removeprefix(WORD_START) for piece in tokenizer.pieces(ids)]
        for place in range(len(ids)):
            # Known neighbours are as long as their letters; the text between them is what is unknown.
            left, last = _known(ids[:place], plain[:place])
            right, first = _known(ids[:place:-1], plain[:place:-1])
            right = len(word) - right
            if ids[place] != UNK and last == place:
                right, first = left + len(plain[place]), len(ids) - place - 1
            if in_pieces:
                found.append(_word_at(word, left, right))
            else:
                found.append(_token(word[left:right], place - last, len(ids) - first - last) or word)
    return found


def _known(ids: Sequence[int], plain: Sequence[str]) -> tuple[int, int]:
    """The letters and the number of the pieces before the first unknown one."""
    count = next((place for place, token in enumerate(ids) if token == UNK), len(ids))
    return sum(map(len, plain[:count])), count


def _token(text: str, place: int, count: int) -> str:
    """Of ``count`` tokens that make up ``text``, some unknown, the one at ``place``; all of it if that is not clear."""
    parts = _WORD_OR_MARKS.findall(text)
    return parts[place] if count > 1 and len(parts) == count else text


def _word_at(text: str, left: int, right: int) -> str:
    """The word of ``text`` that has letters between two places; the letters there if they are no word."""
    words = [found.group() for found in _WORD.finditer(text) if found.start() < right and found.end() > left]
    return max(words, key=len) if words else text[left:right] or text
