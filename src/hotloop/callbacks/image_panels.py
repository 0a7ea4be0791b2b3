"""What a regression on pictures sees and where it errs, in pictures."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
from numpy.typing import NDArray

from hotloop.callbacks.image_figures import TARGETS, Fit, draw_histogram, draw_scatter, draw_sheet, one_line
from hotloop.callbacks.tensorboard import show_picture, tensorboard_loggers

logger = logging.getLogger(__name__)

EPOCHS = 2  # whose first batch is drawn: two, so that augmentation shows
CAPTION = 3  # targets in the caption of a picture


class ImagePanels(pl.Callback):
    """Draws pictures for TensorBoard: training batches, predicted against true, errors, the worst of them.

    * `pictures/first_batch`: the first batch of the first two epochs of a run as the loader gave it to the model,
      after resizing and augmentation, before normalisation, with the targets.
    * `errors/predicted_and_true`: each validation picture a point, a panel a target, with the mean absolute error
      of the model and that of predicting the training mean.
    * `errors/histogram`: predicted − true.
    * `errors/worst`: the pictures with the largest errors, by name. Of several targets each error counts in
      root-mean-square errors of its target.

    All from what the training loop and the validation had at hand: nothing is predicted or loaded again but the
    few worst pictures.

    Args:
        pictures: how many of a training batch.
        worst: how many of the largest errors.
        every_n_validations: at each n-th validation.
        directory: folder for the same drawings as PNG files; None writes none.
    """

    kind = "images"

    def __init__(
        self, *, pictures: int = 16, worst: int = 9, every_n_validations: int = 1, directory: str | None = None
    ) -> None:
        if pictures < 1 or worst < 1 or every_n_validations < 1:
            raise ValueError(
                f"pictures ({pictures}), worst ({worst}) and every_n_validations ({every_n_validations}) must be "
                "at least 1"
            )
        self.pictures = pictures
        self.worst = worst
        self.every_n_validations = every_n_validations
        self.directory = None if directory is None else Path(directory)
        self._validations = 0
        self._epochs_seen: list[int] = []

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit":
            self._validations, self._epochs_seen = 0, []

    def _wanted(self, trainer: pl.Trainer) -> bool:
        return trainer.is_global_zero and (bool(tensorboard_loggers(trainer)) or self.directory is not None)

    def _show(self, trainer: pl.Trainer, tag: str, picture: NDArray[np.uint8]) -> None:
        show_picture(
            picture,
            tag=tag,
            step=trainer.global_step,
            boards=tensorboard_loggers(trainer),
            directory=self.directory,
        )

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        names = target_names(trainer.datamodule)  # type: ignore[attr-defined]
        if self._wanted(trainer) and len(names) > TARGETS:
            logger.info("pictures of errors show the first %d of %d targets", TARGETS, len(names))

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        epoch = trainer.current_epoch
        if len(self._epochs_seen) == EPOCHS or epoch in self._epochs_seen:
            return
        self._epochs_seen.append(epoch)
        if self._wanted(trainer):
            title = f"epoch {epoch + 1}: training pictures as the model sees them"
            names = target_names(trainer.datamodule)  # type: ignore[attr-defined]
            self._show(trainer, "pictures/first_batch", draw_batch(batch, names, count=self.pictures, title=title))

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        results: Any = pl_module.results
        if trainer.sanity_checking or results is None or not len(results.ids):
            return
        self._validations += 1
        if not self._wanted(trainer) or (self._validations - 1) % self.every_n_validations:
            return
        data = trainer.datamodule  # type: ignore[attr-defined]
        about = data.for_task()
        fits = [
            Fit(name, results.targets[:, column], results.predictions[:, column], mean)
            for column, (name, mean) in enumerate(zip(about["target_names"], about["target_mean"], strict=True))
        ]
        title = f"validation set, epoch {trainer.current_epoch + 1}"
        self._show(trainer, "errors/predicted_and_true", draw_scatter(fits, title=title))
        self._show(trainer, "errors/histogram", draw_histogram(fits, title=title))
        dataset, names = data.dataset("valid"), about["target_names"]
        rows = worst_rows(results, self.worst)
        self._show(
            trainer,
            "errors/worst",
            draw_sheet(
                [dataset.picture(int(results.ids[row])) for row in rows],
                [[dataset.name(int(results.ids[row])), *error_texts(results, row, names)] for row in rows],
                title=f"{title}, largest errors: true → predicted (error)",
            ),
        )


def target_names(datamodule: Any) -> list[str]:
    return list(datamodule.for_task()["target_names"])


def draw_batch(batch: Any, names: Sequence[str], *, count: int, title: str) -> NDArray[np.uint8]:
    """The first `count` pictures of a batch, each with its targets, as pixels (height, width, 3).

    Args:
        batch: an ImageBatch on any device.
        names: of its T targets.
        count: at most so many.
        title: above all; the size in pixels is added.
    """
    pictures = batch.images[:count].cpu().permute(0, 2, 3, 1).numpy()
    values = batch.targets[:count].double().cpu().numpy()
    captions = [_capped([f"{name} {value:.4g}" for name, value in zip(names, row, strict=True)]) for row in values]
    height, width = pictures.shape[1:3]
    return draw_sheet(list(pictures), captions, title=f"{title}, {width} × {height} pixels")


def worst_rows(results: Any, count: int) -> list[int]:
    """Rows of `results` with the largest errors, the largest first; a prediction that is no number comes before all.

    Args:
        results: RegressionResults.
        count: at most so many.
    """
    errors = np.abs(results.predictions - results.targets)
    finite = np.where(np.isfinite(errors), errors, np.nan)
    scale = np.sqrt(np.nansum(finite**2, axis=0) / np.maximum(1, np.isfinite(finite).sum(axis=0)))
    relative = errors / np.where(scale > 0, scale, 1.0)
    size = np.where(np.isfinite(relative), relative, np.inf).max(axis=1)
    return [int(row) for row in np.argsort(-size, kind="stable")[:count]]


def error_texts(results: Any, row: int, names: Sequence[str]) -> list[str]:
    """`42 → 61 (+19)` for each target of a row, with its name where there are several."""
    texts = []
    for name, true, predicted in zip(names, results.targets[row], results.predictions[row], strict=True):
        text = f"{true:.4g} → {predicted:.4g} ({predicted - true:+.3g})"
        texts.append(f"{name} {text}" if len(names) > 1 else text)
    return _capped(texts)


def _capped(texts: list[str]) -> list[str]:
    """The texts of a caption; of many the first and how many more there are."""
    return texts if len(texts) <= CAPTION else [*texts[:CAPTION], f"… and {len(texts) - CAPTION} more"]


def plain_errors(
    results: Any, names: Sequence[str], name_of: Callable[[int], str], *, count: int
) -> list[tuple[str, str]]:
    """The largest errors of a set for a terminal: picture, and its true and predicted values.

    Args:
        results: RegressionResults.
        names: of its targets.
        name_of: sample number → name of the picture.
        count: at most so many.
    """
    return [
        (one_line(name_of(int(results.ids[row]))), ", ".join(error_texts(results, row, names)))
        for row in worst_rows(results, count)
    ]
