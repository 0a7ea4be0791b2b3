"""Processes that prepare, and how they end: with the work, with their parent, or at once at the first Ctrl-C."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.context import SpawnContext
from types import FrameType
from typing import Any


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """An executor with `count` processes; they are killed when the block is left by an error or by Ctrl-C."""
    # spawn: forking a process that runs torch's threads can hang, and a fork server would outlive the build
    context = _Spawning()
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_follow_parent)
    try:
        yield executor
        executor.shutdown()
    except BaseException:
        for process in context.made:
            if process.pid is not None:
                process.kill()
        # As long as this process holds these ends too, the executor's threads wait for the dead to read and to write.
        for end in (executor._call_queue._reader, executor._result_queue._writer):  # type: ignore[attr-defined]
            with suppress(OSError):  # one of those threads was closing it already
                end.close()
        with suppress(RuntimeError):  # interrupted so early that its thread cannot be waited for yet
            executor.shutdown(cancel_futures=True)
        raise


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Ignores Ctrl-C after the first: a second would break off the clean-up and leave processes behind.

    Python waits for those at its end, for ever. A handler that is not Python's own stays in charge.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _Spawning(SpawnContext):
    """Keeps every process that it makes: the executor does not know one whose start was interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Any] = []

    def Process(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        self.made.append(super().Process(*args, **options))
        return self.made[-1]


def _follow_parent() -> None:
    """Called in each new process: leave Ctrl-C to the parent, and end when it is gone, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
