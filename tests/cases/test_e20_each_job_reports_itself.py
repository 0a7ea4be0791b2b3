"""E20: figures of job n of a sweep contain those of job n−1, which ran in the same process."""

import json
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel

from hotloop.callbacks import environment
from hotloop.callbacks.report import TrainingReport


def job(folder: Path, report: TrainingReport | None = None) -> dict[str, Any]:
    path = folder / "report.json"
    report = report or TrainingReport(str(path), table=False)
    report.path = path
    Trainer(
        accelerator="cpu", max_epochs=2, limit_train_batches=4, limit_val_batches=1, logger=False,
        enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False, callbacks=[report],
    ).fit(BoringModel())  # fmt: skip
    return json.loads(path.read_text())


@pytest.mark.parametrize("same_callback", [True, False])
def test_e20_a_job_reports_its_own_epochs_and_steps(tmp_path: Path, same_callback: bool) -> None:
    report = TrainingReport(str(tmp_path / "report.json"), table=False) if same_callback else None
    for number in range(3):
        content = job(tmp_path / str(number), report)
        assert [epoch["epoch"] for epoch in content["epochs"]] == [0, 1]
        assert [epoch["steps"] for epoch in content["epochs"]] == [4, 4]
        assert content["steps"] == 8
        assert [epoch["samples"] for epoch in content["epochs"]] == [4, 4]


@pytest.mark.parametrize("same_callback", [True, False])
def test_e20_a_job_reports_its_own_peak_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_callback: bool
) -> None:
    report = TrainingReport(str(tmp_path / "report.json"), table=False) if same_callback else None
    peaks = []
    for number, memory in enumerate((900.0, 300.0)):
        monkeypatch.setattr(environment, "resident_mb", lambda memory=memory: memory)
        peaks.append([epoch["peak_rss_mb"] for epoch in job(tmp_path / str(number), report)["epochs"]])
    assert peaks == [[900.0, 900.0], [300.0, 300.0]]


def test_e20_an_epoch_reports_its_own_peak_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = iter([100.0, 500.0, 200.0] + [50.0] * 100)
    monkeypatch.setattr(environment, "resident_mb", lambda: next(memory))
    peaks = [epoch["peak_rss_mb"] for epoch in job(tmp_path)["epochs"]]
    assert peaks == [500.0, 50.0]
