"""Where pictures and text go."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.loggers import TensorBoardLogger


def tensorboard_loggers(trainer: pl.Trainer) -> list[TensorBoardLogger]:
    """The TensorBoard loggers of a trainer; empty on every process but the first."""
    if not trainer.is_global_zero:
        return []
    return [logger for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]


def show_picture(
    picture: Any, *, tag: str, step: int, boards: Sequence[TensorBoardLogger], directory: Path | None
) -> None:
    """Give a picture to TensorBoard, and write it to a file.

    Args:
        picture: (height, width, 3) uint8.
        tag: its name there; what follows the last slash names the file.
        step: optimiser steps so far.
        boards: where to show it.
        directory: folder for a PNG file; None writes none.
    """
    from PIL import Image

    for board in boards:
        board.experiment.add_image(tag, picture, step, dataformats="HWC")
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(directory / f"{tag.rpartition('/')[2]}_step_{step:07d}.png")


def escape_markdown(text: str) -> str:
    """`text` so that TensorBoard's Markdown shows it letter by letter, in a table cell too."""
    entities = {mark: f"&#{ord(mark)};" for mark in "&<>|*_`[]\\~#"}
    flat = " ".join(text.split())
    return "".join(entities.get(mark, mark) for mark in flat)


def escape_code(text: str) -> str:
    """`text` as a Markdown code block."""
    return "\n".join(f"    {line}" for line in text.splitlines())
