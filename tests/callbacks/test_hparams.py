"""What TensorBoard's HPARAMS tab reads."""

from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import api_pb2, metadata

from hotloop.callbacks.hparams import HyperparameterSummary, flat_scalars, rewrite
from tests.callbacks.image_toy import ImageData, RegressionTask

CONFIG = {
    "seed": 3,
    "optimizer": {"lr": 0.01, "betas": [0.9, 0.98], "fused": True},
    "trainer": {"precision": "32-true", "gradient_clip_val": None},
    "model": {"_target_": "hotloop.models.seq2seq.Seq2Seq", "hidden": 8},
    "callbacks": {"report": {"path": "x"}},
}


def board(folder: Path) -> TensorBoardLogger:
    return TensorBoardLogger(folder, name="tensorboard", version="", default_hp_metric=False)


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return events


def content(events: EventAccumulator, tag: str) -> Any:
    data = events.summary_metadata[tag].plugin_data.content
    return {
        metadata.SESSION_START_INFO_TAG: metadata.parse_session_start_info_plugin_data,
        metadata.SESSION_END_INFO_TAG: metadata.parse_session_end_info_plugin_data,
        metadata.EXPERIMENT_TAG: metadata.parse_experiment_plugin_data,
    }[tag](data)


def status(events: EventAccumulator) -> str:
    return api_pb2.Status.Name(content(events, metadata.SESSION_END_INFO_TAG).status)


def columns(events: EventAccumulator) -> list[str]:
    return [info.name.tag for info in content(events, metadata.EXPERIMENT_TAG).metric_infos]


def test_a_nested_config_becomes_flat_scalars() -> None:
    assert flat_scalars(CONFIG, skip=("callbacks",)) == {
        "seed": 3,
        "optimizer.lr": 0.01,
        "optimizer.betas": "[0.9, 0.98]",
        "optimizer.fused": True,
        "trainer.precision": "32-true",
        "model": "Seq2Seq",
        "model.hidden": 8,
    }


def test_values_keep_their_types(tmp_path: Path) -> None:
    (tmp_path / "tensorboard").mkdir()
    rewrite(
        tmp_path / "tensorboard",
        hyperparameters={"a": True, "b": 2, "c": 0.5, "d": "relu"},
        metrics=None,
        status=None,
        started=1.0,
    )
    values = content(read(tmp_path), metadata.SESSION_START_INFO_TAG).hparams
    assert {name: values[name].WhichOneof("kind") for name in values} == {
        "a": "bool_value", "b": "number_value", "c": "number_value", "d": "string_value",
    }  # fmt: skip


def test_a_finished_run_has_its_hyperparameters_metrics_and_status(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    trainer = make_trainer([HyperparameterSummary(CONFIG)], logger=board(tmp_path))
    trainer.fit(toy.Task(), datamodule=toy.Data())
    trainer.test(trainer.model, datamodule=toy.Data(), verbose=False)
    events = read(tmp_path)
    start = content(events, metadata.SESSION_START_INFO_TAG)
    assert start.hparams["optimizer.lr"].number_value == 0.01
    assert start.hparams["trainer.precision"].string_value == "32-true"
    assert not any(name.startswith("callbacks") for name in start.hparams)
    assert columns(events) == ["test/loss", "val/loss"]
    assert status(events) == "STATUS_SUCCESS"


def test_the_columns_asked_for_come_first(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    summary = HyperparameterSummary(CONFIG, first=["seed", "optimizer.lr", "not.there"])
    make_trainer([summary], logger=board(tmp_path)).fit(toy.Task(), datamodule=toy.Data())
    infos = content(read(tmp_path), metadata.EXPERIMENT_TAG).hparam_infos
    assert {info.name for info in infos if info.differs} == {"seed", "optimizer.lr"}


def test_every_metric_column_has_a_real_value(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    trainer = make_trainer([HyperparameterSummary(CONFIG)], logger=board(tmp_path))
    trainer.fit(toy.Task(), datamodule=toy.Data())
    last = float(trainer.callback_metrics["val/loss"])
    trainer.test(trainer.model, datamodule=toy.Data(), verbose=False)
    events = read(tmp_path)
    assert events.Scalars("val/loss")[-1].value == pytest.approx(last)
    for tag in columns(events):
        assert events.Scalars(tag)[-1].value > 0
    assert "hp_metric" not in events.Tags()["scalars"]


def test_a_run_on_images_shows_all_its_metrics_under_their_names(make_trainer: Any, tmp_path: Path) -> None:
    class Named(RegressionTask):
        def _report(self, prefix: str) -> None:
            super()._report(prefix)
            self.log(f"{prefix}/mae/Winkel (°), links < 0", 2.0)

    trainer = make_trainer([HyperparameterSummary(CONFIG)], logger=board(tmp_path))
    trainer.fit(Named(), datamodule=ImageData())
    trainer.test(trainer.model, datamodule=ImageData(), verbose=False)
    events = read(tmp_path)
    names = ("baseline_mae", "loss", "mae", "mae/Winkel (°), links < 0", "r2")
    assert columns(events) == [f"{prefix}/{name}" for prefix in ("test", "val") for name in names]
    assert set(columns(events)) <= set(events.Tags()["scalars"]), "an unknown name would be an empty column"


def test_a_run_without_a_test_shows_its_validation(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([HyperparameterSummary(CONFIG)], logger=board(tmp_path)).fit(toy.Task(), datamodule=toy.Data())
    assert columns(read(tmp_path)) == ["val/loss"]
    assert status(read(tmp_path)) == "STATUS_SUCCESS"


@pytest.mark.parametrize(("error", "told"), [(RuntimeError("no room"), "failed: RuntimeError: no room"),
                                             (SystemExit(130), "interrupted: SystemExit: 130")])  # fmt: skip
def test_a_run_that_did_not_finish_is_marked(
    toy: Any, make_trainer: Any, tmp_path: Path, error: BaseException, told: str
) -> None:
    class Broken(toy.Task):
        def on_train_epoch_end(self) -> None:
            raise error

    with pytest.raises(type(error)):
        make_trainer([HyperparameterSummary(CONFIG)], logger=board(tmp_path)).fit(Broken(), datamodule=toy.Data())
    events = read(tmp_path)
    assert status(events) == "STATUS_FAILURE"
    assert metadata.EXPERIMENT_TAG not in events.summary_metadata, "it would set the columns of the others"
    assert told in events.Tensors("status/text_summary")[0].tensor_proto.string_val[0].decode()


def test_a_test_that_fails_marks_the_run(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    class Untestable(toy.Task):
        def test_step(self, batch: Any, batch_idx: int) -> None:
            raise RuntimeError("no")

    trainer = make_trainer([HyperparameterSummary(CONFIG)], logger=board(tmp_path))
    trainer.fit(Untestable(), datamodule=toy.Data())
    with pytest.raises(RuntimeError):
        trainer.test(trainer.model, datamodule=toy.Data(), verbose=False)
    assert status(read(tmp_path)) == "STATUS_FAILURE"


def test_a_run_that_was_killed_is_listed_without_a_status(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    seen = []

    class Looking(toy.Task):
        def on_train_epoch_start(self) -> None:
            seen.append(set(read(tmp_path).summary_metadata))

    make_trainer([HyperparameterSummary(CONFIG)], logger=board(tmp_path)).fit(Looking(), datamodule=toy.Data())
    assert metadata.SESSION_START_INFO_TAG in seen[0]
    assert metadata.SESSION_END_INFO_TAG not in seen[0]


def test_the_config_is_in_the_run_as_text(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([HyperparameterSummary(CONFIG)], logger=board(tmp_path)).fit(toy.Task(), datamodule=toy.Data())
    text = read(tmp_path).Tensors("config/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "    optimizer:" in text.splitlines()
    assert "      lr: 0.01" in text.splitlines()


def test_there_is_one_event_file_of_ours_whatever_happened(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    trainer = make_trainer([HyperparameterSummary(CONFIG)], logger=board(tmp_path))
    trainer.fit(toy.Task(), datamodule=toy.Data())
    trainer.test(trainer.model, datamodule=toy.Data(), verbose=False)
    assert len(list((tmp_path / "tensorboard").glob("*.hparams"))) == 1


def test_several_loggers_get_along(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    loggers = [CSVLogger(tmp_path, name="csv", version=""), board(tmp_path), board(tmp_path / "second")]
    make_trainer([HyperparameterSummary(CONFIG)], logger=loggers).fit(toy.Task(), datamodule=toy.Data())
    assert status(read(tmp_path)) == status(read(tmp_path / "second")) == "STATUS_SUCCESS"
    assert (tmp_path / "csv" / "metrics.csv").is_file()


def test_without_tensorboard_nothing_is_written(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path, name="csv", version="")
    make_trainer([HyperparameterSummary(CONFIG)], logger=logger).fit(toy.Task(), datamodule=toy.Data())
    assert not list(tmp_path.rglob("events.out*"))


def test_a_second_job_starts_afresh(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    summary = HyperparameterSummary(CONFIG)
    trainer = make_trainer([summary], logger=board(tmp_path / "one"))
    trainer.fit(toy.Task(), datamodule=toy.Data())
    trainer.test(trainer.model, datamodule=toy.Data(), verbose=False)
    make_trainer([summary], logger=board(tmp_path / "two")).fit(toy.Task(), datamodule=toy.Data())
    assert columns(read(tmp_path / "two")) == ["val/loss"]
