"""Which training pairs are left out, and how many for which reason. Validation and test keep every line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hotloop.errors import UserError

# Reasons in the order in which they are tried: a pair counts for the first that holds.
REASONS = {
    "empty": "empty",
    "short": "too short",
    "long": "too long",
    "ratio": "lengths too different",
    "identical": "both sides identical",
    "duplicate": "duplicate",
    "leak": "source also in valid or test",
}


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Limits for training pairs; lengths are words (stretches between white space) of either side."""

    min_length: int = 1
    max_length: int | None = 100
    max_ratio: float | None = None  # longer side over shorter side, in words
    duplicates: str = "drop"  # exactly the same pair again
    identical: str = "keep"  # both sides the same text
    leaks: str = "drop"  # source sentence that is also in valid or test

    def __post_init__(self) -> None:
        _check_length("min_length", self.min_length)
        if self.max_length is not None:
            _check_length("max_length", self.max_length)
            if self.max_length < self.min_length:
                raise UserError(
                    f"data.filters.max_length {self.max_length} is below data.filters.min_length {self.min_length}"
                )
        ratio = self.max_ratio
        if ratio is not None and (isinstance(ratio, bool) or not isinstance(ratio, int | float) or not ratio >= 1):
            raise UserError(f"data.filters.max_ratio must be at least 1, or null for no limit, got {ratio!r}")
        for name in ("duplicates", "identical", "leaks"):
            if getattr(self, name) not in ("drop", "keep"):
                raise UserError(f"data.filters.{name} must be drop or keep, got {getattr(self, name)!r}")

    def reason(self, source: str, target: str) -> str | None:
        """Why the normalised pair is dropped on its own account (a key of REASONS), or None."""
        if not source or not target:
            return "empty"
        shorter, longer = sorted((source.count(" ") + 1, target.count(" ") + 1))
        if shorter < self.min_length:
            return "short"
        if self.max_length is not None and longer > self.max_length:
            return "long"
        if self.max_ratio is not None and longer > self.max_ratio * shorter:
            return "ratio"
        if self.identical == "drop" and source == target:
            return "identical"
        return None


def describe_drops(dropped: Mapping[str, int], total: int) -> str:
    """One line for the log: "2 of 5 pairs dropped (empty)", "5 of 9 pairs dropped (empty 3, duplicate 2)"."""
    reasons = {REASONS[name]: dropped[name] for name in REASONS if dropped.get(name)}
    if not reasons:
        return f"0 of {total:,} pairs dropped"
    counts = ", ".join(f"{text} {count:,}" for text, count in reasons.items())
    why = next(iter(reasons)) if len(reasons) == 1 else counts
    return f"{sum(reasons.values()):,} of {total:,} pairs dropped ({why})"


def check_anything_left(dropped: Mapping[str, int], total: int, names: str) -> None:
    """Raise UserError when no training pair is left."""
    if total == 0:
        raise UserError(f"there are no training pairs in {names}")
    if sum(Counter(dropped).values()) == total:
        raise UserError(f"no training pairs are left of {names}: {describe_drops(dropped, total)}")


def _check_length(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"data.filters.{name} must be a whole number of words from 1 on, got {value!r}")
