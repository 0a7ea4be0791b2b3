"""E22: bucketing on several ranks: full coverage, equal steps, an order that seed and epoch decide."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import LightningModule, Trainer

from hotloop.data.text.batch import Batch
from hotloop.data.text.batching import BucketBatchSampler
from hotloop.data.text.bitext import BitextDataModule
from hotloop.data.text.corpora import BitextFolder

PAIRS, BATCH = 11, 2


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_e22_samplers_of_all_ranks_cover_the_epoch(world_size: int) -> None:
    lengths = np.array([3, 9, 4, 4, 7, 3, 12, 5, 9, 3, 6], dtype=np.int32)
    epochs = []
    for epoch in range(2):
        ranks = []
        for rank in range(world_size):
            sampler = BucketBatchSampler(
                lengths, lengths, batch_size=BATCH, shuffle=True, seed=1, rank=rank, world_size=world_size
            )
            sampler.set_epoch(epoch)
            ranks.append(list(sampler))
        seen = [number for rank in ranks for batch in rank for number in batch]
        assert set(seen) == set(range(PAIRS))
        assert len(seen) - PAIRS <= world_size * BATCH - 1
        assert len({len(rank) for rank in ranks}) == 1
        epochs.append(ranks)
    assert epochs[0] != epochs[1]


class Watcher(LightningModule):
    """Writes the sample numbers of each step of its rank to a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.folder = folder

    def _note(self, name: str, batch: Batch) -> None:
        path = self.folder / f"{name}.{self.global_rank}of{self.trainer.world_size}"
        with open(path, "a") as file:
            file.write(json.dumps([self.current_epoch, batch.ids.tolist()]) + "\n")

    def training_step(self, batch: Batch, step: int) -> torch.Tensor:
        self._note("train", batch)
        return self.weight.sum()

    def validation_step(self, batch: Batch, step: int) -> None:
        if not self.trainer.sanity_checking:
            self._note("valid", batch)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(folder: Path, devices: int) -> dict[str, list[list[Any]]]:
    for stem, count in (("train", PAIRS), ("valid", 5)):
        for language in ("fr", "en"):
            text = "".join(f"{stem} " + "mot " * (n * 5 % 8) + f"{n}\n" for n in range(count))
            (folder / f"{stem}.{language}").write_text(text)
    data = BitextDataModule(
        corpus=BitextFolder(dir=folder, test=None), test_size=0, batch_size=BATCH, seed=3,
        tokenizer={"kind": "word", "min_frequency": 1}, cache_dir=folder / "cache",
    )  # fmt: skip
    trainer = Trainer(
        accelerator="cpu", devices=devices, strategy="ddp_fork" if devices > 1 else "auto", max_epochs=2,
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        use_distributed_sampler=False,
    )  # fmt: skip
    trainer.fit(Watcher(folder), datamodule=data)
    names = [f"{stem}.{rank}of{devices}" for stem in ("train", "valid") for rank in range(devices)]
    return {name: [json.loads(line) for line in (folder / name).read_text().split("\n")[:-1]] for name in names}


@pytest.mark.filterwarnings("ignore")
def test_e22_two_real_ranks_see_what_one_sees(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two", "again")]
    for folder in folders:
        folder.mkdir()
    one, two, again = (fit(folder, devices) for folder, devices in zip(folders, (1, 2, 2), strict=True))
    assert two == again
    assert len(two["train.0of2"]) == len(two["train.1of2"]) == 2 * 3
    assert len(one["train.0of1"]) == 2 * 6
    for epoch in range(2):
        for run, ranks in ((one, 1), (two, 2)):
            seen = [
                number
                for rank in range(ranks)
                for at, numbers in run[f"train.{rank}of{ranks}"]
                for number in numbers
                if at == epoch
            ]
            assert sorted(seen) == list(range(PAIRS))
            valid = [n for rank in range(ranks) for _, numbers in run[f"valid.{rank}of{ranks}"] for n in numbers]
            assert set(valid) == set(range(5))
    assert [n for e, n in two["train.0of2"] if e == 0] != [n for e, n in two["train.0of2"] if e == 1]
    assert not {tuple(n) for e, n in two["train.0of2"] if e == 0} & {tuple(n) for e, n in two["train.1of2"] if e == 0}
