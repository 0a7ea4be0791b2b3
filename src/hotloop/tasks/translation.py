"""Translation: one task for every model that follows the Translator protocol."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hotloop.decoding import check_options, search
from hotloop.metrics.translation import score_translations
from hotloop.tasks.losses import smoothed_cross_entropy
from hotloop.tasks.task import StepResult as StepResult
from hotloop.tasks.task import Task


@dataclass(frozen=True)
class SentenceResult:
    """One validation or test pair: its loss and its translation."""

    loss_sum: float
    tokens: int
    hypothesis: list[int] | None


def token_losses(
    model: Any, batch: Any, *, label_smoothing: float = 0.0, chunk: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Losses of the real target tokens; padding is dropped before the projection onto the vocabulary.

    Args:
        model: a Translator.
        batch: a `Batch` of B pairs with N real target tokens in all (EOS counted, BOS not).
        label_smoothing: share of the target distribution spread evenly over the vocabulary
            (Szegedy et al. 2016, §7). The plain losses are returned beside the smoothed ones.
        chunk: project that many tokens at a time (0 = all at once): the logits of one chunk are in memory
            instead of all, for a second projection in the backward pass.

    Returns:
        losses to train on (N,), plain negative log-likelihoods (N,), both float32, and the row of each token
        (N,) on the CPU.
    """
    target_in, labels = batch.target[:, :-1], batch.target[:, 1:]
    hidden = model(batch.source, batch.source_length, target_in, batch.target_length - 1)
    # The places of the real tokens come from the lengths, which lie on the CPU: a mask would have to be
    # counted on the device while the host waits.
    rows, places = real_tokens(batch.target_length - 1, labels.shape[1])
    places = places.to(hidden.device, non_blocking=True)
    hidden = hidden.flatten(0, 1).index_select(0, places)
    labels = labels.flatten().index_select(0, places)
    if not chunk:
        return *smoothed_cross_entropy(model.project(hidden), labels, label_smoothing), rows

    def project_and_lose(part: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        return smoothed_cross_entropy(model.project(part), wanted, label_smoothing)

    # Each chunk's logits are made again in the backward pass: kept until then, chunks would save nothing.
    parts = [
        checkpoint(project_and_lose, part, wanted, use_reentrant=False)
        for part, wanted in zip(hidden.split(chunk), labels.split(chunk), strict=True)
    ]
    smoothed, plain = (torch.cat(part) for part in zip(*parts, strict=True))
    return smoothed, plain, rows


def real_tokens(length: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Rows (N,) and flat places (N,) of the real tokens in a padded (B, T) array; CPU tensors.

    Args:
        length: (B,) real tokens of each row, on the CPU.
        width: T.
    """
    rows, columns = (torch.arange(width) < length.unsqueeze(1)).nonzero(as_tuple=True)
    return rows, rows * width + columns


class TranslationTask(Task):
    """What is optimised and measured when a model translates.

    The training loss is the mean over the real target tokens of the whole optimiser step: see `Task`.

    Args:
        model: a Translator.
        source_tokenizer: turns source lines into ids; saved with the checkpoint.
        target_tokenizer: the same for the target side.
        label_smoothing: see `token_losses`; reported losses are always unsmoothed.
        projection_chunk: see `token_losses`.
        beam_size: beam of validation and test decoding (1 = greedy).
        length_penalty: exponent of the length normalisation in beam search.
        max_length: cap on decoded tokens; None = 2 × source length + 10.
        decode_every: decode at every k-th validation only (0 = never); the test set is always decoded.
        decode_sentences: decode only the first n sentences of the validation set (None = all).
        optimizer, schedule, saved: see `Task`.
    """

    kind = "text"
    metrics: ClassVar[dict[str, str]] = {
        "train/loss_epoch": "min",
        "val/loss": "min",
        "val/perplexity": "min",
        "val/bleu": "max",
        "val/chrf": "max",
    }
    headline = ("val/bleu",)

    def __init__(
        self,
        *,
        model: Any,
        source_tokenizer: Any,
        target_tokenizer: Any,
        label_smoothing: float = 0.0,
        projection_chunk: int = 0,
        beam_size: int = 1,
        length_penalty: float = 1.0,
        max_length: int | None = None,
        decode_every: int = 1,
        decode_sentences: int | None = None,
        optimizer: Callable[..., torch.optim.Optimizer] | None = None,
        schedule: Callable[..., Any] | None = None,
        saved: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(model=model, optimizer=optimizer, schedule=schedule, saved=saved)
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must lie in [0, 1), not {label_smoothing}")
        check_options(beam_size=beam_size, n_best=1, length_penalty=length_penalty, max_length=max_length)
        if decode_every < 0 or projection_chunk < 0:
            raise ValueError(
                f"decode_every ({decode_every}) and projection_chunk ({projection_chunk}) must be at least 0"
            )
        if decode_sentences is not None and decode_sentences < 1:
            raise ValueError(f"decode_sentences must be null or at least 1, not {decode_sentences}")
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.label_smoothing = label_smoothing
        self.projection_chunk = projection_chunk
        self.search_options: dict[str, Any] = {
            "beam_size": beam_size,
            "length_penalty": length_penalty,
            "max_length": max_length,
        }
        self.decode_every = decode_every
        self.decode_sentences = decode_sentences
        self.signatures: dict[str, str] = {}
        self.hypotheses: list[str] = []
        self.sentences = 0
        self._results: dict[int, SentenceResult] = {}

    def result_rows(self) -> list[tuple[str, str]]:
        return list(self.signatures.items())

    # ---- training -------------------------------------------------------------------------------------

    def training_losses(self, batch: Any) -> Tensor:
        """The loss of each real target token, (N,), as it is trained on."""
        return token_losses(self.model, batch, label_smoothing=self.label_smoothing, chunk=self.projection_chunk)[0]

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        losses, plain, _ = token_losses(
            self.model, batch, label_smoothing=self.label_smoothing, chunk=self.projection_chunk
        )
        return self.finish_step(losses, plain, batch_idx, tokens=len(losses), samples=len(batch))

    # ---- validation and test --------------------------------------------------------------------------

    def on_validation_epoch_start(self) -> None:
        self._results = {}

    on_test_epoch_start = on_validation_epoch_start

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        decode = self.decode_every > 0 and self._validations % self.decode_every == 0
        self._evaluate(batch, decode=decode, first=self.decode_sentences)

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self._evaluate(batch, decode=True, first=None)

    def _evaluate(self, batch: Any, *, decode: bool, first: int | None) -> None:
        _, plain, rows = token_losses(self.model, batch, chunk=self.projection_chunk)
        sums = (
            torch.zeros(len(batch), dtype=plain.dtype, device=plain.device)
            .index_add_(0, rows.to(plain.device), plain)
            .tolist()
        )
        tokens = (batch.target_length - 1).tolist()
        ids = batch.ids.tolist()
        hypotheses: list[list[int] | None] = [None] * len(ids)
        # An empty source (EOS only) has the empty translation; the model is not asked.
        wanted = [
            row
            for row, sample in enumerate(ids)
            if decode and (first is None or sample < first) and batch.source_length[row] > 1
        ]
        if decode:
            for row, sample in enumerate(ids):
                if first is None or sample < first:
                    hypotheses[row] = []
        if wanted:
            chosen = torch.tensor(wanted)
            length = batch.source_length[chosen]
            source = batch.source[chosen.to(batch.source.device), : int(length.max())]
            for row, found in zip(wanted, search(self.model, source, length, **self.search_options), strict=True):
                hypotheses[row] = found[0].tokens
        for sample, loss_sum, count, hypothesis in zip(ids, sums, tokens, hypotheses, strict=True):
            # Keyed by sample: pairs repeated to even out the processes count once.
            self._results[sample] = SentenceResult(loss_sum, count, hypothesis)

    def report_results(self, prefix: str, split: str) -> None:
        results = self._gather_results()
        self.sentences = len(results)
        if not results:
            return
        mean = sum(r.loss_sum for r in results.values()) / max(1, sum(r.tokens for r in results.values()))
        values = {f"{prefix}/loss": mean, f"{prefix}/perplexity": math.exp(min(mean, 700.0))}
        decoded = {sample: r.hypothesis for sample, r in results.items() if r.hypothesis is not None}
        if decoded:
            _, references = self.trainer.datamodule.texts(split)  # type: ignore[attr-defined]
            order = sorted(decoded)
            hypotheses = self.target_tokenizer.decode([decoded[sample] for sample in order])
            wanted = [references[sample] for sample in order]
            scores = score_translations(hypotheses, wanted)
            values |= {f"{prefix}/bleu": scores.bleu, f"{prefix}/chrf": scores.chrf}
            self.signatures = {"bleu": scores.bleu_signature, "chrf": scores.chrf_signature}
            self.hypotheses = hypotheses
        self.log_dict(values, sync_dist=True)

    def _gather_results(self) -> dict[int, SentenceResult]:
        parts = self.from_all_processes(self._results)
        return {sample: result for part in parts for sample, result in part.items()}
