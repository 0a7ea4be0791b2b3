"""The data module of every translation model: a corpus in, batches of ids out."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader

from hotloop.data.loading import BatchDataModule, LoaderOptions, check_number, options_of
from hotloop.data.text.batch import Batch
from hotloop.data.text.batching import BucketBatchSampler
from hotloop.data.text.corpora import SPLITS, Corpus
from hotloop.data.text.dataset import BitextDataset
from hotloop.data.text.form import TextForm
from hotloop.data.text.preparing.filters import Filters
from hotloop.data.text.preparing.prepare import PreparedCorpus, prepare
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.tokenizer import Tokenizer, TokenizerOptions
from hotloop.errors import UserError

log = logging.getLogger(__name__)


class BitextDataModule(BatchDataModule):
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
        check_number("max_tokens", max_tokens, 1)
        check_number("eval_batch_size", eval_batch_size, 1)
        check_number("prepare_workers", None if prepare_workers == "auto" else prepare_workers, 1)
        if max_tokens is not None and not bucketing:
            raise UserError("data.max_tokens needs data.bucketing=true; use data.batch_size without bucketing")
        self.batch_size, self.max_tokens, self.eval_batch_size = batch_size, max_tokens, eval_batch_size
        self._corpus, self._bucketing = corpus, bucketing
        self._recipe = partial(
            Recipe,
            tokenizer=options_of(TokenizerOptions, tokenizer, "data.tokenizer"),
            filters=options_of(Filters, filters, "data.filters"),
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
        self._cache_dir = Path(cache_dir).expanduser()
        self.prepare_workers = None if prepare_workers == "auto" else int(prepare_workers)
        self._prepared: PreparedCorpus | None = None
        self._prepared_from: Recipe | None = None

    def prepare_data(self) -> None:
        """Fill the cache. Lightning calls this on one process of each machine."""
        prepare(self.recipe(), self._cache_dir, workers=self.prepare_workers)

    def setup(self, stage: str | None = None) -> None:
        """Open the cache (and fill it where nobody has)."""
        self._resume = {}
        if self._prepared is None:
            recipe = self.recipe()
            self._prepared = prepare(recipe, self._cache_dir, workers=self.prepare_workers)
            self._prepared_from = recipe
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

    @staticmethod
    def expected_facts(options: Mapping[str, Any]) -> dict[str, Any]:
        """The part of `facts` that the options say before data is read."""
        tokenizer = options.get("tokenizer")
        return {"shared_vocabulary": isinstance(tokenizer, Mapping) and tokenizer.get("shared") is True}

    @property
    def prepared(self) -> PreparedCorpus:
        """The corpus in the cache, after `setup`."""
        return self._ready

    @property
    def facts(self) -> dict[str, Any]:
        """What a model must know of the data, after `setup`."""
        return {
            "source_vocabulary": self.source_tokenizer.size,
            "target_vocabulary": self.target_tokenizer.size,
            "shared_vocabulary": self.source_tokenizer is self.target_tokenizer,
        }

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

    def heaviest_batch(self, size: int) -> Batch:
        """The `size` training pairs with the longest sentences: what a step needs most memory for."""
        dataset = self._datasets["train"]
        longest = np.maximum(dataset.source.lengths, dataset.target.lengths).argsort(kind="stable")[-size:]
        return dataset[longest.tolist()]

    def dataset(self, split: str) -> BitextDataset | None:
        """The pairs of "train", "valid" or "test", or None where the split does not exist."""
        return self._datasets[split] if split in self.splits() else None

    def train_sampler(self) -> BucketBatchSampler:
        """What decides the training batches, from the first epoch on; after `setup`."""
        return self._sampler("train")

    def summary(self) -> dict[str, Any]:
        """Plain values for the start message and the report."""
        prepared = self._ready
        padding = self._sampler("train").padding_share()
        return {
            "pairs": prepared.pairs,
            "batch_size": self.batch_size,
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
            "kind": self.kind,
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
        loader = super().train_dataloader()
        padding = self._train_sampler.padding_share()
        log.info(
            "training: %d batches an epoch, padding %.1f %% source, %.1f %% target",
            len(self._train_sampler), 100 * padding.source, 100 * padding.target,
        )  # fmt: skip
        return loader

    @property
    def _ready(self) -> PreparedCorpus:
        if self._prepared is None:
            raise RuntimeError("call prepare_data() and setup() first")
        return self._prepared

    def recipe(self) -> Recipe:
        """What the corpus is prepared from; finds its files, or downloads or generates them. Raises UserError."""
        if self._prepared_from is not None:
            return self._prepared_from
        corpus = self._corpus
        try:
            files = corpus.files()
        except OSError as error:
            if error.filename is None:
                raise
            raise UserError(f"cannot use data.dir: {error}") from error
        return self._recipe(files=files, src_lang=corpus.src_lang, tgt_lang=corpus.tgt_lang)

    def _sampler(self, split: str) -> BucketBatchSampler:
        rank, world_size = self._ranks()
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
            seed=self._loading.seed,
            rank=rank,
            world_size=world_size,
        )
