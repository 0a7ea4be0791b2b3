"""The training report: report.json in the run folder, and the same numbers as scalars while training."""

import logging
import os
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from rich.console import Console

from hotloop.callbacks import environment
from hotloop.callbacks.accounting import Stopwatch, Totals, epoch_record, perplexity, rates
from hotloop.callbacks.checkpointing import checkpoints, monitored
from hotloop.callbacks.counting import StepCounter
from hotloop.callbacks.json_file import as_json, write_json
from hotloop.callbacks.tables import epoch_line, epoch_table, shown_metrics
from hotloop.errors import UserError
from hotloop.log_file import log_to_file

logger = logging.getLogger(__name__)


class TrainingReport(pl.Callback):
    """Writes report.json after every epoch and logs speed, loss and memory every `log_every_n_steps`.

    Each epoch is told in one line, to the log file and, where there is a progress bar, above it.

    What the figures mean:

    * `seconds` is training time: an epoch's time without validation and without writing checkpoints.
    * `data_wait_s` is the part of it that the loop spent asking the loader for the next batch, start-up of the
      loader at the beginning of the epoch included; neither the copy to the device nor other callbacks. On a
      GPU it is the host that waits: the device may still have work queued, so the figure is an upper bound.
    * `tokens_per_s` counts real target tokens with EOS, over all processes.
    * `peak_rss_mb` is the most resident memory seen at the moments of logging, after validation and at the end
      of the epoch, summed over processes. The kernel's own high-water mark is not used: it cannot be set back
      between the jobs of a sweep, which share one process. `peak_gpu_mb` is PyTorch's own count, set back at
      each epoch; of several devices the fullest.
    * `learning_rate` is the one the last optimiser step used (first parameter group); `steps` are those steps.

    Nothing waits for the device inside a step: losses are read at logging and at the ends of epochs only.
    The task sets `last_step`, a new object with `loss_sum` (0-dim tensor), `tokens` and `samples`, in each
    training step; without it samples are counted from the batch and losses are null. A 0-dim `grad_norm` is
    read where the task has one.

    Args:
        path: of report.json.
        command: what was asked for: train, evaluate.
        seed: the run's seed.
        precision: as asked for in the configuration; Lightning may use another.
        table: print a table of the epochs at the end.
    """

    def __init__(
        self,
        path: str,
        *,
        command: str = "train",
        seed: int | None = None,
        precision: str | None = None,
        table: bool = True,
    ) -> None:
        self.path = Path(path)
        self.task = ""
        self.command = command
        self.seed = seed
        self.precision = precision
        self.table = table
        self.clock = Stopwatch()
        self._stage = ""
        self._times_fetching = False
        self._begin()

    def _begin(self) -> None:
        self.epochs: list[dict[str, Any]] = []
        self.metrics: dict[str, float] = {}
        self.status = "running"
        self.error: str | None = None
        self._facts: dict[str, Any] = {}
        self._step = 0
        self._begin_epoch()

    def _begin_epoch(self, epoch: int = 0, first_step: int = 0) -> None:
        self._epoch, self._first_step = epoch, first_step
        self.clock.reset()
        self._counter = StepCounter()
        self._logged_totals = Totals()
        self._logged_seconds = self.clock.read()
        self._resumed_epoch: int | None = None
        self._norms: list[float] = []
        self._learning_rate: Any = None
        self._validation: dict[str, float] = {}
        self._peak_rss = 0.0

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self._stage = stage
        self.task = task_name(pl_module)
        if stage == "fit":
            self._begin()

    def state_dict(self) -> dict[str, Any]:
        return {
            "epochs": as_json(self.epochs),  # NaN as null here too
            "seconds": self.clock.read(),
            "totals": vars(self._counter.read()),
            "epoch": self._epoch,
            "first_step": self._first_step,
            "validation": dict(self._validation),
            "norms": list(self._norms),
            "learning_rate": number(self._learning_rate),
            "peak_rss": self._peak_rss,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._stage != "fit":  # a checkpoint that is being tested says nothing new about its training
            return
        self.epochs = list(state_dict["epochs"])
        self.clock.reset(state_dict["seconds"])
        self._counter = StepCounter(Totals(**state_dict["totals"]))
        self._resumed_epoch = state_dict["epoch"]
        self._first_step = state_dict["first_step"]
        self._validation = dict(state_dict["validation"])
        self._norms = list(state_dict["norms"])
        self._learning_rate = state_dict["learning_rate"]
        self._peak_rss = state_dict["peak_rss"]
        self._logged_totals = self._counter.read()
        self._logged_seconds = self.clock.read()

    # ---- the hooks of training ------------------------------------------------------------------------

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._facts = environment.describe(trainer, pl_module, precision=self.precision)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        environment.reset_peak(pl_module.device)
        if self._resumed_epoch is not None:
            self._epoch = self._resumed_epoch
            if self._epoch < trainer.current_epoch and self._counter.read().samples:
                # saved behind the last step of an epoch: Lightning goes on with the next one
                self._close_epoch(trainer, pl_module)
            if self._epoch != trainer.current_epoch:
                self._begin_epoch(trainer.current_epoch, trainer.global_step)
        self._step = trainer.global_step
        self._time_fetching(trainer)
        self.clock.switch("data")  # a run resumed within an epoch gets no on_train_epoch_start

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._settle_checkpoint_time()
        self._begin_epoch(trainer.current_epoch, trainer.global_step)
        environment.reset_peak(pl_module.device)
        self._sample_memory()
        self.clock.switch("data")

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self.clock.switch("step")
        self._learning_rate = learning_rate(trainer)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._counter.count(getattr(pl_module, "last_step", None), batch)
        step = trainer.global_step
        every = trainer.log_every_n_steps  # type: ignore[attr-defined]
        if step != self._step:  # not within gradient accumulation
            self._step = step
            if every and step % every == 0:
                self._log(trainer, pl_module, step)
        if not self._times_fetching:
            self.clock.switch("data")

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._in_fit(trainer):
            self.clock.switch("step")
            environment.synchronize(pl_module.device)  # work still queued is training, not validation
            self.clock.switch("validation")

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._in_fit(trainer):
            self._validation = measured(trainer, "val/")
            self._sample_memory()

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        self.clock.switch("checkpoint")

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.clock.phase == "step":
            environment.synchronize(pl_module.device)
        self._counter.read()
        self.clock.switch(None)
        self._sample_memory()
        self._close_epoch(trainer, pl_module)
        self._tell(trainer, pl_module)
        self._write(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._leave_fetching(trainer)
        self._settle_checkpoint_time()
        self.metrics.update(measured(trainer, "val/", "test/"))

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.status = "finished"
        self._write(trainer)
        if self.table and trainer.is_global_zero and self.epochs:
            Console().print(epoch_table(self.epochs))

    def renew(self, trainer: pl.Trainer) -> None:
        """Write again what the metrics and the best checkpoint are, where they changed after training."""
        self.metrics.update(measured(trainer, "val/", "test/"))
        self._write(trainer)

    def on_test_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._facts = self._facts or environment.describe(trainer, pl_module, precision=self.precision)
        self.status = "finished"
        self.renew(trainer)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._leave_fetching(trainer)
        self._settle_checkpoint_time()
        self.metrics.update(measured(trainer, "val/", "test/"))
        stopped = isinstance(exception, (KeyboardInterrupt, SystemExit))
        self.status = "interrupted" if stopped else "failed"
        self.error = None if stopped else f"{type(exception).__name__}: {exception}"
        try:
            self._write(trainer)
        except UserError as error:  # a full disk, say; what ended the run is told after it
            logger.warning("%s", error)

    # ---- waiting for data -----------------------------------------------------------------------------

    def _time_fetching(self, trainer: pl.Trainer) -> None:
        """Time the fetch itself, at the two places where Lightning's loop tells its profiler of it.

        No public hook lies between a fetch and the host's other work, and for a step of a millisecond that
        other work is as long as the step. Where a Lightning has no such places, all that happens between
        two steps counts as waiting.
        """
        loop = trainer.fit_loop.epoch_loop
        before, after = getattr(loop, "_on_before_fetch", None), getattr(loop, "_on_after_fetch", None)
        self._times_fetching = callable(before) and callable(after)
        if not self._times_fetching:
            return

        def start() -> None:
            self.clock.switch("data")
            before()  # type: ignore[misc]

        def stop() -> None:
            after()  # type: ignore[misc]
            self.clock.switch("step")

        vars(loop).update(_on_before_fetch=start, _on_after_fetch=stop)

    def _leave_fetching(self, trainer: pl.Trainer) -> None:
        for name in ("_on_before_fetch", "_on_after_fetch"):
            vars(trainer.fit_loop.epoch_loop).pop(name, None)

    def _in_fit(self, trainer: pl.Trainer) -> bool:
        return self._stage == "fit" and not trainer.sanity_checking

    def _sample_memory(self) -> float:
        resident = environment.resident_mb()
        self._peak_rss = max(self._peak_rss, resident)
        return resident

    def _log(self, trainer: pl.Trainer, pl_module: pl.LightningModule, step: int) -> None:
        totals = self._counter.read()
        norm = getattr(pl_module, "grad_norm", None)
        if norm is not None:
            self._norms.append(float(norm))
        resident = self._sample_memory()
        seconds = self.clock.read()
        interval = totals.since(self._logged_totals)
        spent = {phase: seconds[phase] - self._logged_seconds[phase] for phase in seconds}
        self._logged_totals, self._logged_seconds = totals, seconds
        speed = rates(interval, spent, processes=trainer.world_size)
        values = {
            "train/loss": interval.loss,
            "train/perplexity": perplexity(interval.loss) if interval.tokens else None,
            "train/tokens_per_s": speed["tokens_per_s"],
            "train/samples_per_s": speed["samples_per_s"],
            "train/data_wait_share": speed["data_wait_share"],
            "train/grad_norm": self._norms[-1] if norm is not None else None,
            "lr": number(self._learning_rate),
            "data/padding_share": interval.padding_share,
            "memory/rss_mb": resident,
            "memory/peak_gpu_mb": environment.peak_gpu_mb(pl_module.device),
        }
        known = {name: value for name, value in values.items() if value is not None}
        for board in trainer.loggers:
            board.log_metrics(known, step)

    def _close_epoch(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        totals, peak_rss, peak_gpu = self._over_processes(trainer, pl_module)
        record = epoch_record(
            epoch=self._epoch,
            steps=trainer.global_step - self._first_step,
            totals=totals,
            seconds=self.clock.read(),
            learning_rate=number(self._learning_rate),
            grad_norm=sum(self._norms) / len(self._norms) if self._norms else None,
            metrics=self._validation,
            peak_rss_mb=peak_rss,
            peak_gpu_mb=peak_gpu,
        )
        self.epochs = [e for e in self.epochs if e["epoch"] != record["epoch"]] + [record]
        self.metrics.update(self._validation)
        self._counter, self._validation, self._norms = StepCounter(), {}, []

    def _tell(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """One line for the epoch just recorded, to the log file and above the progress bar."""
        if not trainer.is_global_zero:
            return
        record = self.epochs[-1]
        shown = record | {"metrics": shown_metrics(pl_module, record["metrics"])}
        line = epoch_line(shown, epochs=trainer.max_epochs, step=trainer.global_step)
        log_to_file(line, source=__name__)
        if trainer.progress_bar_callback is not None:
            trainer.progress_bar_callback.print(line)

    def _over_processes(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> tuple[Totals, float, float | None]:
        """Totals and resident memory summed over the processes, GPU memory of the fullest device."""
        totals, gpu = self._counter.read(), environment.peak_gpu_mb(pl_module.device)
        if trainer.world_size == 1:
            return totals, self._peak_rss, gpu
        values = [*vars(totals).values(), self._peak_rss]
        summed = torch.tensor(values, dtype=torch.float64, device=pl_module.device)
        torch.distributed.all_reduce(summed)
        *counts, rss = summed.tolist()
        names = list(vars(totals))
        whole = {n: v if n == "loss_sum" else round(v) for n, v in zip(names, counts, strict=True)}
        if gpu is not None:
            fullest = torch.tensor(gpu, dtype=torch.float64, device=pl_module.device)
            torch.distributed.all_reduce(fullest, op=torch.distributed.ReduceOp.MAX)
            gpu = float(fullest)
        return Totals(**whole), rss, gpu

    def _settle_checkpoint_time(self) -> None:
        """Give the epoch just recorded the checkpoint that was written after its record was made."""
        if self.clock.phase == "checkpoint" and self.epochs:
            self.epochs[-1]["checkpoint_s"] = self.clock.read()["checkpoint"]
        self.clock.switch(None)

    # ---- the file -------------------------------------------------------------------------------------

    def content(self, trainer: pl.Trainer) -> dict[str, Any]:
        """report.json as it stands now."""
        best, last = checkpoints(trainer)
        name, score = monitored(trainer)
        seed = self.seed if self.seed is not None else os.environ.get("PL_GLOBAL_SEED")
        return {
            "task": self.task,
            "command": self.command,
            "status": self.status,
            "error": self.error,
            "seed": None if seed is None else int(seed),
            **dict.fromkeys(environment.FACTS),
            **self._facts,
            "steps": trainer.global_step,
            "epochs": self.epochs,
            "metrics": self.metrics,
            "monitor": None if name is None else {"name": name, "best": score},
            "best_checkpoint": best or None,
            "last_checkpoint": last or best or None,
        }

    def _write(self, trainer: pl.Trainer) -> None:
        if not trainer.is_global_zero:
            return
        try:
            write_json(self.path, self.content(trainer))
        except OSError as error:
            raise UserError(f"cannot write {self.path} (run_dir=…): {error.strerror or error}") from error


def task_name(pl_module: pl.LightningModule) -> str:
    """`translation` for a TranslationTask."""
    name = type(pl_module).__name__
    return (name.removesuffix("Task") or name).lower()


def learning_rate(trainer: pl.Trainer) -> Any:
    """That of the first parameter group, a float or a tensor; None where nothing is optimised."""
    groups = trainer.optimizers[0].param_groups if trainer.optimizers else []
    return groups[0]["lr"] if groups else None


def number(value: Any) -> float | None:
    return None if value is None else float(value)


def measured(trainer: pl.Trainer, *prefixes: str) -> dict[str, float]:
    """The metrics that Lightning holds now whose names begin so."""
    return {name: float(value) for name, value in trainer.callback_metrics.items() if name.startswith(prefixes)}
