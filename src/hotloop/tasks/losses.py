"""Losses that every step pays for, with their equivalence to the plain formulation kept by tests."""

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

RegressionLoss = Literal["mse", "l1", "huber", "gaussian_nll"]
HALVES = (torch.bfloat16, torch.float16)
ROWS = 64
LEAST_VARIANCE = 1e-6  # of a standardised target: the likelihood of a hit is finite


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


def projected_losses(
    project: Callable[[Tensor], Tensor], hidden: Tensor, labels: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """`smoothed_cross_entropy` of what `project` makes of the hidden states (N, H).

    In half precision on a CPU the rows are filled up to a multiple of 64. oneDNN keeps its own copy of the matrix for
    each number of rows that it has met, up to a thousand: 4 GB for a vocabulary of 8,000 and a width of 256.
    """
    rows = len(hidden)
    half = hidden.dtype in HALVES or torch.is_autocast_enabled(hidden.device.type)
    missing = -rows % ROWS if half and hidden.device.type == "cpu" else 0
    if missing:
        hidden, labels = F.pad(hidden, (0, 0, 0, missing)), F.pad(labels, (0, missing))
    smoothed, plain = smoothed_cross_entropy(project(hidden), labels, smoothing)
    return smoothed[:rows], plain[:rows]


def mean_and_variance(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (B, 2T) as the means (B, T) and variances (B, T) of normal distributions, float32 at least.

    The variance is the softplus of its output and not the exponential (Nix & Weigend 1994): its gradient neither
    explodes nor has to be cut off.
    """
    mean, spread = outputs.to(torch.promote_types(outputs.dtype, torch.float32)).chunk(2, dim=1)
    return mean, F.softplus(spread) + LEAST_VARIANCE


def regression_losses(
    outputs: Tensor, targets: Tensor, *, loss: RegressionLoss = "mse", huber_delta: float = 1.0
) -> Tensor:
    """Loss of each sample (B,), the mean over its T targets; float32 at least.

    Args:
        outputs: (B, T), or (B, 2T) with "gaussian_nll", see `mean_and_variance`.
        targets: (B, T).
        loss: "mse", "l1", "huber", or "gaussian_nll": −ln of the normal density (Nix & Weigend 1994, eq. 5).
        huber_delta: error from which "huber" grows no longer with the square (Huber 1964).

    Raises:
        ValueError: the shapes do not fit. Nothing is broadcast: (B, 1) against (B,) would compare all with all.
    """
    wanted = targets.shape if loss != "gaussian_nll" else (*targets.shape[:-1], 2 * targets.shape[-1])
    if targets.ndim != 2 or outputs.shape != wanted:
        raise ValueError(
            f"outputs of shape {tuple(outputs.shape)} do not fit targets of shape {tuple(targets.shape)} "
            f"with loss={loss}"
        )
    dtype = torch.promote_types(outputs.dtype, torch.float32)
    targets = targets.to(dtype)
    if loss == "gaussian_nll":
        mean, variance = mean_and_variance(outputs)
        losses = 0.5 * (variance.log() + (targets - mean) ** 2 / variance + math.log(2 * math.pi))
    elif loss == "mse":
        losses = F.mse_loss(outputs.to(dtype), targets, reduction="none")
    elif loss == "l1":
        losses = F.l1_loss(outputs.to(dtype), targets, reduction="none")
    else:
        losses = F.huber_loss(outputs.to(dtype), targets, reduction="none", delta=huber_delta)
    return losses.mean(dim=1)
