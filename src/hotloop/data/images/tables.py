"""Tables of targets: CSV (with , ; tab or spaces), JSON lines and Parquet, a column at a time.

Every complaint names the file, the line, the column and the value.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.errors import UserError

log = logging.getLogger(__name__)

_JSON = (".jsonl", ".ndjson")
_PARQUET = (".parquet", ".pq")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NO_PICTURE = ("", "unnamed: 0", "index", "__index_level_0__")  # row numbers that pandas wrote down
_SPREADSHEETS = (".xlsx", ".xls", ".ods")


@dataclass(frozen=True)
class Table:
    """N rows as they are in the file.

    Attributes:
        path: of the file.
        columns: N cells of each; text, or what JSON and Parquet hold.
        rows: (N,) where each row is, counted from 1.
        unit: of `rows`: "line" or "row"; "" = the rows are the pictures of a folder themselves, in the column "image".
        decimal_comma: whether a comma in a number is a decimal point.
    """

    path: Path
    columns: Mapping[str, Sequence[Any]]
    rows: NDArray[np.int64]
    unit: str = "line"
    decimal_comma: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, row: int, column: str) -> str:
        """In words, for messages."""
        if not self.unit:
            return f"{self.path}, {self.columns['image'][row]}, {column}"
        return f"{self.path}, {self.unit} {self.rows[row]}, column {column!r}"

    def names(self) -> str:
        """Those of the columns, for messages."""
        return ", ".join(repr(name) for name in self.columns if name) or "none"

    def column(self, name: str | int, key: str) -> str:
        """The column called `name`, in whatever case, or the one with that number; `key`: the option that names it.

        Raises:
            UserError: there is none; with those that there are.
        """
        if isinstance(name, int):
            name = f"column_{name}"
        found = [known for known in self.columns if known == name]
        found = found or [known for known in self.columns if known.casefold() == name.strip().casefold()]
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"{self.path}: {key}={name} may be {' or '.join(map(repr, found))}: write it as there")
        near = get_close_matches(name, self.columns, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UserError(f"{self.path} has no column {name!r} ({key}); it has {self.names()}{hint}")

    def texts(self, column: str) -> list[str]:
        """The cells of `column` without surrounding white space. Raises UserError for an empty one, or for no text."""
        texts = [_text(cell) for cell in self.columns[column]]
        for row, text in enumerate(texts):
            if not text:
                raise UserError(f"{self.place(row, column)}: empty")
            try:
                text.encode()
            except UnicodeEncodeError:  # "\ud83d" alone is legal JSON and no text
                raise UserError(f"{self.place(row, column)}: holds half of a surrogate pair") from None
        return texts

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The cells of `column`, (N,). Raises UserError for one that is no finite number."""
        comma = self._writes_commas(column)
        values = np.empty(len(self), dtype=np.float64)
        for row, cell in enumerate(self.columns[column]):
            number = _number(cell, comma=comma)
            if number is None:
                raise UserError(f"{self.place(row, column)}: {self._complaint(cell)}")
            values[row] = number
        return values

    def is_numeric(self, column: str) -> bool:
        """Whether most cells of `column` are numbers."""
        comma = self._writes_commas(column)
        good = sum(_number(cell, comma=comma) is not None for cell in self.columns[column])
        return 2 * good > len(self)

    def _writes_commas(self, column: str) -> bool:
        cells = self.columns[column]
        return self.decimal_comma and not any(isinstance(cell, str) and "." in cell for cell in cells)

    def _complaint(self, cell: Any) -> str:
        text = _text(cell)
        if not text:
            return "empty, a number was expected"
        if isinstance(cell, str) and re.fullmatch(r"[+-]?[\d.]*,[\d.,]+", text):
            if self.decimal_comma:
                return f"{text!r}: decimal points and decimal commas in one column"
            return f"{text!r} is no number: write it with a decimal point"
        return f"{text!r} is no finite number"


def read_table(path: Path, *, header: bool = True) -> Table:
    """The table in `path`; what it is, its ending says (.csv, .tsv, .txt, .jsonl, .ndjson, .parquet, .pq).

    Args:
        path: of the file.
        header: whether the first line of a CSV names the columns; without, they are column_1, column_2, …

    Raises:
        UserError: no such file, not a table, or a damaged one.
    """
    ending = path.suffix.lower()
    if ending in _PARQUET:
        table = _read_parquet(path)
    elif ending in _SPREADSHEETS:
        raise UserError(f"{path} is a spreadsheet: save it as CSV")
    elif ending == ".json":
        raise UserError(f"{path}: write one JSON object a line and call the file .jsonl")
    else:
        text = _file_text(path)
        table = _read_json_lines(path, text) if ending in _JSON else _read_csv(path, text, header=header)
    if not len(table):
        raise UserError(f"{path} has no rows")
    return table


def find_targets(
    table: Table, wanted: Sequence[str | int] | None, others: Iterable[str], key: str = "data.source.target_columns"
) -> list[str]:
    """The target columns: `wanted`, else "target", else the only numeric one that is not in `others`.

    Raises:
        UserError: no such column, or there are several that may be meant.
    """
    taken = set(others)
    if wanted is not None:
        columns = [table.column(name, key) for name in wanted]
        for place, column in enumerate(columns):
            if column in columns[:place] or column in taken:
                raise UserError(f"{table.path}: {key} names {column!r}, which is taken already")
        return columns
    named = [column for column in table.columns if column.strip().casefold() == "target" and column not in taken]
    if len(named) == 1:
        return named
    numeric = [
        column
        for column in table.columns
        if column not in taken and column.strip().casefold() not in _NO_PICTURE and table.is_numeric(column)
    ]
    if len(numeric) == 1:
        return numeric
    if not numeric:
        raise UserError(f"{table.path}: which column holds the targets? None of {table.names()} holds numbers")
    found = ", ".join(map(repr, numeric))
    raise UserError(f'{table.path}: which column holds the target, {found}? Set {key}=[…], or call it "target"')


def _file_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"  # "Unicode text" of spreadsheets
    elif data.startswith((b"PK\x03\x04", b"\x1f\x8b", b"PAR1", b"\xd0\xcf\x11\xe0")):
        raise UserError(f"{path} is no text (zip, gzip, Parquet or a spreadsheet): unpack it, or mend its ending")
    else:
        encoding = "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line}: not UTF-8 (byte 0x{data[error.start]:02x}); if it comes from a spreadsheet, save it "
            'as "CSV UTF-8", or convert it: iconv -f CP1252 -t UTF-8 OLD > NEW'
        ) from None


# ---- CSV -----------------------------------------------------------------------------------------------


def _read_csv(path: Path, text: str, *, header: bool) -> Table:
    first, _, rest = text.partition("\n")
    named = re.fullmatch(r"sep=(.)\r?", first)  # a note that spreadsheets understand
    skipped = 1 if named else 0
    delimiter = named[1] if named else _delimiter(text.lstrip("\r\n").partition("\n")[0])
    records = list(_records(path, rest if named else text, delimiter, skipped))
    if not records:
        raise UserError(f"{path} is empty")
    names = [name.strip() for name in records[0][1]]
    if header:
        _check_header(path, names)
        records = records[1:]
    else:
        names = [f"column_{number}" for number in range(1, len(names) + 1)]
    for line, cells in records:
        if len(cells) < len(names) or any(cell.strip() for cell in cells[len(names) :]):
            raise UserError(
                f"{path}, line {line}: {len(cells)} cells, but {len(names)} columns (separated by {delimiter!r}); "
                "a cell that holds the separator must be in quotes"
            )
    columns = {name: [cells[place] for _, cells in records] for place, name in enumerate(names)}
    lines = np.array([line for line, _ in records], dtype=np.int64)
    return Table(path, columns, lines, decimal_comma=delimiter == ";")


def _records(path: Path, text: str, delimiter: str, skipped: int) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record starts, and its cells; blank lines are left out."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    line = 0
    try:
        while True:
            start = reader.line_num + 1
            cells = next(reader, None)
            if cells is None:
                return
            line = start + skipped
            if any(cell.strip() for cell in cells):
                yield line, cells
    except csv.Error as error:
        raise UserError(f"{path}, line {line + 1}: not CSV ({error}); mind the quotes") from None


def _delimiter(line: str) -> str:
    """What separates the columns, to judge by the first line."""
    outside = re.sub(r'"[^"]*"', "", line)
    counts = {delimiter: outside.count(delimiter) for delimiter in ",;\t|"}
    best = max(counts, key=lambda delimiter: counts[delimiter])
    return best if counts[best] else " " if " " in outside.strip() else ","


def _check_header(path: Path, names: list[str]) -> None:
    for name in names:
        if _number(name, comma=False) is not None or re.search(r"\.(jpe?g|png|tiff?|bmp|gif|webp)$", name, re.I):
            raise UserError(
                f"{path}: the first line must name the columns, it holds {name!r}; without names, give their numbers: "
                "data.source.image_column=1 data.source.target_columns=[2]"
            )
    twice = {name for name in names if name and names.count(name) > 1}
    if twice:
        raise UserError(f"{path}: several columns are called {', '.join(map(repr, sorted(twice)))}")


# ---- JSON lines and Parquet ----------------------------------------------------------------------------


def _read_json_lines(path: Path, text: str) -> Table:
    rows, lines = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: not a JSON object ({error})") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number}: a JSON object a line was expected, found {type(row).__name__}")
        rows.append(row)
        lines.append(number)
    names = dict.fromkeys(name for row in rows for name in row)
    return Table(path, {name: [row.get(name) for row in rows] for name in names}, np.array(lines, dtype=np.int64))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys. Raises ValueError for a key that comes twice: its values may contradict."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in found if names.count(name) > 1)!r} comes twice")
    return found


def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet
        import pyarrow.types as kinds
    except ImportError:
        raise UserError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = [
                column.name
                for column in file.schema_arrow
                if not (
                    kinds.is_nested(column.type) or kinds.is_binary(column.type) or kinds.is_large_binary(column.type)
                )
            ]
            held = [column.name for column in file.schema_arrow if column.name not in names]
            data = file.read(columns=names)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except (OSError, pyarrow.lib.ArrowException) as error:
        raise UserError(f"{path} is damaged or no Parquet: {' '.join(str(error).split())}") from None
    if len(set(data.column_names)) < len(data.column_names):
        raise UserError(f"{path}: several columns have the same name")
    if held:
        told = f"{path}: the columns {', '.join(held)} hold bytes or structures, not names of files or numbers"
        if not names:
            raise UserError(told)
        log.warning("%s: they are not used", told)
    columns = {name: data.column(name).to_pylist() for name in data.column_names}
    return Table(path, columns, np.arange(1, data.num_rows + 1), unit="row")


# ---- cells ---------------------------------------------------------------------------------------------


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _number(cell: Any, *, comma: bool) -> float | None:
    if isinstance(cell, str):
        text = cell.strip().replace("\u2212", "-")  # the typographic minus sign
        if comma and text.count(",") == 1:
            text = text.replace(",", ".")
        if not _NUMBER.fullmatch(text):
            return None
        cell = float(text)
    if isinstance(cell, bool) or not isinstance(cell, (int, float, Decimal)):
        return None
    try:
        number = float(cell)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
