"""LSTM encoder-decoder with or without Luong attention (Sutskever et al. 2014; Luong et al. 2015)."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from hotloop.models.attention import SCORES, LuongAttention, Memory, Score
from hotloop.vocabulary import PAD

BridgeKind = Literal["layers", "concat", "zero"]
Decoding = Literal["parallel", "stepwise"]
Init = Literal["default", "xavier"]
LSTMState = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Seq2SeqState:
    """Decoder between two steps; each tuple has one (N, H) tensor a layer."""

    hidden: tuple[Tensor, ...]
    cell: tuple[Tensor, ...]
    memory: Memory | None  # of N / width sentences; None in a model without attention
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
            width=width,
            attention=None if self.attention is None else self.attention.index_select(0, rows),
        )


class Seq2Seq(nn.Module):
    """LSTM encoder, bridge, LSTM decoder, optional Luong attention, projection to the vocabulary.

    With attention the encoder outputs are mapped to the decoder's width (where they differ), and the decoder output
    h_t becomes tanh(W [context; h_t]) before the projection. There is no input feeding, so training runs the decoder
    over all steps in one call.

    Options (all by keyword):

    - ``embedding``: width of both embeddings, or ``source_embedding`` / ``target_embedding`` for one side.
    - ``hidden``: width of the decoder and of each direction of the encoder.
    - ``bridge``, from the encoder's last states to the decoder's first: ``"layers"`` mixes layers and directions by
      one linear map over the layer axis, one for h and one for c; ``"concat"`` maps the joined directions of each
      layer through a linear map and tanh (as many layers on both sides); ``"zero"`` starts from zeros, so that all
      the decoder learns of the source comes by attention.
    - dropouts: ``encoder_embedding_dropout`` on the source embeddings, ``encoder_dropout`` between encoder layers,
      ``decoder_embedding_dropout`` on the target embeddings, ``decoder_dropout`` between decoder layers and on what
      is projected.
    - ``tie_embeddings``: the projection shares the target embedding's matrix (needs target embedding = hidden).
    - ``decoding``: ``"parallel"``, or ``"stepwise"``: the same mathematics one word at a time, kept to compare.
    - ``init``: ``"default"`` (PyTorch's), or ``"xavier"``: Xavier-uniform matrices (each LSTM gate for itself), zero
      biases.

    Parameters of the published model (embeddings 300, hidden 512, 4 + 4 layers, bidirectional; 10,411 source and
    10,017 target words)::

        embeddings           300 * (10,411 + 10,017)                                            6,128,400
        encoder, layer 1     2 * (2,048 * (300 + 512) + 2 * 2,048)                              3,334,144
        encoder, layers 2-4  3 * 2 * (2,048 * (1,024 + 512) + 2 * 2,048)                       18,898,944
        bridge               2 * (8 * 4 + 4)                                                           72
        decoder, layer 1     2,048 * (300 + 512) + 2 * 2,048                                    1,667,072
        decoder, layers 2-4  3 * (2,048 * (512 + 512) + 2 * 2,048)                              6,303,744
        projection           512 * 10,017 + 10,017                                              5,138,721
                                                                              without attention 41,471,097
        memory, combine      2 * (1,024 * 512 + 512)                                            1,049,600
                                                                    with dot or scaled_dot      42,520,697

    Raises ValueError for an option outside its range or options that do not go together.
    """

    def __init__(
        self,
        *,
        source_vocabulary: int,
        target_vocabulary: int,
        embedding: int = 256,
        source_embedding: int | None = None,
        target_embedding: int | None = None,
        hidden: int = 256,
        encoder_layers: int = 2,
        decoder_layers: int = 2,
        bidirectional: bool = True,
        attention: Score | None = "general",
        bridge: BridgeKind = "layers",
        encoder_embedding_dropout: float = 0.0,
        encoder_dropout: float = 0.0,
        decoder_embedding_dropout: float = 0.0,
        decoder_dropout: float = 0.0,
        tie_embeddings: bool = False,
        decoding: Decoding = "parallel",
        init: Init = "default",
    ) -> None:
        super().__init__()
        source_embedding = embedding if source_embedding is None else source_embedding
        target_embedding = embedding if target_embedding is None else target_embedding
        _check_positive(
            source_vocabulary=source_vocabulary, target_vocabulary=target_vocabulary, embedding=embedding,
            source_embedding=source_embedding, target_embedding=target_embedding, hidden=hidden,
            encoder_layers=encoder_layers, decoder_layers=decoder_layers,
        )  # fmt: skip
        _check_rates(
            encoder_embedding_dropout=encoder_embedding_dropout, encoder_dropout=encoder_dropout,
            decoder_embedding_dropout=decoder_embedding_dropout, decoder_dropout=decoder_dropout,
        )  # fmt: skip
        _check_names(attention, bridge, decoding, init)
        if bridge == "zero" and attention is None:
            raise ValueError('bridge "zero" without attention would hide the source from the decoder')
        if bridge == "concat" and encoder_layers != decoder_layers:
            raise ValueError(
                f'bridge "concat" needs as many encoder as decoder layers, not {encoder_layers} and {decoder_layers}; '
                'bridge "layers" takes any numbers'
            )
        if tie_embeddings and target_embedding != hidden:
            raise ValueError(f"tie_embeddings needs target_embedding = hidden, not {target_embedding} and {hidden}")

        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary
        self.attends = attention is not None
        self.alignment_layer = 0  # all attention is above the last decoder layer
        self.decoding = decoding
        self.bridge = bridge
        self.directions = 2 if bidirectional else 1
        self.encoder_embedding_dropout = encoder_embedding_dropout
        self.decoder_embedding_dropout = decoder_embedding_dropout
        self.decoder_dropout = decoder_dropout

        self.source_embedding = nn.Embedding(source_vocabulary, source_embedding, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_vocabulary, target_embedding, padding_idx=PAD)
        self.encoder = nn.LSTM(
            source_embedding, hidden, encoder_layers, batch_first=True, bidirectional=bidirectional,
            dropout=encoder_dropout if encoder_layers > 1 else 0.0,
        )  # fmt: skip
        self.decoder = nn.LSTM(
            target_embedding, hidden, decoder_layers, batch_first=True,
            dropout=decoder_dropout if decoder_layers > 1 else 0.0,
        )  # fmt: skip
        if bridge == "layers":
            self.bridge_hidden: nn.Module = nn.Linear(self.directions * encoder_layers, decoder_layers)
            self.bridge_cell: nn.Module = nn.Linear(self.directions * encoder_layers, decoder_layers)
        elif bridge == "concat":
            width = self.directions * hidden
            self.bridge_hidden = nn.ModuleList(nn.Linear(width, hidden) for _ in range(decoder_layers))
            self.bridge_cell = nn.ModuleList(nn.Linear(width, hidden) for _ in range(decoder_layers))
        if attention is not None:
            self.memory = nn.Linear(2 * hidden, hidden) if bidirectional else nn.Identity()
            self.attention = LuongAttention(hidden=hidden, score=attention)
            self.combine = nn.Linear(2 * hidden, hidden)
        self.projection = nn.Linear(hidden, target_vocabulary)
        if tie_embeddings:
            # Unit-variance embeddings would make logits of size sqrt(H): scale the shared matrix for its second task.
            nn.init.normal_(self.target_embedding.weight, std=hidden**-0.5)
            self.projection.weight = self.target_embedding.weight
        if init == "xavier":
            self._init_xavier()
        with torch.no_grad():
            self.target_embedding.weight[PAD] = 0.0

    def forward(self, source: Tensor, source_length: Tensor, target_in: Tensor, target_length: Tensor) -> Tensor:
        """Teacher-forced pass: hidden states (B, T, H) for source (B, S) and target_in (B, T).

        A decoder step sees earlier steps only, so what stands behind a row's end changes nothing before it and
        ``target_length`` is not needed here.
        """
        first, memory = self._encode(source, source_length)
        if self.decoding == "stepwise":
            return self._decode_stepwise(target_in, first, memory)
        output, _ = self.decoder(self._embed_target(target_in), first)
        return self._attend(output, memory)

    def project(self, hidden: Tensor) -> Tensor:
        """Hidden states (..., H) to logits (..., V)."""
        return self.projection(hidden)

    def start(self, source: Tensor, source_length: Tensor, *, keep_attention: bool = False) -> Seq2SeqState:
        """Encode source (B, S) for decoding step by step."""
        if keep_attention and not self.attends:
            raise ValueError("this model has no attention weights: it was built without attention")
        (hidden, cell), memory = self._encode(source, source_length)
        return Seq2SeqState(hidden.unbind(0), cell.unbind(0), memory, keep_attention=keep_attention)

    def step(self, token: Tensor, state: Seq2SeqState) -> tuple[Tensor, Seq2SeqState]:
        """Tokens (B,) to the logits (B, V) of their successors and the state after them.

        Uses one LSTM cell a layer on the decoder's own weights: for a single step ``nn.LSTM`` spends more time on
        preparing its weights than on the step.
        """
        output = self._embed_target(token)
        hiddens, cells = [], []
        for layer, weights in enumerate(self.decoder.all_weights):
            if layer > 0:
                output = F.dropout(output, self.decoder_dropout, self.training)
            before = (state.hidden[layer], state.cell[layer])
            output, cell = torch.lstm_cell(output, before, *weights)
            hiddens.append(output)
            cells.append(cell)
        # The hypotheses of a sentence look at its source as if they were steps: (sentences, width, H).
        grouped = output.unflatten(0, (-1, state.width))
        attention = None
        if state.keep_attention:
            assert state.memory is not None
            attention = self.attention.weights(grouped, state.memory).flatten(0, 1)
        output = self._attend(grouped, state.memory).flatten(0, 1)
        after = replace(state, hidden=tuple(hiddens), cell=tuple(cells), attention=attention)
        return self.project(output), after

    def attention_weights(self, source: Tensor, source_length: Tensor, target_in: Tensor) -> Tensor:
        """Teacher-forced weights (B, 1, 1, T, S) in float32; ValueError in a model without attention."""
        if not self.attends:
            raise ValueError(
                f"this model has no attention weights: it was built without attention; choose one of {SCORES}"
            )
        first, memory = self._encode(source, source_length)
        assert memory is not None
        output, _ = self.decoder(self._embed_target(target_in), first)
        return self.attention.weights(output, memory)[:, None, None]

    def _encode(self, source: Tensor, source_length: Tensor) -> tuple[LSTMState, Memory | None]:
        """Source (B, S) to the decoder's first state, each (decoder layers, B, H), and the attention memory."""
        embedded = F.dropout(self.source_embedding(source), self.encoder_embedding_dropout, self.training)
        output, last, mask = _run_encoder(self.encoder, embedded, source_length)
        first = self._cross_bridge(*last)
        return first, self.attention.remember(self.memory(output), mask) if self.attends else None

    def _cross_bridge(self, hidden: Tensor, cell: Tensor) -> LSTMState:
        """Encoder states (layers * directions, B, H) to decoder states (decoder layers, B, H)."""
        if self.bridge == "layers":
            return _mix_layers(self.bridge_hidden, hidden), _mix_layers(self.bridge_cell, cell)
        if self.bridge == "concat":
            return self._join_directions(self.bridge_hidden, hidden), self._join_directions(self.bridge_cell, cell)
        zeros = hidden.new_zeros(self.decoder.num_layers, *hidden.shape[1:])
        return zeros, zeros

    def _join_directions(self, maps: nn.Module, states: Tensor) -> Tensor:
        assert isinstance(maps, nn.ModuleList)
        joined = states.unflatten(0, (-1, self.directions)).transpose(1, 2).flatten(2)  # (layers, B, directions * H)
        return torch.stack([torch.tanh(linear(layer)) for linear, layer in zip(maps, joined, strict=True)])

    def _embed_target(self, tokens: Tensor) -> Tensor:
        return F.dropout(self.target_embedding(tokens), self.decoder_embedding_dropout, self.training)

    def _attend(self, output: Tensor, memory: Memory | None) -> Tensor:
        """Decoder outputs (B, T, H) to what is projected (B, T, H)."""
        if memory is not None:
            output = torch.tanh(self.combine(torch.cat((self.attention(output, memory), output), dim=-1)))
        return F.dropout(output, self.decoder_dropout, self.training)

    def _decode_stepwise(self, target_in: Tensor, state: LSTMState, memory: Memory | None) -> Tensor:
        """The decoder as it is usually first written: embed, one LSTM step and attend, word after word."""
        hidden = []
        for t in range(target_in.shape[1]):
            output, state = self.decoder(self._embed_target(target_in[:, t : t + 1]), state)
            hidden.append(self._attend(output, memory))
        return torch.cat(hidden, dim=1)

    @torch.no_grad()
    def _init_xavier(self) -> None:
        for name, parameter in self.named_parameters():
            if "bias" in name:
                parameter.zero_()
            elif name.startswith(("encoder", "decoder")):
                for gate in parameter.chunk(4):
                    nn.init.xavier_uniform_(gate)
            else:
                nn.init.xavier_uniform_(parameter)
        self.source_embedding.weight[PAD] = 0.0


@torch.compiler.disable  # dynamo does not trace nn.LSTM, and would only complain about the lengths
def _run_encoder(encoder: nn.LSTM, embedded: Tensor, length: Tensor) -> tuple[Tensor, LSTMState, Tensor | None]:
    """Outputs (B, S, directions * H), last states (layers * directions, B, H) and the mask of real positions (B, S).

    When all rows are full nothing is packed and the mask is None: the fused kernels take the batch as it is.
    """
    steps = embedded.shape[1]
    if bool((length == steps).all()):
        return *encoder(embedded), None
    packed = pack_padded_sequence(embedded, length, batch_first=True, enforce_sorted=False)
    output, last = encoder(packed)
    output, _ = pad_packed_sequence(output, batch_first=True, total_length=steps)
    # From lengths on the CPU to a mask on the device without waiting for the device.
    mask = torch.arange(steps, device=embedded.device) < length.to(embedded.device, non_blocking=True)[:, None]
    return output, last, mask


def _mix_layers(linear: nn.Module, states: Tensor) -> Tensor:
    """(encoder layers * directions, B, H) to (decoder layers, B, H) by a linear map over the first axis."""
    return linear(states.permute(1, 2, 0)).permute(2, 0, 1).contiguous()


def _check_positive(**values: int) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} = {value!r}: must be a whole number of at least 1")


def _check_rates(**values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise ValueError(f"{name} = {value!r}: must be a number from 0 up to, but not including, 1")


def _check_names(attention: object, bridge: object, decoding: object, init: object) -> None:
    choices: list[tuple[str, object, tuple[object, ...]]] = [
        ("attention", attention, (None, *SCORES)),
        ("bridge", bridge, get_args(BridgeKind)),
        ("decoding", decoding, get_args(Decoding)),
        ("init", init, get_args(Init)),
    ]
    for name, value, valid in choices:
        if value not in valid:
            raise ValueError(f"{name} = {value!r}: choose one of {', '.join(map(str, valid))}")
