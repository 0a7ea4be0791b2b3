"""Weights averaged over a run: a moving average while it trains, or the mean of its last states at the end."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from hotloop.checkpoint import read_checkpoint
from hotloop.errors import UserError

log = logging.getLogger(__name__)

AVERAGED = "averaged.ckpt"
KEY = "averaging"  # in a checkpoint
RECENT = "recent"  # how the names of kept states begin


class Averaging(pl.Callback):
    """Averages the weights; off unless `ema` or `last` is given.

    `ema`: at the n-th optimiser step `average ← d · average + (1 − d) · weights` with d = min(ema, (1 + n) / (10 + n)),
    so that a short run does not linger at its first weights. Validation, test and the `state_dict` of checkpoints have
    the average. The weights under training lie beside it in the file, for a run that continues. Statistics of batch
    norms are averaged like weights, other buffers are the model's. The average of half-precision weights is kept in
    float32, where a thousandth of a change is not rounded away.

    `last`: the state after each of the last k validations is kept in `dirpath` (weights only), and their mean is
    written to averaged.ckpt when training ends (Vaswani et al. 2017, §6.1). See `weigh_average`.

    Args:
        ema: decay of the moving average, 0 < ema < 1.
        last: k, at least 2.
        dirpath: folder of the checkpoints.

    Raises:
        ValueError: out of range, or both given.
    """

    def __init__(self, *, ema: float | None = None, last: int | None = None, dirpath: str = "checkpoints") -> None:
        if ema is not None and not 0 < ema < 1:
            raise ValueError(f"ema must lie between 0 and 1, not {ema}: 0.999 averages some thousand steps")
        if last is not None and last < 2:
            raise ValueError(f"last must be at least 2, not {last}: it is the number of states to average")
        if ema is not None and last is not None:
            raise ValueError(f"ema={ema} and last={last}: choose one of the two averages")
        self.ema, self.last, self.folder = ema, last, Path(dirpath)
        self.kept: list[str] = []
        self._updates = self._step = 0
        self._current: dict[str, Tensor] = {}  # the tensors of the model
        self._average: dict[str, Tensor] = {}
        self._trained: dict[str, Tensor] = {}  # while the model holds the average
        self._restored: dict[str, Any] = {}
        self._hook: Any = None

    # ---- begin and end --------------------------------------------------------------------------------

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        sharded = isinstance(trainer.strategy, (FSDPStrategy, DeepSpeedStrategy, ModelParallelStrategy))
        if stage == "fit" and sharded and (self.ema or self.last):
            raise UserError("callbacks.averaging needs all weights in each process: strategy=ddp, or no averaging")

    @torch.no_grad()
    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.last is not None and trainer.is_global_zero:
            (self.folder / AVERAGED).unlink(missing_ok=True)  # that of an earlier run in this folder
        if self.ema is None:
            return
        # Where a run continues, Lightning has just loaded the average into the model.
        self._current, self._trained = dict(averaged_tensors(pl_module)), {}
        self._average = {
            name: value.detach().to(torch.promote_types(value.dtype, torch.float32), copy=True)
            for name, value in self._current.items()
        }
        for name, value in self._restored.get("average", {}).items():
            self._average[name].copy_(value)
        for name, value in self._restored.get("trained", {}).items():
            self._current[name].copy_(value)
        self._restored = {}
        owners = {id(value): name for name, value in self._current.items()}
        self._hook = pl_module.register_state_dict_post_hook(AverageInstead(self, keys_of(pl_module, owners)))

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._step = trainer.global_step  # known by now, where a run continues

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._show_average()
        if self.last is not None:
            mean = mean_checkpoint(self.kept) if trainer.is_global_zero else None
            if mean is not None:
                trainer.strategy.checkpoint_io.save_checkpoint(mean, self.folder / AVERAGED)
            trainer.strategy.barrier()

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if self._hook is not None:
            self._hook.remove()
        self._hook, self._current, self._average, self._trained = None, {}, {}, {}

    # ---- while training -------------------------------------------------------------------------------

    @torch.no_grad()
    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.ema is None or trainer.global_step == self._step:
            return
        self._step = trainer.global_step
        decay = min(self.ema, (1 + self._updates) / (10 + self._updates))
        self._updates += 1
        averages = list(self._average.values())
        current = [value.to(average.dtype) for value, average in zip(self._current.values(), averages, strict=True)]
        torch._foreach_lerp_(averages, current, 1 - decay)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._show_average()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._show_trained()
        if self.last is not None and trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._keep(trainer)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._show_trained()

    @torch.no_grad()
    def _show_average(self) -> None:
        if self._average and not self._trained:
            self._trained = {name: value.detach().clone() for name, value in self._current.items()}
            for name, value in self._current.items():
                value.copy_(self._average[name])

    @torch.no_grad()
    def _show_trained(self) -> None:
        for name, value in self._trained.items():
            self._current[name].copy_(value)
        self._trained = {}

    def _keep(self, trainer: pl.Trainer) -> None:
        """Save the state of now, and let go of the oldest; files of another folder are left alone."""
        assert self.last is not None
        path = str(self.folder / f"{RECENT}{trainer.global_step:07d}.ckpt")
        trainer.save_checkpoint(path, weights_only=True)
        self.kept = [*(other for other in self.kept if other != path), path]
        for old in self.kept[: -self.last]:
            if trainer.is_global_zero and Path(old).parent == self.folder and Path(old).name.startswith(RECENT):
                Path(old).unlink(missing_ok=True)
        self.kept = self.kept[-self.last :]

    # ---- checkpoint -----------------------------------------------------------------------------------

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if self._average:
            trained = {name: value.detach() for name, value in (self._trained or self._current).items()}
            rounded = {name: value for name, value in self._average.items() if value.dtype != trained[name].dtype}
            checkpoint[KEY] = {"updates": self._updates, "trained": trained, "average": rounded}
        elif self.kept:
            checkpoint[KEY] = {"kept": list(self.kept)}

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if trainer.state.fn != "fit":
            return
        state = saved_average(checkpoint)
        if "trained" in state and self.ema is None:
            raise UserError(
                "ckpt_path: that run averaged its weights, and without callbacks.averaging.ema this one would train on "
                "from the average: repeat the override"
            )
        known = {name: value.shape for name, value in averaged_tensors(pl_module)}
        trained, average = ({n: v.shape for n, v in state.get(part, {}).items()} for part in ("trained", "average"))
        if ("trained" in state and trained != known) or not average.items() <= known.items():
            raise UserError("ckpt_path: its averaged weights do not fit the model")
        if self.ema is not None:
            self._restored, self._updates = state, state.get("updates", 0)
            if "trained" not in state:
                log.info("the run that continues did not average: the average begins at its weights")
        if self.last is not None:
            found, shapes = state.get("kept", []), shapes_of(checkpoint)
            self.kept = [path for path in found if (content := read_state(path)) and shapes_of(content) == shapes]
            say_if_lost(len(found), len(self.kept))


class AverageInstead:
    """A hook that gives a module's state dict the averages, under the names that they have there.

    A checkpoint that holds weights only asks no callback, so the state dict itself has to be right.
    """

    def __init__(self, averaging: Averaging, owners: dict[str, str]) -> None:
        self.averaging, self.owners = averaging, owners

    def __call__(self, module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
        for key, name in self.owners.items():
            if prefix + key in state:
                state[prefix + key] = self.averaging._average[name].to(state[prefix + key].dtype)


def averaged_tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters, shared ones once, and the floating-point statistics of batch norms."""
    yield from module.named_parameters()
    for name, part in module.named_modules():
        if isinstance(part, _NormBase):
            statistics = {key: value for key, value in part.named_buffers(recurse=False) if value.is_floating_point()}
            yield from ((f"{name}.{key}", value) for key, value in statistics.items())


def keys_of(module: nn.Module, owners: dict[int, str]) -> dict[str, str]:
    """Key of the state dict → name of the averaged tensor, for each key of a shared tensor.

    Args:
        module: whose state dict.
        owners: `id` of a tensor → its name.
    """
    tensors = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    return {key: owners[id(value)] for key, value in tensors if id(value) in owners}


def saved_average(content: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of averages; empty where it says nothing. Raises UserError where that makes no sense."""
    state = content.get(KEY, {})
    if isinstance(state, dict):
        parts = [state.get(part, {}) for part in ("trained", "average")]
        tensors = all(isinstance(p, dict) and all(isinstance(v, Tensor) for v in p.values()) for p in parts)
        kept, updates = state.get("kept", []), state.get("updates", 0)
        paths = isinstance(kept, list) and all(isinstance(path, str) for path in kept)
        if tensors and paths and isinstance(updates, int) and updates >= 0:
            return state
    raise UserError("ckpt_path: the file is damaged: what it says of averaged weights cannot be read")


def shapes_of(content: dict[str, Any]) -> dict[str, Any]:
    """Name → shape of each tensor in a checkpoint's state; None for what is no tensor."""
    return {name: getattr(value, "shape", None) for name, value in content["state_dict"].items()}


def read_state(path: str) -> dict[str, Any] | None:
    """A kept state; None where the file is gone or damaged."""
    try:
        content = read_checkpoint(path)
    except (UserError, OSError):
        return None
    return content if isinstance(content["state_dict"], dict) else None


def say_if_lost(kept: int, readable: int) -> None:
    if readable < kept:
        log.warning("of %d states to average %d cannot be read: gone or damaged", kept, kept - readable)


def mean_checkpoint(paths: Sequence[str]) -> dict[str, Any] | None:
    """The newest checkpoint with the mean weights of all, the newest being the last; None for fewer than two.

    Whole numbers are those of the newest. Files that cannot be read are left out.
    """
    newest: dict[str, Any] | None = None
    total: dict[str, Tensor] = {}
    count = 0
    for content in filter(None, map(read_state, reversed(paths))):
        state = content["state_dict"]
        if newest is None:
            tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
            newest, total = content, {k: v.float() for k, v in tensors.items() if v.is_floating_point()}
        elif shapes_of(content) != shapes_of(newest):
            continue
        else:
            for key, value in total.items():
                value += state[key]
        count += 1
    say_if_lost(len(paths), count)
    if newest is None or count < 2:
        return None
    for key, value in total.items():
        newest["state_dict"][key] = (value / count).to(newest["state_dict"][key].dtype)
    return newest


@contextmanager
def unwatched(trainer: pl.Trainer) -> Iterator[None]:
    """The trainer without callbacks and loggers, so that what it measures leaves no mark in curves and pictures."""
    callbacks, loggers = trainer.callbacks, trainer.loggers  # type: ignore[attr-defined]
    trainer.callbacks, trainer.loggers = [], []  # type: ignore[attr-defined]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*callbacks used to create the checkpoint need to be provided.*")
            yield
    finally:
        trainer.callbacks, trainer.loggers = callbacks, loggers  # type: ignore[attr-defined]


def weigh_average(trainer: pl.Trainer, task: pl.LightningModule, data: Any) -> bool:
    """Measure averaged.ckpt on the validation set; where it is better than the best single state, it is the best.

    Returns whether it is. Then `callback_metrics` are those of the mean; else they stay those of training.
    """
    averaging = [c for c in trainer.callbacks if isinstance(c, Averaging) and c.last]  # type: ignore[attr-defined]
    savers = [c for c in trainer.checkpoint_callbacks if isinstance(c, ModelCheckpoint) and c.monitor is not None]
    if not averaging or not savers or not savers[0].best_model_path:
        return False
    path, saver = averaging[0].folder / AVERAGED, savers[0]
    monitor = str(saver.monitor)
    if not path.is_file():
        log.warning("callbacks.averaging.last=%d: fewer than two states, nothing to average", averaging[0].last)
        return False

    def measured(ckpt_path: str | Path) -> float | None:
        with unwatched(trainer):
            (found,) = trainer.validate(task, datamodule=data, ckpt_path=ckpt_path, weights_only=True, verbose=False)
        return found.get(monitor)

    log.info("measuring the mean of the last states on the validation set")
    of_training = dict(trainer.callback_metrics)
    value = measured(path)
    if value is None:
        log.info("%s is not measured in validation: %s is there to be evaluated", monitor, path)
        return False
    # Processes that were forked took the score with them.
    best = measured(saver.best_model_path) if saver.best_model_score is None else float(saver.best_model_score)
    assert best is not None
    better = value > best if saver.mode == "max" else value < best
    log.info(
        "mean of the last states: %s %.5g; best single state: %.5g; the %s is the best",
        monitor, value, best, "mean" if better else "single state",
    )  # fmt: skip
    if better:
        saver.best_model_path, saver.best_model_score = str(path), torch.tensor(value)
    else:
        trainer.callback_metrics.update(of_training)
    return better
