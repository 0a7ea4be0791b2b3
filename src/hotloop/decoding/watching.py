"""Where each step of a search looked: for the coverage penalty and for unknown words."""

import torch
from torch import Tensor


def is_word(source_length: Tensor, width: int, device: torch.device) -> Tensor:
    """(B, S) bool: True where a source of these lengths (B,), EOS counted, has a token other than EOS."""
    return torch.arange(width, device=device) < (source_length - 1).to(device)[:, None]


def most_looked_at(attention: Tensor, words: Tensor) -> Tensor:
    """The place (N,) of the source word with the largest weight of each row of (N, S); the first of equals.

    ``words`` (N / width, S) says which places of each sentence are words; EOS is none.
    """
    grouped = attention.view(len(words), -1, attention.shape[1])
    return grouped.masked_fill(~words[:, None], -1.0).max(-1).indices.flatten()


def coverage_penalty(coverage: Tensor, words: Tensor, beta: float) -> Tensor:
    """Wu et al. 2016, equation 14: beta * sum over source words of ln min(summed weights, 1), 0 at most.

    ``coverage`` (B, K, S) are the weights summed over the steps, ``words`` as above; EOS is not asked for. A weight
    below the smallest float32 counts as that.
    """
    bounded = coverage.clamp(torch.finfo(coverage.dtype).tiny, 1.0)
    return beta * bounded.log().masked_fill(~words[:, None], 0.0).sum(-1)
