"""Pictures from any source as a test set: for evaluating a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.data.images.dataset import EpochBatchSampler, ImageDataset
from hotloop.data.images.decoding import ReadPictures
from hotloop.data.images.form import PixelForm
from hotloop.data.images.source import PictureReader
from hotloop.data.loading import BatchDataModule, LoaderOptions


class PictureTestSet(BatchDataModule):
    """A test set of pictures, decoded as they are wanted.

    Args:
        reader: gives the pictures.
        form: that the model knows.
        numbers: (n,) of the reader's pictures.
        targets: (n, T) in the user's units.
        batch_size: pictures.
        workers: loader processes.
    """

    kind = "images"

    def __init__(
        self,
        reader: PictureReader,
        form: PixelForm,
        *,
        numbers: NDArray[np.int64],
        targets: NDArray[np.float64],
        batch_size: int,
        workers: int,
    ) -> None:
        super().__init__(LoaderOptions(num_workers=workers))
        self.batch_size = batch_size
        pictures = ReadPictures(reader, form)
        self._datasets["test"] = ImageDataset(pictures, reader, numbers=numbers, targets=targets.astype(np.float32))

    def splits(self) -> tuple[str, ...]:
        """There is one only."""
        return ("test",)

    def dataset(self, split: str) -> ImageDataset | None:
        """The pictures, whatever the split is called."""
        dataset: Any = self._datasets.get(split)
        return dataset

    def _sampler(self, split: str) -> EpochBatchSampler:
        rank, world_size = self._ranks()
        count = len(self._datasets[split])
        return EpochBatchSampler(count, batch_size=self.batch_size, shuffle=False, rank=rank, world_size=world_size)
