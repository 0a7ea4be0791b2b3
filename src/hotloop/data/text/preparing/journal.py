"""How far a build is, so that one that was killed goes on where it was.

The files of a build only grow. The journal says what has been done with how many bytes of each: whatever a killed
build wrote after that is cut off, and what it wrote before is never done again.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hotloop.data.cache_folder import JOURNAL, write_json

log = logging.getLogger(__name__)

_VERSION = 1  # raise it when the stages or what they note change: drafts of another version are not gone on with
_SECONDS_BETWEEN_NOTES = 5.0  # the work that a kill costs at most, for a few milliseconds of writing


class Journal:
    """What each stage of the build in `folder` has noted. Made for a folder of another build, it begins afresh."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._content = _read(folder)
        self._noted = time.monotonic()
        sizes = self._content["sizes"]
        for path in list(folder.iterdir()):
            if path.name not in sizes and path.name != JOURNAL:
                path.unlink()
        for name, size in sizes.items():
            os.truncate(folder / name, size)
        done = [stage for stage, notes in self._content["stages"].items() if notes["done"]]
        if self._content["stages"]:
            log.info("going on with a preparation that was broken off (done: %s)", ", ".join(done) or "a part")

    def notes(self, stage: str) -> dict[str, Any]:
        """What `stage` noted last; empty where it has not begun."""
        return dict(self._content["stages"].get(stage, {}).get("notes", {}))

    def done(self, stage: str) -> bool:
        """Whether nothing of `stage` is left to do."""
        return bool(self._content["stages"].get(stage, {}).get("done"))

    @property
    def due(self) -> bool:
        """Whether the last note is so old that another one is worth its time."""
        return time.monotonic() - self._noted > _SECONDS_BETWEEN_NOTES

    def note(self, stage: str, notes: dict[str, Any], files: Iterable[Path], *, done: bool = False) -> None:
        """Keep `notes` (plain values) of `stage`, which are true of `files` as they are now, flushed."""
        for path in files:
            with open(path, "rb+") as file:
                os.fsync(file.fileno())  # so that the note does not reach the disk before what it is about
                self._content["sizes"][path.name] = file.seek(0, os.SEEK_END)
        now = time.monotonic()
        before = self._content["stages"].get(stage, {}).get("seconds", 0.0)
        self._content["stages"][stage] = {"notes": notes, "done": done, "seconds": before + now - self._noted}
        write_json(self._folder / JOURNAL, self._content)
        self._noted = now

    def seconds(self) -> dict[str, float]:
        """How long each stage took, over all the processes that worked on it."""
        return {stage: round(entry["seconds"], 2) for stage, entry in self._content["stages"].items()}

    def remove(self, files: Iterable[Path]) -> None:
        """Delete what no later stage reads."""
        files = list(files)
        for path in files:
            self._content["sizes"].pop(path.name, None)
        write_json(self._folder / JOURNAL, self._content)
        for path in files:
            path.unlink(missing_ok=True)


def _read(folder: Path) -> dict[str, Any]:
    """The journal in `folder`, or an empty one where it does not fit the files."""
    try:
        content = json.loads((folder / JOURNAL).read_text(encoding="utf-8"))
        whole = content["version"] == _VERSION and all(
            (folder / name).stat().st_size >= size for name, size in content["sizes"].items()
        )
        if whole and all(isinstance(stage["notes"], dict) for stage in content["stages"].values()):
            return content
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return {"version": _VERSION, "stages": {}, "sizes": {}}
