"""The data module: options in, batches and facts out."""

import logging
import os
import signal
import warnings
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer

from hotloop.data.text.batch import Batch
from hotloop.data.text.bitext import BitextDataModule
from hotloop.data.text.corpora import BitextFolder, Corpus
from hotloop.data.text.dataset import BitextDataset
from hotloop.data.text.europarl import Europarl
from hotloop.data.text.parliament.corpus import Parliament
from hotloop.errors import UserError
from hotloop.vocabulary import BOS, EOS, PAD


@pytest.fixture
def corpus(write_split: Any) -> Path:
    for stem, count in (("train", 90), ("valid", 10), ("test", 7)):
        lines = [f"{stem} mot " + "et " * (n * 7 % 11) + str(n) for n in range(count)]
        folder = write_split(stem, lines, [f"{line} ." for line in lines])
    return folder


def module(corpus: Path, **options: Any) -> BitextDataModule:
    names = {name: options.pop(name) for name in ("valid", "test") if name in options}
    given = {
        "tokenizer": {"kind": "word", "min_frequency": 1},
        "cache_dir": corpus / "cache",
        "batch_size": 8,
        **options,
    }
    return BitextDataModule(corpus=BitextFolder(dir=corpus, **names), **given)


def ready(corpus: Path, **options: Any) -> BitextDataModule:
    data = module(corpus, **options)
    data.prepare_data()
    data.setup()
    return data


def test_batches_hold_rows_as_promised(corpus: Path) -> None:
    data = ready(corpus)
    source_lines, references = data.texts("valid")
    seen = []
    for batch in data.val_dataloader():
        assert isinstance(batch, Batch)
        for row in range(len(batch)):
            number, s, t = (int(x[row]) for x in (batch.ids, batch.source_length, batch.target_length))
            source, target = batch.source[row].tolist(), batch.target[row].tolist()
            assert source[s - 1] == EOS
            assert (target[0], target[t - 1]) == (BOS, EOS)
            assert set(source[s:]) | set(target[t:]) <= {PAD}
            assert source[: s - 1] == data.source_tokenizer.encode([source_lines[number]])[0]
            assert target[1 : t - 1] == data.target_tokenizer.encode([references[number]])[0]
            seen.append(number)
        assert batch.source.size(1) == batch.source_length.max()
        assert batch.target.size(1) == batch.target_length.max()
    assert sorted(seen) == list(range(10))
    assert sum(len(batch) for batch in data.test_dataloader()) == 7
    assert sum(len(batch) for batch in data.train_dataloader()) == 90


@pytest.mark.parametrize("shared", [True, False])
def test_a_shared_vocabulary_is_a_fact_known_before_data_is_read(corpus: Path, shared: bool) -> None:
    tokenizer = {"kind": "bpe", "vocabulary_size": 60, "shared": shared}
    assert BitextDataModule.expected_facts({"tokenizer": tokenizer}) == {"shared_vocabulary": shared}
    assert ready(corpus, tokenizer=tokenizer).facts["shared_vocabulary"] is shared


def test_facts_and_summary(corpus: Path) -> None:
    data = ready(corpus)
    sizes = {"source_vocabulary": data.source_tokenizer.size, "target_vocabulary": data.target_tokenizer.size}
    assert data.facts == {**sizes, "shared_vocabulary": False}
    summary = data.summary()
    assert summary.items() >= {**sizes, "pairs": {"train": 90, "valid": 10, "test": 7}, "read": 90}.items()
    assert summary["dropped"] == {}
    assert 0 <= summary["padding_share"]["source"] < 0.4
    assert Path(summary["cache_dir"]).is_dir()
    assert summary["prepare_seconds"] >= 0


def test_everything_is_the_same_without_prepare_data(corpus: Path) -> None:
    data = module(corpus)
    data.setup("fit")
    assert len(data.train_dataloader()) == 12


def test_before_setup_it_says_what_to_call(corpus: Path) -> None:
    with pytest.raises(RuntimeError, match=r"setup\(\)"):
        _ = module(corpus).facts


def test_splits_that_do_not_exist(corpus: Path) -> None:
    data = ready(corpus, valid=None, test=None, valid_size=6, test_size=0)
    assert data.summary()["pairs"] == {"train": 84, "valid": 6}
    assert data.test_dataloader() == []
    assert data.dataset("test") is None
    with pytest.raises(UserError, match="no test split"):
        data.texts("test")
    with pytest.raises(ValueError, match="train"):
        data.texts("train")


def test_splits_are_those_that_exist(corpus: Path) -> None:
    assert ready(corpus).splits() == ("train", "valid", "test")
    assert ready(corpus, valid=None, valid_size=0).splits() == ("train", "test")
    alone = ready(corpus, valid=None, test=None, valid_size=0, test_size=0)
    assert alone.splits() == ("train",)
    assert alone.saved()["texts"] == {}
    with pytest.raises(RuntimeError, match=r"setup\(\)"):
        module(corpus).splits()


class Watcher(LightningModule):
    """Notes the sample numbers of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen: dict[str, list[list[int]]] = {"train": [], "valid": [], "test": []}

    def training_step(self, batch: Batch, step: int) -> torch.Tensor:
        self.seen["train"].append(batch.ids.tolist())
        return self.weight.sum()

    def validation_step(self, batch: Batch, step: int) -> None:
        self.seen["valid"].append(batch.ids.tolist())

    def test_step(self, batch: Batch, step: int) -> None:
        self.seen["test"].append(batch.ids.tolist())

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(**options: Any) -> Trainer:
    return Trainer(
        accelerator="cpu", max_epochs=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, use_distributed_sampler=False, num_sanity_val_steps=0, **options,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_training_without_validation(corpus: Path) -> None:
    watcher = Watcher()
    trainer().fit(watcher, datamodule=module(corpus, valid=None, test=None, valid_size=0, test_size=0))
    assert len(watcher.seen["train"]) == 3 * 12
    assert not watcher.seen["valid"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("overfit", "train", "valid"), [(3, 3, 2), (1, 1, 1), (0.5, 6, 1), (1.0, 12, 2)])
@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"max_tokens": 90, "eval_batch_size": 8}])
def test_overfitting_sees_the_same_batches_in_every_epoch(
    corpus: Path, overfit: float, train: int, valid: int, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    data, watcher = module(corpus, **options), Watcher()
    run = trainer(overfit_batches=overfit)
    run.fit(watcher, datamodule=data)
    run.test(watcher, datamodule=data, verbose=False)
    seen = watcher.seen["train"]
    steps = len(seen) // 3
    assert seen[:steps] == seen[steps : 2 * steps] == seen[2 * steps :]
    samples = list(chain(*seen[:steps]))
    assert len(samples) == len(set(samples))
    if "max_tokens" not in options:
        assert (steps, len(watcher.seen["valid"]) // 3) == (train, valid)
        assert all(len(batch) in (8, 90 % 8) for batch in seen)
    assert sorted(chain(*watcher.seen["test"])) == list(range(7))


def test_lightning_leaves_the_batches_of_overfitting_alone(corpus: Path) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        trainer(overfit_batches=2).fit(Watcher(), datamodule=module(corpus))
    assert not [w for w in told if "dataloader shuffling" in str(w.message)]


def test_what_the_user_should_know_is_told_at_every_run(
    corpus: Path, write_split: Any, caplog: pytest.LogCaptureFixture
) -> None:
    write_split("valid", ["a", "mot " * 1_200], ["a", "b"])
    for _ in range(2):
        caplog.clear()
        ready(corpus)
        assert caplog.text.count("valid.fr, line 2: 1 source line(s) of more than 1,000 tokens") == 1


@pytest.mark.parametrize("where", ["/dev/null/x", "/proc/foo", "n" * 300, "file", "file/x"])
@pytest.mark.parametrize("kind", ["folder", "parliament", "europarl", "europarl_download"])
def test_data_folders_that_cannot_be_are_told(tmp_path: Path, monkeypatch: Any, where: str, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    corpora: dict[str, Callable[[], Corpus]] = {
        "folder": lambda: BitextFolder(dir=where),
        "parliament": lambda: Parliament(pairs=100, valid=1, test=1, dir=where),
        "europarl": lambda: Europarl(dir=where, download=False),
        "europarl_download": lambda: Europarl(dir=where, url="http://127.0.0.1:9/x.tgz"),
    }
    with pytest.raises(UserError, match=r"data\.dir|no train files"):
        BitextDataModule(corpus=corpora[kind](), cache_dir=tmp_path / "cache").prepare_data()


def test_limits_of_training_and_evaluation(corpus: Path) -> None:
    def largest(loader: Any) -> int:
        return max(len(batch) for batch in loader)

    data = ready(corpus, eval_batch_size=3)
    assert (largest(data.train_dataloader()), largest(data.val_dataloader())) == (8, 3)
    data = ready(corpus, max_tokens=40)
    loaders: tuple[Any, Any] = data.train_dataloader(), data.val_dataloader()
    for loader in loaders:
        for batch in loader:
            assert len(batch) * max(batch.source.size(1), batch.target.size(1)) <= 40
    data = ready(corpus, max_tokens=40, eval_batch_size=4)
    assert largest(data.val_dataloader()) == 4
    data.batch_size = 5  # as Lightning's search for a batch size does
    assert largest(ready(corpus, batch_size=5).train_dataloader()) == 5


def test_bucketing_can_be_left_out(corpus: Path) -> None:
    with_it, without = ready(corpus), ready(corpus, bucketing=False)
    assert without.summary()["padding_share"]["source"] > 2 * with_it.summary()["padding_share"]["source"]


def test_order_follows_the_seed(corpus: Path) -> None:
    def order(**options: Any) -> list[list[int]]:
        return [batch.ids.tolist() for batch in ready(corpus, **options).train_dataloader()]

    assert order(seed=1) == order(seed=1)
    assert order(seed=1) != order(seed=2)


@pytest.mark.parametrize("workers", [0, 1])
def test_starting_an_epoch_takes_nothing_from_the_global_generator(corpus: Path, workers: int) -> None:
    loader = ready(corpus, num_workers=workers).train_dataloader()
    before = torch.get_rng_state()
    for _ in range(2):
        assert len(list(loader)) == 12
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "data.batch_size"),
        ({"batch_size": True}, "data.batch_size"),
        ({"max_tokens": 9, "bucketing": False}, "data.max_tokens needs data.bucketing=true"),
        ({"num_workers": -1}, "data.num_workers"),
        ({"num_workers": "many"}, "data.num_workers"),
        ({"pin_memory": "yes"}, "data.pin_memory"),
        ({"seed": -1}, "data.seed"),
        ({"prepare_workers": 0}, "data.prepare_workers"),
        ({"tokenizer": {"vocab_size": 9}}, "data.tokenizer has no option 'vocab_size'; did you mean vocabulary_size"),
        ({"tokenizer": {"kind": "bp"}}, "data.tokenizer.kind"),
        ({"tokenizer": {"shared": "no"}}, "data.tokenizer.shared"),
        ({"filters": {"max_len": 9}}, "data.filters has no option 'max_len'; did you mean max_length"),
    ],
)
def test_options_are_checked_at_once(corpus: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        module(corpus, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unicode_form": "nfd"}, "unicode_form"),
        ({"valid_size": -1}, "data.valid_size"),
        ({"test_size": 1.5}, "test_size"),
    ],
)
def test_options_of_the_text_are_checked_before_anything_is_read(
    corpus: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        module(corpus, **options).prepare_data()
    assert not (corpus / "cache").exists()


def test_omegaconf_options_are_taken(corpus: Path) -> None:
    from omegaconf import OmegaConf

    given = OmegaConf.create({"tokenizer": {"kind": "word", "min_frequency": 1}, "filters": {"max_length": 5}})
    data = ready(corpus, tokenizer=given.tokenizer, filters=given.filters)
    assert data.summary()["dropped"]["long"] > 0


class Killer(BitextDataset):
    """Its worker dies as if the kernel had killed it."""

    def __getitem__(self, ids: list[int]) -> Batch:  # type: ignore[override]
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def test_a_dead_worker_is_told_with_the_way_out(corpus: Path) -> None:
    data = ready(corpus, num_workers=1)
    train = data.dataset("train")
    assert train is not None
    data._datasets["train"] = Killer(train.source, train.target)
    with pytest.raises(UserError, match=r"data worker died .*shared memory.*data\.num_workers=0"):
        list(data.train_dataloader())


def test_lightnings_own_sampler_is_refused_with_several_ranks(corpus: Path, monkeypatch: Any) -> None:
    data = ready(corpus)
    data.trainer = Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    monkeypatch.setattr(Trainer, "world_size", property(lambda _: 2))
    with pytest.raises(UserError, match="use_distributed_sampler=false"):
        data.train_dataloader()
    data.trainer = Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, use_distributed_sampler=False)
    assert len(data.train_dataloader()) == 6


def test_padding_is_told(corpus: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ready(corpus).train_dataloader()
    assert "training: 12 batches an epoch, padding" in caplog.text
