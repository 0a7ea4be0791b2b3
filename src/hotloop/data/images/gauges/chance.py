"""Numbers that depend on a key alone: the same on every machine and in any order of asking."""

import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
_MASK = 2**64 - 1


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014, fig. 16): every bit depends on every bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def keys(seed: int, stream: int, count: int) -> NDArray[np.uint64]:
    """(count,) keys; key i depends on `seed`, `stream` and i, not on `count`."""
    start = _mixed(np.array([(seed * 1024 + stream + 1) * 0x9E3779B97F4A7C15 & _MASK], dtype=np.uint64))
    return _mixed(start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))


def uniform(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers from 0 to below 1, one a key."""
    return (_mixed(keys) >> np.uint64(11)) * 2.0**-53


class Chance:
    """Choices from one key. Built on `random.Random.random`, whose numbers Python promises to keep."""

    def __init__(self, key: int) -> None:
        self._next = random.Random(key).random

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self._next()

    def about(self, limit: float) -> float:
        """From -limit to limit, the middle three times as likely as the ends."""
        return limit * (self._next() + self._next() + self._next() - 1.5) / 1.5

    def often(self, share: float) -> bool:
        return self._next() < share

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._next() * len(options))]

    def whole(self, limit: int) -> int:
        """From 0 to limit - 1."""
        return int(self._next() * limit)
