"""Where pictures and text go."""

import lightning.pytorch as pl
from lightning.pytorch.loggers import TensorBoardLogger


def tensorboard_loggers(trainer: pl.Trainer) -> list[TensorBoardLogger]:
    """The TensorBoard loggers of a trainer; empty on every process but the first."""
    if not trainer.is_global_zero:
        return []
    return [logger for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]


def escape_markdown(text: str) -> str:
    """`text` so that TensorBoard's Markdown shows it letter by letter, in a table cell too."""
    entities = {mark: f"&#{ord(mark)};" for mark in "&<>|*_`[]\\~#"}
    flat = " ".join(text.split())
    return "".join(entities.get(mark, mark) for mark in flat)


def escape_code(text: str) -> str:
    """`text` as a Markdown code block."""
    return "\n".join(f"    {line}" for line in text.splitlines())
