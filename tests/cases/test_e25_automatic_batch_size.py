"""E25: the batch size that is searched for stays within the data, is used, and leaves no trace."""

import logging

import pytest

from hotloop import batch_size
from hotloop.errors import UserError
from tests.conftest import made_pairs, write_bitext, write_pictures

SEARCH = ("auto_batch_size=true", "data.batch_size=2")


def test_e25_images_the_size_stays_within_the_data_and_the_run_is_that_of_the_fixed_size(train_tiny_images, tmp_path):
    data = write_pictures(tmp_path / "few", 24)  # 20 to train on
    more = ("data.valid_size=2", "data.test_size=2", "model.dropout=0.3", "trainer.max_epochs=2")
    found = train_tiny_images(*SEARCH, *more, data=data, folder="found")
    assert found.report["data"]["batch_size"] == 20
    assert [epoch["steps"] for epoch in found.report["epochs"]] == [1, 1]
    fixed = train_tiny_images("data.batch_size=20", *more, data=data, folder="fixed")
    assert found.losses == fixed.losses  # weights, batch norm, optimiser and random state are as before the search
    assert {path.name for path in (found.folder / "checkpoints").iterdir()} == {
        path.name for path in (fixed.folder / "checkpoints").iterdir()
    }


def test_e25_text_is_tried_on_its_longest_sentences(train_tiny, tmp_path, monkeypatch):
    pairs = made_pairs(20)
    pairs[7] = (" ".join(["mot1"] * 90), " ".join(["word1"] * 90))
    data = tmp_path / "uneven"
    for name, chosen in (("train", pairs), ("valid", made_pairs(4, seed=1)), ("test", made_pairs(4, seed=2))):
        write_bitext(data, name, chosen)
    lengths = []
    tried = batch_size.step_fits

    def watched(task, batch, trainer):
        lengths.append(batch.source.shape)
        return tried(task, batch, trainer)

    monkeypatch.setattr(batch_size, "step_fits", watched)
    found = train_tiny(*SEARCH, data=data)
    assert [tuple(shape) for shape in lengths] == [(2, 91), (4, 91), (8, 91), (16, 91), (20, 91)]
    assert found.report["data"]["batch_size"] == 20
    fixed = train_tiny("data.batch_size=20", data=data, folder="fixed")
    assert found.losses == fixed.losses


def test_e25_the_last_size_that_fits_is_taken(train_tiny_images, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(batch_size, "step_fits", lambda task, batch, trainer: 9.0 if len(batch) <= 8 else None)
    run = train_tiny_images(*SEARCH)
    assert run.report["data"]["batch_size"] == 8 and "data.batch_size=8" in caplog.text
    monkeypatch.setattr(batch_size, "step_fits", lambda task, batch, trainer: 1.5)
    assert train_tiny_images(*SEARCH, folder="second").report["data"]["batch_size"] == 2  # twice as much would not fit


def test_e25_mistakes_are_told(train_tiny_images, train_tiny, monkeypatch):
    with pytest.raises(UserError, match=r"data\.max_tokens exclude each other"):
        train_tiny("auto_batch_size=true", "data.max_tokens=64")
    with pytest.raises(UserError, match="auto_batch_size=true is for new runs"):
        train_tiny_images("auto_batch_size=true", "ckpt_path=last")
    monkeypatch.setattr(batch_size, "step_fits", lambda task, batch, trainer: None)
    with pytest.raises(UserError, match="a batch of 2 does not fit"):
        train_tiny_images(*SEARCH)


@pytest.mark.parametrize("error", [RuntimeError("CUDA out of memory. Tried"), MemoryError()])
def test_e25_a_full_memory_ends_the_search_and_other_errors_are_told(train_tiny_images, monkeypatch, error):
    from hotloop.tasks.regression import RegressionTask

    losses = RegressionTask.training_losses

    def limited(self, batch):
        if len(batch) > 4:
            raise error
        return losses(self, batch)

    monkeypatch.setattr(RegressionTask, "training_losses", limited)
    assert train_tiny_images(*SEARCH).report["data"]["batch_size"] == 4
    error.args = ("shapes do not fit",)
    if isinstance(error, RuntimeError):
        with pytest.raises(RuntimeError, match="shapes do not fit"):
            train_tiny_images(*SEARCH, folder="second")
