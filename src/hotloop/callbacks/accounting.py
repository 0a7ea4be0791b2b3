"""The arithmetic of the training report: where the time of an epoch went and what was done in it."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

PHASES = ("data", "step", "validation", "checkpoint")


class Stopwatch:
    """Adds up seconds by phase; exactly one phase runs at a time.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.phase: str | None = None
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._since = 0.0

    def switch(self, phase: str | None) -> None:
        """End the running phase and start `phase`; None stops the watch."""
        now = self._clock()
        if self.phase is not None:
            self.seconds[self.phase] += now - self._since
        self.phase, self._since = phase, now

    def read(self) -> dict[str, float]:
        """Seconds of each phase, the running one up to now."""
        self.switch(self.phase)
        return dict(self.seconds)

    def reset(self, seconds: Mapping[str, float] | None = None) -> None:
        """Stop, and start again from `seconds` or from zero."""
        self.phase = None
        self.seconds = {phase: float((seconds or {}).get(phase, 0.0)) for phase in PHASES}


@dataclass
class Totals:
    """What was done since the epoch began; differences of two such states describe an interval.

    Attributes:
        samples: samples trained on.
        tokens: real target tokens, EOS counted; 0 where the task has no tokens.
        losses: steps whose loss is known.
        loss_sum: sum over these tokens (samples where there are no tokens) of the loss.
        cells: entries of the padded id tensors, source and target.
        real_cells: those of them that are no padding.
    """

    samples: int = 0
    tokens: int = 0
    losses: int = 0
    loss_sum: float = 0.0
    cells: int = 0
    real_cells: int = 0

    def since(self, earlier: "Totals") -> "Totals":
        """What was added after `earlier`."""
        return Totals(**{f.name: getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)})

    def copy(self) -> "Totals":
        return Totals(**asdict(self))

    @property
    def loss(self) -> float | None:
        """Mean loss per target token, or per sample where there are no tokens; None if it is not known."""
        return ratio(self.loss_sum, self.tokens or self.samples) if self.losses else None

    @property
    def padding_share(self) -> float | None:
        """Padding over all entries of the id tensors, 0 … 1."""
        return None if not self.cells else 1.0 - self.real_cells / self.cells


def ratio(value: float, by: float) -> float | None:
    """`value / by`; None where that means nothing."""
    return value / by if by > 0 else None


def training_seconds(seconds: Mapping[str, float]) -> float:
    """Seconds of training proper: waiting for data and stepping, neither validation nor checkpoints."""
    return seconds["data"] + seconds["step"]


def rates(totals: Totals, seconds: Mapping[str, float], *, processes: int = 1) -> dict[str, float | None]:
    """Samples and real target tokens per second of training, and the share of it spent waiting for data.

    Args:
        totals: what one process did.
        seconds: its seconds by phase.
        processes: how many processes do the like.
    """
    training = training_seconds(seconds)
    return {
        "samples_per_s": ratio(totals.samples * processes, training),
        "tokens_per_s": ratio(totals.tokens * processes, training) if totals.tokens else None,
        "data_wait_share": ratio(seconds["data"], training),
    }


def perplexity(loss: float | None) -> float | None:
    """exp(loss), infinite where that overflows."""
    return None if loss is None else math.exp(loss) if loss < 700.0 else loss if math.isnan(loss) else math.inf


def epoch_record(
    *,
    epoch: int,
    steps: int,
    totals: Totals,
    seconds: Mapping[str, float],
    learning_rate: float | None,
    grad_norm: float | None,
    metrics: Mapping[str, float],
    peak_rss_mb: float,
    peak_gpu_mb: float | None,
) -> dict[str, Any]:
    """One entry of `epochs` in report.json; `totals` are those of all processes together."""
    speed = rates(totals, seconds)
    return {
        "epoch": epoch,
        "steps": steps,
        "samples": totals.samples,
        "tokens": totals.tokens or None,
        "seconds": training_seconds(seconds),
        "data_wait_s": seconds["data"],
        "validation_s": seconds["validation"],
        "checkpoint_s": seconds["checkpoint"],
        "samples_per_s": speed["samples_per_s"],
        "tokens_per_s": speed["tokens_per_s"],
        "learning_rate": learning_rate,
        "train_loss": totals.loss,
        "val_loss": metrics.get("val/loss"),
        "grad_norm": grad_norm,
        "padding_share": totals.padding_share,
        "peak_rss_mb": peak_rss_mb,
        "peak_gpu_mb": peak_gpu_mb,
        "metrics": dict(metrics),
    }
