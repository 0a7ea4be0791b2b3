"""Short names of runs, from their folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

DAY = r"\d{4}-\d\d-\d\d"
TIME = re.compile(rf"({DAY})_(\d\d-\d\d-\d\d)(_\d+)?")
NEXT_OVERRIDE = re.compile(r",(?=[\w.@+~-]+=)")
LONGEST_FOLDER = 120  # characters of a job's overrides that a sweep keeps in the name of its folder


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """A name for each folder: the shortest part of its path that no other has, a name rather than a time.

    Of the jobs of a sweep only the overrides in which they differ are named. Args: absolute, different folders.
    """
    folders = [Path(readable(str(folder))) for folder in folders]
    if len(folders) == 1:
        return _shorter_times(["/".join(folders[0].parts[-2:])])
    for paths in (_without_common_overrides(folders), [folder.parts for folder in folders]):
        names = _shorter_times([_own_part(index, paths) for index in range(len(paths))])
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def readable(text: str) -> str:
    """`text` with a question mark for each byte of a file name that is no UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _own_part(index: int, paths: Sequence[Sequence[str]]) -> str:
    common = set.intersection(*map(set, paths))
    left = [part for part in paths[index] if part not in common]
    others = {part for number, path in enumerate(paths) for part in path if number != index}
    own = [part for part in left if part not in others and not TIME.fullmatch(part)]
    return min(own, key=len) if own else "/".join(left or paths[index][-1:])


def _shorter_times(names: list[str]) -> list[str]:
    """Without microseconds, and without the day where all have the same, as far as they stay different."""
    without_parts = [TIME.sub(r"\1_\2", name) for name in names]
    days = {day for name in names for day in re.findall(DAY, name)}
    without_day = [TIME.sub(r"\2", name) for name in names] if len(days) == 1 and len(names) > 1 else without_parts
    for shorter in (without_day, without_parts):
        if len(set(shorter)) == len(set(names)):
            return shorter
    return names


def _without_common_overrides(folders: Sequence[Path]) -> list[tuple[str, ...]]:
    """The parts of the paths, where `3_optimizer.lr=1,seed=1` is `lr=1` if all jobs of that sweep have seed=1."""
    jobs = {folder: _overrides(folder.name) for folder in folders}
    paths = []
    for folder in folders:
        sweep = [given for other, given in jobs.items() if other.parent == folder.parent and given]
        common = set.intersection(*map(set, sweep)) if sweep else set()
        keys = {item.partition("=")[0] for given in sweep for item in given if item not in common}
        short = len({key.rpartition(".")[2] for key in keys}) == len(keys)
        own = [_last_of_key(item) if short else item for item in jobs[folder] if item not in common]
        paths.append((*folder.parts[:-1], ",".join(own)) if own else folder.parts)
    return paths


def _overrides(name: str) -> list[str]:
    """Those in the name of a job's folder; nothing where it is no such name. One that was cut off is left out."""
    number, _, rest = name.partition("_")
    if not number.isdigit() or "=" not in rest:
        return []
    items = NEXT_OVERRIDE.split(rest)
    return items[:-1] if len(rest) >= LONGEST_FOLDER and len(items) > 1 else items


def _last_of_key(override: str) -> str:
    key, equals, value = override.partition("=")
    return key.rpartition(".")[2] + equals + value


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Labels of at most about `width` characters; numbered where they would not tell the names apart."""
    short = [
        name if len(name) <= width else f"{name[: width - width // 2 - 1]}…{name[-(width // 2) :]}" for name in names
    ]
    return short if len(set(short)) == len(short) else [f"{index}: {name}" for index, name in enumerate(short, start=1)]
