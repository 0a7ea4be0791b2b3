"""The three doors as a user meets them, in this process: what they print, leave behind, and refuse."""

import json
import logging
import re
import runpy
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from hotloop.doors import group_names, option_names
from tests.conftest import ROOT, TINY, write_bitext

Door = Callable[..., tuple[int, str, str]]


@pytest.fixture
def door(tmp_path, monkeypatch, capfd) -> Door:
    """`door("train.py", "model=seq2seq")` → exit code, standard output, standard error; run from `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def call(script: str, *arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", [str(ROOT / script), *arguments])
        code = 0
        try:
            runpy.run_path(str(ROOT / script), run_name="__main__")
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        finally:
            sys.stdout.flush()
            for handler in set(root.handlers) - set(handlers):
                handler.close()
            root.handlers[:], root.level = handlers, level
            GlobalHydra.instance().clear()
            HydraConfig.instance().cfg = None
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def tiny_run(door, bitext) -> Callable[..., tuple[int, str, str]]:
    """The training door on the tiny bitext."""

    def call(*arguments: str) -> tuple[int, str, str]:
        return door("train.py", "data=bitext", f"data.dir={bitext}", *TINY, "seed=1", *arguments)

    return call


def pasted(output: str, name: str) -> list[str]:
    """The arguments of a command that a run printed, as the shell would split them."""
    (line,) = [line for line in output.splitlines() if line.strip().startswith(f"{name} ")]
    words = shlex.split(line)
    (script,) = [place for place, word in enumerate(words) if word.endswith(".py")]
    return words[script + 1 :]


def test_help_lists_groups_and_overrides(door):
    code, out, _ = door("train.py", "--help")
    assert code == 0
    for part in ("data.dir=", "data.batch_size=", "ckpt_path=last", "evaluate.py", "predict.py"):
        assert part in out
    for group in group_names(ROOT / "conf"):
        if group != "hydra":
            assert group in out
            for option in option_names(group, ROOT / "conf"):
                assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", out), f"{group}={option}"


@pytest.mark.parametrize("script", ["evaluate.py", "predict.py"])
def test_help_of_the_other_doors_lists_their_keys(door, script):
    code, out, _ = door(script, "--help")
    assert code == 0 and "ckpt_path" in out and "beam_size" in out


def test_help_of_the_diagnosis_says_what_it_takes(door):
    code, out, _ = door("diagnose.py", "--help")
    assert code == 0 and "overrides of train.py" in out and "diagnose.minutes" in out


def test_e18_what_a_run_prints_can_be_pasted_also_from_a_folder_with_a_space(tiny_run, door, tmp_path):
    code, out, _ = tiny_run("hydra.run.dir=my runs/first [1]")
    assert code == 0, out
    assert re.search(r"device +cpu", out) and re.search(r"precision +32-true", out)
    assert re.search(r"model +seq2seq_attn: [\d,]+ parameters", out)
    assert "200 / 20 / 20 pairs" in out and "test/bleu" in out and "version:" in out

    code, out_evaluate, _ = door("evaluate.py", *pasted(out, "evaluate"), "trainer.accelerator=cpu")
    assert code == 0
    (written,) = tmp_path.glob("runs/evaluate/*/evaluation.json")
    result = json.loads(written.read_text())
    report = json.loads((tmp_path / "my runs" / "first [1]" / "report.json").read_text())
    assert result["metrics"]["bleu"] == pytest.approx(report["metrics"]["test/bleu"], abs=1e-4)
    assert result["metrics"]["loss"] == pytest.approx(report["metrics"]["test/loss"], abs=1e-5)
    assert "version:" in result["signatures"]["bleu"]
    assert re.search(r"bleu +[\d.]+", out_evaluate)

    (tmp_path / "FILE").write_text("mot1 mot2\n\nmot3\n", encoding="utf-8")
    code, _, _ = door("predict.py", *[a.replace("output=FILE", "output=OUT") for a in pasted(out, "predict")])
    lines = (tmp_path / "OUT").read_text(encoding="utf-8").split("\n")
    assert code == 0 and len(lines) == 4 and lines[1] == "" and lines[3] == ""

    code, out_resumed, _ = door("train.py", *pasted(out, "resume"))
    assert code == 0 and "continuing from" in out_resumed
    (second,) = tmp_path.glob("runs/*/*/report.json")
    assert [epoch["epoch"] for epoch in json.loads(second.read_text())["epochs"]] == [0, 1]


def test_e12_16_mixed_on_a_cpu_says_what_really_runs(tiny_run):
    code, out, _ = tiny_run("precision=16-mixed", "trainer.limit_train_batches=3", "test=false", "hydra.run.dir=run")
    assert code == 0
    assert "bf16-mixed (16-mixed was asked for" in out
    precision = json.loads(Path("run/report.json").read_text())["precision"]
    assert precision == {"asked": "16-mixed", "used": "bf16-mixed"}


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_e01_unequal_files_stop_the_run_before_it_looks_like_one(tiny_run, bitext, tmp_path, split):
    lines = (bitext / f"{split}.en").read_text().splitlines(keepends=True)
    (bitext / f"{split}.en").write_text("".join(lines[:-1]))
    code, _, err = tiny_run("hydra.run.dir=run")
    assert code == 1 and err.count("\n") == 1
    for part in (f"{split}.fr", f"{split}.en", str(len(lines)), str(len(lines) - 1)):
        assert part in err
    assert not list(tmp_path.rglob("*.ckpt")) and not list(tmp_path.rglob("events.out*"))
    assert not list(tmp_path.rglob("meta.json")) and not (tmp_path / "run" / "report.json").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["model.hiden=3"], "model.hiden: no such key; did you mean model.hidden"),
        (["precision=16"], "precision=16: choose one of 16-mixed"),
        (["model=seq2sek"], "did you mean seq2seq"),
        (["trainer.max_epochs=x"], "trainer.max_epochs='x': expected"),
        (["data=bitext"], "data.dir is required"),
        (["data=bitext", "data.dir=/nowhere"], "/nowhere"),
        (["+model.bogus=1"], "model.bogus: no such option"),
    ],
)
def test_a_mistake_is_one_line_on_standard_error(door, arguments, expected):
    code, out, err = door("train.py", *arguments)
    assert code == 1 and expected in err
    assert err.count("\n") == 1 and "Traceback" not in out + err


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        ("evaluate.py", [], "ckpt_path is required"),
        ("predict.py", ["input=x"], "ckpt_path is required"),
        ("evaluate.py", ["ckpt_path=no.ckpt"], "there is no file no.ckpt"),
        ("evaluate.py", ["ckpt_path=no.ckpt", "split=tset"], "split='tset'"),
        ("evaluate.py", ["ckpt_path=no.ckpt", "source=a"], "both source=FILE and reference=FILE"),
        ("predict.py", ["ckpt_path=no.ckpt", "beam_size=0"], "beam_size=0: expected a whole number"),
        ("predict.py", ["ckpt_path=no.ckpt", "batch_size=many"], "batch_size='many'"),
        ("predict.py", ["ckpt_path=no.ckpt", "beam=3"], "did you mean beam_size"),
        ("diagnose.py", ["model=seq2seq", "model.hiden=3"], "did you mean model.hidden"),
        ("diagnose.py", ["diagnose.minutes=0"], "diagnose.minutes=0: expected a number from 0.1"),
        ("diagnose.py", ["ckpt_path=last"], "leave ckpt_path out"),
    ],
)
def test_mistakes_at_the_other_doors_are_one_line_too(door, script, arguments, expected):
    code, out, err = door(script, *arguments)
    assert code == 1 and expected in err
    assert err.count("\n") == 1 and "Traceback" not in out + err


def test_evaluate_measures_any_bitext_and_predict_any_file(tiny_run, door, tmp_path):
    code, out, _ = tiny_run("hydra.run.dir=run", "test=false")
    assert code == 0
    checkpoint = "ckpt_path=run/checkpoints/last.ckpt"
    write_bitext(tmp_path, "other", [("mot1 mot2", "word2 word1"), ("", ""), ("mot3", "word3")])
    cpu = "trainer.accelerator=cpu"
    code, out, _ = door("evaluate.py", checkpoint, cpu, "source=other.fr", "reference=other.en", "output=hyp.txt")
    assert code == 0 and re.search(r"sentences +3", out)
    assert len(Path("hyp.txt").read_text().split("\n")) == 4

    code, out, _ = door("predict.py", checkpoint, "input=other.fr")
    assert code == 0 and out == Path("hyp.txt").read_text()
    code, out, _ = door("predict.py", checkpoint, "input=other.fr", "beam_size=4", "n_best=2")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "3", "3"] and rows[2][2] == ""
    assert float(rows[0][1]) >= float(rows[1][1])
    code, _, err = door("predict.py", checkpoint, "input=other.fr", "n_best=9")
    assert code == 1 and "n_best=9 needs beam_size=9" in err
    code, _, err = door("predict.py", checkpoint, "input=nothing.fr")
    assert code == 1 and "nothing.fr" in err


def test_predictions_are_written_whole_or_not_at_all(tiny_run, door):
    code, _, _ = tiny_run("hydra.run.dir=run", "test=false", "trainer.limit_train_batches=3")
    assert code == 0
    checkpoint = "ckpt_path=run/checkpoints/last.ckpt"
    Path("text").write_text("mot1\n\nmot2\n")
    code, _, _ = door("predict.py", checkpoint, "input=text", "output=text")  # onto itself
    assert code == 0 and len(Path("text").read_text().split("\n")) == 4

    Path("latin").write_bytes("mot1\nété\n".encode("latin-1"))
    Path("kept").write_text("what was there\n")
    code, _, err = door("predict.py", checkpoint, "input=latin", "output=kept")
    assert code == 1 and "latin" in err
    assert Path("kept").read_text() == "what was there\n"
    assert not [p for p in Path().iterdir() if p.name.endswith(".part")]

    code, _, err = door("predict.py", checkpoint, "input=text", "output=text/is/no/folder")
    assert code == 1 and err.count("\n") == 1 and "cannot write text/is/no/folder" in err
    code, _, _ = door("predict.py", checkpoint, "input=text", "output=new/folder/text")
    assert code == 0 and Path("new/folder/text").is_file()


@pytest.mark.parametrize("argument", ["input=null", "output=null", "device=meta", "device=tpu9", "model_modules=os"])
def test_wrong_kinds_of_values_are_refused_by_predict(tiny_run, door, argument):
    tiny_run("hydra.run.dir=run", "test=false", "trainer.limit_train_batches=1")
    code, _, err = door("predict.py", "ckpt_path=last", "input=text", argument)
    assert code == 1 and err.count("\n") == 1


def test_last_is_the_newest_run_for_every_door(tiny_run, door):
    tiny_run("test=false", "trainer.limit_train_batches=2")
    Path("text").write_text("mot1\n")
    code, out, _ = door("predict.py", "ckpt_path=last", "input=text")
    assert code == 0 and out.count("\n") == 1
    code, out, _ = door("evaluate.py", "ckpt_path=last", "trainer.accelerator=cpu")
    assert code == 0 and re.search(r"sentences +20", out)


def test_a_run_that_cannot_be_written_is_told(door, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = door("train.py", "hydra.run.dir=file/run")
    assert code == 1 and err.count("\n") == 1 and "hydra.run.dir" in err


def test_a_name_cannot_lead_out_of_the_folder_of_runs(tiny_run, tmp_path):
    code, _, _ = tiny_run("name=../../evil", "test=false", "trainer.limit_train_batches=1")
    assert code == 0 and len(list((tmp_path / "runs").glob("*/*/report.json"))) == 1


def test_a_failing_job_of_a_sweep_leaves_its_reason_in_its_log(tiny_run, tmp_path):
    code, _, _ = tiny_run("-m", "optimizer.lr=1e-2,-1,1e-3", "test=false", "trainer.limit_train_batches=2")
    assert code == 1
    logs = {p.parent.name[0]: p.read_text() for p in tmp_path.glob("multirun/*/*/train.log")}
    assert "Invalid learning rate: -1" in logs["1"]
    assert {p.parent.name[0] for p in tmp_path.glob("multirun/*/*/report.json")} == {"0", "2"}


def test_a_run_that_is_refused_leaves_no_folder(tiny_run, door, tmp_path):
    code, _, _ = tiny_run("model.hidden=0")
    assert code == 1 and not list((tmp_path / "runs").glob("*/*"))


def test_a_failed_run_says_so_in_its_report(tiny_run, monkeypatch):
    from hotloop.tasks.translation import TranslationTask

    def broken(self, batch, batch_idx):
        raise RuntimeError("the loss exploded")

    monkeypatch.setattr(TranslationTask, "training_step", broken)
    with pytest.raises(RuntimeError, match="the loss exploded"):
        tiny_run("hydra.run.dir=run")
    report = json.loads(Path("run/report.json").read_text())
    assert report["status"] == "failed" and "the loss exploded" in report["error"]


def test_a_sweep_has_a_folder_for_each_job(tiny_run, tmp_path):
    code, _, _ = tiny_run("-m", "optimizer.lr=1e-2,1e-3", "trainer.limit_train_batches=3", "test=false")
    assert code == 0
    reports = sorted(tmp_path.glob("multirun/*/*/report.json"))
    assert len(reports) == 2 and reports[0].parent.name.startswith("0_") and reports[1].parent.name.startswith("1_")
    assert all(json.loads(path.read_text())["status"] == "finished" for path in reports)
