"""What every task does, whatever it learns from: optimiser, exact accumulation, clipping, the loss of the epoch."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import lightning.pytorch as pl
import torch
from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy
from torch import Tensor

from hotloop.errors import UserError


@dataclass(frozen=True)
class StepResult:
    """What one training step did, for the callbacks; `loss_sum` stays on the device.

    Attributes:
        loss_sum: summed loss of the real target tokens, or of the samples where there are no tokens; 0-dim, detached.
        tokens: real target tokens, EOS counted, BOS and padding not; 0 where the task has no tokens.
        samples: sentence pairs or pictures.
    """

    loss_sum: Tensor
    tokens: int
    samples: int


class Task(pl.LightningModule):
    """Base of the tasks. The training loss is the mean over all units of the whole optimiser step.

    A unit is what losses are counted by: a target token, or a sample. Gradient accumulation and several processes
    give the gradient of the one big batch, however the units are spread.

    A task sets `kind`, `metrics` (name → "min" or "max": what `monitor` may name) and `headline` (the metrics worth
    a place in a progress line), and its `training_step` ends with `finish_step`.

    Args:
        model: what is trained.
        optimizer: `module → Optimizer`; called with `scaled_and_clipped=` besides.
        schedule: `optimizer → scheduler`, called with `total_steps=`; stepped per optimiser step.
        saved: plain dict stored in the checkpoint under "hotloop": what `hotloop.checkpoint` needs to build
            this task again.
    """

    kind: ClassVar[str]
    metrics: ClassVar[dict[str, str]]
    headline: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        *,
        model: Any,
        optimizer: Callable[..., torch.optim.Optimizer] | None = None,
        schedule: Callable[..., Any] | None = None,
        saved: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.model: Any = model
        self.optimizer_factory = optimizer
        self.schedule_factory = schedule
        self.saved = saved or {}
        self.last_step: StepResult | None = None
        self.grad_norm: Tensor | None = None
        self._validations = 0
        self._epoch_loss = torch.zeros(())
        self._epoch_count = 0
        self._window_count: Tensor | float = 0.0
        self._window_unit: Tensor | float = 1.0

    def result_rows(self) -> list[tuple[str, str]]:
        """Rows for the message at the end of a run, beside the metrics."""
        return []

    # ---- training -------------------------------------------------------------------------------------

    def on_train_epoch_start(self) -> None:
        self._epoch_loss = torch.zeros((), dtype=self._precise, device=self.device)
        self._epoch_count = 0

    @property
    def _precise(self) -> torch.dtype:
        """What sums of an epoch are kept in."""
        return torch.float32 if self.device.type == "mps" else torch.float64

    def finish_step(self, losses: Tensor, reported: Tensor, batch_idx: int, *, tokens: int, samples: int) -> Tensor:
        """Note what the step did; the loss to differentiate, 0-dim.

        Args:
            losses: (N,) losses to train on, one a unit.
            reported: (N,) losses to report, without gradient.
            batch_idx: as Lightning counts.
            tokens: see `StepResult`.
            samples: see `StepResult`.
        """
        count, loss_sum = len(losses), reported.sum()
        self.last_step = StepResult(loss_sum, tokens, samples)
        self._epoch_loss = self._epoch_loss.to(self.device) + loss_sum
        self._epoch_count += count
        return losses.sum() * self._loss_weight(count, batch_idx)

    def _loss_weight(self, count: int, batch_idx: int) -> Tensor | float:
        """Weight of this micro-batch's summed loss.

        The mean runs over all units of the optimiser step, which are known only at its end. So each
        micro-batch is divided by the units of the first one, and `on_before_optimizer_step` mends the
        difference. Processes average their gradients, hence the factor world size.
        """
        total: Tensor | float = float(count)
        if self.trainer.world_size > 1:
            total = torch.tensor(total, device=self.device)
            torch.distributed.all_reduce(total)
        if batch_idx % self.trainer.accumulate_grad_batches == 0:
            self._window_count, self._window_unit = 0.0, total
        self._window_count = self._window_count + total
        return self.trainer.world_size / self._window_unit

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        accumulated = self.trainer.accumulate_grad_batches
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        if accumulated > 1:
            # Lightning divided each micro-batch by `accumulated`, the last incomplete window's too.
            factor = torch.as_tensor(self._window_unit * accumulated / self._window_count)
            torch._foreach_mul_(gradients, factor.to(self.device))
        if self.trainer.gradient_clip_val is None and self._logs_this_step():
            self.grad_norm = torch.nn.utils.get_total_norm(gradients)

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: int | float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        if gradient_clip_val is None:
            return
        sharded = isinstance(self.trainer.strategy, (FSDPStrategy, DeepSpeedStrategy, ModelParallelStrategy))
        if gradient_clip_algorithm in (None, "norm") and not sharded:
            # Lightning refuses to clip for a fused optimiser under any mixed precision, also where no
            # gradient scaler exists (bf16). The gradients are un-scaled, and the same on all ranks, by now.
            self.grad_norm = torch.nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val)
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def _logs_this_step(self) -> bool:
        every = getattr(self.trainer, "log_every_n_steps", 0)
        return bool(every) and (self.trainer.global_step + 1) % every == 0

    def on_train_epoch_end(self) -> None:
        totals = torch.stack([self._epoch_loss, torch.full_like(self._epoch_loss, self._epoch_count)])
        if self.trainer.world_size > 1:
            torch.distributed.all_reduce(totals)
        loss_sum, count = totals.tolist()
        if not math.isfinite(loss_sum):
            raise UserError(
                f"the training loss is {loss_sum} in epoch {self.current_epoch + 1}: the run has diverged. Lower "
                "optimizer.lr, set trainer.gradient_clip_val, or choose another precision"
            )
        self.log("train/loss_epoch", loss_sum / max(1.0, count), sync_dist=True)

    def configure_optimizers(self) -> Any:
        if self.optimizer_factory is None:
            raise RuntimeError("this task was loaded for evaluation: it has no optimiser")
        optimizer = self.optimizer_factory(
            self.model,
            scaled_and_clipped=(
                getattr(self.trainer.precision_plugin, "scaler", None) is not None
                and self.trainer.gradient_clip_val is not None
            ),
        )
        if self.schedule_factory is None:
            return optimizer
        schedule = self.schedule_factory(optimizer, total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    # ---- validation and test --------------------------------------------------------------------------

    def on_validation_epoch_end(self) -> None:
        if self.trainer.sanity_checking:
            return
        self._validations += 1
        self.report_results("val", "valid")

    def on_test_epoch_end(self) -> None:
        self.report_results("test", "test")

    def report_results(self, prefix: str, split: str) -> None:
        """Log the metrics of the whole set, each name after `prefix`/; `split` is the set's name."""
        raise NotImplementedError

    def from_all_processes(self, part: Any) -> list[Any]:
        """`part` of each process, in the order of their ranks."""
        if self.trainer.world_size == 1:
            return [part]
        parts: list[Any] = [None] * self.trainer.world_size
        torch.distributed.all_gather_object(parts, part)
        return parts

    # ---- checkpoint -----------------------------------------------------------------------------------

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        progress = {"validations": self._validations, "loss": float(self._epoch_loss), "count": self._epoch_count}
        checkpoint["hotloop"] = self.saved | {"progress": progress}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        progress = checkpoint.get("hotloop", {}).get("progress", {})
        self._validations = int(progress.get("validations", 0))
        # Kept when the run continues within the epoch; a new epoch begins at zero by itself.
        self._epoch_loss = torch.tensor(progress.get("loss", 0.0), dtype=self._precise, device=self.device)
        self._epoch_count = int(progress.get("count", 0))
