"""Beam search, for all sentences and beams of a batch at once.

Each live beam of a sentence is extended by every token; the 2K likeliest extensions are looked at (K = beam
size: no more than K of them can end in EOS, so K live ones remain). EOS among the first K finishes a hypothesis;
the K best finished ones are kept, by normalised score. A sentence is done

- when its best live beam can no longer overtake the n-th best finished hypothesis, whatever comes, or
- when the K best of its finished hypotheses and live beams, at their scores of now, are all finished, or
- at its length cap; the beams cut there come after the finished ones and only fill up the list.

With K = 1 the second rule ends a sentence with its first EOS: greedy search.
"""

from typing import cast

import torch
from torch import Tensor, nn

from hotloop.decoding.history import History, Ranking
from hotloop.decoding.hypothesis import Hypothesis, evaluating, length_cap, penalty
from hotloop.decoding.options import SearchOptions
from hotloop.decoding.scoring import LogProbabilities, best_extensions
from hotloop.decoding.watching import coverage_penalty, is_word, most_looked_at
from hotloop.models.interface import State, Translator
from hotloop.vocabulary import BOS, EOS


@torch.inference_mode()
def beam_search(
    model: Translator, source: Tensor, source_length: Tensor, options: SearchOptions | None = None
) -> list[list[Hypothesis]]:
    """Up to ``n_best`` hypotheses, best first, for each row of source (B, S); lengths (B,) on the CPU count EOS.

    Sentences that are done leave the batch. The host reads from the device once a step. Equal scores are ordered by
    older beam, then by smaller token id. Beams are kept by log-probability; the penalties rank what is finished.

    Raises ValueError for options that need attention where ``model`` has none.
    """
    options = options or SearchOptions()
    options.check_model(model)
    if len(source) == 0:
        return []
    caps = length_cap(source_length - 1, options.max_length, options.min_length)
    with evaluating(cast(nn.Module, model)):
        state = model.start(source, source_length, **({"keep_attention": True} if options.needs_attention else {}))
        beams = _Beams(options, source, source_length, caps)
        token = torch.full((len(source),), BOS, device=source.device)
        for step in range(int(caps.max())):
            logits, state = model.step(token, state)
            going = beams.advance(logits, state, step)
            if going is None:
                break
            token, rows = going
            state = state.select(rows, width=options.beam_size)
    return beams.result.hypotheses(beams.history)


class _Beams:
    """The sentences in the batch and their live beams, (B, width); before the first step the beams are one."""

    def __init__(self, options: SearchOptions, source: Tensor, source_length: Tensor, caps: Tensor) -> None:
        sentences, device = len(source), source.device
        self.options = options
        self.scores = LogProbabilities(options, device)
        self.history = History(sentences)
        self.result = Ranking.empty(sentences, options.n_best, device)
        self.done = Ranking.empty(sentences, options.beam_size, device)
        self.row = torch.arange(sentences, device=device)  # where the sentences still in the batch came from
        self.cap = caps.to(device)
        # Lightning's "-true" precisions change the default dtype, so each tensor of numbers names its own.
        self.live_score = torch.zeros(sentences, 1, dtype=torch.float32, device=device)
        # Only where options ask for it:
        self.tokens = (
            torch.zeros(sentences, 1, 0, dtype=torch.int64, device=device) if options.no_repeat_ngram else None
        )
        self.words = is_word(source_length, source.shape[1], device) if options.needs_attention else None
        self.coverage = (
            torch.zeros(sentences, 1, source.shape[1], dtype=torch.float32, device=device)
            if options.coverage_penalty
            else None
        )

    def advance(self, logits: Tensor, state: State, step: int) -> tuple[Tensor, Tensor] | None:
        """One step of logits (B * width, V); the next token of each beam and the row it came from, (B * K,) each.

        None where every sentence is done.
        """
        size, alpha = self.options.beam_size, self.options.length_penalty
        before, (sentences, width) = self.live_score, self.live_score.shape
        so_far = None if self.tokens is None else self.tokens.flatten(0, 1)
        allowed = self.scores(logits, step, so_far)
        score, beam, token = best_extensions(allowed, self.live_score, 2 * size)
        coverage = self._watch(state)  # (B, width), or a 0 that costs nothing

        if self.scores.may_end(step):
            ends = token == EOS
            first, ended = beam[:, :size], score[:, :size].masked_fill(~ends[:, :size], -torch.inf)
            ranked = ended / penalty(step + 1, alpha) + _of(coverage, first)
            length = torch.full_like(first, step)
            self.done = self.done.join(Ranking(ranked, ended, length, first, ends[:, :size])).best(size)
            score, order = score.masked_fill(ends, -torch.inf).sort(dim=1, descending=True, stable=True)
            beam, token = beam.gather(1, order[:, :size]), token.gather(1, order[:, :size])
        self.live_score, beam, token = score[:, :size], beam[:, :size], token[:, :size]
        self._remember(beam, token, state, width)

        now = self.live_score / penalty(step + 1, alpha) + _of(coverage, beam)
        capped = self.cap <= step + 1
        # Scores are negative, the length penalty grows, and coverage takes away: no live beam can end better than this.
        hope = self.live_score[:, 0] / penalty(self.cap, alpha)
        over = capped | (now.amax(1) <= self.done.score[:, -1]) | (hope <= self.done.score[:, self.options.n_best - 1])
        going = (~over).nonzero().squeeze(1)
        if len(going) < sentences:
            rest = _cut(self.live_score.masked_fill(~capped[:, None], -torch.inf), now, step + 1).best(size)
            # Nothing may follow (every word would repeat, say) and nothing has ended: beams are cut before this step.
            stuck = (self.live_score[:, 0] == -torch.inf) & (self.done.score[:, 0] == -torch.inf)
            last = _cut(before.masked_fill(~stuck[:, None], -torch.inf), before / penalty(step, alpha) + coverage, step)
            rest = last.join(rest)
            self.result = self.result.put(self.row, self.done.join(rest).packed(self.options.n_best))
            if len(going) == 0:
                return None
            self._keep(going)
            beam, token = beam[going], token[going]
        return token.flatten(), (beam + width * going[:, None]).flatten()

    def _watch(self, state: State) -> Tensor | float:
        """Add where the step looked; the coverage penalty of each beam, (B, width)."""
        if self.coverage is None:
            return 0.0
        assert state.attention is not None and self.words is not None
        self.coverage = self.coverage + state.attention.float().view(self.coverage.shape)
        return coverage_penalty(self.coverage, self.words, self.options.coverage_penalty)

    def _remember(self, beam: Tensor, token: Tensor, state: State, width: int) -> None:
        """Note tokens (B, K) and the beams they extend, of ``width``."""
        more = []
        if self.options.replace_unknown:
            assert state.attention is not None and self.words is not None
            more.append(most_looked_at(state.attention, self.words).view(-1, width).gather(1, beam))
        self.history.add(self.row, beam, token, *more)
        if self.tokens is not None:
            self.tokens = torch.cat((_beams_of(self.tokens, beam), token[:, :, None]), dim=2)
        if self.coverage is not None:
            self.coverage = _beams_of(self.coverage, beam)

    def _keep(self, going: Tensor) -> None:
        """Only sentences ``going`` (N,) stay."""
        self.row, self.cap, self.done = self.row[going], self.cap[going], self.done.keep(going)
        self.live_score = self.live_score[going]
        for name in ("tokens", "words", "coverage"):
            tensor = getattr(self, name)
            setattr(self, name, None if tensor is None else tensor[going])


def _cut(log_probability: Tensor, score: Tensor, length: int) -> Ranking:
    """Beams (B, K) that end after ``length`` tokens without EOS; -inf where they do not."""
    beam = torch.arange(score.shape[1], device=score.device).expand_as(score)
    finished = torch.zeros_like(score, dtype=torch.bool)
    return Ranking(
        score.where(log_probability != -torch.inf, -torch.inf),
        log_probability,
        torch.full_like(beam, length),
        beam,
        finished,
    )


def _of(coverage: Tensor | float, beam: Tensor) -> Tensor | float:
    return coverage.gather(1, beam) if isinstance(coverage, Tensor) else coverage


def _beams_of(tensor: Tensor, beam: Tensor) -> Tensor:
    """(B, width, N) and beams (B, K) to (B, K, N)."""
    return tensor.gather(1, beam[:, :, None].expand(-1, -1, tensor.shape[2]))
