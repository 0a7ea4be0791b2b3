"""Pictures of a regression: when, of what, and how many."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pytest
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotloop.callbacks import image_panels
from hotloop.callbacks.image_panels import ImagePanels, draw_batch, error_texts, plain_errors, worst_rows
from hotloop.data.images.batch import ImageBatch
from tests.callbacks.image_toy import ImageData, RegressionTask, Results

BATCH, SCATTER, HISTOGRAM, WORST = (
    "pictures/first_batch", "errors/predicted_and_true", "errors/histogram", "errors/worst",
)  # fmt: skip


def board(folder: Path) -> TensorBoardLogger:
    return TensorBoardLogger(folder, name="tensorboard", version="", default_hp_metric=False)


def steps(folder: Path) -> dict[str, list[int]]:
    """The steps of each kind of picture in the event files."""
    read = EventAccumulator(str(folder / "tensorboard"), size_guidance={"images": 0})
    read.Reload()
    return {tag: [image.step for image in read.Images(tag)] for tag in read.Tags()["images"]}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, Any]]:
    """What is drawn, as (title, pictures or fits, captions)."""
    drawn: list[tuple[str, Any, Any]] = []
    picture = np.zeros((4, 4, 3), np.uint8)

    def sheet(pictures: Any, captions: Any, *, title: str) -> Any:
        drawn.append((title, pictures, captions))
        return picture

    def panels(fits: Any, *, title: str) -> Any:
        drawn.append((title, fits, None))
        return picture

    monkeypatch.setattr(image_panels, "draw_sheet", sheet)
    monkeypatch.setattr(image_panels, "draw_scatter", panels)
    monkeypatch.setattr(image_panels, "draw_histogram", panels)
    return drawn


def test_batches_of_two_epochs_and_errors_of_each_validation_are_drawn(make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([ImagePanels()], logger=board(tmp_path), max_epochs=3).fit(RegressionTask(), datamodule=ImageData())
    assert steps(tmp_path) == {BATCH: [0, 3], SCATTER: [3, 6, 9], HISTOGRAM: [3, 6, 9], WORST: [3, 6, 9]}


def test_errors_are_drawn_every_nth_validation(make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([ImagePanels(every_n_validations=2)], logger=board(tmp_path), max_epochs=4).fit(
        RegressionTask(), datamodule=ImageData()
    )
    assert steps(tmp_path)[SCATTER] == [3, 9]


def test_a_second_run_starts_afresh(make_trainer: Any, tmp_path: Path) -> None:
    panels = ImagePanels(every_n_validations=2)
    for name in ("one", "two"):
        make_trainer([panels], logger=board(tmp_path / name), max_epochs=1).fit(
            RegressionTask(), datamodule=ImageData()
        )
        assert steps(tmp_path / name) == {BATCH: [0], SCATTER: [3], HISTOGRAM: [3], WORST: [3]}


def test_files_are_written_only_where_asked(make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([ImagePanels(directory=str(tmp_path / "drawn"))], max_epochs=1).fit(
        RegressionTask(), datamodule=ImageData()
    )
    names = sorted(path.name for path in (tmp_path / "drawn").iterdir())
    assert names == [
        "first_batch_step_0000000.png", "histogram_step_0000003.png", "predicted_and_true_step_0000003.png",
        "worst_step_0000003.png",
    ]  # fmt: skip
    make_trainer([ImagePanels()], logger=board(tmp_path), max_epochs=1).fit(RegressionTask(), datamodule=ImageData())
    assert len(list(tmp_path.rglob("*.png"))) == len(names)


def test_without_a_logger_or_folder_nothing_is_drawn(make_trainer: Any, tmp_path: Path, told: list[Any]) -> None:
    make_trainer([ImagePanels()], logger=CSVLogger(tmp_path)).fit(RegressionTask(), datamodule=ImageData())
    assert not told


def test_the_sanity_check_draws_nothing(make_trainer: Any, tmp_path: Path, told: list[Any]) -> None:
    class Checked(RegressionTask):
        def on_validation_epoch_end(self) -> None:
            self._report("val")

    make_trainer([ImagePanels()], logger=board(tmp_path), num_sanity_val_steps=2, max_epochs=1).fit(
        Checked(), datamodule=ImageData()
    )
    assert len(told) == 4, "a batch, and three drawings of the one validation"


def test_the_first_batch_is_the_one_that_was_trained_on(make_trainer: Any, tmp_path: Path, told: list[Any]) -> None:
    class Brightening:
        """A loader whose pictures are brighter by one in each epoch."""

        epoch = 0

        def __len__(self) -> int:
            return 3

        def __iter__(self) -> Iterator[Any]:
            self.epoch += 1
            for batch in ImageData().batches():
                yield ImageBatch(images=batch.images + self.epoch, targets=batch.targets, ids=batch.ids)

    class Augmented(ImageData):
        def train_dataloader(self) -> Any:
            return Brightening()

    before = ImageData().images
    make_trainer([ImagePanels(pictures=3)], logger=board(tmp_path), limit_val_batches=0).fit(
        RegressionTask(), datamodule=Augmented()
    )
    assert [len(shown) for _, shown, _ in told] == [3, 3]
    for epoch, (title, shown, captions) in enumerate(told, 1):
        assert title.startswith(f"epoch {epoch}:") and "8 × 6 pixels" in title
        assert np.array_equal(np.stack(shown), before[:3] + epoch)
        assert captions == [["reading 0"], ["reading 1"], ["reading 2"]]


def test_the_scatter_has_the_numbers_of_the_validation(make_trainer: Any, tmp_path: Path, told: list[Any]) -> None:
    make_trainer([ImagePanels()], logger=board(tmp_path), max_epochs=1).fit(
        RegressionTask(targets=2, errors={3: 4.0}), datamodule=ImageData(targets=2)
    )
    fits = told[1][1]
    assert [fit.name for fit in fits] == ["reading", "reading1"]
    assert [fit.mean for fit in fits] == [5.5, 105.5]
    assert fits[1].true.tolist() == [100.0 + i for i in range(12)]
    assert (fits[0].predicted - fits[0].true).tolist() == [4.0 if i == 3 else 0.0 for i in range(12)]


def test_the_worst_are_shown_with_name_and_error(make_trainer: Any, tmp_path: Path, told: list[Any]) -> None:
    data = ImageData()
    make_trainer([ImagePanels(worst=2)], logger=board(tmp_path), max_epochs=1).fit(
        RegressionTask(errors={3: 4.0, 7: -20.0, 9: 0.5}), datamodule=data
    )
    title, shown, captions = told[-1]
    assert "epoch 1" in title and "true → predicted" in title
    assert captions == [["valid/picture_7.png", "7 → -13 (-20)"], ["valid/picture_3.png", "3 → 7 (+4)"]]
    assert np.array_equal(np.stack(shown), data.images[[7, 3]])
    assert data.datasets["valid"].asked == [7, 3], "no other picture is read"


def test_training_is_not_disturbed(make_trainer: Any, tmp_path: Path) -> None:
    def weights(callbacks: list[pl.Callback]) -> Any:
        task = RegressionTask()
        make_trainer(callbacks, logger=board(tmp_path)).fit(task, datamodule=ImageData())
        assert task.training
        return task.weight.detach()

    assert weights([ImagePanels()]).equal(weights([]))


@pytest.mark.parametrize(("channels", "dtype"), [(1, np.uint8), (3, np.int32), (1, np.int32)])
def test_grey_and_16_bit_pictures_are_drawn(make_trainer: Any, tmp_path: Path, channels: int, dtype: Any) -> None:
    data = ImageData(channels=channels, dtype=dtype)
    make_trainer([ImagePanels()], logger=board(tmp_path), max_epochs=1).fit(RegressionTask(), datamodule=data)
    assert set(steps(tmp_path)) == {BATCH, SCATTER, HISTOGRAM, WORST}


@pytest.mark.parametrize("precision", ["bf16-true", "64-true"])
def test_any_precision_is_drawn(make_trainer: Any, tmp_path: Path, precision: str, told: list[Any]) -> None:
    make_trainer([ImagePanels()], logger=board(tmp_path), max_epochs=1, limit_val_batches=0, precision=precision).fit(
        RegressionTask(), datamodule=ImageData()
    )
    assert told[0][2][2] == ["reading 2"]


def test_more_targets_than_there_is_room_for_are_told_of(
    make_trainer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="hotloop.callbacks.image_panels"):
        make_trainer([ImagePanels()], logger=board(tmp_path), max_epochs=1, limit_val_batches=0).fit(
            RegressionTask(targets=8), datamodule=ImageData(targets=8)
        )
    told = [r.getMessage() for r in caplog.records if r.name == "hotloop.callbacks.image_panels"]
    assert told == ["pictures of errors show the first 6 of 8 targets"]


def results(errors: list[list[float]]) -> Results:
    values = np.array(errors)
    return Results(np.arange(len(values)) + 10, values + 1.0, np.ones_like(values))


def test_errors_are_ranked_by_size_and_ties_by_number() -> None:
    assert worst_rows(results([[1.0], [-5.0], [3.0], [5.0]]), 3) == [1, 3, 2]
    assert worst_rows(results([[1.0]]), 9) == [0]
    alternating = [[1.0 + number % 2] for number in range(500)]
    assert worst_rows(results(alternating), 500) == [*range(1, 500, 2), *range(0, 500, 2)]


def test_targets_of_different_scale_count_alike() -> None:
    # Errors of the first target are a thousand times those of the second; the outlier is in the second.
    found = results([[1000.0, 0.1], [-1000.0, -0.1], [1000.0, 9.0], [-1000.0, 0.1]])
    assert worst_rows(found, 1) == [2]


def test_predictions_that_are_no_numbers_are_the_worst() -> None:
    assert worst_rows(results([[1.0], [np.nan], [3.0], [np.inf]]), 3) == [1, 3, 2]
    assert worst_rows(results([[np.nan], [np.nan]]), 1) == [0]


def test_perfect_predictions_have_a_worst_too() -> None:
    assert worst_rows(results([[0.0], [0.0]]), 1) == [0]


def test_several_targets_are_named_and_many_are_cut() -> None:
    found = results([[1.0, -0.5, 2.0, 3.0, 4.0]])
    assert error_texts(found, 0, ["a", "b", "c", "d", "e"]) == [
        "a 1 → 2 (+1)", "b 1 → 0.5 (-0.5)", "c 1 → 3 (+2)", "… and 2 more",
    ]  # fmt: skip


def test_the_largest_errors_can_be_printed() -> None:
    rows = plain_errors(results([[1.0], [-5.0]]), ["a"], lambda number: f"odd\n\udcff{number}.jpg", count=1)
    assert rows == [("odd ?11.jpg", "1 → -4 (-5)")]


def test_a_batch_smaller_than_the_sheet_is_shown_whole() -> None:
    assert draw_batch(ImageData().batches()[0], ["reading"], count=16, title="t").std() > 0


@pytest.mark.parametrize("options", [{"pictures": 0}, {"worst": 0}, {"every_n_validations": 0}])
def test_impossible_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ImagePanels(**options)  # type: ignore[arg-type]


def test_it_watches_runs_on_images_alone() -> None:
    assert ImagePanels.kind == "images"
