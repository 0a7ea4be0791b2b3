"""Checks of conf/evaluate.yaml and conf/predict.yaml, before a checkpoint is read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch

from hotloop import checkpoint
from hotloop.config import check_options
from hotloop.decoding.options import DEFAULTS, check_ranges
from hotloop.errors import UserError


def checkpoint_path(asked: str) -> Path:
    """The file asked for; "last" is the newest below runs/."""
    return checkpoint.find_last(Path("runs")) if asked == "last" else Path(asked)


def check_evaluation(settings: dict[str, Any]) -> None:
    """Types and ranges of conf/evaluate.yaml."""
    check_common(settings)
    if settings["split"] not in ("valid", "test"):
        raise UserError(f"split={settings['split']!r}: expected test or valid")
    check_texts(settings, "source", "reference", "images", "targets", "output", optional=True)
    for one, other in (("source=FILE", "reference=FILE"), ("images=FOLDER", "targets=TABLE")):
        first, second = (settings[option.partition("=")[0]] for option in (one, other))
        if (first is None) != (second is None):
            raise UserError(f"give both {one} and {other}, or neither")
    check_options(pl.Trainer, settings["trainer"], "trainer")


def check_prediction(settings: dict[str, Any]) -> None:
    """Types and ranges of conf/predict.yaml."""
    check_common(settings)
    check_texts(settings, "input", "output", "device")
    check_texts(settings, "score", optional=True)
    check_whole_number(settings, "n_best")
    if settings["on_error"] not in ("fail", "skip"):
        raise UserError(f"on_error={settings['on_error']!r}: expected fail or skip")


def check_common(settings: dict[str, Any]) -> None:
    """What both share."""
    names = settings["ckpt_path"]
    if not isinstance(names, str) and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise UserError(f"ckpt_path={names!r}: expected a file name, or a list of them for an ensemble")
    if not names or (isinstance(names, list) and "" in names):
        raise UserError("ckpt_path is empty: give a checkpoint file")
    modules = settings["model_modules"]
    if not isinstance(modules, list) or not all(isinstance(name, str) and name for name in modules):
        raise UserError(f"model_modules={modules!r}: expected a list of modules, such as [my_package.my_model]")
    check_whole_number(settings, "batch_size")
    for key in ("beam_size", "max_length"):
        if settings[key] is not None:
            check_whole_number(settings, key)
    try:
        check_ranges({key: settings[key] for key in DEFAULTS if settings.get(key) is not None})
    except ValueError as error:
        raise UserError(str(error)) from error


def check_texts(settings: dict[str, Any], *keys: str, optional: bool = False) -> None:
    for key in keys:
        if not isinstance(settings[key], str) and not (optional and settings[key] is None):
            raise UserError(f"{key}={settings[key]!r}: expected a file name" + (" or null" if optional else ""))


def check_whole_number(settings: dict[str, Any], key: str) -> None:
    value = settings[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{key}={value!r}: expected a whole number of at least 1")


def refuse(settings: Mapping[str, Any], options: Mapping[str, Any], why: str) -> None:
    """Refuse an option that would do nothing.

    Args:
        settings: plain values.
        options: names that do not apply, with the values that they have when nobody sets them.
        why: for the message.
    """
    for key, default in options.items():
        if key in settings and settings[key] != default:
            raise UserError(f"{key}={settings[key]} does nothing here: {why}")


def choose_device(asked: str) -> torch.device:
    """The device to compute on.

    Raises:
        UserError: no such device on this machine.
    """
    if asked == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(asked)
        if device.type == "meta":
            raise TypeError("no memory, no result")
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise UserError(f"device={asked!r} is not on this machine: use auto, cpu, cuda, cuda:1 or mps") from error
    return device
