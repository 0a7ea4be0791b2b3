"""E14: the schedule runs per epoch or per micro-batch; the log must show one value per optimiser step."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel, RandomDataset
from lightning.pytorch.loggers.logger import DummyLogger

from hotloop.callbacks.report import TrainingReport
from hotloop.optim import SHAPES, schedule_factor


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


@pytest.mark.parametrize("shape", SHAPES)
def test_e14_every_shape_counts_optimiser_steps_whatever_is_accumulated(train_tiny: Any, shape: str) -> None:
    """20 batches, 3 to a step, make 7 steps an epoch and 21 of the run."""
    run = train_tiny(
        f"scheduler={shape}", "scheduler.warmup_steps=4", "scheduler.minimum=1e-4", "optimizer.lr=0.01",
        "trainer.max_epochs=3", "trainer.limit_train_batches=20", "trainer.accumulate_grad_batches=3",
    )  # fmt: skip
    last_steps = (6, 13, 20)  # of the epochs, from 0
    expected = [0.01 * schedule_factor(s, shape=shape, warmup=4, total=21, floor=0.01) for s in last_steps]
    assert [epoch["learning_rate"] for epoch in run.report["epochs"]] == pytest.approx(expected)
