"""The command: what it prints, what it writes, and what it refuses."""

import json
import os
from pathlib import Path

import pytest
from PIL import Image

from hotloop.report.__main__ import main
from tests.report.conftest import WriteRun, epoch

WRITTEN = {"report.md", "report.png", "comparison.json"}


def test_one_run_is_described_in_its_own_folder(write_run: WriteRun, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run("a")
    before = (folder / "report.json").read_bytes()
    assert main([str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} - {".hydra", "report.json"} == WRITTEN
    assert (folder / "report.json").read_bytes() == before
    assert "finished" in capsys.readouterr().out


def test_several_runs_are_compared_in_a_folder_of_their_own(
    write_run: WriteRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run("runs/a", [epoch(step=1.5)])
    write_run("runs/[b]", [epoch(step=0.5)])
    monkeypatch.chdir(tmp_path)
    assert main(["runs/a", "runs/[b]"]) == 0
    assert {path.name for path in Path("comparison").iterdir()} == WRITTEN
    found = json.loads(Path("comparison/comparison.json").read_text(encoding="utf-8"))["runs"]
    assert [row["name"] for row in found] == ["a", "[b]"]
    assert found[1]["tokens_per_s_ratio"] == 2
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if "[b]" in line)
    assert line.split()[:2] == ["[b]", "finished"] and line.split().count("2.00") == 2


def test_files_of_other_names_are_left_alone_and_its_own_are_renewed(write_run: WriteRun, tmp_path: Path) -> None:
    run, output = write_run("a"), tmp_path / "out" / "deep"
    output.mkdir(parents=True)
    (output / "notes.txt").write_text("mine")
    (output / "report.md").write_text("old")
    assert main([str(run), "--output", str(output)]) == 0
    assert (output / "notes.txt").read_text() == "mine"
    assert (output / "report.md").read_text(encoding="utf-8").startswith("# Training run")
    assert {path.name for path in run.iterdir()} == {".hydra", "report.json"}


@pytest.mark.parametrize("columns", ["30", "80", "200"])
def test_figures_are_whole_in_a_narrow_terminal(
    write_run: WriteRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    folders = [write_run(f"{letter * 60}", [epoch(tokens=123_456_000)]) for letter in "ab"]
    assert main([*map(str, folders), "--output", str(folders[0])]) == 0
    assert capsys.readouterr().out.count("61 728 000") == 2


def test_mistakes_are_told_in_one_line(write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run("a")
    (tmp_path / "file").write_text("")
    for arguments, told in (
        ([str(tmp_path / "nowhere")], "no such file or folder"),
        ([str(run), "--output", str(tmp_path / "file")], "choose another --output"),
        ([str(tmp_path / "file")], "no JSON"),
    ):
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert error.startswith("hotloop.report: ") and told in error and error.count("\n") == 1


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--colour", "x"])
    assert caught.value.code == 2 and "--colour" in capsys.readouterr().err


@pytest.mark.filterwarnings("error")
def test_twelve_runs_with_gaps_and_odd_names_are_drawn(write_run: WriteRun, tmp_path: Path) -> None:
    names = [os.fsdecode(b"caf\xe9"), "_hidden", "$a$", "x" * 90, *(f"run{index}" for index in range(8))]
    for index, name in enumerate(names):
        epochs = [epoch(number, val_loss=None if number == 1 else 3.0, gpu=100.0) for number in range(index)]
        write_run(f"runs/{name}", epochs)
    assert main([str(tmp_path / "runs"), "--output", str(tmp_path / "out")]) == 0
    with Image.open(tmp_path / "out" / "report.png") as picture:
        assert picture.width == 1200 and len(picture.convert("RGB").getcolors(1 << 24) or ()) > 50


@pytest.mark.filterwarnings("error")
def test_a_run_without_epochs_is_drawn(write_run: WriteRun) -> None:
    folder = write_run("a", [], status="failed", error="x")
    assert main([str(folder)]) == 0
    assert (folder / "report.png").stat().st_size > 0
