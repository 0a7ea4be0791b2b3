"""Where pictures and their targets come from: what every source gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class TargetTable:
    """One row a picture, in the order of the reader's numbers.

    Attributes:
        names: of the T targets.
        targets: (N, T) float64, in the user's units.
        split: (N,) int8, the place in `SPLITS` of each row; None = the data module divides the rows.
        groups: (N,) int64; rows of one number stay in one split when the data module divides; None = each alone.
    """

    names: tuple[str, ...]
    targets: NDArray[np.float64]
    split: NDArray[np.int8] | None = None
    groups: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.targets)


class PictureReader(Protocol):
    """Decoded pictures by number. Loader workers hold one each: arrays, not a Python object a picture."""

    bits: int  # 8 or 16 a channel, the same for all pictures

    def __len__(self) -> int: ...

    def read(self, number: int, at_least: tuple[int, int] | None = None) -> NDArray[np.uint8] | NDArray[np.uint16]:
        """Picture `number` upright, RGB: (H, W, 3), uint8 or uint16 as `bits` says.

        Args:
            number: from 0 to len - 1.
            at_least: (height, width): a picture may come reduced, but neither side below these, where that
                is faster. The result depends on the picture and `at_least` alone.

        Raises:
            UserError: names the picture (see `name`) and what is wrong with it.
        """
        ...

    def name(self, number: int) -> str:
        """The picture in words that let a user find it: the file relative to its folder."""
        ...

    def fingerprint(self) -> str:
        """A text that changes whenever any picture's content changes, and not with dates or places."""
        ...


class ImageSource(Protocol):
    """A set of pictures with their targets."""

    def open(self) -> tuple[TargetTable, PictureReader]:
        """Find the pictures and their targets; cheap for what was already found. Raises UserError."""
        ...
