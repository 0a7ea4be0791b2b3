"""Augmentation: what torchvision does, drawn for each sample, the same in any batch and worker."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as vision

from hotloop.data.images.augment import (
    Augmentation,
    AugmentOptions,
    chances,
    coloured,
    cropped,
    erased,
    noised,
    rotated,
    shifted,
)
from hotloop.errors import UserError

ALL = {
    "crop": [0.5, 0.9], "shift": 0.2, "horizontal_flip": 0.5, "vertical_flip": 0.5, "rotate": 20, "brightness": 0.3,
    "contrast": 0.3, "saturation": 0.3, "hue": 0.1, "noise": 0.05, "erase": 0.5, "extra": [v2.RandomInvert()],
}  # fmt: skip


def smooth(count: int = 1, bits: int = 8, channels: int = 3) -> Any:
    """(B, 40, 50, C) without hard edges, and far from black and white."""
    chance = np.random.default_rng(1)
    small = chance.integers(60, 190, (count, 5, 6, channels)).astype(np.float32)
    tensor = torch.nn.functional.interpolate(
        torch.from_numpy(small).permute(0, 3, 1, 2), (40, 50), mode="bilinear", align_corners=False
    )
    scale = 1 if bits == 8 else 257
    return (tensor.permute(0, 2, 3, 1).numpy() * scale).round().astype(np.uint8 if bits == 8 else np.uint16)


def planes(picture: Any) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)


def difference(made: Any, wanted: torch.Tensor) -> int:
    return int(np.abs(made.astype(int) - wanted.permute(1, 2, 0).numpy().astype(int)).max())


def changed(pictures: Any, *, epoch: int = 0, ids: Any = None, seed: int = 1, **options: Any) -> Any:
    ids = np.arange(len(pictures)) if ids is None else np.asarray(ids)
    targets = np.ones((len(pictures), 2), dtype=np.float32)
    return Augmentation(AugmentOptions.of(options), seed=seed)(pictures.copy(), targets, epoch=epoch, ids=ids)


def test_each_change_is_that_of_torchvision() -> None:
    picture = smooth()[0]
    tensor = planes(picture)
    assert difference(cropped(picture, 3, 4, 30, 25), vision.resized_crop(tensor, 3, 4, 30, 25, [40, 50])) == 0
    padded = vision.pad(tensor, [9, 9, 9, 9], padding_mode="edge")
    for down, right in ((0, 0), (3, -4), (-5, 6), (9, 9), (-9, 0), (0, -9)):
        assert difference(shifted(picture, down, right), vision.crop(padded, 9 - down, 9 - right, 40, 50)) == 0
    bilinear = vision.InterpolationMode.BILINEAR
    inner = (slice(14, 26), slice(14, 36))  # torchvision fills the corners with black
    for degrees in (-20.0, 7.0, 90.0):
        turned = vision.rotate(tensor, degrees, interpolation=bilinear)
        assert difference(rotated(picture, degrees)[inner], turned[:, inner[0], inner[1]]) <= 1


@pytest.mark.parametrize("factors", [(1.2, 1, 1), (1, 0.8, 1), (1, 1, 1.3), (0.9, 1.1, 0.5), (0.8, 0.7, 0.0)])
@pytest.mark.parametrize(("channels", "bits"), [(3, 8), (3, 16), (1, 8)])
def test_colours_change_as_in_torchvision(factors: tuple[float, ...], channels: int, bits: int) -> None:
    picture = smooth(bits=bits, channels=channels)[0]
    white = 2**bits - 1
    wanted = planes(picture).to(torch.float32) / white  # on whole numbers torchvision cuts off after each step
    for change, factor in zip(
        (vision.adjust_brightness, vision.adjust_contrast, vision.adjust_saturation), factors, strict=True
    ):
        wanted = change(wanted, factor)
    assert difference(coloured(picture, *factors), wanted * white) <= (1 if bits == 8 else 12)


def test_brightness_ends_at_white() -> None:
    white = np.full((3, 3, 3), 250, dtype=np.uint8)
    assert (coloured(white, 1.5, 1, 1) == 255).all()
    assert (coloured(white, 0, 1, 1) == 0).all()


def test_noise_has_the_deviation_that_is_asked_for() -> None:
    grey = np.full((200, 210, 3), 128, dtype=np.uint8)
    noise = noised(grey, 0.1, np.random.default_rng(0)).astype(float) - 128
    assert noise.std() == pytest.approx(25.5, rel=0.02)
    assert abs(noise.mean()) < 0.5
    assert np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1] == pytest.approx(0, abs=0.02)


def test_erasing_leaves_the_mean_colour_in_a_rectangle() -> None:
    picture = smooth()[0]
    made = erased(picture, 0.5, 0.5, 0.3, 0.7)
    other = (made != picture).any(axis=2)
    rows, columns = np.flatnonzero(other.any(axis=1)), np.flatnonzero(other.any(axis=0))
    inside = made[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    assert 0.05 < inside.shape[0] * inside.shape[1] / (40 * 50) < 0.2
    assert (inside == picture.mean(axis=(0, 1)).round()).all()


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", ["everything", *ALL])
def test_a_sample_does_not_depend_on_its_batch_but_on_epoch_seed_and_number(name: str, bits: int) -> None:
    options = ALL if name == "everything" else {name: ALL[name]}
    if "flip" in name or name == "erase":
        options = {name: 0.5}
    pictures = np.repeat(smooth(bits=bits), 12, axis=0)
    whole, _ = changed(pictures, **options)
    parts = [changed(pictures[:5], ids=[7, 0, 11, 3, 3], **options)[0], changed(pictures[:1], ids=[4], **options)[0]]
    assert np.array_equal(parts[0], whole[[7, 0, 11, 3, 3]])
    assert np.array_equal(parts[1], whole[[4]])
    assert not all(np.array_equal(a, b) for a, b in pairwise(whole))
    assert not np.array_equal(changed(pictures, epoch=1, **options)[0], whole)
    assert not np.array_equal(changed(pictures, seed=2, **options)[0], whole)
    assert whole.dtype == pictures.dtype


def test_global_generators_are_left_alone() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[union-attr]
    changed(smooth(4), **ALL)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # type: ignore[arg-type]


def test_nothing_asked_for_changes_nothing() -> None:
    pictures = smooth(4)
    made, targets = changed(pictures, crop=None, shift=0, horizontal_flip=0.0, extra=None, flip_about=0)
    assert np.array_equal(made, pictures)
    assert (targets == 1).all()
    assert AugmentOptions.of({"crop": None, "shift": 0, "hue": None}).active == {}
    assert AugmentOptions.of(None).active == {}


def test_flips_turn_the_picture_and_the_sign_of_the_targets_if_asked() -> None:
    pictures = smooth(40)
    made, targets = changed(pictures, horizontal_flip=0.5, flip_about=0)
    flipped = np.array([np.array_equal(made[n], pictures[n][:, ::-1]) for n in range(40)])
    kept = np.array([np.array_equal(made[n], pictures[n]) for n in range(40)])
    assert (flipped ^ kept).all() and 8 < flipped.sum() < 32
    assert np.array_equal(targets, np.where(flipped[:, None], -1, 1).repeat(2, axis=1))
    assert (changed(pictures, horizontal_flip=1)[1] == 1).all()
    made, targets = changed(pictures, vertical_flip=1, flip_about=0)
    assert np.array_equal(made, pictures[:, ::-1]) and (targets == 1).all()


def test_an_option_does_not_move_the_draws_of_another() -> None:
    pictures = smooth(30)
    alone = changed(pictures, horizontal_flip=0.5, flip_about=0)[1]
    assert np.array_equal(changed(pictures, **{**ALL, "flip_about": 0})[1], alone)


def test_draws_are_uniform_and_unrelated() -> None:
    numbers = np.array([chance.numbers for chance in chances(3, 2, np.arange(20_000))])
    assert np.abs(numbers.mean(axis=0) - 0.5).max() < 0.01
    assert np.abs(numbers.std(axis=0) - 12**-0.5).max() < 0.01
    related = np.corrcoef(numbers.T) - np.eye(numbers.shape[1])
    assert np.abs(related).max() < 0.035
    other = np.array([chance.numbers for chance in chances(3, 3, np.arange(20_000))])
    assert abs(np.corrcoef(numbers[:, 0], other[:, 0])[0, 1]) < 0.035
    assert len({chance.key for chance in chances(3, 2, np.arange(20_000))}) == 20_000


def test_transforms_of_torchvision_work_on_pictures_of_either_depth() -> None:
    blur = v2.GaussianBlur(5, 2.0)
    made, _ = changed(smooth(2), extra=[blur])
    wanted = blur(planes(smooth(2)[1]))
    assert difference(made[1], wanted) == 0
    deep, _ = changed(smooth(2, bits=16), extra=[blur])
    assert difference(deep[1].astype(float) / 257, wanted) <= 1


@pytest.mark.parametrize("wrong", [v2.Resize(8), v2.ToDtype(torch.float32, scale=True), v2.ToPILImage()])
def test_a_transform_that_changes_the_form_is_told(wrong: Any) -> None:
    with pytest.raises(UserError, match=r"data\.augment\.extra: .* makes .* of a picture"):
        changed(smooth(1), extra=[wrong])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flip": 0.5}, "data.augment has no option 'flip'"),
        ({"rotat": 5}, "did you mean rotate"),
        ({"crop": 0.5}, "data.augment.crop"),
        ({"crop": [0.0, 1.0]}, "data.augment.crop"),
        ({"crop": [0.9, 0.8]}, "data.augment.crop"),
        ({"crop": [0.5, 1.5]}, "data.augment.crop"),
        ({"horizontal_flip": 2}, "data.augment.horizontal_flip"),
        ({"horizontal_flip": True}, "data.augment.horizontal_flip"),
        ({"shift": -0.1}, "data.augment.shift"),
        ({"rotate": 200}, "data.augment.rotate"),
        ({"brightness": "much"}, "data.augment.brightness"),
        ({"hue": 0.6}, "data.augment.hue"),
        ({"noise": float("nan")}, "data.augment.noise"),
        ({"flip_about": "right"}, "data.augment.flip_about"),
        ({"extra": "GaussianBlur"}, "data.augment.extra"),
        ({"extra": [3]}, "data.augment.extra"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        AugmentOptions.of(options)


def test_pictures_smaller_than_a_part_survive() -> None:
    for shape in ((1, 1), (1, 7), (2, 3)):
        picture = np.full((3, *shape, 3), 90, dtype=np.uint8)
        assert changed(picture, **ALL)[0].shape == picture.shape


def test_a_picture_of_pillow_is_taken_as_it_is() -> None:
    picture = np.asarray(Image.new("RGB", (9, 8), (1, 2, 3)))
    assert not picture.flags.writeable
    assert np.array_equal(cropped(picture, 1, 1, 4, 4), picture)
