"""Losses that every step pays for, with their equivalence to the plain formulation kept by tests."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Smoothed and plain token losses from one softmax; the backward pass walks the logits once or twice.

    Two calls of `F.cross_entropy` would compute the softmax over the vocabulary twice.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        log_probability = F.log_softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        plain = -log_probability.gather(1, labels.unsqueeze(1)).squeeze(1)
        smoothed = plain
        if smoothing:
            smoothed = (1 - smoothing) * plain - smoothing * log_probability.mean(-1)
        ctx.save_for_backward(log_probability, labels)
        ctx.smoothing, ctx.dtype = smoothing, logits.dtype
        plain = plain.detach().clone() if plain is smoothed else plain
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        log_probability, labels = ctx.saved_tensors
        gradient = log_probability.exp()
        if ctx.smoothing:
            gradient -= ctx.smoothing / gradient.shape[-1]
        hit = torch.full_like(labels, 1, dtype=gradient.dtype).mul_(ctx.smoothing - 1)
        gradient.scatter_add_(1, labels.unsqueeze(1), hit.unsqueeze(1))
        gradient *= gradients[0].unsqueeze(1)
        return gradient.to(ctx.dtype), None, None


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """Negative log-likelihood of each token, smoothed to train on and plain to report.

    The smoothed loss is `(1 − s) · nll + s · mean over the vocabulary of −log p` (Szegedy et al. 2016, §7).
    Reductions run in float32 whatever the dtype of the logits.

    Args:
        logits: (N, V).
        labels: (N,) int64.
        smoothing: s, in [0, 1).

    Returns:
        smoothed losses (N,) and plain losses (N,), float32; no gradient flows through the plain ones.
    """
    smoothed, plain = _SmoothedCrossEntropy.apply(logits, labels, smoothing)
    return smoothed, plain
