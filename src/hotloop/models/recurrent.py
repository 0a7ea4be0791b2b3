"""Parts of recurrent encoders and decoders: LSTM (Hochreiter & Schmidhuber 1997) and GRU (Cho et al. 2014)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from hotloop.models.attention import Memory

Cell = Literal["lstm", "gru"]
CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}
GATES = {"lstm": 4, "gru": 3}

# What is carried from step to step: (h, c) of an LSTM, (h,) of a GRU, each (layers, B, H).
Carried = tuple[Tensor, ...]


@dataclass(frozen=True)
class Seq2SeqState:
    """Decoder between two steps; each tuple has one (N, H) tensor a layer."""

    hidden: tuple[Tensor, ...]
    cell: tuple[Tensor, ...]  # () in a GRU
    memory: Memory | None  # of N / width sentences; None in a model without attention
    fed: Tensor | None = None  # (N, H), what the last step gave; None without input feeding
    width: int = 1  # hypotheses of a sentence, side by side
    keep_attention: bool = False
    attention: Tensor | None = None  # (N, S)

    def select(self, rows: Tensor, *, width: int = 1) -> "Seq2SeqState":
        """Rows (N,) of the batch, kept, repeated or reordered; see `hotloop.models.interface.State`."""
        memory = self.memory
        if memory is not None and not (width > 1 and len(rows) // width == len(memory.values)):
            memory = memory.select(rows[::width] // self.width)
        return replace(
            self,
            hidden=tuple(layer.index_select(0, rows) for layer in self.hidden),
            cell=tuple(layer.index_select(0, rows) for layer in self.cell),
            memory=memory,
            fed=None if self.fed is None else self.fed.index_select(0, rows),
            width=width,
            attention=None if self.attention is None else self.attention.index_select(0, rows),
        )


def single_step(weights: Sequence[Tensor], inputs: Tensor, before: Carried) -> Carried:
    """One step of one layer: inputs (N, E) and what was carried, (N, H) each, to what is carried on.

    Args:
        weights: of the layer, as in `nn.LSTM.all_weights`. For a single step `nn.LSTM` itself spends more time on
            preparing its weights than on the step.
    """
    if len(before) == 2:
        return torch.lstm_cell(inputs, before, *weights)
    return (torch.gru_cell(inputs, before[0], *weights),)


def run_recurrent(network: nn.LSTM | nn.GRU, inputs: Tensor, first: Carried) -> tuple[Tensor, Carried]:
    """All steps of all layers at once: inputs (B, T, E) to outputs (B, T, H) and what is carried on."""
    if isinstance(network, nn.LSTM):
        return network(inputs, first)
    output, last = network(inputs, first[0])
    return output, (last,)


@torch.compiler.disable  # dynamo does not trace nn.LSTM, and would only complain about the lengths
def run_encoder(encoder: nn.LSTM | nn.GRU, embedded: Tensor, length: Tensor) -> tuple[Tensor, Carried, Tensor | None]:
    """Outputs (B, S, directions * H), last states (layers * directions, B, H) and the mask of real positions (B, S).

    When all rows are full nothing is packed and the mask is None: the fused kernels take the batch as it is.
    """
    steps = embedded.shape[1]
    if bool((length == steps).all()):
        output, last = encoder(embedded)
        return output, last if isinstance(last, tuple) else (last,), None
    packed = pack_padded_sequence(embedded, length, batch_first=True, enforce_sorted=False)
    output, last = encoder(packed)
    output, _ = pad_packed_sequence(output, batch_first=True, total_length=steps)
    # From lengths on the CPU to a mask on the device without waiting for the device.
    mask = torch.arange(steps, device=embedded.device) < length.to(embedded.device, non_blocking=True)[:, None]
    return output, last if isinstance(last, tuple) else (last,), mask


def mix_layers(linear: nn.Module, states: Tensor) -> Tensor:
    """(encoder layers * directions, B, H) to (decoder layers, B, H) by a linear map over the first axis."""
    return linear(states.permute(1, 2, 0)).permute(2, 0, 1).contiguous()


def join_directions(maps: nn.ModuleList, states: Tensor, directions: int) -> Tensor:
    """(layers * directions, B, H) to (layers, B, H) by a map of each layer's joined directions, and tanh."""
    joined = states.unflatten(0, (-1, directions)).transpose(1, 2).flatten(2)  # (layers, B, directions * H)
    return torch.stack([torch.tanh(linear(layer)) for linear, layer in zip(maps, joined, strict=True)])


@torch.no_grad()
def init_xavier(model: nn.Module, *, gates: int) -> None:
    """Xavier-uniform matrices (Glorot & Bengio 2010), each gate of the recurrent ones for itself; zero biases."""
    for name, parameter in model.named_parameters():
        if "bias" in name:
            parameter.zero_()
        elif name.startswith(("encoder", "decoder")):
            for gate in parameter.chunk(gates):
                nn.init.xavier_uniform_(gate)
        else:
            nn.init.xavier_uniform_(parameter)
