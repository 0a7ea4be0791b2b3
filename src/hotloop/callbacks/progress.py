"""A progress bar that costs nothing and also reads well in a log file."""

import time
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks.progress.progress_bar import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.table import Column

from hotloop.callbacks.accounting import Totals, rates
from hotloop.callbacks.counting import StepCounter
from hotloop.callbacks.report import TrainingReport
from hotloop.callbacks.tables import epoch_line, epoch_name, number, shown_metrics, speed

NARROW = 72  # columns of a terminal below which the bar itself gives way to the figures
SELDOM, OFTEN = 2.0, 0.2  # seconds: no later, and no sooner, than that is the bar drawn again


class ThroughputBar(ProgressBar):
    """Shows loss, speed and remaining time; a bar on a terminal, plain lines elsewhere.

    On a terminal the bar is drawn every `refresh_every` steps, but not more than five times a second, and at
    least every two seconds where steps are slow. Where output is no terminal (CI, `nohup`, a pipe) there is one
    line at the end of each epoch, and one every `line_every_s` seconds within long epochs. The line of an epoch
    comes from the TrainingReport, which knows the wait for data too; without one the bar makes its own.
    The loss is the mean since the last drawing, in the line of an epoch the mean of the epoch. Reading it is the
    only time the bar waits for the device. Speed is that of training, without validation, over all processes.

    Args:
        refresh_every: steps between two drawings on a terminal.
        line_every_s: seconds between two lines where output is no terminal.
        console: where to write; standard output by default.
    """

    def __init__(self, *, refresh_every: int = 20, line_every_s: float = 30.0, console: Console | None = None) -> None:
        super().__init__()
        if refresh_every < 1 or line_every_s <= 0:
            raise ValueError(
                f"refresh_every ({refresh_every}) must be at least 1, line_every_s ({line_every_s}) above 0"
            )
        self.refresh_every = refresh_every
        self.line_every_s = line_every_s
        self._console = console
        self._enabled = True
        self._progress: Progress | None = None
        self._tasks: dict[str, Any] = {}
        self._validation_began = 0.0
        self._shown = 0.0  # when figures were last shown, and what had been done by then
        self._shown_totals = Totals()
        self._batches = 0  # trained on since fit began, for the remaining time
        self._fit_began = 0.0
        self._begin_epoch()

    @property
    def console(self) -> Console:
        """Made late: a console cannot be handed to a spawned process."""
        self._console = self._console or Console()
        return self._console

    @property
    def _animated(self) -> bool:
        return self.console.is_terminal and not self.console.is_dumb_terminal

    # ---- what Lightning asks of a progress bar --------------------------------------------------------

    def disable(self) -> None:
        """Called on every process but the first."""
        self._enabled = False

    def enable(self) -> None:
        self._enabled = True

    def print(self, *args: Any, **kwargs: Any) -> None:
        """Print above the bar."""
        if self._enabled:
            self.console.print(*args, markup=False, highlight=False, soft_wrap=True)

    # ---- training -------------------------------------------------------------------------------------

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._batches, self._fit_began = 0, time.perf_counter()
        self._begin_epoch()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._begin_epoch()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if not self._enabled:
            return
        self._batches += 1
        self._steps += 1
        self._counter.count(getattr(pl_module, "last_step", None), batch)
        passed = time.perf_counter() - self._shown
        if self._animated:
            due = passed > SELDOM or (self._steps >= self.refresh_every and passed > OFTEN)
            due = due or self._batches == 1
        else:
            due = passed > self.line_every_s
        if due:
            self._show(trainer, outputs, batch_idx)

    def _show(self, trainer: pl.Trainer, outputs: Any, batch_idx: int) -> None:
        totals = self._counter.read()
        interval, now = totals.since(self._shown_totals), time.perf_counter()
        left = remaining_batches(trainer, batch_idx)
        eta = None if left is None else left * (now - self._fit_began) / self._batches
        loss = interval.loss if interval.losses else returned_loss(outputs)
        figures = [
            f"loss {number(loss, 3)}",
            measured_speed(interval, now - self._shown, trainer.world_size),
            f"ETA {clock(eta)}",
        ]
        batches = trainer.num_training_batches
        name = epoch_name(trainer.current_epoch, trainer.max_epochs)
        if self._animated:
            self._draw(name, batch_idx + 1, batches, figures)
        else:
            of = "" if batches == float("inf") else f"/{batches}"
            self.print(" · ".join([name, f"batch {batch_idx + 1}{of}", *figures]))
        self._shown, self._shown_totals, self._steps = now, totals, 0

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not self._enabled:
            return
        self._clear()
        if any(isinstance(callback, TrainingReport) for callback in trainer.callbacks):  # type: ignore[attr-defined]
            return
        totals, passed = self._counter.read(), time.perf_counter() - self._epoch_began
        training = passed - self._validation_s
        figures = rates(totals, {"data": 0.0, "step": training}, processes=trainer.world_size)
        # An epoch without a validation would show the values of the one before.
        metrics = trainer.callback_metrics if self._validation_s else {}
        record = {
            "epoch": trainer.current_epoch,
            "seconds": training,
            "data_wait_s": None,
            "validation_s": self._validation_s,
            "checkpoint_s": 0.0,
            "samples_per_s": figures["samples_per_s"],
            "tokens_per_s": figures["tokens_per_s"],
            "train_loss": totals.loss,
            "metrics": shown_metrics(pl_module, {name: float(value) for name, value in metrics.items()}),
        }
        self.print(epoch_line(record, epochs=trainer.max_epochs, step=trainer.global_step))

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._validation_began = time.perf_counter()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._clear("validation")
        self._shown = time.perf_counter()
        self._validation_s += self._shown - self._validation_began

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._clear()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._clear()

    # ---- the other loops ------------------------------------------------------------------------------

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if not trainer.sanity_checking:
            self._advance("validation", batch_idx, trainer.num_val_batches[dataloader_idx])

    def on_test_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._advance("test", batch_idx, trainer.num_test_batches[dataloader_idx])

    def on_predict_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._advance("predict", batch_idx, trainer.num_predict_batches[dataloader_idx])

    def on_test_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._clear()

    def on_predict_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._clear()

    def _advance(self, name: str, batch_idx: int, total: int | float) -> None:
        if self._enabled and self._animated and time.perf_counter() - self._drawn > OFTEN:
            self._draw(name, batch_idx + 1, total, [])

    # ---- drawing --------------------------------------------------------------------------------------

    def _begin_epoch(self) -> None:
        self._counter = StepCounter()
        self._shown_totals = Totals()
        self._epoch_began = time.perf_counter()
        self._shown = self._epoch_began
        self._validation_s = 0.0
        self._drawn = 0.0
        self._steps = 0

    def _draw(self, name: str, done: int, total: int | float, figures: list[str]) -> None:
        if self._progress is None:
            one_line = Column(no_wrap=True, overflow="ellipsis")
            columns: list[ProgressColumn] = [TextColumn("{task.fields[line]}", table_column=one_line, markup=False)]
            if self.console.width >= NARROW:
                columns = [
                    TextColumn("{task.description}", markup=False),
                    BarColumn(bar_width=20),
                    MofNCompleteColumn(),
                    TextColumn("{task.fields[figures]}", markup=False),
                ]
            self._progress = Progress(
                *columns,
                console=self.console,
                auto_refresh=False,
                transient=True,
            )
            self._progress.start()
        known = None if total == float("inf") else total
        count = f"{name} {done}" + ("" if known is None else f"/{known}")
        text, line = " · ".join(figures), " · ".join([count, *figures])
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=known, figures=text, line=line)
        self._progress.update(self._tasks[name], completed=done, total=known, figures=text, line=line)
        self._progress.refresh()
        self._drawn = time.perf_counter()

    def _clear(self, name: str | None = None) -> None:
        """Take away one bar, or all of them."""
        if self._progress is None:
            return
        if name is not None:
            if name in self._tasks:
                self._progress.remove_task(self._tasks.pop(name))
                self._progress.refresh()
            return
        self._progress.stop()
        self._progress, self._tasks = None, {}


def remaining_batches(trainer: pl.Trainer, batch_idx: int) -> int | None:
    """Training batches still to come after batch `batch_idx` of this epoch; None where that is open."""
    bounds = []
    per_epoch = trainer.num_training_batches
    if trainer.max_epochs and trainer.max_epochs > 0 and per_epoch != float("inf"):
        bounds.append((trainer.max_epochs - trainer.current_epoch) * int(per_epoch) - batch_idx - 1)
    if trainer.max_steps and trainer.max_steps > 0:
        bounds.append((trainer.max_steps - trainer.global_step) * trainer.accumulate_grad_batches)
    return max(0, min(bounds)) if bounds else None


def measured_speed(done: Totals, seconds: float, processes: int) -> str:
    """What `processes` processes do a second that each did `done` in `seconds`."""
    figures = rates(done, {"data": 0.0, "step": seconds}, processes=processes)
    return speed(samples_per_s=figures["samples_per_s"], tokens_per_s=figures["tokens_per_s"])


def returned_loss(outputs: Any) -> float | None:
    """The loss that training_step returned, if it returned one."""
    loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
    return None if loss is None else float(loss)


def clock(seconds: float | None) -> str:
    """Seconds as 4:05 or 1:02:03."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
