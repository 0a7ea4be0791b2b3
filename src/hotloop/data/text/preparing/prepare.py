"""From the files of a corpus to a folder of token arrays, once: read, normalise, filter, learn, encode, store.

The folder's name is a hash of everything that decides its contents (bytes of the files, options, version of this
code; no dates, no paths), so that another option is another folder and the same options are never computed twice.
It is built beside its final name under a lock and renamed when whole; a build that was killed is gone on with.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from hotloop.data.cache_folder import build_once, described_name, writable
from hotloop.data.processes import cores, worker_processes
from hotloop.data.text.normalisation import detokenize
from hotloop.data.text.preparing.build import build
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.preparing.store import TokenRows
from hotloop.data.text.preparing.texts import SIDES
from hotloop.data.text.readers import read_pairs
from hotloop.data.text.tokenizer import Tokenizer, load_tokenizer

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
    with writable(cache_dir):
        description = _described(recipe, cache_dir)

        def fill(draft: Path) -> dict[str, Any]:
            return _build(recipe, description, draft, workers)

        return PreparedCorpus(
            *build_once(cache_dir, described_name(description), fill, what="the corpus", resumes=True)
        )


def _described(recipe: Recipe, cache_dir: Path) -> dict[str, Any]:
    for files in recipe.files.values():
        for path in files.paths():
            if not path.is_file():
                next(read_pairs(files), None)  # says what is missing
    return recipe.describe(cache_dir / "contents.json")


def _build(recipe: Recipe, description: dict[str, Any], draft: Path, workers: int | None) -> dict[str, Any]:
    """Fill `draft`; returns its meta data."""
    start = time.monotonic()
    with preparing_processes(recipe, workers) as executor:
        meta = {"recipe": description, **build(recipe, draft, executor)}
    meta["seconds"] = round(time.monotonic() - start, 2)
    log.info("prepared %s pairs in %.1f s: %s", f"{meta['pairs']['train']:,}", meta["seconds"], draft.parent)
    return meta


def preparing_processes(recipe: Recipe, workers: int | None) -> AbstractContextManager[Executor | None]:
    """Processes that go through the text of `recipe`; None where this one does it alone. See `prepare`."""
    if workers is None:
        size = sum(path.stat().st_size for files in recipe.files.values() for path in files.paths())
        workers = min(cores(), 4) if size > _PARALLEL_BYTES else 1
    return worker_processes(workers) if workers > 1 else nullcontext()
