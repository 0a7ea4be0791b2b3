"""From logits to the likeliest tokens: which are allowed, what they are worth, and the best of them.

The best few of many numbers are found by groups: the maximum of each 64, the best groups, the best of their members.
`topk` on everything takes three times as long on a CPU. Equal numbers keep the order of their places, which
`topk` leaves open; logits in bfloat16 are often equal.
"""

import torch
from torch import Tensor

from hotloop.decoding.options import SearchOptions
from hotloop.vocabulary import BOS, EOS, PAD, UNK

GROUP = 64


class LogProbabilities:
    """Log-probabilities of the next token, -inf for tokens that may not come.

    Their share of the probability stays where the model put it.
    """

    def __init__(self, options: SearchOptions, device: torch.device) -> None:
        never = [PAD, BOS] if options.allow_unknown else [PAD, BOS, UNK]
        self.min_length, self.ngram = options.min_length, options.no_repeat_ngram
        self._never = torch.tensor(never, device=device)
        self._never_nor_end = torch.tensor([*never, EOS], device=device)

    def may_end(self, step: int) -> bool:
        """Whether EOS is allowed after ``step`` tokens."""
        return step >= self.min_length

    def __call__(self, logits: Tensor, step: int, tokens: Tensor | None) -> Tensor:
        """Logits (N, V) after ``step`` tokens to log-probabilities (N, V), float32.

        ``tokens`` (N, step) are those so far; read where n-grams may not repeat.
        """
        # On a CPU this takes half the time of logsumexp; and the result is ours to write to.
        found = logits.float().log_softmax(-1)
        found.index_fill_(1, self._never if self.may_end(step) else self._never_nor_end, -torch.inf)
        if self.ngram and step >= self.ngram:
            assert tokens is not None
            forbid_repeats(found, tokens, self.ngram)
        return found


def forbid_repeats(log_probability: Tensor, tokens: Tensor, size: int) -> None:
    """Set to -inf, in (N, V), what would repeat ``size`` tokens in a row of ``tokens`` (N, T), T >= size."""
    steps = tokens.shape[1]
    following = tokens[:, size - 1 :]  # (N, T - size + 1): what came after each size - 1 tokens in a row
    repeated = torch.ones_like(following, dtype=torch.bool)
    for i in range(size - 1):
        last = tokens[:, steps - size + 1 + i, None]
        repeated &= tokens[:, i : i + following.shape[1]] == last
    # Adding needs no list of places, for which the host would have to wait.
    zero = torch.zeros(following.shape, dtype=log_probability.dtype, device=tokens.device)
    log_probability.scatter_add_(1, following, zero.masked_fill(repeated, -torch.inf))


def likeliest(log_probability: Tensor) -> tuple[Tensor, Tensor]:
    """The best number and token of each row (N, V): (N,) and (N,); of equals the smallest token."""
    rows = torch.arange(len(log_probability), device=log_probability.device)
    group = _group_maxima(log_probability).max(-1).indices
    best, place = _members(log_probability, rows, group).max(-1)
    return best, group * GROUP + place


def best_extensions(log_probability: Tensor, live_score: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The ``count`` likeliest extensions of each sentence's beams, best first: scores, beams, tokens (B, count).

    ``log_probability`` is (B * width, V), ``live_score`` (B, width). Equal scores: older beam first, then smaller
    token. Where there are fewer extensions the rest has score -inf.
    """
    sentences, width = live_score.shape
    vocabulary = log_probability.shape[1]
    maxima = _group_maxima(log_probability)
    groups = maxima.shape[1]
    summed = (maxima.view(sentences, width, groups) + live_score[:, :, None]).flatten(1)
    # If a group is not among the best `count`, that many numbers elsewhere come before all of its members. In the order
    # of their places, the members' numbers are in the order of beams and tokens.
    chosen = first_places(summed, count).sort(dim=1).values  # (B, C)
    beam, group = chosen // groups, chosen % groups
    row = beam + width * torch.arange(sentences, device=beam.device)[:, None]
    numbers = _members(log_probability, row.flatten(), group.flatten()).view(sentences, -1, GROUP)
    scores = (numbers + live_score.gather(1, beam)[:, :, None]).flatten(1)  # (B, C * GROUP)
    place = first_places(scores, count)
    at = place // GROUP
    score, beam, token = scores.gather(1, place), beam.gather(1, at), group.gather(1, at) * GROUP + place % GROUP
    # A group's empty places behind the vocabulary have score -inf, as what is forbidden.
    token = token.clamp_(max=vocabulary - 1)
    missing = count - score.shape[1]
    if missing > 0:
        score = torch.nn.functional.pad(score, (0, missing), value=-torch.inf)
        beam, token = (torch.nn.functional.pad(tensor, (0, missing)) for tensor in (beam, token))
    return score, beam, token


def first_places(numbers: Tensor, count: int) -> Tensor:
    """Places (B, count) of the largest of (B, N) float32, largest first; equals in the order of their places."""
    length = numbers.shape[1]
    # The bits of a float, taken as a whole number, grow with it; those of negative ones have to be turned round. The
    # place fills the lower half, so that no two are equal.
    bits = numbers.view(torch.int32)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    places = torch.arange(length - 1, -1, -1, device=numbers.device)
    keys = (bits.to(torch.int64) << 32) + places
    return length - 1 - (keys.topk(min(count, length), dim=1).values & 0xFFFFFFFF)


def _group_maxima(numbers: Tensor) -> Tensor:
    """(N, V) to (N, ceil(V / GROUP)); the last group may be smaller."""
    whole = numbers.shape[1] // GROUP * GROUP
    parts = [numbers[:, :whole].unflatten(1, (-1, GROUP)).amax(-1)] if whole else []
    if whole < numbers.shape[1]:
        parts.append(numbers[:, whole:].amax(-1, keepdim=True))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def _members(numbers: Tensor, rows: Tensor, groups: Tensor) -> Tensor:
    """The members (M, GROUP) of ``groups`` (M,) in ``rows`` (M,) of (N, V); -inf behind the last."""
    vocabulary = numbers.shape[1]
    places = (groups * GROUP)[:, None] + torch.arange(GROUP, device=groups.device)
    if vocabulary % GROUP == 0:
        return numbers.view(-1)[places + (rows * vocabulary)[:, None]]
    found = numbers.view(-1)[places.clamp(max=vocabulary - 1) + (rows * vocabulary)[:, None]]
    return found.masked_fill_(places >= vocabulary, -torch.inf)
