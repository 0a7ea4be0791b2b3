"""Picture files by number: paths kept as one array of bytes, contents known by hashes."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotloop.data.images.inspecting import CONTENT, HEADER, PIXELS, Inspector
from hotloop.data.images.reading import ALPHAS, READING, Picture, PictureError, read_picture
from hotloop.errors import UserError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rows:
    """Where a table names each of N pictures."""

    tables: tuple[str, ...]  # file names
    table: NDArray[np.uint8]  # (N,) which of them
    row: NDArray[np.int64]  # (N,) counted from 1
    unit: tuple[str, ...]  # of each table: "line" or "row"

    def words(self, number: int) -> str:
        """For example "targets.csv, line 12"."""
        table = int(self.table[number])
        return f"{self.tables[table]}, {self.unit[table]} {self.row[number]}"

    def taken(self, keep: NDArray[np.int64]) -> Rows:
        """The rows `keep`, in that order."""
        return Rows(self.tables, self.table[keep], self.row[keep], self.unit)


class PictureFiles:
    """Pictures in files, decoded whenever they are asked for.

    Args:
        folder: paths are relative to it.
        paths: one a picture, with "/"; the same file may come several times. Absolute ones stay so.
        bits: auto | 8 | 16 a channel; auto = 16 if any of the files has 16.
        alpha: see `read_picture`.
        rows: where the pictures are named, for messages.
        missing: pictures without a file, and why; their paths are what the table says.
        cache_dir: keeps what was found out of the files; None = it is found out again in each run.
    """

    def __init__(
        self,
        folder: Path,
        paths: Sequence[str],
        *,
        bits: str | int = "auto",
        alpha: str = "white",
        rows: Rows | None = None,
        missing: Mapping[int, str] | None = None,
        cache_dir: Path | None = None,
    ) -> None:
        if bits not in ("auto", 8, 16):
            raise UserError(f"data.source.bits must be auto, 8 or 16, got {bits!r}")
        if alpha not in ALPHAS:
            raise UserError(f"data.source.alpha must be {', '.join(ALPHAS)}, got {alpha!r}")
        # Arrays only: a Python object a picture would be copied by every worker of a loader, bit by bit.
        numbers: dict[str, int] = {}
        self._file = np.fromiter((numbers.setdefault(path, len(numbers)) for path in paths), np.int64, len(paths))
        encoded = [os.fsencode(path) for path in numbers]
        self._ends = np.cumsum([len(path) for path in encoded], dtype=np.int64)
        self._text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        self._folder, self._rows, self.alpha = str(folder), rows, alpha
        self._missing = dict(missing or {})
        self._inspector = Inspector(len(encoded), self._path, folder, cache_dir)
        self.bits = int(bits) if bits != "auto" else self._deepest()

    def __len__(self) -> int:
        return len(self._file)

    def read(self, number: int, at_least: tuple[int, int] | None = None) -> Picture:
        """Picture `number` upright: (H, W, 3), uint8 or uint16; see `read_picture`. Raises UserError."""
        if number in self._missing:
            raise UserError(f"{self.place(number)}: {self._missing[number]}")
        try:
            path = self._path(int(self._file[number]))
            return read_picture(path, bits=self.bits, alpha=self.alpha, at_least=at_least)
        except PictureError as error:
            raise UserError(f"{self.place(number)}: {error.reason}") from error

    def name(self, number: int) -> str:
        """The file relative to its folder."""
        return os.fsdecode(self._relative(int(self._file[number]))).encode("utf-8", "replace").decode("utf-8")

    def place(self, number: int) -> str:
        """The file, and where a table names it: "photos/a.jpg (targets.csv, line 12)"."""
        return f"{self.name(number)} ({self._rows.words(number)})" if self._rows is not None else self.name(number)

    def fingerprint(self) -> str:
        """Changes with the bytes of any picture, their order, `bits` and `alpha`; not with dates and places."""
        self._inspector.learn(CONTENT, self._file, workers=None)
        digest = hashlib.blake2b(f"{READING}|{self.bits}|{self.alpha}|".encode(), digest_size=16)
        digest.update(self._inspector.facts.content[self._file].tobytes())
        return digest.hexdigest()

    def missing(self) -> dict[int, str]:
        """Every picture whose file was not found, by number: what `read` would say of it. Costs nothing."""
        return {number: f"{self.place(number)}: {reason}" for number, reason in self._missing.items()}

    def broken(
        self, *, decode: bool = True, at_least: tuple[int, int] | None = None, workers: int | None = None
    ) -> dict[int, str]:
        """Every picture that cannot be read, by number: what `read` would say of it. Remembered by content.

        Args:
            decode: decode each picture; False = look at the headers alone.
            at_least: as the pictures will be read.
            workers: processes; None = as many as pay.
        """
        self._inspector.learn(PIXELS if decode else HEADER, self._file, at_least=at_least, workers=workers)
        reasons = self._inspector.facts.broken
        bad = np.flatnonzero(np.isin(self._file, np.fromiter(reasons, np.int64, len(reasons))))
        found = {number: f"{self.place(number)}: {reasons[int(self._file[number])]}" for number in bad.tolist()}
        return dict(sorted((found | self.missing()).items()))

    def subset(self, keep: NDArray[np.int64]) -> PictureFiles:
        """The pictures `keep` (numbers), renumbered in that order; depth stays as it was."""
        taken = copy(self)
        taken._file = self._file[keep]
        taken._rows = self._rows.taken(keep) if self._rows is not None else None
        wanted = enumerate(keep.tolist())
        taken._missing = {new: self._missing[old] for new, old in wanted if old in self._missing}
        return taken

    def _deepest(self) -> int:
        self._inspector.learn(HEADER, self._file, workers=None)
        found = self._inspector.facts.bits[self._file]
        deep = int(np.count_nonzero(found == 16))
        if 0 < deep < np.count_nonzero(found):
            log.info("%s of %s pictures have 16 bits a channel: all are read as such", f"{deep:,}", f"{len(found):,}")
        return 16 if deep else 8

    def _relative(self, file: int) -> bytes:
        start = int(self._ends[file - 1]) if file else 0
        return self._text[start : self._ends[file]].tobytes()

    def _path(self, file: int) -> str:
        return os.path.join(self._folder, os.fsdecode(self._relative(file)))
