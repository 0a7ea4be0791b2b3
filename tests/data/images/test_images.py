"""The data module: options in, batches and facts out."""

import csv
import json
import logging
import os
import signal
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from PIL import Image

from hotloop.data.images import images as module
from hotloop.data.images.batch import ImageBatch
from hotloop.data.images.dataset import ImageDataset
from hotloop.data.images.folder import ImageFolder
from hotloop.data.images.form import PixelForm
from hotloop.data.images.images import ImageDataModule
from hotloop.data.images.reading import read_picture
from hotloop.errors import UserError
from tests.data.images.made_pictures import MadeSource


def ready(tmp_path: Path, source: Any = None, **options: Any) -> ImageDataModule:
    given = {"size": [8, 6], "batch_size": 4, "cache_dir": tmp_path / "cache", **options}
    data = ImageDataModule(source=source or MadeSource(30), **given)
    data.prepare_data()
    data.setup("fit")
    return data


def batches(data: ImageDataModule, split: str = "train", epoch: int = 0) -> list[ImageBatch]:
    loader: Any = {"train": data.train_dataloader, "valid": data.val_dataloader, "test": data.test_dataloader}[split]()
    if split == "train":
        loader.sampler.set_epoch(epoch)
    return list(loader)


@pytest.mark.parametrize("cache", ["disk", "ram", "none", "auto"])
def test_batches_hold_pictures_as_promised(tmp_path: Path, cache: str) -> None:
    source = MadeSource(30, targets=np.arange(60.0).reshape(30, 2))
    data = ready(tmp_path, source, cache=cache, valid_size=5, test_size=3)
    form = PixelForm((8, 6))
    seen = []
    for split, count in (("train", 22), ("valid", 5), ("test", 3)):
        dataset = data.dataset(split)
        assert dataset is not None and len(dataset) == count
        numbers = []
        for batch in batches(data, split):
            assert batch.images.dtype == torch.uint8 and batch.targets.dtype == torch.float32
            assert batch.images.shape[1:] == (3, 8, 6) and batch.targets.shape == (len(batch), 2)
            assert batch.images.is_contiguous(memory_format=torch.channels_last)
            for row, number in enumerate(batch.ids.tolist()):
                target = int(batch.targets[row, 0])
                picture = form.apply(source.reader.read(target // 2))
                assert np.array_equal(batch.images[row].permute(1, 2, 0).numpy(), picture)
                assert np.array_equal(dataset.picture(number), picture)
                assert dataset.name(number) == f"made {target // 2}"
                numbers.append(number)
                seen.append(target)
        assert sorted(numbers) == list(range(count))
    assert sorted(seen) == list(range(0, 60, 2))


@pytest.mark.parametrize("channels", ["rgb", "grey"])
def test_sixteen_bits_arrive_whole(tmp_path: Path, channels: str) -> None:
    source = MadeSource(9, shape=(8, 6), bits=16)
    data = ready(tmp_path, source, valid_size=0, test_size=0, channels=channels)
    (batch, *_) = batches(data)
    assert batch.images.dtype == torch.int32
    assert batch.images.is_contiguous(memory_format=torch.channels_last)
    assert int(batch.images.max()) > 60_000
    dataset = data.dataset("train")
    assert dataset is not None and dataset.picture(0).dtype == np.uint16
    assert data.for_task()["pixel_max"] == 65535
    assert data.saved()["pixels"]["bits"] == 16
    assert all(0.4 < mean < 0.6 for mean in data.for_task()["pixel_mean"])


def test_facts_task_and_checkpoint_get_what_they_need(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(5, 2, size=(30, 2))
    data = ready(tmp_path, MadeSource(30, targets=values), valid_size=5, test_size=0, channels="grey", normalize="half")
    assert data.facts == {"outputs": 2, "channels": 1, "height": 8, "width": 6}
    dataset = data.dataset("train")
    assert dataset is not None
    training = values[dataset.numbers]
    told = data.for_task()
    assert told["target_names"] == ["t0", "t1"]
    assert told["target_mean"] == pytest.approx(training.mean(axis=0))
    assert told["target_std"] == pytest.approx(training.std(axis=0))
    assert (told["pixel_mean"], told["pixel_std"], told["pixel_max"]) == ([0.5], [0.5], 255)
    saved = data.saved()
    assert saved["kind"] == "images"
    assert saved["targets"] == {"names": ["t0", "t1"], "mean": told["target_mean"], "std": told["target_std"]}
    assert PixelForm.from_saved(saved["pixels"]) == PixelForm((8, 6), channels="grey")
    assert json.loads(json.dumps(saved)) == saved
    assert ready(tmp_path, MadeSource(30, targets=values), valid_size=5, test_size=0, channels="grey",
                 normalize="half").saved() == saved  # fmt: skip


def test_summary_and_description_are_for_people(tmp_path: Path) -> None:
    data = ready(tmp_path, cache="disk", valid_size=5, test_size=0, augment={"crop": [0.8, 1.0], "rotate": 0})
    summary = data.summary()
    assert summary["pictures"] == {"train": 25, "valid": 5}
    assert (summary["skipped"], summary["targets"], summary["size"]) == (0, ["t0"], [8, 6])
    assert summary["cache"]["kind"] == "disk" and Path(summary["cache"]["path"]).is_dir()
    assert json.loads(json.dumps(summary)) == summary
    lines = data.description()
    assert lines["data"] == "25 / 5 / 0 pictures (train / valid / test)"
    assert lines["pictures"].startswith("8×6 rgb, 8 bits; 4.3 kB on disk, ")
    assert lines["augmentation"] == "crop [0.8, 1.0]"
    assert lines["targets"].startswith("t0 0 to 29 (mean 1")
    none = ready(tmp_path, cache="none").summary()["cache"]
    assert none == {"kind": "none", "path": None, "mb": 0.0, "seconds": 0.0}
    assert ready(tmp_path, cache="ram").description()["pictures"] == "8×6 rgb, 8 bits; 4.3 kB in memory"


def test_what_the_model_is_told_beforehand_is_what_it_gets(tmp_path: Path) -> None:
    options = {"size": [8, 6], "channels": "grey"}
    assert ImageDataModule.expected_facts(options) == ready(tmp_path, channels="grey").facts
    assert ImageDataModule.expected_facts({}) == {"outputs": 1, "channels": 3, "height": 224, "width": 224}
    with pytest.raises(UserError, match=r"data\.size"):
        ImageDataModule.expected_facts({"size": "big"})


def test_before_setup_it_says_what_to_call(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"setup\(\)"):
        _ = ImageDataModule(source=MadeSource()).facts


def test_splits_of_the_source_are_kept_and_missing_ones_divided(tmp_path: Path) -> None:
    split = np.array([0] * 20 + [2] * 10, dtype=np.int8)
    data = ready(tmp_path, MadeSource(30, split=split), valid_size=4, test_size=7)
    assert data.summary()["pictures"] == {"train": 16, "valid": 4, "test": 10}
    test = data.dataset("test")
    assert test is not None and test.numbers.tolist() == list(range(20, 30))
    alone = ready(tmp_path, valid_size=0, test_size=0)
    assert alone.splits() == ("train",)
    assert alone.val_dataloader() == [] and alone.test_dataloader() == []
    assert alone.dataset("test") is None


def test_the_division_follows_its_own_seed(tmp_path: Path) -> None:
    def valid(**options: Any) -> list[int]:
        dataset = ready(tmp_path, valid_size=9, **options).dataset("valid")
        assert dataset is not None
        return dataset.numbers.tolist()

    assert valid(seed=1) == valid(seed=2) != valid(split_seed=1)
    assert valid(split="ordered") == list(range(18, 27))  # the last tenth is the test set


# ---- pictures that cannot be read ----------------------------------------------------------------------


@pytest.mark.parametrize("cache", ["disk", "ram"])
def test_pictures_that_cannot_be_read_stop_the_run_with_their_names(tmp_path: Path, cache: str) -> None:
    for _ in range(2):  # found, then remembered
        with pytest.raises(UserError) as told:
            ready(tmp_path, MadeSource(30, bad=tuple(range(3, 11))), cache=cache)
        message = str(told.value)
        assert "8 of 30 pictures cannot be read: made 3: it is truncated; made 4" in message
        assert "and 3 more" in message and "data.on_error=skip" in message and "\n" not in message
        (listed,) = (tmp_path / "cache").glob("unreadable-*.csv")
        assert str(listed) in message
        rows = list(csv.reader(listed.read_text().splitlines()))
        assert rows[0] == ["picture", "reason"] and rows[8] == ["made 10", "it is truncated"]


def test_pictures_that_cannot_be_read_are_skipped_counted_and_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = ready(tmp_path, MadeSource(40, bad=(3, 4, 39)), cache="disk", on_error="skip", valid_size=5, test_size=5)
    whole = ready(tmp_path, MadeSource(40), cache="disk", valid_size=5, test_size=5)
    assert "3 of 40 pictures cannot be read: made 3: it is truncated; made 4" in caplog.text
    summary = data.summary()
    assert sum(summary["pictures"].values()) == 37
    assert (summary["skipped"], summary["skipped_names"]) == (3, ["made 3", "made 4", "made 39"])
    assert "3 unreadable ones skipped" in data.description()["data"]
    seen: list[int] = []
    for split in data.splits():
        mine, theirs = data.dataset(split), whole.dataset(split)
        assert mine is not None and theirs is not None
        assert set(mine.numbers.tolist()) == set(theirs.numbers.tolist()) - {3, 4, 39}  # no other picture moves
        seen += [int(target) for batch in batches(data, split) for target in batch.targets[:, 0]]
    assert sorted(seen) == sorted(set(range(40)) - {3, 4, 39})


def test_a_set_without_one_good_picture_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="5 of 5 pictures cannot be read"):
        ready(tmp_path, MadeSource(5, bad=tuple(range(5))), cache="disk", on_error="skip")
    split = np.array([0, 0, 1], dtype=np.int8)
    with pytest.raises(UserError, match="no picture that can be read is left to train on"):
        ready(tmp_path, MadeSource(3, bad=(0, 1), split=split), cache="disk", on_error="skip", test_size=0)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """12 JPEGs with a table; numbers 4 (cut off) and 7 (empty) cannot be read, 4 only by decoding."""
    place = tmp_path / "pictures"
    place.mkdir()
    chance = np.random.default_rng(0)
    lines = ["image,target"]
    for number in range(12):
        small = Image.fromarray(chance.integers(0, 256, (5, 6, 3)).astype(np.uint8))
        small.resize((48, 40), Image.Resampling.BICUBIC).save(place / f"{number}.jpg", quality=95)
        lines.append(f"{number}.jpg,{number}")
    content = (place / "4.jpg").read_bytes()
    (place / "4.jpg").write_bytes(content[: len(content) // 2])
    (place / "7.jpg").write_bytes(b"")
    (place / "targets.csv").write_text("\n".join(lines) + "\n")
    yield place


def files(folder: Path) -> ImageFolder:
    return ImageFolder(dir=folder, cache_dir=folder / "hashes")


@pytest.mark.parametrize(("cache", "verify"), [("disk", "decode"), ("ram", "none"), ("none", "decode")])
def test_bad_files_are_found_at_the_start_with_their_rows(
    tmp_path: Path, folder: Path, cache: str, verify: str
) -> None:
    options: dict[str, Any] = {"cache": cache, "verify": verify, "valid_size": 2, "test_size": 2}
    with pytest.raises(
        UserError, match=r"2 of 12 pictures.*4\.jpg \(targets\.csv, line 6\): .*7\.jpg \(targets\.csv, line 9\)"
    ):
        ready(tmp_path, files(folder), **options)
    data = ready(tmp_path, files(folder), **options, on_error="skip")
    assert data.summary()["skipped_names"] == ["4.jpg", "7.jpg"]
    assert sum(data.summary()["pictures"].values()) == 10


def test_headers_alone_find_what_headers_tell_and_the_rest_stops_the_run_later(tmp_path: Path, folder: Path) -> None:
    options: dict[str, Any] = {"cache": "none", "valid_size": 0, "test_size": 0, "on_error": "skip"}
    data = ready(tmp_path, files(folder), verify="header", **options)
    assert data.summary()["skipped_names"] == ["7.jpg"]
    for workers in (0, 1):
        data = ready(tmp_path, files(folder), verify="header", num_workers=workers, **options)
        with pytest.raises(UserError, match=r"^4\.jpg \(targets\.csv, line 6\): .*"):
            list(data.train_dataloader())


@pytest.mark.parametrize("fit", ["stretch", "crop", "pad"])
def test_cached_and_uncached_pictures_are_equal_to_the_bit(shared_data: Path, tmp_path: Path, fit: str) -> None:
    where = shared_data / "image-regression" / "sim-steering"
    lines = (where / "targets.csv").read_text().splitlines()[:61]
    (tmp_path / "targets.csv").write_text("\n".join(lines) + "\n")
    source = ImageFolder(
        dir=where, targets=tmp_path / "targets.csv", target_columns="target", cache_dir=tmp_path / "hashes"
    )
    sets = {
        cache: ready(tmp_path, source, cache=cache, size=[60, 90], fit=fit, valid_size=0, test_size=0, seed=4)
        for cache in ("none", "disk", "ram")
    }
    for other in ("disk", "ram"):
        for a, b in zip(batches(sets["none"]), batches(sets[other]), strict=True):
            assert torch.equal(a.images, b.images) and torch.equal(a.targets, b.targets)
    table, _ = source.open()
    first = next(iter(batches(sets["none"])))
    name = lines[1 + int(first.ids[0])].split(",")[0]
    path = next(path for path in (where / name, where / "images" / name) if path.exists())
    wanted = PixelForm((60, 90), fit=fit).apply(read_picture(path, at_least=(60, 90)))
    assert np.array_equal(first.images[0].permute(1, 2, 0).numpy(), wanted)
    assert float(first.targets[0, 0]) == np.float32(table.targets[int(first.ids[0]), 0])


def test_the_cache_follows_content_not_dates(tmp_path: Path, folder: Path) -> None:
    def cache_of(**options: Any) -> Any:
        return ready(tmp_path, files(folder), cache="disk", on_error="skip", **options).summary()["cache"]["path"]

    first = cache_of()
    os.utime(folder / "2.jpg", ns=(1, 1))
    assert cache_of() == first
    assert cache_of(size=[6, 8]) != first
    (folder / "2.jpg").write_bytes((folder / "3.jpg").read_bytes())
    assert cache_of() != first


# ---- loaders -------------------------------------------------------------------------------------------


class Watcher(LightningModule):
    """Notes the samples and the pictures of every step."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.folder = folder
        self.seen: list[tuple[int, list[int], int]] = []

    def training_step(self, batch: ImageBatch, step: int) -> torch.Tensor:
        self.seen.append((self.current_epoch, batch.ids.tolist(), int(batch.images.sum())))
        if self.folder is not None:
            with open(self.folder / f"{self.global_rank}of{self.trainer.world_size}", "a") as file:
                file.write(json.dumps(self.seen[-1]) + "\n")
        return self.weight.sum()

    def validation_step(self, batch: ImageBatch, step: int) -> None:
        pass

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class SaveAt(Callback):
    """Saves after one step and stops there."""

    def __init__(self, path: Path, *, epoch: int, step: int) -> None:
        self.path, self.epoch, self.step = path, epoch, step

    def on_train_batch_end(self, trainer: Trainer, module: Any, outputs: Any, batch: Any, step: int) -> None:
        if (trainer.current_epoch, step) == (self.epoch, self.step):
            trainer.save_checkpoint(self.path)
            trainer.should_stop = True


def fit(data: ImageDataModule, watcher: Watcher | None = None, ckpt_path: Path | None = None, **options: Any) -> Any:
    watcher = watcher or Watcher()
    trainer = Trainer(
        **{"accelerator": "cpu", "max_epochs": 2, **options}, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(watcher, datamodule=data, ckpt_path=ckpt_path)
    return watcher.seen, trainer


AUGMENT = {"crop": [0.5, 1.0], "horizontal_flip": 0.5, "noise": 0.1}


@pytest.mark.parametrize("cache", ["disk", "ram"])
def test_two_real_ranks_see_every_picture_as_one_does(tmp_path: Path, cache: str) -> None:
    runs = {}
    for devices in (1, 2):
        place = tmp_path / str(devices)
        place.mkdir()
        data = ImageDataModule(
            source=MadeSource(23), size=[8, 6], batch_size=4, valid_size=0, test_size=0, cache=cache,
            cache_dir=tmp_path / "cache", augment=AUGMENT, num_workers=0, seed=3,
        )  # fmt: skip
        fit(data, Watcher(place), devices=devices, strategy="ddp_fork" if devices > 1 else "auto")
        runs[devices] = {path.name: [json.loads(line) for line in path.open()] for path in place.iterdir()}
    assert set(runs[2]) == {"0of2", "1of2"}
    assert len(runs[2]["0of2"]) == len(runs[2]["1of2"]) == 2 * 3
    for epoch in range(2):
        alone = [number for at, numbers, _ in runs[1]["0of1"] for number in numbers if at == epoch]
        both = [number for rank in runs[2].values() for at, numbers, _ in rank for number in numbers if at == epoch]
        assert sorted(alone) == sorted(set(both)) == list(range(23))
        pictures = [
            sum(total for rank in run.values() for at, _, total in rank if at == epoch) for run in runs.values()
        ]
        if len(both) == 23:
            assert pictures[0] == pictures[1]  # augmented alike on whatever rank


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_that_stops_in_mid_epoch_goes_on_with_what_is_missing(tmp_path: Path, workers: int) -> None:
    def data() -> ImageDataModule:
        return ImageDataModule(
            source=MadeSource(30), size=[8, 6], batch_size=4, valid_size=0, test_size=0, cache="disk",
            cache_dir=tmp_path / "cache", augment=AUGMENT, num_workers=workers, seed=3,
        )  # fmt: skip

    whole, _ = fit(data(), max_epochs=3)
    assert len(whole) == 3 * 8
    stop = SaveAt(tmp_path / "stop.ckpt", epoch=1, step=2)
    assert fit(data(), max_epochs=3, callbacks=[stop])[0] == whole[:11]
    assert fit(data(), ckpt_path=stop.path, max_epochs=3)[0] == whole[11:]


def test_overfitting_sees_the_same_pictures_in_every_epoch(tmp_path: Path) -> None:
    seen, _ = fit(ready(tmp_path, augment=AUGMENT, num_workers=1), overfit_batches=2, max_epochs=3)
    assert len(seen) == 6
    assert [s[1:] for s in seen[:2]] == [s[1:] for s in seen[2:4]] == [s[1:] for s in seen[4:]]


def test_a_single_picture_at_the_end_of_training_joins_others_but_never_in_evaluation(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    data = ready(tmp_path, MadeSource(19), valid_size=5, test_size=5)
    assert sorted(len(batch) for batch in batches(data)) == [4, 5]
    assert "joins the batch before" in caplog.text
    assert [len(batch) for batch in batches(data, "valid")] == [4, 1]
    assert [len(batch) for batch in batches(data, "test")] == [4, 1]


def test_one_picture_is_a_training_set(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = ready(tmp_path, MadeSource(1), valid_size=0, test_size=0)
    assert [len(batch) for batch in batches(data)] == [1]
    assert data.for_task()["target_std"] == [1.0]
    assert "nothing to learn" in caplog.text


def test_evaluation_may_have_batches_of_its_own(tmp_path: Path) -> None:
    data = ready(tmp_path, eval_batch_size=2, valid_size=5)
    assert [len(batch) for batch in batches(data, "valid")] == [2, 2, 1]
    assert max(len(batch) for batch in batches(data)) == 4


def test_workers_come_only_where_they_pay(tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    data = ready(tmp_path)
    assert data.train_dataloader().num_workers == 0  # a gather
    assert "data.num_workers=auto → 0 for train: 4 pictures take" in caplog.text
    monkeypatch.setattr(module, "_seconds_of", lambda dataset, ids: 1.0)
    for cores, device, ranks, workers in (
        (1, "cpu", 1, 0), (2, "cpu", 1, 1), (16, "cpu", 1, 4), (16, "cuda", 1, 8), (16, "cuda", 4, 4), (2, "cpu", 2, 1),
    ):  # fmt: skip
        monkeypatch.setattr(module, "cores", lambda cores=cores: cores)
        assert module._most_workers(device, ranks) == workers
    monkeypatch.setattr(module, "cores", lambda: 2)
    assert data.train_dataloader().num_workers == 1
    monkeypatch.setattr(module, "_seconds_of", lambda dataset, ids: 0.02)
    assert data.train_dataloader().num_workers == 0  # an epoch of 0.12 s
    assert ready(tmp_path, num_workers=1).train_dataloader().num_workers == 1


class Killer(ImageDataset):
    """Its worker dies as if the kernel had killed it."""

    def __getitem__(self, key: Any) -> ImageBatch:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def test_a_dead_worker_is_told_with_the_way_out(tmp_path: Path) -> None:
    data = ready(tmp_path, num_workers=1)
    data._datasets["train"].__class__ = Killer
    with pytest.raises(UserError, match=r"data worker died .*shared memory.*data\.num_workers=0"):
        list(data.train_dataloader())


def test_every_epoch_sees_everything_in_another_order(tmp_path: Path) -> None:
    data = ready(tmp_path)
    epochs = [[batch.ids.tolist() for batch in batches(data, epoch=epoch)] for epoch in (0, 1, 0)]
    assert epochs[0] == epochs[2] != epochs[1]
    assert sorted(chain(*epochs[1])) == list(range(24))


# ---- options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "data.size"),
        ({"size": [8]}, "data.size"),
        ({"fit": "squeeze"}, "data.fit must be stretch, crop or pad"),
        ({"channels": "cmyk"}, "data.channels must be rgb or grey"),
        ({"normalize": "yes"}, "data.normalize"),
        ({"cache": "gpu"}, "data.cache must be auto, disk, ram or none"),
        ({"verify": True}, "data.verify"),
        ({"on_error": "ignore"}, "data.on_error"),
        ({"split": "sorted"}, "data.split"),
        ({"batch_size": 0}, "data.batch_size"),
        ({"eval_batch_size": 0}, "data.eval_batch_size"),
        ({"prepare_workers": 0}, "data.prepare_workers"),
        ({"num_workers": "many"}, "data.num_workers"),
        ({"seed": -1}, "data.seed"),
        ({"split_seed": -1}, "data.split_seed"),
        ({"augment": {"crop": 2}}, "data.augment.crop"),
        ({"augment": {"hue": 0.1}, "channels": "grey"}, "need data.channels=rgb"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ImageDataModule(source=MadeSource(), **options)


def test_omegaconf_options_are_taken(tmp_path: Path) -> None:
    from omegaconf import OmegaConf

    given = OmegaConf.create({"size": [8, 6], "augment": {"crop": [0.8, 1.0], "extra": []}})
    data = ready(tmp_path, size=given.size, augment=given.augment)
    assert data.facts["height"] == 8
    assert batches(data)


def test_a_source_whose_sides_differ_is_our_mistake(tmp_path: Path) -> None:
    source = MadeSource(5)
    source.reader.count = 6
    with pytest.raises(ValueError, match="5 rows of targets, 6 pictures"):
        ready(tmp_path, source)
