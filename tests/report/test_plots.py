"""What is in the panels."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from hotloop.report import plots
from hotloop.report.compare import rows
from hotloop.report.runs import read_runs
from tests.report.conftest import WriteRun, epoch


@pytest.fixture
def axes() -> Any:
    return Figure().subplots()


def test_losses_stand_at_the_seconds_of_training_until_then(write_run: WriteRun, axes: Any) -> None:
    epochs = [epoch(0, data=1, step=1, loss=5, val_loss=4), epoch(1, data=1, step=2, loss=3, val_loss=None)]
    plots.draw_loss(axes, read_runs([write_run("a", epochs)]))
    training, validation = axes.lines
    np.testing.assert_allclose(training.get_xdata(), [2, 5])
    np.testing.assert_allclose(training.get_ydata(), [5, 3])
    np.testing.assert_allclose(validation.get_ydata(), [4, np.nan])


def test_the_parts_of_an_epoch_add_up(write_run: WriteRun, axes: Any) -> None:
    (run,) = read_runs([write_run("a", [epoch(data=1, step=2, validation=3, checkpoint=4)])])
    assert list(plots.seconds_by_phase(run.epochs[0]).values()) == [1, 2, 3, 4]
    plots.draw_time_by_epoch(axes, run)
    assert [bar.get_height() for bar in axes.patches] == [1, 2, 3, 4]
    assert [bar.get_y() for bar in axes.patches] == [0, 1, 3, 6]


def test_the_bars_of_runs_are_shares_with_the_seconds_behind_them(write_run: WriteRun, axes: Any) -> None:
    runs = read_runs([write_run("a", [epoch(data=1, step=2, validation=3, checkpoint=4)]), write_run("b", [])])
    plots.draw_time_by_run(axes, runs, rows(runs))
    assert [bar.get_width() for bar in axes.patches][::2] == [10, 20, 30, 40]
    assert [text.get_text().strip() for text in axes.texts] == ["10.0 s", "no epochs"]


def test_speed_is_in_samples_where_a_run_has_no_tokens(write_run: WriteRun, axes: Any) -> None:
    sentences, pictures = write_run("a", [epoch(samples=40)]), write_run("b", [epoch(tokens=0)])
    plots.draw_speed(axes, read_runs([sentences, pictures]))
    assert axes.get_ylabel() == "samples/s"
    assert [line.get_ydata()[0] for line in axes.lines] == [20, 50]


def test_no_two_of_twelve_runs_look_the_same() -> None:
    looks = {(look["color"], look["marker"]) for look in (plots._look(index, 1) for index in range(12))}
    assert len(looks) == 12


def test_odd_names_are_labels_as_they_stand() -> None:
    label = Figure().text(0, 0, plots.literal("$a$"))
    assert label._preprocess_math(label.get_text()) == ("$a$", False)
    assert not plots.literal("_a").startswith("_")  # would be left out of the legend
