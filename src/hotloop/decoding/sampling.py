"""Drawing tokens at random, reproducibly.

The chance of a draw is a hash of the seed, the sentence's number, the draw's number and the step. So a sentence's
draws depend neither on its neighbours nor on the size of the batch, the device or what was drawn before.
"""

import torch
from torch import Tensor

from hotloop.decoding.options import SearchOptions
from hotloop.decoding.scoring import first_places

_GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # splitmix64's step and multipliers, as signed numbers
_FIRST, _SECOND = 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64
FEW = 256  # tokens


class Draws:
    """Draws for the rows of a batch.

    Args:
        options: temperature, top_k, top_p, seed.
        numbers: (B,) int64, the numbers of the sentences; each has ``options.n_best`` rows in a row.
    """

    def __init__(self, options: SearchOptions, numbers: Tensor) -> None:
        self.options = options
        draw = torch.arange(options.n_best, device=numbers.device)
        sentence = mixed(mixed(torch.full_like(numbers, options.seed)) + numbers)
        self._start = mixed(sentence[:, None] + draw).flatten()

    def chances(self, row: Tensor, step: int) -> Tensor:
        """Numbers (N,) float64 from 0 up to, but not including, 1 for these rows."""
        wrapped = ((step + 1) * _GOLDEN + 2**63) % 2**64 - 2**63
        return ((mixed(self._start[row] + wrapped) >> 12) & (2**52 - 1)).double() * 2.0**-52

    def __call__(self, log_probability: Tensor, row: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """One token of each row of (N, V): its log-probability (N,) and the token (N,)."""
        token = draw(log_probability, self.chances(row, step), self.options)
        return log_probability.gather(1, token[:, None]).squeeze(1), token


def draw(log_probability: Tensor, chance: Tensor, options: SearchOptions) -> Tensor:
    """The token (N,) at which the summed probabilities of a row (N, V) pass ``chance`` (N,), within [0, 1)."""
    token = None
    if options.top_k:
        token = first_places(log_probability, options.top_k)
        log_probability = log_probability.gather(1, token)
    probability = (log_probability.double() / options.temperature).softmax(-1)
    if options.top_p < 1:
        order = _enough(log_probability, probability, options.top_p)
        probability = probability.gather(1, order)
        token = order if token is None else token.gather(1, order)
        # The first token that reaches top_p is the last one in.
        before = probability.cumsum(-1) - probability
        probability = probability.masked_fill(before >= options.top_p, 0.0)
    summed = probability.cumsum(-1)
    place = torch.searchsorted(summed, (chance * summed[:, -1])[:, None], right=True)
    place = place.clamp_(max=summed.shape[1] - 1)
    return (place if token is None else token.gather(1, place)).squeeze(1)


def _enough(log_probability: Tensor, probability: Tensor, top_p: float) -> Tensor:
    """Places of each row of (N, V), the likeliest first, that together have `top_p`.

    A trained model is sure enough for a few to suffice, and then the rest need not be sorted.
    """
    order = first_places(log_probability, FEW)
    if bool((probability.gather(1, order).sum(-1) >= top_p).all()):
        return order
    return first_places(log_probability, log_probability.shape[1])


def mixed(numbers: Tensor) -> Tensor:
    """The bits of int64 numbers well stirred: the last step of splitmix64 (Steele, Lea and Flood 2014)."""
    numbers = numbers + _GOLDEN
    numbers = (numbers ^ _shifted(numbers, 30)) * _FIRST
    numbers = (numbers ^ _shifted(numbers, 27)) * _SECOND
    return numbers ^ _shifted(numbers, 31)


def _shifted(numbers: Tensor, bits: int) -> Tensor:
    """A shift to the right that lets zeros in; torch's repeats the sign."""
    return (numbers >> bits) & ((1 << (64 - bits)) - 1)
