"""What the profiler says of one training step: operators, by phase."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

Run = Callable[[Callable[[str], AbstractContextManager[None]]], object]

# Known for trouble: reading a value, counting entries, joining, copying.
WATCHED = ("aten::_local_scalar_dense", "aten::nonzero", "aten::cat", "aten::copy_")
MARK = "hotloop."


@dataclass(frozen=True)
class Operator:
    """An operator in one phase of the profiled step; `seconds` without the operators that it calls.

    `share` is that of the profiled step; on a device, of all device time.
    """

    name: str
    phase: str
    seconds: float
    share: float
    calls: int


def operator_fields(run: Run, *, phases: Sequence[str], device: torch.device, synchronize: Callable[[], None]) -> Any:
    """The fields of a `Breakdown` that come from one profiled step: keyword arguments for it.

    Args:
        run: does one step, each phase inside the context that it is given for it.
        phases: their names, the optimiser's last.
        device: where the step's time is looked for.
        synchronize: waits for it.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else the profiler writes to stderr that there is no GPU

    @contextmanager
    def marked(phase: str) -> Iterator[None]:
        with record_function(MARK + phase):
            yield
            synchronize()

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=activities) as profiler:
        run(marked)
    events = [event for event in profiler.events() or () if event.device_type == torch.autograd.DeviceType.CPU]
    spans = {e.name.removeprefix(MARK): e.time_range for e in events if e.name.startswith(MARK)}
    total = sum(span.elapsed_us() for span in spans.values()) / 1e6
    host: dict[tuple[str, str], float] = defaultdict(float)
    on_device: dict[tuple[str, str], float] = defaultdict(float)
    calls: Counter[tuple[str, str]] = Counter()
    for event in events:
        if "::" not in event.name or event.name.startswith("autograd::"):
            continue
        # By time, as the backward pass on a device runs in a thread of its own, outside the marks.
        phase = next((p for p, s in spans.items() if s.start <= event.time_range.start <= s.end), None)
        if phase is not None:
            host[event.name, phase] += event.self_cpu_time_total / 1e6
            on_device[event.name, phase] += event.self_device_time_total / 1e6
            calls[event.name, phase] += 1
    used, whole = (host, total) if device.type == "cpu" else (on_device, sum(on_device.values()))
    whole = whole or 1.0
    operators = [
        Operator(name, phase, seconds, seconds / whole, calls[name, phase])
        for (name, phase), seconds in sorted(used.items(), key=lambda item: -item[1])[:10]
    ]
    watched = {
        name: {
            "calls": sum(calls[name, phase] for phase in phases[:-1]),
            "share": sum(used.get((name, phase), 0.0) for phase in phases[:-1]) / whole,
        }
        for name in WATCHED
    }
    return {
        "operators": operators, "operator_seconds": sum(host.values()), "profiled_seconds": total,
        "launches_per_step": sum(calls.values()), "watched": watched,
    }  # fmt: skip
