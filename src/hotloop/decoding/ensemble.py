"""Several models as one: the mean of their probabilities."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.models.interface import State


@dataclass(frozen=True)
class EnsembleState:
    """One state a model."""

    states: tuple[State, ...]

    @property
    def attention(self) -> Tensor | None:
        """(N, S): the mean over the models."""
        found = [state.attention for state in self.states]
        return None if any(one is None for one in found) else torch.stack(found).mean(0)  # type: ignore[arg-type]

    def select(self, rows: Tensor, *, width: int = 1) -> "EnsembleState":
        """See `hotloop.models.interface.State`."""
        return EnsembleState(tuple(state.select(rows, width=width) for state in self.states))


class Ensemble(nn.Module):
    """A Translator whose probabilities are the mean of its models' (Sutskever et al. 2014, section 3.6).

    The models may be of any architecture; their vocabularies have to be the same. What it gives as logits are
    logarithms of probabilities, in float32. It attends where all its models do: then weights are the means over the
    models, of each model's alignment layer and the mean of its heads.

    Raises ValueError for no model, or for vocabularies of different sizes.
    """

    alignment_layer = 0

    def __init__(self, models: Sequence[Any]) -> None:
        super().__init__()
        sizes = [(model.source_vocabulary, model.target_vocabulary) for model in models]
        if len(set(sizes)) != 1:
            raise ValueError(f"models with source and target vocabularies {sizes} are no ensemble: give one kind")
        self.models = nn.ModuleList(models)
        self.source_vocabulary, self.target_vocabulary = sizes[0]
        self.attends = all(model.attends for model in models)
        self._widths: list[int] = []

    def forward(self, source: Tensor, source_length: Tensor, target_in: Tensor, target_length: Tensor) -> Tensor:
        """The models' hidden states side by side, (B, T, sum of H), for `project`."""
        found = [model(source, source_length, target_in, target_length) for model in self.models]
        self._widths = [hidden.shape[-1] for hidden in found]
        return torch.cat(found, dim=-1)

    def project(self, hidden: Tensor) -> Tensor:
        """Hidden states (..., sum of H) as `forward` gave them to log-probabilities (..., V)."""
        parts = hidden.split(self._widths, dim=-1)
        return mean_probability([model.project(part) for model, part in zip(self._each, parts, strict=True)])

    def start(self, source: Tensor, source_length: Tensor, *, keep_attention: bool = False) -> EnsembleState:
        """See `hotloop.models.interface.Translator`."""
        more = {"keep_attention": True} if keep_attention else {}
        return EnsembleState(tuple(model.start(source, source_length, **more) for model in self._each))

    def step(self, token: Tensor, state: EnsembleState) -> tuple[Tensor, EnsembleState]:
        """Tokens (N,) to the log-probabilities (N, V) of their successors and the state after them."""
        steps = [model.step(token, its) for model, its in zip(self._each, state.states, strict=True)]
        return mean_probability([logits for logits, _ in steps]), EnsembleState(tuple(after for _, after in steps))

    def attention_weights(self, source: Tensor, source_length: Tensor, target_in: Tensor) -> Tensor:
        """Teacher-forced weights (B, 1, 1, T, S); ValueError where a model has no attention."""
        found = [
            model.attention_weights(source, source_length, target_in)[:, model.alignment_layer].mean(1)
            for model in self._each
        ]
        return torch.stack(found).mean(0)[:, None, None]

    @property
    def _each(self) -> list[Any]:
        return list(self.models)


def mean_probability(logits: Sequence[Tensor]) -> Tensor:
    """The logarithm, float32, of the mean of the probabilities that logits (..., V) stand for."""
    each = [one.float() for one in logits]
    if each[0].is_cpu:
        # logsumexp takes three times as long on a CPU, and is needed only where a probability is 0 in float32.
        total = each[0].softmax(-1)
        for one in each[1:]:
            total += one.softmax(-1)
        if total.numel() and bool(total.amin() > torch.finfo(total.dtype).tiny):
            return total.log_() - math.log(len(each))
    return torch.stack([one.log_softmax(-1) for one in each]).logsumexp(0) - math.log(len(each))
