"""Sub-words by sentencepiece: byte-pair merges (Sennrich et al. 2016) or a unigram model (Kudo 2018)."""

from __future__ import annotations

import base64
import binascii
import io
import logging
import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import sentencepiece

from hotloop.data.text.normalisation import detokenize
from hotloop.data.text.tokenizer import State
from hotloop.errors import UserError
from hotloop.vocabulary import BOS, EOS, PAD, SPECIALS, UNK

log = logging.getLogger(__name__)

_BOUNDARY = "▁"  # how sentencepiece writes the space before a word
_CACHED_WORDS = 50_000  # 98 % of running text, some 20 MB
_COVERAGE = 0.9995  # share of characters that every vocabulary must be able to spell


class SubwordTokenizer:
    """A trained sentencepiece model. The character U+2581, its mark for a space, is read as an underscore.

    `language` is set for corpora that come tokenised (Moses): then `decode` gives natural text.
    """

    def __init__(self, model: bytes, *, kind: str, language: str = "") -> None:
        self._model, self._kind, self._language = model, kind, language
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._ids = _WordIds(self._processor)

    @classmethod
    def train(cls, counts: Mapping[str, int], *, kind: str, size: int, language: str = "") -> SubwordTokenizer:
        """A model of at most `size` ids from words (stretches between white space) with their frequencies.

        Pieces never cross white space, so that counted words say all that the text says, in a fraction of the
        memory. A size that the words cannot fill is lowered and logged. Raises UserError when `size` is too
        small to spell the text.
        """
        counts = _without_boundary(counts)
        coverage = _character_coverage(counts, size)
        model = io.BytesIO()
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "words.tsv"
            with open(table, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{word}\t{counts[word]}\n" for word in sorted(counts))
            sentencepiece.SentencePieceTrainer.train(
                input=str(table),
                input_format="tsv",
                model_writer=model,
                model_type=kind,
                vocab_size=size,
                hard_vocab_limit=False,
                character_coverage=coverage,
                normalization_rule_name="identity",
                max_sentence_length=1 << 20,
                num_threads=4,  # a constant: sums over threads must come out the same on every machine
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                # Names that no one types: "<pad>" or "</s>" in a text is then learnt like any other text.
                pad_piece="<|hotloop:pad|>",
                unk_piece="<|hotloop:unk|>",
                bos_piece="<|hotloop:bos|>",
                eos_piece="<|hotloop:eos|>",
                minloglevel=2,
            )
        tokenizer = cls(_without_paths(model.getvalue()), kind=kind, language=language)
        if tokenizer.size < size:
            log.warning(
                "vocabulary_size %d lowered to %d: the training text gives no more %s pieces",
                size, tokenizer.size, kind,
            )  # fmt: skip
        return tokenizer

    @property
    def size(self) -> int:
        """Number of ids, the four specials included."""
        return self._processor.get_piece_size()

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids of each line; a character that no piece spells becomes UNK."""
        ids_of = self._ids.__getitem__
        return [list(chain.from_iterable(map(ids_of, line.split()))) for line in lines]

    def decode(self, rows: Iterable[Sequence[int]], *, show_unknown: bool = False) -> list[str]:
        """Text of each row without specials."""
        rows = [[int(i) for i in row if i > EOS or i == UNK] for row in rows]
        lines = self._processor.decode([[i for i in row if i != UNK] for row in rows])
        if show_unknown:
            lines = [self._with_unknown(row) if UNK in row else line for row, line in zip(rows, lines, strict=True)]
        return detokenize(lines, self._language) if self._language else lines

    def _with_unknown(self, row: Sequence[int]) -> str:
        pieces = (f" {SPECIALS[UNK]}" if i == UNK else self._processor.id_to_piece(i) for i in row)
        return "".join(pieces).replace(_BOUNDARY, " ").strip()

    def pieces(self, row: Sequence[int]) -> list[str]:
        """Pieces as sentencepiece writes them: ▁ begins a word."""
        return [SPECIALS[i] if i <= EOS else self._processor.id_to_piece(int(i)) for i in row]

    def state(self) -> State:
        """See `load_tokenizer`."""
        model = base64.b64encode(self._model).decode("ascii")
        return {"kind": self._kind, "model": model, "size": self.size, "language": self._language}

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> SubwordTokenizer:
        """Raises UserError when the model is not one that `train` made."""
        kind, model, language = state.get("kind"), state.get("model"), state.get("language", "")
        if not isinstance(kind, str) or not isinstance(model, str) or not isinstance(language, str):
            raise UserError("the sub-word tokeniser's state must hold kind, model and language as text")
        try:
            tokenizer = cls(base64.b64decode(model, validate=True), kind=kind, language=language)
            ids = tokenizer._processor
            found = [ids.pad_id(), ids.unk_id(), ids.bos_id(), ids.eos_id()]
        except (binascii.Error, RuntimeError, ValueError) as error:
            raise UserError(f"the sub-word tokeniser's model cannot be read: {error}") from None
        if found != [PAD, UNK, BOS, EOS]:
            raise UserError(f"the sub-word tokeniser's pad, unk, bos, eos must be 0, 1, 2, 3, they are {found}")
        if state.get("size") != tokenizer.size:
            raise UserError(
                f"the sub-word tokeniser's state says {state.get('size')} ids, its model has {tokenizer.size}"
            )
        return tokenizer


class _WordIds(dict[str, list[int]]):
    """Ids of what stands between two white spaces; most of a text is a few thousand such words."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        super().__init__()
        self._processor = processor
        self._boundary = processor.piece_to_id(_BOUNDARY)

    def __missing__(self, word: str) -> list[int]:
        ids = self._processor.encode(word.replace(_BOUNDARY, "_"), num_threads=1)
        if len(ids) > 1 and ids[0] == self._boundary and ids[1] == UNK:
            del ids[0]  # the space before something unknown says nothing
        if len(self) < _CACHED_WORDS:
            self[word] = ids
        return ids


def _without_boundary(counts: Mapping[str, int]) -> Mapping[str, int]:
    if not any(_BOUNDARY in word for word in counts):
        return counts  # nearly always: no copy of millions of words
    clean: Counter[str] = Counter()
    for word, count in counts.items():
        clean[word.replace(_BOUNDARY, "_")] += count
    return clean


def _character_coverage(counts: Mapping[str, int], size: int) -> float:
    """Share of all characters that get an id of their own; below 1 when a rare script would fill the model."""
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for character in _BOUNDARY + word:
            characters[character] += count
    frequencies = sorted(characters.values(), reverse=True)
    if not frequencies:
        raise UserError("there is no training text to learn sub-words from")
    sums = [0]
    for frequency in frequencies:
        sums.append(sums[-1] + frequency)
    needed = next(n for n, total in enumerate(sums) if total >= _COVERAGE * sums[-1])
    if size < needed + len(SPECIALS):
        raise UserError(
            f"data.tokenizer.vocabulary_size {size} is too small to spell the training text: it must be at least "
            f"{needed + len(SPECIALS)} ({needed} characters and {len(SPECIALS)} specials)"
        )
    kept = max(needed, size // 2 - len(SPECIALS))
    if kept >= len(frequencies):
        return 1.0
    log.warning(
        "%d rare characters of %d become unknown (%.4f %% of the text): vocabulary_size %d leaves no room",
        len(frequencies) - kept, len(frequencies), 100 * (1 - sums[kept] / sums[-1]), size,
    )  # fmt: skip
    # sentencepiece takes characters until this share is reached: aim between the last one kept and the next
    return math.nextafter((sums[kept - 1] + sums[kept]) / 2 / sums[-1], 0.0)


def _without_paths(model: bytes) -> bytes:
    """`model` (a protocol buffer) without the name of the temporary file it was trained from.

    Field 2 of the message is the trainer's specification; its fields 1 and 2 are file names.
    """
    parts = []
    for number, whole, content in _fields(model):
        if number == 2:
            kept = b"".join(inner for inside, inner, _ in _fields(content) if inside not in (1, 2))
            whole = b"\x12" + _varint(len(kept)) + kept
        parts.append(whole)
    return b"".join(parts)


def _fields(message: bytes) -> Iterable[tuple[int, bytes, bytes]]:
    """(number, encoded field, content) of each field of a protocol buffer."""
    at = 0
    while at < len(message):
        start = at
        tag, at = _read_varint(message, at)
        size = {1: 8, 5: 4}.get(tag & 7, 0)
        if tag & 7 == 0:
            _, at = _read_varint(message, at)
        elif tag & 7 == 2:
            size, at = _read_varint(message, at)
        content, at = message[at : at + size], at + size
        yield tag >> 3, message[start:at], content


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
