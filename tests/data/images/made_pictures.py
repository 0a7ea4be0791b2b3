"""A source of pictures that are drawn by chance when they are read, for tests of what comes after reading."""

from typing import Any

import numpy as np

from hotloop.data.images.source import TargetTable
from hotloop.errors import UserError


class MadeReader:
    """Picture `number` is the same in every process; those in `bad` cannot be read."""

    alpha = "white"

    def __init__(self, count: int, *, shape: tuple[int, int], bits: int, bad: tuple[int, ...], content: str) -> None:
        self.count, self.shape, self.bits, self.bad, self.content = count, shape, bits, bad, content
        self.reads: list[int] = []

    def __len__(self) -> int:
        return self.count

    def read(self, number: int, at_least: tuple[int, int] | None = None) -> np.ndarray:
        self.reads.append(number)
        if number in self.bad:
            raise UserError(f"{self.name(number)}: it is truncated")
        chance = np.random.default_rng([number, *self.content.encode()])
        return chance.integers(0, 2**self.bits, (*self.shape, 3)).astype(np.uint8 if self.bits == 8 else np.uint16)

    def name(self, number: int) -> str:
        return f"made {number}"

    def fingerprint(self) -> str:
        return f"{self.count} {self.shape} {self.bits} {self.bad} {self.content}"


class MadeSource:
    """`count` pictures whose targets are their numbers, or `targets`."""

    def __init__(
        self,
        count: int = 20,
        *,
        shape: tuple[int, int] = (12, 10),
        bits: int = 8,
        bad: tuple[int, ...] = (),
        content: str = "a",
        targets: np.ndarray | None = None,
        **table: Any,
    ) -> None:
        self.reader = MadeReader(count, shape=shape, bits=bits, bad=bad, content=content)
        values = np.arange(count, dtype=np.float64)[:, None] if targets is None else targets
        self.table = TargetTable(tuple(f"t{n}" for n in range(values.shape[1])), values, **table)

    def open(self) -> tuple[TargetTable, MadeReader]:
        return self.table, self.reader
