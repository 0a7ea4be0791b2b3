"""How far a preparation is, on a terminal and in a log."""

import sys
from typing import Any

import pytest

from hotloop.data import progress


@pytest.mark.parametrize(("total", "told"), [(200, "encoding: 50 %, about"), (None, "encoding: 0 s so far")])
def test_log_lines_where_there_is_no_terminal(
    total: int | None, told: str, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with progress.Progress("encoding", total) as bar:
        bar.advance(10)
        assert caplog.text == ""  # not at every step
        monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", -1.0)
        bar.advance(90)
    assert told in caplog.text


def test_nothing_done_yet_is_no_division_by_zero(monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", -1.0)
    with progress.Progress("encoding", 5) as bar:
        bar.advance(0)


@pytest.mark.parametrize("total", [2, None])
def test_a_bar_on_a_terminal(total: int | None, monkeypatch: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.Progress("encoding", total) as bar:
        bar.advance(1)
        assert bar._bar is not None
        assert bar._bar.tasks[0].completed == 1
    assert caplog.text == ""


def test_the_time_left_is_told_from_what_this_process_did(monkeypatch: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", -1.0)
    clock = iter([0.0, 30.0, 31.0, 34.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.Progress("encoding", 100, done=50) as bar:
        bar.advance(10)  # after half a minute of finding the place
        bar.advance(10)
    assert "encoding: 1 s so far" in caplog.text  # nothing to go by yet
    assert "encoding: 70 %, about 12 s left" in caplog.text
