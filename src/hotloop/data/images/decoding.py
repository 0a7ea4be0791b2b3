"""Pictures from a reader, in the form that the model sees: when they are wanted, or all at once into a file."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from hotloop.data.images.form import PixelForm, Pixels
from hotloop.data.images.source import PictureReader
from hotloop.data.loading import Loader
from hotloop.data.processes import cores
from hotloop.data.progress import Progress
from hotloop.errors import UserError

_CHUNK_BYTES = 4 << 20  # of pixels that a helping process hands over at once: they pass through shared memory
_SERIAL_SECONDS = 3.0  # less than this is done before other processes have helped much
_MOST_PROCESSES = 8


class Pictures(Protocol):
    """Pictures in the form that the model sees, by number."""

    def __len__(self) -> int: ...

    def gather(self, numbers: NDArray[np.int64]) -> Pixels:
        """(B, H, W, C), of its own memory, for the numbers (B,)."""
        ...


def place(reader: PictureReader, number: int) -> str:
    """The picture in words; with the row that names it, where the reader knows."""
    return getattr(reader, "place", reader.name)(number)


class ReadPictures:
    """Pictures decoded anew whenever they are wanted."""

    def __init__(self, reader: PictureReader, form: PixelForm) -> None:
        self._reader, self._form = reader, form

    def __len__(self) -> int:
        return len(self._reader)

    def gather(self, numbers: NDArray[np.int64]) -> Pixels:
        try:
            batch: Pixels = np.empty((len(numbers), *self._form.shape), dtype=self._form.dtype)
        except MemoryError as error:
            amount = len(numbers) * self._form.bytes / 1e9
            raise UserError(
                f"a batch of {len(numbers)} pictures takes {amount:,.0f} GB: lower data.size or data.batch_size"
            ) from error
        for row, number in enumerate(numbers.tolist()):
            batch[row] = self._form.apply(self._reader.read(number, self._form.at_least))
        return batch


@dataclass
class Decoded:
    """What came of decoding all pictures."""

    broken: dict[int, str] = field(default_factory=dict)
    sums: list[int] = field(default_factory=list)  # CRC-32 of each picture's pixels
    seconds: float = 0.0


def write(file: BinaryIO, reader: PictureReader, form: PixelForm, workers: int | None) -> Decoded:
    """Decode all pictures into `file`, in the format of `np.save`."""
    decoded, start = Decoded(), time.monotonic()
    header = {"descr": np.lib.format.dtype_to_descr(form.dtype), "fortran_order": False}
    np.lib.format.write_array_header_1_0(file, {**header, "shape": (len(reader), *form.shape)})
    with Progress("decoding pictures", len(reader)) as progress:
        for pictures, broken in _chunks(reader, form, workers):
            file.write(np.ascontiguousarray(pictures).data)
            decoded.sums += [zlib.crc32(picture.data) for picture in pictures]
            decoded.broken |= broken
            progress.advance(len(pictures))
    decoded.seconds = time.monotonic() - start
    return decoded


def _chunks(reader: PictureReader, form: PixelForm, workers: int | None) -> Iterator[tuple[Pixels, dict[int, str]]]:
    """All pictures in order, some at a time, with what is wrong with those that cannot be read."""
    step = max(1, min(_CHUNK_BYTES // form.bytes, 256))
    todo = [range(first, min(first + step, len(reader))) for first in range(0, len(reader), step)]
    chunks = Chunks(reader, form)
    alone = len(todo) if workers == 1 else 0
    start = time.monotonic()
    for done, numbers in enumerate(todo):
        if done >= alone and (workers is not None or _pays(done, len(todo), time.monotonic() - start)):
            break
        tensor, broken = chunks[numbers]
        yield tensor.numpy(), broken
    else:
        return
    processes = min(workers or _MOST_PROCESSES, cores(), len(todo) - done)
    for tensor, broken in Loader(chunks, todo[done:], workers=processes):
        yield tensor.numpy(), broken


def _pays(done: int, count: int, seconds: float) -> bool:
    """Whether more processes should do the rest, to judge by the time that the first chunks took."""
    return cores() > 1 and done > 0 and seconds / done * (count - done) > _SERIAL_SECONDS


class Chunks(Dataset[Any]):
    """Runs of pictures; a worker of a Loader hands them over in shared memory, so as tensors."""

    def __init__(self, reader: PictureReader, form: PixelForm) -> None:
        self._reader, self._form = reader, form

    def __getitem__(self, numbers: Sequence[int]) -> tuple[torch.Tensor, dict[int, str]]:
        pictures: Pixels = np.zeros((len(numbers), *self._form.shape), dtype=self._form.dtype)
        broken = {}
        for row, number in enumerate(numbers):
            try:
                pictures[row] = self._form.apply(self._reader.read(number, self._form.at_least))
            except UserError as error:
                broken[number] = str(error).removeprefix(f"{place(self._reader, number)}: ")
        return torch.from_numpy(pictures), broken
