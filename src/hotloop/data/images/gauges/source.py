"""The source of `data=gauges`: a table of readings, and a reader that draws."""

from __future__ import annotations

import numpy as np
import PIL
from numpy.typing import NDArray

from hotloop.data.images.gauges.chance import Chance, keys, uniform
from hotloop.data.images.gauges.design import design
from hotloop.data.images.gauges.photograph import photograph, shot
from hotloop.data.images.source import SPLITS, TargetTable
from hotloop.errors import UserError

VERSION = 1  # of the pictures: raise it with every change that shows in a pixel
STRENGTH = {"easy": 0.4, "normal": 1.0, "hard": 1.5}  # of tilt, light, blur, noise and reflections
_RANGES = {
    "count": (1, 10_000_000),
    "valid": (0, 1_000_000),
    "test": (0, 1_000_000),
    "size": (16, 2048),
    "seed": (0, 2**31 - 1),
}


class GaugeReader:
    """Draws picture `number` when it is asked for; a few milliseconds at 96 pixels.

    Args:
        sizes: number of pictures of each split, in the order of `SPLITS`.
        size: side in pixels.
        seed: another seed gives other pictures.
        difficulty: a key of `STRENGTH`.
    """

    bits = 8

    def __init__(self, *, sizes: tuple[int, ...], size: int, seed: int, difficulty: str) -> None:
        self.sizes, self.size, self.seed, self.difficulty = sizes, size, seed, difficulty
        # A picture's key depends on its place in its split alone: more training pictures leave the others as they were.
        self.keys: NDArray[np.uint64] = np.concatenate([keys(seed, place, count) for place, count in enumerate(sizes)])
        self.shares = uniform(self.keys)  # readings as shares of full scale

    def __len__(self) -> int:
        return len(self.keys)

    def read(self, number: int, at_least: tuple[int, int] | None = None) -> NDArray[np.uint8]:
        """(size, size, 3) picture; always whole, whatever `at_least` says. The same gauge at every size."""
        chance = Chance(int(self.keys[number]))
        gauge = design(chance)
        return photograph(
            gauge, float(self.shares[number]), shot(chance, strength=STRENGTH[self.difficulty]), self.size
        )

    def name(self, number: int) -> str:
        place = 0
        while number >= self.sizes[place]:
            number -= self.sizes[place]
            place += 1
        return f"{SPLITS[place]} gauge {number} (seed {self.seed})"

    def fingerprint(self) -> str:
        pictures = ",".join(str(count) for count in self.sizes)
        # Pillow draws the lines and holds the font.
        return f"gauges {VERSION} {pictures} {self.size} {self.seed} {self.difficulty} pillow {PIL.__version__}"


class Gauges:
    """Pictures of dial gauges (manometers, thermometers, speedometers, panel meters); the target is the reading.

    The reading is in percent of full scale: 0 with the needle at the low end of the scale and 100 at the high end,
    whatever numbers the dial shows, and uniform between them. A scale begins and ends at other angles on other gauges,
    so that the needle's angle alone does not tell it. Picture i of a split depends on `seed`, i, `size` and
    `difficulty` alone, and the gauge and its reading not on `size`.

    Args:
        count: training pictures, 1 to 10,000,000; they take memory only where they are cached.
        valid: validation pictures, 0 to 1,000,000.
        test: test pictures, 0 to 1,000,000.
        size: side in pixels, 16 to 2048.
        seed: another seed gives other pictures.
        difficulty: easy | normal | hard: how much the camera tilts, blurs and adds noise, how uneven the light is.

    Raises:
        UserError: a number is out of range, or there is no such difficulty.
    """

    def __init__(
        self,
        *,
        count: int = 6000,
        valid: int = 500,
        test: int = 500,
        size: int = 96,
        seed: int = 1,
        difficulty: str = "normal",
    ) -> None:
        for key, value in {"count": count, "valid": valid, "test": test, "size": size, "seed": seed}.items():
            low, high = _RANGES[key]
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise UserError(f"data.source.{key}={value!r}: must be a whole number from {low:,} to {high:,}")
        if difficulty not in STRENGTH:
            raise UserError(f"data.source.difficulty={difficulty!r}: must be one of {', '.join(STRENGTH)}")
        self.sizes, self.size, self.seed, self.difficulty = (count, valid, test), size, seed, difficulty

    def open(self) -> tuple[TargetTable, GaugeReader]:
        """The readings and the reader; nothing is drawn yet."""
        reader = GaugeReader(sizes=self.sizes, size=self.size, seed=self.seed, difficulty=self.difficulty)
        table = TargetTable(
            names=("reading",),
            targets=100 * reader.shares[:, None],
            split=np.repeat(np.arange(len(SPLITS), dtype=np.int8), self.sizes),
        )
        return table, reader
