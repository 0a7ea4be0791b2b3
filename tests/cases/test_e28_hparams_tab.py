"""E28: the HPARAMS tab of a sweep is empty, or shows the placeholder −1."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel
from lightning.pytorch.loggers import TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import api_pb2, metadata

from hotloop.callbacks.hparams import HyperparameterSummary


class Model(BoringModel):
    def __init__(self, lr: float, fails: bool) -> None:
        super().__init__()
        self.lr, self.fails = lr, fails
        self.save_hyperparameters()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if self.fails:
            raise RuntimeError("diverged")
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val/loss", self.loss(self(batch)))

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self.log("test/loss", self.loss(self(batch)))

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.lr)


def run(folder: Path, lr: float, *, fails: bool = False) -> tuple[EventAccumulator, Trainer]:
    config = {"optimizer": {"lr": lr}, "trainer": {"precision": "32-true", "max_epochs": 1}, "note": None}
    trainer = Trainer(
        accelerator="cpu", max_epochs=1, limit_train_batches=3, limit_val_batches=2, limit_test_batches=2,
        enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False, log_every_n_steps=1,
        logger=TensorBoardLogger(folder, name="tensorboard", version="", default_hp_metric=False),
        callbacks=[HyperparameterSummary(config)],
    )  # fmt: skip
    model = Model(lr, fails)
    if fails:
        with pytest.raises(RuntimeError):
            trainer.fit(model)
    else:
        trainer.fit(model)
        trainer.test(model, verbose=False)
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return events, trainer


@pytest.mark.parametrize("lr", [0.1, 0.01])
def test_e28_each_job_shows_its_hyperparameters_and_its_results(tmp_path: Path, lr: float) -> None:
    events, trainer = run(tmp_path, lr)
    start = metadata.parse_session_start_info_plugin_data(
        events.summary_metadata[metadata.SESSION_START_INFO_TAG].plugin_data.content
    )
    assert start.hparams["optimizer.lr"].number_value == lr
    assert start.hparams["trainer.precision"].string_value == "32-true"
    experiment = metadata.parse_experiment_plugin_data(
        events.summary_metadata[metadata.EXPERIMENT_TAG].plugin_data.content
    )
    shown = {info.name.tag for info in experiment.metric_infos}
    assert shown == {"val/loss", "test/loss"}
    assert events.Scalars("test/loss")[-1].value == pytest.approx(float(trainer.callback_metrics["test/loss"]))


def test_e28_no_metric_is_a_placeholder(tmp_path: Path) -> None:
    events, _ = run(tmp_path, 0.1)
    for tag in events.Tags()["scalars"]:
        assert {event.value for event in events.Scalars(tag)} != {-1.0}, tag


def test_e28_the_resolved_config_is_in_the_run(tmp_path: Path) -> None:
    events, _ = run(tmp_path, 0.01)
    text = events.Tensors("config/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "lr: 0.01" in text


def test_e28_a_failed_job_is_marked(tmp_path: Path) -> None:
    events, _ = run(tmp_path, 0.1, fails=True)
    end = metadata.parse_session_end_info_plugin_data(
        events.summary_metadata[metadata.SESSION_END_INFO_TAG].plugin_data.content
    )
    assert end.status == api_pb2.STATUS_FAILURE
