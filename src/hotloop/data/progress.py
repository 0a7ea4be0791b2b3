"""How far a long preparation is: a bar with the time left on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType

log = logging.getLogger(__name__)

_SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """A context manager; `total` in any unit, or None where it is not known beforehand.

    `done`: what an earlier process did of it; the time left is told from what this one does.
    """

    def __init__(self, title: str, total: int | None, *, done: int = 0) -> None:
        self._title, self._total, self._done, self._before = title, total, done, done
        self._resumed = done > 0
        self._start = self._said = time.monotonic()
        self._bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task(title, total=total, completed=done)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, amount: int) -> None:
        """Say that `amount` more is done."""
        self._done += amount
        if self._resumed:  # what came before the first piece was finding the place
            self._resumed, self._before, self._start = False, self._done, time.monotonic()
        if self._bar is not None:
            self._bar.advance(self._task, amount)
            return
        now = time.monotonic()
        if now - self._said < _SECONDS_BETWEEN_LINES:
            return
        self._said = now
        if not self._total or self._done <= self._before:
            log.info("%s: %.0f s so far", self._title, now - self._start)
            return
        share = min(self._done / self._total, 1.0)
        left = (now - self._start) * max(self._total - self._done, 0) / (self._done - self._before)
        log.info("%s: %.0f %%, about %.0f s left", self._title, 100 * share, left)
