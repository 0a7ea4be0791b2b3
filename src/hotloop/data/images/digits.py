"""The source of `data=digits`: scikit-learn's handwritten digits, turned by a known angle."""

from __future__ import annotations

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from hotloop.data.images.source import SPLITS, TargetTable
from hotloop.errors import UserError

VERSION = 1  # of the pictures: raise it with every change that shows in a pixel
_DIGITS = 1797
_RANGES = {
    "copies": (1, 1000),
    "valid": (0, 800),
    "test": (0, 800),
    "size": (8, 512),
    "seed": (0, 2**31 - 1),
}


def _digits() -> NDArray[np.uint8]:
    """(1797, 10, 10) strokes, 0 to 255, in a margin of one pixel: their frame, cut sharp, would tell the angle.

    From Alpaydin and Kaynak 1998, UCI Optical Recognition of Handwritten Digits.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise UserError("data=digits needs scikit-learn: pip install 'hotloop[digits]'") from error
    return np.pad(np.round(load_digits().images * (255 / 16)).astype(np.uint8), ((0, 0), (1, 1), (1, 1)))


class DigitReader:
    """Turns digit `number` when it is asked for.

    Args:
        digits: (D, 10, 10) strokes.
        which: (N,) digit of each picture.
        angles: (N,) degrees, clockwise.
        size: side in pixels.
        label: what the pictures depend on, in words.
    """

    bits = 8

    def __init__(
        self, *, digits: NDArray[np.uint8], which: NDArray[np.int64], angles: NDArray[np.float64], size: int, label: str
    ) -> None:
        self.digits, self.which, self.angles, self.size, self.label = digits, which, angles, size, label

    def __len__(self) -> int:
        return len(self.which)

    def read(self, number: int, at_least: tuple[int, int] | None = None) -> NDArray[np.uint8]:
        """(size, size, 3) picture, light strokes on black; always whole, whatever `at_least` says."""
        work = max(2 * self.size, 32)  # turned at a higher resolution and halved: smooth strokes
        digit = Image.fromarray(self.digits[self.which[number]])
        inner = round(work * 0.9)  # with the margin; strokes stay in the picture at every angle
        canvas = Image.new("L", (work, work))
        canvas.paste(digit.resize((inner, inner), Image.Resampling.BICUBIC), ((work - inner) // 2,) * 2)
        turned = canvas.rotate(-float(self.angles[number]), Image.Resampling.BILINEAR)  # Pillow turns the other way
        grey = np.asarray(turned.resize((self.size, self.size), Image.Resampling.BOX))
        return np.repeat(grey[:, :, None], 3, axis=2)

    def name(self, number: int) -> str:
        return f"digit {self.which[number]} turned by {self.angles[number]:.1f} degrees"

    def fingerprint(self) -> str:
        return f"digits {VERSION} {self.label} pillow {PIL.__version__}"


class Digits:
    """1,797 handwritten digits of 8×8 pixels, enlarged, each turned by angles of its own; the target is the angle.

    For runs of seconds. The angle is uniform from -max_angle to max_angle, in degrees clockwise. A digit is in one
    split only, with all its copies. Hands differ in their slant, and a 0 or a 1 tells little more than that, so that
    no model gets near zero error: `model=inception` is off by 2.2 degrees on average after 6 epochs and by 1.6 after
    20, predicting the mean by 22.

    Args:
        copies: pictures of each digit, 1 to 1000, each at another angle.
        valid: digits of the validation split, 0 to 800.
        test: digits of the test split, 0 to 800; the others are for training.
        size: side in pixels, 8 to 512.
        max_angle: largest angle in degrees, above 0 to 180.
        seed: another seed divides the digits otherwise and turns them by other angles.

    Raises:
        UserError: a number is out of range; from `open`, scikit-learn is not installed.
    """

    def __init__(
        self,
        *,
        copies: int = 1,
        valid: int = 200,
        test: int = 200,
        size: int = 32,
        max_angle: float = 45.0,
        seed: int = 1,
    ) -> None:
        for key, value in {"copies": copies, "valid": valid, "test": test, "size": size, "seed": seed}.items():
            low, high = _RANGES[key]
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise UserError(f"data.source.{key}={value!r}: must be a whole number from {low:,} to {high:,}")
        if isinstance(max_angle, bool) or not isinstance(max_angle, int | float) or not 0 < max_angle <= 180:
            raise UserError(f"data.source.max_angle={max_angle!r}: must be a number of degrees above 0, up to 180")
        self.copies, self.valid, self.test, self.size, self.seed = copies, valid, test, size, seed
        self.max_angle = float(max_angle)

    def open(self) -> tuple[TargetTable, DigitReader]:
        """The angles and the reader; nothing is turned yet."""
        digits = _digits()
        # Of numpy's legacy generator, whose numbers never change.
        random = np.random.RandomState(self.seed)
        order = random.permutation(_DIGITS)
        sizes = (_DIGITS - self.valid - self.test, self.valid, self.test)
        split = np.repeat(np.arange(len(SPLITS), dtype=np.int8), [count * self.copies for count in sizes])
        which = np.repeat(order, self.copies)
        angles = random.uniform(-self.max_angle, self.max_angle, size=len(which))
        label = f"{self.copies} {self.valid} {self.test} {self.size} {self.max_angle} {self.seed}"
        table = TargetTable(names=("angle",), targets=angles[:, None], split=split, groups=which)
        return table, DigitReader(digits=digits, which=which, angles=angles, size=self.size, label=label)
