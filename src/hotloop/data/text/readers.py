"""Reading bitext: two parallel text files, tab-separated columns or JSON lines; plain or compressed.

A line ends at LF and nowhere else (one CR before it is dropped): U+2028, U+0085, form feed and vertical tab
are text, so that the two sides never slide apart. Every complaint names the file and the line.
"""

from __future__ import annotations

import gzip
import json
import lzma
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from hotloop.errors import UserError

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor as zstd_decoder
    from compression.zstd import ZstdError
else:
    from zstandard import ZstdDecompressor, ZstdError

    def zstd_decoder() -> Any:
        """A decoder for one frame, like the one in the standard library of Python 3.14."""
        return ZstdDecompressor().decompressobj()


FORMATS = ("parallel", "tsv", "jsonl")
COMPRESSIONS = ("", ".gz", ".zst", ".xz")

_BOM = b"\xef\xbb\xbf"
_MAGIC = (
    (b"\x1f\x8b", "gzip data: name it ….gz"),
    (b"\x28\xb5\x2f\xfd", "zstandard data: name it ….zst"),
    (b"\xfd7zXZ", "xz data: name it ….xz"),
    (b"BZh", "bzip2 data: unpack it"),
    (b"PK\x03\x04", "a zip archive: unpack it"),
    (b"\xff\xfe\x00\x00", "UTF-32; convert it: iconv -f UTF-32 -t UTF-8 OLD > NEW"),
    (b"\x00\x00\xfe\xff", "UTF-32; convert it: iconv -f UTF-32 -t UTF-8 OLD > NEW"),
    (b"\xff\xfe", "UTF-16; convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW"),
    (b"\xfe\xff", "UTF-16; convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW"),
)


@dataclass(frozen=True)
class BitextFiles:
    """Where the pairs of one split lie.

    `parallel`: `source` and `target` are text files, one sentence a line.
    `tsv`: `source` alone; `columns` are two numbers counted from 1 (no header line; 1 and 2 unless given) or
    two names (the first line is a header). Nothing is quoted: a tab always ends a column.
    `jsonl`: `source` alone; `columns` are the two keys, looked up in the object or in its "translation".
    """

    source: Path
    target: Path | None = None
    format: str = "parallel"
    columns: tuple[int | str, int | str] | None = None

    def paths(self) -> tuple[Path, ...]:
        """The one or two files to be read."""
        return (self.source,) if self.target is None else (self.source, self.target)


def read_pairs(files: BitextFiles) -> Iterator[tuple[str, str]]:
    """All (source, target) lines in order, unchanged. Raises UserError; never stops short."""
    if files.format not in FORMATS:
        raise UserError(f"unknown bitext format {files.format!r}; known: {', '.join(FORMATS)}")
    if files.format == "parallel":
        return _read_parallel(files)
    if files.target is not None:
        raise UserError(f"{files.format} keeps both sides in one file, but two were given: {files.paths()}")
    return _read_tsv(files) if files.format == "tsv" else _read_jsonl(files)


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 text file without their line ends. Raises UserError."""
    number = 0
    for number, line in enumerate(raw_lines(path), start=1):
        whole = line.endswith(b"\n")
        if number == 1:
            line = line.removeprefix(_BOM)
            _check_first_line(path, line, whole)
        if whole:
            line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            cut = not whole and error.reason == "unexpected end of data"
            advice = _advice(line, number, cut=cut)
            raise UserError(f"{path}, line {number}: not UTF-8 (byte 0x{line[error.start]:02x}); {advice}") from None
        yield text


def _check_first_line(path: Path, line: bytes, whole: bool) -> None:
    """Refuse what would decode, but as one line or as letters with NULs between them."""
    if line.startswith(tuple(magic for magic, _ in _MAGIC)):
        return  # bytes of any value; that they are no UTF-8 is told with what they are
    if not whole and b"\r" in line[:-1]:
        raise UserError(
            f"{path}: the lines end with CR alone (old Mac), so that all of the file is one line; convert it: "
            "tr '\\r' '\\n' < OLD > NEW"
        )
    if line.count(0) > len(line) // 3 and not line.startswith((b"\x00\x00\xfe\xff", b"\xff\xfe", b"\xfe\xff")):
        # The letters of western text are the low halves.
        form = "UTF-16BE" if line[0] == 0 else "UTF-16LE"
        raise UserError(
            f"{path}, line 1: not UTF-8 (every other byte is 0); this looks like {form}; convert it: "
            f"iconv -f {form} -t UTF-8 OLD > NEW"
        )


def _advice(line: bytes, number: int, *, cut: bool) -> str:
    """What the bytes of a line that is not UTF-8 may be, and what to do; `cut`: the file ends inside a character."""
    found = next((what for magic, what in _MAGIC if line.startswith(magic)), None) if number == 1 else None
    if found:
        return f"this looks like {found}"
    # 0x80 to 0x9f are control characters in LATIN1, which text does not hold, and quotes and dashes in CP1252
    form = "CP1252" if any(0x80 <= byte < 0xA0 for byte in line) else "LATIN1"
    convert = f"iconv -f {form} -t UTF-8 OLD > NEW"
    if cut:
        return (
            "the file ends inside a character, as if it had been cut off there: get it again, or remove this line "
            f"from both sides; if it is whole, it may be {form}: {convert}"
        )
    return f"if all of the file is {form} (a guess), convert it: {convert}; if it is this line alone, mend the line"


def check_not_packed(path: Path, line: bytes) -> None:
    """Refuse a first line that is the beginning of an archive, or of compressed data under another name."""
    found = next((what for magic, what in _MAGIC if line.startswith(magic)), None)
    if found:
        raise UserError(f"{path}: this looks like {found}")


def _read_parallel(files: BitextFiles) -> Iterator[tuple[str, str]]:
    if files.target is None:
        raise UserError(f"parallel bitext needs two files; {files.source} was given alone")
    source, target = read_lines(files.source), read_lines(files.target)
    for done, (line, other) in enumerate(zip_longest(source, target)):
        if line is None or other is None:
            longer = source if other is None else target
            total = done + 1 + sum(1 for _ in longer)
            counts = (total, done) if other is None else (done, total)
            raise UserError(
                f"the two sides differ in length: {files.source} has {counts[0]:,} lines, "
                f"{files.target} has {counts[1]:,}; line n of one must translate line n of the other"
            )
        yield line, other


def _read_tsv(files: BitextFiles) -> Iterator[tuple[str, str]]:
    path, (first, second) = files.source, files.columns or (1, 2)
    lines = enumerate(read_lines(path), start=1)
    if isinstance(first, str) and isinstance(second, str):
        names = next(lines, (0, ""))[1].split("\t")
        for name in (first, second):
            if name not in names:
                raise UserError(f"{path}: no column {name!r} in the header; it has {', '.join(map(repr, names))}")
        left, right = names.index(first), names.index(second)
    elif all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in (first, second)):
        left, right = int(first) - 1, int(second) - 1
    else:
        raise UserError(f"columns must be two numbers from 1 on or two names, got {first!r} and {second!r}")
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) <= max(left, right):
            raise UserError(
                f"{path}, line {number}: {len(cells)} column(s), column {max(left, right) + 1} was asked for"
            )
        yield cells[left], cells[right]


def _read_jsonl(files: BitextFiles) -> Iterator[tuple[str, str]]:
    path = files.source
    if files.columns is None:
        raise UserError(f"{path}: say which two keys hold the pair (columns), for example [fr, en]")
    for number, line in enumerate(read_lines(path), start=1):
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: not a JSON object ({error})") from None
        if isinstance(record, dict) and isinstance(record.get("translation"), dict):
            record = {**record, **record["translation"]}
        source, target = (_text(record, str(key), f"{path}, line {number}") for key in files.columns)
        yield source, target


def _text(record: Any, key: str, place: str) -> str:
    if not isinstance(record, dict):
        raise UserError(f"{place}: a JSON object was expected, found {type(record).__name__}")
    if key not in record:
        raise UserError(f"{place}: no key {key!r}; the object has {', '.join(map(repr, record))}")
    text = record[key]
    if not isinstance(text, str):
        raise UserError(f"{place}: key {key!r} must hold text, found {type(text).__name__}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # "\ud83d" alone is legal JSON and no text
        raise UserError(f"{place}: key {key!r} holds half of a surrogate pair") from None
    return text


def raw_lines(path: Path) -> Iterator[bytes]:
    """Lines of bytes with their LF, decompressed by the file's extension. Raises UserError."""
    try:
        with open(path, "rb") as file:
            yield from _decompressed(path, file)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}; {folder_listing(path.parent)}") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, a file was expected") from None
    except PermissionError:
        raise UserError(f"{path} may not be read: permission denied") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, ZstdError) as error:
        raise UserError(f"{path} is damaged or not what its name says: {error}") from None


def folder_listing(folder: Path, limit: int = 20) -> str:
    """What is in `folder`, as the end of a message about a missing file."""
    if not folder.is_dir():
        return f"the folder {folder} does not exist"
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in folder.iterdir())
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{folder} holds: {', '.join(names[:limit])}{more}" if names else f"{folder} is empty"


def _decompressed(path: Path, file: BinaryIO) -> Iterator[bytes]:
    if path.suffix == ".gz":
        return iter(gzip.GzipFile(fileobj=file))
    if path.suffix == ".xz":
        return iter(lzma.LZMAFile(file))
    if path.suffix == ".zst":
        return _zstd_lines(file)
    return iter(file)


def _zstd_lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines of a zstandard file of one or more frames; a cut file raises EOFError."""
    decoder, open_frame, rest = None, False, b""
    while chunk := file.read(1 << 17):
        while chunk:
            if decoder is None:
                decoder = zstd_decoder()
            rest += decoder.decompress(chunk)
            open_frame, chunk = not decoder.eof, b""
            if decoder.eof:
                chunk, decoder = decoder.unused_data, None
        *lines, rest = rest.split(b"\n")
        for line in lines:
            yield line + b"\n"
    if open_frame:
        raise EOFError("the data end in the middle of a frame")
    if rest:
        yield rest
