"""Luong's global attention over all target steps in one call (Luong, Pham and Manning 2015, section 3.1).

Without input feeding the decoder state h_t depends on earlier words and states only, never on an attention result,
so with teacher forcing the queries of all steps are known at once and nothing here needs a loop over time.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Score = Literal["dot", "scaled_dot", "general", "concat", "mlp"]
SCORES: tuple[str, ...] = get_args(Score)

# "concat" makes a (B, T, S, H) tensor; beyond this many numbers (64 MiB in float32) T is cut into pieces.
CONCAT_ELEMENTS = 2**24


@dataclass(frozen=True)
class Memory:
    """The source as attention sees it, computed once for each sentence."""

    keys: Tensor  # (B, S, H), what the scores are taken with
    values: Tensor  # (B, S, H), what is averaged; the same tensor as keys for "dot" and "scaled_dot"
    mask: Tensor | None  # (B, S) bool, True = real token; None where every position is real

    def select(self, sentences: Tensor) -> "Memory":
        """Sentences (N,) of the batch, kept, repeated or reordered."""
        values = self.values.index_select(0, sentences)
        keys = values if self.keys is self.values else self.keys.index_select(0, sentences)
        return Memory(keys, values, None if self.mask is None else self.mask.index_select(0, sentences))


class LuongAttention(nn.Module):
    """Scores between decoder states h_t and source states h_s, and the weighted mean of the source.

    ========== ================================ =============================
    dot        h_t . h_s                        no parameters
    scaled_dot h_t . h_s / sqrt(H)              no parameters
    general    h_t . W h_s / sqrt(H)            W (H, H)
    concat     v . tanh(W_q h_t + W_k h_s)      W_q, W_k (H, H), v (H)
    mlp        another name of concat
    ========== ================================ =============================

    The paper has no root under "general"; with it W stands for another matrix and the functions are the same, but
    Adam's steps, which are of one size for every weight, no longer drive the softmax to 0 and 1 within an epoch.
    "dot" has no weights to absorb a scale: it is the paper's, and learns badly at high learning rates.
    ("concat" is written v . tanh(W [h_t; h_s]) in the paper: the same with W cut in two. It is the additive score of
    Bahdanau et al. 2015, section A.1.2, elsewhere known as "mlp".) W and W_k act on the source, hence once a
    sentence, in :meth:`remember`. Each row needs at least one real position.
    """

    def __init__(self, *, hidden: int, score: Score) -> None:
        super().__init__()
        if score not in SCORES:
            raise ValueError(f"attention score {score!r}: choose one of {', '.join(SCORES)}")
        score = "concat" if score == "mlp" else score
        self.score = score
        self.scale = hidden**-0.5 if score in ("scaled_dot", "general") else 1.0
        if score in ("general", "concat"):
            self.key = nn.Linear(hidden, hidden, bias=False)
        if score == "concat":
            self.query = nn.Linear(hidden, hidden, bias=False)
            self.energy = nn.Linear(hidden, 1, bias=False)

    def remember(self, values: Tensor, mask: Tensor | None) -> Memory:
        """Source states (B, S, H) and their mask (B, S), ready to be attended to."""
        keys = self.key(values) if self.score in ("general", "concat") else values
        return Memory(keys, values, mask)

    def forward(self, states: Tensor, memory: Memory) -> Tensor:
        """Decoder states (B, T, H) to contexts (B, T, H)."""
        if self.score == "concat":
            return self.weights(states, memory).to(memory.values.dtype) @ memory.values
        # Four dimensions (one head) reach the fused kernels; the boolean mask suits every precision.
        mask = None if memory.mask is None else memory.mask[:, None, None, :]
        context = F.scaled_dot_product_attention(
            states[:, None], memory.keys[:, None], memory.values[:, None], attn_mask=mask, scale=self.scale
        )
        return context[:, 0]

    def weights(self, states: Tensor, memory: Memory) -> Tensor:
        """Weights (B, T, S), float32 at least, for decoder states (B, T, H): rows sum to 1, exactly 0 on padding."""
        if self.score == "concat":
            scores = self._concat_scores(self.query(states), memory.keys)
        else:
            exact = at_least_float32(states.dtype)
            scores = torch.matmul(states.to(exact), memory.keys.to(exact).mT) * self.scale
        scores = scores.to(at_least_float32(scores.dtype))
        if memory.mask is not None:
            scores = scores.masked_fill(~memory.mask[:, None, :], torch.finfo(scores.dtype).min)
        return scores.softmax(-1)

    def _concat_scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(B, T, H) and (B, S, H) to (B, T, S)."""
        per_step = max(1, queries.shape[0] * keys.shape[1] * keys.shape[2])
        pieces = queries.split(max(1, CONCAT_ELEMENTS // per_step), dim=1)
        if len(pieces) == 1:
            return self._concat_piece(queries, keys)
        if torch.is_grad_enabled():  # autograd would keep every piece: computing them again is what saves the memory
            scores = [checkpoint(self._concat_piece, piece, keys, use_reentrant=False) for piece in pieces]
        else:
            scores = [self._concat_piece(piece, keys) for piece in pieces]
        return torch.cat(scores, dim=1)

    def _concat_piece(self, queries: Tensor, keys: Tensor) -> Tensor:
        return self.energy(torch.tanh(queries[:, :, None] + keys[:, None])).squeeze(-1)


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The precision of a softmax over numbers of `dtype`."""
    return torch.promote_types(dtype, torch.float32)
