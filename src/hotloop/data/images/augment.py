"""Random changes of training pictures, made in the worker on whole numbers.

What happens to a picture depends on the seed, the epoch and the number of the sample alone: not on the worker, the
rank or the batch that it is in. Parameters are drawn for the whole batch at once. Pixels are changed picture by
picture, all colour changes in one pass: a picture and its intermediate results stay in the processor's cache, which is
faster than passes over the batch (224 × 224, one thread: cropping 0.15 ms a picture, colours 0.3 ms).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from torchvision.transforms.v2 import functional as vision

from hotloop.data.images.form import Pixels, pixels, planes, resized
from hotloop.data.loading import options_of
from hotloop.errors import UserError

_RATIO = 0.9  # a crop's proportions lie between this times those of the picture and the inverse
_ERASED = (0.02, 0.2)  # share of the area that is erased
_LUMA = np.array((0.299, 0.587, 0.114), dtype=np.float32)

# One column of random numbers for each parameter: switching one option on leaves the others as they were.
_DRAWS = (
    "area", "ratio", "top", "left", "down", "right", "horizontal", "vertical", "angle", "brightness", "contrast",
    "saturation", "hue", "noise", "erase", "erased", "erased_ratio", "erased_top", "erased_left",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AugmentOptions:
    """What may happen to a training picture; null or 0 = nothing.

    Attributes:
        crop: a part that holds between these two shares of the area, stretched to the whole; proportions within 10 %.
        shift: up to this share of each side, either way; the edge is repeated.
        horizontal_flip, vertical_flip: probability.
        flip_about: a horizontal flip mirrors the targets about this number, t → 2 · flip_about - t: 0 for steering from
            -1 to 1, 90 for degrees of which 90 is straight on. None = they stay.
        rotate: up to so many degrees either way; the edge is repeated.
        brightness, contrast, saturation: factor between 1 - this and 1 + this, as in torchvision's ColorJitter.
        hue: share of the colour circle (up to 0.5), either way; slow.
        noise: largest standard deviation of normal noise, as a share of white.
        erase: probability that a rectangle (2 to 20 % of the area) is replaced by the mean colour.
        extra: transforms of torchvision.transforms.v2, or functions, applied to each picture (C, H, W) at the end.
    """

    crop: Sequence[float] | None = None
    shift: float = 0.0
    horizontal_flip: float = 0.0
    vertical_flip: float = 0.0
    flip_about: float | None = None
    rotate: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    noise: float = 0.0
    erase: float = 0.0
    extra: Sequence[Callable[[Any], Any]] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> AugmentOptions:
        """From a mapping of the configuration. Raises UserError with the key."""
        defaults = {field.name: field.default for field in fields(cls)}
        nothing = {
            str(name)
            for name, value in (options or {}).items()
            if value is None or (value == 0 and name != "flip_about")
        }
        return options_of(cls, {**(options or {}), **{n: defaults[n] for n in nothing & set(defaults)}}, "data.augment")

    def __post_init__(self) -> None:
        if self.flip_about is not None and not _is_number(self.flip_about):
            raise UserError(f"data.augment.flip_about must be a number or null, got {self.flip_about!r}")
        for names, high in (
            (("shift", "horizontal_flip", "vertical_flip", "noise", "erase", "brightness", "contrast"), 1.0),
            (("saturation",), 1.0),
            (("hue",), 0.5),
            (("rotate",), 180.0),
        ):
            for name in names:
                value = getattr(self, name)
                if not _is_number(value) or not 0 <= value <= high:
                    raise UserError(f"data.augment.{name} must be a number from 0 to {high:g}, got {value!r}")
        if self.crop is not None:
            good = isinstance(self.crop, Sequence) and len(self.crop) == 2 and all(map(_is_number, self.crop))
            if not good or not 0 < self.crop[0] <= self.crop[1] <= 1:
                raise UserError(
                    f"data.augment.crop must be two shares of the area such as [0.8, 1.0], got {self.crop!r}"
                )
        if isinstance(self.extra, str) or not isinstance(self.extra, Sequence) or not all(map(callable, self.extra)):
            raise UserError("data.augment.extra must be a list of groups with _target_: torchvision.transforms.v2.…")

    @property
    def active(self) -> dict[str, Any]:
        """The options that do something."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen["extra"] = [getattr(item, "__name__", type(item).__name__) for item in self.extra]
        return {name: value for name, value in chosen.items() if value or (name == "flip_about" and value is not None)}


class Augmentation:
    """Changes a batch of training pictures.

    Args:
        options: what may happen.
        seed: see the module's text.
    """

    def __init__(self, options: AugmentOptions, *, seed: int) -> None:
        self._options, self._seed = options, seed

    def __call__(
        self, pictures: Pixels, targets: NDArray[np.float32], *, epoch: int, ids: NDArray[np.int64]
    ) -> tuple[Pixels, NDArray[np.float32]]:
        """Changed pictures (B, H, W, C) and targets (B, T).

        Args:
            pictures: (B, H, W, C); overwritten.
            targets: (B, T); overwritten.
            epoch: from 0.
            ids: (B,) numbers of the samples.

        Raises:
            UserError: one of `extra` gives another shape or type than it got.
        """
        chosen = self._options
        for row, chance in enumerate(chances(self._seed, epoch, ids)):
            picture = self._placed(pictures[row], chance)
            if chance.happens("horizontal", chosen.horizontal_flip):
                picture = mirrored(picture)
                if chosen.flip_about is not None:
                    targets[row] = 2 * chosen.flip_about - targets[row]
            if chance.happens("vertical", chosen.vertical_flip):
                picture = picture[::-1]
            picture = self._coloured(picture, chance)
            if chance.happens("erase", chosen.erase):
                picture = erased(picture, *(chance.of(name) for name in _DRAWS[-4:]))
            for number, transform in enumerate(chosen.extra):
                picture = _by_other(transform, picture, chance.key + number)
            pictures[row] = picture
        return pictures, targets

    def _placed(self, picture: Pixels, chance: Chance) -> Pixels:
        """Turned, shifted and cropped."""
        chosen, (height, width) = self._options, picture.shape[:2]
        if chosen.rotate:
            picture = rotated(picture, chance.between("angle", -chosen.rotate, chosen.rotate))
        if chosen.shift:
            down = round(chance.between("down", -chosen.shift, chosen.shift) * height)
            picture = shifted(picture, down, round(chance.between("right", -chosen.shift, chosen.shift) * width))
        if chosen.crop is not None:
            area = chance.between("area", *chosen.crop)
            ratio = math.exp(chance.between("ratio", math.log(_RATIO), -math.log(_RATIO)))
            rows = min(max(round(height * math.sqrt(area * ratio)), 1), height)
            columns = min(max(round(width * math.sqrt(area / ratio)), 1), width)
            top, left = int(chance.of("top") * (height - rows + 1)), int(chance.of("left") * (width - columns + 1))
            picture = cropped(picture, top, left, rows, columns)
        return picture

    def _coloured(self, picture: Pixels, chance: Chance) -> Pixels:
        chosen = self._options
        if chosen.brightness or chosen.contrast or chosen.saturation:
            names = ("brightness", "contrast", "saturation")
            widths = {name: getattr(chosen, name) for name in names}
            picture = coloured(picture, *(chance.between(name, 1 - w, 1 + w) for name, w in widths.items()))
        if chosen.hue:
            picture = _hued(picture, chance.between("hue", -chosen.hue, chosen.hue))
        if chosen.noise:
            picture = noised(picture, chance.between("noise", 0, chosen.noise), np.random.default_rng(chance.key))
        return picture


@dataclass(frozen=True)
class Chance:
    """Random numbers of one sample.

    Attributes:
        key: 64 bits.
        numbers: one for each name in `_DRAWS`, from 0 to below 1.
    """

    key: int
    numbers: tuple[float, ...]

    def of(self, name: str) -> float:
        """From 0 to below 1."""
        return self.numbers[_DRAWS.index(name)]

    def between(self, name: str, low: float, high: float) -> float:
        return low + (high - low) * self.of(name)

    def happens(self, name: str, probability: float) -> bool:
        return self.of(name) < probability


def chances(seed: int, epoch: int, ids: NDArray[np.int64]) -> list[Chance]:
    """The random numbers of the samples `ids` (B,) in an epoch.

    SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014) for the whole
    batch at once: making a generator for each sample would cost more than many of the changes do.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        start = _mixed(_mixed(np.array([seed], np.uint64) * golden) + np.uint64(epoch))
        keys = _mixed(start + ids.astype(np.uint64) * golden)
        draws = _mixed(keys[:, None] + np.arange(1, len(_DRAWS) + 1, dtype=np.uint64) * golden)
    numbers = (draws >> np.uint64(11)) * 2.0**-53
    return [Chance(key, tuple(row)) for key, row in zip(keys.tolist(), numbers.tolist(), strict=True)]


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def mirrored(picture: Pixels) -> Pixels:
    """(H, W, C) with left and right exchanged."""
    signed = picture.view(np.int16) if picture.dtype == np.uint16 else picture  # torch cannot turn uint16
    # In a twentieth of the time that numpy takes to copy a picture backwards.
    return torch.from_numpy(signed).flip(1).numpy().view(picture.dtype)


def shifted(picture: Pixels, down: int, right: int) -> Pixels:
    """(H, W, C) moved by pixels; the edge fills what comes free."""
    height = len(picture)
    rows = picture[np.clip(np.arange(height) - down, 0, height - 1)]
    moved = rows.copy()
    if right > 0:
        moved[:, right:], moved[:, :right] = rows[:, :-right], rows[:, :1]
    elif right < 0:
        moved[:, :right], moved[:, right:] = rows[:, -right:], rows[:, -1:]
    return moved


def cropped(picture: Pixels, top: int, left: int, rows: int, columns: int) -> Pixels:
    """That part of (H, W, C) stretched to the whole (bilinear)."""
    # Its own memory: torch then keeps the order H, W, C, which would cost as much to restore as resizing does.
    part = np.ascontiguousarray(picture[top : top + rows, left : left + columns])
    return resized(part, (picture.shape[0], picture.shape[1]))


def rotated(picture: Pixels, degrees: float) -> Pixels:
    """(H, W, C) turned anticlockwise about its centre (bilinear); the edge fills what comes free."""
    height, width = picture.shape[:2]
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = torch.tensor([[[cos, -sin * height / width, 0.0], [sin * width / height, cos, 0.0]]], dtype=torch.float32)
    grid = functional.affine_grid(turn, [1, 1, height, width], align_corners=False)
    values = planes(picture).to(torch.float32)[None]
    turned = functional.grid_sample(values, grid, padding_mode="border", align_corners=False)
    return _whole(pixels(turned[0]), picture)


def coloured(picture: Pixels, brightness: float, contrast: float, saturation: float) -> Pixels:
    """(H, W, C) with these three factors applied in this order, without rounding or clipping in between."""
    values = picture.astype(np.float32)
    offset = 0.0
    if contrast != 1 or saturation != 1:
        grey = values[..., 0].copy()
        if values.shape[2] == 3:
            grey = sum(values[..., channel] * _LUMA[channel] for channel in range(3))
        offset = (1 - contrast) * brightness * float(grey.mean())
    if saturation != 1:
        values *= np.float32(brightness * contrast * saturation)
        grey *= np.float32(brightness * contrast * (1 - saturation))
        grey += np.float32(offset)
        values += grey[..., None]
    else:
        values *= np.float32(brightness * contrast)
        values += np.float32(offset)
    return _whole(values, picture)


def noised(picture: Pixels, deviation: float, chance: np.random.Generator) -> Pixels:
    """(H, W, C) with noise; `deviation` is a share of white. The sum of four bytes is near enough to normal."""
    count = -(-picture.size // 2)
    bytes_ = chance.integers(0, 2**64, count, dtype=np.uint64).view(np.uint8)[: 4 * picture.size].reshape(4, -1)
    noise = bytes_[0].astype(np.float32)
    for more in bytes_[1:]:
        noise += more
    noise -= np.float32(510)
    noise *= np.float32(deviation * np.iinfo(picture.dtype).max / math.sqrt((256**2 - 1) / 3))
    noise += picture.reshape(-1)
    return _whole(noise, picture).reshape(picture.shape)


def _hued(picture: Pixels, share: float) -> Pixels:
    white = np.iinfo(picture.dtype).max
    values = planes(picture).to(torch.float32) / white
    return _whole(pixels(vision.adjust_hue(values, share)) * np.float32(white), picture)


def erased(picture: Pixels, area: float, ratio: float, top: float, left: float) -> Pixels:
    """(H, W, C) with a rectangle in the mean colour; the numbers are draws from 0 to 1."""
    height, width = picture.shape[:2]
    share = _ERASED[0] + (_ERASED[1] - _ERASED[0]) * area
    stretch = 2 ** (2 * ratio - 1)  # proportions from ½ to 2
    rows = min(max(round(height * math.sqrt(share * stretch)), 1), height)
    columns = min(max(round(width * math.sqrt(share / stretch)), 1), width)
    first, column = int(top * (height - rows + 1)), int(left * (width - columns + 1))
    picture = picture.copy()
    picture[first : first + rows, column : column + columns] = [
        round(float(picture[..., channel].mean())) for channel in range(picture.shape[2])
    ]
    return picture


def _by_other(transform: Callable[[Any], Any], picture: Pixels, seed: int) -> Pixels:
    """(H, W, C) after a transform of torchvision: uint8 (C, H, W), or float32 from 0 to 1 for 16 bits."""
    given = planes(picture)
    if picture.dtype != np.uint8:
        given = given.to(torch.float32) / 65535
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        made = transform(given)
    if not isinstance(made, torch.Tensor) or made.shape != given.shape or made.dtype != given.dtype:
        what = f"{tuple(made.shape)} {made.dtype}" if isinstance(made, torch.Tensor) else type(made).__name__
        name = getattr(transform, "__name__", type(transform).__name__)
        raise UserError(f"data.augment.extra: {name} makes {what} of a picture {tuple(given.shape)} {given.dtype}")
    return pixels(made) if picture.dtype == np.uint8 else _whole(pixels(made) * np.float32(65535), picture)


def _whole(values: NDArray[np.float32], like: Pixels) -> NDArray[Any]:
    """Rounded and clipped to the type of `like`; `values` is overwritten."""
    np.rint(values, out=values)
    np.clip(values, 0, np.iinfo(like.dtype).max, out=values)
    return values.astype(like.dtype)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
