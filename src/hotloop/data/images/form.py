"""The form that every picture gets before a model sees it, as the checkpoint stores it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torchvision.transforms.v2 import functional as vision

from hotloop.errors import UserError

Pixels = NDArray[np.uint8] | NDArray[np.uint16]

FITS = ("stretch", "crop", "pad")
CHANNELS = {"rgb": 3, "grey": 1}
LARGEST = 16_384  # pixels a side
RESIZING = 1  # raise it when the same picture gives other numbers than before: caches are built anew

_LUMA = (19595, 38470, 7471)  # 0.299, 0.587, 0.114 (ITU-R BT.601) in 65536ths, as in Pillow


@dataclass(frozen=True)
class PixelForm:
    """Size, channels and depth. The same picture always becomes the same numbers.

    Attributes:
        size: (height, width), pixels.
        fit: a picture of other proportions is stretched, or loses what is outside the largest part of the right
            proportions in its middle (crop), or gets black bars (pad).
        channels: rgb or grey (luma of ITU-R BT.601).
        bits: 8 or 16 a channel.
        alpha: what the reader put behind transparent pixels (see `read_picture`).
        region: part of a picture that counts, before all else: (top, left, bottom, right) as shares of its sides.
    """

    size: tuple[int, int]
    fit: str = "stretch"
    channels: str = "rgb"
    bits: int = 8
    alpha: str = "white"
    region: tuple[float, float, float, float] | None = None

    @classmethod
    def from_saved(cls, saved: Any) -> PixelForm:
        """The form stored in a checkpoint. Raises UserError when it is damaged."""
        try:
            values = {name: saved[name] for name in cls.__dataclass_fields__}
            region = picture_region(values["region"], "region")
            form = cls(**{**values, "size": picture_size(values["size"], "size"), "region": region})
            good = form.fit in FITS and form.channels in CHANNELS and form.bits in (8, 16)
            good = good and isinstance(form.alpha, str)
        except (TypeError, KeyError, UserError) as error:
            raise UserError(f"the checkpoint's form of pictures cannot be read: {saved!r}") from error
        if not good:
            raise UserError(f"the checkpoint's form of pictures cannot be read: {saved!r}")
        return form

    def saved(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "size": list(self.size), "region": None if self.region is None else list(self.region)}

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C)"""
        return (*self.size, CHANNELS[self.channels])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8 if self.bits == 8 else np.uint16)

    @property
    def bytes(self) -> int:
        """Of one picture."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    @property
    def largest(self) -> int:
        """The number that stands for white."""
        return 2**self.bits - 1

    @property
    def at_least(self) -> tuple[int, int]:
        """(height, width) below which a reader need not reduce while it decodes.

        Decoding JPEGs at half or a quarter of their size, but no smaller than this, differs from decoding them in
        full by less than JPEG itself loses (photographs: over 42 dB PSNR, rendered frames with hard edges: over 39).
        """
        if self.region is None:
            return self.size
        top, left, bottom, right = self.region
        return math.ceil(self.size[0] / (bottom - top)), math.ceil(self.size[1] / (right - left))

    def apply(self, picture: Pixels) -> Pixels:
        """The picture (h, w, 3) in this form: (H, W, C), of its own memory or `picture` itself. Antialiased bilinear.

        Raises:
            ValueError: a picture of other depth, or not RGB.
        """
        if picture.dtype != self.dtype or picture.ndim != 3 or picture.shape[2] != 3:
            raise ValueError(f"expected (H, W, 3) of {self.dtype}, got {picture.shape} of {picture.dtype}")
        height, width = self.size
        if self.region is not None:
            picture = _part(picture, self.region)
        if self.fit == "crop":
            picture = _middle(picture, height / width)
        inner = _inside(picture, self.size) if self.fit == "pad" else self.size
        if picture.shape[:2] != inner:
            picture = resized(picture, inner)
        if self.channels == "grey":
            picture = _grey(picture)
        if inner != self.size:
            canvas = np.zeros(self.shape, dtype=self.dtype)
            top, left = (height - inner[0]) // 2, (width - inner[1]) // 2
            canvas[top : top + inner[0], left : left + inner[1]] = picture
            return canvas
        return picture


def picture_size(size: Any, key: str) -> tuple[int, int]:
    """(height, width) from a number, or from a list of two. Raises UserError that names `key`."""
    sides = [size, size] if isinstance(size, int) else size
    good = isinstance(sides, Sequence) and not isinstance(sides, str) and len(sides) == 2
    if good and any(isinstance(side, int) and side > LARGEST for side in sides):
        raise UserError(f"{key}={size!r}: at most {LARGEST:,} pixels a side")
    if not good or not all(isinstance(side, int) and not isinstance(side, bool) and side >= 1 for side in sides):
        raise UserError(f"{key} must be a number of pixels from 1 on, or [height, width], got {size!r}")
    return int(sides[0]), int(sides[1])


def picture_region(region: Any, key: str) -> tuple[float, float, float, float] | None:
    """(top, left, bottom, right) from a list of four shares; None for None. Raises UserError that names `key`."""
    if region is None:
        return None
    good = isinstance(region, Sequence) and not isinstance(region, str) and len(region) == 4
    if good and all(isinstance(share, (int, float)) and not isinstance(share, bool) for share in region):
        top, left, bottom, right = (float(share) for share in region)
        if 0 <= top < bottom <= 1 and 0 <= left < right <= 1:
            return top, left, bottom, right
    raise UserError(
        f"{key} must be [top, left, bottom, right], shares from 0 to 1 of the sides, top before bottom and left before "
        f"right, got {region!r}"
    )


def resized(picture: NDArray[Any], size: tuple[int, int]) -> Pixels:
    """The picture (h, w, C) stretched to (H, W, C)."""
    tensor = planes(picture)
    if picture.dtype == np.uint8:  # whole numbers throughout: as good as Pillow (± 1) in a quarter of its time
        return pixels(vision.resize(tensor, list(size), antialias=True))
    return _rounded(vision.resize(tensor.to(torch.float32), list(size), antialias=True))


def planes(picture: NDArray[Any]) -> Tensor:
    """The picture (H, W, C) as a tensor (C, H, W) over the same memory; a copy where torch cannot take that."""
    plain = picture.flags.writeable and min(picture.strides) >= 0
    return torch.from_numpy(picture if plain else picture.copy()).permute(2, 0, 1)


def pixels(tensor: Tensor) -> NDArray[Any]:
    """A tensor (C, H, W) as a picture (H, W, C)."""
    return np.ascontiguousarray(tensor.permute(1, 2, 0).numpy())


def _rounded(tensor: Tensor) -> NDArray[np.uint16]:
    return pixels(tensor).round().clip(0, 65535).astype(np.uint16)


def _middle(picture: Pixels, ratio: float) -> Pixels:
    """The largest part of (h, w, C) in the middle with height / width = `ratio`."""
    height, width = picture.shape[:2]
    rows = min(height, max(round(width * ratio), 1))
    columns = min(width, max(round(height / ratio), 1))
    top, left = (height - rows) // 2, (width - columns) // 2
    return picture[top : top + rows, left : left + columns]


def _part(picture: Pixels, region: tuple[float, float, float, float]) -> Pixels:
    """The region of (h, w, C), one pixel at least."""
    height, width = picture.shape[:2]
    top, bottom = (round(share * height) for share in region[::2])
    left, right = (round(share * width) for share in region[1::2])
    top, left = min(top, height - 1), min(left, width - 1)
    return picture[top : max(bottom, top + 1), left : max(right, left + 1)]


def _inside(picture: Pixels, size: tuple[int, int]) -> tuple[int, int]:
    """The largest size with the picture's proportions inside `size`."""
    height, width = picture.shape[:2]
    scale = min(size[0] / height, size[1] / width)
    return min(max(round(height * scale), 1), size[0]), min(max(round(width * scale), 1), size[1])


def _grey(picture: Pixels) -> Pixels:
    """Luma (H, W, 1) of (H, W, 3)."""
    red, green, blue = (picture[..., channel].astype(np.uint32) * np.uint32(_LUMA[channel]) for channel in range(3))
    return ((red + green + blue + np.uint32(1 << 15)) >> np.uint32(16)).astype(picture.dtype)[..., None]
