"""Overrides that may make training faster: which ones apply, and what each gives when it is run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hotloop.diagnose.trial import StepTime, Trial, ready_data
from hotloop.errors import UserError

NOISE = 0.03  # a gain below this is not told from chance, whatever the spread
ROUNDS = (3, 60)  # of both trials, at least and at most
WARM_UP = 2  # steps of each trial that are not counted
TURN = 4  # steps that count of each turn, where there are loader processes
SLOW = 1.0  # seconds: where a step takes longer, one round and one step of warm-up less will do

# What a lever leaves as it was.
SAME = "nothing but the order of sums and of dropout's draws"
ROUNDING = "rounding of products"


@dataclass(frozen=True)
class Lever:
    """Overrides that go together.

    Attributes:
        overrides: as on the command line.
        changes: what becomes different in the mathematics.
        same_model: whether what is learnt stays comparable: no other model, no other batches.
        same_batches: whether step k sees the samples that it saw before.
        held: overrides of `data` among these that cost minutes once, such as a cache, and are not run: the batches are
            made as before, outside of the time that counts.
        obstacle: why it cannot be tried here.
    """

    overrides: tuple[str, ...]
    changes: str = SAME
    same_model: bool = True
    same_batches: bool = True
    held: tuple[str, ...] = ()
    obstacle: str | None = None

    @property
    def name(self) -> str:
        return " ".join(self.overrides)

    @property
    def run(self) -> tuple[str, ...]:
        """The overrides that are run."""
        return tuple(override for override in self.overrides if override not in self.held)


@dataclass(frozen=True)
class Gain:
    """A lever that was run beside the settings as they are, step by step in turn.

    Attributes:
        lever: what was tried.
        speed_up: median over the rounds of the ratio of units (target tokens, pictures) a second.
        low, high: its quartiles.
        step_s: median seconds of a step with the lever.
        units_per_s, samples_per_s: with the lever, over all counted steps.
        rounds: how often both were run.
        loss_difference: largest relative difference of the losses of equal steps; None where the batches differ.
    """

    lever: Lever
    speed_up: float
    low: float
    high: float
    step_s: float
    units_per_s: float
    samples_per_s: float
    rounds: int
    loss_difference: float | None

    @property
    def verdict(self) -> str:
        """ "faster", "slower" or "noise"."""
        if self.low <= 1.0 <= self.high or abs(self.speed_up - 1.0) < NOISE:
            return "noise"
        return "faster" if self.speed_up > 1.0 else "slower"


@dataclass(frozen=True)
class Untried:
    """A lever without a figure, and why."""

    lever: Lever
    reason: str


def levers_for(settings: dict[str, Any], *, device: str, kind: str, whole: bool = True) -> list[Lever]:
    """Overrides that apply to these settings, the most promising first.

    Args:
        settings: checked, as composed from conf/train.yaml.
        device: type of the device, "cpu" or "cuda".
        kind: "text" or "images".
        whole: batches are as large as a run's; smaller ones tell nothing of larger ones.
    """
    own = list(_text_levers(settings) if kind == "text" else _image_levers(settings))
    found = [*own[:1], *_precision_levers(settings, device=device), *own[1:], *_common_levers(settings, device=device)]
    return [lever for lever in found if whole or not lever.name.startswith("data.batch_size=")]


def _text_levers(settings: dict[str, Any]) -> Iterator[Lever]:
    model, data, task = settings["model"], settings["data"], settings["task"]
    if model.get("decoding") == "stepwise":
        yield Lever(("model.decoding=parallel",))
    if model.get("input_feeding"):
        yield Lever(
            ("model.input_feeding=false",), "the model: a step no longer reads what attention gave before", False
        )
    if data.get("bucketing") is False:
        yield Lever(
            ("data.bucketing=true",), "which sentences share a batch, not which are trained on", same_batches=False
        )
    if task.get("scheduled_sampling") == "stepwise" and model.get("teacher_forcing") != 1.0:
        yield Lever(("task.scheduled_sampling=two_pass",), "which of the model's own words are fed")
    if model.get("activation_checkpointing"):
        yield Lever(("model.activation_checkpointing=false",), "nothing; more memory is used")
    if model.get("attention_dropout"):
        yield Lever(("model.attention_dropout=0",), "regularisation: no dropout of attention weights", False)
    chunk = task.get("projection_chunk")
    if chunk is not None:
        yield Lever((f"task.projection_chunk={0 if chunk else 1024}",))


def _image_levers(settings: dict[str, Any]) -> Iterator[Lever]:
    model, data, task = settings["model"], settings["data"], settings["task"]
    if data.get("cache") == "none":
        augmented = any((data.get("augment") or {}).values())
        yield Lever(
            ("data.cache=auto",),
            "nothing; the pictures are decoded once, before the first epoch",
            held=("data.cache=auto",),
            obstacle=(
                "with augmentation only a run can tell: train.py with data.cache=auto makes the cache"
                if augmented
                else None
            ),
        )
    if model.get("stem") == []:
        yield Lever(("model.stem=[16,32]",), "the model: convolutions of stride 2 before the blocks", False)
    size = data.get("size")
    if isinstance(size, int) and size >= 32:
        yield Lever((f"data.size={size // 2}",), "the pictures: half the resolution", False, same_batches=False)
    if task.get("channels_last") is False:
        yield Lever(("task.channels_last=true",))
    if model.get("head") == "flatten":
        yield Lever(("model.head=gap",), "the model: averages of the map instead of all its places", False)


def _precision_levers(settings: dict[str, Any], *, device: str) -> Iterator[Lever]:
    precision = str(settings["trainer"]["precision"])
    if precision == "64-true":
        yield Lever(("precision=32-true",), ROUNDING)
    elif precision == "32-true":
        yield Lever(("precision=bf16-mixed",), ROUNDING)
    elif device == "cpu":
        yield Lever(("precision=32-true",), "rounding of products: less of it")


def _common_levers(settings: dict[str, Any], *, device: str) -> Iterator[Lever]:
    if settings["optimizer"].get("fused") is False:
        yield Lever(("optimizer.fused=auto",))
    workers = settings["data"].get("num_workers")
    if workers is not None:
        # Batches of a worker are the same ones; what is random about pictures is drawn in another order.
        yield Lever((f"data.num_workers={0 if workers not in ('auto', 0) else 2}",))
    if settings["compile"]:
        yield Lever(("compile=false",))
    elif device == "cuda":
        yield Lever(("compile=true",))
    size = settings["data"].get("batch_size")
    if isinstance(size, int) and not settings["data"].get("max_tokens"):
        yield Lever(
            (f"data.batch_size={2 * size}",), "the batches: half as many updates an epoch", False, same_batches=False
        )


def try_levers(
    levers: list[Lever],
    *,
    settings: dict[str, Any],
    data: Any,
    settings_with: Callable[[tuple[str, ...]], dict[str, Any]],
    seconds: float,
) -> list[Gain | Untried]:
    """Run each lever beside the settings as they are, for an equal share of `seconds`.

    Args:
        levers: in the order to try them.
        settings: as they are.
        data: set up for `settings`.
        settings_with: checked settings with more overrides; raises UserError where they do not go together.
        seconds: for all of them; what does not come to its turn is `Untried`.
    """
    end = time.monotonic() + seconds
    found: list[Gain | Untried] = []
    for number, lever in enumerate(levers):
        left = end - time.monotonic()
        if lever.obstacle:
            found.append(Untried(lever, lever.obstacle))
            continue
        if left <= 0:
            found.append(Untried(lever, "no time was left: diagnose.minutes=… gives more"))
            continue
        try:
            found.append(compare(lever, settings, data, settings_with, seconds=left / (len(levers) - number)))
        except UserError as error:
            found.append(Untried(lever, str(error)))
    return found


def compare(
    lever: Lever,
    settings: dict[str, Any],
    data: Any,
    settings_with: Callable[[tuple[str, ...]], dict[str, Any]],
    *,
    seconds: float,
) -> Gain:
    """Run the settings without and with a lever in turn, step by step.

    Args:
        lever: what is different.
        settings, data, settings_with: see `try_levers`.
        seconds: about how long, warm-up included; some rounds are run in any case.
    """
    changed = settings_with(lever.overrides)  # refused here if they do not go together
    if lever.held:
        changed = settings_with(lever.run)
    other = data if changed["data"] == settings["data"] else ready_data(changed)
    end = time.monotonic() + seconds
    trials = [Trial(settings, data), Trial(changed, other, held=bool(lever.held))]
    times: list[list[StepTime]] = [[], []]
    try:
        slow = max(trial.step().seconds for trial in trials) > SLOW
        ready = max(trial.made_ahead for trial in trials)
        if ready and slow:
            raise UserError("steps of over a second are too long to tell what loader processes give")
        for trial in trials * (WARM_UP - 1 - slow):
            trial.step()
        for number in range(ROUNDS[1]):
            if number >= ROUNDS[0] - slow and time.monotonic() > end:
                break
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                # Loader processes work on while the other trial has its turn: what they had ready does not count.
                taken = [trials[which].step() for _ in range(ready + TURN if ready else 1)]
                times[which].append(sum_of(taken[ready:]))
    finally:
        for trial in trials:
            trial.close()
    return gain_of(lever, *times)


def sum_of(steps: list[StepTime]) -> StepTime:
    """One turn of several steps."""
    return StepTime(
        seconds=sum(step.seconds for step in steps),
        samples=sum(step.samples for step in steps),
        units=sum(step.units for step in steps),
        loss=statistics.fmean(step.loss for step in steps),
        steps=sum(step.steps for step in steps),
    )


def gain_of(lever: Lever, before: list[StepTime], after: list[StepTime]) -> Gain:
    """What the times of both sides, step for step, say of a lever."""
    ratios = sorted(
        (new.units / new.seconds) / (old.units / old.seconds) for old, new in zip(before, after, strict=True)
    )
    if lever.same_batches:
        speed_up = statistics.median(ratios)
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    else:
        # Steps of other batches are no pairs: long sentences meet short ones. Leaving out one round at a time tells
        # how far the ratio of the totals can be trusted (the jackknife's standard error).
        speed_up = _rate(after) / _rate(before)
        parts = [_rate(after[:i] + after[i + 1 :]) / _rate(before[:i] + before[i + 1 :]) for i in range(len(after))]
        error = ((len(parts) - 1) * statistics.pvariance(parts)) ** 0.5
        low, high = speed_up - error, speed_up + error
    differences = [abs(new.loss - old.loss) / max(abs(old.loss), 1e-12) for old, new in zip(before, after, strict=True)]
    comparable = lever.same_batches and lever.same_model
    return Gain(
        lever=lever,
        speed_up=speed_up,
        low=low,
        high=high,
        step_s=statistics.median(step.seconds / step.steps for step in after),
        units_per_s=_rate(after),
        samples_per_s=sum(s.samples for s in after) / sum(s.seconds for s in after),
        rounds=len(after),
        loss_difference=max(differences) if comparable else None,
    )


def _rate(steps: list[StepTime]) -> float:
    return sum(step.units for step in steps) / sum(step.seconds for step in steps)
