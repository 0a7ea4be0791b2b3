"""The output loss a chunk of tokens at a time: the logits of a whole batch are never in memory together."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from hotloop.tasks.losses import projected_losses

Project = Callable[[Tensor], Tensor]


class _ChunkedLoss(torch.autograd.Function):
    """Losses and, in the same walk over the chunks, the gradients of their sum.

    A chunk's logits are turned into gradients at once and forgotten, so nothing is projected a second time in the
    backward pass: that of Liger (Hsu et al. 2024, *Liger Kernel*, §3.2) for any projection. It holds for a sum of
    losses times a number: the gradient of the loss with respect to each token's loss has to be the same.
    """

    @staticmethod
    def forward(
        ctx: Any, project: Project, smoothing: float, chunk: int, labels: Tensor, hidden: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        losses, plains, of_hidden = [], [], torch.empty_like(hidden)
        of_weights: list[Tensor] = []
        for start in range(0, len(hidden), chunk):
            part = hidden[start : start + chunk].detach().requires_grad_()
            with torch.enable_grad():
                smoothed, plain = projected_losses(project, part, labels[start : start + chunk], smoothing)
                found, *parts = torch.autograd.grad(smoothed.sum(), [part, *weights])
            losses.append(smoothed.detach())
            plains.append(plain)
            of_hidden[start : start + chunk] = found
            if of_weights:
                torch._foreach_add_(of_weights, parts)
            else:  # in half precision each sum would lose what is small beside it
                of_weights = [value.to(torch.promote_types(value.dtype, torch.float32)) for value in parts]
        ctx.gradients = [of_hidden, *of_weights]
        ctx.dtypes = [value.dtype for value in (hidden, *weights)]
        plain = torch.cat(plains)
        ctx.mark_non_differentiable(plain)
        return torch.cat(losses), plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_losses: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.gradients is None:
            raise RuntimeError("chunked losses can be differentiated once only")
        # What a sum, a mean or a multiple of them sends back is one number, expanded.
        if of_losses.stride(0) != 0 and len(of_losses) > 1 and not bool((of_losses == of_losses[0]).all()):
            raise RuntimeError("chunked losses are for a sum of all tokens; for weights a token use projection_chunk=0")
        gradients, ctx.gradients = ctx.gradients, None
        for gradient in gradients:
            gradient *= of_losses[0]
        return None, None, None, None, *(g.to(dtype) for g, dtype in zip(gradients, ctx.dtypes, strict=True))


def chunked_losses(
    project: Project, hidden: Tensor, labels: Tensor, *, chunk: int, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """`smoothed_cross_entropy(project(hidden), labels)` with the logits of `chunk` tokens in memory at a time.

    Args:
        project: hidden states (N, H) to logits (N, V), each row for itself.
        hidden: (N, H).
        labels: (N,) int64.
        chunk: tokens.
        smoothing: see `smoothed_cross_entropy`.

    Returns:
        smoothed losses (N,), whose sum (or a multiple of it) may be differentiated once, and plain losses (N,).
    """
    if len(hidden) <= chunk:
        return projected_losses(project, hidden, labels, smoothing)
    if not torch.is_grad_enabled():
        pairs = [
            projected_losses(project, part, wanted, smoothing)
            for part, wanted in zip(hidden.split(chunk), labels.split(chunk), strict=True)
        ]
        smoothed, plain = (torch.cat(part) for part in zip(*pairs, strict=True))
        return smoothed, plain
    return _ChunkedLoss.apply(project, smoothing, chunk, labels, hidden, *weights_of(project, hidden[:0]))


def weights_of(project: Project, sample: Tensor) -> list[nn.Parameter]:
    """The trained parameters that `project` uses, found by walking back from what it makes of `sample` (0, H)."""
    with torch.enable_grad():
        made = project(sample.detach())
    found: dict[int, Any] = {}
    waiting, seen = [made.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found[id(node.variable)] = node.variable
        waiting.extend(next_node for next_node, _ in node.next_functions)
    return list(found.values())
