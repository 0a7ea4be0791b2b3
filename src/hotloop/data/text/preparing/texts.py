"""The text files of a build, a sentence a line, and the hashes that tell its pairs apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import compress
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

SIDES = ("source", "target")


class Texts:
    """Files in `folder`, by split ("all" before pairs have their place) and side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, split: str, side: str) -> Path:
        """The lines of one side."""
        return self.folder / f"{split}.{side}.txt"

    def paths(self, split: str) -> list[Path]:
        """The lines of both sides."""
        return [self.path(split, side) for side in SIDES]

    def hashes(self, split: str) -> list[Path]:
        """Eight bytes a line: of the source, and of the pair."""
        return [self.folder / f"{split}.{what}.hash" for what in ("source", "pair")]

    def select(self, which: NDArray[np.bool_], *, to: str) -> None:
        """Copy the lines of the split "all" for which `which` is true."""
        for side in SIDES:
            with open(self.path("all", side), "rb") as lines, open(self.path(to, side), "wb") as file:
                file.writelines(compress(lines, which.tolist()))

    def count(self, split: str) -> int:
        """Lines of a side."""
        with open(self.path(split, "source"), "rb") as file:
            return sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 20), b""))

    def lines(self, split: str, side: str, *, every: int = 1) -> Iterator[str]:
        """Each `every`-th line, from the first on."""
        with open(self.path(split, side), "rb") as file:
            for number, line in enumerate(file):
                if number % every == 0:
                    yield line[:-1].decode("utf-8")

    def pairs(self, split: str) -> Iterator[tuple[bytes, bytes]]:
        """Both lines of each pair, with their line ends."""
        with open(self.path(split, "source"), "rb") as source, open(self.path(split, "target"), "rb") as target:
            yield from zip(source, target, strict=True)


class _Flushes(Protocol):
    def flush(self) -> None: ...


@contextmanager
def appending(paths: Iterable[Path]) -> Iterator[list[BinaryIO]]:
    """The files, open to write behind what they hold."""
    with ExitStack() as stack:
        yield [stack.enter_context(open(path, "ab")) for path in paths]


def flush(outputs: Iterable[_Flushes]) -> None:
    """Hand everything that was written to the system, which keeps it when this process is killed."""
    for output in outputs:
        output.flush()
