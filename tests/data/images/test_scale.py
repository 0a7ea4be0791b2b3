"""Scales of targets and pixels."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop.data.images import scale as module
from hotloop.data.images.decoding import ReadPictures
from hotloop.data.images.form import PixelForm
from hotloop.data.images.scale import Scale, pixel_scale, target_scale
from hotloop.errors import UserError
from tests.data.images.made_pictures import MadeSource


def measured(tmp_path: Path, *, kind: str = "dataset", form: PixelForm, numbers: Any, count: int = 30) -> Scale:
    pictures = ReadPictures(MadeSource(count, bits=form.bits).reader, form)
    return pixel_scale(kind, pictures, np.asarray(numbers), form, memo=tmp_path / "x" / "memo.json", key=lambda: "a")


def test_targets_get_mean_and_deviation_of_each() -> None:
    values = np.random.default_rng(0).normal(size=(50, 2)) * [3, 1e-6] + [1, 40]
    scale = target_scale(("a", "b"), values)
    assert scale.mean == pytest.approx(values.mean(axis=0))
    assert scale.std == pytest.approx(values.std(axis=0), rel=1e-6)


def test_a_constant_target_is_told_and_its_deviation_is_one(caplog: pytest.LogCaptureFixture) -> None:
    assert target_scale(("a", "b"), np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 3.0]])).std == pytest.approx(
        [1.0, 0.8165], rel=1e-4
    )
    assert "target a is 0.1 in all 3" in caplog.text and "target b" not in caplog.text
    assert target_scale(("a",), np.array([[4.0]])) == ([4.0], [1.0])


def test_numbers_that_float32_cannot_hold_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(UserError, match="target a: 1e\\+60 is too large"):
        target_scale(("a",), np.array([[1e60], [0.0]]))
    target_scale(("time",), 1.7e9 + np.arange(5.0)[:, None])
    assert "target time: values near 1.7e+09 differ too little" in caplog.text


@pytest.mark.parametrize("channels", ["rgb", "grey"])
@pytest.mark.parametrize("bits", [8, 16])
def test_pixels_are_measured_on_the_training_pictures(tmp_path: Path, bits: int, channels: str) -> None:
    form = PixelForm((8, 6), bits=bits, channels=channels)
    numbers = np.array([1, 5, 29, 4])
    values = ReadPictures(MadeSource(30, bits=bits).reader, form).gather(numbers).astype(float) / form.largest
    scale = measured(tmp_path, form=form, numbers=numbers)
    assert scale.mean == pytest.approx(values.mean(axis=(0, 1, 2)), rel=1e-5)
    assert scale.std == pytest.approx(values.std(axis=(0, 1, 2)), rel=1e-5)


def test_many_pictures_are_sampled_evenly_and_the_result_remembered(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "_SAMPLE", 4)
    form = PixelForm((8, 6))
    some = measured(tmp_path, form=form, numbers=np.arange(30))
    assert some == measured(tmp_path / "new", form=form, numbers=[0, 9, 19, 29])
    monkeypatch.setattr(module, "_measured", None)  # would fail
    assert measured(tmp_path, form=form, numbers=np.arange(30)) == some
    with pytest.raises(TypeError):
        measured(tmp_path, form=form, numbers=np.arange(29))


@pytest.mark.parametrize(
    ("kind", "mean", "std"),
    [
        ("none", [0.0] * 3, [1.0] * 3),
        ("half", [0.5] * 3, [0.5] * 3),
        ("imagenet", [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ],
)
def test_fixed_scales(tmp_path: Path, kind: str, mean: list[float], std: list[float]) -> None:
    assert measured(tmp_path, kind=kind, form=PixelForm((8, 6)), numbers=[1]) == (mean, std)
    grey = measured(tmp_path, kind=kind, form=PixelForm((8, 6), channels="grey"), numbers=[1])
    assert [len(values) for values in grey] == [1, 1]
    assert min(mean) <= grey.mean[0] <= max(mean)


def test_pictures_of_one_colour_can_be_normalised(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Black:
        def __len__(self) -> int:
            return 3

        def gather(self, numbers: Any) -> Any:
            return np.zeros((len(numbers), 4, 4, 3), dtype=np.uint8)

    scale = pixel_scale(
        "dataset", Black(), np.arange(3), PixelForm((4, 4)), memo=tmp_path / "memo.json", key=lambda: "b"
    )
    assert scale == ([0.0] * 3, [1.0] * 3)
    assert "one colour" in caplog.text


def test_a_memo_that_cannot_be_written_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "x").write_text("")
    assert measured(tmp_path, form=PixelForm((8, 6)), numbers=[1]).std[0] > 0
    assert "cannot write" in caplog.text
