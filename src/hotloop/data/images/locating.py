"""Finding the pictures of a folder: all of them, or those that the cells of a table mean."""

from __future__ import annotations

import logging
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from hotloop.data.images.reading import ENDINGS
from hotloop.errors import UserError

log = logging.getLogger(__name__)

_NO_FILE = "no such file"
_MOVED = re.compile(r"[A-Za-z]:/|/|~/|file:/")  # starts of absolute paths, of whatever system


def scan_pictures(folder: Path) -> list[str]:
    """All pictures below `folder`, to judge by their endings, relative to it; frame_10 comes after frame_9.

    Other files are counted in the log. Raises UserError when there is no picture.
    """
    pictures, others = [], Counter[str]()
    for path in _files(folder):
        if path.lower().endswith(ENDINGS):
            pictures.append(path)
        else:
            others[PurePosixPath(path).suffix.lower() or PurePosixPath(path).name] += 1
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in others.most_common(5))
    if not pictures:
        raise UserError(f"{folder} holds no pictures ({', '.join(ENDINGS)}); it holds {kinds or 'no files at all'}")
    if others:
        log.info("%s: %s files that are no pictures are left alone (%s)", folder, f"{others.total():,}", kinds)
    return sorted(pictures, key=_natural)


class Locator:
    """Finds files by what a table says: relative to `folder` or to its folder "images", or as it stands.

    What is not there to the letter is looked for with other upper and lower case, other Unicode composition (é as
    one character or two), without its ending, in any folder below if it names none, and, if it is an absolute path
    of another machine, by the end of that path. Nothing is guessed: it must fit one file, and no two names may lead to
    one file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spelled: defaultdict[str, list[str]] | None = None
        self._stems: defaultdict[str, list[str]] = defaultdict(list)
        self._names: defaultdict[str, list[str]] = defaultdict(list)

    def locate(self, cells: Sequence[str]) -> tuple[list[str], dict[int, str]]:
        """The paths that `cells` mean, relative to the folder where they are below it; and what is wrong, by number.

        The path of a cell for which nothing was found is the cell itself.
        """
        known: dict[str, str | None] = {}
        for cell in dict.fromkeys(cells):
            known[cell] = self._exact(cell)
        owners = {path for path in known.values() if path is not None}
        problems: dict[str, str] = {}
        like: dict[str, str] = {}
        for cell in [cell for cell, path in known.items() if path is None]:
            found = self._similar(cell)
            if len(found) == 1 and found[0] not in owners:
                known[cell], like[cell] = found[0], found[0]
                owners.add(found[0])
            elif len(found) > 1:
                problems[cell] = f"{_NO_FILE}; it may be {' or '.join(found[:3])}"
            else:
                problems[cell] = f"{_NO_FILE}; {found[0]} is like it, but is named elsewhere" if found else _NO_FILE
        if like:
            first = next(iter(like))
            log.info("names spelled otherwise than their files: %s, as %r for %s", f"{len(like):,}", first, like[first])
        paths = [known[cell] or _slashed(cell) or "?" for cell in cells]
        return paths, {number: problems[cell] for number, cell in enumerate(cells) if cell in problems}

    def _exact(self, cell: str) -> str | None:
        for name in dict.fromkeys((cell, _slashed(cell))):
            for base in ("", "images"):
                path = os.path.join(self._folder, base, name)
                if os.path.isfile(path):
                    return self._relative(path)
            if os.path.isfile(name):
                return self._relative(os.path.abspath(name))
        return None

    def _similar(self, cell: str) -> list[str]:
        """Files that `cell` may mean."""
        name = _slashed(cell)
        moved = _MOVED.match(name) is not None
        names = [name]
        if moved:
            parts = [part for part in name.split("/") if part and part != "~" and not part.endswith(":")][-40:]
            names = ["/".join(parts[start:]) for start in range(len(parts))] or [name]
            for end in names:  # the longest first
                if (path := self._exact(end)) is not None:
                    return [path]
        if self._spelled is None:
            self._index()
        assert self._spelled is not None
        for index in (self._spelled, self._stems):
            for end in names:
                found = [path for base in ("", "images/") for path in index.get(_folded(base + end), ())]
                if found:
                    return found
        return self._names.get(_folded(names[-1]), []) if moved or "/" not in name else []

    def _index(self) -> None:
        self._spelled = defaultdict(list)
        for path in _files(self._folder):
            folded = _folded(path)
            self._spelled[folded].append(path)
            self._names[folded.rpartition("/")[2]].append(path)
            if folded.endswith(ENDINGS):
                self._stems[folded.rpartition(".")[0]].append(path)

    def _relative(self, path: str) -> str:
        folder = os.path.abspath(self._folder)
        absolute = os.path.abspath(path)
        inside = absolute.startswith(folder.rstrip(os.sep) + os.sep)
        return os.path.relpath(absolute, folder).replace(os.sep, "/") if inside else absolute


def _files(folder: Path) -> Iterator[str]:
    """Visible files below `folder`, relative to it; linked folders too, but each folder once."""
    seen: set[tuple[int, int]] = set()
    for root, folders, files in os.walk(folder, followlinks=True):
        status = os.stat(root)
        identity = status.st_dev, status.st_ino
        if identity in seen and status.st_ino:
            folders.clear()
            continue
        seen.add(identity)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__MACOSX")
        base = os.path.relpath(root, folder).replace(os.sep, "/")
        for name in sorted(files):
            if not name.startswith("."):
                yield name if base == "." else f"{base}/{name}"


def _slashed(cell: str) -> str:
    """The path with "/", without spaces around it or "./" before it."""
    name = cell.strip()
    if "\\" in name:
        name = name.replace("\\", "/")
    name = name.removeprefix("file://")
    while name.startswith("./"):
        name = name[2:]
    return name


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _natural(path: str) -> list[tuple[int, int, str]]:
    """A key that sorts numbers inside names by their value."""
    parts = re.split(r"(\d+)", path)
    return [(0, int(part), part) if place % 2 else (1, 0, part) for place, part in enumerate(parts)]
