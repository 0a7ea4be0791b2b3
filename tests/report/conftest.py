"""Run folders made by hand, with the arithmetic of the real report."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from hotloop.callbacks.accounting import Totals, epoch_record
from hotloop.callbacks.json_file import write_json


def epoch(
    number: int = 0,
    *,
    samples: int = 100,
    tokens: int = 1000,
    data: float = 0.5,
    step: float = 1.5,
    validation: float = 1.0,
    checkpoint: float = 1.0,
    loss: float = 4.0,
    val_loss: float | None = 3.0,
    padding: float = 0.0,
    rss: float = 500.0,
    gpu: float | None = None,
) -> dict[str, Any]:
    """An entry of `epochs` in report.json."""
    real = 2 * tokens
    return epoch_record(
        epoch=number,
        steps=10,
        totals=Totals(samples, tokens, 10, loss * (tokens or samples), round(real / (1 - padding)), real),
        seconds={"data": data, "step": step, "validation": validation, "checkpoint": checkpoint},
        learning_rate=0.1,
        grad_norm=None,
        metrics={} if val_loss is None else {"val/loss": val_loss},
        peak_rss_mb=rss,
        peak_gpu_mb=gpu,
    )


WriteRun = Callable[..., Path]


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Writes a run folder below `tmp_path`."""

    def write(
        name: str,
        epochs: Sequence[dict[str, Any]] | None = None,
        *,
        overrides: Sequence[str] | None = None,
        settings: dict[str, Any] | None = None,
        **changed: Any,
    ) -> Path:
        folder = tmp_path / name
        content = {
            "task": "translation",
            "command": "train",
            "status": "finished",
            "error": None,
            "seed": 1,
            "device": "a processor",
            "precision": {"asked": "32-true", "used": "32-true"},
            "parameters": 1000,
            "steps": 10,
            "epochs": [epoch()] if epochs is None else list(epochs),
            "metrics": {"val/loss": 3.0},
            "monitor": {"name": "val/loss", "best": 3.0},
        }
        write_json(folder / "report.json", content | changed)
        (folder / ".hydra").mkdir()
        if overrides is not None:
            (folder / ".hydra" / "overrides.yaml").write_text(yaml.safe_dump(list(overrides)))
        if settings is not None:
            (folder / ".hydra" / "config.yaml").write_text(yaml.safe_dump(settings))
        return folder

    return write
