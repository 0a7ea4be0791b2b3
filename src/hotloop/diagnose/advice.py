"""From the gains of single levers to what to type: the best combination, measured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from hotloop.diagnose.levers import NOISE, SAME, Gain, Lever
from hotloop.errors import UserError


@dataclass(frozen=True)
class Advice:
    """What to change.

    Attributes:
        same_model: the fastest that keeps the model and the batches; None where nothing is faster.
        any_model: the fastest of all, where it is faster than `same_model` and changes what is learnt.
    """

    same_model: Gain | None
    any_model: Gain | None


def advise(gains: list[Gain], measure: Callable[[tuple[Gain, ...]], Gain]) -> Advice:
    """The fastest combinations of what was faster alone.

    Args:
        gains: of single levers.
        measure: runs several levers at once beside the settings as they are.
    """
    winners = [gain for gain in gains if gain.verdict == "faster"]
    keeping = [gain for gain in winners if gain.lever.same_model]
    same = fastest(keeping, measure)
    other = fastest(winners, measure) if len(winners) > len(keeping) else None
    if other is not None and (other.lever.same_model or (same is not None and other.speed_up <= same.speed_up)):
        other = None
    return Advice(same_model=same, any_model=other)


def fastest(gains: list[Gain], measure: Callable[[tuple[Gain, ...]], Gain]) -> Gain | None:
    """The best of the single gains and of all of them together; None if there are none.

    It is measured for itself: the best of several figures is partly the luckiest, and one that is not faster the
    second time makes room for the next. Levers that do not go together leave the best single one.
    """
    ranked = sorted(gains, key=lambda gain: -gain.speed_up)
    if len(gains) > 1:
        with contextlib.suppress(UserError):
            together = measure(tuple(gains))
            if together.verdict == "faster" and together.speed_up >= ranked[0].speed_up * (1 - NOISE):
                return together
    again = (measure((gain,)) for gain in ranked)
    return next((gain for gain in again if gain.verdict == "faster"), None)


def joined(gains: tuple[Gain, ...]) -> Lever:
    """The levers of several gains as one."""
    levers = [gain.lever for gain in gains]
    changes = [lever.changes for lever in levers if lever.changes != SAME]
    return Lever(
        overrides=tuple(override for lever in levers for override in lever.overrides),
        changes="; ".join(changes) or SAME,
        same_model=all(lever.same_model for lever in levers),
        same_batches=all(lever.same_batches for lever in levers),
        held=tuple(override for lever in levers for override in lever.held),
    )
