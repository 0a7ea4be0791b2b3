"""E14: the schedule runs per epoch or per micro-batch; the log must show one value per optimiser step."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel, RandomDataset
from lightning.pytorch.loggers.logger import DummyLogger

from hotloop.callbacks.report import TrainingReport


class Recorder(DummyLogger):
    def __init__(self) -> None:
        super().__init__()
        self.rates: list[tuple[int, float]] = []

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        if "lr" in metrics:
            self.rates.append((step, metrics["lr"]))


class Cosine(BoringModel):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.used: list[float] = []

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(RandomDataset(32, 10), batch_size=2)

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        self.used.append(optimizer.param_groups[0]["lr"])

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


@pytest.mark.parametrize(("accumulate", "steps"), [(1, 15), (2, 9), (4, 6)])
def test_e14_one_learning_rate_is_logged_per_optimiser_step(tmp_path: Path, accumulate: int, steps: int) -> None:
    recorder, model = Recorder(), Cosine(steps)
    Trainer(
        accelerator="cpu", max_epochs=3, accumulate_grad_batches=accumulate, limit_val_batches=0, logger=recorder,
        log_every_n_steps=1, enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False,
        callbacks=[TrainingReport(str(tmp_path / "report.json"), table=False)],
    ).fit(model)  # fmt: skip
    assert [step for step, _ in recorder.rates] == list(range(1, steps + 1))
    assert [rate for _, rate in recorder.rates] == pytest.approx(model.used)
    assert recorder.rates[0][1] == pytest.approx(0.1)
    assert model.optimizers().param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-9)
