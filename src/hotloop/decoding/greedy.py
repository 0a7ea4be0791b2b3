"""Greedy search: the likeliest token at every step."""

from typing import cast

import torch
from torch import Tensor, nn

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


@torch.inference_mode()
def greedy_search(
    model: Translator,
    source: Tensor,
    source_length: Tensor,
    *,
    length_penalty: float = 1.0,
    max_length: int | None = None,
    allow_unknown: bool = True,
) -> list[Hypothesis]:
    """One hypothesis for each row of source (B, S), whose lengths (B,) lie on the CPU and count EOS.

    Rows that are finished leave the batch, so late steps are cheap and the last step is that of the longest row.
    ``length_penalty`` only changes the score that is told. The host reads from the device once a step.
    """
    check_options(beam_size=1, n_best=1, length_penalty=length_penalty, max_length=max_length)
    caps = length_cap(source_length - 1, max_length)
    if len(source) == 0:
        return []
    device = source.device
    banned = banned_tokens(allow_unknown, device)
    steps = int(caps.max())
    tokens = torch.full((len(source), steps), EOS, device=device)
    log_probability = torch.zeros(len(source), device=device)
    with evaluating(cast(nn.Module, model)):
        state = model.start(source, source_length)
        row = torch.arange(len(source), device=device)  # where the rows still in the batch came from
        cap = caps.to(device)
        token = torch.full_like(row, BOS)
        for step in range(steps):
            logits, state = model.step(token, state)
            logits = logits.float()
            total = logits.logsumexp(-1)
            best, token = logits.index_fill(1, banned, -torch.inf).max(-1)
            tokens[row, step] = token
            log_probability[row] += best - total
            going = ((token != EOS) & (cap > step + 1)).nonzero().squeeze(1)
            if len(going) == 0:
                break
            if len(going) < len(row):
                row, cap, token, state = row[going], cap[going], token[going], state.select(going)
    return [
        _hypothesis(ids[:cap], log_prob, length_penalty)
        for ids, log_prob, cap in zip(tokens.tolist(), log_probability.tolist(), caps.tolist(), strict=True)
    ]


def _hypothesis(ids: list[int], log_probability: float, alpha: float) -> Hypothesis:
    finished = EOS in ids
    tokens = ids[: ids.index(EOS)] if finished else ids
    return Hypothesis(tokens, log_probability / penalty(len(tokens) + finished, alpha), log_probability, finished)
