"""E24: a data set is a few arrays that forked workers never write to, whatever the number of samples."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import Dataset, get_worker_info

from hotloop.data.images.images import ImageDataModule
from hotloop.data.loading import Loader
from hotloop.data.sampling import BatchSampler
from hotloop.data.text.batching import BucketBatchSampler
from hotloop.data.text.dataset import BitextDataset
from hotloop.data.text.preparing.store import TokenRows, TokenWriter
from tests.data.images.made_pictures import MadeReader, MadeSource

PAIRS = 300_000


class Watched(Dataset[Any]):
    """A data set whose batches come with the number of the worker and, now and then, the bytes that are its own.

    Of the first ten batches of each worker, and of every fiftieth: counting takes longer than making a batch.
    """

    def __init__(self, dataset: Dataset[Any]) -> None:
        self.dataset, self.given = dataset, 0

    def __getitem__(self, key: Any) -> tuple[int, int, Any]:
        batch = self.dataset[key]
        worker = get_worker_info()
        assert worker is not None
        self.given += 1
        return worker.id, private_bytes() if self.given <= 10 or self.given % 50 == 0 else 0, batch


def private_bytes() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().split("\n")
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


def rows(stem: Path, lengths: np.ndarray) -> TokenRows:
    writer = TokenWriter(stem, vocabulary_size=8_000)
    writer.append(np.random.default_rng(0).integers(4, 8_000, int(lengths.sum())), lengths)
    writer.close()
    return TokenRows.open(stem)


def growth(folder: Path) -> dict[int, int]:
    """Bytes of its own that each of two workers holds at the end of epoch 3 above those after 20 batches."""
    lengths = np.random.default_rng(1).integers(5, 40, PAIRS)
    data = BitextDataset(rows(folder / "source", lengths), rows(folder / "target", lengths + 1))
    sampler = BucketBatchSampler(data.source.lengths, data.target.lengths, batch_size=250, shuffle=True)
    measured = private_memory(data, sampler)
    early = {worker: private for epoch, step, worker, private in measured if epoch == 0 and step < 20}
    late = {worker: private for _, _, worker, private in measured}
    return {worker: late[worker] - early[worker] for worker in early}


def private_memory(data: Dataset[Any], sampler: BatchSampler) -> list[tuple[int, int, int, int]]:
    """(epoch, step, worker, bytes) of some of the batches that two workers make in three epochs."""
    loader = Loader(Watched(data), sampler, workers=2, persistent_workers=True)
    measured = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        measured += [(epoch, step, worker, private) for step, (worker, private, _) in enumerate(loader) if private]
    return measured


class DrawnReader(MadeReader):
    """Pictures that cost little to draw."""

    def read(self, number: int, at_least: tuple[int, int] | None = None) -> np.ndarray:
        return np.full((*self.shape, 3), number % 256, dtype=np.uint8)


def image_memory(folder: Path, cache: str, count: int) -> dict[int, list[int]]:
    """The most that each of two workers has for itself in 20 batches, in epoch 1 and in epoch 3, in bytes."""
    source = MadeSource(count, shape=(16, 16))
    source.reader.__class__ = DrawnReader
    data = ImageDataModule(
        source=source, size=16, cache=cache, cache_dir=folder, augment={"horizontal_flip": 0.5}, batch_size=50,
        valid_size=0, test_size=0, prepare_workers=1,
    )  # fmt: skip
    data.setup()
    dataset = data.dataset("train")
    assert dataset is not None
    sampler = data._sampler("train")
    measured = private_memory(dataset, sampler)
    parts = (
        [m for m in measured if m[0] == 0 and m[1] < 20],
        [m for m in measured if m[0] == 0],
        [m for m in measured if m[0] == 2],
    )
    return {
        worker: [max(private for _, _, number, private in part if number == worker) for part in parts]
        for worker in (0, 1)
    }


def in_a_process_of_its_own(expression: str) -> Any:
    """What `expression` of this module gives.

    Forked from a process that has run a thousand tests, a worker allocates in the holes of that heap, and each page
    it touches there first becomes its own, whatever the data set does.
    """
    code = f"import json; from {__name__} import *; print(json.dumps({expression}))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="needs Linux's smaps_rollup")
def test_e24_workers_do_not_grow(tmp_path: Path) -> None:
    grown = in_a_process_of_its_own(f"growth(Path(r'{tmp_path}'))")
    size = sum(path.stat().st_size for path in tmp_path.glob("*.npy"))
    assert sorted(grown) == ["0", "1"]
    assert all(more <= 0.1 * size for more in grown.values()), grown


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="needs Linux's smaps_rollup")
@pytest.mark.parametrize(("cache", "count"), [("none", 100_000), ("disk", 20_000)])
def test_e24_workers_of_image_sets_do_not_grow(tmp_path: Path, cache: str, count: int) -> None:
    memory = in_a_process_of_its_own(f"image_memory(Path(r'{tmp_path}'), '{cache}', {count})")
    assert sorted(memory) == ["0", "1"]
    for early, first, last in memory.values():
        # The batches under way take up to 1.5 MB; touching a Python object for each of 100,000 pictures, 6 MB.
        assert last - early <= 4e6, memory
        assert last - first <= 2e6, memory


def test_e24_the_data_set_holds_arrays_only(tmp_path: Path) -> None:
    data = BitextDataset(*(rows(tmp_path / side, np.full(1_000, 7)) for side in ("source", "target")))
    for side in (data.source, data.target):
        arrays = [value for value in vars(side).values() if not isinstance(value, Path)]
        assert all(isinstance(value, np.ndarray) for value in arrays)
        assert len(arrays) == 2
