"""Pictures with their targets; a whole batch is one gather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from hotloop.data.images.augment import Augmentation
from hotloop.data.images.batch import ImageBatch
from hotloop.data.images.decoding import Pictures
from hotloop.data.images.form import Pixels
from hotloop.data.images.source import PictureReader
from hotloop.data.sampling import BatchSampler


class EpochBatchSampler(BatchSampler):
    """Yields (epoch, list of sample numbers): augmentation differs between epochs, in workers that live through all."""

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        epoch = self.epoch
        for ids in super().__iter__():
            yield epoch, ids


class ImageDataset(Dataset[ImageBatch]):
    """The pictures of one split, by sample number.

    Args:
        pictures: of all splits.
        reader: gives names.
        numbers: (n,) of this split's pictures.
        targets: (n, T) in the user's units.
        augment: changes the batches; None = they come as they are.
    """

    def __init__(
        self,
        pictures: Pictures,
        reader: PictureReader,
        *,
        numbers: NDArray[np.int64],
        targets: NDArray[np.float32],
        augment: Augmentation | None = None,
    ) -> None:
        if len(numbers) != len(targets):
            raise ValueError(f"{len(numbers)} pictures, {len(targets)} rows of targets")
        self._pictures, self._reader, self._augment = pictures, reader, augment
        self.numbers, self.targets = numbers, targets

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, key: tuple[int, Sequence[int]]) -> ImageBatch:
        """The samples with these numbers, in this order, augmented as in this epoch: `dataset[epoch, ids]`."""
        epoch, numbers = key
        ids = np.asarray(numbers, dtype=np.int64)
        pictures, targets = self._pictures.gather(self.numbers[ids]), self.targets[ids]
        if self._augment is not None:
            pictures, targets = self._augment(pictures, targets, epoch=epoch, ids=ids)
        # torch can do little with uint16
        whole = pictures.astype(np.int32) if pictures.dtype == np.uint16 else pictures
        return ImageBatch(
            images=torch.from_numpy(whole).permute(0, 3, 1, 2),  # of (B, H, W, C): channels_last as it is
            targets=torch.from_numpy(targets),
            ids=torch.from_numpy(ids),
        )

    def picture(self, number: int) -> Pixels:
        """(H, W, C), uint8 or uint16, as the model sees it without augmentation."""
        return self._pictures.gather(self.numbers[[number]])[0]

    def name(self, number: int) -> str:
        """The picture of that sample in words that let a user find it."""
        return self._reader.name(int(self.numbers[number]))
