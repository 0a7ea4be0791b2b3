"""Pictures with 16 bits a channel keep all of them, whatever the layout of the file."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from hotloop.data.images.reading import PictureError, inspect_picture, read_picture
from tests.data.images.raw_files import png_file, tiff_file

NOISE = np.random.default_rng(0)
SHALLOW = NOISE.integers(0, 256, (13, 17, 3)).astype(np.uint8)
DEEP = NOISE.integers(0, 65536, (13, 37, 4)).astype(np.uint16)
DEEP[0, :5] = [[0] * 4, [255] * 4, [256] * 4, [32768] * 4, [65535] * 4]


def over(colours: NDArray[Any], opacity: NDArray[Any], behind: int) -> NDArray[Any]:
    """Composited in floating point."""
    share = opacity.astype(float) / 65535
    return np.rint(colours * share + behind * (1 - share))


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_of_16_bits(tmp_path: Path, channels: int, interlaced: bool) -> None:
    samples = DEEP[..., [0, 3]] if channels == 2 else DEEP[..., :channels]
    (tmp_path / "a.png").write_bytes(png_file(samples, interlaced=interlaced))
    colours = samples if channels % 2 else over(samples[..., :-1], samples[..., -1:], 65535)
    found = read_picture(tmp_path / "a.png", bits=16)
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found, np.broadcast_to(colours, (13, 37, 3)))
    assert inspect_picture(tmp_path / "a.png").bits == 16


def test_one_transparent_colour_of_16_bits_is_compared_in_full(tmp_path: Path) -> None:
    samples = np.array([[[1, 2, 3], [1, 2, 259]]], dtype=np.uint16)
    (tmp_path / "a.png").write_bytes(png_file(samples, transparent=struct.pack(">3H", 1, 2, 259)))
    assert read_picture(tmp_path / "a.png", bits=16).tolist() == [[[1, 2, 3], [65535] * 3]]
    (tmp_path / "g.png").write_bytes(png_file(samples[..., 2:], transparent=struct.pack(">H", 3)))
    assert read_picture(tmp_path / "g.png", bits=16, alpha="black")[0, :, 0].tolist() == [0, 259]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"deflate": True},
        {"deflate": True, "predictor": True},
        {"tile": 16},
        {"tile": 16, "deflate": True, "predictor": True},
    ],
    ids=str,
)
def test_tiff_of_16_bits(tmp_path: Path, order: str, layout: dict[str, Any]) -> None:
    def found(samples: NDArray[Any], photometric: int, **options: Any) -> NDArray[Any]:
        data = tiff_file(samples, photometric=photometric, order=order, **layout, **options)
        (tmp_path / "a.tif").write_bytes(data)
        assert inspect_picture(tmp_path / "a.tif").bits == 16
        return read_picture(tmp_path / "a.tif", bits=16)

    colours, opacity = DEEP[..., :3], DEEP[..., 3:]
    grey = np.repeat(DEEP[..., :1], 3, axis=2)
    np.testing.assert_array_equal(found(colours, 2), colours)
    np.testing.assert_array_equal(found(DEEP[..., :1], 1), grey)
    np.testing.assert_array_equal(found(DEEP[..., :1], 0), 65535 - grey)
    np.testing.assert_array_equal(found(DEEP, 2), over(colours, opacity, 65535))
    np.testing.assert_array_equal(found(DEEP[..., [0, 3]], 1), over(grey, opacity, 65535))
    light = (65535.0 - colours) * (65535.0 - opacity) / 65535
    np.testing.assert_array_equal(found(DEEP, 5), np.rint(light))
    if "tile" not in layout:
        np.testing.assert_array_equal(found(colours, 2, planes=True), colours)


def test_colours_that_were_multiplied_by_alpha(tmp_path: Path) -> None:
    share = DEEP[..., 3:] / 65535
    premultiplied = np.concatenate([np.rint(DEEP[..., :3] * share), DEEP[..., 3:]], axis=2).astype(np.uint16)
    (tmp_path / "a.tif").write_bytes(tiff_file(premultiplied, photometric=2, associated=True))
    expected = DEEP[..., :3] * share + 65535 * (1 - share)
    assert np.abs(read_picture(tmp_path / "a.tif", bits=16) - expected).max() <= 1.5


@pytest.mark.parametrize("orientation", range(1, 9))
def test_tiff_of_16_bits_is_turned_upright(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    Image.fromarray(SHALLOW).save(tmp_path / "a.png", exif=exif)
    deep = tiff_file(SHALLOW.astype(np.uint16) * 257, photometric=2, orientation=orientation)
    (tmp_path / "a.tif").write_bytes(deep)
    upright = read_picture(tmp_path / "a.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "a.tif"), upright)
    assert inspect_picture(tmp_path / "a.tif").height == upright.shape[0]


def test_other_depths_are_scaled_and_never_clipped(tmp_path: Path) -> None:
    every = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    Image.fromarray(every).save(tmp_path / "deep.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "deep.png")[..., 0], np.rint(every / 257))
    Image.fromarray(SHALLOW).save(tmp_path / "shallow.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "shallow.png", bits=16), SHALLOW.astype(np.uint16) * 257)


@pytest.mark.parametrize(
    ("bits", "kind", "dtype", "told"),
    [(32, 3, "f4", "floating-point numbers of 32"), (16, 2, "i2", "signed numbers of 16"), (32, 1, "u4", "of 32 bits")],
)
def test_numbers_without_black_and_white_are_refused(
    tmp_path: Path, bits: int, kind: int, dtype: str, told: str
) -> None:
    samples = np.ones((4, 4, 1), dtype=dtype)
    (tmp_path / "a.tif").write_bytes(tiff_file(samples, photometric=1, bits=bits, kind=kind))
    for read in (read_picture, inspect_picture):
        with pytest.raises(PictureError, match=rf"a\.tif: TIFF with .*{told}"):
            read(tmp_path / "a.tif")
