"""E23: loader options that only work with workers are dropped where there are none; too many workers are capped."""

import os
from pathlib import Path
from typing import Any

import pytest

from hotloop.data.images.batch import ImageBatch
from hotloop.data.images.images import ImageDataModule
from hotloop.data.text.bitext import BitextDataModule
from hotloop.data.text.corpora import BitextFolder
from tests.data.images.made_pictures import MadeSource

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.fixture(params=["text", "images"])
def loader(request: Any, tmp_path: Path) -> Any:
    """Makes the training loader of a data module."""
    return bitext_loader(tmp_path) if request.param == "text" else image_loader(tmp_path)


def bitext_loader(tmp_path: Path) -> Any:
    for stem in ("train", "valid", "test"):
        for language in ("fr", "en"):
            text = "".join(f"{stem} " + "mot " * (n % 7) + f"{n}\n" for n in range(40))
            (tmp_path / f"{stem}.{language}").write_text(text)

    def make(**options: Any) -> Any:
        data = BitextDataModule(
            corpus=BitextFolder(dir=tmp_path), tokenizer={"kind": "word"}, batch_size=4, seed=2,
            cache_dir=tmp_path / "cache", **options,
        )  # fmt: skip
        data.setup()
        return data.train_dataloader()

    return make


def image_loader(tmp_path: Path) -> Any:
    def make(**options: Any) -> Any:
        data = ImageDataModule(
            source=MadeSource(50), size=[8, 6], augment={"crop": [0.5, 1.0]}, batch_size=4, seed=2,
            cache_dir=tmp_path / "cache", **options,
        )  # fmt: skip
        data.setup()
        return data.train_dataloader()

    return make


def content(batches: Any) -> list[tuple[list[int], int]]:
    """Sample numbers and the sum of what the model sees."""
    return [
        (batch.ids.tolist(), int((batch.images if isinstance(batch, ImageBatch) else batch.source).sum()))
        for batch in batches
    ]


@pytest.mark.parametrize("prefetch_factor", [2, None])
@pytest.mark.parametrize("persistent_workers", [True, False, None])
@pytest.mark.parametrize("num_workers", [0, 1, 2, "auto"])
def test_e23_every_combination_gives_the_same_batches(
    loader: Any, num_workers: int | str, persistent_workers: bool | None, prefetch_factor: int | None,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level("INFO")
    plain = content(loader())
    caplog.clear()
    made = loader(num_workers=num_workers, persistent_workers=persistent_workers, prefetch_factor=prefetch_factor)
    for _ in range(2):
        assert content(made) == plain
    useless = num_workers in (0, "auto") and bool(persistent_workers or prefetch_factor)
    assert ("dropped" in caplog.text) == useless


def test_e23_workers_above_the_cores_are_lowered(loader: Any, caplog: pytest.LogCaptureFixture) -> None:
    made = loader(num_workers=CORES + 62)
    assert made.num_workers == CORES
    assert f"data.num_workers={CORES + 62} lowered to {CORES}" in caplog.text


def test_e23_memory_is_pinned_only_for_an_accelerator(loader: Any) -> None:
    import torch

    assert loader().pin_memory is False
    if not torch.cuda.is_available():
        assert loader(pin_memory=True).pin_memory is False


def test_e23_workers_start_once(loader: Any) -> None:
    made = loader(num_workers=1)
    workers = []
    for _ in range(2):
        list(made)
        workers.append([worker.pid for worker in made._iterator._workers])
    assert workers[0] == workers[1]
