"""Fixtures for all tests: real data where it is at hand, tiny bitexts, and whole runs in this process."""

import os

# Before torch is loaded: a process forked from one whose OpenMP threads have worked hangs at its first parallel
# operation (the two-process tests fork), and one thread gives the same sums everywhere.
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
TINY = (
    "model.embedding=16",
    "model.hidden=32",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "data.batch_size=4",
    "data.tokenizer.kind=word",
    "trainer.accelerator=cpu",
    "trainer.devices=1",
    "trainer.max_epochs=1",
    "scheduler=constant",
    "scheduler.warmup_steps=0",
    "logger=none",
    "callbacks=minimal",
    "callbacks.progress=null",
    "callbacks.report.table=false",
)


TINY_TRANSFORMER = (
    "model.hidden=16",
    "model.heads=2",
    "model.feed_forward=24",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    *(option for option in TINY if not option.startswith("model.")),
)


TINY_IMAGES = (
    "model.stem=[4]",
    "model.blocks=[4]",
    "data.size=16",
    "data.batch_size=4",
    "trainer.accelerator=cpu",
    "trainer.devices=1",
    "trainer.max_epochs=1",
    "scheduler=constant",
    "scheduler.warmup_steps=0",
    "logger=none",
    "callbacks=minimal",
    "callbacks.progress=null",
    "callbacks.report.table=false",
)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data (Europarl, Multi30k, awkward files); it lies outside the project."""
    folder = Path(os.environ.get("HOTLOOP_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set HOTLOOP_SHARED to a folder that has data/")
    return folder


def write_bitext(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    """`folder`/`name`.fr and .en."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, side in (("fr", 0), ("en", 1)):
        (folder / f"{name}.{suffix}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")


def made_pairs(count: int, *, seed: int = 0, longest: int = 12) -> list[tuple[str, str]]:
    """Pairs of 3 to `longest` words from 40; the target is the source reversed, word for word."""
    chosen = random.Random(seed)
    pairs = []
    for _ in range(count):
        words = [chosen.randrange(40) for _ in range(chosen.randint(3, longest))]
        pairs.append((" ".join(f"mot{w}" for w in words), " ".join(f"word{w}" for w in reversed(words))))
    return pairs


@pytest.fixture
def bitext(tmp_path: Path) -> Path:
    """A folder with 200 training, 20 validation and 20 test pairs."""
    folder = tmp_path / "bitext"
    for number, (name, count) in enumerate((("train", 200), ("valid", 20), ("test", 20))):
        write_bitext(folder, name, made_pairs(count, seed=number))
    return folder


def write_pictures(folder: Path, count: int, *, seed: int = 0, size: tuple[int, int] = (24, 20)) -> Path:
    """`folder` with `count` PNG files of (height, width) `size` and targets.csv: how far right a white bar stands."""
    chosen = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["image,target"]
    for number in range(count):
        picture = chosen.integers(0, 60, (*size, 3), dtype=np.uint8)
        column = int(chosen.integers(0, size[1] - 2))
        picture[:, column : column + 3] = 255
        Image.fromarray(picture).save(folder / f"bar{number:03d}.png")
        rows.append(f"bar{number:03d}.png,{10 * column}")
    (folder / "targets.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder with 40 pictures: 32 to train on, 4 to validate, 4 to test."""
    return write_pictures(tmp_path / "pictures", 40)


class Run:
    """A finished run: its folder, report, and what `train` returned."""

    def __init__(self, folder: Path, value: float | None) -> None:
        self.folder, self.value = folder, value

    @property
    def report(self) -> dict[str, Any]:
        return json.loads((self.folder / "report.json").read_text(encoding="utf-8"))

    @property
    def last(self) -> Path:
        return self.folder / "checkpoints" / "last.ckpt"

    @property
    def losses(self) -> list[float]:
        return [epoch["train_loss"] for epoch in self.report["epochs"]]


def compose_config(*overrides: str, config_name: str = "train") -> Any:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose(config_name, overrides=list(overrides))


@pytest.fixture
def train_tiny(tmp_path: Path, bitext: Path) -> Callable[..., Run]:
    """Train the tiny model on the tiny bitext: `train_tiny("trainer.max_epochs=2", folder="name")`."""
    from hotloop.run import train

    def run(*overrides: str, folder: str = "run", data: Path = bitext, tiny: tuple[str, ...] = TINY) -> Run:
        target = tmp_path / folder
        config = compose_config(
            "model=seq2seq_attn",
            "data=bitext",
            f"data.dir={data}",
            f"data.cache_dir={tmp_path / 'cache'}",
            "name=test",
            "seed=1",
            "test=false",
            f"run_dir={target}",
            *tiny,
            *overrides,
        )
        return Run(target, train(config))

    return run


@pytest.fixture
def train_tiny_images(tmp_path: Path, pictures: Path) -> Callable[..., Run]:
    """Train a tiny regressor on the tiny pictures: `train_tiny_images("trainer.max_epochs=2", folder="name")`."""
    from hotloop.run import train

    def run(
        *overrides: str, folder: str = "run", data: Path | None = pictures, tiny: tuple[str, ...] = TINY_IMAGES
    ) -> Run:
        target = tmp_path / folder
        files = () if data is None else ("data=images", f"data.dir={data}")
        config = compose_config(
            "model=inception",
            *files,
            f"data.cache_dir={tmp_path / 'cache'}",
            "name=test",
            "seed=1",
            "test=false",
            f"run_dir={target}",
            *tiny,
            *overrides,
        )
        return Run(target, train(config))

    return run
