"""How likely a model holds given translations to be: forced decoding."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

import torch
from torch import Tensor, nn

from hotloop.decoding.hypothesis import evaluating
from hotloop.decoding.lines import Encoder, check_batch_size, padded
from hotloop.models.interface import Translator
from hotloop.vocabulary import BOS, EOS, PAD


@dataclass(frozen=True)
class PairScore:
    """What a model makes of one pair."""

    log_probability: float  # sum of ln p over the target's tokens and EOS
    tokens: int  # EOS counts

    @property
    def perplexity(self) -> float:
        """exp of the mean of -ln p; infinite beyond 1.7e308."""
        mean = -self.log_probability / self.tokens
        return math.exp(mean) if mean < 709.0 else math.inf


def score_pairs(
    model: Translator,
    source_tokenizer: Encoder,
    target_tokenizer: Encoder,
    pairs: Sequence[tuple[str, str]],
    *,
    batch_size: int = 64,
    device: torch.device | str | None = None,
) -> list[PairScore]:
    """The log-probability of each target given its source, in the order of the pairs; one teacher-forced pass.

    Pairs of like length share a batch. An empty target is EOS alone, an empty source too. Words that the target
    vocabulary lacks are scored as UNK. ``device`` says where the model is; None asks its parameters.
    """
    check_batch_size(batch_size)
    if device is None:
        device = next(cast(nn.Module, model).parameters()).device
    sources = source_tokenizer.encode([source.strip() for source, _ in pairs])
    targets = target_tokenizer.encode([target.strip() for _, target in pairs])
    order = sorted(range(len(pairs)), key=lambda i: (len(sources[i]), len(targets[i])))
    found: dict[int, PairScore] = {}
    with evaluating(cast(nn.Module, model)):
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            source, source_length = padded([[*sources[i], EOS] for i in chosen])
            target, target_length = padded([[BOS, *targets[i], EOS] for i in chosen])
            sums = summed_log_probability(model, source.to(device), source_length, target.to(device), target_length)
            for i, total, count in zip(chosen, sums.tolist(), (target_length - 1).tolist(), strict=True):
                found[i] = PairScore(total, count)
    return [found[i] for i in range(len(pairs))]


def score_stream(
    model: Translator,
    source_tokenizer: Encoder,
    target_tokenizer: Encoder,
    pairs: Iterable[tuple[str, str]],
    *,
    chunk: int = 4096,
    batch_size: int = 64,
    device: torch.device | str | None = None,
) -> Iterator[PairScore]:
    """:func:`score_pairs` for an input without end: reads ``chunk`` pairs at a time and yields one by one."""
    each = iter(pairs)
    while part := list(islice(each, chunk)):
        yield from score_pairs(
            model, source_tokenizer, target_tokenizer, part, batch_size=batch_size, device=device
        )  # fmt: skip


@torch.inference_mode()
def summed_log_probability(
    model: Translator, source: Tensor, source_length: Tensor, target: Tensor, target_length: Tensor
) -> Tensor:
    """Sums (B,) of ln p over the real tokens of target (B, T), which begins with BOS; float64."""
    labels = target[:, 1:]
    hidden = model(source, source_length, target[:, :-1], target_length - 1)
    real = labels != PAD
    # Padding is dropped before the projection, which is most of the work.
    scores = model.project(hidden[real]).float().log_softmax(-1).gather(1, labels[real][:, None]).squeeze(1)
    return (
        torch.zeros(labels.shape, dtype=torch.float64, device=labels.device)
        .masked_scatter(real, scores.double())
        .sum(1)
    )
