"""Small batches of pictures, models and trainers for the tests of the regression task."""

from functools import partial
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from hotloop.data.images.batch import ImageBatch
from hotloop.optim import build_optimizer
from hotloop.tasks.regression import RegressionTask

MEAN, STD = 40.0, 12.0


def picture_batch(count: int, *, targets: int = 1, size: int = 8, channels: int = 3, bits: int = 8) -> ImageBatch:
    """Pictures of one random brightness each, with noise; each target is a multiple of the brightness."""
    generator = torch.Generator().manual_seed(count)
    top = 2**bits - 1
    brightness = torch.rand(count, generator=generator)
    noise = torch.rand(count, size, size, channels, generator=generator)
    images = ((0.8 * brightness.view(-1, 1, 1, 1) + 0.2 * noise) * top).to(torch.uint8 if bits == 8 else torch.int32)
    each = MEAN + STD * 3 * (brightness - 0.5).unsqueeze(1) * torch.tensor([1.0, -2.0, 0.5])[:targets]
    return ImageBatch(images=images.permute(0, 3, 1, 2), targets=each, ids=torch.arange(count))


def split(batch: ImageBatch, size: int) -> list[ImageBatch]:
    """The pictures in batches of `size`, the last one with what remains."""
    parts = (slice(start, start + size) for start in range(0, len(batch), size))
    return [ImageBatch(images=batch.images[p], targets=batch.targets[p], ids=batch.ids[p]) for p in parts]


class Linear(nn.Module):
    """A linear model of the pixels: no batch normalisation, so a batch is the sum of its pictures."""

    def __init__(self, outputs: int = 1, *, size: int = 8, channels: int = 3) -> None:
        super().__init__()
        self.linear = nn.Linear(channels * size * size, outputs)

    def forward(self, images: Tensor) -> Tensor:
        return self.linear(images.flatten(1))


class Known(nn.Module):
    """Gives its outputs (N, T) for pictures whose first pixel holds their number."""

    def __init__(self, outputs: Tensor) -> None:
        super().__init__()
        self.outputs = nn.Parameter(outputs)

    def forward(self, images: Tensor) -> Tensor:
        return self.outputs[images[:, 0, 0, 0].round().long()]


def known_batch(targets: Tensor) -> ImageBatch:
    """Pictures for `Known`, with targets (N, T)."""
    numbers = torch.arange(len(targets))
    images = numbers.to(torch.int32).view(-1, 1, 1, 1).expand(-1, 1, 2, 2).contiguous()
    return ImageBatch(images=images, targets=targets, ids=numbers)


def known_task(outputs: Tensor, **options: Any) -> RegressionTask:
    """A task whose predictions are outputs (N, T): nothing is scaled."""
    count = outputs.shape[1] // (2 if options.get("loss") == "gaussian_nll" else 1)
    scaling = {
        "target_names": [f"t{i}" for i in range(count)],
        "target_mean": [0.0] * count,
        "target_std": [1.0] * count,
        "pixel_mean": [0.0],
        "pixel_std": [1.0],
        "pixel_max": 1.0,
    }
    return RegressionTask(model=Known(outputs), **(scaling | options))


def regression_task(model: nn.Module, *, targets: int = 1, channels: int = 3, bits: int = 8, **options: Any) -> Any:
    given = {
        "target_names": ["angle", "speed", "level"][:targets],
        "target_mean": [MEAN] * targets,
        "target_std": [STD] * targets,
        "pixel_mean": [0.5] * channels,
        "pixel_std": [0.25] * channels,
        "pixel_max": 2**bits - 1,
        "optimizer": partial(build_optimizer, optimizer=torch.optim.SGD, lr=0.01),
    }
    return RegressionTask(model=model, **(given | options))


def trainer(**options: Any) -> pl.Trainer:
    quiet = {
        "accelerator": "cpu",
        "devices": 1,
        "max_epochs": 1,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
    }
    return pl.Trainer(**(quiet | options))


def loader(batches: Any) -> DataLoader:
    return DataLoader(batches, batch_size=None)
