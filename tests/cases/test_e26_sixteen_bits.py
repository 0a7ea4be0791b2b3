"""E26: a 16-bit picture keeps its greys: 255 of 65,535 is nearly black, never white."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hotloop.data.images.folder import ImageFolder

VALUES = [0, 255, 256, 32768, 65535]
SHARES = [0, 0.003891, 0.003906, 0.500008, 1.0]


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def colour_png() -> bytes:
    """The values in all three channels, which Pillow can neither write nor read in full."""
    pixels = np.repeat(np.array(VALUES, dtype=">u2"), 3).tobytes()
    head = struct.pack(">IIBBBBB", len(VALUES), 1, 16, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(b"\0" + pixels)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("kind", ["grey.png", "grey.tif", "big-endian.tif", "colour.png"])
def test_e26_sixteen_bits_are_kept(tmp_path: Path, kind: str) -> None:
    grey = Image.fromarray(np.array([VALUES], dtype=np.uint16))
    if kind == "colour.png":
        (tmp_path / kind).write_bytes(colour_png())
    elif kind == "big-endian.tif":
        Image.frombytes("I;16B", grey.size, np.array([VALUES], dtype=">u2").tobytes()).save(tmp_path / kind)
    else:
        grey.save(tmp_path / kind)
    (tmp_path / "targets.csv").write_text(f"image,target\n{kind},1\n")
    _, reader = ImageFolder(dir=tmp_path).open()
    found = reader.read(0)
    assert (reader.bits, found.dtype) == (16, np.uint16)
    for channel in range(3):
        np.testing.assert_allclose(found[0, :, channel] / 65535, SHARES, atol=1e-5)


def test_e26_read_as_8_bits_they_are_scaled(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(colour_png())
    (tmp_path / "targets.csv").write_text("image,target\na.png,1\n")
    _, reader = ImageFolder(dir=tmp_path, bits=8).open()
    assert reader.read(0)[0, :, 1].tolist() == [0, 1, 1, 128, 255]
