"""Pictures decoded once: one array (N, H, W, C) in a file or in memory, shared by workers, ranks and later runs.

It holds the pictures after everything that is the same in each epoch (decoding, resizing, channels), as whole
numbers; a batch is one gather. On disk its folder is named by the content of the pictures and their form. In memory
it is a file without a name (memfd): it needs no room in /dev/shm, every process can map it, and it is gone with the
last of them.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.data.cache_folder import build_once, described_name, locked, read_memo, read_meta, writable, write_json
from hotloop.data.images.decoding import write
from hotloop.data.images.form import RESIZING, PixelForm, Pixels
from hotloop.data.images.room import check_room, free_disk, free_memory, size_text
from hotloop.data.images.source import PictureReader

log = logging.getLogger(__name__)

KINDS = ("disk", "ram", "none")

_FORMAT = 1  # raise it when the files of the cache are laid out in another way
_PROBES = 64  # pictures whose sums are held against the pixels when a cache is opened


class PictureArray:
    """Decoded pictures in a file that is mapped into memory. Travels to a worker as a path."""

    def __init__(self, path: str, owner: Any = None) -> None:
        # A plain view of the map: the class np.memmap makes each gather slower.
        self._array = np.asarray(np.load(path, mmap_mode="r"))
        self._path, self._owner = path, owner

    def __len__(self) -> int:
        return len(self._array)

    def __reduce__(self) -> tuple[Any, ...]:
        return PictureArray, (self._path,)

    def gather(self, numbers: NDArray[np.int64]) -> Pixels:
        return self._array[numbers]


@dataclass(frozen=True)
class Cache:
    """A complete cache.

    Attributes:
        pictures: as many as the reader has; black where one cannot be read.
        broken: what is wrong with those, by number.
        path: the folder on disk; None in memory.
        seconds: that decoding took, in this run or an earlier one.
        bytes: of all pixels.
    """

    pictures: PictureArray
    broken: dict[int, str]
    path: Path | None
    seconds: float
    bytes: int


def choose(reader: PictureReader, form: PixelForm, cache_dir: Path) -> str:
    """What `cache=auto` means here: disk, because the next run starts with it, unless there is little room."""
    needed = len(reader) * form.bytes
    disk, memory = free_disk(cache_dir), free_memory()
    if read_meta(cache_dir / name_of(reader, form)) is not None or 2 * needed <= disk:
        return "disk"
    kind = "ram" if 4 * needed <= memory else "none"
    log.info(
        "data.cache=auto → %s: the pictures take %s, %s of disk and %s of memory are free",
        kind, size_text(needed), size_text(disk), size_text(memory),
    )  # fmt: skip
    return kind


def on_disk(reader: PictureReader, form: PixelForm, cache_dir: Path, *, workers: int | None = None) -> Cache:
    """The pictures from `cache_dir`, decoded first where they are not there.

    Args:
        reader: of all pictures.
        form: that they get.
        cache_dir: see `hotloop.data.cache_folder`.
        workers: processes that decode; None = as many as pay.

    Raises:
        UserError: no room, or the folder cannot be written to.
    """
    with writable(cache_dir):
        name = name_of(reader, form)

        def fill(draft: Path) -> dict[str, Any]:
            check_room(
                len(reader) * form.bytes, free_disk(cache_dir),
                form=form, kind="disk", where=f"on the disk of {cache_dir}", instead="another data.cache_dir",
            )  # fmt: skip
            with open(draft / "pixels.npy", "wb") as file:
                decoded = write(file, reader, form, workers)
                file.flush()
                os.fsync(file.fileno())  # a machine that goes down must not leave a whole-looking file of zeros
            np.save(draft / "sums.npy", np.array(decoded.sums, dtype=np.uint32))
            used = sum(path.stat().st_size for path in cache_dir.glob("*/*") if path.is_file())
            log.info("decoded %s pictures in %.1f s: %s", f"{len(reader):,}", decoded.seconds, cache_dir / name)
            log.info("%s holds %s; what no run needs may be deleted", cache_dir, size_text(used))
            broken = {str(number): reason for number, reason in decoded.broken.items()}
            return {"form": form.saved(), "broken": broken, "seconds": round(decoded.seconds, 2)}

        def sound(folder: Path, meta: dict[str, Any]) -> bool:
            return _is_sound(folder, (len(reader), *form.shape), form.dtype)

        folder, meta = build_once(cache_dir, name, fill, what="the pictures", sound=sound)
        broken = {int(number): str(reason) for number, reason in meta["broken"].items()}
        pictures = PictureArray(str(folder / "pixels.npy"))
        return Cache(pictures, broken, folder, meta["seconds"], len(reader) * form.bytes)


def in_memory(reader: PictureReader, form: PixelForm, cache_dir: Path, *, workers: int | None = None) -> Cache:
    """The pictures in shared memory; the processes of a machine that want the same ones share them.

    Which process holds them is noted in `cache_dir`; where that cannot be written to, each process has its own.

    Raises:
        UserError: they do not fit.
    """
    name = name_of(reader, form)
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        shared = os.access(cache_dir, os.W_OK)
    except OSError:
        shared = False
    if not shared:
        log.info("data.cache_dir=%s cannot be written to: each process holds the pictures for itself", cache_dir)
        return _filled_memory(reader, form, workers, name)[0]
    note = cache_dir / f"{name}.{socket.gethostname()}.ram"
    with locked(cache_dir / f"{name}.lock", "the pictures"):
        if (found := _held_by_another(note, name, len(reader) * form.bytes)) is not None:
            return found
        cache, path = _filled_memory(reader, form, workers, name)
        broken = {str(number): reason for number, reason in cache.broken.items()}
        write_json(note, {"path": path, "broken": broken, "seconds": cache.seconds})
        return cache


def name_of(reader: PictureReader, form: PixelForm) -> str:
    """Of the cache: differs when the content of any picture does, or their form."""
    return described_name(
        {"pictures": reader.fingerprint(), "form": form.saved(), "resizing": RESIZING, "format": _FORMAT}
    )


def _is_sound(folder: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether the files hold what they should, to judge by the header and some pictures."""
    try:
        pixels = np.load(folder / "pixels.npy", mmap_mode="r")
        sums = np.load(folder / "sums.npy")
        if pixels.shape != shape or pixels.dtype != dtype or sums.shape != shape[:1]:
            return False
        probes = np.unique(np.linspace(0, shape[0] - 1, _PROBES).astype(np.int64)) if shape[0] else ()
        return all(zlib.crc32(np.ascontiguousarray(pixels[number]).data) == sums[number] for number in probes)
    except (OSError, ValueError, EOFError):
        return False


# ---- memory --------------------------------------------------------------------------------------------


class _MemoryFile:
    """A file without a name; where there is none (macOS, Windows), one in the folder for temporary files."""

    def __init__(self, name: str) -> None:
        if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
            self.file: Any = os.fdopen(os.memfd_create(_label(name)), "wb")
            self.path = f"/proc/{os.getpid()}/fd/{self.file.fileno()}"
        else:
            self.file = tempfile.NamedTemporaryFile(prefix=f"{_label(name)}-")  # noqa: SIM115 - as long as its owner
            self.path = self.file.name


def _label(name: str) -> str:
    return f"hotloop-{name}"


def _filled_memory(reader: PictureReader, form: PixelForm, workers: int | None, name: str) -> tuple[Cache, str]:
    size = len(reader) * form.bytes
    check_room(size, free_memory(), form=form, kind="ram", where="in memory", instead="data.cache=disk")
    memory = _MemoryFile(name)
    decoded = write(memory.file, reader, form, workers)
    memory.file.flush()
    log.info("decoded %s pictures into memory in %.1f s", f"{len(reader):,}", decoded.seconds)
    pictures = PictureArray(memory.path, owner=memory)
    return Cache(pictures, decoded.broken, None, round(decoded.seconds, 2), size), memory.path


def _held_by_another(note: Path, name: str, size: int) -> Cache | None:
    """The pictures in the memory of a process that is still there."""
    memo = read_memo(note)
    try:
        path = memo["path"]
        if os.readlink(path) != f"/memfd:{_label(name)} (deleted)" or os.stat(path).st_size < size:
            return None
        broken = {int(number): str(reason) for number, reason in memo["broken"].items()}
        return Cache(PictureArray(path), broken, None, float(memo["seconds"]), size)
    except (OSError, KeyError, TypeError, ValueError, AttributeError):
        return None  # that process has ended, or it is another user's
