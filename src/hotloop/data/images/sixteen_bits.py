"""Samples of 16 bits from PNG and TIFF, which Pillow cuts down to 8 bits as soon as there is colour or alpha."""

from __future__ import annotations

import io
import struct
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from hotloop.data.images.unreadable import Unreadable

Tags = Any  # ImageFileDirectory_v2: a mapping of numbers to values
Samples = NDArray[np.uint16]  # (H, W, 1 to 4): grey, grey + alpha, RGB or RGBA

_TOP = 65_535
# Of each PNG colour type: modes of Pillow, and what it is told of the bytes.
_PNG_MODES = {
    0: (("LA", "LA"),),
    2: (("RGB", "RGB;16B"), ("RGB", "RGB;16L")),
    4: (("RGBA", "RGBA"),),
    6: (("RGBA", "RGBA;16B"), ("RGBA", "RGBA;16L")),
}
# TIFF tags (TIFF 6.0, Adobe 1992)
_WIDTH, _LENGTH, _BITS, _COMPRESSION, _PHOTOMETRIC, _FILL_ORDER = 256, 257, 258, 259, 262, 266
_STRIP_OFFSETS, _SAMPLES, _ROWS_PER_STRIP, _STRIP_SIZES, _PLANAR, _PREDICTOR = 273, 277, 278, 279, 284, 317
_TILE_WIDTH, _TILE_LENGTH, _TILE_OFFSETS, _TILE_SIZES, _EXTRA, _FORMAT = 322, 323, 324, 325, 338, 339
_COLOURS = {0: 1, 1: 1, 2: 3, 5: 4}  # photometric (0, 1 = grey with 0 = white, black; RGB; CMYK): samples


def png_samples(data: bytes) -> Samples:
    """All samples of a PNG with 16 bits a channel, its one transparent colour (tRNS) as alpha.

    Pillow has two ways to cut samples down to 8 bits: one keeps the first byte of each, one the second. Grey with
    alpha is as wide as RGBA of 8 bits.
    """
    kind = data[25]  # colour type: 0 grey, 2 RGB, 4 grey + alpha, 6 RGBA
    if kind not in _PNG_MODES:
        raise Unreadable(f"PNG of 16 bits with colour type {kind}, which there is not")
    parts = [_png_bytes(data, mode, rawmode) for mode, rawmode in _PNG_MODES[kind]]
    if len(parts) == 1:
        height, width, _ = parts[0].shape
        pixels = parts[0].reshape(height, width, -1).view(">u2").astype(np.uint16)
    else:
        pixels = parts[0].astype(np.uint16) << np.uint16(8) | parts[1]
    clear = _transparent_colour(data)
    if clear is None or kind not in (0, 2):
        return pixels
    opacity = np.where((pixels == clear).all(axis=2, keepdims=True), 0, _TOP).astype(np.uint16)
    return np.concatenate([pixels, opacity], axis=2)


def _png_bytes(data: bytes, mode: str, rawmode: str) -> NDArray[np.uint8]:
    """(H, W, C) bytes that Pillow takes from each pixel when it is told that `data` hold `rawmode`."""
    with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
        if not image.tile:
            raise Unreadable("damaged PNG: there are no pixels in it")
        image._mode = mode  # type: ignore[attr-defined]
        image.tile = [(*image.tile[0][:3], rawmode)]  # type: ignore[assignment,list-item]
        image.load()
        return np.array(image)


def _transparent_colour(data: bytes) -> NDArray[np.uint16] | None:
    """What the tRNS chunk of a grey or RGB PNG holds."""
    place, name = 8, b""
    while name not in (b"IDAT", b"tRNS") and place + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, place)
        place += length + 12
    return np.frombuffer(data[place - length - 4 : place - 4], ">u2").astype(np.uint16) if name == b"tRNS" else None


def tiff_tags(file: BinaryIO) -> Tags:
    """The directory of the first page of a TIFF."""
    head = file.read(8)
    if head[2:4] in (b"+\0", b"\0+"):  # BigTIFF
        head += file.read(8)
    tags = ImageFileDirectory_v2(head)
    file.seek(tags.next)
    tags.load(file)
    file.seek(0)
    return tags


def tiff_bits(tags: Tags) -> int:
    """8 (or fewer) or 16. Raises Unreadable for samples that are no such numbers, or no picture's."""
    depth = max(_numbers(tags, _BITS, 1))
    kinds = _numbers(tags, _FORMAT, 1)
    if depth in (1, 2, 4, 8) and set(kinds) <= {1, 4}:
        return 8
    if depth not in (12, 14, 16, 24, 32, 64):
        raise Unreadable("damaged TIFF: its header makes no sense")
    if depth != 16 or set(kinds) != {1}:
        what = "floating-point numbers" if 3 in kinds else "signed numbers" if 2 in kinds else "numbers"
        raise Unreadable(
            f"TIFF with {what} of {depth} bits, which have no fixed black and white: save it with 8 or 16 bits a "
            "channel, unsigned"
        )
    count, kind = tags.get(_SAMPLES, 1), tags.get(_PHOTOMETRIC)
    extra = count - _COLOURS.get(kind, 9)
    if extra not in (0, 1) or count > 4:
        raise Unreadable(
            f"TIFF of 16 bits with {count} samples a pixel (PhotometricInterpretation {kind}): save it as RGB or grey, "
            "with alpha or without"
        )
    if tags.get(_PLANAR, 1) == 2 and count not in (1, 3):
        raise Unreadable("TIFF of 16 bits with alpha, stored in planes: save it with interleaved samples")
    if tags.get(_PREDICTOR, 1) not in (1, 2):
        raise Unreadable(f"TIFF of 16 bits with Predictor {tags[_PREDICTOR]}: save it without")
    return 16


def tiff_size(tags: Tags) -> tuple[int, int]:
    """Width and height as stored, in pixels."""
    width, height = int(tags[_WIDTH]), int(tags[_LENGTH])
    most = (Image.MAX_IMAGE_PIXELS or width * height) * 2  # Pillow's own limit, two bytes a sample
    if 2 * width * height > most:
        raise Image.DecompressionBombError(f"{width * height} pixels of 16 bits")
    return width, height


def tiff_samples(tags: Tags, data: bytes) -> Samples:
    """All samples of the first page of a TIFF for which `tiff_bits` is 16.

    Compression does not know what the bytes mean, so Pillow unpacks them as a picture with 8 bits a channel that is
    twice as wide; the samples are put together here.
    """
    width, height = tiff_size(tags)
    count = int(tags.get(_SAMPLES, 1))
    planes = tags.get(_PLANAR, 1) == 2 and count > 1
    with Image.open(io.BytesIO(_as_bytes(tags, data, count)), formats=["TIFF"]) as unpacked:
        found = np.array(unpacked)
    order = "<u2" if data[:2] == b"II" else ">u2"
    if planes:  # (H, 2 W, C): each channel is a plane
        pixels = np.ascontiguousarray(found.swapaxes(1, 2)).view(order).swapaxes(1, 2)
    else:
        pixels = found.reshape(height, -1).view(order).reshape(height, width, count)
    pixels = np.ascontiguousarray(pixels, dtype=np.uint16)
    if tags.get(_PREDICTOR, 1) == 2:
        step = int(tags.get(_TILE_WIDTH, width))
        for left in range(0, width, step):  # differences to the pixel on the left, inside each tile
            part = pixels[:, left : left + step]
            np.cumsum(part, axis=1, dtype=np.uint16, out=part)
    associated = count in (2, 4) and _numbers(tags, _EXTRA, 0)[0] == 1
    return _coloured(pixels, tags[_PHOTOMETRIC], associated=associated)


def _numbers(tags: Tags, tag: int, default: int) -> tuple[int, ...]:
    value = tags.get(tag, default)
    return value if isinstance(value, tuple) else (value,)


def _as_bytes(tags: Tags, data: bytes, count: int) -> bytes:
    """`data` with a new directory that calls each sample two of 8 bits."""
    if data[2:4] not in (b"*\0", b"\0*"):
        raise Unreadable("BigTIFF of 16 bits: save it as plain TIFF")
    photometric = {1: 1, 2: 1, 3: 2, 4: 2}[count]
    entries: dict[int, tuple[int, ...]] = {
        _WIDTH: (2 * int(tags[_WIDTH]),),
        _LENGTH: (int(tags[_LENGTH]),),
        _BITS: (8,) * count,
        _PHOTOMETRIC: (photometric,),
        _SAMPLES: (count,),
    }
    if count in (2, 4):
        entries[_EXTRA] = (2,)
    if _TILE_WIDTH in tags:
        entries[_TILE_WIDTH] = (2 * int(tags[_TILE_WIDTH]),)
    kept = (_COMPRESSION, _FILL_ORDER, _STRIP_OFFSETS, _ROWS_PER_STRIP, _STRIP_SIZES, _PLANAR)
    for tag in (*kept, _TILE_LENGTH, _TILE_OFFSETS, _TILE_SIZES):
        if tag in tags:
            entries[tag] = tuple(int(number) for number in _numbers(tags, tag, 0))
    mark = "<" if data[:2] == b"II" else ">"
    start = len(data) + len(data) % 2
    behind = start + 2 + 12 * len(entries) + 4
    directory, values = struct.pack(f"{mark}H", len(entries)), b""
    for tag, numbers in sorted(entries.items()):
        packed = struct.pack(f"{mark}{len(numbers)}L", *numbers)
        if len(packed) > 4:
            packed, values = struct.pack(f"{mark}L", behind + len(values)), values + packed
        directory += struct.pack(f"{mark}HHL", tag, 4, len(numbers)) + packed
    head = data[:4] + struct.pack(f"{mark}L", start)
    return head + data[8:] + b"\0" * (len(data) % 2) + directory + b"\0" * 4 + values


def _coloured(pixels: Samples, photometric: int, *, associated: bool) -> Samples:
    """Grey or RGB, with straight alpha, of the samples as they are stored."""
    if photometric == 0:
        pixels[..., 0] = _TOP - pixels[..., 0]
    if photometric == 5:  # (1 - colour) · (1 - black), rounded
        light = (_TOP - pixels).astype(np.uint32)
        return ((light[..., :3] * light[..., 3:] + _TOP // 2) // _TOP).astype(np.uint16)
    if associated:  # colours were multiplied by alpha
        opacity = np.maximum(pixels[..., -1:].astype(np.uint64), 1)
        straight = (pixels[..., :-1].astype(np.uint64) * _TOP + opacity // 2) // opacity
        pixels[..., :-1] = np.minimum(straight, _TOP)
    return pixels
