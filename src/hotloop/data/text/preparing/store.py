"""Token arrays on disk: one flat array and the offset of each row, mapped into memory and shared by all.

Two million pairs are 2 files of some 100 MB a side; ranks, workers and a second run read the same pages.
A Python list per sentence would cost twenty times as much and grow in every forked worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.vocabulary import PAD


class TokenRows:
    """Rows of ids of different lengths. What was opened from disk travels to a worker as a path."""

    def __init__(self, tokens: NDArray[Any], offsets: NDArray[np.int64], *, stem: Path | None = None) -> None:
        self._tokens, self._offsets, self._stem = tokens, offsets, stem

    @classmethod
    def open(cls, stem: Path) -> TokenRows:
        """Map the arrays that `TokenWriter(stem)` wrote."""
        tokens, offsets = (np.load(f"{stem}.{name}.npy", mmap_mode="r") for name in ("tokens", "offsets"))
        # A plain view of the map: the class np.memmap makes each small slice several times slower.
        return cls(np.asarray(tokens), np.asarray(offsets), stem=stem)

    @classmethod
    def from_lists(cls, rows: Iterable[Sequence[int]]) -> TokenRows:
        """Rows in memory."""
        lists = [np.asarray(row, dtype=np.int64) for row in rows]
        offsets = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in lists], out=offsets[1:])
        return cls(np.concatenate(lists) if lists else np.zeros(0, dtype=np.int64), offsets)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __reduce__(self) -> tuple[Any, ...]:
        if self._stem is not None:
            return TokenRows.open, (self._stem,)
        return TokenRows, (self._tokens, self._offsets)

    @property
    def lengths(self) -> NDArray[np.int32]:
        """(N,) ids in each row."""
        return np.diff(self._offsets).astype(np.int32)

    def gather(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows (B, L) with PAD behind, and their lengths (B,), for the row numbers `ids` (B,)."""
        starts = self._offsets[ids]
        lengths = self._offsets[ids + 1] - starts
        column = np.arange(lengths.max(initial=0))
        real = column < lengths[:, None]
        rows = np.full(real.shape, PAD, dtype=np.int64)
        rows[real] = self._tokens[(starts[:, None] + column)[real]]
        return rows, lengths


class TokenWriter:
    """Appends rows to `stem`.tokens.npy and `stem`.offsets.npy, after those that are there if `append`."""

    def __init__(self, stem: Path, *, vocabulary_size: int, append: bool = False) -> None:
        self.paths = [Path(f"{stem}.{name}.npy") for name in ("tokens", "offsets")]
        self._tokens = _ArrayWriter(self.paths[0], token_type(vocabulary_size), append=append)
        self._offsets = _ArrayWriter(self.paths[1], np.int64, append=append)
        self._end = self._tokens.count
        if self._offsets.count == 0:
            self._offsets.append(np.zeros(1, dtype=np.int64))

    def append(self, tokens: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        """Add `len(lengths)` rows that lie end to end in `tokens`."""
        ends = self._end + np.cumsum(lengths, dtype=np.int64)
        self._tokens.append(tokens)
        self._offsets.append(ends)
        self._end += len(tokens)

    def flush(self) -> None:
        """Hand all rows to the system; a writer that appends finds them there."""
        self._tokens.flush()
        self._offsets.flush()

    def close(self) -> None:
        """Complete both files."""
        self._tokens.close()
        self._offsets.close()


def token_type(vocabulary_size: int) -> type[np.uint16] | type[np.uint32]:
    """The smallest integer that holds every id."""
    return np.uint16 if vocabulary_size <= 1 << 16 else np.uint32


class _ArrayWriter:
    """A one-dimensional .npy file that grows; numpy leaves room in the header for the final length."""

    def __init__(self, path: Path, dtype: type, *, append: bool) -> None:
        self._dtype, self.count = np.dtype(dtype), 0
        known = append and path.exists() and path.stat().st_size > 0
        self._file = open(path, "rb+" if known else "wb")  # noqa: SIM115 - closed in close()
        self._write_header()
        if known:
            values, rest = divmod(self._file.seek(0, os.SEEK_END) - self._header_size, self._dtype.itemsize)
            if values < 0 or rest:
                raise ValueError(f"{path} holds no whole number of {self._dtype} values")
            self.count = values

    def append(self, values: NDArray[Any]) -> None:
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).tobytes())
        self.count += len(values)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self._file, {**header, "shape": (self.count,)})
        self._header_size = self._file.tell()
