"""How much memory and disk is free, and whether pictures fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil

from hotloop.data.images.form import PixelForm
from hotloop.errors import UserError

_ROOM_LEFT = 0.1  # share of free memory or disk that stays free


def free_disk(folder: Path) -> int:
    """Bytes that may still be written into `folder`, which need not be there yet; 0 where it cannot be."""
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def free_memory() -> int:
    """Bytes that this process and its children may still take; the limit of a container counts."""
    free = psutil.virtual_memory().available
    for folder, limit, used in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            most, taken = (int(Path(folder, name).read_text()) for name in (limit, used))
            stat = dict(line.split() for line in Path(folder, "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue  # no such control group, or no limit ("max")
        free = min(free, most - taken + int(stat.get("inactive_file", 0)))
    return max(free, 0)


def check_room(needed: int, free: int, *, form: PixelForm, kind: str, where: str, instead: str) -> None:
    """Raise UserError if pictures of `needed` bytes leave less than a tenth of `free` bytes free.

    Args:
        needed, free: bytes.
        form: of the pictures.
        kind: of the cache.
        where: the place in words.
        instead: what else could be done.
    """
    fitting = free * (1 - _ROOM_LEFT)
    if needed <= fitting:
        return
    height, width = (int(side * (fitting / needed) ** 0.5) for side in form.size)
    smaller = f"data.size=[{height},{width}] would fit; " if min(height, width) >= 1 else ""
    raise UserError(
        f"data.cache={kind}: the pictures take {size_text(needed)}, but {size_text(free)} are free {where}: "
        f"{smaller}{instead}, or data.cache=none"
    )


def size_text(size: float) -> str:
    """Bytes in words: 1.5 GB."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
