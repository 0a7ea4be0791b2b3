"""Layers of the Transformer, and the attention, feed-forward and positions they are made of (Vaswani et al. 2017)."""

import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Norm = Literal["pre", "post"]
Positions = Literal["sinusoidal", "learned", "rotary"]
Activation = Literal["relu", "gelu", "swiglu"]
CHOICES = {"norm": get_args(Norm), "positions": get_args(Positions), "activation": get_args(Activation)}

KeysValues = tuple[Tensor, Tensor]  # each (B, A, S, d): A heads of width d = H / A
HALVES = (torch.bfloat16, torch.float16)
FIRST_POSITIONS = 512  # rows of sines made at the start; longer sentences make the table longer


def xavier_linear(inputs: int, outputs: int, *, parts: int = 1) -> nn.Linear:
    """`parts` linear maps in one, each initialised for itself (Glorot & Bengio 2010), with biases of 0."""
    linear = nn.Linear(inputs, parts * outputs)
    for matrix in linear.weight.data.split(outputs):
        nn.init.xavier_uniform_(matrix)
    nn.init.zeros_(linear.bias)
    return linear


class Attention(nn.Module):
    """Multi-head attention; one linear map makes what several would (Vaswani et al. 2017, section 3.2.2).

    Args:
        hidden: H.
        heads: A, a divisor of H.
        dropout: on the weights. Above 0 a CPU has no fused kernel for it.
        looks_at_source: queries come from one sequence, keys and values from another.
    """

    def __init__(self, hidden: int, heads: int, *, dropout: float, looks_at_source: bool) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        if looks_at_source:
            self.query = xavier_linear(hidden, hidden)
            self.key_value = xavier_linear(hidden, hidden, parts=2)
        else:
            self.query_key_value = xavier_linear(hidden, hidden, parts=3)
        self.out = xavier_linear(hidden, hidden)

    def project(self, x: Tensor, angles: "Angles | None") -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (B, A, T, d) of x (B, T, H) that attends to itself."""
        query, key, value = self._split(self.query_key_value(x), 3)
        if angles is not None:
            query, key = rotate(query, angles), rotate(key, angles)
        return query, key, value

    def remember(self, source: Tensor) -> KeysValues:
        """Keys and values (B, A, S, d) of source states (B, S, H)."""
        key, value = self._split(self.key_value(source), 2)
        return key, value

    def ask(self, x: Tensor) -> Tensor:
        """Queries (B, A, T, d) of x (B, T, H)."""
        return self._split(self.query(x), 1)[0]

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Queries (B, A, T, d), keys and values (B, A, S, d) to (B, T, H); mask (B, 1, 1, S), True = look there."""
        rate = self.dropout if self.training else 0.0
        if query.device.type == "cpu" and (rate or (query.dtype in HALVES and torch.is_grad_enabled())):
            # A CPU has no fused kernel with dropout, and the one for half precision is 6 times slower backwards.
            mixed = plain_attention(query, key, value, mask=mask, causal=causal, rate=rate)
        else:
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal, dropout_p=rate)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        """(B, T, parts * H) to `parts` tensors (B, A, T, d)."""
        return x.unflatten(-1, (parts, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


def plain_attention(
    query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None, causal: bool, rate: float
) -> Tensor:
    """`scaled_dot_product_attention` in separate steps, `rate` being the dropout of the weights: (B, A, T, d)."""
    scores = (query * query.shape[-1] ** -0.5) @ key.mT
    if causal:
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(ahead, -torch.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)  # no row is without a real position
    return F.dropout(scores.softmax(-1), rate, rate > 0).to(value.dtype) @ value


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax of queries (B, A, T, d) over keys (B, A, S, d), float32 at least: (B, A, T, S), 0 where mask is False."""
    exact = torch.promote_types(query.dtype, torch.float32)
    scores = (query.to(exact) @ key.to(exact).mT).to(exact) / math.sqrt(query.shape[-1])  # autocast rounds products
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(exact).min)
    return scores.softmax(-1)


class FeedForward(nn.Module):
    """Two linear maps with ReLU or GELU between them, or SwiGLU (Shazeer 2020); (B, T, H) to (B, T, H)."""

    def __init__(self, hidden: int, inner: int, *, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.activation, self.dropout = activation, dropout
        self.up = xavier_linear(hidden, inner, parts=2 if activation == "swiglu" else 1)
        self.down = xavier_linear(inner, hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = self.up(x)
        if self.activation == "swiglu":
            gate, x = x.chunk(2, dim=-1)
            x = F.silu(gate) * x
        else:
            x = F.relu(x) if self.activation == "relu" else F.gelu(x)
        return self.down(F.dropout(x, self.dropout, self.training))


Angles = tuple[Tensor, Tensor]  # cosines and sines (T, d / 2)


def rotate(x: Tensor, angles: Angles) -> Tensor:
    """Rotary positions (Su et al. 2021, section 3.2.2) on queries or keys (B, A, T, d); float32 inside."""
    cosine, sine = angles
    first, second = x.to(torch.promote_types(x.dtype, torch.float32)).chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1).to(x.dtype)


class SinusoidTable(nn.Module):
    """Sines and cosines of positions (Vaswani et al. 2017, section 3.5), made longer when a longer sentence comes."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.register_buffer("sine", torch.empty(0), persistent=False)
        self.register_buffer("cosine", torch.empty(0), persistent=False)
        self._grow(FIRST_POSITIONS)

    def forward(self, first: int, count: int, device: torch.device) -> Angles:
        """Cosines and sines (count, H / 2) of positions `first` and on, float32."""
        if first + count > len(self.sine) or self.sine.dtype != torch.float32 or self.sine.device != device:
            self._grow(max(len(self.sine), 2 * (first + count)), device)
        return self.cosine[first : first + count], self.sine[first : first + count]

    @torch.inference_mode(False)  # a table made longer while translating serves in training too
    def _grow(self, rows: int, device: torch.device | None = None) -> None:
        rates = torch.exp(torch.arange(0, self.hidden, 2, device=device) * (-math.log(10_000.0) / self.hidden))
        angles = torch.arange(rows, device=device)[:, None] * rates
        self.sine, self.cosine = angles.sin(), angles.cos()


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with a residual: (B, S, H) to (B, S, H)."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        hidden, heads = options["hidden"], options["heads"]
        self.pre_norm, self.dropout = options["norm"] == "pre", options["dropout"]
        self.attention = Attention(hidden, heads, dropout=options["attention_dropout"], looks_at_source=False)
        self.feed_forward = FeedForward(
            hidden, options["feed_forward"], activation=options["activation"], dropout=options["activation_dropout"]
        )
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)

    def forward(self, x: Tensor, mask: Tensor | None, angles: Angles | None) -> Tensor:
        return self._feed(self._attend_itself(x, angles, mask=mask))

    def _attend_itself(
        self, x: Tensor, angles: Angles | None, *, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        found = self.attention(*self.attention.project(self._asked(x), angles), mask=mask, causal=causal)
        return self._add_itself(x, found)

    def _asked(self, x: Tensor) -> Tensor:
        return self.attention_norm(x) if self.pre_norm else x

    def _add_itself(self, x: Tensor, found: Tensor) -> Tensor:
        x = x + self._drop(found)
        return x if self.pre_norm else self.attention_norm(x)

    def _feed(self, x: Tensor) -> Tensor:
        if self.pre_norm:
            return x + self._drop(self.feed_forward(self.feed_forward_norm(x)))
        return self.feed_forward_norm(x + self._drop(self.feed_forward(x)))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class DecoderLayer(EncoderLayer):
    """An encoder layer with attention to the source between its two parts: (B, T, H) to (B, T, H)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.source_attention = Attention(
            options["hidden"], options["heads"], dropout=options["attention_dropout"], looks_at_source=True
        )
        self.source_norm = nn.LayerNorm(options["hidden"])

    def forward(  # type: ignore[override]
        self, x: Tensor, source: Tensor, mask: Tensor | None, angles: Angles | None
    ) -> Tensor:
        """x (B, T, H) with source states (B, S, H); each step sees itself and what is before it."""
        x = self._attend_itself(x, angles, causal=True)
        return self._feed(self._attend_source(x, self._source_query(x), self.source_attention.remember(source), mask))

    def step(
        self, x: Tensor, past: KeysValues | None, source: KeysValues, mask: Tensor | None, angles: Angles | None
    ) -> tuple[Tensor, KeysValues, Tensor]:
        """One position of N rows, (N / width, width, H): the same after this layer, its past (N, A, t, d), its queries.

        Rows of one sentence ask its source like the steps of one sequence, so that it need not be repeated.
        """
        query, key, value = self.attention.project(self._asked(x).flatten(0, 1)[:, None], angles)
        if past is not None:
            key, value = torch.cat((past[0], key), dim=2), torch.cat((past[1], value), dim=2)
        x = self._add_itself(x, self.attention(query, key, value).view_as(x))
        query = self._source_query(x)
        return self._feed(self._attend_source(x, query, source, mask)), (key, value), query

    def source_weights(self, x: Tensor, source: Tensor, mask: Tensor | None, angles: Angles | None) -> Tensor:
        """Where `forward` looks with the same arguments: (B, A, T, S)."""
        query = self._source_query(self._attend_itself(x, angles, causal=True))
        return attention_weights(query, self.source_attention.remember(source)[0], mask)

    def _source_query(self, x: Tensor) -> Tensor:
        return self.source_attention.ask(self.source_norm(x) if self.pre_norm else x)

    def _attend_source(self, x: Tensor, query: Tensor, source: KeysValues, mask: Tensor | None) -> Tensor:
        x = x + self._drop(self.source_attention(query, *source, mask=mask))
        return x if self.pre_norm else self.source_norm(x)
