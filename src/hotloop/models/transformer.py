"""Transformer encoder-decoder for translation (Vaswani et al. 2017), with pre-norm and what came since."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from hotloop.models.options import check_choice, check_positive, check_rates
from hotloop.models.teacher_forcing import TeacherForcing
from hotloop.models.transformer_layers import (
    CHOICES,
    Activation,
    Angles,
    DecoderLayer,
    EncoderLayer,
    KeysValues,
    Norm,
    Positions,
    SinusoidTable,
    attention_weights,
)
from hotloop.vocabulary import PAD

Tied = Literal["source", "target", "output"]


@dataclass(frozen=True)
class TransformerState:
    """Decoder between two steps: what the target so far and the source look like to each layer."""

    past: tuple[KeysValues, ...]  # a layer: (N, A, t, d) each
    source: tuple[KeysValues, ...]  # a layer: (N / width, A, S, d) each
    mask: Tensor | None  # (N / width, 1, 1, S) bool; None where every position is real
    steps: int = 0  # t
    width: int = 1  # hypotheses of a sentence, side by side
    keep_attention: bool = False
    attention: Tensor | None = None  # (N, S)

    def select(self, rows: Tensor, *, width: int = 1) -> "TransformerState":
        """Rows (N,), kept, repeated or reordered; see `hotloop.models.interface.State`."""
        source, mask = self.source, self.mask
        if not (width > 1 and len(rows) // width == len(source[0][0])):
            sentences = rows[::width] // self.width
            source = tuple(_rows_of(layer, sentences) for layer in source)
            mask = None if mask is None else mask.index_select(0, sentences)
        return replace(
            self,
            past=tuple(_rows_of(layer, rows) for layer in self.past),
            source=source,
            mask=mask,
            width=width,
            attention=None if self.attention is None else self.attention.index_select(0, rows),
        )


class Transformer(nn.Module):
    """Embeddings and positions, encoder layers, decoder layers, projection to the vocabulary.

    Options (all by keyword):

    - ``hidden`` H (d_model), ``heads``, ``feed_forward`` (inner width), ``encoder_layers``, ``decoder_layers``.
    - ``norm``: ``"pre"`` normalises what enters each part (Xiong et al. 2020: trains without a long warm-up) and once
      at the end; ``"post"`` normalises the sum, as published.
    - ``positions``: ``"sinusoidal"``, ``"learned"`` (``max_positions`` of them; later ones share the last), or
      ``"rotary"`` (Su et al. 2021) in self-attention.
    - ``activation`` of the feed-forward part: ``"relu"``, ``"gelu"``, ``"swiglu"`` (Shazeer 2020; a third matrix).
    - ``tie``: which of ``source``, ``target`` (embeddings) and ``output`` (projection) share one matrix (Press & Wolf
      2017); with ``source`` among them the vocabularies have to be one.
    - dropouts: ``embedding_dropout``, ``dropout`` (of each part, before it is added), ``attention_dropout`` (of
      weights; slow on a CPU, which has no fused kernel for it), ``activation_dropout`` (inside the feed-forward part).
    - ``activation_checkpointing``: a layer's inner results are computed again in the backward pass instead of kept.
    - ``teacher_forcing``: share of reference words that the decoder is fed in training, see `TeacherForcing`.
    - ``alignment_layer``: the decoder layer whose attention is told to a search; None = the last but one (Garg et al.
      2019, section 3), or the only one.

    Parameters of the published sizes with one vocabulary of 37,000 for everything (post-norm)::

        base   embeddings   37,000 * 512                                                  18,944,000
               encoder      6 * (4 * (512 * 512 + 512) + 2 * 512 * 2,048 + 2,560 + 2,048) 18,914,304
               decoder      6 * (8 * (512 * 512 + 512) + 2 * 512 * 2,048 + 2,560 + 3,072) 25,224,192
                                                                                          63,082,496
        big    embeddings   37,000 * 1,024                                                37,888,000
               encoder      6 layers of 1,024, 16 heads, 4,096                            75,577,344
               decoder                                                                   100,780,032
                                                                                         214,245,376

    The paper rounds to 65 and 213 million. Pre-norm adds two norms, 4 H.

    Raises ValueError for an option outside its range or options that do not go together.
    """

    attends = True

    def __init__(
        self,
        *,
        source_vocabulary: int,
        target_vocabulary: int,
        shared_vocabulary: bool,
        hidden: int = 256,
        heads: int = 4,
        feed_forward: int = 1024,
        encoder_layers: int = 3,
        decoder_layers: int = 3,
        norm: Norm = "pre",
        positions: Positions = "sinusoidal",
        max_positions: int = 1024,
        activation: Activation = "relu",
        tie: Sequence[Tied] = (),
        embedding_dropout: float = 0.1,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation_checkpointing: bool = False,
        alignment_layer: int | None = None,
        teacher_forcing: float | Mapping[str, Any] = 1.0,
    ) -> None:
        super().__init__()
        check_positive(
            source_vocabulary=source_vocabulary, target_vocabulary=target_vocabulary, hidden=hidden, heads=heads,
            feed_forward=feed_forward, encoder_layers=encoder_layers, decoder_layers=decoder_layers,
            max_positions=max_positions,
        )  # fmt: skip
        check_rates(
            embedding_dropout=embedding_dropout, dropout=dropout, attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
        )  # fmt: skip
        for name, value in (("norm", norm), ("positions", positions), ("activation", activation)):
            check_choice(name, value, CHOICES[name])
        if hidden % (2 * heads):
            raise ValueError(f"hidden = {hidden} and heads = {heads}: hidden must be a multiple of twice the heads")
        _check_tied(tie, source_vocabulary, target_vocabulary, shared_vocabulary)
        if alignment_layer is None:
            alignment_layer = max(0, decoder_layers - 2)
        elif isinstance(alignment_layer, bool) or not 0 <= alignment_layer < decoder_layers:
            raise ValueError(f"alignment_layer = {alignment_layer}: must be null or 0 to {decoder_layers - 1}")

        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        self.hidden, self.positions, self.alignment_layer = hidden, positions, alignment_layer
        self.embedding_dropout, self.activation_checkpointing = embedding_dropout, activation_checkpointing
        self.teacher_forcing = TeacherForcing.from_option(teacher_forcing)

        self.source_embedding = nn.Embedding(source_vocabulary, hidden, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_vocabulary, hidden, padding_idx=PAD)
        if positions == "learned":
            self.source_positions = nn.Embedding(max_positions, hidden)
            self.target_positions = nn.Embedding(max_positions, hidden)
        else:
            self.table = SinusoidTable(hidden if positions == "sinusoidal" else hidden // heads)
        options = {
            "hidden": hidden, "heads": heads, "feed_forward": feed_forward, "norm": norm, "activation": activation,
            "dropout": dropout, "attention_dropout": attention_dropout, "activation_dropout": activation_dropout,
        }  # fmt: skip
        self.encoder = nn.ModuleList(EncoderLayer(**options) for _ in range(encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(**options) for _ in range(decoder_layers))
        self.encoder_norm = nn.LayerNorm(hidden) if norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(hidden) if norm == "pre" else nn.Identity()
        self.projection = nn.Linear(hidden, target_vocabulary, bias=False)
        self._init()
        if {"source", "target"} <= set(tie):
            self.source_embedding.weight = self.target_embedding.weight
        if "output" in tie and len(tie) > 1:
            self.projection.weight = (self.target_embedding if "target" in tie else self.source_embedding).weight

    def forward(self, source: Tensor, source_length: Tensor, target_in: Tensor, target_length: Tensor) -> Tensor:
        """Teacher-forced pass: hidden states (B, T, H) for source (B, S) and target_in (B, T).

        A step sees no later one, so what stands behind a row's end changes nothing before it and ``target_length``
        is not needed here.
        """
        memory, mask = self._encode(source, source_length)
        x, angles = self._embed(target_in, "target")
        for layer in self.decoder:
            x = self._run(layer, x, memory, mask, angles)
        return self.decoder_norm(x)

    def project(self, hidden: Tensor) -> Tensor:
        """Hidden states (..., H) to logits (..., V)."""
        return self.projection(hidden)

    def start(self, source: Tensor, source_length: Tensor, *, keep_attention: bool = False) -> TransformerState:
        """Encode source (B, S) and map it to the keys and values of each decoder layer."""
        memory, mask = self._encode(source, source_length)
        keys_values = tuple(layer.source_attention.remember(memory) for layer in self._decoder_layers())
        return TransformerState((), keys_values, mask, keep_attention=keep_attention)

    def step(self, token: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Tokens (N,) to the logits (N, V) of their successors and the state after them."""
        x, angles = self._embed(token[:, None], "target", first=state.steps)
        x = x.view(-1, state.width, self.hidden)
        past, attention = [], None
        for i, layer in enumerate(self._decoder_layers()):
            before = state.past[i] if state.past else None
            x, keys_values, query = layer.step(x, before, state.source[i], state.mask, angles)
            past.append(keys_values)
            if state.keep_attention and i == self.alignment_layer:
                attention = attention_weights(query, state.source[i][0], state.mask).mean(1).flatten(0, 1)
        after = replace(state, past=tuple(past), steps=state.steps + 1, attention=attention)
        return self.project(self.decoder_norm(x).flatten(0, 1)), after

    def attention_weights(self, source: Tensor, source_length: Tensor, target_in: Tensor) -> Tensor:
        """Teacher-forced weights (B, layers, heads, T, S) of the target on the source, in float32."""
        memory, mask = self._encode(source, source_length)
        x, angles = self._embed(target_in, "target")
        found = []
        for layer in self._decoder_layers():
            found.append(layer.source_weights(x, memory, mask, angles))
            x = layer(x, memory, mask, angles)
        return torch.stack(found, dim=1)

    def _encode(self, source: Tensor, source_length: Tensor) -> tuple[Tensor, Tensor | None]:
        """Source (B, S) to its states (B, S, H) and their mask (B, 1, 1, S); None where all rows are full."""
        x, angles = self._embed(source, "source")
        mask = source_mask(source, source_length)
        for layer in self.encoder:
            x = self._run(layer, x, mask, angles)
        return self.encoder_norm(x), mask

    def _embed(self, tokens: Tensor, side: str, *, first: int = 0) -> tuple[Tensor, Angles | None]:
        """Tokens (B, T) from position `first` on to (B, T, H), and the angles of rotary positions."""
        x = getattr(self, f"{side}_embedding")(tokens) * self.hidden**0.5
        count, angles = tokens.shape[1], None
        if self.positions == "learned":
            table = getattr(self, f"{side}_positions")
            places = torch.arange(first, first + count, device=tokens.device).clamp(max=table.num_embeddings - 1)
            x = x + table(places)
        elif self.positions == "sinusoidal":
            x = x + torch.cat(self.table(first, count, tokens.device), dim=-1).to(x.dtype)
        else:
            angles = self.table(first, count, tokens.device)
        return F.dropout(x, self.embedding_dropout, self.training), angles

    def _run(self, layer: nn.Module, *inputs: Tensor | Angles | None) -> Tensor:
        if self.activation_checkpointing and self.training and torch.is_grad_enabled():
            return checkpoint(layer, *inputs, use_reentrant=False)
        return layer(*inputs)

    def _decoder_layers(self) -> list[DecoderLayer]:
        return list(self.decoder)  # type: ignore[arg-type]

    @torch.no_grad()
    def _init(self) -> None:
        """Embeddings of spread 1 once they are scaled; the layers have their own."""
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.hidden**-0.5)
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.weight[PAD] = 0.0
        nn.init.xavier_uniform_(self.projection.weight)


@torch.compiler.disable  # which of the two it is, no compiler can know
def source_mask(source: Tensor, source_length: Tensor) -> Tensor | None:
    """(B, 1, 1, S) bool, True = real token; None where all rows of source (B, S) are full: kernels like that best."""
    if bool((source_length == source.shape[1]).all()):  # lengths lie on the CPU: nothing waits for the device
        return None
    places = torch.arange(source.shape[1], device=source.device)
    return (places < source_length.to(source.device, non_blocking=True)[:, None])[:, None, None]


def _rows_of(layer: KeysValues, rows: Tensor) -> KeysValues:
    return layer[0].index_select(0, rows), layer[1].index_select(0, rows)


def _check_tied(tie: Sequence[str], source_vocabulary: int, target_vocabulary: int, shared_vocabulary: bool) -> None:
    for name in tie:
        check_choice("tie", name, get_args(Tied))
    if len(set(tie)) != len(tie) or len(tie) == 1:
        raise ValueError(f"tie = {list(tie)}: name two or three of {', '.join(get_args(Tied))}, or none")
    if "source" in tie and not shared_vocabulary:
        raise ValueError(
            f"tie = {list(tie)}: the source can share a matrix only in a common vocabulary: "
            "data.tokenizer.shared=true, or tie=[target,output]"
        )
    if "source" in tie and source_vocabulary != target_vocabulary:
        raise ValueError(
            f"tie = {list(tie)}: {source_vocabulary} source and {target_vocabulary} target ids are no common vocabulary"
        )
