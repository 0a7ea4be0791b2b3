"""Search for the best translation with any model that follows the Translator protocol."""

from torch import Tensor

from hotloop.decoding.beam import beam_search
from hotloop.decoding.greedy import greedy_search
from hotloop.decoding.hypothesis import Hypothesis, check_options, length_cap
from hotloop.models.interface import Translator

__all__ = ["Hypothesis", "beam_search", "check_options", "greedy_search", "length_cap", "search"]


def search(
    model: Translator,
    source: Tensor,
    source_length: Tensor,
    *,
    beam_size: int = 1,
    n_best: int = 1,
    length_penalty: float = 1.0,
    max_length: int | None = None,
    allow_unknown: bool = True,
) -> list[list[Hypothesis]]:
    """Up to ``n_best`` translations, best first, of each row of source (B, S).

    ``source_length`` (B,) lies on the CPU and counts EOS. ``max_length`` None: twice the source length plus ten, see
    :func:`length_cap`. Runs the model in evaluation mode and without gradients, and leaves it as it was.
    Raises ValueError for options out of range.
    """
    check_options(beam_size=beam_size, n_best=n_best, length_penalty=length_penalty, max_length=max_length)
    if beam_size > 1:
        return beam_search(
            model, source, source_length, beam_size=beam_size, n_best=n_best,
            length_penalty=length_penalty, max_length=max_length, allow_unknown=allow_unknown,
        )  # fmt: skip
    found = greedy_search(
        model, source, source_length,
        length_penalty=length_penalty, max_length=max_length, allow_unknown=allow_unknown,
    )  # fmt: skip
    return [[hypothesis] for hypothesis in found]
