import logging
import shlex
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hotloop import announce
from tests.callbacks.image_toy import ImageData, RegressionTask, Results


@pytest.mark.parametrize(
    "override", ["ckpt_path=a b/c.ckpt", "x='y'", 'x="y"', "x=$HOME", "x=[1,2]", "x=a;b", "plain=1"]
)
def test_a_printed_command_comes_back_from_the_shell_as_it_was(override):
    assert shlex.split(announce.command("train.py", override))[1:] == ["train.py", override]


def test_commands_name_the_python_that_runs_unless_it_is_activated(monkeypatch, tmp_path):
    monkeypatch.setattr(announce.sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setattr(announce.sys, "base_prefix", "/usr")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert announce.command("train.py") == ".venv/bin/python train.py"
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / ".venv"))
    assert announce.command("train.py") == "python train.py"


def test_resuming_keeps_the_overrides_and_the_seed_that_was_drawn():
    words = shlex.split(
        announce.resume_command(
            {"seed": 7},
            ["model.hidden=3", "ckpt_path=old", "seed=null", "trainer.max_epochs=2"],
            "new.ckpt",
            max_epochs=4,
        )
    )
    assert words[2:] == ["model.hidden=3", "trainer.max_epochs=4", "seed=7", "ckpt_path=new.ckpt"]


def test_the_precision_that_runs_is_told(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr(announce, "cpu_lacks_bfloat16", lambda: True)
    assert announce.precision_note("32-true", "32-true", cpu) == "32-true"
    note = announce.precision_note("16-mixed", "bf16-mixed", cpu)
    assert note.startswith("bf16-mixed (16-mixed was asked for") and "precision=32-true is faster here" in note
    monkeypatch.setattr(announce, "cpu_lacks_bfloat16", lambda: False)
    assert "faster here" not in announce.precision_note("bf16-mixed", "bf16-mixed", cpu)
    assert announce.precision_note("16-mixed", "16-mixed", torch.device("cuda")) == "16-mixed"


def test_a_table_lines_up():
    assert announce.table([("a", "1"), ("long", "2")]) == "  a     1\n  long  2"


def ended(tmp_path, **metrics):
    """A trainer after a run, and its settings."""
    saver = SimpleNamespace(monitor="val/loss", best_model_path="runs/a b/best.ckpt", last_model_path="")
    trainer = SimpleNamespace(
        is_global_zero=True,
        callback_metrics={name.replace("_", "/", 1): torch.tensor(value) for name, value in metrics.items()},
        checkpoint_callbacks=[saver],
        callbacks=[saver],
        current_epoch=2,
    )
    settings = {
        "run_dir": str(tmp_path), "model": {"_target_": "hotloop.models.inception.InceptionRegressor"},
        "trainer": {"max_epochs": 2}, "seed": 1,
    }  # fmt: skip
    return settings, trainer


def read_worst():
    task = RegressionTask()
    task.results = Results(np.arange(12), np.arange(12.0)[:, None] * 2, np.arange(12.0)[:, None])
    return task


def finish(caplog, settings, trainer, task, **options):
    with caplog.at_level(logging.INFO, logger="hotloop.announce"):
        announce.finish(settings, trainer=trainer, task=task, data=ImageData(), overrides=[], **options)
    return {message.partition("\n")[0]: message.splitlines()[1:] for message in caplog.messages}


def test_a_run_on_images_ends_with_its_largest_errors(caplog, tmp_path):
    told = finish(caplog, *ended(tmp_path, test_mae=2.5, test_loss=0.25), read_worst(), samples=True)
    assert [line.split() for line in told["result"]] == [
        ["test/loss", "0.25"], ["test/mae", "2.5"],
        ["mean", "absolute", "error", "1", "(mean", "predictor", "3)"],
    ]  # fmt: skip
    errors = told["largest errors of the test set: true → predicted (error)"]
    assert len(errors) == 5
    assert errors[0].split() == ["test/picture_11.png", "11", "→", "22", "(+11)"]
    assert errors[4].split()[0] == "test/picture_7.png"


def test_without_a_test_no_errors_of_the_test_set_are_shown(caplog, tmp_path):
    told = finish(caplog, *ended(tmp_path, val_mae=2.5), read_worst(), samples=True)
    assert list(told) == ["result", "next"]
    assert "val/mae" in told["result"][0]


def test_an_interrupted_test_shows_no_samples(caplog, tmp_path):
    assert list(finish(caplog, *ended(tmp_path, test_mae=2.5), read_worst(), samples=False)) == ["result", "next"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [("images", ["input=FOLDER", "output=predictions.csv"]), ("text", ["input=FILE", "output=FILE"])],
)
def test_the_command_to_predict_suits_the_task(tmp_path, kind, words):
    settings, trainer = ended(tmp_path)
    rows = dict(announce.next_commands(settings, trainer=trainer, kind=kind, overrides=[]))
    assert shlex.split(rows["predict"])[2:] == ["ckpt_path=runs/a b/best.ckpt", *words]


def test_a_task_of_the_user_s_own_needs_no_rows_or_kind(caplog, tmp_path):
    told = finish(caplog, *ended(tmp_path, test_mae=2.5), SimpleNamespace(), samples=True)
    assert list(told) == ["result", "next"]
