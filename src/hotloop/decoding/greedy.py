"""One token after the other: the likeliest (greedy search), or one that is drawn."""

from typing import cast

import torch
from torch import Tensor, nn

from hotloop.decoding.hypothesis import Hypothesis, evaluating, length_cap, penalty
from hotloop.decoding.options import SearchOptions
from hotloop.decoding.sampling import Draws
from hotloop.decoding.scoring import LogProbabilities, likeliest
from hotloop.decoding.watching import is_word, most_looked_at
from hotloop.models.interface import Translator
from hotloop.vocabulary import BOS, EOS, PAD


@torch.inference_mode()
def greedy_search(
    model: Translator,
    source: Tensor,
    source_length: Tensor,
    options: SearchOptions | None = None,
    *,
    numbers: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """One hypothesis for each row of source (B, S), or ``n_best`` draws, best first; lengths (B,) count EOS.

    Rows that are finished leave the batch, so late steps are cheap and the last step is that of the longest row.
    The length penalty only changes the score that is told. The host reads from the device once a step. ``numbers``
    (B,) are the sentences' own, for draws; None counts them.
    """
    options = options or SearchOptions()
    options.check_model(model)
    if len(source) == 0:
        return []
    device, copies = source.device, options.n_best
    caps = length_cap(source_length - 1, options.max_length, options.min_length).repeat_interleave(copies)
    steps = int(caps.max())
    scores = LogProbabilities(options, device)
    numbers = torch.arange(len(source)) if numbers is None else numbers
    draws = Draws(options, numbers.to(device)) if options.sample else None
    tokens = torch.full((len(caps), steps), EOS, device=device)
    looked_at = torch.zeros_like(tokens) if options.replace_unknown else None
    log_probability = torch.zeros(len(caps), dtype=torch.float32, device=device)
    with evaluating(cast(nn.Module, model)):
        state = model.start(source, source_length, **({"keep_attention": True} if options.replace_unknown else {}))
        words = is_word(source_length, source.shape[1], device).repeat_interleave(copies, dim=0)
        row = torch.arange(len(caps), device=device)  # where the rows still in the batch came from
        if copies > 1:
            state = state.select(row // copies)
        cap = caps.to(device)
        token = torch.full_like(row, BOS)
        for step in range(steps):
            logits, state = model.step(token, state)
            allowed = scores(logits, step, tokens[row, :step] if options.no_repeat_ngram else None)
            best, token = draws(allowed, row, step) if draws else likeliest(allowed)
            if looked_at is not None:
                assert state.attention is not None
                looked_at[row, step] = most_looked_at(state.attention, words[row])
            # Where nothing is allowed (every word would repeat, say), the hypothesis is cut: PAD says so.
            possible = best != -torch.inf
            tokens[row, step] = token.where(possible, PAD)
            log_probability[row] += best.where(possible, 0.0)
            going = (possible & (token != EOS) & (cap > step + 1)).nonzero().squeeze(1)
            if len(going) < len(row):
                row, cap, token = row[going], cap[going], token[going]
                if len(going) == 0:
                    break
                state = state.select(going)
    return _grouped(tokens, log_probability, looked_at, caps.tolist(), options)


def _grouped(
    tokens: Tensor, log_probability: Tensor, looked_at: Tensor | None, caps: list[int], options: SearchOptions
) -> list[list[Hypothesis]]:
    """Rows as hypotheses, sentence by sentence, best first."""
    places = [None] * len(caps) if looked_at is None else looked_at.tolist()
    found = [
        _hypothesis(ids[:cap], total, where, options.length_penalty)
        for ids, total, where, cap in zip(tokens.tolist(), log_probability.tolist(), places, caps, strict=True)
    ]
    groups = [found[start : start + options.n_best] for start in range(0, len(found), options.n_best)]
    return [sorted(group, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score)) for group in groups]


def _hypothesis(ids: list[int], log_probability: float, looked_at: list[int] | None, alpha: float) -> Hypothesis:
    length = next((place for place, token in enumerate(ids) if token in (EOS, PAD)), len(ids))
    finished = length < len(ids) and ids[length] == EOS
    return Hypothesis(
        ids[:length],
        log_probability / penalty(length + finished, alpha),
        log_probability,
        finished,
        None if looked_at is None else looked_at[:length],
    )
