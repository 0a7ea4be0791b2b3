"""How far a long preparation is: a bar with the time left on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType

log = logging.getLogger(__name__)

_SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """A context manager; `total` in any unit, or None where it is not known beforehand."""

    def __init__(self, title: str, total: int | None) -> None:
        self._title, self._total, self._done = title, total, 0
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
            self._task = self._bar.add_task(title, total=total)

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
        if self._bar is not None:
            self._bar.advance(self._task, amount)
            return
        now = time.monotonic()
        if now - self._said < _SECONDS_BETWEEN_LINES:
            return
        self._said = now
        if not self._total or not self._done:
            log.info("%s: %.0f s so far", self._title, now - self._start)
            return
        share = min(self._done / self._total, 1.0)
        left = (now - self._start) * (1 - share) / share
        log.info("%s: %.0f %%, about %.0f s left", self._title, 100 * share, left)
