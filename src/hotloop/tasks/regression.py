"""Regression: one task for every model that turns pictures into numbers."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotloop.metrics.regression import score_regression
from hotloop.tasks.losses import RegressionLoss, mean_and_variance, regression_losses
from hotloop.tasks.scaling import Scaling, normalised_pictures
from hotloop.tasks.task import Task

log = logging.getLogger(__name__)

CORRELATIONS = ("r2", "pearson", "spearman")


@dataclass(frozen=True)
class RegressionResults:
    """A whole validation or test set, sorted by `ids`, each sample once; in the user's units.

    Attributes:
        ids: (N,) int64, sample numbers inside the split.
        predictions: (N, T) float64.
        targets: (N, T) float64.
    """

    ids: NDArray[np.int64]
    predictions: NDArray[np.float64]
    targets: NDArray[np.float64]


class RegressionTask(Task):
    """What is optimised and measured when a model turns pictures into numbers.

    The model sees normalised pictures and learns standardised targets; what is reported is in the user's units, but
    for the loss. Metrics are those of the whole set, whatever the batches and processes.

    Args:
        model: normalised pictures (B, C, H, W) → (B, T), or (B, 2T) with loss="gaussian_nll".
        target_names: of the T targets.
        target_mean: of the training set, T numbers.
        target_std: the same; above 0.
        pixel_mean: of the training set, C numbers from 0 to 1.
        pixel_std: the same; above 0.
        pixel_max: value of a white pixel, 255 or 65535.
        loss: see `hotloop.tasks.losses.regression_losses`; of standardised targets.
        huber_delta: see there; in standard deviations of the target.
        channels_last: keep weights and pictures with the channels of a pixel side by side in memory: the same
            numbers, faster convolutions on CPUs and on GPUs with mixed precision.
        optimizer, schedule, saved: see `Task`.

    Raises:
        ValueError: an option outside its range, or numbers that do not belong together.
    """

    kind = "images"
    metrics: ClassVar[dict[str, str]] = {
        "train/loss_epoch": "min",
        "val/loss": "min",
        "val/mse": "min",
        "val/rmse": "min",
        "val/mae": "min",
        "val/r2": "max",
        "val/pearson": "max",
        "val/spearman": "max",
    }
    headline = ("val/mae", "val/baseline_mae")

    def __init__(
        self,
        *,
        model: Any,
        target_names: Sequence[str],
        target_mean: Sequence[float],
        target_std: Sequence[float],
        pixel_mean: Sequence[float],
        pixel_std: Sequence[float],
        pixel_max: float,
        loss: RegressionLoss = "mse",
        huber_delta: float = 1.0,
        channels_last: bool = True,
        optimizer: Callable[..., torch.optim.Optimizer] | None = None,
        schedule: Callable[..., Any] | None = None,
        saved: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(model=model, optimizer=optimizer, schedule=schedule, saved=saved)
        if loss not in get_args(RegressionLoss):
            raise ValueError(f"loss must be one of {', '.join(get_args(RegressionLoss))}, not {loss!r}")
        if not 0 < huber_delta < float("inf"):
            raise ValueError(f"huber_delta must be a number above 0, not {huber_delta}")
        if not target_names or not len(target_names) == len(target_mean) == len(target_std):
            raise ValueError(
                f"{len(target_names)} target_names, {len(target_mean)} target_mean and {len(target_std)} target_std: "
                "give one of each for every target"
            )
        if len(pixel_mean) != len(pixel_std):
            raise ValueError(f"{len(pixel_mean)} pixel_mean but {len(pixel_std)} pixel_std: give one a channel")
        for name, values in (("target_std", target_std), ("pixel_std", pixel_std), ("pixel_max", [pixel_max])):
            if not all(0 < value < float("inf") for value in values):
                raise ValueError(f"{name} must be above 0, not {values}")
        self.target_names = tuple(target_names)
        self.loss = loss
        self.huber_delta = huber_delta
        self.channels_last = channels_last
        self.results: RegressionResults | None = None
        self._targets = Scaling(target_mean, target_std)
        self._pixels = Scaling([pixel_max * x for x in pixel_mean], [pixel_max * x for x in pixel_std])
        self._parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self._told: set[str] = set()
        if channels_last:
            self.model.to(memory_format=torch.channels_last)

    @staticmethod
    def model_facts(facts: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """What the model is told of the data, given the options of the task.

        Args:
            facts: of the data module; `outputs` is the number of targets.
            options: of this task.
        """
        each = 2 if options.get("loss") == "gaussian_nll" else 1
        return {**facts, "outputs": each * facts["outputs"]}

    # ---- from pictures to numbers ---------------------------------------------------------------------

    def normalised(self, images: Tensor) -> Tensor:
        """Pictures (B, C, H, W), uint8 or int32, as the model reads them."""
        dtype = next((p.dtype for p in self.model.parameters() if p.is_floating_point()), torch.float32)
        return normalised_pictures(images, self._pixels, dtype=dtype, channels_last=self.channels_last)

    def predict(self, images: Tensor) -> Tensor:
        """Predictions (B, T), float32, in the user's units, for pictures (B, C, H, W), uint8 or int32."""
        return self.predict_distribution(images)[0]

    @torch.no_grad()
    def predict_distribution(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        """Predictions (B, T) and their standard deviations (B, T), float32, in the user's units.

        The model is in evaluation mode meanwhile, whatever it was before: a picture's prediction does not depend on
        the others of its batch. Only loss="gaussian_nll" has standard deviations; None otherwise.
        """
        training = self.model.training
        self.model.eval()
        try:
            outputs = self.model(self.normalised(images.to(self.device)))
        finally:
            self.model.train(training)
        means, variances = self._means(outputs, len(images))
        found = self._targets.restored(means, self._precise).float()
        if variances is None:
            return found, None
        return found, (variances.sqrt() * self._targets.std.to(variances)).float()

    def _means(self, outputs: Tensor, pictures: int) -> tuple[Tensor, Tensor | None]:
        """Standardised predictions (B, T) and, where the loss has them, variances (B, T)."""
        each = 2 if self.loss == "gaussian_nll" else 1
        wanted = (pictures, each * len(self.target_names))
        if tuple(outputs.shape) != wanted:
            raise ValueError(
                f"the model gives outputs of shape {tuple(outputs.shape)}; loss={self.loss} needs {wanted}"
            )
        return (outputs, None) if each == 1 else mean_and_variance(outputs)

    def _outputs_and_losses(self, batch: Any) -> tuple[Tensor, Tensor]:
        """What the model says (B, T or 2T), and the loss of each picture (B,)."""
        outputs = self.model(self.normalised(batch.images))
        targets = self._targets.normalised(batch.targets, self._precise)
        return outputs, regression_losses(outputs, targets, loss=self.loss, huber_delta=self.huber_delta)

    # ---- training -------------------------------------------------------------------------------------

    def training_losses(self, batch: Any) -> Tensor:
        """The loss of each picture, (B,), as it is trained on."""
        return self._outputs_and_losses(batch)[1]

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        _, losses = self._outputs_and_losses(batch)
        return self.finish_step(losses, losses.detach(), batch_idx, tokens=0, samples=len(batch))

    # ---- validation and test --------------------------------------------------------------------------

    def on_validation_epoch_start(self) -> None:
        self._parts = []

    on_test_epoch_start = on_validation_epoch_start

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        outputs, losses = self._outputs_and_losses(batch)
        means, _ = self._means(outputs, len(batch))
        # Left on the device: a copy a batch would make the host wait.
        self._parts.append((batch.ids, means, batch.targets, losses))

    test_step = validation_step

    def report_results(self, prefix: str, split: str) -> None:
        gathered = self._gather()
        if gathered is None:
            return
        self.results, losses = gathered
        predictions, targets = torch.from_numpy(self.results.predictions), torch.from_numpy(self.results.targets)
        scores = score_regression(predictions, targets, names=self.target_names, baseline=self._targets.mean.tolist())
        undefined = [name for name in CORRELATIONS if name not in scores]
        if undefined and split not in self._told:
            self._told.add(split)  # said once, not after each epoch
            log.info("%s set: %s undefined (%s)", split, ", ".join(undefined), why_undefined(targets))
        self.log_dict(
            {f"{prefix}/loss": losses.mean(), **{f"{prefix}/{k}": v for k, v in scores.items()}}, sync_dist=True
        )

    def _gather(self) -> tuple[RegressionResults, Tensor] | None:
        """Results and losses (N,) float64 of the whole set from all processes; None for an empty set."""
        part = [torch.cat(column).cpu() for column in zip(*self._parts, strict=True)]
        self._parts = []
        parts = [part for part in self.from_all_processes(part) if part]
        if not parts:
            return None
        gathered = [torch.cat(column) for column in zip(*parts, strict=True)]
        # Pictures repeated to even out the processes count once.
        ids, first = np.unique(gathered[0].numpy(), return_index=True)
        means, targets, losses = (column[first].double() for column in gathered[1:])
        predictions = self._targets.restored(means, torch.float64)
        return RegressionResults(ids, predictions.numpy(), targets.numpy()), losses

    def result_rows(self) -> list[tuple[str, str]]:
        """The error of each target beside that of always predicting its training mean."""
        if self.results is None:
            return []
        errors = np.abs(self.results.predictions - self.results.targets).mean(0)
        baselines = np.abs(self._targets.mean.numpy() - self.results.targets).mean(0)
        return [
            (f"error of {name}", f"{error:.4g} on average; predicting the mean of the training set: {baseline:.4g}")
            for name, error, baseline in zip(self.target_names, errors, baselines, strict=True)
        ]


def why_undefined(targets: Tensor) -> str:
    """Why correlations of predictions with targets (N, T) have no value."""
    if len(targets) < 2:
        return "one picture"
    if not (targets != targets[:1]).any(dim=0).all():
        return "all targets are equal"
    return "all predictions are equal, or not finite"
