"""Epochs in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.callbacks.tables import epoch_line, epoch_name, number, percent, shown_metrics, speed

RECORD: dict[str, Any] = {
    "epoch": 0, "seconds": 10.0, "data_wait_s": 1.2, "validation_s": 2.0, "checkpoint_s": 0.5,
    "samples_per_s": 1234.4, "tokens_per_s": None, "train_loss": 0.51234, "metrics": {"val/loss": 0.123456},
}  # fmt: skip


def test_a_line_says_what_an_epoch_came_to() -> None:
    line = epoch_line(RECORD, epochs=6, step=94)
    assert line == "epoch 1/6 · step 94 · 12.5 s · 1 234 samples/s · data wait 12 % · loss 0.512 · val/loss 0.1235"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"tokens_per_s": 99.6}, "100 tokens/s"),
        ({"samples_per_s": None}, "– samples/s"),
        ({"data_wait_s": 0.0}, "data wait 0 %"),
        ({"seconds": 0.0}, "data wait – %"),
        ({"metrics": {"val/mae": 12345.678, "val/loss": float("nan")}}, "val/mae 1.235e+04 · val/loss nan"),
    ],
)
def test_figures_of_a_line(values: dict[str, Any], expected: str) -> None:
    assert expected in epoch_line(RECORD | values, epochs=6, step=94)


@pytest.mark.parametrize(
    ("values", "missing"),
    [({"data_wait_s": None}, "data wait"), ({"train_loss": None}, " loss"), ({"metrics": {}}, "val")],
)
def test_what_is_not_known_is_left_out(values: dict[str, Any], missing: str) -> None:
    assert missing in epoch_line(RECORD | {"metrics": {"val/x": 1.0}}, epochs=6, step=94)
    assert missing not in epoch_line(RECORD | {"metrics": {"val/x": 1.0}} | values, epochs=6, step=94)


def test_epochs_count_from_one() -> None:
    assert epoch_name(0, 6) == "epoch 1/6"
    assert epoch_name(5, 6) == "epoch 6/6"
    assert [epoch_name(2, limit) for limit in (None, -1, 0)] == ["epoch 3"] * 3


def test_speed_is_in_tokens_where_there_are_any() -> None:
    assert speed(samples_per_s=20.0, tokens_per_s=12345.4) == "12 345 tokens/s"
    assert speed(samples_per_s=20.0, tokens_per_s=None) == "20 samples/s"


METRICS = {"val/mae": 2.0, "val/r2": 0.5, "val/loss": 1.0, "train/loss_epoch": 3.0}


@pytest.mark.parametrize(
    ("headline", "shown"),
    [
        (("val/mae",), ["val/loss", "val/mae"]),
        ((), ["val/loss"]),
        (("val/loss", "val/mae"), ["val/loss", "val/mae"]),
        (("val/not_measured",), ["val/loss"]),
    ],
)
def test_the_loss_and_the_headline_are_shown(headline: tuple[str, ...], shown: list[str]) -> None:
    assert list(shown_metrics(SimpleNamespace(headline=headline), METRICS)) == shown


def test_a_task_without_a_headline_shows_all_of_its_validation() -> None:
    assert list(shown_metrics(SimpleNamespace(), METRICS)) == ["val/mae", "val/r2", "val/loss"]


def test_figures_for_a_table() -> None:
    assert [number(value, 1) for value in (None, 0.04, 1234567.0)] == ["–", "0.0", "1 234 567.0"]
    assert [percent(1.0, 8.0), percent(0.0, 5.0), percent(1.0, 0.0)] == ["12", "0", "–"]
