"""The data module of every translation model: a corpus in, batches of ids out."""

from __future__ import annotations

import dataclasses
import difflib
import logging
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from lightning.pytorch import LightningDataModule
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader, Dataset

from hotloop.data.text.batch import Batch
from hotloop.data.text.batching import BucketBatchSampler
from hotloop.data.text.corpora import SPLITS, Corpus
from hotloop.data.text.dataset import BitextDataset, FixedBatches
from hotloop.data.text.form import TextForm
from hotloop.data.text.preparing.filters import Filters
from hotloop.data.text.preparing.prepare import PreparedCorpus, prepare
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.tokenizer import Tokenizer, TokenizerOptions
from hotloop.errors import UserError

log = logging.getLogger(__name__)

Options = TypeVar("Options", Filters, TokenizerOptions)


class BitextDataModule(LightningDataModule):
    """Sentence pairs of a corpus, prepared once in `cache_dir` and read from memory maps.

    The Trainer must be made with `use_distributed_sampler=False`: the samplers know their rank.

    Args:
        corpus: where the pairs come from (`Corpus`).
        tokenizer: see `TokenizerOptions`.
        filters: see `Filters`; only training pairs are filtered.
        unicode_form, lowercase: see `normalise`.
        pretokenized: the files hold Moses-tokenised text; decoded text and references are joined again.
        valid_size, test_size: pairs split off the training pairs for a split that the corpus lacks; 0 for none.
        batch_size: pairs in a training batch.
        max_tokens: instead of `batch_size`: rows × length of the longer side, padding counted.
        eval_batch_size: pairs in a validation or test batch; null for the same limit as in training.
        bucketing: pairs of like length share a batch.
        num_workers: loader processes; "auto" is none, because a batch is one gather of some 0.3 ms from a map.
        persistent_workers, prefetch_factor: as in DataLoader; null for its best use. Dropped without workers.
        pin_memory: "auto" pins where a CUDA device waits for the batch.
        cache_dir: folder of all prepared corpora.
        prepare_workers: processes that prepare; "auto" is one a core, at most 4, for all but small corpora.
        seed: decides, with the epoch, the order of the training batches.
    """

    kind = "text"

    def __init__(
        self,
        *,
        corpus: Corpus,
        tokenizer: Mapping[str, Any] | TokenizerOptions | None = None,
        filters: Mapping[str, Any] | Filters | None = None,
        unicode_form: str = "nfc",
        lowercase: bool = False,
        pretokenized: bool = False,
        valid_size: int = 1_000,
        test_size: int = 1_000,
        batch_size: int = 64,
        max_tokens: int | None = None,
        eval_batch_size: int | None = None,
        bucketing: bool = True,
        num_workers: int | str = "auto",
        persistent_workers: bool | None = None,
        prefetch_factor: int | None = None,
        pin_memory: bool | str = "auto",
        cache_dir: str | Path = "data/cache",
        prepare_workers: int | str = "auto",
        seed: int = 0,
    ) -> None:
        super().__init__()
        for name, number, low in (
            ("batch_size", batch_size, 1),
            ("max_tokens", max_tokens, 1),
            ("eval_batch_size", eval_batch_size, 1),
            ("num_workers", None if num_workers == "auto" else num_workers, 0),
            ("prepare_workers", None if prepare_workers == "auto" else prepare_workers, 1),
            ("prefetch_factor", prefetch_factor, 1),
            ("seed", seed, 0),
        ):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < low):
                raise UserError(f"data.{name} must be a whole number from {low} on, got {number!r}")
        if pin_memory not in (True, False, "auto"):
            raise UserError(f"data.pin_memory must be auto, true or false, got {pin_memory!r}")
        if max_tokens is not None and not bucketing:
            raise UserError("data.max_tokens needs data.bucketing=true; use data.batch_size without bucketing")
        self.batch_size, self.max_tokens, self.eval_batch_size = batch_size, max_tokens, eval_batch_size
        self._corpus, self._bucketing, self._seed = corpus, bucketing, seed
        self._recipe = partial(
            Recipe,
            tokenizer=_options(TokenizerOptions, tokenizer, "data.tokenizer"),
            filters=_options(Filters, filters, "data.filters"),
            unicode_form=unicode_form,
            lowercase=lowercase,
            pretokenized=pretokenized,
            valid_size=valid_size,
            test_size=test_size,
        )
        self._form = TextForm(
            src_lang=corpus.src_lang,
            tgt_lang=corpus.tgt_lang,
            unicode_form=unicode_form,
            lowercase=lowercase,
            pretokenized=pretokenized,
        )
        self._num_workers, self._pin_memory = num_workers, pin_memory
        self._persistent_workers, self._prefetch_factor = persistent_workers, prefetch_factor
        self._cache_dir = Path(cache_dir).expanduser()
        self._prepare_workers = None if prepare_workers == "auto" else int(prepare_workers)
        self._prepared: PreparedCorpus | None = None
        self._datasets: dict[str, BitextDataset] = {}
        self._train_sampler: BucketBatchSampler | None = None
        self._resume: dict[str, int] = {}

    def prepare_data(self) -> None:
        """Fill the cache. Lightning calls this on one process of each machine."""
        self._prepare()

    def setup(self, stage: str | None = None) -> None:
        """Open the cache (and fill it where nobody has)."""
        self._resume = {}
        if self._prepared is None:
            self._prepared = self._prepare()
            self._datasets = {
                split: BitextDataset(self._prepared.rows(split, "source"), self._prepared.rows(split, "target"))
                for split in self._prepared.pairs
            }
            for warning in self._prepared.warnings if getattr(rank_zero_only, "rank", 0) == 0 else ():
                log.warning("%s", warning)

    @property
    def source_tokenizer(self) -> Tokenizer:
        """After `setup`."""
        return self._ready.source_tokenizer

    @property
    def target_tokenizer(self) -> Tokenizer:
        """After `setup`; the same object as `source_tokenizer` when shared."""
        return self._ready.target_tokenizer

    @property
    def facts(self) -> dict[str, int]:
        """What a model must know of the data, after `setup`."""
        return {"source_vocabulary": self.source_tokenizer.size, "target_vocabulary": self.target_tokenizer.size}

    def splits(self) -> tuple[str, ...]:
        """Those of "train", "valid" and "test" that exist, after `setup`."""
        pairs = self._ready.pairs
        return tuple(split for split in SPLITS if pairs.get(split))

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        """Normalised source lines and references of "valid" or "test", in the order of the sample numbers.

        The references of a tokenised corpus are natural text, as `target_tokenizer.decode` gives it.
        """
        if split not in ("valid", "test"):
            raise ValueError(f"text is kept of valid and test only, not of {split!r}")
        if split not in self.splits():
            raise UserError(f"there is no {split} split: data.{split}_size is 0 and the corpus has none")
        return self._ready.texts(split)

    def dataset(self, split: str) -> BitextDataset | None:
        """The pairs of "train", "valid" or "test", or None where the split does not exist."""
        return self._datasets[split] if split in self.splits() else None

    def summary(self) -> dict[str, Any]:
        """Plain values for the start message and the report."""
        prepared = self._ready
        padding = self._sampler("train").padding_share()
        return {
            "pairs": prepared.pairs,
            "read": prepared.meta["read"],
            "dropped": dict(prepared.meta["dropped"]),
            **self.facts,
            "padding_share": {"source": round(padding.source, 4), "target": round(padding.target, 4)},
            "cache_dir": str(prepared.folder),
            "prepare_seconds": prepared.meta["seconds"],
        }

    def for_task(self) -> dict[str, Any]:
        """Objects that the task needs, by the name of its argument, after `setup`."""
        return {"source_tokenizer": self.source_tokenizer, "target_tokenizer": self.target_tokenizer}

    def saved(self) -> dict[str, Any]:
        """Plain values that let a checkpoint stand alone: tokenisers, form of the text, where the test text is."""
        prepared = self._ready
        return {
            "source_tokenizer": self.source_tokenizer.state(),
            "target_tokenizer": self.target_tokenizer.state(),
            "form": self._form.saved(),
            "texts": {
                split: {side: str(prepared.text_path(split, side).resolve()) for side in ("source", "target")}
                for split in self.splits()
                if split != "train"
            },
        }

    def description(self) -> dict[str, str]:
        """Lines of the start message, by name."""
        facts = self.summary()
        pairs = " / ".join(f"{facts['pairs'].get(split, 0):,}" for split in ("train", "valid", "test"))
        sizes = f"vocabularies {facts['source_vocabulary']:,} and {facts['target_vocabulary']:,}"
        padding = facts["padding_share"]
        return {
            "data": f"{pairs} pairs (train / valid / test), {sizes}",
            "padding": f"{100 * padding['source']:.1f} % source, {100 * padding['target']:.1f} % target",
        }

    def train_dataloader(self) -> DataLoader[Batch]:
        """Batches in an order of their own in each epoch; after a resume, the rest of the epoch.

        With `trainer.overfit_batches` every epoch, resumed or not, has the first epoch's batches in its order.
        """
        sampler = self._sampler("train")
        if self._resume and not self._overfits():
            state, steps = self._resume, len(sampler)
            done = state["batches_done"]
            if state["steps"] != steps:
                log.warning(
                    "the checkpoint's epoch had %d steps, this one has %d (other batch size or number of ranks?): "
                    "some pairs of the unfinished epoch may be left out or seen twice", state["steps"], steps
                )  # fmt: skip
            sampler.set_epoch(state["epoch"])  # Lightning begins to fetch before it says which epoch it is
            sampler.resume(epoch=state["epoch"], batches_done=done if done < steps else 0)
        self._train_sampler = sampler
        padding = sampler.padding_share()
        log.info(
            "training: %d batches an epoch, padding %.1f %% source, %.1f %% target",
            len(sampler), 100 * padding.source, 100 * padding.target,
        )  # fmt: skip
        return self._loader("train", sampler)

    def val_dataloader(self) -> DataLoader[Batch] | list[DataLoader[Batch]]:
        """Every validation pair, longest first; an empty list where there is no such split."""
        return self._loader("valid", self._sampler("valid")) if "valid" in self.splits() else []

    def test_dataloader(self) -> DataLoader[Batch] | list[DataLoader[Batch]]:
        """Every test pair, longest first; an empty list where there is no such split."""
        return self._loader("test", self._sampler("test")) if "test" in self.splits() else []

    def state_dict(self) -> dict[str, int]:
        """How far the training epoch is, so that a resumed run sees exactly the pairs that are missing."""
        if self._train_sampler is None or self.trainer is None:
            return {}
        progress = self.trainer.fit_loop.epoch_loop.batch_progress.current
        return {
            "epoch": self._train_sampler.epoch,
            "batches_done": progress.processed,  # type: ignore[attr-defined]
            "steps": len(self._train_sampler),
        }

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Used by the next `train_dataloader`."""
        if not all(isinstance(state_dict.get(key), int) for key in ("epoch", "batches_done", "steps")):
            raise UserError(f"the checkpoint's state of the data must hold epoch, batches_done, steps: {state_dict}")
        self._resume = dict(state_dict)

    @property
    def _ready(self) -> PreparedCorpus:
        if self._prepared is None:
            raise RuntimeError("call prepare_data() and setup() first")
        return self._prepared

    def _prepare(self) -> PreparedCorpus:
        corpus = self._corpus
        try:
            files = corpus.files()
        except OSError as error:
            if error.filename is None:
                raise
            raise UserError(f"cannot use data.dir: {error}") from error
        recipe = self._recipe(files=files, src_lang=corpus.src_lang, tgt_lang=corpus.tgt_lang)
        return prepare(recipe, self._cache_dir, workers=self._prepare_workers)

    def _sampler(self, split: str) -> BucketBatchSampler:
        rank, world_size = 0, 1
        if self.trainer is not None:
            rank, world_size = self.trainer.global_rank, self.trainer.world_size
            if world_size > 1 and self.trainer._accelerator_connector.use_distributed_sampler:
                raise UserError("set trainer.use_distributed_sampler=false: the text loaders deal batches to ranks")
        dataset, training = self._datasets[split], split == "train"
        by_rows = self.batch_size if training else self.eval_batch_size or self.batch_size
        by_tokens = self.max_tokens if training or not self.eval_batch_size else None
        return BucketBatchSampler(
            dataset.source.lengths,
            dataset.target.lengths,
            batch_size=by_rows if by_tokens is None else None,
            max_tokens=by_tokens,
            shuffle=training,
            bucketing=self._bucketing or not training,
            seed=self._seed,
            rank=rank,
            world_size=world_size,
        )

    def _loader(self, split: str, sampler: BucketBatchSampler) -> DataLoader[Batch]:
        workers = self._workers()
        if not workers and (self._persistent_workers or self._prefetch_factor):
            log.info("data.persistent_workers and data.prefetch_factor do nothing without data.num_workers: dropped")
        dataset: Dataset[Batch] = self._datasets[split]
        order: BucketBatchSampler | None = sampler
        if self._overfits():
            # Lightning then puts a SequentialSampler, which counts items, in the place of any other sampler.
            dataset, order = FixedBatches(self._datasets[split], sampler), None
        return _Loader(
            dataset,
            batch_size=None,
            sampler=order,
            num_workers=workers,
            persistent_workers=workers > 0 and self._persistent_workers is not False,
            prefetch_factor=self._prefetch_factor if workers else None,
            pin_memory=self._pins(),
            # of its own, so that starting an epoch takes nothing from the generator that dropout uses
            generator=torch.Generator().manual_seed(self._seed),
        )

    def _overfits(self) -> bool:
        return self.trainer is not None and self.trainer.overfit_batches > 0  # type: ignore[attr-defined]

    def _workers(self) -> int:
        if self._num_workers == "auto":
            return 0
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if int(self._num_workers) > cores:
            log.warning("data.num_workers=%s lowered to %d, the number of CPU cores", self._num_workers, cores)
        return min(int(self._num_workers), cores)

    def _pins(self) -> bool:
        device = self.trainer.strategy.root_device.type if self.trainer is not None else "cpu"
        if self._pin_memory is True and not torch.cuda.is_available():
            log.info("data.pin_memory does nothing without a CUDA device: dropped")
            return False
        return device == "cuda" if self._pin_memory == "auto" else bool(self._pin_memory)


class _Loader(DataLoader[Batch]):
    """A DataLoader that says what to do when a worker dies."""

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        try:
            yield from super().__iter__()
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise UserError(
                f"a data worker died ({str(error).splitlines()[0]}): often too little memory or shared memory "
                "(/dev/shm); lower data.num_workers or set data.num_workers=0"
            ) from error


def _options(kind: type[Options], given: Mapping[str, Any] | Options | None, key: str) -> Options:
    """An options object from a mapping of the configuration."""
    if isinstance(given, kind):
        return given
    values = {str(name): value for name, value in (given or {}).items()}  # type: ignore[union-attr]
    known = [field.name for field in dataclasses.fields(kind)]
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UserError(f"{key} has no option {name!r}{hint} (it has {', '.join(known)})")
    return kind(**values)
