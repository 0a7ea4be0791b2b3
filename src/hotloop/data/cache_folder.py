"""Folders of `data.cache_dir`: built once, by whoever comes first, and whole or not there at all."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from hotloop.data.processes import one_interrupt
from hotloop.errors import UserError

log = logging.getLogger(__name__)

META = "meta.json"
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
) -> tuple[Path, dict[str, Any]]:
    """The folder `name` of the cache and what `build` said of it; made first where it is not there or not whole.

    Several processes that want it at once wait for the one that builds. It is built beside its final name and
    renamed when whole; a build that fails leaves nothing.

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
            shutil.rmtree(draft, ignore_errors=True)  # left by a run that was killed
            with one_interrupt():
                meta = _filled(draft, build, what)
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


def _filled(draft: Path, build: Callable[[Path], dict[str, Any]], what: str) -> dict[str, Any]:
    draft.mkdir(parents=True)
    try:
        meta = build(draft)
        finish(draft, meta)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, BrokenProcessPool):
            raise UserError(
                f"a process that was preparing {what} died: too little memory, or a script of your own without "
                'if __name__ == "__main__"; data.prepare_workers=1 needs less and starts none'
            ) from None
        if isinstance(error, OSError) and error.errno in FULL:
            raise UserError(f"no space left while preparing {what} in {draft.parent}; set data.cache_dir") from None
        raise
    return meta


def finish(folder: Path, meta: dict[str, Any]) -> None:
    """Write `meta` with the size of every file: its presence says that the folder is complete."""
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.name != META}
    write_json(folder / META, {**meta, "sizes": sizes})


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
