"""Mean and standard deviation of targets and pixels: what a task needs to bring both to one scale."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotloop.data.cache_folder import described_name, read_memo, write_json
from hotloop.data.images.decoding import Pictures
from hotloop.data.images.form import PixelForm
from hotloop.errors import UserError

log = logging.getLogger(__name__)

NORMALISATIONS = ("dataset", "imagenet", "half", "none")

_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # of the pictures that ImageNet models were trained on
_LUMA = (0.299, 0.587, 0.114)
_SAMPLE = 1000  # pictures; the mean of that many differs from the mean of all by about 1 % of its spread
_STEP = 50  # pictures at a time
_FINEST = 1e-6  # share of its size to which float32 holds a number


class Scale(NamedTuple):
    """One number a target, or a channel."""

    mean: list[float]
    std: list[float]


def target_scale(names: Sequence[str], targets: NDArray[np.float64]) -> Scale:
    """Of targets (N, T) in the training set; the deviation of a constant one is taken as 1, with a warning.

    Raises:
        UserError: a number too large for float32.
    """
    scale = Scale([], [])
    for name, column in zip(names, targets.T, strict=True):
        if not np.all(np.abs(column) <= np.finfo(np.float32).max):
            raise UserError(f"target {name}: {np.abs(column).max():g} is too large: give it in a larger unit")
        mean = math.fsum(column) / len(column)  # exact sums: the same on every machine
        std = math.sqrt(math.fsum((column - mean) ** 2) / len(column))
        if std == 0 < np.ptp(column):
            raise UserError(f"target {name}: its values (about {mean:g}) are too small: give it in a smaller unit")
        if np.ptp(column) == 0:
            log.warning("target %s is %g in all %s training pictures: nothing to learn", name, mean, f"{len(column):,}")
            std = 1.0
        elif std < _FINEST * abs(mean):
            log.warning("target %s: values near %g differ too little for float32: subtract a constant", name, mean)
        scale.mean.append(mean)
        scale.std.append(std)
    return scale


def pixel_scale(
    kind: str,
    pictures: Pictures,
    numbers: NDArray[np.int64],
    form: PixelForm,
    *,
    memo: Path,
    key: Callable[[], str],
) -> Scale:
    """Of each channel, in units of white.

    Args:
        kind: one of `NORMALISATIONS`; "dataset" measures the training pictures: all, or 1,000 spread evenly over them.
        pictures: of all splits.
        numbers: (n,) of the training pictures.
        form: of the pictures.
        memo: file that remembers what was measured.
        key: gives a text that tells these pictures from others.
    """
    channels = form.shape[2]
    if kind == "none":
        return Scale([0.0] * channels, [1.0] * channels)
    if kind == "half":
        return Scale([0.5] * channels, [0.5] * channels)
    if kind == "imagenet":
        mean, std = ([math.fsum(w * x for w, x in zip(_LUMA, values, strict=True))] for values in _IMAGENET)
        return Scale(mean, std) if channels == 1 else Scale(list(_IMAGENET[0]), list(_IMAGENET[1]))
    chosen = numbers[np.unique(np.linspace(0, len(numbers) - 1, _SAMPLE).astype(np.int64))]
    name = described_name([key(), chosen.tolist()])
    known = read_memo(memo)
    if name not in known:
        known = {**read_memo(memo), name: list(_measured(pictures, chosen, form))}
        try:
            memo.parent.mkdir(parents=True, exist_ok=True)
            write_json(memo, known)
        except OSError as error:
            log.info("cannot write %s: %s", memo, error.strerror)
    return Scale(*known[name])


def _measured(pictures: Pictures, numbers: NDArray[np.int64], form: PixelForm) -> Scale:
    channels = form.shape[2]
    total, squares, count = np.zeros(channels), np.zeros(channels), 0
    for first in range(0, len(numbers), _STEP):
        values = pictures.gather(numbers[first : first + _STEP]).reshape(-1, channels)
        for channel in range(channels):
            column = values[:, channel].astype(np.float64)
            total[channel] += column.sum()
            squares[channel] += np.square(column, out=column).sum()
        count += len(values)
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    flat = std < 0.5  # of one step between two shades
    if flat.any():
        log.warning("all training pictures have one colour: nothing to learn from them")
        std[flat] = form.largest
    # Six digits: sums in another order must not make another number, which would look like other data on resuming.
    return Scale(*([float(f"{x / form.largest:.6g}") for x in values] for values in (mean, std)))
