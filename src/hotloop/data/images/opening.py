"""From a source to pictures that can all be read, in the form that the model sees, and to splits."""

from __future__ import annotations

import csv
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotloop.data.cache_folder import described_name
from hotloop.data.images.cache import Cache, choose, in_memory, name_of, on_disk
from hotloop.data.images.decoding import Pictures, ReadPictures, place
from hotloop.data.images.form import PixelForm
from hotloop.data.images.source import SPLITS, ImageSource, PictureReader, TargetTable
from hotloop.errors import UserError

log = logging.getLogger(__name__)

_TOLD = 5  # unreadable pictures named in a message; all are in a file


@dataclass(frozen=True, kw_only=True)
class Opened:
    """Pictures that are ready.

    Attributes:
        table: of all pictures.
        reader: of all pictures.
        form: that they have.
        pictures: all, by number.
        kind: of the cache: disk | ram | none.
        cache: None for none.
        broken: numbers of those that cannot be read, ascending.
    """

    table: TargetTable
    reader: PictureReader
    form: PixelForm
    pictures: Pictures
    kind: str
    cache: Cache | None
    broken: NDArray[np.int64]


def open_pictures(
    source: ImageSource,
    *,
    size: tuple[int, int],
    region: tuple[float, float, float, float] | None,
    fit: str,
    channels: str,
    cache: str,
    cache_dir: Path,
    verify: str,
    on_error: str,
    workers: int | None,
) -> Opened:
    """Open the source and the cache (filled first, where nobody has), and find what cannot be read.

    For the options see `ImageDataModule`.

    Raises:
        UserError: pictures cannot be read (with on_error=fail), or there is no room for the cache.
    """
    table, reader = source.open()
    if len(table) != len(reader):
        raise ValueError(f"{len(table)} rows of targets, {len(reader)} pictures")
    alpha = getattr(reader, "alpha", "white")
    form = PixelForm(size, fit=fit, channels=channels, bits=reader.bits, alpha=alpha, region=region)
    kind = choose(reader, form, cache_dir) if cache == "auto" else cache
    if kind == "none":
        if on_error == "skip" and verify == "none" and hasattr(reader, "broken"):
            raise UserError("data.on_error=skip needs data.verify=decode: nothing else finds pictures to skip")
        if on_error == "skip" and verify == "header" and hasattr(reader, "broken"):
            log.warning("data.verify=header: a picture whose header alone is good will stop the run, not be skipped")
        pictures: Pictures = ReadPictures(reader, form)
        kept, broken = None, _found_broken(reader, form, verify, workers)
    else:
        kept = {"disk": on_disk, "ram": in_memory}[kind](reader, form, cache_dir, workers=workers)
        pictures, broken = kept.pictures, kept.broken
    if broken:
        name = described_name([name_of(reader, form), [reader.name(number) for number in sorted(broken)]])
        _tell(broken, reader, on_error, cache_dir / f"unreadable-{name}.csv")
    return Opened(
        table=table,
        reader=reader,
        form=form,
        pictures=pictures,
        kind=kind,
        cache=kept,
        broken=np.array(sorted(broken), dtype=np.int64),
    )


def rows_of_splits(opened: Opened, split: NDArray[np.int8]) -> dict[str, NDArray[np.int64]]:
    """Row numbers of the readable pictures of each split that has any. Raises UserError when none is for training.

    Args:
        opened: see there.
        split: (N,) of all rows, so that a picture that is repaired moves no other to another split.
    """
    rows = {}
    for number, name in enumerate(SPLITS):
        asked = np.flatnonzero(split == number)
        rows[name] = np.setdiff1d(asked, opened.broken)
        if len(asked) and not len(rows[name]):
            log.warning("none of the %s pictures of the %s split can be read", f"{len(asked):,}", name)
    if not len(rows["train"]):
        raise UserError("no picture that can be read is left to train on")
    return {name: numbers for name, numbers in rows.items() if len(numbers)}


def _found_broken(reader: PictureReader, form: PixelForm, verify: str, workers: int | None) -> Mapping[int, str]:
    """What is wrong with pictures that cannot be read, by number; readers that make pictures are not asked."""
    find = getattr(reader, "broken", None)
    if find is None:
        return {}
    if verify == "none":  # what has no file costs nothing to know
        found: dict[int, str] = getattr(reader, "missing", dict)()
    else:
        found = find(decode=verify == "decode", at_least=form.at_least, workers=workers)
    return {number: reason.removeprefix(f"{place(reader, number)}: ") for number, reason in found.items()}


def _tell(broken: Mapping[int, str], reader: PictureReader, on_error: str, file: Path) -> None:
    """Name some of them and write all to `file`. Raises UserError with `on_error` = fail."""
    lines = [f"{place(reader, number)}: {broken[number]}" for number in sorted(broken)[:_TOLD]]
    listed = _listed(broken, reader, file)
    more = f"; and {len(broken) - _TOLD:,} more{listed}" if len(broken) > _TOLD else listed
    what = f"{len(broken):,} of {len(reader):,} pictures cannot be read: {'; '.join(lines)}{more}"
    if on_error == "fail":
        raise UserError(f"{what}; data.on_error=skip goes on without them")
    if len(broken) == len(reader):
        raise UserError(what)
    log.warning("%s; they are skipped", what)


def _listed(broken: Mapping[int, str], reader: PictureReader, path: Path) -> str:
    """Write the list; returns where it is, in words."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["picture", "reason"])
            rows.writerows([place(reader, number), broken[number]] for number in sorted(broken))
    except OSError:
        return ""
    return f" (all are in {path})"
