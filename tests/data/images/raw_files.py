"""PNG and TIFF files with 16 bits a channel, byte by byte: the independent side of the tests."""

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_file(
    samples: NDArray[Any], *, transparent: bytes = b"", interlaced: bool = False, early: bytes = b"", late: bytes = b""
) -> bytes:
    """`samples` (H, W, 1 to 4) of 16 bits; `early` and `late` are chunks before and behind the pixels."""
    height, width, channels = samples.shape
    passes = [samples[top::down, left::right] for top, left, down, right in ADAM7] if interlaced else [samples]
    lines = [b"\0" + line.astype(">u2").tobytes() for part in passes if part.size for line in part]
    head = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, interlaced)
    clear = png_chunk(b"tRNS", transparent) if transparent else b""
    pixels = png_chunk(b"IDAT", zlib.compress(b"".join(lines)))
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) + early + clear + pixels + late + png_chunk(b"IEND", b"")


def tiff_file(
    samples: NDArray[Any],
    *,
    photometric: int,
    order: str = "<",
    deflate: bool = False,
    predictor: bool = False,
    tile: int | None = None,
    planes: bool = False,
    associated: bool = False,
    orientation: int = 1,
    bits: int = 16,
    kind: int = 1,
) -> bytes:
    """`samples` (H, W, C) as a TIFF; `order` is "<" or ">"; `tile` a side in pixels; `kind` the sample format."""
    height, width, channels = samples.shape
    if tile:
        blocks = [
            np.pad(part, ((0, tile - part.shape[0]), (0, tile - part.shape[1]), (0, 0)), mode="edge")
            for top in range(0, height, tile)
            for left in range(0, width, tile)
            for part in [samples[top : top + tile, left : left + tile]]
        ]
    elif planes:
        blocks = [samples[..., [channel]] for channel in range(channels)]
    else:
        blocks = [samples[top : top + 5] for top in range(0, height, 5)]
    if predictor:
        blocks = [np.diff(block, axis=1, prepend=np.zeros_like(block[:, :1])) for block in blocks]
    data = [block.astype(block.dtype.newbyteorder(order)).tobytes() for block in blocks]
    data = [zlib.compress(block) for block in data] if deflate else data
    places = np.cumsum([8, *(len(block) for block in data)]).tolist()
    tags: dict[int, list[int]] = {
        256: [width], 257: [height], 258: [bits] * channels, 259: [8 if deflate else 1], 262: [photometric],
        274: [orientation], 277: [channels], 284: [2 if planes else 1], 317: [2 if predictor else 1],
        339: [kind] * channels,
    }  # fmt: skip
    if channels in (2, 4) and photometric != 5:
        tags[338] = [1 if associated else 2]
    if tile:
        tags |= {322: [tile], 323: [tile], 324: places[:-1], 325: [len(block) for block in data]}
    else:
        tags |= {273: places[:-1], 278: [height if planes else 5], 279: [len(block) for block in data]}
    behind = places[-1] + 2 + 12 * len(tags) + 4
    directory, values = struct.pack(f"{order}H", len(tags)), b""
    for tag, numbers in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(numbers)}L", *numbers)
        if len(packed) > 4:
            packed, values = struct.pack(f"{order}L", behind + len(values)), values + packed
        directory += struct.pack(f"{order}HHL", tag, 4, len(numbers)) + packed
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return mark + struct.pack(f"{order}L", places[-1]) + b"".join(data) + directory + b"\0" * 4 + values
