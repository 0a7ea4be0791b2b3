"""Which of the pairs in the training files train, and which become validation or test, decided by hashes alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hotloop.data.text.preparing.filters import Filters
from hotloop.errors import UserError

ROLES = {"dropped": 0, "train": 1, "valid": 2, "test": 3}


@dataclass(frozen=True)
class Roles:
    """The role of each pair that passed the filters on its own account."""

    role: NDArray[np.uint8]  # (pairs,) values of ROLES
    dropped: Counter[str]
    warnings: list[str] = field(default_factory=list)  # splits that hold fewer pairs than asked for

    def of(self, split: str) -> NDArray[np.bool_]:
        """(pairs,) which pairs belong to `split`."""
        return self.role == ROLES[split]

    def count(self, split: str) -> int:
        """Pairs in `split`."""
        return int(np.count_nonzero(self.of(split)))


def assign_roles(
    source_hash: NDArray[np.uint64],
    pair_hash: NDArray[np.uint64],
    *,
    held_out: NDArray[np.uint64],
    filters: Filters,
    off_training: Mapping[str, int],
) -> Roles:
    """Drop repeated pairs and sources in `held_out` (hashes of valid and test), then split off what is asked for.

    All pairs with one source sentence go to the same split. The choice follows the hash of the normalised source:
    it stays the same when the file is shuffled, and nearly the same when pairs are added.
    Raises UserError when no pair would be left to train on, or a split that is asked for would be empty.
    """
    role = np.full(len(source_hash), ROLES["train"], dtype=np.uint8)
    dropped: Counter[str] = Counter()

    def drop(reason: str, which: NDArray[np.bool_]) -> None:
        which = which & (role == ROLES["train"])
        dropped[reason] += int(np.count_nonzero(which))
        role[which] = ROLES["dropped"]

    if filters.duplicates == "drop":
        repeated = np.ones(len(pair_hash), dtype=bool)
        repeated[np.unique(pair_hash, return_index=True)[1]] = False
        drop("duplicate", repeated)
    if filters.leaks == "drop":
        drop("leak", np.isin(source_hash, held_out))

    available = int(np.count_nonzero(role == ROLES["train"]))
    for split, size in off_training.items():
        candidates, counts = np.unique(source_hash[role == ROLES["train"]], return_counts=True)
        if split == "test":  # from the other end: the two choices do not depend on each other's size
            candidates, counts = candidates[::-1], counts[::-1]
        chosen = candidates[_fill(counts, size)]
        role[np.isin(source_hash, chosen) & (role == ROLES["train"])] = ROLES[split]
    if available and not np.any(role == ROLES["train"]):
        wanted = ", ".join(f"data.{split}_size={size:,}" for split, size in off_training.items())
        raise UserError(
            f"{available:,} training pairs are too few to split off {wanted}: nothing would be left to train on; "
            "lower these numbers or give valid and test files"
        )
    roles = Roles(role, dropped)
    if not available:
        return roles
    for split, size in off_training.items():
        found = roles.count(split)
        if found == size:
            continue
        message = (
            f"{found:,} of the {size:,} pairs that data.{split}_size asks for could be split off the {available:,} "
            "training pairs: those with the same source stay together, and here too many have the same"
        )
        if not found:
            raise UserError(f"{message}; give {split} files, or data.{split}_size=0 for no {split} set")
        roles.warnings.append(message)
    return roles


def _fill(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Positions of the first entries whose counts add up to `size`; an entry that would not fit is passed over."""
    chosen, room = [], size
    for position, count in enumerate(counts.tolist()):
        if room == 0:
            break
        if count <= room:
            chosen.append(position)
            room -= count
    return np.array(chosen, dtype=np.int64)
