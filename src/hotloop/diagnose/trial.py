"""A model that trains as a run would, a step at a time and on its own batches, without writing anything."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import lightning.pytorch as pl
import torch
from torch import Tensor

from hotloop.callbacks.counting import StepCounter
from hotloop.callbacks.environment import synchronize
from hotloop.errors import UserError
from hotloop.run import build_data, build_model_and_task, build_trainer, compile_if_asked

SMALLEST = 2  # samples: batch normalisation needs more than one

# What the Trainer is left out of: it gives device and precision here and trains nothing.
SINGLE = {"devices": 1, "num_nodes": 1, "strategy": "auto", "fast_dev_run": False, "profiler": None}


@dataclass(frozen=True)
class StepTime:
    """One training step, or several in one turn.

    Attributes:
        seconds: of the whole step, waiting for its batch included.
        samples: sentence pairs or pictures.
        units: what losses are counted by: real target tokens, or pictures.
        loss: mean over the units.
        steps: how many these are the sums of.
    """

    seconds: float
    samples: int
    units: int
    loss: float
    steps: int = 1


class Trial:
    """A task, its optimiser and its training batches, all begun anew from the seed of the settings.

    Args:
        settings: checked, as composed from conf/train.yaml.
        data: set up for these settings.
        held: batches are made before the clock starts, as if they came from a cache.
    """

    def __init__(self, settings: dict[str, Any], data: Any, *, held: bool = False) -> None:
        self.held = held
        self.steps = 0
        self._counter = StepCounter()
        self.seed = settings["seed"]
        pl.seed_everything(self.seed, workers=True, verbose=False)
        model, task = build_model_and_task(settings, data)
        compile_if_asked(settings, model)
        self.trainer = single_trainer(settings)
        self.device = self.trainer.strategy.root_device
        plugin = self.trainer.precision_plugin
        self.task = cast("Any", plugin.convert_module(task).to(self.device).train())
        self.clip = settings["trainer"]["gradient_clip_val"]
        self.scaler = getattr(plugin, "scaler", None)
        self.optimizer = self.task.optimizer_factory(
            self.task.model, scaled_and_clipped=self.scaler is not None and self.clip is not None
        )
        data.trainer = self.trainer  # tells whether to pin
        loader = data.train_dataloader()
        self.made_ahead = loader.num_workers * (loader.prefetch_factor or 0)  # batches
        self._batches = endless(loader, data._train_sampler)

    def next_batch(self) -> Any:
        """The next training batch, on the device."""
        batch = next(self._batches)
        self._counter.count(None, batch)
        return batch.to(self.device)

    @property
    def padding_share(self) -> float | None:
        """Of the entries of the id tensors so far; None for pictures."""
        return self._counter.read().padding_share

    def losses(self, batch: Any) -> Tensor:
        """(N,) losses of a batch's units, under the precision of the settings."""
        with self.trainer.precision_plugin.forward_context():
            return self.task.training_losses(batch)

    def backward(self, loss: Tensor) -> None:
        """Differentiate a 0-dim loss."""
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def clip_gradients(self) -> None:
        """As `trainer.gradient_clip_val` asks for."""
        if self.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.task.parameters(), self.clip)

    def update(self) -> None:
        """Clip, step and forget the gradients."""
        if self.clip is not None and self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        self.clip_gradients()
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def step(self) -> StepTime:
        """Train on the next batch. Chance begins each step alike, so two trials of the same batches can be compared."""
        torch.manual_seed(self.seed + self.steps)
        self.steps += 1
        batch = self.next_batch() if self.held else None
        synchronize(self.device)
        began = time.perf_counter()
        if batch is None:
            batch = self.next_batch()
        losses = self.losses(batch)
        loss = losses.mean()
        self.backward(loss)
        self.update()
        synchronize(self.device)
        seconds = time.perf_counter() - began
        return StepTime(seconds, len(batch), len(losses), float(loss.detach()))

    def close(self) -> None:
        """End the loader's workers."""
        self._batches.close()  # type: ignore[attr-defined]


def endless(loader: Any, sampler: Any) -> Iterator[Any]:
    """The batches of one epoch after the other."""
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        yield from loader


def single_trainer(settings: dict[str, Any]) -> pl.Trainer:
    """A Trainer of one process that writes nothing."""
    return build_trainer({**settings, "logger": None, "trainer": {**settings["trainer"], **SINGLE}}, callbacks=[])


def ready_data(settings: dict[str, Any]) -> Any:
    """The data module of the settings, prepared and set up.

    Raises:
        UserError: a mistake in the data, or a data module that was not made for this.
    """
    data = build_data(settings)
    if not hasattr(data, "_train_sampler"):
        raise UserError(f"{type(data).__name__}: diagnose.py needs a data module derived from BatchDataModule")
    data.prepare_data()
    data.setup("fit")
    return data


def affordable_batch(settings: dict[str, Any], data: Any, *, seconds: float) -> int | None:
    """The largest batch, halved from `data.batch_size`, of which a step takes at most `seconds`; None = all of it.

    Never below 2 samples. Sizes are tried from below, each by one step after another that warms up.
    """
    whole = settings["data"].get("batch_size")
    if not isinstance(whole, int) or settings["data"].get("max_tokens"):
        return None
    size = SMALLEST
    while size < whole:
        data.batch_size = size
        try:
            trial = Trial(settings, data)
            taken = min(trial.step().seconds for _ in range(2))
            trial.close()
        finally:
            data.batch_size = whole
        if taken * whole / size <= seconds:  # at worst a step grows with its batch
            return None
        if 2 * taken > seconds:
            return size
        size *= 2
    return None
