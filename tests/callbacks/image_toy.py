"""A small regression on pictures that keeps to the names the callbacks ask for."""

from dataclasses import dataclass
from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader

from hotloop.data.images.batch import ImageBatch


@dataclass(frozen=True)
class Results:
    ids: NDArray[np.int64]
    predictions: NDArray[np.float64]
    targets: NDArray[np.float64]


def pictures(count: int, *, channels: int = 3, dtype: Any = np.uint8, seed: int = 0) -> NDArray[Any]:
    """(N, 6, 8, C) of random pixels."""
    return np.random.default_rng(seed).integers(0, np.iinfo(np.uint8).max, (count, 6, 8, channels)).astype(dtype)


class Dataset:
    """A split, as the callbacks ask for single pictures of it."""

    def __init__(self, split: str, images: NDArray[Any]) -> None:
        self.split, self.images = split, images
        self.asked: list[int] = []

    def picture(self, number: int) -> NDArray[Any]:
        self.asked.append(number)
        return self.images[number]

    def name(self, number: int) -> str:
        return f"{self.split}/picture_{number}.png"


class ImageData(pl.LightningDataModule):
    """12 pictures in batches of 4; target t of picture i is i + 100 t."""

    def __init__(self, *, targets: int = 1, channels: int = 3, dtype: Any = np.uint8) -> None:
        super().__init__()
        self.names = [f"reading{number or ''}" for number in range(targets)]
        self.images = pictures(12, channels=channels, dtype=dtype)
        self.datasets = {split: Dataset(split, self.images) for split in ("train", "valid", "test")}

    def for_task(self) -> dict[str, Any]:
        return {"target_names": self.names, "target_mean": [5.5 + 100 * t for t in range(len(self.names))]}

    def dataset(self, split: str) -> Dataset:
        return self.datasets[split]

    def batches(self) -> list[ImageBatch]:
        images = torch.from_numpy(self.images).permute(0, 3, 1, 2)
        ids = torch.arange(len(images))
        targets = ids.unsqueeze(1) + 100.0 * torch.arange(len(self.names))
        return [ImageBatch(images=images[part], targets=targets[part], ids=ids[part]) for part in ids.split(4)]

    def train_dataloader(self) -> Any:
        return DataLoader(self.batches(), batch_size=None)  # type: ignore[arg-type]

    val_dataloader = test_dataloader = train_dataloader


class RegressionTask(pl.LightningModule):
    """Predicts its only parameters; `errors` (id → error) are added to the truth of validation and test."""

    kind = "images"
    headline = ("val/mae", "val/baseline_mae")

    def __init__(self, *, targets: int = 1, errors: dict[int, float] | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(targets))
        self.errors = errors or {}
        self.results: Results | None = None
        self.seen: list[Tensor] = []
        self._found: list[tuple[int, NDArray[np.float64], NDArray[np.float64]]] = []

    def training_step(self, batch: ImageBatch, batch_idx: int) -> Tensor:
        self.seen.append(batch.images)
        return ((self.weight - batch.targets) ** 2).mean()

    def on_validation_epoch_start(self) -> None:
        self._found = []

    on_test_epoch_start = on_validation_epoch_start

    def validation_step(self, batch: ImageBatch, batch_idx: int) -> None:
        for number, true in zip(batch.ids.tolist(), batch.targets.double().numpy(), strict=True):
            self._found.append((number, true + self.errors.get(number, 0.0), true))

    test_step = validation_step

    def _report(self, prefix: str) -> None:
        ids, predictions, targets = (np.array(part) for part in zip(*self._found, strict=True))
        self.results = Results(ids, predictions, targets)
        error = float(np.abs(predictions - targets).mean())
        self.log_dict({f"{prefix}/{name}": error for name in ("loss", "mae", "baseline_mae", "r2")})

    def on_validation_epoch_end(self) -> None:
        if not self.trainer.sanity_checking:
            self._report("val")

    def on_test_epoch_end(self) -> None:
        self._report("test")

    def result_rows(self) -> list[tuple[str, str]]:
        return [("mean absolute error", "1 (mean predictor 3)")]

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=1e-3)
