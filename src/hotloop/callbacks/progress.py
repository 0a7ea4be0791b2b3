"""A progress bar that costs nothing and also reads well in a log file."""

import time
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks.progress.progress_bar import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from hotloop.callbacks.counting import samples_in
from hotloop.callbacks.tables import number

NARROW = 72  # columns of a terminal below which the bar itself gives way to the figures
SELDOM, OFTEN = 2.0, 0.2  # seconds: no later, and no sooner, than that is the bar drawn again


class ThroughputBar(ProgressBar):
    """Shows loss, speed and remaining time; a bar on a terminal, plain lines elsewhere.

    On a terminal the bar is drawn every `refresh_every` steps, but not more than five times a second, and at
    least every two seconds where steps are slow. Where output is no terminal (CI, `nohup`, a pipe) there is one
    line at the end of each epoch, and one every `line_every_s` seconds within long epochs.
    The loss shown is that of the last step; reading it is the only time the bar waits for the device.

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
        self.console = console or Console()
        self._enabled = True
        self._progress: Progress | None = None
        self._tasks: dict[str, Any] = {}
        self._batches = 0  # trained on since fit began, for the remaining time
        self._fit_began = 0.0
        self._epoch_began = 0.0
        self._restart_interval()

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
        self._epoch_began = self._fit_began
        self._restart_interval()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._epoch_began = time.perf_counter()
        self._restart_interval()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if not self._enabled:
            return
        self._batches += 1
        self._steps += 1
        result = getattr(pl_module, "last_step", None)
        if result is None:
            self._samples += samples_in(batch)
        else:
            self._samples += result.samples
            self._tokens += result.tokens
        now = time.perf_counter()
        passed = now - self._shown
        if self.console.is_terminal:
            due = passed > SELDOM or (self._steps >= self.refresh_every and passed > OFTEN)
        else:
            due = passed > self.line_every_s
        if due or (self._batches == 1 and self.console.is_terminal):
            self._show(trainer, pl_module, outputs, batch_idx, now)

    def _show(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch_idx: int, now: float
    ) -> None:
        total = trainer.num_training_batches
        left = remaining_batches(trainer, batch_idx)
        eta = None if left is None else left * (now - self._fit_began) / max(1, self._batches)
        figures = [
            f"loss {number(loss_of(pl_module, outputs), 3)}",
            self._speed(trainer, now - self._shown),
            f"ETA {clock(eta)}",
        ]
        name = self._epoch_name(trainer)
        if self.console.is_terminal:
            self._draw(name, batch_idx + 1, total, figures)
        else:
            done = f"{batch_idx + 1}/{total}" if total != float("inf") else str(batch_idx + 1)
            self.print(" · ".join([name, f"batch {done}", *figures]))
        self._restart_interval()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not self._enabled:
            return
        self._clear()
        parts = [self._epoch_name(trainer), f"step {trainer.global_step}"]
        parts.append(f"{time.perf_counter() - self._epoch_began:.1f} s")
        metrics = {n: float(v) for n, v in trainer.callback_metrics.items() if n.startswith("val/")}
        parts += [f"{name} {value:.4g}" for name, value in metrics.items()]
        self.print(" · ".join(parts))

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._clear("validation")
        self._restart_interval()

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
        if self._enabled and self.console.is_terminal and time.perf_counter() - self._drawn > OFTEN:
            self._draw(name, batch_idx + 1, total, [])

    # ---- drawing --------------------------------------------------------------------------------------

    def _restart_interval(self) -> None:
        self._shown = time.perf_counter()
        self._drawn = 0.0
        self._steps = self._samples = self._tokens = 0

    def _speed(self, trainer: pl.Trainer, seconds: float) -> str:
        if seconds <= 0:
            return "–"
        count, unit = (self._tokens, "tokens/s") if self._tokens else (self._samples, "samples/s")
        return f"{number(count * trainer.world_size / seconds, 0)} {unit}"

    def _epoch_name(self, trainer: pl.Trainer) -> str:
        limit = trainer.max_epochs
        return f"epoch {trainer.current_epoch}" + (f"/{limit - 1}" if limit and limit > 0 else "")

    def _draw(self, name: str, done: int, total: int | float, figures: list[str]) -> None:
        if self._progress is None:
            bar = [] if self.console.width < NARROW else [BarColumn(bar_width=20)]
            self._progress = Progress(
                TextColumn("{task.description}", markup=False),
                *bar,
                MofNCompleteColumn(),
                TextColumn("{task.fields[figures]}", markup=False),
                console=self.console,
                auto_refresh=False,
                transient=True,
            )
            self._progress.start()
        known = None if total == float("inf") else total
        figures_text = " · ".join(figures)
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=known, figures=figures_text)
        self._progress.update(self._tasks[name], completed=done, total=known, figures=figures_text)
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


def loss_of(pl_module: pl.LightningModule, outputs: Any) -> float | None:
    """Mean loss of the last step: per target token, else per sample, else what training_step returned."""
    result = getattr(pl_module, "last_step", None)
    if result is not None and (result.tokens or result.samples):
        return float(result.loss_sum) / (result.tokens or result.samples)
    loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
    return None if loss is None else float(loss)


def clock(seconds: float | None) -> str:
    """Seconds as 4:05 or 1:02:03."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
