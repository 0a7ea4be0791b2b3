"""The steps from files to arrays: clean, choose, learn, encode. Text flows through in chunks; none is kept whole."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.data.cache_folder import write_json
from hotloop.data.processes import worker_processes
from hotloop.data.progress import Progress
from hotloop.data.text.preparing.chunks import (
    clean_chunk,
    encode_chunk,
    forget_tokenizers,
    in_chunks,
    ordered_map,
)
from hotloop.data.text.preparing.filters import check_anything_left, describe_drops
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.preparing.splitting import assign_roles
from hotloop.data.text.preparing.store import TokenWriter
from hotloop.data.text.readers import BitextFiles, read_pairs
from hotloop.data.text.tokenizer import State, count_words, train_tokenizer
from hotloop.errors import UserError

log = logging.getLogger(__name__)

SIDES = ("source", "target")
LONG = 1_000  # tokens; such lines take seconds and gigabytes where others take milliseconds


def build(recipe: Recipe, folder: Path, executor: Executor | None) -> dict[str, Any]:
    """Fill `folder` with the arrays, texts and tokenisers of `recipe`; gives counts and warnings. Raises UserError."""
    texts = _Texts(folder)
    counts = _choose(recipe, texts, executor)
    pairs: dict[str, int] = counts["pairs"]
    states = (_learn if executor is None else _learn_apart)(recipe, texts, pairs["train"])
    write_json(folder / "tokenizers.json", states)
    for split, count in pairs.items():
        long = _encode(texts, split, count, states, executor)
        for side in SIDES:
            if long[side]:
                counts["warnings"].append(_describe_long(recipe, split, side, long[side]))
    texts.remove("train")  # only tokens are needed from here on
    return counts


def _choose(recipe: Recipe, texts: _Texts, executor: Executor | None) -> dict[str, Any]:
    """Write the normalised lines of every split, each pair in its place; returns counts."""
    held_out = [split for split in ("valid", "test") if split in recipe.files]
    cleaned = {split: _clean(recipe, split, texts, executor) for split in (*held_out, "train")}
    for split in held_out:
        if not cleaned[split].read:
            raise UserError(f"the {split} split is empty: {_names(recipe.files[split])}")
    training = cleaned["train"]
    roles = assign_roles(
        training.source_hash,
        training.pair_hash,
        held_out=_joined([cleaned[split].source_hash for split in held_out]),
        filters=recipe.filters,
        off_training=recipe.off_training(),
    )
    dropped = training.dropped + roles.dropped
    check_anything_left(dropped, training.read, _names(recipe.files["train"]))
    log.info("training set: %s", describe_drops(dropped, training.read))
    for split in ("train", *recipe.off_training()):
        texts.select(roles.of(split), to=split)
    texts.remove("all")
    pairs = {split: texts.count(split) for split in ("train", *recipe.off_training(), *held_out)}
    return {"pairs": pairs, "read": training.read, "dropped": dict(dropped), "warnings": roles.warnings}


@dataclass(frozen=True)
class _Cleaned:
    source_hash: NDArray[np.uint64]  # (pairs kept,)
    pair_hash: NDArray[np.uint64]
    dropped: Counter[str]
    read: int  # pairs


class _Texts:
    """Text files of the build, a sentence a line."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, split: str, side: str) -> Path:
        return self._folder / f"{split}.{side}.txt"

    def remove(self, split: str) -> None:
        for side in SIDES:
            self.path(split, side).unlink()

    def select(self, which: NDArray[np.bool_], *, to: str) -> None:
        """Copy the lines of the split "all" for which `which` is true."""
        for side in SIDES:
            with open(self.path("all", side), "rb") as lines, open(self.path(to, side), "wb") as file:
                file.writelines(compress(lines, which.tolist()))

    def count(self, split: str) -> int:
        with open(self.path(split, "source"), "rb") as file:
            return sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 20), b""))

    def lines(self, split: str, side: str, *, every: int = 1) -> Iterator[str]:
        with open(self.path(split, side), "rb") as file:
            for number, line in enumerate(file):
                if number % every == 0:
                    yield line[:-1].decode("utf-8")

    def pairs(self, split: str) -> Iterator[tuple[bytes, bytes]]:
        with open(self.path(split, "source"), "rb") as source, open(self.path(split, "target"), "rb") as target:
            yield from zip(source, target, strict=True)


def _clean(recipe: Recipe, split: str, texts: _Texts, executor: Executor | None) -> _Cleaned:
    """Write the normalised lines of a split; only training pairs (to "all") are filtered."""
    files, training = recipe.files[split], split == "train"
    work = partial(
        clean_chunk,
        filters=recipe.filters if training else None,
        unicode_form=recipe.unicode_form,
        lowercase=recipe.lowercase,
    )
    name = "all" if training else split
    source_hashes, pair_hashes, dropped, read = [], [], Counter[str](), 0
    with (
        open(texts.path(name, "source"), "wb") as source,
        open(texts.path(name, "target"), "wb") as target,
        Progress(f"reading {split}", _expected_bytes(files)) as progress,
    ):
        for chunk in _mapped(work, in_chunks(read_pairs(files)), executor):
            source.write(chunk.source)
            target.write(chunk.target)
            source_hashes.append(chunk.source_hash)
            pair_hashes.append(chunk.pair_hash)
            dropped += chunk.dropped
            read += chunk.read
            progress.advance(chunk.source_bytes)
    return _Cleaned(_joined(source_hashes), _joined(pair_hashes), dropped, read)


def _learn(recipe: Recipe, texts: _Texts, pairs: int) -> dict[str, State]:
    """States of the two tokenisers, learnt from evenly spaced training pairs, one after the other."""
    every = -(-pairs // recipe.tokenizer.sampled_pairs)
    languages = dict(zip(SIDES, (recipe.src_lang, recipe.tgt_lang), strict=True))
    groups = [SIDES] if recipe.tokenizer.shared else [(side,) for side in SIDES]
    states: dict[str, State] = {}
    with Progress("learning the vocabularies", len(groups)) as progress:
        for sides in groups:
            lines = chain.from_iterable(texts.lines("train", side, every=every) for side in sides)
            # a shared vocabulary is the target's: that is where text leaves the model
            language = languages[sides[-1]] if recipe.pretokenized else ""
            options = recipe.tokenizer.of_side(sides[-1])
            state = train_tokenizer(count_words(lines), options, language=language).state()
            states.update(dict.fromkeys(sides, state))
            progress.advance(1)
    return states


def _learn_apart(recipe: Recipe, texts: _Texts, pairs: int) -> dict[str, State]:
    """`_learn` in a process of its own, which gives all its memory back: some 400 MB for a million sentences."""
    with worker_processes(1) as apart:
        states, messages = apart.submit(_learn_and_listen, recipe, texts, pairs).result()
    for name, level, message in messages:
        logging.getLogger(name).log(level, message)
    return states


class _Ears(logging.Handler):
    """Keeps what is logged: a new process has nowhere to write it."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append((record.name, record.levelno, record.getMessage()))


def _learn_and_listen(recipe: Recipe, texts: _Texts, pairs: int) -> tuple[dict[str, State], list[tuple[str, int, str]]]:
    logger, ears = logging.getLogger("hotloop"), _Ears()
    logger.addHandler(ears)
    logger.setLevel(logging.INFO)
    return _learn(recipe, texts, pairs), ears.messages


def _encode(
    texts: _Texts, split: str, count: int, states: dict[str, State], executor: Executor | None
) -> dict[str, dict[int, int]]:
    """Write the token rows of a split; returns, of each side, the tokens of LONG rows by their number from 0."""
    work = partial(encode_chunk, source_state=json.dumps(states["source"]), target_state=json.dumps(states["target"]))
    writers = [
        TokenWriter(texts.path(split, side).with_suffix(""), vocabulary_size=int(states[side]["size"]))
        for side in SIDES
    ]
    long: dict[str, dict[int, int]] = {side: {} for side in SIDES}
    done = 0
    try:
        with Progress(f"encoding {split}", count) as progress:
            for rows in _mapped(work, in_chunks(texts.pairs(split)), executor):
                for side, writer, (tokens, lengths) in zip(SIDES, writers, rows, strict=True):
                    writer.append(tokens, lengths)
                    long[side] |= {done + int(n): int(lengths[n]) for n in np.flatnonzero(lengths > LONG)}
                done += len(rows[0][1])
                progress.advance(len(rows[0][1]))
    finally:
        for writer in writers:
            writer.close()
        forget_tokenizers()
    return long


def _describe_long(recipe: Recipe, split: str, side: str, long: dict[int, int]) -> str:
    """What to know and do about lines with so many tokens (by their number from 0)."""
    worst = max(long, key=lambda number: long[number])
    lines = f"{len(long):,} {side} line(s) of more than {LONG:,} tokens, the longest {long[worst]:,}"
    limit = "data.filters.max_length=… leaves out pairs with more words"
    if split == "train":
        return f"training set: {lines}; they make batches large and slow; {limit}"
    if split not in recipe.files:
        place = f"{split} set, split off the training pairs"
    else:
        files, limit = recipe.files[split], ""
        path = files.target if side == "target" and files.target is not None else files.source
        header = files.format == "tsv" and files.columns is not None and isinstance(files.columns[0], str)
        numbers = [f"{number + 1 + header:,}" for number in list(long)[:5]]
        place = f"{path.name}, line {', '.join(numbers)}{', …' if len(long) > 5 else ''}"
    slow = "translating" if side == "source" else "scoring"
    cap = "task.max_length=… limits the tokens of a translation (else 2 × source + 10)" if side == "source" else ""
    hints = "; ".join(hint for hint in (cap, limit) if hint)
    return f"{place}: {lines}; kept, but {slow} them takes long" + (f"; {hints}" if hints else "")


def _mapped(work: Any, chunks: Iterator[Any], executor: Executor | None) -> Iterator[Any]:
    return ordered_map(work, chunks, executor, ahead=2 * getattr(executor, "_max_workers", 1) + 2)


def _expected_bytes(files: BitextFiles) -> int | None:
    """Size of the source side, where it is known before reading."""
    plain = files.source.suffix not in (".gz", ".zst", ".xz")
    return files.source.stat().st_size if plain and files.format == "parallel" else None


def _joined(arrays: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.uint64)


def _names(files: BitextFiles) -> str:
    return " and ".join(str(path) for path in files.paths())
