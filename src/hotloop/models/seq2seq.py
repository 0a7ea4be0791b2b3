"""Recurrent encoder-decoder with or without Luong attention (Sutskever et al. 2014; Luong et al. 2015)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotloop.models.attention import SCORES, LuongAttention, Memory, Score
from hotloop.models.input_feeding import decode_with_feeding
from hotloop.models.options import check_choice, check_positive, check_rates
from hotloop.models.recurrent import (
    CELLS,
    GATES,
    Carried,
    Cell,
    Seq2SeqState,
    init_xavier,
    join_directions,
    mix_layers,
    run_encoder,
    run_recurrent,
    single_step,
)
from hotloop.models.teacher_forcing import TeacherForcing
from hotloop.vocabulary import PAD

BridgeKind = Literal["layers", "concat", "zero"]
Decoding = Literal["parallel", "stepwise"]
Init = Literal["default", "xavier"]


class Seq2Seq(nn.Module):
    """Recurrent encoder, bridge, recurrent decoder, optional Luong attention, projection to the vocabulary.

    With attention the encoder outputs are mapped to the decoder's width (where they differ), and the decoder output
    h_t becomes tanh(W [context; h_t]) before the projection. Without input feeding no step waits for the attention
    of the one before, so training runs the decoder over all steps in one call.

    Options (all by keyword):

    - ``embedding``: width of both embeddings, or ``source_embedding`` / ``target_embedding`` for one side.
    - ``hidden``: width of the decoder; ``encoder_hidden``: of each direction of the encoder, None = hidden.
    - ``cell``: ``"lstm"`` or ``"gru"``, of both sides.
    - ``attention``: None or a score of `LuongAttention`.
    - ``input_feeding``: each step also reads the tanh(W [context; h]) of the step before (Luong et al. 2015, section
      3.3), which puts the decoder's steps one behind the other.
    - ``bridge``, from the encoder's last states to the decoder's first: ``"layers"`` mixes layers and directions by
      one linear map over the layer axis, one for h and one for an LSTM's c; ``"concat"`` maps the joined directions of
      each layer through a linear map and tanh (as many layers on both sides); ``"zero"`` starts from zeros, so that all
      the decoder learns of the source comes by attention.
    - dropouts: ``encoder_embedding_dropout`` on the source embeddings, ``encoder_dropout`` between encoder layers,
      ``decoder_embedding_dropout`` on the target embeddings, ``decoder_dropout`` between decoder layers and on what
      is projected.
    - ``tie_embeddings``: the projection shares the target embedding's matrix (needs target embedding = hidden).
    - ``decoding``: ``"parallel"``, at once all that does not wait for the step before, or ``"stepwise"``: the same
      mathematics as it is usually first written, kept to compare.
    - ``init``: ``"default"`` (PyTorch's), or ``"xavier"``: Xavier-uniform matrices (each gate for itself), zero biases.
    - ``teacher_forcing``: share of reference words that the decoder is fed in training, or a schedule of it; see
      `TeacherForcing`. It is for the task to read: the model itself reads the words that it is given.

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
        encoder_hidden: int | None = None,
        encoder_layers: int = 2,
        decoder_layers: int = 2,
        bidirectional: bool = True,
        cell: Cell = "lstm",
        attention: Score | None = "general",
        input_feeding: bool = False,
        bridge: BridgeKind = "layers",
        encoder_embedding_dropout: float = 0.0,
        encoder_dropout: float = 0.0,
        decoder_embedding_dropout: float = 0.0,
        decoder_dropout: float = 0.0,
        tie_embeddings: bool = False,
        decoding: Decoding = "parallel",
        init: Init = "default",
        teacher_forcing: float | Mapping[str, Any] = 1.0,
    ) -> None:
        super().__init__()
        source_embedding = embedding if source_embedding is None else source_embedding
        target_embedding = embedding if target_embedding is None else target_embedding
        encoder_hidden = hidden if encoder_hidden is None else encoder_hidden
        check_positive(
            source_vocabulary=source_vocabulary, target_vocabulary=target_vocabulary, embedding=embedding,
            source_embedding=source_embedding, target_embedding=target_embedding, hidden=hidden,
            encoder_hidden=encoder_hidden, encoder_layers=encoder_layers, decoder_layers=decoder_layers,
        )  # fmt: skip
        check_rates(
            encoder_embedding_dropout=encoder_embedding_dropout, encoder_dropout=encoder_dropout,
            decoder_embedding_dropout=decoder_embedding_dropout, decoder_dropout=decoder_dropout,
        )  # fmt: skip
        check_choice("cell", cell, get_args(Cell))
        check_choice("attention", attention, (None, *SCORES))
        check_choice("bridge", bridge, get_args(BridgeKind))
        check_choice("decoding", decoding, get_args(Decoding))
        check_choice("init", init, get_args(Init))
        if input_feeding and attention is None:
            raise ValueError(f"input_feeding without attention has nothing to feed: choose attention from {SCORES}")
        if bridge == "zero" and attention is None:
            raise ValueError('bridge "zero" without attention would hide the source from the decoder')
        if bridge == "concat" and encoder_layers != decoder_layers:
            raise ValueError(
                f'bridge "concat" needs as many encoder as decoder layers, not {encoder_layers} and {decoder_layers}; '
                'bridge "layers" takes any numbers'
            )
        if bridge == "layers" and encoder_hidden != hidden:
            raise ValueError(
                f'bridge "layers" mixes layers, not widths: encoder_hidden={encoder_hidden} is not hidden={hidden}; '
                'bridge "concat" and "zero" take any widths'
            )
        if tie_embeddings and target_embedding != hidden:
            raise ValueError(f"tie_embeddings needs target_embedding = hidden, not {target_embedding} and {hidden}")

        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary
        self.attends = attention is not None
        self.alignment_layer = 0  # all attention is above the last decoder layer
        self.decoding = decoding
        self.input_feeding = input_feeding
        self.teacher_forcing = TeacherForcing.from_option(teacher_forcing)
        self.bridge = bridge
        self.directions = 2 if bidirectional else 1
        self.encoder_embedding_dropout = encoder_embedding_dropout
        self.decoder_embedding_dropout = decoder_embedding_dropout
        self.decoder_dropout = decoder_dropout

        self.source_embedding = nn.Embedding(source_vocabulary, source_embedding, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_vocabulary, target_embedding, padding_idx=PAD)
        self.encoder = CELLS[cell](
            source_embedding, encoder_hidden, encoder_layers, batch_first=True, bidirectional=bidirectional,
            dropout=encoder_dropout if encoder_layers > 1 else 0.0,
        )  # fmt: skip
        self.decoder = CELLS[cell](
            target_embedding + (hidden if input_feeding else 0), hidden, decoder_layers, batch_first=True,
            dropout=decoder_dropout if decoder_layers > 1 else 0.0,
        )  # fmt: skip
        width = self.directions * encoder_hidden  # of what the encoder gives
        for name in ("bridge_hidden", "bridge_cell")[: 2 if cell == "lstm" else 1]:
            if bridge == "layers":
                setattr(self, name, nn.Linear(self.directions * encoder_layers, decoder_layers))
            elif bridge == "concat":
                setattr(self, name, nn.ModuleList(nn.Linear(width, hidden) for _ in range(decoder_layers)))
        if attention is not None:
            self.memory = nn.Linear(width, hidden) if width != hidden else nn.Identity()
            self.attention = LuongAttention(hidden=hidden, score=attention)
            self.combine = nn.Linear(2 * hidden, hidden)
        self.projection = nn.Linear(hidden, target_vocabulary)
        if tie_embeddings:
            # Unit-variance embeddings would make logits of size sqrt(H): scale the shared matrix for its second task.
            nn.init.normal_(self.target_embedding.weight, std=hidden**-0.5)
            self.projection.weight = self.target_embedding.weight
        if init == "xavier":
            init_xavier(self, gates=GATES[cell])
        with torch.no_grad():
            self.source_embedding.weight[PAD] = 0.0
            self.target_embedding.weight[PAD] = 0.0

    def forward(self, source: Tensor, source_length: Tensor, target_in: Tensor, target_length: Tensor) -> Tensor:
        """Teacher-forced pass: hidden states (B, T, H) for source (B, S) and target_in (B, T).

        A decoder step sees earlier steps only, so what stands behind a row's end changes nothing before it and
        ``target_length`` is not needed here.
        """
        first, memory = self._encode(source, source_length)
        if self.decoding == "stepwise":
            return self._decode_stepwise(target_in, first, memory)
        embedded = self._embed_target(target_in)
        if self.input_feeding:
            assert memory is not None
            return decode_with_feeding(
                self.decoder, embedded, first, attention=self.attention, memory=memory, combine=self.combine,
                dropout=self.decoder_dropout if self.training else 0.0,
            )  # fmt: skip
        output, _ = run_recurrent(self.decoder, embedded, first)
        return self._attend(output, memory)

    def project(self, hidden: Tensor) -> Tensor:
        """Hidden states (..., H) to logits (..., V)."""
        return self.projection(hidden)

    def start(self, source: Tensor, source_length: Tensor, *, keep_attention: bool = False) -> Seq2SeqState:
        """Encode source (B, S) for decoding step by step."""
        if keep_attention and not self.attends:
            raise ValueError("this model has no attention weights: it was built without attention")
        first, memory = self._encode(source, source_length)
        hidden, *cell = (tuple(part.unbind(0)) for part in first)
        fed = first[0].new_zeros(first[0].shape[1:]) if self.input_feeding else None
        return Seq2SeqState(hidden, cell[0] if cell else (), memory, fed, keep_attention=keep_attention)

    def step(self, token: Tensor, state: Seq2SeqState) -> tuple[Tensor, Seq2SeqState]:
        """Tokens (N,) to the logits (N, V) of their successors and the state after them."""
        output, after = self._advance(token, state)
        return self.project(output), after

    def _advance(self, token: Tensor, state: Seq2SeqState) -> tuple[Tensor, Seq2SeqState]:
        """Tokens (N,) to what is projected, (N, H), and the state after them."""
        output = self._embed_target(token)
        if state.fed is not None:
            output = torch.cat((output, state.fed), dim=-1)
        carried = []
        for layer, weights in enumerate(self.decoder.all_weights):
            if layer > 0:
                output = F.dropout(output, self.decoder_dropout, self.training)
            before = tuple(part[layer] for part in (state.hidden, state.cell) if part)
            carried.append(single_step(weights, output, before))
            output = carried[-1][0]
        # The hypotheses of a sentence look at its source as if they were steps: (sentences, width, H).
        grouped = output.unflatten(0, (-1, state.width))
        attention = None
        if state.keep_attention:
            assert state.memory is not None
            attention = self.attention.weights(grouped, state.memory).flatten(0, 1)
        output = self._attend(grouped, state.memory).flatten(0, 1)
        hidden, *cell = zip(*carried, strict=True)
        fed = None if state.fed is None else output
        return output, replace(state, hidden=hidden, cell=cell[0] if cell else (), fed=fed, attention=attention)

    def attention_weights(self, source: Tensor, source_length: Tensor, target_in: Tensor) -> Tensor:
        """Teacher-forced weights (B, 1, 1, T, S) in float32; ValueError in a model without attention."""
        if not self.attends:
            raise ValueError(
                f"this model has no attention weights: it was built without attention; choose one of {SCORES}"
            )
        if self.input_feeding:
            state, found = self.start(source, source_length, keep_attention=True), []
            for token in target_in.unbind(1):
                _, state = self._advance(token, state)
                found.append(state.attention)
            return torch.stack(found, dim=1)[:, None, None]  # type: ignore[arg-type]
        first, memory = self._encode(source, source_length)
        assert memory is not None
        output, _ = run_recurrent(self.decoder, self._embed_target(target_in), first)
        return self.attention.weights(output, memory)[:, None, None]

    def _encode(self, source: Tensor, source_length: Tensor) -> tuple[Carried, Memory | None]:
        """Source (B, S) to the decoder's first state, each (decoder layers, B, H), and the attention memory."""
        embedded = F.dropout(self.source_embedding(source), self.encoder_embedding_dropout, self.training)
        output, last, mask = run_encoder(self.encoder, embedded, source_length)
        first = self._cross_bridge(last)
        return first, self.attention.remember(self.memory(output), mask) if self.attends else None

    def _cross_bridge(self, last: Carried) -> Carried:
        """Encoder states (layers * directions, B, H) to decoder states (decoder layers, B, H)."""
        if self.bridge == "zero":
            zeros = last[0].new_zeros(self.decoder.num_layers, last[0].shape[1], self.decoder.hidden_size)
            return (zeros,) * len(last)
        maps = [getattr(self, name) for name in ("bridge_hidden", "bridge_cell")[: len(last)]]
        if self.bridge == "layers":
            return tuple(mix_layers(linear, states) for linear, states in zip(maps, last, strict=True))
        return tuple(join_directions(each, states, self.directions) for each, states in zip(maps, last, strict=True))

    def _embed_target(self, tokens: Tensor) -> Tensor:
        return F.dropout(self.target_embedding(tokens), self.decoder_embedding_dropout, self.training)

    def _attend(self, output: Tensor, memory: Memory | None) -> Tensor:
        """Decoder outputs (B, T, H) to what is projected (B, T, H)."""
        if memory is not None:
            output = torch.tanh(self.combine(torch.cat((self.attention(output, memory), output), dim=-1)))
        return F.dropout(output, self.decoder_dropout, self.training)

    def _decode_stepwise(self, target_in: Tensor, state: Carried, memory: Memory | None) -> Tensor:
        """The decoder as it is usually first written: embed, one recurrent step and attend, word after word."""
        fed = state[0].new_zeros(len(target_in), 1, self.decoder.hidden_size)
        hidden = []
        for t in range(target_in.shape[1]):
            inputs = self._embed_target(target_in[:, t : t + 1])
            if self.input_feeding:
                inputs = torch.cat((inputs, fed), dim=-1)
            output, state = run_recurrent(self.decoder, inputs, state)
            fed = self._attend(output, memory)
            hidden.append(fed)
        return torch.cat(hidden, dim=1)
