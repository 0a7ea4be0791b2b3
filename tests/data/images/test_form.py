"""The form of pictures: any size and proportions become the promised numbers, and white stays white."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from hotloop.data.images.form import CHANNELS, FITS, PixelForm, picture_region, picture_size
from hotloop.errors import UserError


def drawn(*shape: int, bits: int = 8) -> Any:
    chance = np.random.default_rng(0)
    return chance.integers(0, 2**bits, (*shape, 3)).astype(np.uint8 if bits == 8 else np.uint16)


@pytest.mark.parametrize(("fit", "channels", "bits"), list(product(FITS, CHANNELS, (8, 16))))
@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (900, 1), (37, 41), (24, 30), (240, 301)])
def test_every_picture_gets_the_form(shape: tuple[int, int], fit: str, channels: str, bits: int) -> None:
    form = PixelForm((24, 30), fit=fit, channels=channels, bits=bits)
    picture = drawn(*shape, bits=bits)
    before = picture.copy()
    made = form.apply(picture)
    assert (made.shape, made.dtype, made.nbytes) == (form.shape, form.dtype, form.bytes)
    assert np.array_equal(made, form.apply(before))
    assert np.array_equal(picture, before)


@pytest.mark.parametrize("size", [(20, 20), (90, 70), (64, 200)])
def test_resizing_is_that_of_pillow(size: tuple[int, int]) -> None:
    picture = np.asarray(Image.fromarray(drawn(6, 8)).resize((80, 60), Image.Resampling.BICUBIC))
    wanted = np.asarray(Image.fromarray(picture).resize(size[::-1], Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(PixelForm(size).apply(picture) - wanted).max() <= 1
    deep = PixelForm(size, bits=16).apply(picture.astype(np.uint16) * np.uint16(257)).astype(int)
    assert np.abs(deep - 257 * wanted).max() <= 257


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", CHANNELS)
def test_black_and_white_stay_what_they_are(channels: str, bits: int) -> None:
    form = PixelForm((7, 9), channels=channels, bits=bits)
    for value in (0, form.largest):
        assert (form.apply(np.full((31, 20, 3), value, dtype=form.dtype)) == value).all()


def test_grey_is_that_of_pillow() -> None:
    picture = drawn(20, 30)
    grey = PixelForm((20, 30), channels="grey").apply(picture)
    assert np.array_equal(grey[..., 0], np.asarray(Image.fromarray(picture).convert("L")))


def test_cropping_keeps_the_middle_and_padding_all() -> None:
    picture = np.zeros((40, 100, 3), dtype=np.uint8)
    picture[:, 30:70] = 200
    assert (PixelForm((20, 20), fit="crop").apply(picture) == 200).all()
    picture[:] = 200
    padded = PixelForm((20, 20), fit="pad").apply(picture)
    assert (padded[6:14] == 200).all() and (padded[:6] == 0).all() and (padded[14:] == 0).all()
    assert (PixelForm((20, 20)).apply(picture) == 200).all()


def test_pictures_of_another_depth_are_refused() -> None:
    for wrong in (drawn(4, 4, bits=16), drawn(4, 4)[..., 0], drawn(4, 4)[..., :2]):
        with pytest.raises(ValueError, match="expected"):
            PixelForm((4, 4)).apply(wrong)


def test_threads_change_nothing() -> None:
    pictures = [drawn(133, 201), drawn(133, 201, bits=16)]
    forms = [PixelForm((64, 64), bits=bits) for bits in (8, 16)]
    one = [form.apply(picture) for form, picture in zip(forms, pictures, strict=True)]
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        four = [form.apply(picture) for form, picture in zip(forms, pictures, strict=True)]
    finally:
        torch.set_num_threads(threads)
    assert all(np.array_equal(a, b) for a, b in zip(one, four, strict=True))


def test_a_checkpoint_gives_the_form_back() -> None:
    form = PixelForm((24, 30), fit="pad", channels="grey", bits=16, alpha="black")
    assert PixelForm.from_saved({**form.saved(), "mean": [0.5], "std": [0.1]}) == form


@pytest.mark.parametrize(
    "change",
    [{"size": "big"}, {"size": [0, 3]}, {"fit": "squeeze"}, {"channels": "cmyk"}, {"bits": 12}, {"alpha": 3}, None],
)
def test_a_damaged_form_is_told(change: Any) -> None:
    saved = {**PixelForm((24, 30)).saved(), **(change or {})}
    if change is None:
        del saved["bits"]
    with pytest.raises(UserError, match="form of pictures cannot be read"):
        PixelForm.from_saved(saved)


def test_sizes_are_a_number_or_two() -> None:
    assert (picture_size(9, "data.size"), picture_size([4, 5], "data.size")) == ((9, 9), (4, 5))
    for wrong in (0, -1, True, 1.5, "9", [1], [1, 2, 3], [1, 0], [1, True], None):
        with pytest.raises(UserError, match=r"data\.size must be"):
            picture_size(wrong, "data.size")


def test_only_the_region_counts() -> None:
    picture = drawn(40, 60)
    form = PixelForm((10, 12), region=(0.5, 0.25, 1.0, 0.75))
    assert np.array_equal(form.apply(picture), PixelForm((10, 12)).apply(picture[20:40, 15:45]))
    assert form.at_least == (20, 24)  # a reduced picture still has enough pixels in the region
    assert PixelForm.from_saved(form.saved()) == form
    assert PixelForm((2, 2), region=(0.9, 0.9, 1.0, 1.0)).apply(drawn(1, 1)).shape == (2, 2, 3)


@pytest.mark.parametrize(
    "region",
    [[0, 0, 1], "all", 0.5, [0.5, 0, 0.5, 1], [0, 0, 1, 1.5], [-0.1, 0, 1, 1], [0, 0, 1, None], [False, 0, 1, 1]],
)
def test_a_region_that_is_none_is_refused_with_its_key(region: Any) -> None:
    with pytest.raises(UserError, match=r"data\.region must be \[top, left, bottom, right\]"):
        picture_region(region, "data.region")
