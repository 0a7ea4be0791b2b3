"""Which rows of a table train, and which become validation or test."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from hotloop.data.images.source import SPLITS, TargetTable
from hotloop.errors import UserError

log = logging.getLogger(__name__)

HOW = ("random", "ordered")
_TRAIN = SPLITS.index("train")


def divide(
    table: TargetTable, *, valid_size: float, test_size: float, how: str = "random", seed: int = 0
) -> NDArray[np.int8]:
    """(N,) the place in `SPLITS` of each row.

    Splits that the table has stay as they are; those that it has not are taken from its training rows. Rows of one
    group stay together, so that a split may be a little smaller than asked for (larger, if its groups are that large).

    Args:
        table: N rows.
        valid_size, test_size: a share of the training rows of `table` (a float below 1: at least one row) or a
            number of rows (an integer); 0 = no such split. Of no effect where the table has the split.
        how: random = by a hash of the row's number, or of its group: the same on every machine, and validation
            and test do not depend on each other's size. ordered = the last rows are for test, those before them
            for validation: for the frames of a video, whose neighbours look alike.
        seed: of the hash.

    Raises:
        UserError: sizes that make no sense or leave nothing to train on.
    """
    if how not in HOW:
        raise UserError(f"data.split must be {' or '.join(HOW)}, got {how!r}")
    split = np.zeros(len(table), dtype=np.int8) if table.split is None else table.split.astype(np.int8)
    rows = np.flatnonzero(split == _TRAIN)
    if not len(rows):
        raise UserError(f"none of the {len(table):,} rows is for training")
    sizes = {"test": test_size, "valid": valid_size}
    wanted = {
        name: _rows_wanted(size, len(rows), f"data.{name}_size")
        for name, size in sizes.items()
        if not (split == SPLITS.index(name)).any()
    }
    asked = {name: count for name, count in wanted.items() if count}
    # Units are divided: a group, or a row where there are no groups. They are numbered by their first rows.
    unit, counts = _units(table, rows)
    if len(counts) < len(asked) + 1 or sum(asked.values()) >= len(rows):
        raise UserError(_too_few(len(rows), len(counts), {name: sizes[name] for name in asked}))
    order = np.argsort(_hashes(len(counts), seed), kind="stable") if how == "random" else np.arange(len(counts))
    free = np.ones(len(counts), dtype=bool)
    for name, count in asked.items():
        backwards = name == "test" or how == "ordered"
        candidates = order[::-1] if backwards else order
        candidates = candidates[free[candidates]]
        chosen = candidates[_filled(counts[candidates], count, contiguous=how == "ordered")]
        free[chosen] = False
        split[rows[np.isin(unit, chosen)]] = SPLITS.index(name)
        found = int(counts[chosen].sum())
        if found != count:
            log.info("%s has %s rows instead of %s: groups stay together", name, f"{found:,}", f"{count:,}")
    if not free.any():
        raise UserError(_too_few(len(rows), len(counts), {name: sizes[name] for name in asked}))
    return split


def _rows_wanted(size: float, count: int, key: str) -> int:
    number = not isinstance(size, bool) and isinstance(size, (int, float))
    if not number or not size >= 0 or (isinstance(size, float) and size >= 1):
        raise UserError(f"{key} must be a share from 0 to 1 (0.1) or a whole number of rows, got {size!r}")
    if isinstance(size, int):
        return size
    return max(1, round(size * count)) if size else 0


def _units(table: TargetTable, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The unit of each of `rows`, and the rows of each unit."""
    if table.groups is None:
        return np.arange(len(rows)), np.ones(len(rows), dtype=np.int64)
    _, first, inverse, counts = np.unique(
        table.groups[rows], return_index=True, return_inverse=True, return_counts=True
    )
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[inverse.reshape(-1)], counts[np.argsort(first)]


def _filled(counts: NDArray[np.int64], size: int, *, contiguous: bool) -> NDArray[np.int64]:
    """Positions of the first entries whose counts add up to `size` as nearly as can be, and of one at least.

    An entry that does not fit is passed over, unless the entries have to follow on one another.
    """
    if contiguous:
        sums = np.cumsum(counts)
        return np.arange(int(np.argmin(np.abs(sums - size))) + 1)
    chosen, room = [], size
    for position, count in enumerate(counts.tolist()):
        if count <= room:
            chosen.append(position)
            room -= count
        if room == 0:
            break
    return np.array(chosen if chosen else [np.argmin(counts)], dtype=np.int64)


def _hashes(count: int, seed: int) -> NDArray[np.uint64]:
    """(count,) 64 well-mixed bits of each number and the seed (splitmix64: Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        start = np.uint64(seed % 2**64) * np.uint64(0xD1B54A32D192ED03)
        mixed = (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + start
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def _too_few(rows: int, units: int, sizes: dict[str, float]) -> str:
    wanted = " and ".join(f"data.{name}_size={size}" for name, size in sorted(sizes.items(), reverse=True))
    groups = f" in {units:,} group{'s' if units > 1 else ''}, which stay together," if units < rows else ""
    return (
        f"{rows:,} training rows{groups} are too few to split off {wanted}: nothing would be left to train on; lower "
        "these (0 = no such split)"
    )
