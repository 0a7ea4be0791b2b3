"""Turned digits: known angles, no digit in two splits, the same for the same seed."""

import pickle
import sys

import numpy as np
import pytest
from PIL import Image

from hotloop.data.images.digits import Digits
from hotloop.errors import UserError


def turned_back(picture: np.ndarray, angle: float) -> np.ndarray:
    """The picture with `angle` degrees clockwise undone."""
    return np.asarray(Image.fromarray(picture).rotate(angle, Image.Resampling.BICUBIC)).astype(float)


def test_the_angle_is_what_the_digit_was_turned_by() -> None:
    table, reader = Digits(copies=2, size=64).open()
    for first in range(0, 40, 2):  # two pictures of one digit
        upright = [turned_back(reader.read(n), table.targets[n, 0]) for n in (first, first + 1)]
        wrong = [turned_back(reader.read(n), -table.targets[n, 0]) for n in (first, first + 1)]
        assert np.abs(upright[0] - upright[1]).mean() < 4
        if abs(table.targets[first, 0] - table.targets[first + 1, 0]) > 20:
            assert np.abs(wrong[0] - wrong[1]).mean() > 8


def test_a_digit_turned_by_nothing_is_scikit_learns() -> None:
    from sklearn.datasets import load_digits

    table, reader = Digits(size=80, max_angle=1e-6).open()
    assert table.groups is not None
    for number in (0, 1000):
        # 8 of the 10 pixels of the digit with its margin, which fill 0.9 of the picture.
        inner = (
            Image.fromarray(reader.read(number)[:, :, 0]).crop((11, 11, 69, 69)).resize((8, 8), Image.Resampling.BOX)
        )
        expected = load_digits().images[table.groups[number]] * 255 / 16
        assert np.corrcoef(np.asarray(inner).ravel(), expected.ravel())[0, 1] > 0.97


def test_angles_are_uniform_and_within_their_limit() -> None:
    table, _ = Digits(copies=4, max_angle=30).open()
    angles = np.sort(table.targets[:, 0])
    assert table.names == ("angle",) and len(angles) == 4 * 1797
    assert np.abs(angles - np.linspace(-30, 30, len(angles))).max() < 1.2


def test_no_digit_is_in_two_splits() -> None:
    table, reader = Digits(copies=3, valid=150, test=250).open()
    assert table.split is not None and table.groups is not None and len(reader) == len(table) == 3 * 1797
    assert np.bincount(table.split).tolist() == [3 * 1397, 450, 750]
    parts = [set(table.groups[table.split == place].tolist()) for place in range(3)]
    assert sum(len(part) for part in parts) == len(set.union(*parts)) == 1797


def test_the_same_seed_gives_the_same_pictures() -> None:
    (table, reader), (again, copy), (other, _) = (Digits(seed=seed).open() for seed in (1, 1, 2))
    copy = pickle.loads(pickle.dumps(copy))
    assert np.array_equal(table.targets, again.targets) and not np.array_equal(table.targets, other.targets)
    assert all(np.array_equal(reader.read(number), copy.read(number)) for number in (1700, 3, 400))


def test_the_fingerprint_tells_every_option() -> None:
    options = [{}, {"copies": 2}, {"valid": 7}, {"test": 7}, {"size": 33}, {"seed": 7}, {"max_angle": 44.0}]
    assert len({Digits(**option).open()[1].fingerprint() for option in options}) == len(options)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [8, 33, 200])
def test_any_size(size: int) -> None:
    table, reader = Digits(size=size, valid=0, test=0).open()
    picture = reader.read(5, at_least=(4, 4))
    assert picture.shape == (size, size, 3) and picture.dtype == np.uint8 and picture.max() > 150
    assert picture[0].max() < 60  # nothing is cut off
    assert table.split is not None and not table.split.any()
    assert reader.name(5) == f"digit {table.groups[5]} turned by {table.targets[5, 0]:.1f} degrees"  # type: ignore[index]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"copies": 0}, "data.source.copies=0: must be a whole number from 1 to 1,000"),
        ({"valid": 801}, "data.source.valid=801: must be a whole number from 0 to 800"),
        ({"size": None}, "data.source.size=None"),
        ({"max_angle": 0}, "data.source.max_angle=0: must be a number of degrees above 0, up to 180"),
        ({"max_angle": float("nan")}, "data.source.max_angle=nan"),
        ({"max_angle": "wide"}, "data.source.max_angle='wide'"),
    ],
)
def test_options_out_of_range_are_told_in_one_line(options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Digits(**options)


def test_without_scikit_learn_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(UserError, match=r"pip install 'hotloop\[digits\]'"):
        Digits().open()
