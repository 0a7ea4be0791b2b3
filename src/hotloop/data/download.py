"""Fetch one large file over http(s): goes on where it stopped, checks it, never leaves half a file."""

import errno
import http.client
import json
import logging
import os
import re
import shutil
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from filelock import FileLock, Timeout

from hotloop.data.checksum import disagreement, record, sha256_of, verify
from hotloop.errors import UserError

logger = logging.getLogger(__name__)

CHUNK = 1 << 18
ENOUGH = 1 << 20  # an attempt that brought this many bytes does not count against `retries`
RETRY_STATUS = (408, 425, 429, 500, 502, 503, 504)
UNREACHABLE = (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ECONNREFUSED)


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    size: int | None = None,
    timeout: float = 30.0,
    retries: int = 5,
    backoff: float = 1.0,
) -> Path:
    """Fetch `url` into the file `target` and return `target`; a `target` that is there is only verified.

    Data collects in `<target>.part`, with what identifies it on the server in `<target>.part.json`. A broken
    transfer goes on from there, in this call or in a later one, by an HTTP range request that the server
    honours only if the file is still the same (RFC 9110, sections 13.1.5 and 14); otherwise it starts afresh.
    The checksum of a finished file is kept in `<target>.sha256`, in the format of `sha256sum`, and later
    downloads and uses are held against it. Of two processes that want one file, the second waits and finds it
    done.

    Args:
        url: an http or https address. Proxies are taken from the environment (`https_proxy`, `no_proxy`).
        target: file to make; its folder is made too.
        sha256: expected checksum, 64 hexadecimal digits.
        size: expected size in bytes.
        timeout: seconds without any data after which a connection counts as dropped.
        retries: further attempts in a row after drops; those that brought a megabyte do not count.
        backoff: seconds before the first of them, doubled each time up to a minute.

    Raises:
        UserError: no such address, no network, certificate refused, connection lost for good (the part
            stays), wrong size or checksum (the part is removed), full disk, folder not writable.
    """
    check_address(url)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {target.parent}: {error}") from error
    with locked(target.with_name(f".{target.name}.lock")):
        if target.exists():
            verify(target, sha256)
            return target
        part = _Part(url, target)
        tries = 0
        while True:
            before = part.size
            try:
                part.fetch(size, timeout)
                break
            except _Dropped as error:
                tries = 1 if part.size - before >= ENOUGH else tries + 1
                if error.restart:
                    part.discard()
                if tries > retries or (error.final and not part.connected):
                    kept = f"; {part.size:,} bytes are kept, run again to go on from there" if part.note else ""
                    raise UserError(f"cannot download {url}: {error}{kept}") from error
                wait = min(backoff * 2 ** (tries - 1), 60.0)
                logger.warning("%s: %s; attempt %d of %d in %.0f s", url, error, tries + 1, retries + 1, wait)
                time.sleep(wait)
        part.finish(sha256)
    return target


def check_address(url: str) -> None:
    """Raise UserError unless `url` is a well-formed http or https address."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a bad port or IPv6 address
        good = False
    if not good:
        raise UserError(f"cannot download {url!r}: it is no http:// or https:// address")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; says so in the log when it has to wait for another process."""
    lock = FileLock(path)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            logger.info("waiting for another process that holds %s", path)
            lock.acquire()
    except OSError as error:
        raise UserError(f"cannot write to the folder {path.parent}: {error}") from error
    try:
        yield
    finally:
        lock.release()


class _Dropped(Exception):
    """The transfer stopped.

    `final`: no use trying again if this call has never reached the server. `restart`: the part is of no use.
    """

    def __init__(self, message: str, *, final: bool = False, restart: bool = False) -> None:
        super().__init__(message)
        self.final, self.restart = final, restart


class _Part:
    """The unfinished file `<target>.part`; `<target>.part.json` notes which file on the server it is."""

    def __init__(self, url: str, target: Path) -> None:
        self.url, self.target = url, target
        self.path = target.with_name(f"{target.name}.part")
        self.note_path = target.with_name(f"{target.name}.part.json")
        self.connected = False
        self.note = self._read_note()
        if not self.note:
            self.discard()

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def discard(self) -> None:
        self.note = {}
        try:
            self.path.unlink(missing_ok=True)
            self.note_path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"cannot remove {self.path}: {error}") from error

    def fetch(self, size: int | None, timeout: float) -> None:
        """One attempt to get all that is missing."""
        if not self.note:
            self.discard()  # the server gave nothing by which a changed file could be noticed
        start = self.size
        if start and start == self.note.get("total"):
            return  # stopped between the last byte and the new name
        headers = {"User-Agent": "hotloop", "Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": self.note["validator"]}
        with _network_errors(self.url):
            response = _opener().open(Request(self.url, headers=headers), timeout=timeout)
        with response:
            self.connected = True
            if response.status not in (200, 206):
                raise UserError(f"cannot download {self.url}: the server answers {response.status}")
            total = _total(response)
            if response.status == 206 and (_first_byte(response) != start or total != self.note.get("total")):
                raise _Dropped("the server sends another piece than the one asked for", restart=True)
            if response.status == 200 and start:
                logger.info("%s: the file changed or the server cannot resume; starting afresh", self.url)
                self.discard()
                start = 0
            if size is not None and total is not None and total != size:
                self.discard()
                raise UserError(f"{self.url} has {total:,} bytes, {size:,} expected: not the file it should be")
            self._check_space(start, total)
            if response.status == 200:
                self._write_note(response, total)
            self._receive(response, start, total)
        if total is None and size is not None and self.size != size:
            raise _Dropped(f"{self.size:,} bytes received, {size:,} expected", restart=True)
        if total is not None and self.size < total:
            raise _Dropped(f"the connection was lost after {self.size:,} of {total:,} bytes")

    def finish(self, sha256: str | None) -> None:
        """Check the sum, record it, and give the file its name."""
        got = sha256_of(self.path)
        wrong = disagreement(self.target, got, sha256)
        if wrong:
            self.discard()
            raise UserError(
                f"{self.target.name} from {self.url} was damaged on the way or has changed at its source: {wrong}; "
                "what was downloaded has been removed"
            )
        try:
            os.replace(self.path, self.target)
        except OSError as error:
            raise UserError(f"cannot rename {self.path} to {self.target}: {error}") from error
        self.note_path.unlink(missing_ok=True)
        record(self.target, got)
        logger.info("%s: %s bytes, SHA-256 %s", self.target, f"{self.target.stat().st_size:,}", got)

    def _receive(self, response: Any, start: int, total: int | None) -> None:
        # What the network throws is turned into other errors inside, so an OSError comes from the disk.
        try:
            with self.path.open("ab" if start else "wb") as file, _progress(self.target.name, start, total) as show:
                while True:
                    with _network_errors(self.url):
                        chunk = response.read1(CHUNK)
                    if not chunk:
                        break
                    file.write(chunk)
                    show(len(chunk))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise UserError(self._no_space(f"is full after {self.size:,} bytes")) from error
            raise UserError(f"cannot write {self.path}: {error}") from error

    def _check_space(self, start: int, total: int | None) -> None:
        if total is not None:
            free = shutil.disk_usage(self.target.parent).free
            if free < total - start:
                raise UserError(self._no_space(f"has {free:,} bytes free, {total - start:,} are needed"))

    def _no_space(self, what: str) -> str:
        return f"cannot download {self.url}: the disk of {self.target.parent} {what}; make room and run again"

    def _write_note(self, response: Any, total: int | None) -> None:
        etag = response.headers.get("ETag", "")
        # A weak tag ("W/…") does not promise equal bytes; without tag or date a part can never be continued.
        validator = etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified")
        self.note = {"url": self.url, "validator": validator, "total": total} if validator else {}
        try:
            self.note_path.write_text(json.dumps(self.note), encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {self.note_path}: {error}") from error

    def _read_note(self) -> dict[str, Any]:
        try:
            note = json.loads(self.note_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        known = isinstance(note, dict) and note.get("url") == self.url and isinstance(note.get("validator"), str)
        return note if known else {}


def _opener() -> OpenerDirector:
    """Like urllib's own, but without file:, ftp: and data:, which a redirect could lead to."""

    opener = OpenerDirector()
    for handler in (ProxyHandler, UnknownHandler, HTTPHandler, HTTPSHandler):
        opener.add_handler(handler())
    for processor in (HTTPDefaultErrorHandler, HTTPRedirectHandler, HTTPErrorProcessor):
        opener.add_handler(processor())
    return opener


@contextmanager
def _network_errors(url: str) -> Iterator[None]:
    """Turn what the network throws into `_Dropped` (may be tried again) or `UserError` (no use)."""
    try:
        yield
    except HTTPError as error:
        error.close()
        message = f"the server answers {error.code} {error.reason}"
        if error.code == 416:  # range not satisfiable: what we have is no part of the file there now
            raise _Dropped(message, restart=True) from error
        if error.code in RETRY_STATUS:
            raise _Dropped(message) from error
        raise UserError(f"cannot download {url}: {message}; check the address") from error
    except (URLError, OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLError):
            raise _Dropped(f"no trusted TLS connection ({reason}); check date, proxy, address", final=True) from error
        if isinstance(reason, TimeoutError):
            raise _Dropped("the server sent nothing for too long (timeout)", final=True) from error
        if isinstance(reason, socket.gaierror):
            raise _Dropped(f"the server's name is not found; no network? ({reason.strerror})", final=True) from error
        if isinstance(reason, OSError) and reason.errno in UNREACHABLE:
            raise _Dropped(f"the server cannot be reached ({reason.strerror})", final=True) from error
        if isinstance(error, (ValueError, http.client.InvalidURL)) or isinstance(reason, str):
            raise UserError(f"cannot download {url}: {reason}; check the address") from error
        raise _Dropped(f"connection lost ({str(reason) or type(reason).__name__})") from error


def _total(response: Any) -> int | None:
    """Size of the whole file in bytes, from Content-Range or Content-Length."""
    if response.status == 206:
        found = re.fullmatch(r"bytes \d+-\d+/(\d+)", response.headers.get("Content-Range", ""))
        return int(found[1]) if found else None
    return response.length


def _first_byte(response: Any) -> int | None:
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(found[1]) if found else None


@contextmanager
def _progress(name: str, start: int, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yields a function that is told each number of bytes: a bar with time left, or a log line each tenth."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with Progress(TextColumn("{task.description}"), *columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(name, total=total, completed=start)
            yield lambda count: bar.advance(task, count)
        return
    done, begun = start, time.monotonic()
    each = (total or 1_000_000_000) // 10 or 1
    shown = done // each

    def log(count: int) -> None:
        nonlocal done, shown
        done += count
        if done // each == shown:
            return
        shown = done // each
        rate = (done - start) / max(time.monotonic() - begun, 1e-9)
        if total:
            left = (total - done) / rate
            logger.info("%s: %d %% of %.0f MB, %.0f s left", name, 100 * done // total, total / 1e6, left)
        else:
            logger.info("%s: %.0f MB", name, done / 1e6)

    yield log
