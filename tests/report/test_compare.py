"""Reading runs, the arithmetic of their rows, and the tables."""

from pathlib import Path
from typing import Any

import pytest

from hotloop.errors import UserError
from hotloop.report.compare import grids, markdown, rows
from hotloop.report.runs import read_runs
from tests.report.conftest import WriteRun, epoch


def rows_of(*folders: Path) -> list[dict[str, Any]]:
    return rows(read_runs(folders))


def test_speeds_are_totals_over_total_seconds_and_not_means_of_epochs(write_run: WriteRun) -> None:
    slow, quick = epoch(samples=100, tokens=1000, data=1, step=9), epoch(1, samples=100, tokens=3000, data=1, step=1)
    (row,) = rows_of(write_run("a", [slow, quick]))
    assert row["training_s"] == 12
    assert row["samples_per_s"] == pytest.approx(200 / 12)
    assert row["tokens_per_s"] == pytest.approx(4000 / 12)
    assert row["seconds_per_million_tokens"] == pytest.approx(3000)
    assert row["seconds_per_thousand_samples"] == pytest.approx(60)
    assert row["data_wait_share"] == pytest.approx(2 / 12)


def test_validation_and_checkpoints_are_shares_of_the_whole(write_run: WriteRun) -> None:
    (row,) = rows_of(write_run("a", [epoch(data=1, step=1, validation=5, checkpoint=3)] * 2))
    assert (row["validation_s"], row["checkpoint_s"]) == (10, 6)
    assert (row["validation_share"], row["checkpoint_share"]) == (0.5, 0.3)


def test_memory_is_the_fullest_epoch_and_padding_is_weighted_by_samples(write_run: WriteRun) -> None:
    epochs = [epoch(rss=900, gpu=50, padding=0.5, samples=300), epoch(1, rss=800, gpu=70, padding=0.0, samples=100)]
    (row,) = rows_of(write_run("a", epochs))
    assert (row["peak_rss_mb"], row["peak_gpu_mb"]) == (900, 70)
    assert row["padding_share"] == pytest.approx(0.375)


def test_ratios_are_to_the_first_run_where_the_task_is_the_same(write_run: WriteRun) -> None:
    first, second = write_run("a", [epoch(step=1.5)]), write_run("b", [epoch(step=0.5)])
    pictures = write_run("c", [epoch(tokens=0)], task="regression")
    ratios = [(row["samples_per_s_ratio"], row["tokens_per_s_ratio"]) for row in rows_of(first, second, pictures)]
    assert ratios == [(1, 1), (2, 2), (None, None)]


def test_a_run_without_epochs_or_with_nothing_known_is_told_by_dashes(write_run: WriteRun) -> None:
    empty = write_run("a", [], status="failed", error="ValueError: no\nluck", metrics=None, monitor=None)
    bare = write_run(
        "b", [{"epoch": 0, "seconds": None, "train_loss": None}], monitor={"name": "val/loss", "best": None}
    )
    full = write_run("c")
    runs = read_runs([empty, bare, full])
    speed, costs, reached = grids(rows(runs))
    assert speed.cells[0] == ["a", "failed", "0", *["–"] * 4]  # no ratios: the first has no speed
    assert set(costs.cells[1][1:]) == {"–"}
    assert reached.cells == [["a", "–"], ["b", "–"], ["c", "3"]]
    assert "ValueError: no luck" in markdown(runs, rows(runs), picture="report.png")


def test_columns_without_figures_are_left_out(write_run: WriteRun) -> None:
    pictures = write_run("a", [epoch(tokens=0)], task="regression", metrics={"test/rmse": 0.25})
    heads = [head for grid in grids(rows_of(pictures)) for head in grid.heads]
    assert "s / 10³\nsamples" in heads and "test\nrmse" in heads
    assert not {"tokens\n/s", "s / 10⁶\ntokens", "GPU\nMB", "padding\n%", "samples\n×"} & set(heads)


def test_the_monitored_value_is_named_in_each_row_where_the_names_differ(write_run: WriteRun) -> None:
    first, second = write_run("a"), write_run("b", monitor={"name": "val/bleu", "best": 31.25})
    assert [line[1] for line in grids(rows_of(first, second))[2].cells] == ["val/loss 3", "val/bleu 31.25"]


def test_a_folder_above_runs_gives_all_of_them_by_number_and_each_once(write_run: WriteRun, tmp_path: Path) -> None:
    for name in ("sweep/10_lr=3", "sweep/9_lr=2", "sweep/0_lr=1"):
        write_run(name)
    runs = read_runs([tmp_path / "sweep", tmp_path / "sweep" / "9_lr=2" / "report.json"])
    assert [run.name for run in runs] == ["lr=1", "lr=2", "lr=3"]


def test_what_differs_and_the_overrides_are_told(write_run: WriteRun) -> None:
    common = {"model": {"hidden": 8, "extra": {}}, "trainer": {"max_epochs": 3}}
    first = write_run("a", overrides=["model.hidden=8"], settings=common)
    second = write_run("b|c", overrides=[], settings=common | {"model": {"hidden": 16, "extra": {}}}, seed=2)
    runs = read_runs([first, second])
    text = markdown(runs, rows(runs), picture="report.png")
    assert "| model.hidden | 8 | 16 |" in text
    assert "| seed | 1 | 2 |" in text
    assert "max_epochs" not in text and "model.extra" not in text and "| device |" not in text
    assert "a:\n\n    model.hidden=8" in text and "b\\|c:\n\n    (none)" in text
    assert "| b\\|c | finished |" in text
    assert "![Loss, speed, time and memory](report.png)" in text


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "no report of a training run"),
        ('{"hello": 1}', "expected task, status and epochs"),
        ('{"task": "t", "status": "s", "epochs": 3}', "epochs='3', expected a list"),
        ('{"task": 1, "status": "s", "epochs": []}', "task='1'"),
        ('{"task": "t", "status": "s", "epochs": [1]}', "epochs[0]"),
        ('{"task": "t", "status": "s", "epochs": [{"seconds": "1"}]}', "epochs[0].seconds='1', expected a number"),
        ('{"task": "t", "status": "s", "epochs": [{"samples": true}]}', "epochs[0].samples"),
        (f'{{"task": "t", "status": "s", "epochs": [{{"samples": 1{"0" * 400}}}]}}', "epochs[0].samples"),
        ('{"task": "t", "status": "s", "epochs": [], "metrics": {"a": "b"}}', "metrics.a"),
        ('{"task": "t", "status": "s", "epochs": [], "metrics": [1]}', "metrics="),
        ('{"task": "t", "status": "s", "epochs": [], "monitor": "val"}', "monitor="),
        ('{"task": "t", "status": "s", "epochs": [], "monitor": {"name": "x", "best": "y"}}', "monitor.best"),
    ],
)
def test_a_broken_or_foreign_report_is_named_in_one_line(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "report.json"
    file.write_text(content)
    with pytest.raises(UserError) as caught:
        read_runs([tmp_path])
    assert str(file) in str(caught.value) and told in str(caught.value) and "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"report\.json is no JSON"):
        read_runs([tmp_path])


def test_nan_in_a_report_is_not_known(write_run: WriteRun, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(
        '{"task": "t", "status": "s", "epochs": [{"seconds": 1, "samples": 5, "train_loss": NaN}],'
        ' "metrics": {"test/loss": Infinity}}'
    )
    (row,) = rows_of(tmp_path)
    assert row["samples_per_s"] == 5 and row["test"] == {"test/loss": None}


def test_places_without_runs_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere: no such file or folder"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(UserError, match=r"no report\.json in or below it"):
        read_runs([tmp_path])


@pytest.mark.parametrize("content", ["a: [", "just text", "\x00"])
def test_broken_notes_of_hydra_are_named(write_run: WriteRun, content: str) -> None:
    folder = write_run("a")
    (folder / ".hydra" / "config.yaml").write_text(content)
    with pytest.raises(UserError, match=r"config\.yaml.*remove it") as caught:
        read_runs([folder])
    assert "\n" not in str(caught.value)
