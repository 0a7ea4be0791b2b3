"""Pretrained word vectors: word2vec, fastText and GloVe files, of which only the wanted rows are kept.

The form is told by the content: text with or without a header "rows width", or word2vec's binary form. Compressed
files go by their names, as corpora do. A file is read once from front to back, and what is not wanted is passed over,
so that two million rows of 300 cost the memory of the vocabulary.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotloop.data.text.readers import check_not_packed, raw_lines
from hotloop.data.text.tokenizer import Tokenizer
from hotloop.errors import UserError
from hotloop.vocabulary import EOS

log = logging.getLogger(__name__)

Row = NDArray[np.float32]
_BOM = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"\s*(\d+)[ \t]+(\d+)\s*")
_SPACES = re.compile(rb" {2,}")
_SAMPLE = 4096  # bytes that tell text from binary numbers
_BOUNDARY = "▁"  # sentencepiece's mark before a word
_JOIN = "￭"  # the word tokeniser's mark where a token touches its neighbour


@dataclass
class WordVectors:
    """The wanted rows of a file.

    Attributes:
        width: numbers in a vector.
        rows: word → (width,) float32.
        read: rows in the file.
        repeated: wanted words that came again; the first row counts.
    """

    width: int
    rows: dict[str, Row] = field(default_factory=dict)
    read: int = 0
    repeated: int = 0


@dataclass(frozen=True)
class TokenVectors:
    """Vectors for some ids of a vocabulary.

    Attributes:
        ids: (N,) int64, increasing.
        rows: (N, width) float32.
        lowercased: how many of them are the vectors of their words in lower case.
        words: ids that are words; word pieces and specials are none.
    """

    ids: NDArray[np.int64]
    rows: NDArray[np.float32]
    lowercased: int
    words: int

    @property
    def width(self) -> int:
        return self.rows.shape[1]


def token_vectors(path: Path, tokenizer: Tokenizer) -> TokenVectors:
    """The vectors of `path` for the words in the vocabulary of `tokenizer`.

    A token is looked up as it is written in a text, without marks, and then in lower case. Of sub-words those that
    begin a word are looked up ("▁maison"), and marks of punctuation.

    Raises:
        UserError: see `read_vectors`.
    """
    surfaces = surface_forms(tokenizer)
    wanted = {form for surface in surfaces.values() for form in (surface, surface.lower())}
    found = read_vectors(path, wanted)
    ids, rows, lowercased = [], [], 0
    for number, surface in surfaces.items():
        row = found.rows.get(surface)
        if row is None:
            row = found.rows.get(surface.lower())
            lowercased += row is not None
        if row is not None:
            ids.append(number)
            rows.append(row)
    stacked = np.stack(rows) if rows else np.zeros((0, found.width), dtype=np.float32)
    return TokenVectors(np.array(ids, dtype=np.int64), stacked, lowercased, len(surfaces))


def surface_forms(tokenizer: Tokenizer) -> dict[int, str]:
    """Id → word as it stands in a text, for every id that is a whole word or a mark."""
    pieces = tokenizer.pieces(range(EOS + 1, tokenizer.size))
    if tokenizer.state()["kind"] == "word":
        words = [piece.strip(_JOIN) for piece in pieces]
    else:
        words = [
            piece[1:] if piece.startswith(_BOUNDARY) else "" if any(map(str.isalnum, piece)) else piece
            for piece in pieces
        ]
    return {number: word for number, word in enumerate(words, start=EOS + 1) if word}


def read_vectors(path: Path, wanted: Collection[str]) -> WordVectors:
    """The rows of the words in `wanted`.

    Raises:
        UserError: no such file, damaged, not a file of vectors, a row of another width, or a number that is none.
    """
    lines = raw_lines(path)
    first = next(lines, b"").removeprefix(_BOM)
    check_not_packed(path, first)
    keys = {word.encode("utf-8", "surrogatepass"): word for word in wanted}
    header = _HEADER.fullmatch(first)
    if header is None:
        width = _width_of(first)
        if width < 1:
            raise UserError(f"{path}, line 1: no word vector: expected a word and its numbers, or a header: rows width")
        found = _read_text(path, chain([first], lines), width, keys, number=1)
        announced = found.read
    else:
        announced, width = int(header[1]), int(header[2])
        if width < 1:
            raise UserError(f"{path}, line 1: the header says vectors of {width} numbers")
        sample: list[bytes] = []
        for line in lines:
            sample.append(line)
            if sum(map(len, sample)) >= _SAMPLE:
                break
        rest = chain(sample, lines)
        if _is_text(b"".join(sample)):
            found = _read_text(path, rest, width, keys, number=2)
        else:
            found = _read_binary(path, rest, announced, width, keys)
    if found.read != announced:
        log.warning("%s: the header says %d rows, the file has %d: was it cut off?", path, announced, found.read)
    if found.repeated:
        log.info("%s: %d words came more than once; the first row of each counts", path, found.repeated)
    return found


def _width_of(line: bytes) -> int:
    """How many numbers stand at the end of a line, behind a word of at least one part."""
    fields = line.split()
    count = 0
    for part in reversed(fields[1:]):
        try:
            float(part)
        except ValueError:
            break
        count += 1
    return count


def _is_text(sample: bytes) -> bool:
    """Whether bytes are text; the float32 numbers of a few rows hold control characters or broken UTF-8."""
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end < len(sample) or error.reason != "unexpected end of data":
            return False
    return not any(byte < 32 and byte not in b"\t\n\r" for byte in sample)


def _read_text(path: Path, lines: Iterable[bytes], width: int, keys: dict[bytes, str], *, number: int) -> WordVectors:
    """`number` is that of the first line. A word may hold spaces: the last `width` fields are the numbers."""
    found = WordVectors(width)
    for place, line in enumerate(lines, start=number):
        line = line.strip(b" \t\r\n")
        if not line:
            continue
        if b"\t" in line:
            line = line.replace(b"\t", b" ")
        if b"  " in line:
            line = _SPACES.sub(b" ", line)
        found.read += 1
        spaces = line.count(b" ")
        if spaces < width:
            raise UserError(f"{path}, line {place}: {spaces} numbers, the rows before have {width}")
        word = line.partition(b" ")[0] if spaces == width else line.rsplit(b" ", width)[0]
        name = keys.get(word)
        if name is not None:
            _add(found, name, _numbers(path, place, line, width), path)
    return found


def _numbers(path: Path, place: int, line: bytes, width: int) -> Row:
    fields = line.rsplit(b" ", width)[1:]
    try:
        return np.array([float(part) for part in fields], dtype=np.float32)
    except ValueError:
        wrong = next(part for part in fields if not _is_number(part))
        shown = wrong.decode("utf-8", "replace")
        raise UserError(f"{path}, line {place}: {shown!r} is no number; a row is a word and {width} numbers") from None


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_binary(path: Path, lines: Iterable[bytes], rows: int, width: int, keys: dict[bytes, str]) -> WordVectors:
    """word2vec's binary form: the word, a space, `width` little-endian float32, and perhaps a line end."""
    found, size = WordVectors(width), 4 * width
    buffer, at = b"", 0
    source = iter(lines)
    while found.read < rows:
        end = buffer.find(b" ", at)
        if end < 0 or len(buffer) < end + 1 + size:
            more = b"".join(islice(source, 4096))  # "lines" of a binary file are some 100 bytes each
            if not more:
                raise UserError(f"{path} is cut off in row {found.read + 1} of {rows} (binary word2vec)")
            buffer, at = buffer[at:] + more, 0
            continue
        found.read += 1
        name = keys.get(buffer[at:end].lstrip(b"\n"))
        at = end + 1 + size
        if name is not None:
            _add(found, name, np.frombuffer(buffer[end + 1 : at], dtype="<f4").astype(np.float32), path)
    if rest := sum(map(len, _remaining(buffer[at:], source))):
        log.warning("%s: %d bytes follow the %d rows of the header", path, rest, rows)
    return found


def _remaining(buffer: bytes, source: Iterator[bytes]) -> Iterator[bytes]:
    yield buffer.strip(b"\n")
    yield from source


def _add(found: WordVectors, name: str, row: Row, path: Path) -> None:
    if not np.isfinite(row).all():
        raise UserError(
            f"{path}: the vector of {name!r} (row {found.read}) holds NaN or infinite numbers: mend the file"
        )
    if name in found.rows:
        found.repeated += 1
    else:
        found.rows[name] = row
