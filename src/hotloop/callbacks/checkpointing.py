"""Checkpoints: which are kept, what they are called, and where the best and the newest are."""

from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import ModelCheckpoint

from hotloop.callbacks.interruption import Interruption


class Checkpoint(ModelCheckpoint):
    """Lightning's ModelCheckpoint, which forgets the best score when a run continues in a new folder.

    A resumed run has a folder of its own, and "best" has to mean the best of both parts. Files of the old
    folder are left alone: Lightning deletes only below its own `dirpath`. A checkpoint that is loaded to be
    tested changes nothing. Epochs in file names count from 1, as everywhere that a reader sees.
    """

    _stage = ""

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self._stage = stage
        super().setup(trainer, pl_module, stage)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._stage == "fit":
            super().load_state_dict({**state_dict, "dirpath": self.dirpath})

    def format_checkpoint_name(self, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> str:
        if "epoch" in metrics:
            metrics = {**metrics, "epoch": metrics["epoch"] + 1}
        return super().format_checkpoint_name(metrics, *args, **kwargs)


def checkpoints(trainer: pl.Trainer) -> tuple[str, str]:
    """Paths of the best and the newest checkpoint; empty where there is none.

    The newest is what an interruption left, else what a saver keeps as its last, else that of a saver without
    a monitor.
    """
    best = last = newest = ""
    for saver in trainer.checkpoint_callbacks:
        path = getattr(saver, "best_model_path", "")
        last = last or getattr(saver, "last_model_path", "")
        if getattr(saver, "monitor", None) is None:
            newest = newest or path  # without a monitor "best" is the newest
        else:
            best = best or path
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        if isinstance(callback, Interruption) and callback.saved is not None:
            last = str(callback.saved)
    return best, last or newest


def monitored(trainer: pl.Trainer) -> tuple[str | None, Any]:
    """What the checkpoints are chosen by, and its best value so far; None where nothing is."""
    for saver in trainer.checkpoint_callbacks:
        if getattr(saver, "monitor", None) is not None:
            return saver.monitor, saver.best_model_score  # type: ignore[attr-defined]
    return None, None
