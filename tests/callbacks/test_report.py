"""report.json and the scalars beside it."""

import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.loggers.logger import DummyLogger

from hotloop.callbacks.accounting import Stopwatch
from hotloop.callbacks.interruption import Interruption
from hotloop.callbacks.report import TrainingReport
from hotloop.callbacks.tables import epoch_table
from hotloop.errors import UserError
from tests.callbacks.image_toy import ImageData, RegressionTask


class Recorder(DummyLogger):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int, dict[str, float]]] = []

    def log_metrics(self, metrics: Any, step: int | None = None) -> None:
        self.rows.append((step or 0, dict(metrics)))

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        return None

    def column(self, tag: str) -> list[tuple[int, float]]:
        return [(step, row[tag]) for step, row in self.rows if tag in row]


def read(path: Path) -> dict[str, Any]:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def expected_tokens(data: Any) -> int:
    return sum(int((batch.target_length - 1).sum()) for batch in data.train_dataloader())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "report.json"


def test_report_has_the_agreed_keys(toy: Any, make_trainer: Any, path: Path) -> None:
    report = TrainingReport(str(path), seed=7, precision="32-true", table=False)

    class ToyTranslationTask(toy.Task):
        pass

    make_trainer([report, ModelCheckpoint(path.parent / "checkpoints", monitor="val/loss")]).fit(
        ToyTranslationTask(), datamodule=toy.Data()
    )
    content = read(path)
    assert set(content) == {
        "task", "command", "status", "error", "seed", "versions", "git", "device", "processes", "strategy",
        "precision", "optimizer", "fused", "parameters", "trainable_parameters", "slow_paths", "data", "resumed_from",
        "steps", "epochs", "metrics", "monitor", "best_checkpoint", "last_checkpoint",
    }  # fmt: skip
    assert (content["task"], content["command"], content["status"]) == ("toytranslation", "train", "finished")
    assert content["seed"] == 7
    assert content["precision"] == {"asked": "32-true", "used": "32-true"}
    assert content["parameters"] == sum(p.numel() for p in toy.Task().parameters())
    assert content["data"] == toy.Data().summary()
    assert (content["optimizer"], content["fused"], content["device"][:3] != "") == ("SGD", False, True)
    assert Path(content["best_checkpoint"]).is_file()
    assert content["monitor"]["name"] == "val/loss"
    assert content["monitor"]["best"] == pytest.approx(min(e["val_loss"] for e in content["epochs"]))
    assert content["versions"]["torch"] == torch.__version__


def test_figures_of_an_epoch_are_those_of_its_steps(toy: Any, make_trainer: Any, path: Path) -> None:
    task, data = toy.Task(), toy.Data(batches=6, size=4)
    make_trainer([TrainingReport(str(path), table=False)]).fit(task, datamodule=data)
    epochs = read(path)["epochs"]
    assert [e["epoch"] for e in epochs] == [0, 1]
    assert [e["steps"] for e in epochs] == [6, 6]
    assert [e["samples"] for e in epochs] == [24, 24]
    assert [e["tokens"] for e in epochs] == [expected_tokens(data)] * 2
    counts = [int((b.target_length - 1).sum()) for b in data.train_dataloader()]
    for number, epoch in enumerate(epochs):
        losses = task.losses[6 * number : 6 * number + 6]
        mean = sum(n * loss for n, loss in zip(counts, losses, strict=True)) / sum(counts)
        assert epoch["train_loss"] == pytest.approx(mean, rel=1e-5)
        assert epoch["learning_rate"] == pytest.approx(task.rates[6 * number + 5])
        assert epoch["tokens_per_s"] == pytest.approx(epoch["tokens"] / epoch["seconds"])
        assert epoch["peak_rss_mb"] > 10
    assert epochs[1]["val_loss"] == read(path)["metrics"]["val/loss"]


def test_steps_are_optimiser_steps(toy: Any, make_trainer: Any, path: Path) -> None:
    make_trainer([TrainingReport(str(path), table=False)], accumulate_grad_batches=4).fit(
        toy.Task(), datamodule=toy.Data(batches=6)
    )
    content = read(path)
    assert [e["steps"] for e in content["epochs"]] == [2, 2]
    assert content["steps"] == 4


class Hands:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def timed(toy: Any, hands: Hands) -> tuple[pl.LightningModule, pl.LightningDataModule, pl.Callback]:
    """Loader 3 s a batch, step 5 s, another callback 1 s, validation batch 100 s, by a clock moved by hand."""

    class SlowLoader(toy.Loader):
        def __iter__(self) -> Iterator[Any]:
            for batch in super().__iter__():
                hands.now += 3
                yield batch

    class SlowData(toy.Data):
        def train_dataloader(self) -> Any:
            return SlowLoader(self.batches, self.size)

    class SlowTask(toy.Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            hands.now += 5
            return super().training_step(batch, batch_idx)

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            hands.now += 100
            super().validation_step(batch, batch_idx)

    class SlowCallback(pl.Callback):
        def on_train_batch_start(self, *args: Any) -> None:
            hands.now += 1

        def on_train_batch_end(self, *args: Any) -> None:
            hands.now += 1

    return SlowTask(), SlowData(batches=4), SlowCallback()


@pytest.mark.parametrize("position", ["before", "behind"])
def test_time_is_split_into_waiting_training_and_validation(
    toy: Any, make_trainer: Any, path: Path, position: str
) -> None:
    hands = Hands()
    task, data, other = timed(toy, hands)
    report = TrainingReport(str(path), table=False)
    report.clock = Stopwatch(hands)
    callbacks = [other, report] if position == "before" else [report, other]
    make_trainer(callbacks, val_check_interval=2).fit(task, datamodule=data)
    for epoch in read(path)["epochs"]:
        assert epoch["data_wait_s"] == 4 * 3
        assert epoch["seconds"] == 4 * (3 + 5 + 2)
        assert epoch["validation_s"] == 2 * 2 * 100
        assert epoch["tokens_per_s"] == epoch["tokens"] / 40


def test_waiting_is_known_roughly_where_lightning_does_not_tell_of_fetching(
    toy: Any, make_trainer: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hands = Hands()
    task, data, other = timed(toy, hands)
    report = TrainingReport(str(path), table=False)
    report.clock = Stopwatch(hands)
    monkeypatch.setattr(report, "_time_fetching", lambda trainer: None)
    make_trainer([other, report]).fit(task, datamodule=data)
    # the callback in front is taken for waiting at the start of a step, not at its end
    assert read(path)["epochs"][0]["data_wait_s"] == 4 * (3 + 1)


def test_the_loop_is_left_as_it_was_found(toy: Any, make_trainer: Any, path: Path) -> None:
    trainer = make_trainer([TrainingReport(str(path), table=False)])
    before = set(vars(trainer.fit_loop.epoch_loop))
    trainer.fit(toy.Task(), datamodule=toy.Data())
    assert set(vars(trainer.fit_loop.epoch_loop)) == before


def test_time_of_writing_checkpoints_is_no_training_time(toy: Any, make_trainer: Any, path: Path) -> None:
    hands = Hands()

    class SlowDisk(pl.Callback):
        def on_save_checkpoint(self, *args: Any) -> None:
            hands.now += 50

    report = TrainingReport(str(path), table=False)
    report.clock = Stopwatch(hands)
    make_trainer(
        [report, SlowDisk(), ModelCheckpoint(path.parent, every_n_train_steps=3, save_top_k=-1)],
        limit_val_batches=0,
    ).fit(toy.Task(), datamodule=toy.Data(batches=6))
    epochs = read(path)["epochs"]
    assert [e["seconds"] for e in epochs] == [0, 0]
    assert [e["checkpoint_s"] for e in epochs] == [100, 100]


def test_sanity_check_counts_nowhere(toy: Any, make_trainer: Any, path: Path) -> None:
    hands = Hands()
    task, data, _ = timed(toy, hands)
    report = TrainingReport(str(path), table=False)
    report.clock = Stopwatch(hands)
    make_trainer([report], num_sanity_val_steps=2, max_epochs=1).fit(task, datamodule=data)
    (epoch,) = read(path)["epochs"]
    assert epoch["validation_s"] == 200


def test_epoch_without_validation_has_no_validation_loss(toy: Any, make_trainer: Any, path: Path) -> None:
    make_trainer([TrainingReport(str(path), table=False)], check_val_every_n_epoch=2, max_epochs=3).fit(
        toy.Task(), datamodule=toy.Data()
    )
    losses = [e["val_loss"] for e in read(path)["epochs"]]
    assert losses[0] is None
    assert losses[1] is not None
    assert losses[2] is None, "an old value is not repeated"


def test_a_task_that_reports_no_steps_still_gets_speed(toy: Any, make_trainer: Any, path: Path) -> None:
    recorder = Recorder()
    make_trainer([TrainingReport(str(path), table=False)], logger=recorder).fit(
        toy.Task(reports_steps=False), datamodule=toy.Data(batches=6, size=4)
    )
    epoch = read(path)["epochs"][0]
    assert (epoch["samples"], epoch["tokens"], epoch["tokens_per_s"]) == (24, None, None)
    assert epoch["train_loss"] is None
    assert epoch["samples_per_s"] == pytest.approx(24 / epoch["seconds"])
    assert not recorder.column("train/loss")
    assert recorder.column("train/samples_per_s")


def test_a_skipped_step_is_not_counted_again(toy: Any, make_trainer: Any, path: Path) -> None:
    class Skipping(toy.Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return None if batch_idx == 3 else super().training_step(batch, batch_idx)

    make_trainer([TrainingReport(str(path), table=False)]).fit(Skipping(), datamodule=toy.Data(batches=6, size=4))
    assert read(path)["epochs"][0]["samples"] == 20


def test_nan_becomes_null(toy: Any, make_trainer: Any, path: Path) -> None:
    class Exploding(toy.Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = super().training_step(batch, batch_idx)
            bad = torch.tensor(math.inf if batch_idx else math.nan)
            self.last_step = toy.StepResult(bad, 3, 4)
            return loss

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val/loss", torch.tensor(math.nan))

    make_trainer([TrainingReport(str(path), table=False)]).fit(Exploding(), datamodule=toy.Data())
    epoch = read(path)["epochs"][0]
    assert epoch["train_loss"] is None
    assert epoch["val_loss"] is None
    assert epoch["tokens"] == 18


def test_padding_share_is_that_of_the_batches(toy: Any, make_trainer: Any, path: Path) -> None:
    data = toy.Data(batches=6, size=4)
    make_trainer([TrainingReport(str(path), table=False)]).fit(toy.Task(), datamodule=data)
    cells = sum(b.source.numel() + b.target.numel() for b in data.train_dataloader())
    real = sum(int(b.source_length.sum() + b.target_length.sum()) for b in data.train_dataloader())
    assert read(path)["epochs"][0]["padding_share"] == pytest.approx(1 - real / cells)
    assert read(path)["epochs"][0]["padding_share"] > 0


def test_more_steps_than_are_held_as_tensors_are_all_counted(
    toy: Any, make_trainer: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotloop.callbacks.counting.HELD", 4)
    data = toy.Data(batches=11)
    report = TrainingReport(str(path), table=False)
    make_trainer([report], log_every_n_steps=0, max_epochs=1).fit(toy.Task(), datamodule=data)
    (epoch,) = read(path)["epochs"]
    assert epoch["tokens"] == expected_tokens(data)
    assert 0 < epoch["padding_share"] < 1
    assert epoch["train_loss"] is not None


# ---- scalars ------------------------------------------------------------------------------------------


def test_scalars_are_logged_at_every_nth_optimiser_step(toy: Any, make_trainer: Any, path: Path) -> None:
    recorder, task = Recorder(), toy.Task()
    make_trainer(
        [TrainingReport(str(path), table=False)], logger=recorder, log_every_n_steps=3, accumulate_grad_batches=2
    ).fit(task, datamodule=toy.Data(batches=12))
    assert [step for step, _ in recorder.column("train/loss")] == [3, 6, 9, 12]
    assert {tag for _, row in recorder.rows for tag in row} >= {
        "train/loss", "train/perplexity", "train/tokens_per_s", "train/samples_per_s", "train/data_wait_share",
        "lr", "data/padding_share", "memory/rss_mb",
    }  # fmt: skip


def test_interval_loss_is_the_mean_per_token_of_the_interval(toy: Any, make_trainer: Any, path: Path) -> None:
    recorder, task, data = Recorder(), toy.Task(), toy.Data(batches=6)
    make_trainer([TrainingReport(str(path), table=False)], logger=recorder, max_epochs=1).fit(task, datamodule=data)
    counts = [int((b.target_length - 1).sum()) for b in data.train_dataloader()]
    values = [value for _, value in recorder.column("train/loss")]
    for k, value in enumerate(values):
        part = slice(2 * k, 2 * k + 2)
        total = sum(n * loss for n, loss in zip(counts[part], task.losses[part], strict=True))
        assert value == pytest.approx(total / sum(counts[part]), rel=1e-5)
    assert [math.exp(v) for v in values] == pytest.approx([v for _, v in recorder.column("train/perplexity")])


def test_grad_norm_is_logged_where_the_task_has_one(toy: Any, make_trainer: Any, path: Path) -> None:
    class Normed(toy.Task):
        def on_before_optimizer_step(self, optimizer: Any) -> None:
            self.grad_norm = torch.tensor(2.0 + self.global_step)

    recorder = Recorder()
    make_trainer([TrainingReport(str(path), table=False)], logger=recorder, max_epochs=1).fit(
        Normed(), datamodule=toy.Data(batches=6)
    )
    assert recorder.column("train/grad_norm") == [(2, 3.0), (4, 5.0), (6, 7.0)]
    assert read(path)["epochs"][0]["grad_norm"] == 5.0


def test_a_csv_logger_takes_the_scalars(toy: Any, make_trainer: Any, path: Path, tmp_path: Path) -> None:
    board = CSVLogger(tmp_path, name="", version="csv")
    make_trainer([TrainingReport(str(path), table=False)], logger=[board]).fit(toy.Task(), datamodule=toy.Data())
    text = (tmp_path / "csv" / "metrics.csv").read_text()
    assert "train/tokens_per_s" in text.splitlines()[0]
    assert len(text.splitlines()) >= 1 + 6


# ---- how a run ends -----------------------------------------------------------------------------------


def test_a_failed_run_says_so(toy: Any, make_trainer: Any, path: Path) -> None:
    with pytest.raises(RuntimeError, match="dreams"):
        make_trainer([TrainingReport(str(path), table=False)]).fit(toy.Task(fail_at=8), datamodule=toy.Data(batches=6))
    content = read(path)
    assert content["status"] == "failed"
    assert content["error"] == "RuntimeError: the disk of dreams is full"
    assert [e["epoch"] for e in content["epochs"]] == [0]


@pytest.mark.parametrize("where", ["configure_optimizers", "validation_step", "setup"])
def test_a_run_that_fails_before_its_first_step_has_all_keys(
    toy: Any, make_trainer: Any, path: Path, where: str, tmp_path: Path
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("too early")

    task = toy.Task()
    setattr(task, where, fail)
    with pytest.raises(RuntimeError, match="too early"):
        make_trainer([TrainingReport(str(path), table=False)]).fit(task, datamodule=toy.Data())
    whole = tmp_path / "whole.json"
    make_trainer([TrainingReport(str(whole), table=False)]).fit(toy.Task(), datamodule=toy.Data())
    assert set(read(path)) == set(read(whole))
    assert (read(path)["status"], read(path)["epochs"]) == ("failed", [])


def test_a_task_that_optimises_nothing_has_no_learning_rate(toy: Any, make_trainer: Any, path: Path) -> None:
    class Idle(toy.Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self._losses(batch).mean()

        def configure_optimizers(self) -> None:
            return None

    make_trainer([TrainingReport(str(path), table=False)]).fit(Idle(), datamodule=toy.Data())
    assert [e["learning_rate"] for e in read(path)["epochs"]] == [None, None]


def test_a_learning_rate_kept_as_a_tensor_is_reported_as_a_number(toy: Any, make_trainer: Any, path: Path) -> None:
    class Tensors(toy.Task):
        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=torch.tensor(0.25), foreach=False)

    saver = ModelCheckpoint(path.parent, save_last=True)
    make_trainer([TrainingReport(str(path), table=False), saver], logger=Recorder()).fit(
        Tensors(), datamodule=toy.Data()
    )
    assert read(path)["epochs"][0]["learning_rate"] == 0.25


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_run_says_so(toy: Any, make_trainer: Any, path: Path, stop: Any) -> None:
    class Stopped(toy.Task):
        def on_train_epoch_end(self) -> None:
            if self.current_epoch == 1:
                raise stop

    with pytest.raises(SystemExit):
        make_trainer([TrainingReport(str(path), table=False)]).fit(Stopped(), datamodule=toy.Data())
    content = read(path)
    assert (content["status"], content["error"]) == ("interrupted", None)
    assert len(content["epochs"]) >= 1


def test_a_run_under_way_has_a_report_too(toy: Any, make_trainer: Any, path: Path) -> None:
    seen = []

    class Reader(pl.Callback):
        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.current_epoch:
                seen.append(read(path))

    make_trainer([TrainingReport(str(path), table=False), Reader()]).fit(toy.Task(), datamodule=toy.Data())
    assert [(c["status"], len(c["epochs"])) for c in seen] == [("running", 1)]


def test_testing_adds_metrics_and_keeps_the_epochs(toy: Any, make_trainer: Any, path: Path) -> None:
    report = TrainingReport(str(path), table=False)
    trainer = make_trainer([report, ModelCheckpoint(path.parent, monitor="val/loss", mode="max")], max_epochs=3)
    trainer.fit(toy.Task(), datamodule=toy.Data())
    trainer.test(toy.Task(), datamodule=toy.Data(), ckpt_path="best", verbose=False)
    content = read(path)
    assert len(content["epochs"]) == 3, "the best checkpoint is older than the report"
    assert {"val/loss", "test/loss"} <= set(content["metrics"])
    assert content["status"] == "finished"


def test_testing_alone_writes_a_report(toy: Any, make_trainer: Any, path: Path) -> None:
    report = TrainingReport(str(path), command="evaluate", table=False)
    make_trainer([report]).test(toy.Task(), datamodule=toy.Data(), verbose=False)
    content = read(path)
    assert (content["command"], content["status"], content["epochs"]) == ("evaluate", "finished", [])
    assert content["metrics"]["test/loss"] > 0
    assert content["parameters"] > 0


def test_a_failed_test_is_a_failed_run(toy: Any, make_trainer: Any, path: Path) -> None:
    class Untestable(toy.Task):
        def test_step(self, batch: Any, batch_idx: int) -> None:
            raise RuntimeError("no")

    trainer = make_trainer([TrainingReport(str(path), table=False)])
    trainer.fit(Untestable(), datamodule=toy.Data())
    with pytest.raises(RuntimeError):
        trainer.test(Untestable(), datamodule=toy.Data(), verbose=False)
    assert read(path)["status"] == "failed"


# ---- resuming -----------------------------------------------------------------------------------------


def without_times(epochs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = ("epoch", "steps", "samples", "tokens", "learning_rate", "padding_share")
    return [{key: epoch[key] for key in kept} for epoch in epochs]


@pytest.mark.parametrize("every", [3, 4, 6])
def test_a_resumed_run_reports_every_epoch_once_and_whole(toy: Any, make_trainer: Any, path: Path, every: int) -> None:
    whole = path.parent / "whole.json"
    make_trainer([TrainingReport(str(whole), table=False)], max_epochs=3).fit(toy.Task(), datamodule=toy.Data())

    saver = ModelCheckpoint(path.parent, every_n_train_steps=every, save_top_k=-1, filename="{step}")
    with pytest.raises(RuntimeError):
        make_trainer([TrainingReport(str(path), table=False), saver], max_epochs=3).fit(
            toy.Task(fail_at=11), datamodule=toy.Data(batches=6)
        )
    last = path.parent / f"step={10 // every * every}.ckpt"
    make_trainer([TrainingReport(str(path), table=False)], max_epochs=3).fit(
        toy.Task(), datamodule=toy.Data(batches=6), ckpt_path=last
    )
    content = read(path)
    assert without_times(content["epochs"]) == without_times(read(whole)["epochs"])
    assert content["status"] == "finished"
    assert content["resumed_from"] == str(last)


@pytest.mark.parametrize("monitor", ["val/loss", None])
def test_resuming_from_the_end_of_an_epoch_repeats_nothing(
    toy: Any, make_trainer: Any, path: Path, monitor: str | None
) -> None:
    saver = ModelCheckpoint(path.parent, monitor=monitor, save_last=True)
    make_trainer([TrainingReport(str(path), table=False), saver], max_epochs=2).fit(toy.Task(), datamodule=toy.Data())
    before = read(path)["epochs"]
    make_trainer([TrainingReport(str(path), table=False)], max_epochs=3).fit(
        toy.Task(), datamodule=toy.Data(), ckpt_path=path.parent / "last.ckpt"
    )
    after = read(path)["epochs"]
    assert without_times(after[:2]) == without_times(before)
    assert [e["epoch"] for e in after] == [0, 1, 2]
    assert [e["steps"] for e in after] == [6, 6, 6]
    assert [e["train_loss"] for e in after[:2]] == pytest.approx([e["train_loss"] for e in before])


def test_state_is_plain_and_read_by_the_safe_unpickler(toy: Any, make_trainer: Any, path: Path) -> None:
    saver = ModelCheckpoint(path.parent, save_last=True)
    make_trainer([TrainingReport(str(path), table=False), saver]).fit(toy.Task(), datamodule=toy.Data())
    content = torch.load(path.parent / "last.ckpt", weights_only=True)
    (state,) = (v for k, v in content["callbacks"].items() if "TrainingReport" in k)
    assert json.loads(json.dumps(state)) == state


# ---- processes ----------------------------------------------------------------------------------------


def test_two_processes_report_together(toy: Any, make_trainer: Any, path: Path) -> None:
    data = toy.Data(batches=4, size=4)
    make_trainer(
        [TrainingReport(str(path), table=False), Interruption(str(path.parent / "interrupted.ckpt"))],
        strategy="ddp_fork",
        devices=2,
        use_distributed_sampler=False,
        max_epochs=1,
    ).fit(toy.Task(), datamodule=data)
    content = read(path)
    (epoch,) = content["epochs"]
    assert content["processes"] == 2
    assert epoch["samples"] == 2 * 16
    assert epoch["tokens"] == 2 * expected_tokens(data)
    assert epoch["steps"] == 4
    assert epoch["tokens_per_s"] == pytest.approx(epoch["tokens"] / epoch["seconds"])
    assert list(path.parent.iterdir()) == [path]


# ---- a line an epoch ---------------------------------------------------------------------------------


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    """A log file on the root logger, as Hydra sets it up."""
    path = tmp_path / "train.log"
    handler = logging.FileHandler(path, encoding="utf-8")
    logging.getLogger().addHandler(handler)
    yield path
    logging.getLogger().removeHandler(handler)
    handler.close()


def epoch_lines(log: Path) -> list[str]:
    return [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("epoch ")]


def test_the_log_file_gets_one_line_an_epoch(
    toy: Any, make_trainer: Any, path: Path, log_file: Path, capsys: Any
) -> None:
    make_trainer([TrainingReport(str(path), table=False)], max_epochs=3).fit(toy.Task(), datamodule=toy.Data(batches=6))
    assert "epoch 1/3" not in "".join(capsys.readouterr()), "without a bar the screen shows no epochs"
    lines = epoch_lines(log_file)
    assert [line.split(" · ")[:2] for line in lines] == [
        ["epoch 1/3", "step 6"], ["epoch 2/3", "step 12"], ["epoch 3/3", "step 18"],
    ]  # fmt: skip
    for line, epoch in zip(lines, read(path)["epochs"], strict=True):
        assert f"data wait {100 * epoch['data_wait_s'] / epoch['seconds']:.0f} %" in line
        assert f"loss {epoch['train_loss']:.3f} · val/loss {epoch['val_loss']:.4g}" in line


def test_an_epoch_without_validation_shows_no_old_value(
    toy: Any, make_trainer: Any, path: Path, log_file: Path
) -> None:
    make_trainer([TrainingReport(str(path), table=False)], check_val_every_n_epoch=2, max_epochs=3).fit(
        toy.Task(), datamodule=toy.Data()
    )
    assert ["val/loss" in line for line in epoch_lines(log_file)] == [False, True, False]


def test_an_image_run_is_told_by_its_headline(make_trainer: Any, path: Path, log_file: Path) -> None:
    make_trainer([TrainingReport(str(path), table=False)], max_epochs=1).fit(
        RegressionTask(errors={0: 6.0}), datamodule=ImageData()
    )
    (line,) = epoch_lines(log_file)
    assert "samples/s" in line
    assert line.endswith("val/loss 0.5 · val/mae 0.5 · val/baseline_mae 0.5")
    assert read(path)["task"] == "regression"
    assert read(path)["epochs"][0]["metrics"]["val/r2"] == 0.5, "the report keeps them all"


def test_two_processes_tell_each_epoch_once(toy: Any, make_trainer: Any, path: Path, log_file: Path) -> None:
    make_trainer(
        [TrainingReport(str(path), table=False)], strategy="ddp_fork", devices=2, use_distributed_sampler=False,
    ).fit(toy.Task(), datamodule=toy.Data(batches=4))  # fmt: skip
    assert [line.split(" · ")[0] for line in epoch_lines(log_file)] == ["epoch 1/2", "epoch 2/2"]


# ---- small things -------------------------------------------------------------------------------------


def test_the_table_fits_a_small_terminal(toy: Any, make_trainer: Any, path: Path, capsys: Any) -> None:
    make_trainer([TrainingReport(str(path))]).fit(toy.Task(), datamodule=toy.Data())
    printed = capsys.readouterr().out
    assert "valid loss" in printed
    assert "…" not in printed
    assert all(len(line.rstrip()) <= 80 for line in printed.splitlines())
    rows = [line.split() for line in printed.splitlines() if line.strip()[:1].isdigit()]
    assert [row[0] for row in rows] == ["1", "2"], "counted from 1"


def test_the_table_of_many_epochs_shows_the_last(toy: Any, make_trainer: Any, path: Path) -> None:
    make_trainer([TrainingReport(str(path), table=False)], max_epochs=1).fit(toy.Task(), datamodule=toy.Data())
    (epoch,) = read(path)["epochs"]
    table = epoch_table([epoch | {"epoch": k} for k in range(50)])
    assert table.row_count == 20
    assert "of 50" in str(table.caption)


def test_a_report_that_cannot_be_written_is_one_line(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    report = TrainingReport(str(tmp_path / "file" / "report.json"), table=False)
    with pytest.raises(UserError, match=r"cannot write .*report\.json \(run_dir=…\): (Not a directory|File exists)"):
        make_trainer([report]).fit(toy.Task(), datamodule=toy.Data())


def test_a_report_that_cannot_be_written_does_not_hide_what_ended_the_run(
    toy: Any, make_trainer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    report = TrainingReport(str(tmp_path / "file" / "report.json"), table=False)
    with pytest.raises(RuntimeError, match="disk of dreams"):
        make_trainer([report]).fit(toy.Task(fail_at=2), datamodule=toy.Data())
    assert "cannot write" in caplog.text
