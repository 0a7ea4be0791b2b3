"""Where the time went and what was done: plain arithmetic."""

import math

import pytest

from hotloop.callbacks.accounting import (
    Stopwatch,
    Totals,
    epoch_record,
    perplexity,
    rates,
    ratio,
)


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_stopwatch_adds_up_each_phase() -> None:
    clock = Hands()
    watch = Stopwatch(clock)
    for phase, seconds in (("data", 2.0), ("step", 5.0), ("data", 1.0), ("validation", 7.0)):
        watch.switch(phase)
        clock.now += seconds
    assert watch.read() == {"data": 3.0, "step": 5.0, "validation": 7.0, "checkpoint": 0.0}


def test_a_stopped_watch_does_not_count() -> None:
    clock = Hands()
    watch = Stopwatch(clock)
    clock.now += 50
    watch.switch("step")
    clock.now += 1
    watch.switch(None)
    clock.now += 50
    assert sum(watch.read().values()) == 1.0


def test_reading_a_running_watch_counts_nothing_twice() -> None:
    clock = Hands()
    watch = Stopwatch(clock)
    watch.switch("step")
    clock.now += 1
    watch.read()
    clock.now += 1
    assert watch.read()["step"] == 2.0


def test_reset_takes_up_earlier_seconds() -> None:
    watch = Stopwatch(Hands())
    watch.switch("step")
    watch.reset({"data": 4.0})
    assert watch.read() == {"data": 4.0, "step": 0.0, "validation": 0.0, "checkpoint": 0.0}
    assert watch.phase is None


def test_interval_is_the_difference_of_two_totals() -> None:
    earlier = Totals(samples=4, tokens=10, losses=2, loss_sum=30.0, cells=20, real_cells=15)
    later = Totals(samples=10, tokens=30, losses=5, loss_sum=70.0, cells=60, real_cells=45)
    interval = later.since(earlier)
    assert interval == Totals(samples=6, tokens=20, losses=3, loss_sum=40.0, cells=40, real_cells=30)
    assert interval.loss == 2.0
    assert interval.padding_share == 0.25


def test_loss_is_per_sample_where_there_are_no_tokens() -> None:
    assert Totals(samples=4, losses=1, loss_sum=10.0).loss == 2.5
    assert Totals(samples=4, tokens=9).loss is None
    assert Totals().loss is None
    assert Totals().padding_share is None


def test_rates_leave_out_validation_and_checkpoints() -> None:
    seconds = {"data": 1.0, "step": 3.0, "validation": 100.0, "checkpoint": 50.0}
    assert rates(Totals(samples=8, tokens=40), seconds) == {
        "samples_per_s": 2.0,
        "tokens_per_s": 10.0,
        "data_wait_share": 0.25,
    }


def test_rates_count_all_processes() -> None:
    seconds = {"data": 0.0, "step": 2.0}
    assert rates(Totals(samples=8, tokens=40), seconds, processes=3)["tokens_per_s"] == 60.0


def test_rates_without_time_or_tokens_are_unknown() -> None:
    none = rates(Totals(samples=8), {"data": 0.0, "step": 0.0})
    assert none == {"samples_per_s": None, "tokens_per_s": None, "data_wait_share": None}
    assert rates(Totals(samples=8), {"data": 0.0, "step": 4.0})["tokens_per_s"] is None


@pytest.mark.parametrize(
    ("loss", "expected"), [(0.0, 1.0), (math.log(7), 7.0), (None, None), (1e4, math.inf), (math.inf, math.inf)]
)
def test_perplexity_of_any_loss(loss: float | None, expected: float | None) -> None:
    assert perplexity(loss) == (None if expected is None else pytest.approx(expected))


def test_perplexity_of_nan_is_nan() -> None:
    assert math.isnan(perplexity(math.nan))  # type: ignore[arg-type]


def test_ratio_by_nothing_is_unknown() -> None:
    assert ratio(3.0, 0) is None
    assert ratio(3.0, 2) == 1.5


def test_epoch_record_has_the_agreed_figures() -> None:
    record = epoch_record(
        epoch=3,
        steps=5,
        totals=Totals(samples=20, tokens=100, losses=5, loss_sum=250.0, cells=200, real_cells=150),
        seconds={"data": 1.0, "step": 4.0, "validation": 2.0, "checkpoint": 0.5},
        learning_rate=0.1,
        grad_norm=None,
        metrics={"val/loss": 2.0, "val/bleu": 11.0},
        peak_rss_mb=123.0,
        peak_gpu_mb=None,
    )
    assert record == {
        "epoch": 3,
        "steps": 5,
        "samples": 20,
        "tokens": 100,
        "seconds": 5.0,
        "data_wait_s": 1.0,
        "validation_s": 2.0,
        "checkpoint_s": 0.5,
        "samples_per_s": 4.0,
        "tokens_per_s": 20.0,
        "learning_rate": 0.1,
        "train_loss": 2.5,
        "val_loss": 2.0,
        "grad_norm": None,
        "padding_share": 0.25,
        "peak_rss_mb": 123.0,
        "peak_gpu_mb": None,
        "metrics": {"val/loss": 2.0, "val/bleu": 11.0},
    }
