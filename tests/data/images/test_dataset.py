"""Batches as one gather: the same for any number of workers, in any process."""

from typing import Any

import numpy as np
import pytest
import torch

from hotloop.data.images.augment import Augmentation, AugmentOptions
from hotloop.data.images.dataset import EpochBatchSampler, ImageDataset
from hotloop.data.images.decoding import ReadPictures
from hotloop.data.images.form import PixelForm
from hotloop.data.loading import Loader
from tests.data.images.made_pictures import MadeSource


def dataset(count: int = 12, *, bits: int = 8, augment: bool = False) -> ImageDataset:
    reader, form = MadeSource(count, bits=bits).reader, PixelForm((8, 6), bits=bits)
    numbers = np.arange(count - 1, -1, -1)
    options = AugmentOptions(crop=[0.5, 1.0], horizontal_flip=0.5, flip_about=0, noise=0.1)
    return ImageDataset(
        ReadPictures(reader, form), reader, numbers=numbers, targets=numbers[:, None].astype(np.float32),
        augment=Augmentation(options, seed=3) if augment else None,
    )  # fmt: skip


def test_the_sampler_says_which_epoch_a_batch_belongs_to() -> None:
    sampler = EpochBatchSampler(6, batch_size=4, shuffle=False)
    sampler.set_epoch(3)
    assert list(sampler) == [(3, [0, 1, 2, 3]), (3, [4, 5])]
    batches = iter(sampler)
    next(batches)
    sampler.set_epoch(4)  # Lightning fetches ahead
    assert next(batches)[0] == 3


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_change_nothing(workers: int, bits: int) -> None:
    data, sampler = dataset(bits=bits, augment=True), EpochBatchSampler(12, batch_size=5, shuffle=True)
    epochs = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        alone, helped = list(Loader(data, sampler)), list(Loader(data, sampler, workers=workers))
        for a, b in zip(alone, helped, strict=True):
            assert torch.equal(a.images, b.images) and torch.equal(a.targets, b.targets) and torch.equal(a.ids, b.ids)
            assert b.images.is_contiguous(memory_format=torch.channels_last)
        epochs.append({int(n): image for batch in alone for n, image in zip(batch.ids, batch.images, strict=True)})
    assert not any(torch.equal(epochs[0][n], epochs[1][n]) for n in range(12))


def test_augmenting_leaves_the_data_set_as_it_was() -> None:
    data: Any = dataset(augment=True)
    targets, picture = data.targets.copy(), data.picture(4)
    for epoch in range(4):
        data[epoch, range(12)]
    assert np.array_equal(data.targets, targets) and np.array_equal(data.picture(4), picture)


def test_names_and_pictures_are_those_of_the_samples() -> None:
    data = dataset()
    assert (len(data), data.name(0), data.name(11)) == (12, "made 11", "made 0")
    batch = data[0, [3]]
    assert np.array_equal(batch.images[0].permute(1, 2, 0).numpy(), data.picture(3))
    assert (batch.targets.tolist(), batch.ids.tolist()) == ([[8.0]], [3])


def test_numbers_and_targets_have_to_fit() -> None:
    reader = MadeSource(3).reader
    with pytest.raises(ValueError, match="3 pictures, 2 rows of targets"):
        ImageDataset(
            ReadPictures(reader, PixelForm((8, 6))), reader, numbers=np.arange(3), targets=np.zeros((2, 1), np.float32)
        )
