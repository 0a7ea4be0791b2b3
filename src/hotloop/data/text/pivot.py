"""Make a corpus of two languages from two that share a third one, the pivot: de-en and fr-en give de-fr."""

import hashlib
import logging
import mmap
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hotloop.data.text.readers import BitextFiles, read_pairs
from hotloop.errors import UserError

logger = logging.getLogger(__name__)


def join_on_pivot(first: BitextFiles, second: BitextFiles, first_out: Path, second_out: Path) -> int:
    """Write the source sides of two corpora whose target (pivot) lines are identical; returns their number.

    The pairs keep the order of `first`. A pivot line is used if it is not blank and occurs exactly once in
    each corpus; a repeated one ("The debate is closed.") does not tell which of its translations belong
    together, so all its pairs are dropped. What is dropped is counted in the log. Lines are compared by
    8-byte BLAKE2b hashes: for two corpora of two million lines there is less than one chance in a million of
    a wrong pair, and memory stays near 0.5 GB, most of it a mapped file that the system may take back.

    The files are written in place, with a scratch file beside `second_out`: give them a folder of their own.

    Raises:
        UserError: unequal line counts, bad encoding, no common pivot line, full disk.
    """
    first_hash, second_hash = _pivot_hashes(first), _pivot_hashes(second)
    first_unique, second_unique = _rows_occurring_once(first_hash), _rows_occurring_once(second_hash)
    _, at, bt = np.intersect1d(
        first_hash[first_unique], second_hash[second_unique], assume_unique=True, return_indices=True
    )
    first_rows, second_rows = first_unique[at], second_unique[bt]
    if len(first_rows) == 0:
        raise UserError(f"{first.target} and {second.target} have no line in common: nothing to join")
    order = np.argsort(first_rows)
    first_rows, second_rows = first_rows[order], second_rows[order]

    picked = second_out.with_name(f"{second_out.name}.picked")
    try:
        starts = _write_rows(second, np.sort(second_rows), picked)
        _write_rows(first, first_rows, first_out)
        # `picked` is in the order of `second`; now its lines are put in the order of `first`.
        places = np.argsort(np.argsort(second_rows))
        with (
            picked.open("rb") as file,
            second_out.open("wb") as out,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as lines,
        ):
            for place in places:
                out.write(lines[starts[place] : starts[place + 1]])
        picked.unlink()
    except OSError as error:
        raise UserError(f"cannot write {first_out} and {second_out}: {error}") from error
    logger.info(
        "%s: %d pairs joined; dropped: %d of %d and %d of %d lines blank or repeated, %d and %d unmatched",
        first_out.name.removesuffix(first_out.suffix),
        len(first_rows),
        len(first_hash) - len(first_unique),
        len(first_hash),
        len(second_hash) - len(second_unique),
        len(second_hash),
        len(first_unique) - len(first_rows),
        len(second_unique) - len(second_rows),
    )
    return len(first_rows)


_BLANK = 0  # stands for a blank line; a real line hashes to it once in 2**64


def _pivot_hashes(files: BitextFiles) -> npt.NDArray[np.uint64]:
    """Hash of each target line, `(N,)`; blank lines hash to `_BLANK`."""

    def hashes():
        for _, pivot in read_pairs(files):
            line = pivot.strip().encode()
            yield int.from_bytes(hashlib.blake2b(line, digest_size=8).digest(), "big") if line else _BLANK

    return np.fromiter(hashes(), dtype=np.uint64)


def _rows_occurring_once(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Ascending row numbers of the hashes that occur once and are not blank."""
    values, rows, counts = np.unique(hashes, return_index=True, return_counts=True)
    return np.sort(rows[(counts == 1) & (values != _BLANK)]).astype(np.int64)


def _write_rows(files: BitextFiles, rows: npt.NDArray[np.int64], path: Path) -> npt.NDArray[np.int64]:
    """Write the source lines of these ascending rows; returns where each line starts and the end, `(rows +
    1,)`."""
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    wanted = 0
    with path.open("wb") as out:
        for row, (source, _) in enumerate(read_pairs(files)):
            if wanted == len(rows):
                break
            if row == rows[wanted]:
                line = source.encode() + b"\n"
                out.write(line)
                wanted += 1
                starts[wanted] = starts[wanted - 1] + len(line)
    return starts
