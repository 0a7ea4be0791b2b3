"""Ctrl-C and SIGTERM leave a checkpoint that continues exactly."""

import json
import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch

from hotloop.callbacks.interruption import Interrupted, Interruption
from hotloop.callbacks.random_state import SeedEveryStep
from hotloop.callbacks.report import TrainingReport
from hotloop.checks import finished_epochs


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Whatever a test does to the signal handlers is undone."""
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def signalled(toy: Any, at: int, *, number: int = signal.SIGINT, where: str = "step", times: int = 1) -> Any:
    """A task that gets a signal in its `at`-th step, or in the validation after it."""

    class Signalled(toy.Task):
        steps = 0

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            type(self).steps += 1
            loss = super().training_step(batch, batch_idx)
            if where == "step" and self.steps == at:
                for _ in range(times):
                    signal.raise_signal(number)
            return loss

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            if where == "validation" and self.steps == at and batch_idx == 0:
                signal.raise_signal(number)
            super().validation_step(batch, batch_idx)

    return Signalled()


def weights(task: pl.LightningModule) -> torch.Tensor:
    return torch.nn.utils.parameters_to_vector(task.parameters()).detach()


def callbacks(folder: Path, name: str) -> list[pl.Callback]:
    return [
        SeedEveryStep(seed=5),
        TrainingReport(str(folder / f"{name}.json"), table=False),
        Interruption(str(folder / "checkpoints" / "interrupted.ckpt")),
    ]


def start(toy: Any, task: pl.LightningModule) -> pl.LightningModule:
    torch.manual_seed(0)
    task.model = type(task.model)()
    return task


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize(
    ("at", "where"),
    [(2, "step"), (3, "step"), (6, "step"), (6, "validation"), (12, "validation"), (17, "step"), (18, "step")],
)
def test_a_stopped_and_resumed_run_equals_one_that_went_through(
    toy: Any, make_trainer: Any, tmp_path: Path, at: int, where: str, accumulate: int
) -> None:
    options = {"max_epochs": 3, "accumulate_grad_batches": accumulate}
    whole = start(toy, toy.Task())
    make_trainer(callbacks(tmp_path, "whole"), **options).fit(whole, datamodule=toy.Data(batches=6))

    with pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "first"), **options).fit(
            start(toy, signalled(toy, at, where=where)), datamodule=toy.Data(batches=6)
        )
    torch.manual_seed(99)  # whatever the new process's generators hold
    resumed = toy.Task()
    make_trainer(callbacks(tmp_path, "second"), **options).fit(
        resumed, datamodule=toy.Data(batches=6), ckpt_path=tmp_path / "checkpoints" / "interrupted.ckpt"
    )
    assert torch.equal(weights(resumed), weights(whole))
    whole_report, resumed_report = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("whole", "second"))
    for key in ("epoch", "steps", "samples", "tokens", "train_loss", "val_loss", "learning_rate"):
        expected = [epoch[key] for epoch in whole_report["epochs"]]
        assert [epoch[key] for epoch in resumed_report["epochs"]] == pytest.approx(expected), key


@pytest.mark.parametrize("options", [{"max_steps": 18, "max_epochs": -1}, {"limit_train_batches": 4, "max_epochs": 3}])
def test_a_run_stopped_between_two_epochs_equals_one_that_went_through(
    toy: Any, make_trainer: Any, tmp_path: Path, options: dict[str, int]
) -> None:
    whole = start(toy, toy.Task())
    make_trainer(callbacks(tmp_path, "whole"), **options).fit(whole, datamodule=toy.Data(batches=6))
    at = options.get("limit_train_batches", 6)
    with pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "first"), **options).fit(
            start(toy, signalled(toy, at, where="validation")), datamodule=toy.Data(batches=6)
        )
    resumed = toy.Task()
    trainer = make_trainer(callbacks(tmp_path, "second"), **options)
    trainer.fit(resumed, datamodule=toy.Data(batches=6), ckpt_path=tmp_path / "checkpoints" / "interrupted.ckpt")
    assert torch.equal(weights(resumed), weights(whole))
    assert trainer.global_step == 3 * at


def test_the_validation_under_way_is_finished_and_no_step_of_the_next_epoch_begun(
    toy: Any, make_trainer: Any, tmp_path: Path, capfd: Any
) -> None:
    seen = 0

    class Counted(type(signalled(toy, 6, where="validation"))):  # type: ignore[misc]
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            nonlocal seen
            seen += not self.trainer.sanity_checking
            super().validation_step(batch, batch_idx)

    best = pl.callbacks.ModelCheckpoint(tmp_path / "best", monitor="val/loss")
    with pytest.raises(Interrupted):
        make_trainer([best, *callbacks(tmp_path, "report")]).fit(Counted(), datamodule=toy.Data(batches=6))
    saved = torch.load(tmp_path / "checkpoints" / "interrupted.ckpt", weights_only=True)
    assert (saved["global_step"], seen) == (6, 2)
    assert Path(best.best_model_path).is_file(), "the epoch's own checkpoint comes first"
    kept = [state for name, state in saved["callbacks"].items() if name.startswith("ModelCheckpoint")]
    assert [state["best_model_path"] for state in kept] == [best.best_model_path]
    assert "stopping after this validation, with a checkpoint" in capfd.readouterr().err


def test_a_step_follows_a_validation_within_an_epoch(toy: Any, make_trainer: Any, tmp_path: Path, capfd: Any) -> None:
    with pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "report"), val_check_interval=3).fit(
            signalled(toy, 3, where="validation"), datamodule=toy.Data(batches=6)
        )
    assert torch.load(tmp_path / "checkpoints" / "interrupted.ckpt", weights_only=True)["global_step"] == 4
    assert "stopping after this validation and one more step" in capfd.readouterr().err


def test_a_signal_before_a_due_validation_is_told_of_it(
    toy: Any, make_trainer: Any, tmp_path: Path, capfd: Any
) -> None:
    with pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "report")).fit(signalled(toy, 6), datamodule=toy.Data(batches=6))
    assert torch.load(tmp_path / "checkpoints" / "interrupted.ckpt", weights_only=True)["global_step"] == 6
    assert "a validation is due first: stopping after this validation" in capfd.readouterr().err


@pytest.mark.parametrize(("at", "complete"), [(6, False), (12, True)])
def test_only_a_stop_behind_the_last_epoch_is_the_end_of_the_training(
    toy: Any, make_trainer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, at: int, complete: bool
) -> None:
    watchers = callbacks(tmp_path, "report")
    with caplog.at_level(logging.WARNING), pytest.raises(Interrupted):
        make_trainer(watchers).fit(signalled(toy, at, where="validation"), datamodule=toy.Data(batches=6))
    assert watchers[-1].complete is complete  # type: ignore[attr-defined]
    assert ("the last of this training" in caplog.text) is complete
    assert ("continue with the checkpoint" in caplog.text) is not complete


@pytest.mark.parametrize(
    ("batches", "at", "where", "finished"),
    [
        (6, 12, "validation", 2),
        (6, 12, "step", 2),
        (1, 2, "validation", 2),
        (6, 6, "validation", None),
        (6, 8, "step", None),
    ],
)
def test_the_epochs_a_file_has_finished_are_counted_right(
    toy: Any, make_trainer: Any, tmp_path: Path, batches: int, at: int, where: str, finished: int | None
) -> None:
    with pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "report")).fit(
            signalled(toy, at, where=where), datamodule=toy.Data(batches=batches)
        )
    saved = torch.load(tmp_path / "checkpoints" / "interrupted.ckpt", weights_only=True)
    assert finished_epochs(saved) == finished


def test_the_step_under_way_is_finished(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    task = signalled(toy, 3)
    with pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "report")).fit(task, datamodule=toy.Data(batches=6))
    saved = torch.load(tmp_path / "checkpoints" / "interrupted.ckpt", weights_only=True)
    assert saved["global_step"] == 3
    assert task.steps == 3


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_exit_code_tells_the_signal(toy: Any, make_trainer: Any, tmp_path: Path, number: int, code: int) -> None:
    with pytest.raises(SystemExit) as stopped:
        make_trainer(callbacks(tmp_path, "report")).fit(signalled(toy, 2, number=number), datamodule=toy.Data())
    assert stopped.value.code == code
    assert (tmp_path / "checkpoints" / "interrupted.ckpt").is_file()


def test_the_message_names_the_checkpoint(
    toy: Any, make_trainer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "report")).fit(signalled(toy, 2), datamodule=toy.Data())
    told = [r.getMessage() for r in caplog.records if r.name == "hotloop.callbacks.interruption"]
    assert len(told) == 1
    assert str(tmp_path / "checkpoints" / "interrupted.ckpt") in told[0]
    assert "once more stops at once" in capfd.readouterr().err


def test_the_report_says_interrupted_and_names_the_checkpoint(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "report")).fit(signalled(toy, 8), datamodule=toy.Data(batches=6))
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["status"] == "interrupted"
    assert report["last_checkpoint"] == str(tmp_path / "checkpoints" / "interrupted.ckpt")
    assert [e["epoch"] for e in report["epochs"]] == [0]


def test_the_second_signal_stops_at_once(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    task = signalled(toy, 3, times=2)
    with pytest.raises(SystemExit) as stopped:
        make_trainer(callbacks(tmp_path, "report")).fit(task, datamodule=toy.Data())
    assert stopped.value.code == 130
    assert not (tmp_path / "checkpoints").exists(), "a step half done is not saved"
    assert json.loads((tmp_path / "report.json").read_text())["status"] == "interrupted"


def test_a_signal_in_the_last_step_still_stops_the_run(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "report")).fit(signalled(toy, 12), datamodule=toy.Data(batches=6))
    saved = torch.load(tmp_path / "checkpoints" / "interrupted.ckpt", weights_only=True)
    assert saved["global_step"] == 12


def test_epochs_of_one_batch_can_be_stopped(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    task = signalled(toy, 3)
    with pytest.raises(Interrupted):
        make_trainer(callbacks(tmp_path, "report"), max_epochs=50).fit(task, datamodule=toy.Data(batches=1))
    assert task.steps == 3


@pytest.mark.parametrize("ending", ["finished", "failed", "interrupted"])
def test_the_handlers_are_put_back(toy: Any, make_trainer: Any, tmp_path: Path, ending: str) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    task = {
        "finished": toy.Task(),
        "failed": toy.Task(fail_at=3),
        "interrupted": signalled(toy, 3),
    }[ending]
    try:
        make_trainer(callbacks(tmp_path, "report")).fit(task, datamodule=toy.Data())
    except (RuntimeError, SystemExit):
        assert ending != "finished"
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_run_without_a_signal_saves_nothing(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    make_trainer(callbacks(tmp_path, "report")).fit(toy.Task(), datamodule=toy.Data())
    assert not (tmp_path / "checkpoints").exists()
    assert json.loads((tmp_path / "report.json").read_text())["last_checkpoint"] is None


def test_the_next_job_of_a_sweep_is_not_stopped(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    watchers = callbacks(tmp_path, "report")
    with pytest.raises(Interrupted):
        make_trainer(watchers).fit(signalled(toy, 3), datamodule=toy.Data())
    make_trainer(watchers).fit(toy.Task(), datamodule=toy.Data())
    assert json.loads((tmp_path / "report.json").read_text())["status"] == "finished"


def test_two_processes_stop_at_the_same_step(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    class OneIsSignalled(toy.Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if self.global_rank == 1 and batch_idx == 3:
                signal.raise_signal(signal.SIGINT)
            return super().training_step(batch, batch_idx)

    with pytest.raises((SystemExit, Exception)):
        make_trainer(callbacks(tmp_path, "report"), strategy="ddp_fork", devices=2, use_distributed_sampler=False).fit(
            OneIsSignalled(), datamodule=toy.Data(batches=30)
        )
    saved = torch.load(tmp_path / "checkpoints" / "interrupted.ckpt", weights_only=True)
    assert saved["global_step"] == 21


def test_a_worker_of_the_loader_does_not_mind_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    callback = Interruption("unused.ckpt")
    monkeypatch.setattr("hotloop.callbacks.interruption.os.getpid", lambda: callback._process + 1)
    for _ in range(3):
        callback._handle(signal.SIGINT, None)
    assert callback._signal is None
