"""The steps from files to arrays: clean, choose, learn, encode. Text flows through in chunks; none is kept whole."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice
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
from hotloop.data.text.preparing.journal import Journal
from hotloop.data.text.preparing.notices import LONG, UNKNOWN, describe_long, describe_unknown
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.preparing.splitting import assign_roles
from hotloop.data.text.preparing.store import TokenWriter
from hotloop.data.text.preparing.texts import SIDES, Texts, appending, flush
from hotloop.data.text.readers import BitextFiles, read_pairs
from hotloop.data.text.tokenizer import State, count_words, train_tokenizer
from hotloop.errors import UserError
from hotloop.vocabulary import UNK

log = logging.getLogger(__name__)


def build(recipe: Recipe, folder: Path, executor: Executor | None) -> dict[str, Any]:
    """Fill `folder` with the arrays, texts and tokenisers of `recipe`; gives counts and warnings. Raises UserError.

    Goes on with what a build of the same recipe that was killed left in `folder`.
    """
    journal, texts = Journal(folder), Texts(folder)
    counts = _choose(recipe, texts, journal, executor)
    pairs: dict[str, int] = counts["pairs"]
    states = _learnt(recipe, texts, journal, pairs["train"], apart=executor is not None)
    for split, count in pairs.items():
        encoded = _encode(texts, split, count, states, journal, executor)
        counts["unknown"] = {**counts.get("unknown", {}), split: encoded.unknown_share()}
        for side in SIDES:
            if encoded.long[side]:
                counts["warnings"].append(describe_long(recipe, split, side, encoded.long[side]))
            share = encoded.unknown_share()[side]
            if split == "train" and share > UNKNOWN:
                counts["warnings"].append(describe_unknown(recipe, side, share, int(states[side]["size"])))
    journal.remove(texts.paths("train"))  # only tokens are needed from here on
    counts["stages"] = journal.seconds()
    return counts


def _choose(recipe: Recipe, texts: Texts, journal: Journal, executor: Executor | None) -> dict[str, Any]:
    """Write the normalised lines of every split, each pair in its place; returns counts."""
    held_out = [split for split in ("valid", "test") if split in recipe.files]
    if not journal.done("choosing"):
        cleaned = {split: _clean(recipe, split, texts, journal, executor) for split in (*held_out, "train")}
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
        written = ("train", *recipe.off_training())
        for split in written:
            texts.select(roles.of(split), to=split)
        pairs = {split: texts.count(split) for split in (*written, *held_out)}
        counts = {"pairs": pairs, "read": training.read, "dropped": dict(dropped), "warnings": roles.warnings}
        journal.note("choosing", counts, [path for split in written for path in texts.paths(split)], done=True)
    journal.remove([*texts.paths("all"), *(path for split in ("all", *held_out) for path in texts.hashes(split))])
    return journal.notes("choosing")


@dataclass(frozen=True)
class _Cleaned:
    source_hash: NDArray[np.uint64]  # (pairs kept,)
    pair_hash: NDArray[np.uint64]
    dropped: Counter[str]
    read: int  # pairs


def _clean(recipe: Recipe, split: str, texts: Texts, journal: Journal, executor: Executor | None) -> _Cleaned:
    """Write the normalised lines of a split; only training pairs (to "all") are filtered."""
    files, training, stage = recipe.files[split], split == "train", f"reading {split}"
    name = "all" if training else split
    paths = [*texts.paths(name), *texts.hashes(name)]
    notes = {"read": 0, "bytes": 0, "dropped": {}, **journal.notes(stage)}
    if not journal.done(stage):
        work = partial(
            clean_chunk,
            filters=recipe.filters if training else None,
            unicode_form=recipe.unicode_form,
            lowercase=recipe.lowercase,
        )
        pairs = islice(read_pairs(files), notes["read"], None)
        with (
            appending(paths) as outputs,
            Progress(stage, _expected_bytes(files), done=notes["bytes"]) as progress,
        ):
            for chunk in _mapped(work, in_chunks(pairs), executor):
                parts = chunk.source, chunk.target, chunk.source_hash.tobytes(), chunk.pair_hash.tobytes()
                for file, part in zip(outputs, parts, strict=True):
                    file.write(part)
                notes["dropped"] = dict(Counter(notes["dropped"]) + chunk.dropped)
                notes["read"] += chunk.read
                notes["bytes"] += chunk.source_bytes
                progress.advance(chunk.source_bytes)
                if journal.due:
                    flush(outputs)
                    journal.note(stage, notes, paths)
        journal.note(stage, notes, paths, done=True)
    source_hash, pair_hash = (np.fromfile(path, dtype="<u8") for path in texts.hashes(name))
    return _Cleaned(source_hash, pair_hash, Counter(notes["dropped"]), notes["read"])


def _learnt(recipe: Recipe, texts: Texts, journal: Journal, pairs: int, *, apart: bool) -> dict[str, State]:
    """States of the two tokenisers, learnt now or before."""
    path = texts.folder / "tokenizers.json"
    if not journal.done("learning"):
        write_json(path, (_learn_apart if apart else _learn)(recipe, texts, pairs))
        journal.note("learning", {}, [path], done=True)
    states: dict[str, State] = json.loads(path.read_text(encoding="utf-8"))
    return states


def _learn(recipe: Recipe, texts: Texts, pairs: int) -> dict[str, State]:
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


def _learn_apart(recipe: Recipe, texts: Texts, pairs: int) -> dict[str, State]:
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


def _learn_and_listen(recipe: Recipe, texts: Texts, pairs: int) -> tuple[dict[str, State], list[tuple[str, int, str]]]:
    logger, ears = logging.getLogger("hotloop"), _Ears()
    logger.addHandler(ears)
    logger.setLevel(logging.INFO)
    return _learn(recipe, texts, pairs), ears.messages


@dataclass
class _Encoded:
    """What is known of the rows of a split, by side."""

    rows: int
    long: dict[str, dict[int, int]]  # tokens of LONG rows by their number from 0
    tokens: dict[str, int]  # BOS and EOS not counted
    unknown: dict[str, int]  # of these

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> _Encoded:
        zero = dict.fromkeys(SIDES, 0)
        long = notes.get("long", {})
        return cls(
            rows=notes.get("rows", 0),
            long={side: {int(number): length for number, length in long.get(side, {}).items()} for side in SIDES},
            tokens={**zero, **notes.get("tokens", {})},
            unknown={**zero, **notes.get("unknown", {})},
        )

    def add(self, side: str, tokens: NDArray[Any], lengths: NDArray[np.int64], *, marks: int) -> None:
        """Count rows that follow those before; `marks` of BOS and EOS in each."""
        self.long[side] |= {self.rows + int(n): int(lengths[n]) for n in np.flatnonzero(lengths > LONG)}
        self.tokens[side] += len(tokens) - marks * len(lengths)
        self.unknown[side] += int(np.count_nonzero(tokens == UNK))

    def unknown_share(self) -> dict[str, float]:
        return {side: round(self.unknown[side] / max(self.tokens[side], 1), 6) for side in SIDES}


def _encode(
    texts: Texts, split: str, count: int, states: dict[str, State], journal: Journal, executor: Executor | None
) -> _Encoded:
    """Write the token rows of a split."""
    stage = f"encoding {split}"
    encoded = _Encoded.from_notes(journal.notes(stage))
    if journal.done(stage):
        return encoded
    work = partial(encode_chunk, source_state=json.dumps(states["source"]), target_state=json.dumps(states["target"]))
    writers = [
        TokenWriter(texts.path(split, side).with_suffix(""), vocabulary_size=int(states[side]["size"]), append=True)
        for side in SIDES
    ]
    paths = [path for writer in writers for path in writer.paths]
    pairs = islice(texts.pairs(split), encoded.rows, None)
    try:
        with Progress(stage, count, done=encoded.rows) as progress:
            for rows in _mapped(work, in_chunks(pairs), executor):
                for marks, side, writer, (tokens, lengths) in zip((1, 2), SIDES, writers, rows, strict=True):
                    writer.append(tokens, lengths)
                    encoded.add(side, tokens, lengths, marks=marks)
                encoded.rows += len(rows[0][1])
                progress.advance(len(rows[0][1]))
                if journal.due:
                    flush(writers)
                    journal.note(stage, asdict(encoded), paths)
    finally:
        for writer in writers:
            writer.close()
        forget_tokenizers()
    journal.note(stage, asdict(encoded), paths, done=True)
    return encoded


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
