"""Pictures of every kind give the right numbers, upright; what cannot be read says why."""

import os
import random
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from hotloop.data.images import reading
from hotloop.data.images.reading import PictureError, inspect_picture, read_picture
from hotloop.data.images.unreadable import reason_for
from tests.data.images.raw_files import png_chunk, png_file, tiff_file

NOISE = np.random.default_rng(0)
COLOURS = NOISE.integers(0, 256, (13, 17, 3)).astype(np.uint8)
DEEP = NOISE.integers(0, 65536, (13, 37, 4)).astype(np.uint16)


def photograph(height: int = 64, width: int = 96) -> Image.Image:
    """Smooth, so that a JPEG of it is close to it."""
    y, x = np.mgrid[:height, :width]
    waves = [128 + 100 * np.sin(x / 9 + y / 13), 128 + 90 * np.cos(y / 7), x * 255 / width]
    return Image.fromarray(np.stack(waves, axis=-1).astype(np.uint8))


def saved(path: Path, picture: Image.Image, **options: Any) -> Path:
    picture.save(path, **options)
    return path


def over(colours: NDArray[Any], opacity: NDArray[Any], behind: int) -> NDArray[Any]:
    """Composited in floating point."""
    share = opacity.astype(float) / 255
    return np.rint(colours * share + behind * (1 - share))


# ---- formats and modes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (37, 21)])
@pytest.mark.parametrize(
    ("ending", "options"),
    [("png", {}), ("bmp", {}), ("tif", {}), ("tif", {"compression": "tiff_lzw"}), ("webp", {"lossless": True})],
)
def test_lossless_formats_give_the_very_numbers(
    tmp_path: Path, size: tuple[int, int], ending: str, options: dict[str, Any]
) -> None:
    pixels = NOISE.integers(0, 256, (*size, 3)).astype(np.uint8)
    path = saved(tmp_path / f"a.{ending}", Image.fromarray(pixels), **options)
    found = read_picture(path)
    assert found.dtype == np.uint8
    assert found.flags.c_contiguous
    assert found.flags.writeable
    np.testing.assert_array_equal(found, pixels)
    info = inspect_picture(path)
    assert (info.bits, info.height, info.width) == (8, *size)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK"])
@pytest.mark.parametrize("ending", ["png", "tif", "gif", "bmp", "jpg"])
def test_modes_are_converted_as_pillow_shows_them(tmp_path: Path, mode: str, ending: str) -> None:
    allowed = {"jpg": ("L", "RGB", "CMYK"), "tif": ("1", "L", "P", "RGB", "CMYK"), "gif": ("1", "L", "P")}
    if mode not in allowed.get(ending, ("1", "L", "P", "RGB")):
        return
    path = saved(tmp_path / f"a.{ending}", photograph().convert(mode))
    with Image.open(path) as image:
        np.testing.assert_array_equal(read_picture(path), np.asarray(image.convert("RGB")))


def test_adobe_cmyk_is_not_shown_inverted(tmp_path: Path) -> None:
    red = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    found = read_picture(saved(tmp_path / "a.jpg", red, quality=100))
    assert np.abs(found.astype(int) - [255, 0, 0]).max() <= 3


def test_the_content_says_what_a_file_is(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.jpg", Image.fromarray(COLOURS), format="PNG")
    np.testing.assert_array_equal(read_picture(path), COLOURS)
    assert inspect_picture(path).format == "PNG"


def test_the_first_frame_is_read(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (9, 5), colour) for colour in ((255, 0, 0), (0, 255, 0))]
    for ending in ("gif", "webp", "tif"):
        options = {"lossless": True} if ending == "webp" else {}
        path = saved(tmp_path / f"a.{ending}", frames[0], save_all=True, append_images=frames[1:], **options)
        assert (read_picture(path) == [255, 0, 0]).all(), ending


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    ("ending", "options"),
    [("jpg", {"quality": 95, "subsampling": 0}), ("png", {}), ("webp", {"lossless": True}), ("tif", {})],
)
def test_pictures_are_turned_upright(tmp_path: Path, orientation: int, ending: str, options: dict[str, Any]) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    path = saved(tmp_path / f"a.{ending}", photograph(), exif=exif, **options)
    with Image.open(path) as image:
        upright = np.asarray(ImageOps.exif_transpose(image))
    np.testing.assert_array_equal(read_picture(path), upright)
    info = inspect_picture(path)
    assert (info.height, info.width) == upright.shape[:2] == ((64, 96) if orientation < 5 else (96, 64))


def test_orientation_behind_the_pixels_of_a_png_counts(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6
    chunk = png_chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0"))
    for name, options in (("early", {"early": chunk}), ("late", {"late": chunk})):
        (tmp_path / name).write_bytes(png_file(DEEP[..., :3], **options))
        assert inspect_picture(tmp_path / name).height == 37
        np.testing.assert_array_equal(read_picture(tmp_path / name, bits=16), np.rot90(DEEP[..., :3], -1))


def test_damaged_orientation_counts_as_none(tmp_path: Path) -> None:
    note = PngInfo()
    note.add_text("Raw profile type exif", "\nexif\n  4\nno hexadecimal digits")
    path = saved(tmp_path / "a.png", photograph(), pnginfo=note)
    np.testing.assert_array_equal(read_picture(path), np.asarray(photograph()))
    assert inspect_picture(path).width == 96
    exif = Image.Exif()
    exif[274] = 99
    assert read_picture(saved(tmp_path / "a.jpg", photograph(), exif=exif)).shape == (64, 96, 3)


# ---- alpha ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "behind"), [("white", 255), ("grey", 128), ("black", 0), ("drop", None)])
def test_transparent_pixels_show_the_background(tmp_path: Path, alpha: str, behind: int | None) -> None:
    pixels = NOISE.integers(0, 256, (32, 32, 4)).astype(np.uint8)
    pixels[0, 0, 3], pixels[0, 1, 3] = 0, 255
    colours, opacity = pixels[..., :3], pixels[..., 3:]
    found = read_picture(saved(tmp_path / "a.png", Image.fromarray(pixels)), alpha=alpha)
    expected = colours if behind is None else over(colours, opacity, behind)
    np.testing.assert_array_equal(found, expected)
    grey = read_picture(saved(tmp_path / "la.png", Image.fromarray(pixels[..., [0, 3]], "LA")), alpha=alpha)
    np.testing.assert_array_equal(grey, np.repeat(expected[..., :1], 3, axis=2))


def test_transparency_of_palettes_greys_and_colours(tmp_path: Path) -> None:
    palette = Image.fromarray(np.array([[0, 1, 2]], dtype=np.uint8), "P")
    palette.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90])
    one = read_picture(saved(tmp_path / "one.png", palette, transparency=1))
    assert one.tolist() == [[[10, 20, 30], [255, 255, 255], [70, 80, 90]]]
    half = read_picture(saved(tmp_path / "half.png", palette, transparency=b"\x00\xff\x80"), alpha="black")
    assert half.tolist() == [[[0, 0, 0], [40, 50, 60], [35, 40, 45]]]
    grey = Image.fromarray(np.array([[5, 6]], dtype=np.uint8))
    assert read_picture(saved(tmp_path / "grey.png", grey, transparency=6))[0, :, 0].tolist() == [5, 255]
    colour = Image.fromarray(np.array([[[1, 2, 3], [1, 2, 4]]], dtype=np.uint8))
    clear = saved(tmp_path / "rgb.png", colour, transparency=(1, 2, 4))
    assert read_picture(clear).tolist() == [[[1, 2, 3], [255, 255, 255]]]
    assert read_picture(clear, alpha="drop").tolist() == [[[1, 2, 3], [1, 2, 4]]]


@pytest.mark.parametrize(("bits", "step"), [(1, 255), (2, 85), (4, 17)])
def test_a_transparent_grey_of_few_bits(tmp_path: Path, bits: int, step: int) -> None:
    values = np.arange(64).reshape(8, 8) % 2**bits
    packed = np.packbits(np.unpackbits(values[..., None].astype(np.uint8), axis=-1)[..., -bits:].reshape(8, -1), axis=1)
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, bits, 0, 0, 0, 0))
    clear = png_chunk(b"tRNS", struct.pack(">H", 1))
    pixels = png_chunk(b"IDAT", zlib.compress(b"".join(b"\0" + line.tobytes() for line in packed)))
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + head + clear + pixels + png_chunk(b"IEND", b""))
    expected = np.where(values == 1, 128, values * step)
    np.testing.assert_array_equal(read_picture(tmp_path / "a.png", alpha="grey")[..., 0], expected)


# ---- reduced decoding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize(
    ("at_least", "size"),
    [(None, (480, 640)), ((480, 640), (480, 640)), ((241, 320), (480, 640)), ((240, 320), (240, 320)),
     ((120, 100), (120, 160)), ((60, 80), (60, 80)), ((1, 1), (60, 80)), ((1000, 1), (480, 640))],
)  # fmt: skip
def test_jpegs_come_reduced_but_no_smaller_than_asked_for(
    tmp_path: Path, grey: bool, at_least: tuple[int, int] | None, size: tuple[int, int]
) -> None:
    picture = photograph(480, 640)
    path = saved(tmp_path / "a.jpg", picture.convert("L" if grey else "RGB"), quality=95)
    found = read_picture(path, at_least=at_least)
    assert found.shape == (*size, 3)
    shrunk = picture.convert("L").convert("RGB") if grey else picture
    shrunk = shrunk.resize(size[::-1], Image.Resampling.BOX)
    assert np.abs(found.astype(int) - np.asarray(shrunk)).mean() < 2
    np.testing.assert_array_equal(found, read_picture(path, at_least=at_least))


def test_at_least_is_of_the_upright_picture(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6
    path = saved(tmp_path / "a.jpg", photograph(160, 320), exif=exif)
    assert read_picture(path, at_least=(160, 80)).shape == (160, 80, 3)
    assert read_picture(path, at_least=(80, 160)).shape == (320, 160, 3)


@pytest.mark.parametrize(
    ("mode", "options"), [("RGB", {}), ("L", {}), ("RGB", {"progressive": True, "subsampling": 0})]
)
def test_the_fast_decoder_agrees_with_pillow(
    tmp_path: Path, mode: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path / "a.jpg", photograph(61, 83).convert(mode), **options)
    fast = read_picture(path)
    assert reading._whole_jpeg_decoder() is not None
    monkeypatch.setattr(reading, "_whole_jpeg_decoder", lambda: None)
    np.testing.assert_array_equal(fast, read_picture(path))


# ---- what cannot be read -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html>404</html>", "an HTML page, not a picture"),
        (b"\n <HTML>", "an HTML page"),
        (b'<?xml version="1.0"?><svg/>', "SVG"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\0\0\0\x18ftypheic", "HEIC"),
        (b"\0\0\0\x18ftypmp42", "video"),
        (b"%PDF-1.4", "PDF"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "PostScript"),
        (b"P6 2 2 255\n", "Netpbm"),
        (b"hello\n", "content is text"),
        (bytes(range(128, 200)), "no format that is read here"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "damaged PNG"),
        (b"\xff\xd8\xff\xe0", "JPEG"),
        (b"II*\0\x08\0\0\0", "TIFF"),
    ],
)
def test_files_that_are_no_pictures_say_what_they_are(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "a.jpg").write_bytes(content)
    for read in (read_picture, inspect_picture):
        with pytest.raises(PictureError, match=told) as caught:
            read(tmp_path / "a.jpg")
        assert str(caught.value).startswith(f"{tmp_path / 'a.jpg'}: {caught.value.reason}")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "link.jpg").symlink_to("nowhere.jpg")
    os.mkfifo(tmp_path / "pipe.jpg")
    names = (("none", "no such file"), ("folder", "folder"), ("link", "link"), ("pipe", "pipe"))
    for name, told in ((f"{name}.jpg", told) for name, told in names):
        with pytest.raises(PictureError, match=rf"{name}: .*{told}"):
            read_picture(tmp_path / name)
    assert "permission denied" in reason_for(PermissionError(13, "no"), b"", tmp_path)


def test_pictures_of_stereo_cameras(tmp_path: Path) -> None:
    path = tmp_path / "a.mpo"
    photograph().save(path, save_all=True, append_images=[Image.new("RGB", (96, 64))], quality=95)
    assert inspect_picture(path).format == "MPO"
    assert np.abs(read_picture(path).astype(int) - np.asarray(photograph())).mean() < 2


def test_a_bitmap_whose_alpha_was_never_set_is_opaque(tmp_path: Path) -> None:
    colours = np.dstack([COLOURS, np.zeros((13, 17), np.uint8)])
    masks = struct.pack("<4L", 0xFF, 0xFF00, 0xFF0000, 0xFF000000)
    head = struct.pack("<LllHHLLllLL", 108, 17, -13, 1, 32, 3, 0, 0, 0, 0, 0) + masks + bytes(52)
    data = b"BM" + struct.pack("<LHHL", 122 + colours.size, 0, 0, 122) + head + colours.tobytes()
    (tmp_path / "a.bmp").write_bytes(data)
    np.testing.assert_array_equal(read_picture(tmp_path / "a.bmp"), COLOURS)


@pytest.mark.parametrize("ending", ["jpg", "png", "webp", "gif", "bmp", "tif"])
def test_cut_off_files_are_refused(tmp_path: Path, ending: str) -> None:
    path = saved(tmp_path / f"a.{ending}", Image.fromarray(NOISE.integers(0, 256, (60, 60, 3)).astype(np.uint8)))
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(PictureError):
        read_picture(path)


@pytest.mark.parametrize("kind", ["png", "deep png", "deep tiff"])
def test_headers_that_claim_enormous_sizes_are_refused(tmp_path: Path, kind: str) -> None:
    if kind == "deep tiff":
        data = tiff_file(DEEP, photometric=2)
        for tag, size in ((256, 37), (257, 13)):
            data = data.replace(struct.pack("<HHLL", tag, 4, 1, size), struct.pack("<HHLL", tag, 4, 1, 100_000))
    else:
        whole = png_file(DEEP) if kind == "deep png" else saved(tmp_path / "b", photograph(), format="PNG").read_bytes()
        head = png_chunk(b"IHDR", struct.pack(">II", 100_000, 100_000) + whole[24:29])
        data = whole[:8] + head + whole[33:]
    (tmp_path / "a").write_bytes(data)
    for read in (read_picture, inspect_picture):
        with pytest.raises(PictureError, match="claims 10,000,000,000 pixels"):
            read(tmp_path / "a")


def test_damage_that_leads_outside_the_file_is_damage(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_bytes(b"II+\0\x08\0\0\0" + b"\xff" * 8 + bytes(40))
    for read in (read_picture, inspect_picture):
        with pytest.raises(PictureError, match="damaged TIFF"):
            read(tmp_path / "a.tif")


def test_altered_bytes_never_raise_anything_else(tmp_path: Path) -> None:
    whole = [
        saved(tmp_path / f"w.{ending}", Image.fromarray(COLOURS)).read_bytes()
        for ending in ("jpg", "png", "webp", "gif", "bmp", "tif")
    ]
    whole += [png_file(DEEP), tiff_file(DEEP[..., :3], photometric=2, deflate=True, predictor=True)]
    chosen = random.Random(0)
    for number in range(300):
        data = bytearray(chosen.choice(whole))
        if number % 3:
            for _ in range(chosen.choice((1, 3, 20))):
                data[chosen.randrange(min(len(data), 400))] = chosen.randrange(256)
        else:
            del data[chosen.randrange(len(data)) :]
        (tmp_path / "a").write_bytes(data)
        for read in (inspect_picture, read_picture):
            try:
                read(tmp_path / "a")
            except PictureError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize("read", [read_picture, inspect_picture])
def test_nothing_warns_and_no_file_stays_open(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5000)  # Pillow warns of more
    paths = saved(tmp_path / "a.png", photograph()), saved(tmp_path / "a.jpg", photograph())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in paths:
            read(path)


def test_options_that_are_none(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", photograph())
    for options in ({"bits": 12}, {"alpha": "pink"}):
        with pytest.raises(ValueError, match=str(next(iter(options.values())))):
            read_picture(path, **options)  # type: ignore[arg-type]
