"""TensorBoard's HPARAMS tab, with the run's real results."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import yaml

from hotloop.callbacks.json_file import as_json
from hotloop.callbacks.tensorboard import escape_code, tensorboard_loggers

SUFFIX = ".hparams"  # of the event file that this callback owns and rewrites
Scalar = bool | int | float | str


def flat_scalars(config: Mapping[str, Any], *, skip: Sequence[str] = ()) -> dict[str, Scalar]:
    """A nested configuration as `{"optimizer.lr": 0.001, …}`.

    `model._target_: hotloop.models.seq2seq.Seq2Seq` becomes `model: Seq2Seq`, a list one string; None is left
    out (TensorBoard shows an empty cell).

    Args:
        config: plain nested dict.
        skip: top-level keys to leave out.
    """
    flat: dict[str, Scalar] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                if key == "_target_" and prefix:
                    flat[prefix] = str(item).rpartition(".")[2]
                else:
                    walk(f"{prefix}.{key}" if prefix else str(key), item)
        elif isinstance(value, (bool, int, float, str)):
            flat[prefix] = value
        elif value is not None:
            flat[prefix] = str(value)

    walk("", {key: value for key, value in config.items() if key not in skip})
    return flat


class HyperparameterSummary(pl.Callback):
    """Writes hyper-parameters, metrics and status for TensorBoard's HPARAMS tab, and the config as text.

    The metrics are the `val/…` and `test/…` values that the run really reached, so no placeholder is ever
    shown. TensorBoard keeps the first summary of its kind that it finds in a run's folder; therefore all of
    ours live in one small event file, which is replaced when more is known: at the start (a killed run is
    listed, status unknown), after training, after the test, or when the run fails.

    Give the TensorBoardLogger `default_hp_metric=False`. Without a TensorBoardLogger nothing is done.

    Args:
        config: the resolved configuration, plain dict.
        first: names of the columns to show first, if the config has them; TensorBoard hides all but a few.
        skip: top-level keys that are no hyper-parameters.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        first: Sequence[str] = ("optimizer.lr", "data.batch_size", "model", "trainer.precision", "seed"),
        skip: Sequence[str] = ("callbacks", "logger", "hydra", "run_dir", "allow_targets"),
    ) -> None:
        self.config = config
        self.first = first
        self.hyperparameters = flat_scalars(config, skip=skip)
        self.metrics: list[str] = []
        self._started = time.time()

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit":
            self.metrics, self._started = [], time.time()

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        text = yaml.safe_dump(as_json(self.config), allow_unicode=True, sort_keys=False)
        for board in tensorboard_loggers(trainer):
            board.experiment.add_text("config", escape_code(text), 0)
        self._write(trainer, status=None)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._collect(trainer)
        self._write(trainer, status="STATUS_SUCCESS")

    def on_test_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._collect(trainer)
        self._write(trainer, status="STATUS_SUCCESS")

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._collect(trainer)
        self._write(trainer, status="STATUS_FAILURE")
        kind = "interrupted" if isinstance(exception, (KeyboardInterrupt, SystemExit)) else "failed"
        told = f"{kind}: {type(exception).__name__}: {exception}"
        for board in tensorboard_loggers(trainer):
            board.experiment.add_text("status", escape_code(told), trainer.global_step)

    def _collect(self, trainer: pl.Trainer) -> None:
        known = {name for name in trainer.callback_metrics if name.startswith(("val/", "test/"))}
        self.metrics = sorted(known.union(self.metrics))

    def _write(self, trainer: pl.Trainer, *, status: str | None) -> None:
        for board in tensorboard_loggers(trainer):
            rewrite(
                Path(board.log_dir),
                hyperparameters=self.hyperparameters,
                first=self.first,
                metrics=self.metrics if status == "STATUS_SUCCESS" else None,
                status=status,
                started=self._started,
            )


def rewrite(
    folder: Path,
    *,
    hyperparameters: Mapping[str, Scalar],
    first: Sequence[str] = (),
    metrics: Sequence[str] | None,
    status: str | None,
    started: float,
) -> None:
    """Replace the HPARAMS event file in `folder`.

    Args:
        folder: where the run's other event files are; the values of `metrics` are read from their scalars.
        hyperparameters: flat.
        first: names to show first.
        metrics: scalar tags to show as columns; None declares no columns. TensorBoard takes the columns of
            all runs from the first run that declares any, so only a run that has its results declares them.
        status: STATUS_SUCCESS, STATUS_FAILURE or None while running.
        started: seconds since 1970.
    """
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
    from torch.utils.tensorboard import FileWriter

    old = list(folder.glob(f"events.out.tfevents.*{SUFFIX}"))
    start = plugin_data_pb2.SessionStartInfo(start_time_secs=started)
    infos = []
    for name, value in hyperparameters.items():
        if isinstance(value, bool):
            start.hparams[name].bool_value = value
            kind = api_pb2.DATA_TYPE_BOOL
        elif isinstance(value, (int, float)):
            start.hparams[name].number_value = value
            kind = api_pb2.DATA_TYPE_FLOAT64
        else:
            start.hparams[name].string_value = value
            kind = api_pb2.DATA_TYPE_STRING
        # TensorBoard puts in front what differs between runs; of other runs nothing is known here.
        infos.append(api_pb2.HParamInfo(name=name, type=kind, differs=name in first))
    parts = {metadata.SESSION_START_INFO_TAG: plugin_data_pb2.HParamsPluginData(session_start_info=start)}
    if metrics is not None:
        columns = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metrics]
        parts[metadata.EXPERIMENT_TAG] = plugin_data_pb2.HParamsPluginData(
            experiment=api_pb2.Experiment(hparam_infos=infos, metric_infos=columns, time_created_secs=started)
        )
    if status is not None:
        parts[metadata.SESSION_END_INFO_TAG] = plugin_data_pb2.HParamsPluginData(
            session_end_info=plugin_data_pb2.SessionEndInfo(
                status=api_pb2.Status.Value(status), end_time_secs=time.time()
            )
        )
    writer = FileWriter(str(folder), filename_suffix=SUFFIX)
    for tag, data in parts.items():
        writer.add_summary(_summary(tag, data))
    writer.close()
    for path in old:
        path.unlink(missing_ok=True)


def _summary(tag: str, data: Any) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import metadata

    data.version = metadata.PLUGIN_DATA_VERSION
    about = metadata.create_summary_metadata(data)
    return Summary(value=[Summary.Value(tag=tag, metadata=about, tensor=metadata.NULL_TENSOR)])
