"""Real awkward files: each does what its README says."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hotloop.data.images.files import PictureFiles
from hotloop.data.images.folder import ImageFolder
from hotloop.data.images.locating import scan_pictures
from hotloop.errors import UserError

GOOD = {  # name: (height, width)
    "UPPER_CASE.JPG": (480, 640),
    "animated.gif": (1000, 1000),
    "cmyk.jpg": (100, 100),
    "exif_rotated_6.jpg": (1800, 1200),
    "gray16.png": (256, 256),
    "gray_alpha.png": (256, 256),
    "palette_alpha.png": (150, 162),
    "png_named.jpg": (150, 162),
    "progressive.jpg": (240, 320),
    "rgba.png": (150, 162),
    "été à la plage (1).jpg": (480, 640),
}
BAD = {
    "broken.png": "damaged PNG",
    "decompression_bomb.gif": "claims 4,364,696,535 pixels",
    "html_error_page.jpg": "an HTML page, not a picture",
    "truncated.jpg": "cut off",
    "zero_bytes.jpg": "empty",
}


@pytest.fixture
def reader(shared_data: Path, tmp_path: Path) -> PictureFiles:
    names = [*GOOD, *BAD]
    (tmp_path / "t.csv").write_text(
        "image,target\n" + "".join(f"{name},{number}\n" for number, name in enumerate(names)), encoding="utf-8"
    )
    folder = shared_data / "awkward-images"
    table, reader = ImageFolder(dir=folder, targets=tmp_path / "t.csv", bits=8, cache_dir=tmp_path / "cache").open()
    assert table.targets[:, 0].tolist() == list(range(len(names)))
    return reader


def read(reader: PictureFiles, name: str, at_least: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    return reader.read([*GOOD, *BAD].index(name), at_least)


def test_good_ones_are_read_upright(reader: PictureFiles) -> None:
    for name, size in GOOD.items():
        assert read(reader, name).shape == (*size, 3), name


def test_bad_ones_are_named_with_their_row(reader: PictureFiles) -> None:
    broken = reader.broken()
    assert [reader.name(number) for number in broken] == list(BAD)
    for number, (name, reason) in enumerate(BAD.items(), start=len(GOOD)):
        assert broken[number].startswith(f"{name} (t.csv, line {number + 2}): ")
        assert reason in broken[number]
        with pytest.raises(UserError, match=r"t\.csv, line") as told:
            reader.read(number)
        assert str(told.value) == broken[number]


def test_colours(reader: PictureFiles) -> None:
    red = read(reader, "cmyk.jpg")  # the word RED in red on black
    assert red[40:60].reshape(-1, 3).max(axis=0).tolist()[0] > 200
    assert red[..., 1:].max() < 40
    assert (read(reader, "animated.gif") == [255, 0, 0]).all()
    ramp = read(reader, "gray16.png")[128, :, 0].astype(int)
    assert np.abs(ramp - np.arange(256)).max() <= 1  # clipped to 8 bits it would be white nearly everywhere
    toucan, palette = (read(reader, name).astype(int) for name in ("rgba.png", "palette_alpha.png"))
    assert (toucan[0, 0] == 255).all()
    assert np.abs(toucan - palette).mean() < 8
    np.testing.assert_array_equal(read(reader, "png_named.jpg"), toucan)
    grey_alpha = read(reader, "gray_alpha.png")
    assert (grey_alpha[..., 0] == grey_alpha[..., 2]).all()


def test_the_sideways_photograph_stands(reader: PictureFiles) -> None:
    small = read(reader, "exif_rotated_6.jpg", (450, 300))
    assert small.shape == (450, 300, 3)
    sky, ground = small[:150].mean(), small[-100:].mean()
    assert sky > ground + 30


def test_scans_leave_what_is_no_picture_alone(shared_data: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert sorted(scan_pictures(shared_data / "awkward-images")) == sorted([*GOOD, *BAD])
    assert "3 files that are no pictures are left alone" in caplog.text
    assert "1 .db" in caplog.text
