"""What is known of each picture file (its depth, its content, whether it can be read), found out once and remembered.

A file is known again by its path, size and time of change (ns); one that was only touched or copied, by its content.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.data.images.reading import READING, PictureError, inspect_picture, read_picture
from hotloop.data.processes import cores, worker_processes
from hotloop.data.progress import Progress
from hotloop.errors import UserError

log = logging.getLogger(__name__)

HEADER, CONTENT, PIXELS = 1, 2, 4  # what was looked at
_CHUNK = 500  # files
_FEW = {HEADER: 50_000, CONTENT: 20_000, PIXELS: 20_000}  # fewer are done before other processes have started
_MOST_PROCESSES = 8
_COLUMNS = ("size", "mtime", "seen", "bits", "content")


@dataclass
class Facts:
    """Of N files, in their order."""

    size: NDArray[np.int64]  # (N,) bytes; -1 where there is no such file
    mtime: NDArray[np.int64]  # (N,) ns
    seen: NDArray[np.uint8]  # (N,) HEADER | CONTENT | PIXELS: what is known
    bits: NDArray[np.uint8]  # (N,) 8 or 16; 0 where the header cannot be read
    content: NDArray[np.uint8]  # (N, 16) hash of the bytes
    broken: dict[int, str] = field(default_factory=dict)  # number: why it cannot be read

    @classmethod
    def none(cls, count: int) -> Facts:
        """Nothing known of `count` files."""
        size, mtime = np.zeros(count, np.int64), np.zeros(count, np.int64)
        return cls(size, mtime, np.zeros(count, np.uint8), np.zeros(count, np.uint8), np.zeros((count, 16), np.uint8))


class Inspector:
    """Finds facts out, in several processes where that pays, and keeps them in a file.

    Args:
        count: of the files.
        path: gives the path of each, by number.
        folder: all of them belong to; the facts of one folder share a file.
        cache_dir: where that file is; None = nothing is kept.
    """

    def __init__(self, count: int, path: Callable[[int], str], folder: Path, cache_dir: Path | None) -> None:
        self._path = path
        self._keys = np.zeros(count, dtype=np.uint64)
        self._file = None if cache_dir is None else cache_dir / f"pictures-{_name(folder)}.npz"
        self._earlier = Facts.none(count)  # of files that were changed or touched since
        self.facts = self._recalled(count)

    def learn(
        self, what: int, numbers: NDArray[np.int64], *, at_least: tuple[int, int] | None = None, workers: int | None
    ) -> None:
        """Find out `what` (HEADER, CONTENT or PIXELS) of the files `numbers`, each once in the life of its content."""
        todo = np.unique(numbers)
        todo = todo[self.facts.seen[todo] & what == 0]
        if not len(todo):
            return
        if what == PIXELS:  # reading bytes is cheaper than decoding, and decoders pass the same bytes the same way
            touched = todo[self._earlier.seen[todo] & PIXELS > 0]
            self.learn(CONTENT, touched, workers=workers)
            todo = todo[self.facts.seen[todo] & what == 0]
        title = {HEADER: "reading headers", CONTENT: "hashing pictures", PIXELS: "checking pictures"}[what]
        look = partial(_looked_at, what=what, at_least=at_least)
        chunks = [todo[first : first + _CHUNK] for first in range(0, len(todo), _CHUNK)]
        with _mapped(look, workers or _processes(what, len(todo))) as mapped, Progress(title, len(todo)) as progress:
            paths = ([self._path(number) for number in chunk.tolist()] for chunk in chunks)
            for chunk, found in zip(chunks, mapped(paths), strict=True):
                self._take(chunk, found)
                progress.advance(len(chunk))
        self._remember()

    def _take(self, numbers: NDArray[np.int64], found: Facts) -> None:
        facts = self.facts
        for row, number in enumerate(numbers.tolist()):
            seen = int(found.seen[row])
            if seen & HEADER:
                facts.bits[number] = found.bits[row]
            if seen & CONTENT:
                facts.content[number] = found.content[row]
                if (self._earlier.content[number] == found.content[row]).all():  # only touched
                    facts.seen[number] |= self._earlier.seen[number] & PIXELS
                    if number in self._earlier.broken:
                        facts.broken[number] = self._earlier.broken[number]
            facts.seen[number] |= seen
            if row in found.broken:
                facts.broken[number] = found.broken[row]

    def _recalled(self, count: int) -> Facts:
        facts, earlier = Facts.none(count), self._earlier
        for number in range(count):
            path = self._path(number)
            self._keys[number] = _key(path)
            facts.size[number], facts.mtime[number] = _size_and_time(path)
        kept = _load(self._file)
        if kept is None or not len(kept["key"]):
            return facts
        place = np.minimum(np.searchsorted(kept["key"], self._keys), len(kept["key"]) - 1)
        known = kept["key"][place] == self._keys
        same = known & (kept["size"][place] == facts.size) & (kept["mtime"][place] == facts.mtime)
        for into, which in ((facts, same), (earlier, known & ~same)):
            for column in ("seen", "bits", "content"):
                getattr(into, column)[which] = kept[column][place[which]]
        reasons = json.loads(str(kept["broken"]))
        if reasons:
            for number in np.flatnonzero(known & np.isin(self._keys, [np.uint64(key) for key in reasons])).tolist():
                (facts if same[number] else earlier).broken[number] = reasons[str(self._keys[number])]
        return facts

    def _remember(self) -> None:
        """Replace the file in one step; what it knows of other files of the folder stays."""
        if self._file is None:
            return
        there = np.unique(self._keys, return_index=True)[1]
        there = there[self.facts.size[there] >= 0]
        columns = {name: getattr(self.facts, name)[there] for name in _COLUMNS}
        keys, reasons = self._keys[there], {}
        kept = _load(self._file)
        if kept is not None:
            others = ~np.isin(kept["key"], keys)
            keys = np.concatenate([keys, kept["key"][others]])
            columns = {name: np.concatenate([columns[name], kept[name][others]]) for name in _COLUMNS}
            reasons = json.loads(str(kept["broken"]))
        for key in self._keys[there].tolist():
            reasons.pop(str(key), None)
        reasons |= {str(self._keys[number]): reason for number, reason in self.facts.broken.items()}
        order = np.argsort(keys)
        draft = self._file.with_name(f"{self._file.stem}.{uuid.uuid4().hex}.tmp")
        try:
            draft.parent.mkdir(parents=True, exist_ok=True)
            with open(draft, "wb") as file:
                arrays = {name: column[order] for name, column in columns.items()}
                np.savez(file, key=keys[order], broken=np.array(json.dumps(reasons)), **arrays)
            os.replace(draft, self._file)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            log.warning("cannot write %s: %s; the pictures will be checked again", self._file, error.strerror)


def _looked_at(paths: Sequence[str], *, what: int, at_least: tuple[int, int] | None) -> Facts:
    """Facts of `paths`; what was seen on the way counts too."""
    facts = Facts.none(len(paths))
    for row, path in enumerate(paths):
        facts.seen[row] = HEADER
        if what != HEADER:
            facts.seen[row] |= CONTENT
            facts.content[row] = np.frombuffer(_content(path), np.uint8)
        try:
            facts.bits[row] = inspect_picture(path).bits
            if what == PIXELS:
                read_picture(path, bits=int(facts.bits[row]), alpha="drop", at_least=at_least)
                facts.seen[row] |= PIXELS
        except PictureError as error:
            facts.broken[row] = error.reason
            if what != HEADER:
                facts.seen[row] |= PIXELS  # it will not be read either
    return facts


def _content(path: str) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    if not os.path.isfile(path):
        return bytes(16)  # its header cannot be read either, which says why
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return bytes(16)
    return digest.digest()


@contextmanager
def _mapped(function: Callable[..., Facts], processes: int) -> Iterator[Callable[..., Iterator[Facts]]]:
    """A `map` of `function`, in this process or in several."""
    if processes <= 1:
        yield partial(map, function)  # type: ignore[arg-type]
        return
    try:
        with worker_processes(processes) as executor:
            yield partial(executor.map, function)
    except BrokenProcessPool:
        raise UserError(
            "a process that was looking at the pictures died: too little memory, a file that kills its decoder, or a "
            'script of your own without if __name__ == "__main__"; data.prepare_workers=1 starts none'
        ) from None


def _processes(what: int, count: int) -> int:
    return 1 if count < _FEW[what] else min(cores(), _MOST_PROCESSES)


def _size_and_time(path: str) -> tuple[int, int]:
    try:
        stat = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return -1, 0
    return stat.st_size, stat.st_mtime_ns


def _key(path: str) -> int:
    digest = hashlib.blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _name(folder: Path) -> str:
    """Of the file for `folder`; what another version of the reader or of Pillow found does not count."""
    from PIL import __version__

    text = f"{folder.resolve()}|{READING}|{__version__}"
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _load(file: Path | None) -> Any:
    """What was kept, or None where there is nothing, or it is damaged."""
    if file is None or not file.exists():
        return None
    try:
        with np.load(file, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in ("key", "broken", *_COLUMNS)}
        whole = len({len(arrays[name]) for name in ("key", *_COLUMNS)}) == 1
        if whole and isinstance(json.loads(str(arrays["broken"])), dict):
            return arrays
    except Exception:  # a damaged archive raises anything at all
        pass
    log.warning("%s is damaged: the pictures are checked again", file)
    return None
