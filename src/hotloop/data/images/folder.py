"""A folder of pictures with a number, or several, for each: from a table, from folder names or from file names."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.data.images.files import PictureFiles, Rows
from hotloop.data.images.locating import Locator, scan_pictures
from hotloop.data.images.source import SPLITS, TargetTable
from hotloop.data.images.tables import Table, find_targets, read_table
from hotloop.errors import UserError

log = logging.getLogger(__name__)

_IMAGE_NAMES = (
    "image", "image_path", "image_file", "image_name", "img", "file", "filename", "file_name", "filepath", "file_path",
    "path", "picture", "photo", "name", "images",
)  # fmt: skip
_SPLIT_NAMES = {
    "train": "train", "training": "train", "valid": "valid", "val": "valid", "validation": "valid", "dev": "valid",
    "test": "test", "testing": "test",
}  # fmt: skip
_TABLES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".parquet", ".pq")

Columns = str | int | Sequence[str | int] | None


class ImageFolder:
    """Your own pictures.

    `targets` says where the numbers are:

    * a table in `dir`, or anywhere: CSV, TSV, JSON lines or Parquet, with a column of file names and one or more of
      numbers. File names are relative to `dir` or to `dir`/images, or whole paths, of another machine too.
    * "folder": the name of the folder that a picture is in (`30.5/a.jpg`).
    * "name": groups of the regular expression `pattern`, searched in the picture's path (`_(\\d+)\\.jpg`). The names
      of groups, `(?P<angle>\\d+)`, are names of columns to the other options.

    Args:
        dir: folder of the pictures.
        targets: see above.
        valid_targets, test_targets: tables for validation and test, as `targets`; None = see `split_column`.
        image_column: of file names; None = image, file, filename, path, name or the like. A number counts from 1, for
            tables whose first line names no columns; then all columns are numbers.
        target_columns: one or more; None = target, or the only one with numbers.
        split_column: says train, valid or test of each row; None = the data module divides.
        group_column: rows with the same value there stay in one split, as the frames of one video; None = each row
            is for itself.
        pattern: see above.
        bits: auto | 8 | 16 a channel; auto = 16 if any picture has 16.
        alpha: what stands behind transparent pixels: white | black | grey | drop (colours as stored).
        cache_dir: keeps hashes of the files; None = they are read anew in each run.
    """

    def __init__(
        self,
        *,
        dir: str | Path,
        targets: str | Path = "targets.csv",
        valid_targets: str | Path | None = None,
        test_targets: str | Path | None = None,
        image_column: str | int | None = None,
        target_columns: Columns = None,
        split_column: str | int | None = None,
        group_column: str | int | None = None,
        pattern: str | None = None,
        bits: str | int = "auto",
        alpha: str = "white",
        cache_dir: str | Path | None = None,
    ) -> None:
        if not str(dir):
            raise UserError("data.dir is empty: give the folder of the pictures")
        self._folder = Path(dir).expanduser()
        self._tables = {"train": targets, "valid": valid_targets, "test": test_targets}
        self._tables = {split: name for split, name in self._tables.items() if name is not None}
        self._image_column, self._split_column, self._group_column = image_column, split_column, group_column
        self._target_columns = [target_columns] if isinstance(target_columns, (str, int)) else target_columns
        self._pattern, self._bits, self._alpha = pattern, bits, alpha
        self._cache_dir = None if cache_dir is None else Path(cache_dir).expanduser()
        self._check()

    def open(self) -> tuple[TargetTable, PictureFiles]:
        """The targets and the pictures, in the order of the table, or of the names. Raises UserError.

        A picture that a table names and that is not there is known to the reader (`missing`, `broken`); when none is
        there, it is an error here.
        """
        if not self._folder.is_dir():
            what = "is no folder" if self._folder.exists() else "does not exist"
            raise UserError(f"data.dir={self._folder} {what}")
        if self._tables["train"] in ("folder", "name"):
            tables = {"train": self._scanned()}
        else:
            tables = {split: self._read(split, str(name)) for split, name in self._tables.items()}
        return self._opened(tables)

    def _check(self) -> None:
        scan = self._tables["train"] in ("folder", "name")
        if (self._tables["train"] == "name") != (self._pattern is not None):
            raise UserError("data.source.pattern and data.targets=name go together: give both or neither")
        if scan and (len(self._tables) > 1 or self._image_column is not None):
            raise UserError(f"data.targets={self._tables['train']} has no tables and no image_column")
        if self._split_column is not None and len(self._tables) > 1:
            raise UserError("data.source.split_column and valid_targets, test_targets exclude each other")
        given = [self._image_column, *(self._target_columns or ()), self._split_column, self._group_column]
        numbers = [isinstance(column, int) for column in given if column is not None]
        if any(isinstance(column, int) and column < 1 for column in given):
            raise UserError(f"columns are counted from 1, got {given}")
        if any(numbers) and (not all(numbers) or self._image_column is None):
            raise UserError(
                "columns by number are for tables whose first line names no columns: give data.source.image_column "
                f"and all others as numbers, or all as names; got {[column for column in given if column is not None]}"
            )
        if self._target_columns is not None and not self._target_columns:
            raise UserError("data.source.target_columns=[] names no column; null = found by itself")

    # ---- tables ----------------------------------------------------------------------------------------

    def _read(self, split: str, name: str) -> Table:
        path = Path(name).expanduser()
        found = next((place for place in (self._folder / path, path) if place.is_file()), None)
        if found is None:
            key = "data.targets" if split == "train" else f"data.source.{split}_targets"
            there = sorted(item.name for item in self._folder.iterdir() if item.suffix.lower() in _TABLES)
            held = f"it holds {', '.join(there[:10])}" if there else "it holds no table"
            message = f"no table {self._folder / path} ({key}); {held}"
            if split == "train":
                message += f"; {key}=folder takes the numbers from folder names, {key}=name from file names"
            raise UserError(message)
        return read_table(found, header=not isinstance(self._image_column, int))

    def _scanned(self) -> Table:
        """A table made of paths."""
        pictures = scan_pictures(self._folder)
        rows = np.arange(1, len(pictures) + 1)
        if self._pattern is None:
            names = [PurePosixPath(picture).parent.name for picture in pictures]
            if "" in names:
                stray = pictures[names.index("")]
                raise UserError(f"{self._folder}: {stray} is in no folder named by a number (data.targets=folder)")
            return Table(self._folder, {"image": pictures, "target": names}, rows, unit="")
        try:
            pattern = re.compile(self._pattern)
        except re.error as error:
            raise UserError(f"data.source.pattern={self._pattern}: no regular expression ({error})") from None
        if not pattern.groups:
            raise UserError(f"data.source.pattern={self._pattern} has no group: put the number in (…)")
        matches = [pattern.search(picture) for picture in pictures]
        strangers = [picture for picture, match in zip(pictures, matches, strict=True) if match is None]
        if strangers:
            raise UserError(
                f"{self._folder}: {len(strangers):,} of {len(pictures):,} pictures do not fit data.source.pattern="
                f"{self._pattern}, as {strangers[0]}"
            )
        columns: dict[str, list[Any]] = {"image": pictures}
        named = {number: name for name, number in pattern.groupindex.items()}
        unnamed = pattern.groups - len(named)
        for number in range(1, pattern.groups + 1):
            name = named.get(number, "target" if unnamed == 1 else f"target_{number}")
            columns[name] = [match[number] for match in matches if match is not None]
        return Table(self._folder, columns, rows, unit="")

    def _opened(self, tables: dict[str, Table]) -> tuple[TargetTable, PictureFiles]:
        names: list[str] = []
        cells: list[str] = []
        targets, split, groups, wanted = [], [], [], self._target_columns
        for role, table in tables.items():
            image = self._image(table)
            others = {"split_column": self._split_column, "group_column": self._group_column}
            found = {key: table.column(name, f"data.source.{key}") for key, name in others.items() if name is not None}
            names = find_targets(table, wanted, (image, *found.values()))
            wanted = wanted or names  # the other tables have the same columns
            cells += table.texts(image)
            targets.append(np.stack([table.numbers(name) for name in names], axis=1))
            split.append(self._split(table, role, found.get("split_column")))
            groups += table.texts(found["group_column"]) if "group_column" in found else []
        paths, missing = (cells, {}) if self._is_scan() else Locator(self._folder).locate(cells)
        rows = _rows(list(tables.values()))
        if len(missing) == len(cells):
            raise UserError(
                f"none of the {len(cells):,} pictures is there, as {cells[0]!r} ({rows.words(0)}): looked in "
                f"{self._folder} and {self._folder / 'images'}; set data.dir to the folder that the names start from"
            )
        reader = PictureFiles(
            self._folder, paths, bits=self._bits, alpha=self._alpha, rows=None if self._is_scan() else rows,
            missing=missing, cache_dir=self._cache_dir,
        )  # fmt: skip
        explicit = np.concatenate(split) if self._split_column is not None or len(tables) > 1 else None
        if explicit is not None:
            _warn_of_leaks(paths, explicit)
        _warn_of_contradictions(paths, np.concatenate(targets), rows)
        return TargetTable(tuple(names), np.concatenate(targets), explicit, _grouped(groups or paths)), reader

    def _is_scan(self) -> bool:
        return self._tables["train"] in ("folder", "name")

    def _image(self, table: Table) -> str:
        key = "data.source.image_column"
        if self._image_column is not None:
            return table.column(self._image_column, key)
        known = {column.strip().casefold(): column for column in reversed(list(table.columns))}
        found = next((known[name] for name in _IMAGE_NAMES if name in known), None)
        if found is None:
            raise UserError(f"{table.path}: which column holds the file names? It has {table.names()}; set {key}=…")
        return found

    def _split(self, table: Table, role: str, column: str | None) -> NDArray[np.int8]:
        if column is None:
            unused = next((name for name in table.columns if name.strip().casefold() == "split"), None)
            if unused is not None and len(self._tables) == 1:
                log.warning("%s: its column %r is not used; data.source.split_column=%s", table.path, unused, unused)
            return np.full(len(table), SPLITS.index(role), dtype=np.int8)
        words = table.texts(column)
        for row, word in enumerate(words):
            if word.casefold() not in _SPLIT_NAMES:
                raise UserError(f"{table.place(row, column)}: {word!r} is none of {', '.join(_SPLIT_NAMES)}")
        return np.array([SPLITS.index(_SPLIT_NAMES[word.casefold()]) for word in words], dtype=np.int8)


def _rows(tables: list[Table]) -> Rows:
    return Rows(
        tuple(table.path.name for table in tables),
        np.repeat(np.arange(len(tables), dtype=np.uint8), [len(table) for table in tables]),
        np.concatenate([table.rows for table in tables]),
        tuple(table.unit for table in tables),
    )


def _grouped(names: Sequence[str]) -> NDArray[np.int64] | None:
    """A number for each name, in the order of first appearance; None when all names differ."""
    numbers: dict[str, int] = {}
    groups = np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), np.int64, len(names))
    return groups if len(numbers) < len(names) else None


def _warn_of_contradictions(paths: Sequence[str], targets: NDArray[np.float64], rows: Rows) -> None:
    """One picture cannot have two targets."""
    first: dict[str, int] = {}
    for number, path in enumerate(paths):
        earlier = first.setdefault(path, number)
        if (targets[earlier] != targets[number]).any():
            log.warning(
                "%s has different targets in %s and in %s; both rows are used (there may be more such pictures)",
                path, rows.words(earlier), rows.words(number),
            )  # fmt: skip
            return


def _warn_of_leaks(paths: Sequence[str], split: NDArray[np.int8]) -> None:
    """The same picture in two splits flatters the model."""
    first: dict[str, int] = {}
    shared = [path for path, place in zip(paths, split.tolist(), strict=True) if first.setdefault(path, place) != place]
    if shared:
        log.warning("pictures in more than one split: %s, as %s", f"{len(set(shared)):,}", shared[0])
