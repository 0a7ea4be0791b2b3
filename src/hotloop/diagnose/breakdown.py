"""Where the time of a training step goes: phases, operators, modules, source lines."""

import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.callbacks import environment
from hotloop.diagnose.module_costs import Health, ModuleCost, module_costs
from hotloop.diagnose.operators import Operator, operator_fields
from hotloop.diagnose.source_lines import CallTracer, Line, Loop, sampled, top_lines
from hotloop.errors import UserError

PHASES = ("data", "forward", "backward", "optimizer")

Around = Callable[[str], AbstractContextManager[None]]


def nothing() -> None:
    """The default of `Step.after_backward`."""


@dataclass(frozen=True)
class Step:
    """One training step in parts, of any model.

    Attributes:
        module: what is trained, in the mode it is trained in; a copy if its weights matter.
        optimizer: over its parameters; its ``step`` must need no closure.
        next_batch: waits for the loader and moves the batch to the device.
        loss: forward pass under the right precision, batch to a 0-dim tensor.
        after_backward: what is done with the gradients, such as clipping; counted with the optimiser.
    """

    module: nn.Module
    optimizer: torch.optim.Optimizer
    next_batch: Callable[[], Any]
    loss: Callable[[Any], Tensor]
    after_backward: Callable[[], None] = nothing


@dataclass(frozen=True)
class Phase:
    """Seconds of one part of a step, waits for the device included: median, quartiles, mean.

    `share` is that of the sums over all timed steps: the median of a loader that stalls at each fourth step is 0.
    """

    median: float
    lower_quartile: float
    upper_quartile: float
    mean: float
    share: float


@dataclass(frozen=True)
class Breakdown:
    """What `breakdown` found.

    Attributes:
        device: type of the device of the parameters.
        steps: timed steps behind `phases`.
        step_seconds: mean of a timed step.
        phases: by name, in the order of `PHASES`.
        operators: the ten that took most of one profiled step.
        operator_seconds: all operators together in the profiled step, on the host.
        profiled_seconds: of that step, slower than `step_seconds` for being profiled.
        launches_per_step: operator calls, those by other operators included.
        watched: calls, share of the profiled step by name of an operator that is known for trouble; calls that the
            optimiser makes are left out, which reads step counters on the host.
        waiting: lines that read values (``item``) or count entries (``nonzero``): calls in one forward, by place.
        growing: lines that joined tensors to an ever longer one in one forward: calls by place.
        modules: in the order of `named_modules`.
        loops: statements whose calls of torch were repeated for the same owner and weights, the slowest first.
        lines: source lines that were running most often, at `looks` looks every 2 ms: sampled, so approximate.
        looks: number of looks behind `lines`.
        parameters: of the module.
        optimizer: class, ``fused`` and ``foreach`` of the first parameter group (None: left to PyTorch).
        loss: of the last step.
        nonfinite_gradients: share of the values of one step's gradients, 0 … 1.
        denormal_gradients, denormal_activations: share of values that are not 0 but below the smallest normal number
            of their type, in one step; None on a device.
        peak_rss_mb: of this process so far, None where it is not known; peak_gpu_mb: of this device during the steps.
    """

    device: str
    steps: int
    step_seconds: float
    phases: dict[str, Phase]
    operators: list[Operator]
    operator_seconds: float
    profiled_seconds: float
    launches_per_step: int
    watched: dict[str, dict[str, float]]
    waiting: dict[str, dict[str, int]]
    growing: dict[str, int]
    modules: list[ModuleCost]
    loops: list[Loop]
    lines: list[Line]
    looks: int
    parameters: int
    optimizer: dict[str, Any]
    loss: float
    nonfinite_gradients: float
    denormal_gradients: float | None
    denormal_activations: float | None
    peak_rss_mb: float | None
    peak_gpu_mb: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists and numbers; NaN and infinities as they are."""
        return asdict(self)


def breakdown(step: Step, *, steps: int = 10, warm_up: int = 2) -> Breakdown:
    """Train for `warm_up` + 2 * `steps` + 7 batches and measure.

    Timed, sampled, traced and profiled are different steps, so that no measurement slows another. Afterwards the
    module has no hooks and no gradients, each part the mode it had, and other weights; torch's random numbers go on
    as if nothing had happened. Of compiled code, modules and source lines are measured as they were before compiling.

    Raises UserError if the batches end before that, or for an optimiser that needs a closure.
    """
    if steps < 1 or warm_up < 0:
        raise UserError(f"steps={steps}, warm_up={warm_up}: a breakdown needs at least 1 step and no negative warm-up")
    if isinstance(step.optimizer, torch.optim.LBFGS):
        raise UserError("optimizer LBFGS runs the model itself, so its steps have no phases: choose another optimizer")
    first = next(step.module.parameters(), None)
    if first is None:
        raise UserError(f"{type(step.module).__name__} has no parameters: there is no training step to break down")
    device = first.device
    modes = [(module, module.training) for module in step.module.modules()]
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            return _measured(step, device, steps, warm_up)
        finally:
            for module, mode in modes:
                module.training = mode
            for parameter in step.module.parameters():
                parameter.grad = None


def _measured(step: Step, device: torch.device, steps: int, warm_up: int) -> Breakdown:
    synchronize = partial(environment.synchronize, device)
    run = partial(_run, step)
    step.optimizer.zero_grad(set_to_none=True)
    environment.reset_peak(device)
    for _ in range(warm_up):
        run(lambda _: nullcontext())
    synchronize()
    seconds: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for _ in range(steps):
        loss = run(lambda phase: _timed(seconds[phase], synchronize))
    lines: Counter[tuple[str, str] | None] = Counter()
    with sampled(lines):
        for _ in range(steps):
            run(lambda _: nullcontext())
            synchronize()
    # Before hooks and tracing, which would make compiled code compile again.
    from_profile = operator_fields(run, phases=PHASES, device=device, synchronize=synchronize)
    names = {id(module): name or type(module).__name__ for name, module in step.module.named_modules()}
    tracers, health = [CallTracer(names=names, synchronize=synchronize) for _ in range(3)], Health(step.module, device)
    with _uncompiled():
        # Of three each, the one in the middle by time: a single step may meet a pause of the machine.
        costs = [module_costs(step.module, run, names=names, synchronize=synchronize) for _ in range(3)]
        modules = sorted(costs, key=lambda each: sum(module.seconds for module in each))[1]
        for each in tracers:
            run(partial(_traced, tracer=each, health=health))
            each.finish()
    tracer = sorted(tracers, key=lambda each: each.seconds)[1]
    group = step.optimizer.param_groups[0]
    return Breakdown(
        device=device.type,
        steps=steps,
        step_seconds=sum(map(sum, seconds.values())) / steps,
        phases=_phases(seconds),
        **from_profile,
        waiting=tracer.waiting(),
        growing=tracer.growing(),
        modules=modules,
        loops=tracer.loops,
        lines=top_lines(lines),
        looks=sum(lines.values()),
        parameters=sum(parameter.numel() for parameter in step.module.parameters()),
        optimizer={
            "name": type(step.optimizer).__name__, "fused": group.get("fused"), "foreach": group.get("foreach")
        },
        loss=float(loss),
        **health.shares,
        peak_rss_mb=_peak_rss_mb(),
        peak_gpu_mb=environment.peak_gpu_mb(device),
    )  # fmt: skip


def _run(step: Step, around: Around) -> Tensor:
    """One training step, each phase inside `around(phase)`; the loss, detached."""
    with around("data"):
        try:
            batch = step.next_batch()
        except StopIteration:
            raise UserError("the batches ended during the breakdown: give it more of them, or fewer steps") from None
    with around("forward"):
        loss = step.loss(batch)
    with around("backward"):
        loss.backward()
    with around("optimizer"):
        step.after_backward()
        step.optimizer.step()
        step.optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def _uncompiled() -> AbstractContextManager[Any]:
    """Compiled code has neither modules nor lines to look at: run what it was compiled from."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


@contextmanager
def _timed(seconds: list[float], synchronize: Callable[[], None]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    synchronize()
    seconds.append(time.perf_counter() - began)


def _phases(seconds: dict[str, list[float]]) -> dict[str, Phase]:
    total = sum(map(sum, seconds.values()))
    found = {}
    for phase, values in seconds.items():
        low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
        found[phase] = Phase(middle, low, high, statistics.fmean(values), sum(values) / total)
    return found


@contextmanager
def _traced(phase: str, tracer: CallTracer, health: Health) -> Iterator[None]:
    if phase == "forward":
        with health.watching(), tracer:
            yield
        return
    if phase == "optimizer":
        health.read()
    yield


def _peak_rss_mb() -> float | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 * (1 if sys.platform == "darwin" else 1024)
