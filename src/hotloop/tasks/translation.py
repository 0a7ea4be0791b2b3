"""Translation: one task for every model that follows the Translator protocol."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from hotloop.decoding import Hypothesis, SearchOptions, search
from hotloop.decoding.lines import texts_of
from hotloop.metrics.translation import score_translations
from hotloop.models.teacher_forcing import TeacherForcing
from hotloop.tasks.chunked_loss import chunked_losses
from hotloop.tasks.losses import projected_losses
from hotloop.tasks.pretrained import Pretrained
from hotloop.tasks.scheduled_sampling import PATHS, Path, decoder_inputs, slow_paths
from hotloop.tasks.task import StepResult as StepResult
from hotloop.tasks.task import Task


@dataclass(frozen=True)
class SentenceResult:
    """One validation or test pair: its loss and its translation."""

    loss_sum: float
    tokens: int
    hypothesis: Hypothesis | None


def token_losses(
    model: Any, batch: Any, *, label_smoothing: float = 0.0, chunk: int = 0, target_in: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Losses of the real target tokens; padding is dropped before the projection onto the vocabulary.

    Args:
        model: a Translator.
        batch: a `Batch` of B pairs with N real target tokens in all (EOS counted, BOS not).
        label_smoothing: share of the target distribution spread evenly over the vocabulary
            (Szegedy et al. 2016, §7). The plain losses are returned beside the smoothed ones.
        chunk: project that many tokens at a time (0 = all at once), so that the logits of one chunk are in memory
            instead of all. The losses may then be summed and scaled, not weighted one by one: see `chunked_losses`.
        target_in: (B, T), what the decoder is fed; None = the reference.

    Returns:
        losses to train on (N,), plain negative log-likelihoods (N,), both float32, and the row of each token
        (N,) on the CPU.
    """
    labels = batch.target[:, 1:]
    target_in = batch.target[:, :-1] if target_in is None else target_in
    hidden = model(batch.source, batch.source_length, target_in, batch.target_length - 1)
    # The places of the real tokens come from the lengths, which lie on the CPU: a mask would have to be
    # counted on the device while the host waits.
    rows, places = real_tokens(batch.target_length - 1, labels.shape[1])
    places = places.to(hidden.device, non_blocking=True)
    hidden = hidden.flatten(0, 1).index_select(0, places)
    labels = labels.flatten().index_select(0, places)
    if not chunk:
        return *projected_losses(model.project, hidden, labels, label_smoothing), rows
    return *chunked_losses(model.project, hidden, labels, chunk=chunk, smoothing=label_smoothing), rows


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
        beam_size, length_penalty, coverage_penalty, min_length, max_length, no_repeat_ngram, replace_unknown: of
            validation and test decoding, see `SearchOptions`.
        decode_every: decode at every k-th validation only (0 = never); the test set is always decoded.
        decode_sentences: decode only the first n sentences of the validation set (None = all).
        scheduled_sampling: how the model's own words are found where its `teacher_forcing` is below 1: ``"two_pass"``
            or ``"stepwise"``, see `decoder_inputs`. Validation and test always feed the reference.
        pretrained: options of `Pretrained`: what the embeddings begin as, and whether they are trained.
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
        coverage_penalty: float = 0.0,
        min_length: int = 0,
        max_length: int | None = None,
        no_repeat_ngram: int = 0,
        replace_unknown: bool = False,
        decode_every: int = 1,
        decode_sentences: int | None = None,
        scheduled_sampling: Path = "two_pass",
        pretrained: Mapping[str, Any] | None = None,
        optimizer: Callable[..., torch.optim.Optimizer] | None = None,
        schedule: Callable[..., Any] | None = None,
        saved: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(model=model, optimizer=optimizer, schedule=schedule, saved=saved)
        if scheduled_sampling not in PATHS:
            raise ValueError(f"scheduled_sampling = {scheduled_sampling!r}: choose one of {', '.join(PATHS)}")
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must lie in [0, 1), not {label_smoothing}")
        self.search = SearchOptions(
            beam_size=beam_size,
            length_penalty=length_penalty,
            coverage_penalty=coverage_penalty,
            min_length=min_length,
            max_length=max_length,
            no_repeat_ngram=no_repeat_ngram,
            replace_unknown=replace_unknown,
        )
        if model is not None:
            self.search.check_model(model)
        if decode_every < 0 or projection_chunk < 0:
            raise ValueError(
                f"decode_every ({decode_every}) and projection_chunk ({projection_chunk}) must be at least 0"
            )
        if decode_sentences is not None and decode_sentences < 1:
            raise ValueError(f"decode_sentences must be null or at least 1, not {decode_sentences}")
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.label_smoothing = label_smoothing
        self.teacher_forcing = TeacherForcing.from_option(getattr(model, "teacher_forcing", 1.0))
        self.scheduled_sampling = scheduled_sampling
        self.projection_chunk = projection_chunk
        self.decode_every = decode_every
        self.decode_sentences = decode_sentences
        self.pretrained = Pretrained(**(pretrained or {}))
        if self.pretrained.freeze is True:
            for parameter in self.pretrained.parameters(model):
                parameter.requires_grad_(False)
        self.signatures: dict[str, str] = {}
        self.hypotheses: list[str] = []
        self.sentences = 0
        self._results: dict[int, SentenceResult] = {}

    @property
    def search_options(self) -> dict[str, Any]:
        """All options of the search, by name."""
        return asdict(self.search)

    def result_rows(self) -> list[tuple[str, str]]:
        return list(self.signatures.items())

    # ---- training -------------------------------------------------------------------------------------

    def training_losses(self, batch: Any) -> Tensor:
        """The loss of each real target token, (N,), as it is trained on."""
        return self._training_losses(batch)[0]

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        losses, plain, _ = self._training_losses(batch)
        return self.finish_step(losses, plain, batch_idx, tokens=len(losses), samples=len(batch))

    def _training_losses(self, batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        share, chunk = self.teacher_forcing.ratio(self.global_step), self.projection_chunk
        fed = decoder_inputs(self.model, batch, share=share, path=self.scheduled_sampling, chunk=chunk)
        return token_losses(self.model, batch, label_smoothing=self.label_smoothing, chunk=chunk, target_in=fed)

    def slow_paths(self) -> dict[str, str]:
        """See `hotloop.tasks.scheduled_sampling.slow_paths`."""
        return slow_paths(self.model, self.scheduled_sampling)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Without a gradient the optimiser leaves a matrix alone, decay included. `requires_grad` would have to change
        # under way, which neither the optimiser's groups nor DDP's buckets would follow.
        if self.pretrained.frozen(self.current_epoch):
            for parameter in self.pretrained.parameters(self.model):
                parameter.grad = None
        super().on_before_optimizer_step(optimizer)

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
        hypotheses: list[Hypothesis | None] = [None] * len(ids)
        # An empty source (EOS only) has the empty translation; the model is not asked.
        wanted = [
            row
            for row, sample in enumerate(ids)
            if decode and (first is None or sample < first) and batch.source_length[row] > 1
        ]
        if decode:
            for row, sample in enumerate(ids):
                if first is None or sample < first:
                    hypotheses[row] = Hypothesis([], 0.0, 0.0, True)
        if wanted:
            chosen = torch.tensor(wanted)
            length = batch.source_length[chosen]
            source = batch.source[chosen.to(batch.source.device), : int(length.max())]
            found = search(self.model, source, length, self.search, numbers=batch.ids[chosen].cpu())
            for row, group in zip(wanted, found, strict=True):
                hypotheses[row] = group[0]
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
            sources, references = self.trainer.datamodule.texts(split)  # type: ignore[attr-defined]
            order = sorted(decoded)
            hypotheses = texts_of(
                self.source_tokenizer,
                self.target_tokenizer,
                [sources[sample] for sample in order],
                [decoded[sample] for sample in order],
            )
            wanted = [references[sample] for sample in order]
            scores = score_translations(hypotheses, wanted)
            values |= {f"{prefix}/bleu": scores.bleu, f"{prefix}/chrf": scores.chrf}
            self.signatures = {"bleu": scores.bleu_signature, "chrf": scores.chrf_signature}
            self.hypotheses = hypotheses
        self.log_dict(values, sync_dist=True)

    def _gather_results(self) -> dict[int, SentenceResult]:
        parts = self.from_all_processes(self._results)
        return {sample: result for part in parts for sample, result in part.items()}
