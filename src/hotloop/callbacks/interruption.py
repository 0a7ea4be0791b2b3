"""Ctrl-C and SIGTERM: stop between two steps and leave a checkpoint that continues exactly."""

import logging
import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.plugins.environments import SLURMEnvironment

logger = logging.getLogger(__name__)

AGREE_EVERY = 20  # optimiser steps between two agreements of several processes


class Interrupted(SystemExit):
    """Training was stopped by a signal; `code` is 128 + its number, as shells count."""


class Interruption(pl.Callback):
    """Turns the first Ctrl-C (SIGINT) or SIGTERM into a clean stop after the optimiser step under way.

    Left alone, Lightning 2.6 raises KeyboardInterrupt wherever the program happens to be, half-way through an
    optimiser step too, saves nothing, and exits with code 1; on SIGTERM it exits with code 0. Here the step is
    finished, the state is saved, and the program ends with code 130 (SIGINT) or 143 (SIGTERM). A validation that
    is under way or due comes first, because half a validation cannot be resumed; behind one within an epoch
    comes one more step, behind one at its end nothing of the next epoch. The second signal stops at once,
    without a checkpoint; the third kills.

    Several processes agree on where to stop, at the steps 1, 21, 41, … of an epoch and between epochs. Under SLURM
    with automatic requeueing SIGTERM stays with Lightning.

    List this callback last: other callbacks then have seen the step before it is saved.

    Args:
        path: of the checkpoint to write.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.saved: Path | None = None
        self.complete = False  # stopped behind the last step and validation: no training is left
        self._validation = ""  # what the one under way is followed by, in words; empty outside
        self._signal: int | None = None
        self._previous: dict[int, Any] = {}
        self._process = os.getpid()

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self.saved, self._signal = None, None
        self.complete, self._validation = False, ""
        if stage == "fit":
            # Before the loader's workers are forked: Ctrl-C reaches them too, and must not end them.
            self._take(signal.SIGINT)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        environment = trainer._accelerator_connector.cluster_environment
        if not (isinstance(environment, SLURMEnvironment) and environment.auto_requeue):
            self._take(signal.SIGTERM)  # only now: Lightning has put its own handler there after setup

    def _take(self, number: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            logger.info("not in the main thread: signals are left to whoever owns it")
        elif number not in self._previous:
            self._process = os.getpid()
            self._previous[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            return  # a worker of the loader
        if self._signal is not None:
            signal.signal(number, signal.SIG_DFL)
            raise Interrupted(128 + number)
        self._signal = number
        place = self._validation or "this step"
        # os.write: a handler may run in the middle of another print
        os.write(2, f"\nstopping after {place}, with a checkpoint; once more stops at once, without one\n".encode())

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        at_end = trainer.sanity_checking or trainer.fit_loop.epoch_loop.batch_progress.is_last_batch
        self._validation = "this validation" if at_end else "this validation and one more step"
        if self._signal is not None and trainer.is_global_zero:
            os.write(2, f"\na validation is due first: stopping after {self._validation}\n".encode())

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._validation = ""

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._anyone_signalled(trainer):
            # Behind the end of an epoch, where all callbacks have seen it, the next one has not begun: so the file says
            _unbegin_epoch(trainer)
            self._stop(trainer)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.world_size == 1 and self._signal is None:
            return
        steps, within = divmod(batch_idx + 1, trainer.accumulate_grad_batches)
        # Saved behind an epoch's last batch, a run would resume without the validation that is due there.
        if within or batch_idx + 1 == trainer.num_training_batches:
            return
        if trainer.world_size > 1 and steps % AGREE_EVERY != 1:
            return
        if self._anyone_signalled(trainer):
            self._stop(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._anyone_signalled(trainer):
            self.complete = True
            self._stop(trainer)
        self._restore(trainer)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._restore(trainer)

    def _anyone_signalled(self, trainer: pl.Trainer) -> bool:
        if trainer.world_size == 1:
            return self._signal is not None
        return trainer.strategy.reduce_boolean_decision(self._signal is not None, all=False)

    def _stop(self, trainer: pl.Trainer) -> None:
        trainer.save_checkpoint(self.path)
        self.saved = self.path
        if trainer.is_global_zero:
            told = "the last of this training; its state is in" if self.complete else "continue with the checkpoint"
            logger.warning("stopped after step %d; %s %s", trainer.global_step, told, self.path)
        raise Interrupted(128 + (self._signal or signal.SIGINT))

    def _restore(self, trainer: pl.Trainer) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        # Lightning puts back what it found when the run began, which for SIGINT was our own handler.
        found = getattr(trainer._signal_connector, "_original_handlers", {})
        if signal.SIGINT in found and signal.SIGINT in self._previous:
            found[signal.SIGINT] = self._previous[signal.SIGINT]
        self._previous = {}


def _unbegin_epoch(trainer: pl.Trainer) -> None:
    """Set the loop's counters to the end of the epoch before.

    Lightning 2.6 counts an epoch as ready before `on_train_epoch_start`, and with the batches of the epoch before
    still counted it would take a file saved there for one of a new epoch that is over.
    """
    progress = trainer.fit_loop.epoch_progress
    progress.current.ready -= 1
    progress.total.ready -= 1
    trainer.fit_loop.epoch_loop.batch_progress.reset_on_run()
