import shlex

import pytest
import torch

from hotloop import announce


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
