"""How many pictures a second the loaders give, decoded anew or from a cache, beside a plain loader.

    python benchmarks/image_feed.py [--quick] [--json FILE] [--dir FOLDER] [--targets TABLE] [--size N]

Loaders only, no model: JPEG files of 640×480 (made here, or your own folder) become normalised float32 batches of
224×224. The plain loader is the usual one: Pillow opens and decodes, torchvision resizes, makes tensors and normalises
picture by picture, DataLoader collates. hotloop's gives whole numbers, which are normalised as a batch, as in training.
The first epoch starts with nothing: finding and checking the pictures, building the cache and starting workers count.
The loaders take turns; each figure is the median of its rounds. The files are in the page cache from the beginning.

Ratios are against the plain loader with the same augmentation and as many workers. Where hotloop chooses ("auto"),
the plain loader has what hotloop chooses for decoding, at least one, also where a cache needs none.
"""

import argparse
import json
import logging
import platform
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from hotloop.data.images.folder import ImageFolder
from hotloop.data.images.images import ImageDataModule
from hotloop.errors import UserError
from hotloop.tasks.scaling import Scaling, normalised_pictures

CROP, FLIP, BRIGHTNESS = (0.8, 1.0), 0.5, 0.2  # of augmented pictures: shares of the area, probability, factor 1 ± x
GOAL = 5.0  # of a cache, from epoch 2 on
SHAPES = ((4, 0.5), (12, 0.5), (48, 0.15), (160, 0.15))  # of made pictures: patches a row, strength
GRAIN = 4.0  # standard deviation, of 255
LEAST_SECONDS = 1.0  # of the later epochs in a turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer pictures and rounds; says little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--dir", type=Path, metavar="FOLDER", help="your own pictures (default: made here)")
    parser.add_argument("--targets", default="targets.csv", help="their table (default targets.csv)")
    parser.add_argument("--size", type=int, default=224, help="pixels a side of a batch (default 224)")
    parser.add_argument("--batch-size", type=int, default=32, help="pictures (default 32)")
    parser.add_argument("--pictures", type=int, help="number to make (default 300, with --quick 64)")
    parser.add_argument("--rounds", type=int, help="default 3, with --quick 1")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of the main process (default 1)")
    options = parser.parse_args()
    options.pictures = options.pictures or (64 if options.quick else 300)
    options.rounds = options.rounds or (1 if options.quick else 3)
    torch.set_num_threads(options.threads)
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    with tempfile.TemporaryDirectory() as work:
        folder = options.dir or made_photographs(Path(work) / "photographs", options.pictures)
        try:
            report = measured(options, folder, Path(work) / "cache")
        except UserError as error:
            raise SystemExit(f"error: {error}") from error
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def measured(options: argparse.Namespace, folder: Path, work: Path) -> dict[str, Any]:
    """The figures, printed."""
    rows = table_rows(options, folder, work)
    paths = rows[0].feed.dataset.paths
    with Image.open(paths[0]) as picture:
        shape = f"{picture.width}×{picture.height}"
    size = statistics.mean(len(path.read_bytes()) for path in paths) / 1024  # and all files are in the page cache
    print(
        f"CPU {platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}; {len(paths)} "
        f"pictures of {shape}, {size:.0f} KiB each, as {options.size}×{options.size}; "
        f"medians of {options.rounds} rounds"
    )
    compare(rows, options.rounds, len(paths))
    print(f"\n{'pictures a second':<34}{'workers':>10}{'epoch 1':>10}{'ratio':>8}{'later':>10}{'ratio':>8}{'goal':>8}")
    for row in rows:
        print(
            f"{row.label:<34}{row.workers:>10}{row.first:>10.0f}{row.ratios[0]:>8.2f}"
            f"{row.later:>10.0f}{row.ratios[1]:>8.2f}{row.goal:>8}"
        )
    return {
        "pictures": len(paths),
        "size": options.size,
        "batch_size": options.batch_size,
        "threads": torch.get_num_threads(),
        "rows": [row.figures() for row in rows],
    }


# ---- the loaders ---------------------------------------------------------------------------------------


class PlainPictures(Dataset[tuple[Tensor, Tensor]]):
    """Pictures as torchvision's data sets give them: opened, decoded, resized and normalised one by one.

    Args:
        paths: of the N pictures.
        targets: (N, T).
        size: (height, width), pixels.
        augment: transforms in the place of resizing.
    """

    def __init__(
        self, paths: list[Path], targets: Tensor, size: tuple[int, int], augment: tuple[Any, ...] = ()
    ) -> None:
        self.paths, self.targets = paths, targets
        self._transform = transforms.Compose(
            [
                *(augment or [transforms.Resize(size)]),
                transforms.ToTensor(),
                transforms.Normalize([0.5] * 3, [0.5] * 3),
            ]
        )

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        with Image.open(self.paths[number]) as picture:
            return self._transform(picture.convert("RGB")), self.targets[number]


class PlainFeed:
    """DataLoader over `PlainPictures`."""

    def __init__(self, dataset: PlainPictures, *, batch_size: int, workers: int) -> None:
        self.dataset, self._batch_size, self.workers = dataset, batch_size, workers

    def open(self) -> None:
        self._loader = DataLoader(
            self.dataset,
            batch_size=self._batch_size,
            shuffle=True,
            num_workers=self.workers,
            persistent_workers=self.workers > 0,
        )

    def epoch(self, number: int) -> int:
        """Make all batches; the number of pictures in them."""
        return sum(len(images) for images, _ in self._loader)

    def close(self) -> None:
        del self._loader


class CachedFeed:
    """hotloop's own loader, with an empty cache folder each time it is opened."""

    def __init__(self, folder: Path, work: Path, *, targets: str, **options: Any) -> None:
        self._folder, self._work, self._targets, self._options = folder, work, targets, options
        self.workers = 0  # until it is opened

    def open(self) -> None:
        self.data = ImageDataModule(
            source=ImageFolder(dir=self._folder, targets=self._targets, cache_dir=self._work),
            cache_dir=self._work,
            valid_size=0,
            test_size=0,
            **self._options,
        )
        self.data.prepare_data()
        self.data.setup("fit")
        facts = self.data.for_task()
        self._pixels = Scaling(*([255 * x for x in facts[name]] for name in ("pixel_mean", "pixel_std")))
        self._loader = self.data.train_dataloader()
        self.workers = self._loader.num_workers

    def epoch(self, number: int) -> int:
        """Make all batches; the number of pictures in them."""
        self._loader.sampler.set_epoch(number)  # type: ignore[attr-defined]
        done = 0
        for batch in self._loader:
            done += len(normalised_pictures(batch.images, self._pixels, dtype=torch.float32, channels_last=True))
        return done

    def close(self) -> None:
        del self._loader, self.data
        shutil.rmtree(self._work, ignore_errors=True)


@dataclass
class Row:
    """A loader and what was measured of it, in pictures a second."""

    label: str
    feed: Any
    base: "Row | None" = None  # what it is compared with; None = itself
    automatic: bool = False
    first: float = 0.0
    later: float = 0.0

    @property
    def workers(self) -> str:
        return f"auto ({self.feed.workers})" if self.automatic else str(self.feed.workers)

    @property
    def goal(self) -> str:
        return f">= {GOAL:g}" if self.base is not None and "none" not in self.label else ""

    @property
    def ratios(self) -> tuple[float, float]:
        base = self.base or self
        return self.first / base.first, self.later / base.later

    def figures(self) -> dict[str, Any]:
        return {
            "loader": self.label,
            "workers": self.feed.workers,
            "epoch_1_pictures_per_s": self.first,
            "later_pictures_per_s": self.later,
            "ratio_epoch_1": self.ratios[0],
            "ratio_later": self.ratios[1],
        }


def table_rows(options: argparse.Namespace, folder: Path, work: Path) -> list[Row]:
    """The rows of the table, nothing measured."""

    def cached(kind: str, workers: int | str, augment: dict[str, Any] | None) -> CachedFeed:
        common = {"targets": options.targets, "size": options.size, "batch_size": options.batch_size}
        return CachedFeed(folder, work, cache=kind, num_workers=workers, augment=augment, **common)

    probe = cached("none", "auto", None)
    probe.open()
    chosen, processes = probe.data.dataset("train"), max(probe.workers, 1)
    assert chosen is not None
    paths = [folder / chosen.name(number) for number in range(len(chosen))]
    targets = torch.from_numpy(chosen.targets)
    probe.close()
    ours = {"crop": list(CROP), "horizontal_flip": FLIP, "brightness": BRIGHTNESS}
    theirs = (
        transforms.RandomResizedCrop((options.size, options.size), scale=CROP, ratio=(0.9, 1 / 0.9)),
        transforms.RandomHorizontalFlip(FLIP),
        transforms.ColorJitter(brightness=BRIGHTNESS),
    )
    rows: list[Row] = []
    for augment, plainly, kinds in ((None, (), ("none", "ram", "disk")), (ours, theirs, ("none", "disk"))):
        suffix = ", augmented" if augment else ""
        for workers in (0, "auto"):
            plain = PlainFeed(
                PlainPictures(paths, targets, (options.size, options.size), plainly),
                batch_size=options.batch_size,
                workers=processes if workers == "auto" else 0,
            )
            base = Row(f"plain{suffix}", plain)
            rows.append(base)
            for kind in kinds:
                rows.append(Row(f"data.cache={kind}{suffix}", cached(kind, workers, augment), base, workers == "auto"))
    return rows


def compare(rows: list[Row], rounds: int, pictures: int) -> None:
    """Fill in the medians of the rounds."""
    first: list[list[float]] = [[] for _ in rows]
    later: list[list[float]] = [[] for _ in rows]
    for number in range(rounds):
        for place in range(len(rows)):
            place = (place + number) % len(rows)
            feed = rows[place].feed
            start = time.perf_counter()
            feed.open()
            done = feed.epoch(0)
            first[place].append(done / (time.perf_counter() - start))
            if done != pictures:
                raise SystemExit(f"{rows[place].label}: {done} pictures in an epoch of {pictures}")
            start, epoch = time.perf_counter(), 0
            while epoch == 0 or time.perf_counter() - start < LEAST_SECONDS:
                epoch += 1
                feed.epoch(epoch)
            later[place].append(epoch * pictures / (time.perf_counter() - start))
            feed.close()
    for row, firsts, laters in zip(rows, first, later, strict=True):
        row.first, row.later = statistics.median(firsts), statistics.median(laters)


# ---- pictures ------------------------------------------------------------------------------------------


def made_photographs(folder: Path, count: int) -> Path:
    """`folder` with `count` JPEG files of 640×480, of the size that a camera's have, and targets.csv."""
    chance = np.random.default_rng(0)
    folder.mkdir(parents=True)
    rows = ["image,target"]
    for number in range(count):
        picture = 128 + chance.normal(0, GRAIN, (480, 640, 3))
        for side, strength in SHAPES:
            patches = Image.fromarray(chance.integers(0, 256, (side * 3 // 4, side, 3), dtype=np.uint8))
            picture += strength * (np.asarray(patches.resize((640, 480)), np.float64) - 128)
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(folder / f"{number:05d}.jpg", quality=92)
        rows.append(f"{number:05d}.jpg,{chance.random():.4f}")
    (folder / "targets.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


if __name__ == "__main__":
    main()
