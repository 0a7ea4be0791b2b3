"""From the files of a corpus to a folder of token arrays, once: read, normalise, filter, learn, encode, store.

The folder's name is a hash of everything that decides its contents (bytes of the files, options, version of this
code; no dates, no paths), so that another option is another folder and the same options are never computed twice.
It is built beside its final name under a lock and renamed when whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hotloop.data.text.normalisation import detokenize
from hotloop.data.text.preparing.build import SIDES, build
from hotloop.data.text.preparing.processes import one_interrupt, worker_processes
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.preparing.store import TokenRows, finish, read_meta
from hotloop.data.text.readers import read_pairs
from hotloop.data.text.tokenizer import Tokenizer, load_tokenizer
from hotloop.errors import UserError

log = logging.getLogger(__name__)

_PARALLEL_BYTES = 16 << 20  # smaller corpora are done before a second process has started


class PreparedCorpus:
    """A complete folder."""

    def __init__(self, folder: Path, meta: Mapping[str, Any]) -> None:
        self.folder, self.meta = folder, meta
        states = json.loads((folder / "tokenizers.json").read_text(encoding="utf-8"))
        self.source_tokenizer: Tokenizer = load_tokenizer(states["source"])
        self.target_tokenizer = (
            self.source_tokenizer if meta["recipe"]["tokenizer"]["shared"] else load_tokenizer(states["target"])
        )

    @property
    def pairs(self) -> dict[str, int]:
        """Pairs of each split that exists."""
        return dict(self.meta["pairs"])

    @property
    def warnings(self) -> list[str]:
        """What the user should know of the data at every run."""
        return list(self.meta.get("warnings", ()))

    def rows(self, split: str, side: str) -> TokenRows:
        """The token rows of one side ("source" or "target")."""
        return TokenRows.open(self.folder / f"{split}.{side}")

    def text_path(self, split: str, side: str) -> Path:
        """The normalised lines of one side ("source" or "target") of valid or test."""
        return self.folder / f"{split}.{side}.txt"

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        """Normalised lines of valid or test; the target side of a tokenised corpus as natural text."""
        source, target = (self.text_path(split, side).read_bytes().decode("utf-8").split("\n")[:-1] for side in SIDES)
        _, _, pretokenized = self.meta["recipe"]["normalisation"]
        return source, detokenize(target, self.meta["recipe"]["languages"][1]) if pretokenized else target


def prepare(recipe: Recipe, cache_dir: Path, *, workers: int | None = None) -> PreparedCorpus:
    """The corpus from the cache, built first if it is not there. Raises UserError.

    `workers`: processes that clean and encode; None takes one a core (at most 4: memory) for all but small corpora.
    """
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder data.cache_dir={cache_dir}: {error.strerror}") from error
    try:
        return _prepare(recipe, cache_dir, workers)
    except OSError as error:
        if error.filename is None or not Path(os.fsdecode(error.filename)).is_relative_to(cache_dir):
            raise
        raise UserError(f"cannot write to data.cache_dir={cache_dir}: {error.strerror} ({error.filename})") from error


def _prepare(recipe: Recipe, cache_dir: Path, workers: int | None) -> PreparedCorpus:
    description = _described(recipe, cache_dir)
    name = hashlib.blake2b(json.dumps(description, sort_keys=True).encode(), digest_size=8).hexdigest()
    folder = cache_dir / name
    if (meta := read_meta(folder)) is not None:
        return PreparedCorpus(folder, meta)
    with _locked(cache_dir / f"{name}.lock"):
        if (meta := read_meta(folder)) is None:  # nobody built it while we waited
            if folder.exists():
                log.warning("%s is incomplete: building it again", folder)
                shutil.rmtree(folder)
            draft = cache_dir / f"{name}.building"
            shutil.rmtree(draft, ignore_errors=True)  # left by a run that was killed
            with one_interrupt():
                meta = _build(recipe, description, draft, workers)
            os.replace(draft, folder)
    return PreparedCorpus(folder, meta)


def _described(recipe: Recipe, cache_dir: Path) -> dict[str, Any]:
    for files in recipe.files.values():
        for path in files.paths():
            if not path.is_file():
                next(read_pairs(files), None)  # says what is missing
    return recipe.describe(cache_dir / "contents.json")


def _locked(path: Path) -> FileLock:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
        lock.release()
    except Timeout:
        log.info("another process is preparing this corpus: waiting for it (%s)", path)
    return lock


def _build(recipe: Recipe, description: dict[str, Any], draft: Path, workers: int | None) -> dict[str, Any]:
    """Fill `draft`; returns its meta data. A failed build leaves nothing."""
    start = time.monotonic()
    draft.mkdir(parents=True)
    try:
        with _executor(recipe, workers) as executor:
            meta = {"recipe": description, **build(recipe, draft, executor)}
        meta["seconds"] = round(time.monotonic() - start, 2)
        finish(draft, meta)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, BrokenProcessPool):
            raise UserError(
                "a process that was preparing the corpus died: too little memory, or a script of your own without "
                'if __name__ == "__main__"; data.prepare_workers=1 needs less and starts none'
            ) from None
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"no space left while preparing the corpus in {draft.parent}; set data.cache_dir") from None
        raise
    log.info("prepared %s pairs in %.1f s: %s", f"{meta['pairs']['train']:,}", meta["seconds"], draft.parent)
    return meta


def _executor(recipe: Recipe, workers: int | None) -> AbstractContextManager[Executor | None]:
    if workers is None:
        size = sum(path.stat().st_size for files in recipe.files.values() for path in files.paths())
        workers = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 4)
        workers = workers if size > _PARALLEL_BYTES else 1
    return worker_processes(workers) if workers > 1 else nullcontext()
