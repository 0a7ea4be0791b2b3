"""Going through the raw text of a corpus in chunks: once for lengths and hashes, once more for words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from itertools import compress, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.data.progress import Progress
from hotloop.data.text.describing.words import WordCounts
from hotloop.data.text.normalisation import normalise
from hotloop.data.text.preparing.chunks import PAIRS, hashes_of, in_chunks, joined_pairs, ordered_map
from hotloop.data.text.preparing.filters import Filters
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.preparing.splitting import assign_roles
from hotloop.data.text.readers import read_pairs
from hotloop.data.text.word_tokenizer import split_word

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class PairFacts:
    """What is kept of each pair, 33 bytes: whatever else is asked follows from these arrays."""

    source_hash: NDArray[np.uint64]  # (N,) of the normalised line
    target_hash: NDArray[np.uint64]
    pair_hash: NDArray[np.uint64]
    source_words: NDArray[np.int32]  # (N,) stretches between white space
    target_words: NDArray[np.int32]
    passes: NDArray[np.bool_]  # (N,) the filters, on its own account

    def __len__(self) -> int:
        return len(self.passes)

    def of(self, which: NDArray[np.bool_]) -> PairFacts:
        """Those of the pairs for which `which` (N,) is true."""
        return PairFacts(**{field.name: getattr(self, field.name)[which] for field in fields(self)})

    @property
    def whole(self) -> NDArray[np.bool_]:
        """(N,) pairs with text on both sides."""
        return (self.source_words > 0) & (self.target_words > 0)


def read_facts(recipe: Recipe, split: str, executor: Executor | None, *, expected: int) -> PairFacts:
    """Of every pair in the files of `split`, in their order; `expected` pairs, for the time left."""
    work = partial(facts_of, filters=recipe.filters, unicode_form=recipe.unicode_form, lowercase=recipe.lowercase)
    found = list(_mapped(work, read_pairs(recipe.files[split]), executor, f"lengths of {split}", expected))
    if not found:
        return facts_of((), filters=recipe.filters, unicode_form=recipe.unicode_form, lowercase=False)
    return PairFacts(
        **{field.name: np.concatenate([getattr(part, field.name) for part in found]) for field in fields(PairFacts)}
    )


def facts_of(pairs: Pairs, *, filters: Filters, unicode_form: str, lowercase: bool) -> PairFacts:
    """The facts of raw pairs."""
    tidy = partial(normalise, unicode_form=unicode_form, lowercase=lowercase)
    sources: list[bytes] = []
    targets: list[bytes] = []
    passes = []
    words: tuple[list[int], list[int]] = [], []
    for raw_source, raw_target in pairs:
        source, target = tidy(raw_source), tidy(raw_target)
        passes.append(filters.reason(source, target) is None)
        for counts, text, encoded in zip(words, (source, target), (sources, targets), strict=True):
            counts.append(text.count(" ") + 1 if text else 0)
            encoded.append(text.encode("utf-8"))
    return PairFacts(
        source_hash=hashes_of(sources),
        target_hash=hashes_of(targets),
        pair_hash=hashes_of(joined_pairs(sources, targets)),
        source_words=np.array(words[0], dtype=np.int32),
        target_words=np.array(words[1], dtype=np.int32),
        passes=np.array(passes, dtype=bool),
    )


def split_roles(recipe: Recipe, facts: dict[str, PairFacts]) -> dict[str, NDArray[np.bool_]]:
    """Which pairs of the training files (N,) train, and which are split off for "valid" or "test"."""
    training = facts["train"]
    held_out = [facts[split].source_hash for split in facts if split != "train"]
    roles = assign_roles(
        training.source_hash[training.passes],
        training.pair_hash[training.passes],
        held_out=np.concatenate([np.zeros(0, dtype=np.uint64), *held_out]),
        filters=recipe.filters,
        off_training=recipe.off_training(),
    )
    chosen = {}
    for split in ("train", *recipe.off_training()):
        which = np.zeros(len(training), dtype=bool)
        which[np.flatnonzero(training.passes)[roles.of(split)]] = True
        chosen[split] = which
    return chosen


def read_words(
    recipe: Recipe, split: str, which: NDArray[np.bool_], executor: Executor | None
) -> tuple[WordCounts, WordCounts]:
    """The words of the pairs in the files of `split` for which `which` is true, source and target."""
    counted = WordCounts(), WordCounts()
    work = partial(
        words_of,
        unicode_form=recipe.unicode_form,
        lowercase=recipe.lowercase,
        whole=recipe.pretokenized,
    )
    pairs = compress(read_pairs(recipe.files[split]), which.tolist())
    title, count = f"words of {split}", int(np.count_nonzero(which))
    for found in _mapped(work, pairs, executor, title, count, chunks=in_growing_chunks):
        for side, counts in zip(counted, found, strict=True):
            side.add(counts)
    return counted


def words_of(pairs: Pairs, *, unicode_form: str, lowercase: bool, whole: bool) -> tuple[Counter[str], Counter[str]]:
    """Words of each side with their frequencies: as data.tokenizer.kind=word has them, or `whole` as they stand."""
    counted = []
    for side in (0, 1):
        stretches: Counter[str] = Counter()
        for pair in pairs:
            stretches.update(normalise(pair[side], unicode_form=unicode_form, lowercase=lowercase).split())
        words: Counter[str] = Counter()
        for stretch, count in stretches.items():
            for word in (stretch,) if whole else _words_in(stretch):
                words[word] += count
        counted.append(words)
    return counted[0], counted[1]


@lru_cache(maxsize=100_000)
def _words_in(stretch: str) -> tuple[str, ...]:
    return tuple(split_word(stretch))


def in_growing_chunks(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Lists of pairs that make the text read so far a fifth longer each, up to PAIRS pairs: the growth of the
    vocabulary is noted behind each, and is to be seen from the first sentences on."""
    iterator, done = iter(pairs), 0
    while chunk := list(islice(iterator, min(max(done // 5, 1), PAIRS))):
        done += len(chunk)
        yield chunk


def _mapped(
    work: Callable[[Pairs], Any], pairs: Iterable[tuple[str, str]], executor: Executor | None, title: str,
    total: int, *, chunks: Callable[[Iterable[tuple[str, str]]], Iterator[list[tuple[str, str]]]] = in_chunks,
) -> Iterator[Any]:  # fmt: skip
    ahead = 2 * getattr(executor, "_max_workers", 1) + 2
    with Progress(title, total) as progress:
        sizes: list[int] = []

        def counted() -> Iterator[list[tuple[str, str]]]:
            for chunk in chunks(pairs):
                sizes.append(len(chunk))
                yield chunk

        for done, result in enumerate(ordered_map(work, counted(), executor, ahead=ahead)):
            progress.advance(sizes[done])
            yield result
