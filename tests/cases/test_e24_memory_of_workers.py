"""E24: the data set is a few arrays that forked workers never write to, whatever the number of sentences."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from torch.utils.data import DataLoader, get_worker_info

from hotloop.data.text.batch import Batch
from hotloop.data.text.batching import BucketBatchSampler
from hotloop.data.text.dataset import BitextDataset
from hotloop.data.text.preparing.store import TokenRows, TokenWriter

PAIRS = 300_000


class Watched(BitextDataset):
    """Counts a worker's own memory where the batch's numbers would be."""

    def __getitem__(self, ids: list[int]) -> Batch:  # type: ignore[override]
        batch = super().__getitem__(ids)
        private = next(
            int(line.split()[1])
            for line in Path("/proc/self/smaps_rollup").read_text().split("\n")
            if line.startswith("Private_Dirty")
        )
        worker = get_worker_info()
        assert worker is not None
        batch.ids[0], batch.ids[1] = worker.id, private * 1024
        return batch


def rows(stem: Path, lengths: np.ndarray) -> TokenRows:
    writer = TokenWriter(stem, vocabulary_size=8_000)
    writer.append(np.random.default_rng(0).integers(4, 8_000, int(lengths.sum())), lengths)
    writer.close()
    return TokenRows.open(stem)


def growth(folder: Path) -> dict[int, int]:
    """Bytes of its own that each of two workers holds at the end of epoch 3 above those after 20 batches."""
    lengths = np.random.default_rng(1).integers(5, 40, PAIRS)
    data = Watched(rows(folder / "source", lengths), rows(folder / "target", lengths + 1))
    sampler = BucketBatchSampler(data.source.lengths, data.target.lengths, batch_size=250, shuffle=True)
    loader = DataLoader(data, batch_size=None, sampler=sampler, num_workers=2, persistent_workers=True)
    early: dict[int, int] = {}
    late: dict[int, int] = {}
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for step, batch in enumerate(loader):
            worker, private = batch.ids[:2].tolist()
            if epoch == 0 and step < 20:
                early[worker] = private
            late[worker] = private
    return {worker: late[worker] - early[worker] for worker in early}


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="needs Linux's smaps_rollup")
def test_e24_workers_do_not_grow(tmp_path: Path) -> None:
    # In a process of its own: forked from one that has run a thousand tests, a worker allocates in the holes of
    # that heap, and each page it touches there first becomes its own, whatever the data set does.
    code = f"import json; from {__name__} import *; print(json.dumps(growth(Path(r'{tmp_path}'))))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    grown = json.loads(done.stdout)
    size = sum(path.stat().st_size for path in tmp_path.glob("*.npy"))
    assert sorted(grown) == ["0", "1"]
    assert all(more <= 0.1 * size for more in grown.values()), grown


def test_e24_the_data_set_holds_arrays_only(tmp_path: Path) -> None:
    data = BitextDataset(*(rows(tmp_path / side, np.full(1_000, 7)) for side in ("source", "target")))
    for side in (data.source, data.target):
        arrays = [value for value in vars(side).values() if not isinstance(value, Path)]
        assert all(isinstance(value, np.ndarray) for value in arrays)
        assert len(arrays) == 2
