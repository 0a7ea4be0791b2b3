"""Search for the best translation with any model that follows the Translator protocol."""

from torch import Tensor

from hotloop.decoding.beam import beam_search
from hotloop.decoding.greedy import greedy_search
from hotloop.decoding.hypothesis import Hypothesis, length_cap
from hotloop.decoding.options import SearchOptions
from hotloop.models.interface import Translator

__all__ = ["Hypothesis", "SearchOptions", "beam_search", "greedy_search", "length_cap", "search"]


def search(
    model: Translator,
    source: Tensor,
    source_length: Tensor,
    options: SearchOptions | None = None,
    *,
    numbers: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """Up to ``n_best`` translations, best first, of each row of source (B, S).

    ``source_length`` (B,) lies on the CPU and counts EOS. ``options`` None: greedy. ``numbers`` (B,) are the sentences'
    own, on the CPU: with the seed they say what is drawn where tokens are sampled; None counts the rows. Runs the model
    in evaluation mode and without gradients, and leaves it as it was.

    Raises ValueError for options that need attention where ``model`` has none.
    """
    options = options or SearchOptions()
    if options.beam_size > 1:
        return beam_search(model, source, source_length, options)
    return greedy_search(model, source, source_length, options, numbers=numbers)
