"""Folders of `data.cache_dir`: built once, by whoever comes first, and whole or not there at all."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hotloop.data.processes import one_interrupt
from hotloop.errors import UserError

log = logging.getLogger(__name__)

META = "meta.json"
JOURNAL = "journal.json"  # in a draft: how far a build is that can go on after it was killed
STALE = 7 * 24 * 3600.0  # seconds after which a draft that nobody works on is given up
FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def writable(cache_dir: Path) -> Iterator[None]:
    """Makes `cache_dir`; what cannot be written in it is a UserError."""
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder data.cache_dir={cache_dir}: {error.strerror}") from error
    try:
        yield
    except OSError as error:
        if error.filename is None or not Path(os.fsdecode(error.filename)).is_relative_to(cache_dir):
            raise
        raise UserError(f"cannot write to data.cache_dir={cache_dir}: {error.strerror} ({error.filename})") from error


def described_name(description: Any) -> str:
    """A name that differs whenever `description` (plain values) does."""
    return hashlib.blake2b(json.dumps(description, sort_keys=True).encode(), digest_size=8).hexdigest()


def build_once(
    cache_dir: Path,
    name: str,
    build: Callable[[Path], dict[str, Any]],
    *,
    what: str,
    sound: Callable[[Path, dict[str, Any]], bool] = lambda folder, meta: True,
    resumes: bool = False,
) -> tuple[Path, dict[str, Any]]:
    """The folder `name` of the cache and what `build` said of it; made first where it is not there or not whole.

    Several processes that want it at once wait for the one that builds. It is built beside its final name and
    renamed when whole; a build that fails leaves nothing. One that `resumes` gets the draft of a build that was killed,
    interrupted, or lost a process, and goes on with it; drafts of other builds are removed when a week old.

    Args:
        cache_dir: see `writable`.
        name: see `described_name`.
        build: fills an empty folder; returns plain values, which are kept.
        what: the thing in words, for messages.
        sound: whether a folder of the right size holds what it should.

    Raises:
        UserError: the disk is full, or a process that helped to build died.
    """
    folder = cache_dir / name
    if (meta := read_meta(folder)) is not None and sound(folder, meta):
        return folder, meta
    with locked(cache_dir / f"{name}.lock", what):
        meta = read_meta(folder)
        if meta is None or not sound(folder, meta):  # nobody built it while we waited
            if folder.exists():
                log.warning("%s is incomplete: building it again", folder)
                shutil.rmtree(folder)
            draft = cache_dir / f"{name}.building"
            _remove_stale(cache_dir, draft)
            if not resumes:
                shutil.rmtree(draft, ignore_errors=True)  # left by a run that was killed
            with one_interrupt():
                meta = _filled(draft, build, what, resumes=resumes)
            os.replace(draft, folder)
    return folder, meta


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Alone with the file `path`; says so when it has to wait."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.info("another process is preparing %s: waiting for it (%s)", what, path)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _remove_stale(cache_dir: Path, wanted: Path) -> None:
    """Remove the drafts of other builds that were killed long ago and never gone on with."""
    for draft in cache_dir.glob("*.building"):
        with suppress(OSError, Timeout), FileLock(draft.with_suffix(".lock"), timeout=0):
            age = time.time() - max(path.stat().st_mtime for path in (draft, *draft.iterdir()))
            if draft != wanted and age > STALE:
                log.info("removing what was left of an unfinished preparation %d days ago: %s", age // 86400, draft)
                shutil.rmtree(draft, ignore_errors=True)


def _filled(draft: Path, build: Callable[[Path], dict[str, Any]], what: str, *, resumes: bool) -> dict[str, Any]:
    draft.mkdir(parents=True, exist_ok=resumes)
    try:
        meta = build(draft)
        finish(draft, meta)
    except BaseException as error:
        kept = resumes and isinstance(error, KeyboardInterrupt | BrokenProcessPool) and (draft / JOURNAL).exists()
        if not kept:
            shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, BrokenProcessPool):
            raise UserError(
                f"a process that was preparing {what} died: too little memory, or a script of your own without "
                'if __name__ == "__main__"; data.prepare_workers=1 needs less and starts none'
                + ("; the same command goes on with what is done" if kept else "")
            ) from None
        if kept:
            log.info("%s so far is kept: the same command goes on from here (or delete %s)", what, draft)
        if isinstance(error, OSError) and error.errno in FULL:
            raise UserError(f"no space left while preparing {what} in {draft.parent}; set data.cache_dir") from None
        raise
    return meta


def finish(folder: Path, meta: dict[str, Any]) -> None:
    """Write `meta` with the size of every file: its presence says that the folder is complete."""
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.name not in (META, JOURNAL)}
    write_json(folder / META, {**meta, "sizes": sizes})
    (folder / JOURNAL).unlink(missing_ok=True)  # last: a build that is killed here still knows that all is done


def read_meta(folder: Path) -> dict[str, Any] | None:
    """What `finish` wrote, or None when the folder is not there, half written or has lost bytes."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        whole = all((folder / name).stat().st_size == size for name, size in meta["sizes"].items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return meta if whole else None


def content_hash(path: Path, *, memo: Path) -> str:
    """A hash of the bytes of `path`, remembered in the file `memo`.

    The memo knows a file by path, size, time of change (ns) and inode: a rewrite changes at least one of them,
    unless somebody sets the clock back on purpose; reading gigabytes at every start would cost more than it saves.
    """
    stat = path.stat()
    identity = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}"
    known = read_memo(memo)
    if identity not in known:
        digest = hashlib.blake2b(digest_size=16)
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        known = {**read_memo(memo), identity: digest.hexdigest()}
        memo.parent.mkdir(parents=True, exist_ok=True)
        write_json(memo, known)
    return known[identity]


def read_memo(memo: Path) -> dict[str, Any]:
    """A mapping that was written by `write_json`; empty where it is lost or damaged."""
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_json(path: Path, value: object) -> None:
    """Replace `path` in one step, so that no reader sees half a file."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    draft.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
    os.replace(draft, path)
