"""What a search returns, how long it may look, and how hypotheses of different lengths are compared."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, overload

from torch import Tensor, nn

Length = TypeVar("Length", int, Tensor)


@dataclass(frozen=True)
class Hypothesis:
    """One translation, as target ids.

    ``score`` is ``log_probability`` divided by the length penalty of the number of scored tokens (EOS counts), plus
    the coverage penalty where asked for; the higher the better, and comparable between hypotheses of one sentence only.
    """

    tokens: list[int]  # without BOS and EOS
    score: float
    log_probability: float  # sum of ln p over tokens and, where finished, EOS
    finished: bool  # False: cut at the length cap before EOS came
    looked_at: list[int] | None = None  # for each token, the source position with most attention; where asked for


def length_cap(source_length: Length, max_length: int | None = None, min_length: int = 0) -> Length:
    """The number of steps allowed for a source of ``source_length`` tokens, its EOS not counted.

    ``max_length`` where given, else 2 * source_length + 10, or ``min_length`` and EOS where that is more. One rule for
    validation and translation; it looks at the sentence alone, so that its neighbours in a batch cannot change the
    result. EOS takes up one step, so a finished hypothesis has one token less than the cap at most; a cut one has
    exactly as many.
    """
    if max_length is not None:
        return 0 * source_length + max_length
    cap = 2 * source_length + 10
    return cap.clamp(min=min_length + 1) if isinstance(cap, Tensor) else max(cap, min_length + 1)


@overload
def penalty(length: int, alpha: float) -> float: ...
@overload
def penalty(length: Tensor, alpha: float) -> Tensor: ...
def penalty(length: int | Tensor, alpha: float) -> float | Tensor:
    """Wu et al. 2016, equation 14: ((5 + length) / 6) ** alpha; alpha 0 compares plain log-probabilities."""
    if isinstance(length, Tensor):
        length = length.float()  # a quotient of whole numbers would have the default dtype
    return ((5 + length) / 6) ** alpha


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
