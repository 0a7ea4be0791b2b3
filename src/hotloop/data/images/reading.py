"""Pictures from files of any kind: upright, RGB, 8 or 16 bits a channel.

What a file is, its content says, not the ending of its name. Of several frames or pages the first is read. Embedded
colour profiles are not applied: the numbers are those in the file (CMYK becomes RGB by the plain formula). Damaged
orientation marks count as none. JPEGs whose compressed data were altered without being cut cannot be told from whole
ones by any decoder.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hotloop.data.images.sixteen_bits import png_samples, tiff_bits, tiff_samples, tiff_size, tiff_tags
from hotloop.data.images.unreadable import Unreadable, reason_for
from hotloop.errors import UserError

Picture = NDArray[Any]  # uint8 or uint16

ENDINGS = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".mpo")
ALPHAS = ("white", "black", "grey", "drop")
BITS = (8, 16)
READING = 1  # raise it when the same file gives other numbers than before: caches are built anew

# Never all that Pillow knows: it hands Encapsulated PostScript to another program, for example.
_FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF")
_BACKGROUND = {"white": 255, "grey": 128, "black": 0}  # of 255
_WITH_ALPHA = ("LA", "La", "PA", "RGBA", "RGBa")
_OPAQUE = ("1", "L", "P", "RGB", "RGBX", "CMYK", "YCbCr")
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_ORIENTATION = 274  # tag of Exif and TIFF
_HEAD = 512  # bytes: enough to tell formats apart


class PictureError(UserError):
    """A picture that cannot be read; `reason` is the message without the file."""

    def __init__(self, path: str | Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class PictureInfo:
    """What the header of a picture says; sizes are those of the upright picture."""

    format: str  # JPEG, PNG, …
    mode: str  # Pillow's name of the kind of pixels: RGB, L, P, CMYK, …
    bits: int  # a channel: 8 (or fewer in the file) or 16
    width: int  # pixels
    height: int  # pixels


def inspect_picture(path: str | Path) -> PictureInfo:
    """What `path` holds, from its header alone (some 30 µs). Raises PictureError."""
    head = b""
    try:
        with _opened_file(path) as file:
            head = file.read(_HEAD)
            file.seek(0)
            return _described(file, head)
    except Exception as error:  # decoders raise anything at all over damaged files
        raise PictureError(path, reason_for(error, head, path)) from error


def read_picture(
    path: str | Path, *, bits: int = 8, alpha: str = "white", at_least: tuple[int, int] | None = None
) -> Picture:
    """The picture upright, RGB: (H, W, 3), uint8 for 8 `bits`, uint16 for 16.

    A picture of other depth is scaled, so that white stays white: times 257, or divided by 257 and rounded.

    Args:
        path: of a JPEG, PNG, WebP, TIFF, BMP or GIF file.
        bits: 8 or 16 a channel.
        alpha: what stands behind transparent pixels: white | black | grey; drop = their colours as stored, whatever
            they are.
        at_least: (height, width) of the upright picture; a JPEG is decoded at the smallest of 1/8, 1/4, 1/2 and 1/1
            of its size that has neither side below these. Other formats come whole.

    Raises:
        PictureError: a UserError with the file and what is wrong with it.
        ValueError: `bits` or `alpha` is none of the above.
    """
    if bits not in BITS or alpha not in ALPHAS:
        raise ValueError(f"bits must be 8 or 16 and alpha one of {', '.join(ALPHAS)}, got {bits!r} and {alpha!r}")
    data = b""
    try:
        with _opened_file(path) as file:
            data = file.read()
        pixels = _decoded(data, at_least)
    except Exception as error:  # decoders raise anything at all over damaged files
        raise PictureError(path, reason_for(error, data[:_HEAD], path)) from error
    return _with_bits(_without_alpha(pixels, alpha), bits)


def _opened_file(path: str | Path) -> BinaryIO:
    if stat.S_ISFIFO(os.stat(path).st_mode):  # would wait for ever
        raise Unreadable("a pipe, a picture was expected")
    return open(path, "rb")


def _described(file: BinaryIO, head: bytes) -> PictureInfo:
    # Pillow warns of what is dealt with here (palettes with transparency, large pictures) or of no use to anyone.
    _ignore_warnings(r"PIL\.")
    tags = tiff_tags(file) if head.startswith(_TIFF) else None
    if tags is not None and tiff_bits(tags) == 16:
        return PictureInfo("TIFF", "16 bits", 16, *_turned(tiff_size(tags), _mark(tags)))
    with _opened(file) as image:
        if image.mode not in (*_WITH_ALPHA, *_OPAQUE) and not _is_deep_png(head):
            raise Unreadable(f"{image.format} with pixels of mode {image.mode}: save it as RGB or grey")
        if image.format == "PNG" and _describes_itself_late(file):
            image.load()
        orientation = _orientation(image)
        size = image.size
        if tags is not None:  # some versions of Pillow have turned it already
            orientation, size = _mark(tags), (tags[256], tags[257])
        return PictureInfo(str(image.format), image.mode, 16 if _is_deep_png(head) else 8, *_turned(size, orientation))


def _opened(file: BinaryIO) -> Any:
    return Image.open(file, formats=_FORMATS)


def _ignore_warnings(module: str) -> None:
    # A filter for good: catch_warnings would make every other warning of the program appear again.
    if not any(item[0] == "ignore" and getattr(item[3], "pattern", "") == module for item in warnings.filters):
        warnings.filterwarnings("ignore", module=module)


def _decoded(data: bytes, at_least: tuple[int, int] | None) -> Picture:
    """All samples of the upright picture: (H, W, 1 to 4), grey, grey + alpha, RGB or RGBA, uint8 or uint16."""
    _ignore_warnings(r"PIL\.")
    if data.startswith(_TIFF):
        tags = tiff_tags(io.BytesIO(data))
        if tiff_bits(tags) == 16:
            return _upright(tiff_samples(tags, data), _mark(tags))
    with _opened(io.BytesIO(data)) as image:
        if image.format in ("JPEG", "MPO"):
            orientation = _orientation(image)
            if at_least is not None and orientation >= 5:
                at_least = at_least[::-1]
            return _upright(_jpeg_samples(image, data, at_least), orientation)
        if _is_deep_png(data):
            pixels: Picture = png_samples(data)
            if _describes_itself_late(io.BytesIO(data)):
                image.load()
        else:
            pixels = _plain_samples(image)
        return _upright(pixels, _orientation(image))


def _jpeg_samples(image: Any, data: bytes, at_least: tuple[int, int] | None) -> NDArray[np.uint8]:
    """(H, W, 3).

    torchvision decodes a whole picture in two thirds of Pillow's time, to the same numbers. Where half the size is
    enough, Pillow is the faster one: it can leave the rest out.
    """
    decode = _whole_jpeg_decoder()
    reduced = at_least is not None and min(image.height // at_least[0], image.width // at_least[1]) >= 2
    if decode is None or reduced or image.mode not in ("RGB", "L"):
        return _plain_samples(image, at_least)
    return decode(data)


@lru_cache(maxsize=1)
def _whole_jpeg_decoder() -> Callable[[bytes], NDArray[np.uint8]] | None:
    """torchvision's decoder to (H, W, 3); None where it is missing: it was announced to be removed."""
    try:
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg
    except ImportError:
        return None

    def decode(data: bytes) -> NDArray[np.uint8]:
        _ignore_warnings(r"torchvision\.io\.image")  # the announcement
        pixels = decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB)
        return pixels.permute(1, 2, 0).numpy()

    return decode


def _plain_samples(image: Any, at_least: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    """(H, W, 3), or (H, W, 4) with alpha, of a picture with 8 bits or fewer a channel, decoded by Pillow."""
    if at_least is not None:
        image.draft(None, at_least[::-1])
    _scale_transparency(image)
    image.load()
    clear = image.mode in _WITH_ALPHA or "transparency" in image.info
    pixels = np.array(image.convert("RGBA" if clear else "RGB"))
    if clear and image.format == "BMP" and not pixels[..., 3].any():
        return pixels[..., :3]  # programs that know of no alpha leave it 0
    return pixels


def _scale_transparency(image: Any) -> None:
    """Pillow spreads greys of few bits over 0 to 255, but not the grey that stands for transparent."""
    grey = image.info.get("transparency")
    if image.format == "PNG" and image.mode in ("1", "L") and isinstance(grey, int) and image.tile:
        rawmode = image.tile[0][3]
        scale = {"1": 255, "L;2": 85, "L;4": 17}.get(rawmode if isinstance(rawmode, str) else rawmode[0], 1)
        image.info["transparency"] = min(grey * scale, 255)  # of 1 bit, newer versions do


def _is_deep_png(head: bytes) -> bool:
    return head.startswith(b"\x89PNG") and head[24:25] == b"\x10"


def _orientation(image: Any) -> int:
    """1 to 8 as in Exif; 1 = stored upright."""
    if not {"exif", "xmp", "XML:com.adobe.xmp", "Raw profile type exif"} & image.info.keys():
        return 1
    try:
        return _mark(Image.Image.getexif(image))  # PNG's own getexif would decode the picture
    except Exception:
        return 1


def _mark(tags: Any) -> int:
    value = tags.get(_ORIENTATION, 1)
    return value if value in range(1, 9) else 1


def _turned(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    return size if orientation < 5 else size[::-1]


def _describes_itself_late(file: BinaryIO) -> bool:
    """Whether a PNG has Exif or XMP behind its pixels, where Pillow sees it after decoding only."""
    start = file.tell()
    try:
        file.seek(8)
        pixels = False
        while len(chunk := file.read(8)) == 8:
            length, name = struct.unpack(">I4s", chunk)
            if pixels and name in (b"eXIf", b"iTXt"):
                return True
            pixels = pixels or name == b"IDAT"
            file.seek(length + 4, os.SEEK_CUR)
        return False
    finally:
        file.seek(start)


def _upright(pixels: Picture, orientation: int) -> Picture:
    """(H, W, C) turned and mirrored as Exif's `orientation` says."""
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def _without_alpha(pixels: Picture, alpha: str) -> Picture:
    """(H, W, 3) of (H, W, 1 to 4): grey repeated, what is transparent laid over the background, rounded."""
    channels = pixels.shape[2]
    if channels < 3:
        grey = _without_alpha_of(pixels, alpha) if channels == 2 else pixels
        return np.repeat(grey, 3, axis=2)
    return _without_alpha_of(pixels, alpha) if channels == 4 else pixels


def _without_alpha_of(pixels: Picture, alpha: str) -> Picture:
    colours, opacity = pixels[..., :-1], pixels[..., -1:]
    top = np.iinfo(pixels.dtype).max
    if alpha == "drop" or opacity.min() == top:
        return np.ascontiguousarray(colours)
    behind = _BACKGROUND[alpha] * (top // 255)
    shown = opacity.astype(np.uint32)  # 65,535 × 65,535 + 32,767 just fits
    mixed = (colours * shown + behind * (top - shown) + top // 2) // top
    return mixed.astype(pixels.dtype)


def _with_bits(pixels: Picture, bits: int) -> Picture:
    if pixels.dtype == np.uint8:
        return pixels if bits == 8 else pixels.astype(np.uint16) * np.uint16(257)
    return pixels if bits == 16 else ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)
