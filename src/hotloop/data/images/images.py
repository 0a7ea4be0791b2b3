"""The data module of every image model: a source of pictures in, batches of whole numbers out."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.data.images.augment import Augmentation, AugmentOptions
from hotloop.data.images.batch import ImageBatch
from hotloop.data.images.cache import KINDS, name_of
from hotloop.data.images.dataset import EpochBatchSampler, ImageDataset
from hotloop.data.images.form import CHANNELS, FITS, picture_region, picture_size
from hotloop.data.images.opening import Opened, open_pictures, rows_of_splits
from hotloop.data.images.room import size_text
from hotloop.data.images.scale import NORMALISATIONS, Scale, pixel_scale, target_scale
from hotloop.data.images.source import SPLITS, ImageSource
from hotloop.data.images.splitting import divide
from hotloop.data.loading import BatchDataModule, LoaderOptions, check_number
from hotloop.data.processes import cores
from hotloop.errors import UserError

log = logging.getLogger(__name__)

_LISTED = 20  # unreadable pictures named in the report
_QUICK_SECONDS = 0.003  # making a batch; handing one over from a worker costs about as much
_HAND_OVER = 1e9  # bytes a second
_MOST_WORKERS = 8
_SHORT_EPOCH = 0.5  # seconds of making batches; starting workers costs about as much


class ImageDataModule(BatchDataModule):
    """Pictures with numbers to predict, decoded once where there is room.

    The Trainer must be made with `use_distributed_sampler=False`: the samplers know their rank.

    Args:
        source: where pictures and targets come from (`ImageSource`).
        size: pixels a side, or [height, width].
        region: part of each picture that counts: [top, left, bottom, right] as shares of its sides.
        fit, channels: see `PixelForm`.
        normalize: mean and deviation of the pixels that the model sees as 0 and 1: those of the training pictures
            (dataset), of ImageNet (imagenet), 0.5 and 0.5 (half), or 0 and 1 (none).
        augment: see `AugmentOptions`; training pictures only.
        cache: keep decoded pictures on disk, in memory (ram) or not (none); auto = disk if they take at most half of
            what is free there, else ram if they take at most a quarter of that, else none.
        cache_dir: folder of all caches.
        verify: with `cache=none`, find unreadable pictures at the start by decoding all (decode, remembered), by
            their headers (header), or not (none). A cache finds them while it is built.
        on_error: what an unreadable picture does: fail = stop, with all of them listed; skip = go without them.
        split: how rows are divided where the source has not done so: random | ordered (the last rows are the test
            set, those before them validation: for frames of a video).
        valid_size, test_size: share (below 1) or number of the rows in each; 0 = none.
        split_seed: another number divides the rows otherwise. Not `seed`: runs must be measured on the same pictures.
        batch_size: pictures in a training batch; one that would be alone at the end joins the batch before.
        eval_batch_size: pictures in a validation or test batch; null = `batch_size`.
        num_workers: loader processes; auto = none where a batch is quickly made, else as many as the cores allow.
        persistent_workers, prefetch_factor: as in DataLoader; null for its best use. Dropped without workers.
        pin_memory: "auto" pins where a CUDA device waits for the batch.
        prepare_workers: processes that decode for the cache; auto = as many as pay.
        seed: decides, with the epoch, the order of the training batches and what augmentation does.
    """

    kind = "images"

    def __init__(
        self,
        *,
        source: ImageSource,
        size: int | Sequence[int] = 224,
        region: Sequence[float] | None = None,
        fit: str = "stretch",
        channels: str = "rgb",
        normalize: str = "dataset",
        augment: Mapping[str, Any] | None = None,
        cache: str = "auto",
        cache_dir: str | Path = "data/cache",
        verify: str = "decode",
        on_error: str = "fail",
        split: str = "random",
        valid_size: float = 0.1,
        test_size: float = 0.1,
        split_seed: int = 0,
        batch_size: int = 32,
        eval_batch_size: int | None = None,
        num_workers: int | str = "auto",
        persistent_workers: bool | None = None,
        prefetch_factor: int | None = None,
        pin_memory: bool | str = "auto",
        prepare_workers: int | str = "auto",
        seed: int = 0,
    ) -> None:
        super().__init__(
            LoaderOptions(
                num_workers=num_workers,
                persistent_workers=persistent_workers,
                prefetch_factor=prefetch_factor,
                pin_memory=pin_memory,
                seed=seed,
            )
        )
        check_number("batch_size", batch_size, 1)
        check_number("eval_batch_size", eval_batch_size, 1)
        check_number("prepare_workers", None if prepare_workers == "auto" else prepare_workers, 1)
        check_number("split_seed", split_seed, 0)
        for name, value, known in (
            ("fit", fit, FITS),
            ("channels", channels, tuple(CHANNELS)),
            ("normalize", normalize, NORMALISATIONS),
            ("cache", cache, ("auto", *KINDS)),
            ("verify", verify, ("decode", "header", "none")),
            ("on_error", on_error, ("fail", "skip")),
            ("split", split, ("random", "ordered")),
        ):
            if value not in known:
                raise UserError(f"data.{name} must be {', '.join(known[:-1])} or {known[-1]}, got {value!r}")
        self.batch_size, self.eval_batch_size = batch_size, eval_batch_size
        self._source, self._normalize, self._cache_dir = source, normalize, Path(cache_dir).expanduser()
        self._opening: dict[str, Any] = {
            "size": picture_size(size, "data.size"),
            "region": picture_region(region, "data.region"),
            "fit": fit,
            "channels": channels,
            "cache": cache,
            "cache_dir": self._cache_dir,
            "verify": verify,
            "on_error": on_error,
            "workers": None if prepare_workers == "auto" else int(prepare_workers),
        }
        self._dividing: dict[str, Any] = {
            "how": split,
            "valid_size": valid_size,
            "test_size": test_size,
            "seed": split_seed,
        }
        self._augment = AugmentOptions.of(augment)
        if CHANNELS[channels] == 1 and (self._augment.saturation or self._augment.hue):
            raise UserError("data.augment.saturation and data.augment.hue need data.channels=rgb")
        self._rows: dict[str, NDArray[np.int64]] = {}
        self._opened: Opened | None = None

    @staticmethod
    def expected_facts(options: Mapping[str, Any]) -> dict[str, int]:
        """What can be said of `facts` before the source is opened. Raises UserError.

        Args:
            options: those of this class, as in the configuration.
        """
        height, width = picture_size(options.get("size", 224), "data.size")
        channels = CHANNELS.get(options.get("channels", "rgb"), 3)
        return {"outputs": 1, "channels": channels, "height": height, "width": width}

    def prepare_data(self) -> None:
        """Fill the cache. Lightning calls this on one process of each machine."""
        self.setup()

    def setup(self, stage: str | None = None) -> None:
        """Open the source and the cache (and fill it where nobody has)."""
        self._resume = {}
        if self._opened is None:
            opened = open_pictures(self._source, **self._opening)
            self._rows = rows_of_splits(opened, divide(opened.table, **self._dividing))
            augment = Augmentation(self._augment, seed=self._loading.seed) if self._augment.active else None
            with np.errstate(over="ignore"):  # told by `target_scale`
                targets = opened.table.targets.astype(np.float32)
            self._datasets = {
                split: ImageDataset(
                    opened.pictures,
                    opened.reader,
                    numbers=rows,
                    targets=targets[rows],
                    augment=augment if split == "train" else None,
                )
                for split, rows in self._rows.items()
            }
            self._opened = opened

    @property
    def facts(self) -> dict[str, int]:
        """What a model must know of the data, after `setup`."""
        opened = self.opened
        height, width, channels = opened.form.shape
        return {"outputs": len(opened.table.names), "channels": channels, "height": height, "width": width}

    def splits(self) -> tuple[str, ...]:
        """Those of "train", "valid" and "test" that exist, after `setup`."""
        return tuple(split for split in SPLITS if split in self._datasets and self.opened)

    def heaviest_batch(self, size: int) -> ImageBatch:
        """The first `size` training pictures; a step needs as much memory for any others."""
        return self._datasets["train"][0, range(size)]

    def dataset(self, split: str) -> ImageDataset | None:
        """The pictures of "train", "valid" or "test", or None where the split does not exist."""
        return self._datasets[split] if split in self.splits() else None

    def for_task(self) -> dict[str, Any]:
        """Plain values that the task needs, by the name of its argument, after `setup`."""
        opened = self.opened
        return {
            "target_names": list(opened.table.names),
            "target_mean": self._target_scale.mean,
            "target_std": self._target_scale.std,
            "pixel_mean": self._pixel_scale.mean,
            "pixel_std": self._pixel_scale.std,
            "pixel_max": opened.form.largest,
        }

    def saved(self) -> dict[str, Any]:
        """Plain values that let a checkpoint stand alone: the form of pictures, and the scales of both sides."""
        opened = self.opened
        return {
            "kind": self.kind,
            "targets": {"names": list(opened.table.names), **self._target_scale._asdict()},
            "pixels": {**opened.form.saved(), **self._pixel_scale._asdict()},
        }

    def summary(self) -> dict[str, Any]:
        """Plain values for the start message and the report."""
        opened = self.opened
        cache = opened.cache
        return {
            "pictures": {split: len(self._datasets[split]) for split in self.splits()},
            "batch_size": self.batch_size,
            "skipped": len(opened.broken),
            "skipped_names": [opened.reader.name(int(number)) for number in opened.broken[:_LISTED]],
            "targets": list(opened.table.names),
            "targets_mean": self._target_scale.mean,
            "targets_std": self._target_scale.std,
            "size": list(opened.form.size),
            "channels": opened.form.channels,
            "bits": opened.form.bits,
            "cache": {
                "kind": opened.kind,
                "path": str(cache.path) if cache is not None and cache.path is not None else None,
                "mb": round(cache.bytes / 1e6, 1) if cache is not None else 0.0,
                "seconds": cache.seconds if cache is not None else 0.0,
            },
        }

    def description(self) -> dict[str, str]:
        """Lines of the start message, by name."""
        facts, opened = self.summary(), self.opened
        counts = " / ".join(f"{facts['pictures'].get(split, 0):,}" for split in SPLITS)
        skipped = f", {facts['skipped']:,} unreadable ones skipped" if facts["skipped"] else ""
        kept = "decoded in each epoch"
        if opened.cache is not None:
            where = "in memory" if opened.cache.path is None else f"on disk, {opened.cache.path}"
            kept = f"{size_text(opened.cache.bytes)} {where}"
        targets = self._datasets["train"].targets
        ranges = zip(facts["targets"], targets.min(axis=0), targets.max(axis=0), *self._target_scale, strict=True)
        lines = {
            "data": f"{counts} pictures (train / valid / test){skipped}",
            "pictures": f"{facts['size'][0]}×{facts['size'][1]} {facts['channels']}, {facts['bits']} bits; {kept}",
            "targets": "; ".join(
                f"{name} {low:.4g} to {high:.4g} (mean {mean:.4g}, deviation {std:.4g})"
                for name, low, high, mean, std in ranges
            ),
        }
        if active := self._augment.active:
            lines["augmentation"] = ", ".join(f"{name} {value}" for name, value in active.items())
        return lines

    @property
    def opened(self) -> Opened:
        """Table, reader and pictures of all splits, after `setup`."""
        if self._opened is None:
            raise RuntimeError("call prepare_data() and setup() first")
        return self._opened

    @cached_property
    def _target_scale(self) -> Scale:
        opened = self.opened
        return target_scale(opened.table.names, opened.table.targets[self._rows["train"]])

    @cached_property
    def _pixel_scale(self) -> Scale:
        opened = self.opened
        numbers = self._datasets["train"].numbers
        return pixel_scale(
            self._normalize,
            opened.pictures,
            numbers,
            opened.form,
            memo=self._cache_dir / "pixels.json",
            key=lambda: name_of(opened.reader, opened.form),
        )

    def _sampler(self, split: str) -> EpochBatchSampler:
        rank, world_size = self._ranks()
        training = split == "train"
        return EpochBatchSampler(
            len(self._datasets[split]),
            batch_size=self.batch_size if training else self.eval_batch_size or self.batch_size,
            shuffle=training,
            seed=self._loading.seed,
            rank=rank,
            world_size=world_size,
            at_least_two=training,
        )

    def _auto_workers(self, split: str) -> int:
        """None where a batch is made as quickly as a worker could hand it over, or an epoch is over in no time."""
        dataset, most = self._datasets[split], _most_workers(self._device(), self._ranks_here())
        ids = range(min(len(dataset), self.batch_size))
        seconds = min(_seconds_of(dataset, ids) for _ in range(2))
        quick = seconds < _QUICK_SECONDS + len(ids) * self.opened.form.bytes / _HAND_OVER
        short = seconds * len(dataset) / len(ids) < _SHORT_EPOCH
        workers = 0 if quick or short else most
        if workers or split == "train":
            said = "data.num_workers=auto → %d for %s: %d pictures take %.1f ms"
            log.info(said, workers, split, len(ids), 1000 * seconds)
        return workers


def _seconds_of(dataset: ImageDataset, ids: Sequence[int]) -> float:
    """Time to make one batch."""
    start = time.perf_counter()
    dataset[0, ids]
    return time.perf_counter() - start


def _most_workers(device: str, ranks: int) -> int:
    """Loader processes of one of `ranks` on this machine. On a CPU most cores are the model's."""
    share = cores() // ranks
    return min(share if device != "cpu" else max(share // 4, 1), _MOST_WORKERS) if cores() > 1 else 0
