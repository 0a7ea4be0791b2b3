"""The decoder with input feeding over a whole target, as fast as steps that wait for each other can be.

With input feeding (Luong et al. 2015, section 3.3) each step reads what attention gave the step before, so the
steps cannot run at once. What does not depend on the step before is taken out of the loop: the embeddings' part of
the gates, and the gradients of all matrices.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotloop.models.attention import LuongAttention, Memory, at_least_float32
from hotloop.models.recurrent import Carried


class ProductBySteps:
    """base_t + z_t @ matrix for one step after the other, with one product for the matrix's whole gradient.

    Autograd would add up the gradient of the matrix step by step: as many passes over it as there are steps. Here
    the steps use the matrix without gradient; that of the base, which is what reaches each step's sum, gives the
    matrix's at the end.

    Args:
        base: (B, T, out), added to the products.
        matrix: (in, out), or one a row of the batch, (B, in, out).
    """

    def __init__(self, base: Tensor, matrix: Tensor) -> None:
        self.inputs: list[Tensor] = []
        device = base.device.type
        lowered = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else matrix.dtype
        self.matrix = matrix.detach().to(lowered)  # autocast would do it again at each step
        self.bases = _Gather.apply(base.to(lowered), matrix, self.inputs).unbind(1)

    def __call__(self, step: int, z: Tensor) -> Tensor:
        """z (B, in) of this step to (B, out)."""
        z = z.to(self.matrix.dtype)
        if torch.is_grad_enabled():
            self.inputs.append(z.detach())
        if self.matrix.ndim == 2:
            return torch.addmm(self.bases[step], z, self.matrix)
        return torch.baddbmm(self.bases[step][:, None], z[:, None], self.matrix)[:, 0]


class _Gather(torch.autograd.Function):
    """The base as it is; backward: the matrix's gradient from all inputs, which the steps have noted by then."""

    @staticmethod
    def forward(ctx: Any, base: Tensor, matrix: Tensor, inputs: list[Tensor]) -> Tensor:
        ctx.inputs, ctx.dtype, ctx.each_row = inputs, matrix.dtype, matrix.ndim == 3
        return base.view_as(base)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[override]
        inputs = torch.stack(ctx.inputs, dim=1)  # (B, T, in)
        one = inputs if ctx.each_row else inputs.flatten(0, 1)
        two = gradient if ctx.each_row else gradient.flatten(0, 1)
        return gradient, (one.mT @ two).to(ctx.dtype), None


class _Layer:
    """One recurrent layer, one step at a time.

    Args:
        weights: as in `nn.LSTM.all_weights`.
        first: what is carried into step 0, (B, H) each.
        embedded: (B, T, E), the part of the layer's input that is known beforehand; None = nothing is.
        shape: B and T.
    """

    def __init__(
        self, weights: Sequence[Tensor], first: Carried, *, embedded: Tensor | None, shape: tuple[int, int]
    ) -> None:
        of_inputs, of_hidden, *biases = weights
        known = 0 if embedded is None else embedded.shape[-1]
        self.carried, self.is_lstm = first, len(first) == 2
        # The biases of an LSTM and of a GRU's inputs go with what is known; those of a GRU's state stand apart.
        bias = biases[0] + biases[1] if self.is_lstm else biases[0]
        base = bias.expand(*shape, -1) if embedded is None else F.linear(embedded, of_inputs[:, :known], bias)
        of_inputs = of_inputs[:, known:]
        if self.is_lstm:
            self.gates = ProductBySteps(base, torch.cat((of_inputs, of_hidden), dim=1).mT)
        else:
            self.gates = ProductBySteps(base, of_inputs.mT)
            self.hidden_gates = ProductBySteps(biases[1].expand(*shape, -1), of_hidden.mT)

    def __call__(self, step: int, inputs: Tensor) -> Tensor:
        """Inputs (B, ·) to outputs (B, H)."""
        hidden = self.carried[0]
        size = hidden.shape[-1]
        if self.is_lstm:
            cell = self.carried[1]
            gates = self.gates(step, torch.cat((inputs, hidden), dim=1))
            input_forget, new, output = gates.split((2 * size, size, size), dim=1)
            take, keep = torch.sigmoid(input_forget).chunk(2, dim=1)
            cell = torch.addcmul(keep * cell, take, torch.tanh(new))
            self.carried = torch.sigmoid(output) * torch.tanh(cell), cell
        else:
            reset_update, new = self.gates(step, inputs).split((2 * size, size), dim=1)
            old_reset_update, old = self.hidden_gates(step, hidden).split((2 * size, size), dim=1)
            reset, update = torch.sigmoid(reset_update + old_reset_update).chunk(2, dim=1)
            new = torch.tanh(torch.addcmul(new, reset, old))
            self.carried = (torch.lerp(new, hidden.to(new.dtype), update),)
        return self.carried[0]


class _Attention:
    """Contexts of one step at a time over one memory; the scores of "concat" as in `LuongAttention`."""

    def __init__(self, attention: LuongAttention, memory: Memory, *, steps: int) -> None:
        self.attention, self.memory = attention, memory
        if attention.score == "concat":
            return
        values = memory.values
        rows, width, size = values.shape
        base = values.new_zeros(rows, steps, width)
        if memory.mask is not None:
            base = base.masked_fill(~memory.mask[:, None], torch.finfo(base.dtype).min)
        self.scores = ProductBySteps(base, memory.keys.mT * attention.scale)
        self.contexts = ProductBySteps(values.new_zeros(rows, steps, size), values)

    def __call__(self, step: int, states: Tensor) -> Tensor:
        """Decoder states (B, H) to contexts (B, H)."""
        if self.attention.score == "concat":
            return self.attention(states[:, None], self.memory)[:, 0]
        scores = self.scores(step, states)
        return self.contexts(step, scores.softmax(-1, dtype=at_least_float32(scores.dtype)))


@torch.compiler.disable  # dynamo would unroll the loop, once for each length
def decode_with_feeding(
    decoder: nn.LSTM | nn.GRU,
    embedded: Tensor,
    first: Carried,
    *,
    attention: LuongAttention,
    memory: Memory,
    combine: nn.Linear,
    dropout: float,
) -> Tensor:
    """Target embeddings (B, T, E) to what is projected, (B, T, H); step t also reads what step t - 1 gave.

    Args:
        decoder: reads E + H numbers a step.
        embedded: (B, T, E).
        first: what is carried into step 0, (layers, B, H) each.
        attention: between the last layer and `memory`.
        memory: the source.
        combine: of context and output.
        dropout: rate between the layers and of the result; 0 in evaluation.
    """
    rows, steps, _ = embedded.shape
    layers = [
        _Layer(weights, tuple(part[i] for part in first), embedded=None if i else embedded, shape=(rows, steps))
        for i, weights in enumerate(decoder.all_weights)
    ]
    attend = _Attention(attention, memory, steps=steps)
    combined = ProductBySteps(combine.bias.expand(rows, steps, -1), combine.weight.mT)
    fed = embedded.new_zeros(rows, decoder.hidden_size)
    results = []
    for step in range(steps):
        output = fed
        for i, layer in enumerate(layers):
            output = layer(step, output if i == 0 else F.dropout(output, dropout))
        context = attend(step, output)
        fed = torch.tanh(combined(step, torch.cat((context, output), dim=1)))
        fed = F.dropout(fed, dropout)
        results.append(fed)
    return torch.stack(results, dim=1)
