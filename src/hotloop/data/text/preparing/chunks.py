"""The work on a few thousand pairs at a time, done in this process or in several. Imports no torch."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hotloop.data.text.normalisation import normalise
from hotloop.data.text.preparing.filters import Filters
from hotloop.data.text.preparing.store import token_type
from hotloop.data.text.tokenizer import Tokenizer, load_tokenizer
from hotloop.vocabulary import BOS, EOS

Item = TypeVar("Item")
Result = TypeVar("Result")
Rows = tuple[NDArray[Any], NDArray[np.int64]]  # ids end to end, length of each row

PAIRS = 5_000  # pairs in a chunk: some 0.2 s of work, 2 MB of text


@dataclass(frozen=True)
class CleanChunk:
    """The pairs of a chunk that pass the filters, one sentence a line, and what tells pairs apart."""

    source: bytes
    target: bytes
    source_hash: NDArray[np.uint64]  # (pairs,)
    pair_hash: NDArray[np.uint64]  # (pairs,)
    dropped: Counter[str]
    read: int  # pairs
    source_bytes: int  # of all pairs read, line ends included


def clean_chunk(
    pairs: Sequence[tuple[str, str]], *, filters: Filters | None, unicode_form: str, lowercase: bool
) -> CleanChunk:
    """Normalise and filter; without `filters` every pair is kept."""
    dropped: Counter[str] = Counter()
    sources, targets = [], []
    tidy = partial(normalise, unicode_form=unicode_form, lowercase=lowercase)
    for raw_source, raw_target in pairs:
        source, target = tidy(raw_source), tidy(raw_target)
        reason = filters.reason(source, target) if filters is not None else None
        if reason is None:
            sources.append(source.encode("utf-8"))
            targets.append(target.encode("utf-8"))
        else:
            dropped[reason] += 1
    return CleanChunk(
        source=_lines(sources),
        target=_lines(targets),
        source_hash=hashes_of(sources),
        pair_hash=hashes_of(joined_pairs(sources, targets)),
        dropped=dropped,
        read=len(pairs),
        source_bytes=sum(len(source.encode("utf-8")) + 1 for source, _ in pairs),
    )


def encode_chunk(pairs: Sequence[tuple[bytes, bytes]], *, source_state: str, target_state: str) -> tuple[Rows, Rows]:
    """Token rows of both sides of UTF-8 lines; the states are those of the tokenisers as JSON."""
    source_tokenizer, target_tokenizer = _tokenizer(source_state), _tokenizer(target_state)
    source_rows = source_tokenizer.encode([source.decode("utf-8") for source, _ in pairs])
    target_rows = target_tokenizer.encode([target.decode("utf-8") for _, target in pairs])
    for row in source_rows:
        row.append(EOS)
    for row in target_rows:
        row.insert(0, BOS)
        row.append(EOS)
    return _flat(source_rows, source_tokenizer.size), _flat(target_rows, target_tokenizer.size)


def hashes_of(texts: Iterable[bytes]) -> NDArray[np.uint64]:
    """Eight bytes a text: two of 10 million different texts share one in 1 of 300,000 corpora."""
    return np.frombuffer(b"".join(hashlib.blake2b(t, digest_size=8).digest() for t in texts), dtype="<u8")


def joined_pairs(sources: Sequence[bytes], targets: Sequence[bytes]) -> list[bytes]:
    """Each pair as one text."""
    return [source + b"\n" + target for source, target in zip(sources, targets, strict=True)]


def forget_tokenizers() -> None:
    """Free what `encode_chunk` keeps between two calls."""
    _tokenizer.cache_clear()


def in_chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Lists of PAIRS items, the last one shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, PAIRS)):
        yield chunk


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], executor: Executor | None, *, ahead: int
) -> Iterator[Result]:
    """Results in the order of `items`, of which no more than `ahead` are taken early: memory stays bounded."""
    if executor is None:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(executor.submit(function, item))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@lru_cache(maxsize=2)
def _tokenizer(state: str) -> Tokenizer:
    return load_tokenizer(json.loads(state))


def _lines(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _flat(rows: list[list[int]], vocabulary_size: int) -> Rows:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    tokens = np.fromiter(chain.from_iterable(rows), dtype=token_type(vocabulary_size), count=int(lengths.sum()))
    return tokens, lengths
