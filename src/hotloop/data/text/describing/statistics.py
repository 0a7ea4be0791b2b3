"""What there is to know of a corpus before a model is trained on it."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.data.text.batching import BucketBatchSampler
from hotloop.data.text.bitext import BitextDataModule
from hotloop.data.text.describing.figures import (
    both_sides,
    duplicates,
    leaks,
    unknown_by_size,
    vocabulary_figures,
)
from hotloop.data.text.describing.reading import PairFacts, read_facts, read_words, split_roles
from hotloop.data.text.describing.words import WordCounts
from hotloop.data.text.preparing.prepare import preparing_processes
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.preparing.texts import SIDES


@dataclass
class Statistics:
    """Plain values for describe.json, and the arrays that the plots are drawn from."""

    values: dict[str, Any]
    words: dict[str, NDArray[np.int32]] = field(default_factory=dict)  # training pairs, by side
    tokens: dict[str, NDArray[np.int32]] = field(default_factory=dict)


def describe(data: BitextDataModule) -> Statistics:
    """Statistics of the corpus of a data module that is set up. Goes through the raw text twice. Raises UserError."""
    recipe = data.recipe()
    with preparing_processes(recipe, data.prepare_workers) as executor:
        expected = {**data.prepared.pairs, "train": data.prepared.meta["read"]}
        files = {split: read_facts(recipe, split, executor, expected=expected[split]) for split in recipe.files}
        chosen = split_roles(recipe, files)
        facts = {**files, **{split: files["train"].of(which) for split, which in chosen.items()}}
        counted = _words(recipe, files, chosen, executor)
    training = facts["train"]
    tokens = {split: _token_lengths(data, split) for split in data.splits()}
    values = {
        "languages": [recipe.src_lang, recipe.tgt_lang],
        "pairs": {split: len(facts[split]) for split in data.splits()},
        "read": {split: len(found) for split, found in files.items()},
        "dropped": dict(data.prepared.meta["dropped"]),
        "words": {split: both_sides(facts[split].source_words, facts[split].target_words) for split in data.splits()},
        "tokens": {split: both_sides(lengths["source"], lengths["target"]) for split, lengths in tokens.items()},
        "vocabulary": {side: vocabulary_figures(words) for side, words in zip(SIDES, counted["train"], strict=True)},
        "unknown": {"tokenizer": _unknown_ids(data), "words": _unknown_words(counted)},
        "duplicates": {split: duplicates(found) for split, found in files.items()},
        "leaks": {
            split: {
                "files": leaks(facts[split], files["train"]) if split in files else None,
                "training": leaks(facts[split], training),
            }
            for split in data.splits()
            if split != "train"
        },
        "batching": _batching(data),
    }
    words = {"source": training.source_words, "target": training.target_words}
    return Statistics(values, words, tokens["train"])


def _words(
    recipe: Recipe, files: dict[str, PairFacts], chosen: dict[str, NDArray[np.bool_]], executor: Executor | None
) -> dict[str, tuple[WordCounts, WordCounts]]:
    """Words of both sides of each split, of what is left of it after the filters."""
    own = {split: np.ones(len(found), dtype=bool) for split, found in files.items() if split != "train"}
    counted = {split: read_words(recipe, split, which, executor) for split, which in own.items()}
    return counted | {split: read_words(recipe, "train", which, executor) for split, which in chosen.items()}


def _token_lengths(data: BitextDataModule, split: str) -> dict[str, NDArray[np.int32]]:
    """(N,) tokens of each pair by side; BOS and EOS not counted."""
    return {side: data.prepared.rows(split, side).lengths - marks for side, marks in zip(SIDES, (1, 2), strict=True)}


def _unknown_ids(data: BitextDataModule) -> dict[str, dict[str, float]]:
    """Share of UNK among the tokens of each split and side, counted when they were encoded."""
    unknown: dict[str, dict[str, float]] = data.prepared.meta["unknown"]
    return {split: unknown[split] for split in data.splits()}


def _unknown_words(counted: dict[str, tuple[WordCounts, WordCounts]]) -> dict[str, dict[str, dict[str, float]]]:
    """Share of unknown words by side, split and size of a word vocabulary of the training words."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for number, side in enumerate(SIDES):
        ranked = counted["train"][number].by_frequency()
        found[side] = {split: unknown_by_size(ranked, counts[number].counts) for split, counts in counted.items()}
    return found


def _batching(data: BitextDataModule) -> dict[str, Any]:
    """Padding shares of the training batches: as configured, and as many pairs in random batches."""
    sampler, dataset = data.train_sampler(), data.dataset("train")
    assert dataset is not None
    rows = max(round(len(dataset) / len(sampler)), 1)
    at_random = BucketBatchSampler(
        dataset.source.lengths, dataset.target.lengths, batch_size=rows, shuffle=True, bucketing=False
    )
    shares = {"configured": sampler.padding_share(), "at_random": at_random.padding_share()}
    return {
        "batch_size": data.batch_size if data.max_tokens is None else None,
        "max_tokens": data.max_tokens,
        "batches": len(sampler),
        "pairs_a_batch": round(len(dataset) / len(sampler), 1),
        "padding": {name: {side: round(getattr(share, side), 4) for side in SIDES} for name, share in shares.items()},
    }
