"""Beam search, for all sentences and beams of a batch at once.

Each live beam of a sentence is extended by every token; the 2K likeliest extensions are looked at (K = beam
size: no more than K of them can end in EOS, so K live ones remain). EOS among the first K finishes a hypothesis;
the K best finished ones are kept, by normalised score. A sentence is done

- when its best live beam can no longer overtake the n-th best finished hypothesis, whatever comes, or
- when the K best of its finished hypotheses and live beams, at their scores of now, are all finished, or
- at its length cap; the beams cut there come after the finished ones and only fill up the list.

With K = 1 the second rule ends a sentence with its first EOS: greedy search.
"""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotloop.decoding.hypothesis import (
    Hypothesis,
    banned_tokens,
    check_options,
    evaluating,
    length_cap,
    penalty,
)
from hotloop.models.interface import Translator
from hotloop.vocabulary import BOS, EOS


@dataclass(frozen=True)
class _Hypotheses:
    """K hypotheses for each of B sentences, best first; a score of -inf marks an empty place."""

    score: Tensor  # (B, K), normalised
    log_probability: Tensor  # (B, K)
    length: Tensor  # (B, K), tokens without EOS
    finished: Tensor  # (B, K) bool
    tokens: Tensor  # (B, K, steps)

    @staticmethod
    def empty(rows: int, places: int, steps: int, device: torch.device) -> "_Hypotheses":
        nothing = torch.full((rows, places), -torch.inf, device=device)
        length = torch.zeros(rows, places, dtype=torch.int64, device=device)
        tokens = torch.zeros(rows, places, steps, dtype=torch.int64, device=device)
        return _Hypotheses(nothing, nothing.clone(), length, length.bool(), tokens)

    def join(self, other: "_Hypotheses") -> "_Hypotheses":
        return _Hypotheses(*(torch.cat(pair, dim=1) for pair in zip(self._all(), other._all(), strict=True)))

    def take(self, places: Tensor) -> "_Hypotheses":
        """Those at places (B, N), sentence by sentence."""
        return _Hypotheses(*(_take(tensor, places) for tensor in self._all()))

    def best(self, count: int) -> "_Hypotheses":
        return self.take(self.score.sort(dim=1, descending=True, stable=True).indices[:, :count])

    def packed(self, count: int) -> "_Hypotheses":
        """The first ``count`` that are not empty places, in the order they are in."""
        empty = (self.score == -torch.inf).to(torch.int8)
        return self.take(empty.sort(dim=1, stable=True).indices[:, :count])

    def keep(self, rows: Tensor) -> "_Hypotheses":
        return _Hypotheses(*(tensor[rows] for tensor in self._all()))

    def put(self, rows: Tensor, other: "_Hypotheses") -> None:
        for mine, theirs in zip(self._all(), other._all(), strict=True):
            mine[rows] = theirs

    def lists(self) -> list[list[Hypothesis]]:
        columns = zip(*(tensor.tolist() for tensor in self._all()), strict=True)
        return [
            [
                Hypothesis(tokens[:length], score, log_probability, finished)
                for score, log_probability, length, finished, tokens in zip(*column, strict=True)
                if score != -torch.inf
            ]
            for column in columns
        ]

    def _all(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.score, self.log_probability, self.length, self.finished, self.tokens


@torch.inference_mode()
def beam_search(
    model: Translator,
    source: Tensor,
    source_length: Tensor,
    *,
    beam_size: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    max_length: int | None = None,
    allow_unknown: bool = True,
) -> list[list[Hypothesis]]:
    """Up to ``n_best`` hypotheses, best first, for each row of source (B, S); lengths (B,) on the CPU count EOS.

    ``length_penalty`` is the alpha of Wu et al. 2016, equation 14. Sentences that are done leave the batch. The host
    reads from the device once a step. Equal scores are ordered by older beam, then by smaller token id.

    Raises ValueError for options out of range, such as ``n_best`` above ``beam_size``.
    """
    check_options(beam_size=beam_size, n_best=n_best, length_penalty=length_penalty, max_length=max_length)
    caps = length_cap(source_length - 1, max_length)
    if len(source) == 0:
        return []
    device = source.device
    banned = banned_tokens(allow_unknown, device)
    steps = int(caps.max())
    with evaluating(cast(nn.Module, model)):
        state = model.start(source, source_length)
        result = _Hypotheses.empty(len(source), n_best, steps, device)
        done = _Hypotheses.empty(len(source), beam_size, steps, device)
        row = torch.arange(len(source), device=device)  # where the sentences still in the batch came from
        cap = caps.to(device)
        # Before the first step all beams of a sentence are one: width 1 now, beam_size later.
        live_score = torch.zeros(len(source), 1, device=device)
        live_tokens = torch.zeros(len(source), 1, steps, dtype=torch.int64, device=device)
        token = torch.full_like(row, BOS)
        for step in range(steps):
            logits, state = model.step(token, state)
            score, beam, token = _candidates(logits, live_score, banned, 2 * beam_size)

            ends = token == EOS
            first = slice(0, beam_size)
            ended_score = score[:, first].masked_fill(~ends[:, first], -torch.inf)
            ended = _Hypotheses(
                ended_score / penalty(step + 1, length_penalty),
                ended_score,
                torch.full_like(beam[:, first], step),
                ends[:, first],
                _take(live_tokens, beam[:, first]),
            )
            done = done.join(ended).best(beam_size)

            live_score, order = score.masked_fill(ends, -torch.inf).sort(dim=1, descending=True, stable=True)
            live_score, order = live_score[:, :beam_size], order[:, :beam_size]
            beam, token = beam.gather(1, order), token.gather(1, order)
            width, live_tokens = live_tokens.shape[1], _take(live_tokens, beam)
            live_tokens[:, :, step] = token

            capped = cap <= step + 1
            # Scores are negative and the penalty grows with length: no live beam can end better than this.
            hope = live_score[:, 0] / penalty(cap, length_penalty)
            all_done = live_score[:, 0] / penalty(step + 1, length_penalty) <= done.score[:, -1]
            over = capped | all_done | (hope <= done.score[:, n_best - 1])
            going = (~over).nonzero().squeeze(1)
            if len(going) < len(row):
                cut_score = live_score.masked_fill(~capped[:, None], -torch.inf)
                cut = _Hypotheses(
                    cut_score / penalty(step + 1, length_penalty),
                    cut_score,
                    torch.full_like(token, step + 1),
                    torch.zeros_like(token, dtype=torch.bool),
                    live_tokens,
                )
                result.put(row, done.join(cut).packed(n_best))
                row, cap, done = row[going], cap[going], done.keep(going)
                live_score, live_tokens = live_score[going], live_tokens[going]
                beam, token = beam[going], token[going]
            if len(going) == 0:
                break
            token = token.flatten()
            state = state.select((going[:, None] * width + beam).flatten(), width=beam_size)
    return result.lists()


def _candidates(logits: Tensor, live_score: Tensor, banned: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The ``count`` likeliest extensions of each sentence's beams, best first: scores, beams, tokens (B, count).

    ``logits`` is (B * width, V), ``live_score`` (B, width). Equal scores: older beam, then smaller token first. Where
    there are fewer extensions the rest has score -inf.
    """
    sentences, width = live_score.shape
    vocabulary = logits.shape[1]
    logits = logits.float()
    total = logits.logsumexp(-1, keepdim=True)
    # The best of each beam, then the best of those: cheaper than normalising and sorting width * V numbers.
    best, token = logits.index_fill(1, banned, -torch.inf).topk(min(count, vocabulary), dim=-1)
    score = (best - total).view(sentences, width, -1) + live_score[:, :, None]
    key = token.view(sentences, width, -1) + vocabulary * torch.arange(width, device=token.device)[:, None]
    score, key = score.flatten(1), key.flatten(1)
    # topk and sort leave the order of equals open, but a stable sort after a sort by key settles it.
    key, order = key.sort(dim=1)
    score, order = score.gather(1, order).sort(dim=1, descending=True, stable=True)
    score, key = score[:, :count], key.gather(1, order)[:, :count]
    missing = count - score.shape[1]
    score, key = F.pad(score, (0, missing), value=-torch.inf), F.pad(key, (0, missing))
    return score, key // vocabulary, key % vocabulary


def _take(tensor: Tensor, places: Tensor) -> Tensor:
    """Entries of (B, K, ...) at places (B, N), sentence by sentence: (B, N, ...)."""
    return tensor[torch.arange(len(tensor), device=tensor.device)[:, None], places]
