"""Checkpoints whose record of the best survives the move to another run folder."""

from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import ModelCheckpoint


class Checkpoint(ModelCheckpoint):
    """Lightning's ModelCheckpoint, which forgets the best score when a run continues in a new folder.

    A resumed run has a folder of its own, and "best" has to mean the best of both parts. Files of the old
    folder are left alone: Lightning deletes only below its own `dirpath`. A checkpoint that is loaded to be
    tested changes nothing.
    """

    _stage = ""

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self._stage = stage
        super().setup(trainer, pl_module, stage)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._stage == "fit":
            super().load_state_dict({**state_dict, "dirpath": self.dirpath})
