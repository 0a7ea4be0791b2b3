"""How often a decoder in training is fed the reference instead of its own word (Bengio et al. 2015, section 2.4)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hotloop.models.options import check_choice, check_positive

Shape = Literal["linear", "exponential", "inverse_sigmoid"]

# The inverse sigmoid is cut off where it has 1/400 to go, and stretched to begin at `start` and end at `end`.
SIGMOID_ENDS = 6.0


@dataclass(frozen=True)
class TeacherForcing:
    """The share of reference words, by optimiser step.

    Attributes:
        start: share at step 0, from 0 to 1.
        end: share from step `steps` on.
        shape: of the way between: ``"linear"``, ``"exponential"`` (each step the same factor, so neither end can
            be 0) or ``"inverse_sigmoid"`` (slow, fast in the middle, slow).
        steps: optimiser steps from `start` to `end`.
    """

    start: float = 1.0
    end: float = 1.0
    shape: Shape = "linear"
    steps: int = 1

    @classmethod
    def from_option(cls, value: "float | Mapping[str, Any] | TeacherForcing") -> "TeacherForcing":
        """From one share for the whole run, or from a mapping of `start`, `end`, `steps` and, if need be, `shape`.

        Raises ValueError with the key and the value.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            share = _checked_share("teacher_forcing", value)
            return cls(share, share)
        for key in value:
            check_choice("key of teacher_forcing", key, ("start", "end", "shape", "steps"))
        missing = [key for key in ("end", "steps") if key not in value]
        if missing:
            raise ValueError(f"teacher_forcing.{missing[0]} is missing: a schedule needs end and steps")
        start = _checked_share("teacher_forcing.start", value.get("start", 1.0))
        end = _checked_share("teacher_forcing.end", value["end"])
        shape = value.get("shape", "linear")
        check_choice("teacher_forcing.shape", shape, get_args(Shape))
        check_positive(**{"teacher_forcing.steps": value["steps"]})
        if shape == "exponential" and not (start and end):
            raise ValueError(
                f"teacher_forcing: start = {start} and end = {end}: an exponential never reaches 0; give a small "
                "number, or another shape"
            )
        return cls(start, end, shape, value["steps"])

    @property
    def always(self) -> bool:
        """Whether every word is the reference, at every step."""
        return self.start == self.end == 1.0

    def ratio(self, step: int) -> float:
        """The share of reference words at an optimiser step, the first being 0."""
        done = min(1.0, step / self.steps)
        if self.start == self.end or done == 1.0:  # exactly, where a formula would round
            return self.end
        if self.shape == "exponential":
            return self.start * (self.end / self.start) ** done
        if self.shape == "inverse_sigmoid":
            low, high = _sigmoid(-SIGMOID_ENDS), _sigmoid(SIGMOID_ENDS)
            done = 1.0 - (_sigmoid(SIGMOID_ENDS * (1.0 - 2.0 * done)) - low) / (high - low)
        return self.start + (self.end - self.start) * done

    def __str__(self) -> str:
        if self.start == self.end:
            return f"{self.start:g}"
        return f"{self.start:g} → {self.end:g} ({self.shape}, {self.steps:,} steps)"


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def _checked_share(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name} = {value!r}: must be a number from 0 to 1, or a schedule of start, end and steps")
    return float(value)
