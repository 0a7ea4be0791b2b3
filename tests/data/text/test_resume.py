"""A run that stops in mid-epoch goes on with exactly the pairs that are missing (real Trainer, Lightning 2.6.6)."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from hotloop.data.text.batch import Batch
from hotloop.data.text.bitext import BitextDataModule
from hotloop.data.text.corpora import BitextFolder

PAIRS, BATCH = 22, 2  # 11 steps


class Watcher(LightningModule):
    """Notes the sample numbers of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen: list[tuple[int, list[int]]] = []

    def training_step(self, batch: Batch, step: int) -> torch.Tensor:
        self.seen.append((self.current_epoch, batch.ids.tolist()))
        return self.weight.sum()

    def validation_step(self, batch: Batch, step: int) -> None:
        pass

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class SaveAt(Callback):
    """Saves at one moment; stops the run there."""

    def __init__(self, path: Path, *, hook: str, batch: int, epoch: int) -> None:
        self.path, self.hook, self.batch, self.epoch = path, hook, batch, epoch

    def _save(self, trainer: Trainer, hook: str, batch: int | None = None) -> None:
        if hook == self.hook and trainer.current_epoch == self.epoch and batch in (None, self.batch):
            trainer.save_checkpoint(self.path)
            trainer.should_stop = True

    def on_train_batch_end(self, trainer: Trainer, module: Any, outputs: Any, batch: Batch, step: int) -> None:
        self._save(trainer, "batch", step)

    def on_validation_end(self, trainer: Trainer, module: Any) -> None:
        if not trainer.sanity_checking:
            self._save(trainer, "validation")

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        self._save(trainer, "epoch")


@pytest.fixture
def corpus(write_split: Any) -> Path:
    for stem, count in (("train", PAIRS), ("valid", 3)):
        lines = [f"{stem} " + "mot " * (n % 7) + str(n) for n in range(count)]
        folder = write_split(stem, lines, lines)
    return folder


def fit(
    corpus: Path, *, ckpt_path: Path | None = None, callbacks: list[Callback] | None = None, workers: int = 0,
    batch_size: int = BATCH, **options: Any,
) -> list[tuple[int, list[int]]]:  # fmt: skip
    data = BitextDataModule(
        corpus=BitextFolder(dir=corpus, test=None), test_size=0, batch_size=batch_size, seed=5,
        tokenizer={"kind": "word", "min_frequency": 1}, num_workers=workers, cache_dir=corpus / "cache",
    )  # fmt: skip
    trainer = Trainer(
        accelerator="cpu", max_epochs=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=callbacks, use_distributed_sampler=False, **options,
    )  # fmt: skip
    module = Watcher()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(module, datamodule=data, ckpt_path=ckpt_path)
    return module.seen


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize(
    ("hook", "batch", "workers", "options"),
    [
        ("batch", 3, 0, {}),
        ("batch", 3, 2, {}),
        ("batch", 0, 0, {}),
        ("batch", 10, 0, {}),
        ("batch", 5, 0, {"accumulate_grad_batches": 3}),
        ("batch", 5, 2, {"accumulate_grad_batches": 3}),
        ("batch", 10, 0, {"accumulate_grad_batches": 3}),
        ("validation", 4, 0, {"val_check_interval": 5}),
        ("validation", 4, 2, {"val_check_interval": 5}),
        ("validation", 10, 0, {}),
        ("epoch", 10, 0, {}),
        ("epoch", 6, 0, {"limit_train_batches": 7}),
    ],
)
def test_what_was_seen_before_and_after_the_stop_is_what_an_unbroken_run_sees(
    corpus: Path, tmp_path: Path, hook: str, batch: int, workers: int, options: dict[str, Any], epoch: int
) -> None:
    whole = fit(corpus, **options)
    steps = options.get("limit_train_batches", PAIRS // BATCH)
    assert len(whole) == 3 * steps
    stop = SaveAt(tmp_path / "stop.ckpt", hook=hook, batch=batch, epoch=epoch)
    fit(corpus, callbacks=[stop], workers=workers, **options)
    after = fit(corpus, ckpt_path=stop.path, workers=workers, **options)
    assert after == whole[epoch * steps + batch + 1 :]


def test_epochs_differ_and_each_is_whole(corpus: Path) -> None:
    seen = fit(corpus)
    epochs = [[numbers for e, numbers in seen if e == epoch] for epoch in range(3)]
    assert all(sorted(n for numbers in epoch for n in numbers) == list(range(PAIRS)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_a_new_run_with_the_same_data_module_begins_at_the_beginning(corpus: Path, tmp_path: Path) -> None:
    stop = SaveAt(tmp_path / "stop.ckpt", hook="batch", batch=3, epoch=0)
    fit(corpus, callbacks=[stop])
    data = BitextDataModule(
        corpus=BitextFolder(dir=corpus, test=None), test_size=0, batch_size=BATCH, cache_dir=corpus / "cache"
    )
    data.setup()
    data.load_state_dict({"epoch": 0, "batches_done": 4, "steps": 11})
    assert len(list(data.train_dataloader())) == 7
    data.setup("fit")
    assert len(list(data.train_dataloader())) == 11


def test_another_number_of_steps_is_told(corpus: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stop = SaveAt(tmp_path / "stop.ckpt", hook="batch", batch=3, epoch=0)
    fit(corpus, callbacks=[stop])
    fit(corpus, ckpt_path=stop.path, batch_size=3)
    assert "had 11 steps, this one has 8" in caplog.text


def test_the_state_is_plain(corpus: Path, tmp_path: Path) -> None:
    stop = SaveAt(tmp_path / "stop.ckpt", hook="batch", batch=3, epoch=1)
    fit(corpus, callbacks=[stop])
    saved = torch.load(stop.path, weights_only=True)
    assert saved["BitextDataModule"] == {"epoch": 1, "batches_done": 4, "steps": 11}
