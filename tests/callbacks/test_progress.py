"""The progress bar: on a terminal, in a log file, on a small screen."""

import io
import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from hotloop.callbacks import progress
from hotloop.callbacks.accounting import Totals
from hotloop.callbacks.progress import (
    ThroughputBar,
    clock,
    measured_speed,
    remaining_batches,
    returned_loss,
)
from hotloop.callbacks.report import TrainingReport


def terminal(width: int = 100) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None, _environ={"TERM": "xterm"})


def log_file() -> Console:
    return Console(file=io.StringIO(), width=80, _environ={})


def shown(console: Console) -> list[str]:
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())  # type: ignore[attr-defined]
    return [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw at every chance."""
    monkeypatch.setattr(progress, "OFTEN", -1.0)


def test_a_log_file_gets_one_line_an_epoch(toy: Any, make_trainer: Any) -> None:
    console = log_file()
    make_trainer([ThroughputBar(console=console)], max_epochs=3).fit(toy.Task(), datamodule=toy.Data(batches=6))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in text
    assert "\r" not in text
    lines = text.splitlines()
    assert [line.split(" · ")[:2] for line in lines] == [
        ["epoch 1/3", "step 6"], ["epoch 2/3", "step 12"], ["epoch 3/3", "step 18"],
    ]  # fmt: skip
    assert all(re.search(r"tokens/s · loss \d\.\d{3} · val/loss \d", line) for line in lines)


def test_an_epoch_without_validation_does_not_show_the_last_one(toy: Any, make_trainer: Any) -> None:
    console = log_file()
    make_trainer([ThroughputBar(console=console)], max_epochs=3, check_val_every_n_epoch=2).fit(
        toy.Task(), datamodule=toy.Data()
    )
    assert ["val/loss" in line for line in shown(console)] == [False, True, False]


@pytest.mark.parametrize("report_first", [False, True])
def test_a_report_tells_each_epoch_once_with_the_wait_for_data(
    toy: Any, make_trainer: Any, tmp_path: Path, eager: None, report_first: bool
) -> None:
    for console in (log_file(), terminal(200)):
        bar, report = ThroughputBar(refresh_every=1, console=console), TrainingReport(str(tmp_path / "r.json"))
        report.table = False
        callbacks = [report, bar] if report_first else [bar, report]
        make_trainer(callbacks, max_epochs=2).fit(toy.Task(), datamodule=toy.Data(batches=6))
        told = [line for line in shown(console) if " · step " in line]
        assert [line.split(" · ")[:2] for line in told] == [["epoch 1/2", "step 6"], ["epoch 2/2", "step 12"]]
        assert all(re.search(r"tokens/s · data wait \d+ % · loss \d\.\d{3} · val/loss \d", line) for line in told)


def test_long_epochs_get_lines_in_between(toy: Any, make_trainer: Any) -> None:
    console = log_file()
    make_trainer([ThroughputBar(console=console, line_every_s=1e-9)], max_epochs=1).fit(
        toy.Task(), datamodule=toy.Data(batches=6)
    )
    lines = shown(console)
    assert [line.split(" · ")[1] for line in lines] == [*(f"batch {k}/6" for k in range(1, 7)), "step 6"]
    assert all("ETA" in line for line in lines[:-1])
    assert lines[5].endswith("ETA 0:00")


def test_a_terminal_gets_a_bar(toy: Any, make_trainer: Any, eager: None) -> None:
    console = terminal()
    make_trainer([ThroughputBar(refresh_every=2, console=console)], max_epochs=1).fit(
        toy.Task(), datamodule=toy.Data(batches=6)
    )
    lines = shown(console)
    for count in ("1/6", "3/6", "5/6"):
        assert any(count in line and "tokens/s" in line and "ETA" in line and "━" in line for line in lines), count
    assert any("validation" in line and "2/2" in line for line in lines)


def test_the_bar_is_drawn_every_nth_step(
    toy: Any, make_trainer: Any, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    bar = ThroughputBar(refresh_every=5, console=terminal())
    monkeypatch.setattr(bar, "_draw", lambda name, done, total, figures: drawn.append((name, done)))
    make_trainer([bar], max_epochs=1, limit_val_batches=0).fit(toy.Task(), datamodule=toy.Data(batches=17))
    assert drawn == [("epoch 1/1", 1), ("epoch 1/1", 6), ("epoch 1/1", 11), ("epoch 1/1", 16)]


def test_fast_steps_are_not_drawn_more_often_than_the_eye_can_see(
    toy: Any, make_trainer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "OFTEN", 1e9)
    monkeypatch.setattr(progress, "SELDOM", 1e9)
    drawn = []
    bar = ThroughputBar(refresh_every=1, console=terminal())
    monkeypatch.setattr(bar, "_draw", lambda name, done, total, figures: drawn.append(done))
    make_trainer([bar], max_epochs=1).fit(toy.Task(), datamodule=toy.Data(batches=6))
    assert drawn == [1]


def test_slow_steps_are_drawn_all_the_same(toy: Any, make_trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SELDOM", -1.0)
    drawn = []
    bar = ThroughputBar(refresh_every=1000, console=terminal())
    monkeypatch.setattr(bar, "_draw", lambda name, done, total, figures: drawn.append(done))
    make_trainer([bar], max_epochs=1, limit_val_batches=0).fit(toy.Task(), datamodule=toy.Data(batches=4))
    assert drawn == [1, 2, 3, 4]


@pytest.mark.parametrize("width", [30, 50, 71])
def test_a_small_terminal_shows_the_count_and_the_loss(toy: Any, make_trainer: Any, eager: None, width: int) -> None:
    console = terminal(width)
    make_trainer([ThroughputBar(refresh_every=1, console=console)], max_epochs=1).fit(
        toy.Task(), datamodule=toy.Data(batches=6)
    )
    bars = [line for line in shown(console) if "/6" in line]
    assert bars
    assert all(len(line) <= width for line in bars)
    assert any(re.match(r"epoch 1/1 6/6 · loss \d\.\d", line) for line in bars)


def test_a_dumb_terminal_is_treated_like_a_file(toy: Any, make_trainer: Any) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"}, color_system=None)
    make_trainer([ThroughputBar(console=console)], max_epochs=2).fit(toy.Task(), datamodule=toy.Data())
    assert len(console.file.getvalue().splitlines()) == 2  # type: ignore[attr-defined]


def test_a_disabled_bar_is_silent(toy: Any, make_trainer: Any) -> None:
    console = log_file()
    bar = ThroughputBar(console=console, line_every_s=1e-9)
    bar.disable()
    bar.print("hello")
    make_trainer([bar]).fit(toy.Task(), datamodule=toy.Data())
    assert not shown(console)
    bar.enable()
    bar.print("hello [bold]")
    assert shown(console) == ["hello [bold]"]


def test_a_task_without_token_counts_shows_samples_and_its_loss(toy: Any, make_trainer: Any) -> None:
    console = log_file()
    make_trainer([ThroughputBar(console=console, line_every_s=1e-9)], max_epochs=1).fit(
        toy.Task(reports_steps=False), datamodule=toy.Data()
    )
    assert re.search(r"loss \d\.\d{3} · [\d ]+ samples/s", shown(console)[0])


def test_testing_shows_a_bar_and_leaves_no_trace(toy: Any, make_trainer: Any, eager: None) -> None:
    console = terminal()
    bar = ThroughputBar(console=console)
    make_trainer([bar]).test(toy.Task(), datamodule=toy.Data(), verbose=False)
    assert any(line.startswith("test") and "2/2" in line for line in shown(console))
    assert bar._progress is None


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_the_bar_is_taken_down_when_a_run_breaks(
    toy: Any, make_trainer: Any, eager: None, error: type[BaseException]
) -> None:
    class Broken(toy.Task):
        def on_train_epoch_end(self) -> None:
            raise error("broken")

    bar = ThroughputBar(refresh_every=1, console=terminal())
    with pytest.raises(error):
        make_trainer([bar]).fit(Broken(), datamodule=toy.Data())
    assert bar._progress is None


def test_a_bar_that_has_not_drawn_can_be_sent_to_another_process() -> None:
    assert isinstance(pickle.loads(pickle.dumps(ThroughputBar())), ThroughputBar)


def trainer(**values: Any) -> Any:
    defaults = {
        "max_epochs": 4, "max_steps": -1, "num_training_batches": 10, "current_epoch": 1, "global_step": 12,
        "accumulate_grad_batches": 1,
    }  # fmt: skip
    return SimpleNamespace(**(defaults | values))


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ({}, 3 * 10 - 3),
        ({"max_epochs": -1}, None),
        ({"max_epochs": None}, None),
        ({"num_training_batches": float("inf")}, None),
        ({"max_steps": 15}, 3),
        ({"max_steps": 15, "accumulate_grad_batches": 4}, 12),
        ({"max_epochs": -1, "max_steps": 20}, 8),
        ({"max_steps": 5}, 0),
        ({"max_steps": 1000}, 27),
    ],
)
def test_remaining_batches(values: dict[str, Any], left: int | None) -> None:
    assert remaining_batches(trainer(**values), batch_idx=2) == left


def test_figures() -> None:
    assert [clock(s) for s in (None, 0, 5.4, 65, 3725)] == ["–", "0:00", "0:05", "1:05", "1:02:05"]
    assert measured_speed(Totals(samples=10, tokens=12345), 1.0, 1) == "12 345 tokens/s"
    assert measured_speed(Totals(samples=10), 2.0, 4) == "20 samples/s"
    assert measured_speed(Totals(samples=10), 0.0, 1) == "– samples/s"
    assert returned_loss(None) is None
    assert returned_loss({"loss": 2.0}) == returned_loss(2.0) == 2.0
    assert returned_loss({"other": 1}) is None


@pytest.mark.parametrize("options", [{"refresh_every": 0}, {"line_every_s": 0.0}])
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="refresh_every"):
        ThroughputBar(**options)
