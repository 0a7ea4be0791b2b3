"""What a breakdown of the training step says, rule by rule: what was seen, in numbers, and where."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.diagnose.breakdown import Breakdown

Facts = Mapping[str, Any]
"""What the breakdown cannot see, all optional: device, precision, padding_share, batch_size, workers, decoding, …"""

LOOP_TIMES, LOOP_SHARE = 8, 0.20
DATA_SHARE = 0.15
LAYER_SHARE, LAYER_PARAMETERS = 0.90, 1_000_000
PADDING_SHARE = 0.20
OPTIMIZER_SHARE = 0.25
SYNCS, SYNCS_ON_CPU = 1, 20
JOINS, JOINS_SHARE = 8, 0.10
DENORMAL_SHARE = 0.01
BUSY_SHARE, SMALL_CALL_S, MANY_CALLS = 0.50, 20e-6, 2_000

# The loss over chunks of tokens is a loop that saves memory; it stands in the configuration.
MEANT_LOOPS = ("chunked_loss.py",)


@dataclass(frozen=True)
class Finding:
    """One thing that costs time or spoils the result.

    Attributes:
        kind: the rule's name, a stable key.
        message: one sentence with its numbers.
        evidence: the same numbers; ``share`` is that of the step which the finding concerns, 0 … 1.
        where: ``file:line`` where it is known, else a module's name or a phase.
    """

    kind: str
    message: str
    evidence: dict[str, Any] = field(default_factory=dict)
    where: str = ""


def findings(found: Breakdown, facts: Facts | None = None) -> list[Finding]:
    """What the rules say of a breakdown, the largest share of the step first."""
    facts = facts or {}
    all_found = [each for rule in RULES for each in rule(found, facts)]
    return sorted(all_found, key=lambda each: -each.evidence["share"])


def loops_over_steps(found: Breakdown, facts: Facts) -> Iterator[Finding]:
    """The same modules, or the same lines for the same weights, called many times in one forward pass."""
    forward = found.phases["forward"].share
    seen = False
    for loop in found.loops:
        if loop.times < LOOP_TIMES or loop.share < LOOP_SHARE or _file(loop.place) in MEANT_LOOPS:
            continue
        seen = True
        what = _listed(loop.modules) or "operators"
        decoding = f" (decoding: {facts['decoding']})" if "decoding" in facts else ""
        yield Finding(
            "loop",
            f"{what}: called {loop.times:,} times a step by a loop in {loop.function}{decoding}, {loop.calls:,} calls "
            f"of torch and {loop.share:.0%} of the forward pass",
            {
                "times": loop.times, "calls": loop.calls, "share_of_forward": loop.share, "share": loop.share * forward,
                "modules": list(loop.modules),
            },
            loop.place,
        )  # fmt: skip
    repeated = [each for each in found.modules if each.calls >= LOOP_TIMES and each.parameters]
    share = sum(each.share for each in repeated)
    if not found.loops and not seen and share >= LOOP_SHARE:  # calls could not be traced, as in compiled code
        times = max(each.calls for each in repeated)
        names = [each.name for each in sorted(repeated, key=lambda each: -each.share)]
        yield Finding(
            "loop",
            f"{_listed(names)}: called up to {times:,} times a step, {share:.0%} of the forward pass",
            {"times": times, "share_of_forward": share, "share": share * forward, "modules": names},
            names[0],
        )


def waits_for_data(found: Breakdown, facts: Facts) -> Iterator[Finding]:
    """The step stands still for its batch."""
    data = found.phases["data"]
    if data.share < DATA_SHARE:
        return
    known = {key: facts[key] for key in ("workers", "batch_size") if key in facts}
    settings = "".join(f", {key.replace('_', ' ')} {value}" for key, value in known.items())
    yield Finding(
        "data_wait",
        f"waiting for data takes {data.share:.0%} of the step: {_ms(data.mean)} of {_ms(found.step_seconds)}{settings}",
        {"share": data.share, "seconds": data.mean, "step_seconds": found.step_seconds, **known},
        "data",
    )


def one_layer_has_the_parameters(found: Breakdown, facts: Facts) -> Iterator[Finding]:
    """Nearly all parameters are in one layer."""
    largest = max(found.modules, key=lambda each: each.parameters, default=None)
    if largest is None or len(found.modules) < 2:
        return
    if largest.parameter_share > LAYER_SHARE and largest.parameters > LAYER_PARAMETERS:
        yield Finding(
            "one_layer",
            f"{largest.name} ({largest.kind}) has {largest.parameters:,} of {found.parameters:,} parameters, "
            f"{largest.parameter_share:.0%}",
            {
                "parameters": largest.parameters, "all_parameters": found.parameters,
                "parameter_share": largest.parameter_share,
                "share": largest.share * found.phases["forward"].share,
            },
            largest.name,
        )  # fmt: skip


def pads(found: Breakdown, facts: Facts) -> Iterator[Finding]:
    """Arithmetic on padding."""
    padding = facts.get("padding_share")
    if padding is None or padding < PADDING_SHARE:
        return
    compute = found.phases["forward"].share + found.phases["backward"].share
    yield Finding(
        "padding", f"{padding:.0%} of the batches' entries are padding",
        {"padding_share": padding, "share": padding * compute}, "data",
    )  # fmt: skip


def optimizer_is_slow(found: Breakdown, facts: Facts) -> Iterator[Finding]:
    """The update, clipping included, is a large part of the step."""
    phase, optimizer = found.phases["optimizer"], found.optimizer
    if phase.share < OPTIMIZER_SHARE:
        return
    form = "fused" if optimizer["fused"] else "not fused, by foreach" if optimizer["foreach"] else "not fused"
    yield Finding(
        "optimizer",
        f"the optimiser ({optimizer['name']}, {form}) takes {phase.share:.0%} of the step: {_ms(phase.mean)} for "
        f"{found.parameters:,} parameters",
        {"share": phase.share, "seconds": phase.mean, "parameters": found.parameters, **optimizer},
        "optimizer",
    )


def waits_for_device(found: Breakdown, facts: Facts) -> Iterator[Finding]:
    """Python reads values out of tensors within the step."""
    on_cpu = facts.get("device", found.device) == "cpu"
    reads, counts = (found.watched.get(name, {}) for name in ("aten::_local_scalar_dense", "aten::nonzero"))
    calls = int(reads.get("calls", 0) + counts.get("calls", 0))
    if calls < (SYNCS_ON_CPU if on_cpu else SYNCS):
        return
    places = {**found.waiting.get("nonzero", {}), **found.waiting.get("item", {})}
    share = reads.get("share", 0.0) + counts.get("share", 0.0)
    effect = "each one an answer that Python waits for" if on_cpu else "at each, the device runs dry"
    yield Finding(
        "synchronisation",
        f"{calls:,} times a step a value is read out of a tensor (item, nonzero, comparisons in an if), {effect}",
        {"calls": calls, "share": share, "places": places},
        max(places, key=places.__getitem__, default="forward"),
    )


def copies_what_grows(found: Breakdown, facts: Facts) -> Iterator[Finding]:
    """A tensor is made longer bit by bit, and copied whole each time."""
    joins = found.watched.get("aten::cat", {})
    calls, share = int(joins.get("calls", 0)), joins.get("share", 0.0)
    if calls < JOINS or share < JOINS_SHARE or max(found.growing.values(), default=0) < JOINS:
        return
    place = max(found.growing, key=found.growing.__getitem__)
    yield Finding(
        "growing_copies",
        f"a tensor grows by concatenation {found.growing[place]:,} times a step and is copied whole each time: "
        f"concatenating takes {share:.0%} of the step",
        {"calls": calls, "share": share, "places": dict(found.growing)},
        place,
    )


def numbers_are_ill(found: Breakdown, facts: Facts) -> Iterator[Finding]:
    """Values that are no numbers, or that a CPU computes many times slower."""
    if not math.isfinite(found.loss) or found.nonfinite_gradients > 0:
        yield Finding(
            "not_finite",
            f"the loss is {found.loss:g}, and {found.nonfinite_gradients:.0%} of the gradients' values are NaN or "
            "infinite: what is trained here is lost",
            {"loss": found.loss, "nonfinite_gradients": found.nonfinite_gradients, "share": 1.0},
            "forward" if not math.isfinite(found.loss) else "backward",
        )
    shares = {
        "gradients": found.denormal_gradients, "activations": found.denormal_activations
    }  # fmt: skip
    for what, share in shares.items():
        if share is not None and share > DENORMAL_SHARE:
            phase = "backward" if what == "gradients" else "forward"
            yield Finding(
                "denormals",
                f"{share:.0%} of the {what} are denormal numbers (not 0, but below the smallest normal one), with "
                "which a CPU computes slowly",
                {"denormal_share": share, "of": what, "share": found.phases[phase].share},
                phase,
            )


def python_is_slow(found: Breakdown, facts: Facts) -> Iterator[Finding]:
    """Many small operators on a CPU, with more time between than in them."""
    calls, seconds = found.launches_per_step, found.operator_seconds
    if facts.get("device", found.device) != "cpu" or calls < MANY_CALLS:
        return
    compute = found.profiled_seconds * (1.0 - found.phases["data"].share)
    busy = seconds / compute if compute else 1.0
    if busy < BUSY_SHARE and seconds / calls < SMALL_CALL_S:
        yield Finding(
            "launch_bound",
            f"{calls:,} operator calls a step of {seconds / calls * 1e6:.1f} µs on average: operators run {busy:.0%} "
            "of the time, the rest goes to Python and to calling them",
            {"calls": calls, "seconds_per_call": seconds / calls, "busy_share": busy, "share": 1.0 - busy},
            found.lines[0].place if found.lines else "forward",
        )


RULES: tuple[Callable[[Breakdown, Facts], Iterator[Finding]], ...] = (
    loops_over_steps, waits_for_data, one_layer_has_the_parameters, pads, optimizer_is_slow, waits_for_device,
    copies_what_grows, numbers_are_ill, python_is_slow,
)  # fmt: skip


def _file(place: str) -> str:
    """``folder/file.py:12`` to ``file.py``."""
    return place.replace("\\", "/").rpartition("/")[2].rpartition(":")[0]


def _listed(names: "list[str] | tuple[str, ...]") -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms"
