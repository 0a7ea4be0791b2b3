"""What a search returns, how long it may look, and how hypotheses of different lengths are compared."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, overload

import torch
from torch import Tensor, nn

from hotloop.vocabulary import BOS, PAD, UNK

Length = TypeVar("Length", int, Tensor)


LONGEST = 100_000  # tokens; the room for them is set aside at the start


@dataclass(frozen=True)
class Hypothesis:
    """One translation, as target ids.

    ``score`` is ``log_probability`` divided by the length penalty of the number of scored tokens (EOS counts);
    the higher the better, and comparable between hypotheses of one sentence only.
    """

    tokens: list[int]  # without BOS and EOS
    score: float
    log_probability: float  # sum of ln p over tokens and, where finished, EOS
    finished: bool  # False: cut at the length cap before EOS came


def length_cap(source_length: Length, max_length: int | None = None) -> Length:
    """The number of steps allowed for a source of ``source_length`` tokens, its EOS not counted.

    ``max_length`` where given, else 2 * source_length + 10. One rule for validation and translation; it looks at
    the sentence alone, so that its neighbours in a batch cannot change the result. EOS takes up one step, so a
    finished hypothesis has one token less than the cap at most; a cut one has exactly as many.
    """
    if max_length is None:
        return 2 * source_length + 10
    return 0 * source_length + max_length


def check_options(*, beam_size: int, n_best: int, length_penalty: float, max_length: int | None) -> None:
    """ValueError, naming option and value, unless 1 <= n_best <= beam_size, length_penalty is finite and at least
    0, and max_length is None or at least 1."""
    for name, value in (("beam_size", beam_size), ("n_best", n_best), ("max_length", max_length)):
        if name == "max_length" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} = {value!r}: must be a whole number of at least 1")
    if max_length is not None and max_length > LONGEST:
        raise ValueError(f"max_length = {max_length}: must be at most {LONGEST}")
    if n_best > beam_size:
        raise ValueError(f"n_best = {n_best} is more than beam_size = {beam_size}: ask for a wider beam")
    number = isinstance(length_penalty, int | float) and not isinstance(length_penalty, bool)
    if not number or not 0 <= length_penalty < math.inf:
        raise ValueError(f"length_penalty = {length_penalty!r}: must be a finite number of at least 0")


@overload
def penalty(length: int, alpha: float) -> float: ...
@overload
def penalty(length: Tensor, alpha: float) -> Tensor: ...
def penalty(length: int | Tensor, alpha: float) -> float | Tensor:
    """Wu et al. 2016, equation 14: ((5 + length) / 6) ** alpha; alpha 0 compares plain log-probabilities."""
    return ((5 + length) / 6) ** alpha


def banned_tokens(allow_unknown: bool, device: torch.device) -> Tensor:
    """Ids that a search never produces; their share of the probability stays where the model put it."""
    return torch.tensor([PAD, BOS] if allow_unknown else [PAD, BOS, UNK], device=device)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode; afterwards each module is in the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
