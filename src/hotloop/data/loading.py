"""What every data module does with its data sets: loaders over whole batches, worker processes, exact resuming."""

from __future__ import annotations

import dataclasses
import difflib
import gc
import logging
import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, Dataset

from hotloop.data.processes import cores
from hotloop.data.sampling import BatchSampler
from hotloop.errors import UserError

log = logging.getLogger(__name__)

Options = TypeVar("Options")


@dataclass(frozen=True, kw_only=True)
class LoaderOptions:
    """How batches reach the training loop.

    Attributes:
        num_workers: loader processes; "auto" leaves it to the data module.
        persistent_workers, prefetch_factor: as in DataLoader; None for its best use. Dropped without workers.
        pin_memory: "auto" pins where a CUDA device waits for the batch.
        seed: decides, with the epoch, what is random about the batches.
    """

    num_workers: int | str = "auto"
    persistent_workers: bool | None = None
    prefetch_factor: int | None = None
    pin_memory: bool | str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("num_workers", None if self.num_workers == "auto" else self.num_workers, 0)
        check_number("prefetch_factor", self.prefetch_factor, 1)
        check_number("seed", self.seed, 0)
        if self.pin_memory not in (True, False, "auto"):
            raise UserError(f"data.pin_memory must be auto, true or false, got {self.pin_memory!r}")


def check_number(name: str, number: Any, low: int) -> None:
    """Refuse an option of `data` that is neither None nor a whole number from `low` on."""
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < low):
        raise UserError(f"data.{name} must be a whole number from {low} on, got {number!r}")


def options_of(kind: type[Options], given: Mapping[str, Any] | Options | None, key: str) -> Options:
    """An options object (a dataclass) from a mapping of the configuration. Raises UserError for an unknown name."""
    if isinstance(given, kind):
        return given
    values = {str(name): value for name, value in (given or {}).items()}  # type: ignore[union-attr]
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UserError(f"{key} has no option {name!r}{hint} (it has {', '.join(known)})")
    return kind(**values)


class FixedBatches(Dataset[Any]):
    """The batches of a sampler by number: the same ones, in the same order, at every pass."""

    def __init__(self, dataset: Dataset[Any], batches: Iterable[Any]) -> None:
        self._dataset, self._batches = dataset, list(batches)

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, number: int) -> Any:
        return self._dataset[self._batches[number]]


@dataclass
class _Mistake:
    """A UserError on its way from a worker, where DataLoader would wrap it in a traceback."""

    text: str


class _Telling(Dataset[Any]):
    """A data set whose mistakes travel as values."""

    def __init__(self, dataset: Dataset[Any]) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._dataset[key]
        except UserError as error:
            return _Mistake(str(error))


class Loader(DataLoader[Any]):
    """A DataLoader over whole batches that says what to do when a worker dies, or meets a UserError.

    Args:
        dataset: gives the batch for what `sampler` yields.
        sampler: None for the numbers from 0 on.
        workers: processes; 0 = none.
        options: of DataLoader.
    """

    def __init__(
        self, dataset: Dataset[Any], sampler: Iterable[Any] | None = None, *, workers: int = 0, **options: Any
    ) -> None:
        super().__init__(
            _Telling(dataset) if workers else dataset,
            batch_size=None,
            sampler=sampler,  # type: ignore[arg-type]
            num_workers=workers,
            worker_init_fn=begin_worker,
            **options,
        )

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        try:
            for batch in super().__iter__():
                if isinstance(batch, _Mistake):
                    raise UserError(batch.text)
                yield batch
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise UserError(
                f"a data worker died ({str(error).splitlines()[0]}): often too little memory or shared memory "
                "(/dev/shm); lower data.num_workers or set data.num_workers=0"
            ) from error


def begin_worker(number: int) -> None:
    """Called in each new worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent decides what it means
    gc.freeze()  # a collection would write to every page that holds an inherited object, and so copy it


class BatchDataModule(LightningDataModule):
    """A data module whose samplers yield whole batches, know their rank, and resume within an epoch.

    The Trainer must be made with `use_distributed_sampler=False`.

    A subclass fills `_datasets` in `setup`, and has `splits()` and `_sampler(split)`.
    """

    def __init__(self, loading: LoaderOptions) -> None:
        super().__init__()
        self._loading = loading
        self._datasets: dict[str, Any] = {}
        self._train_sampler: Any = None
        self._resume: dict[str, int] = {}

    def splits(self) -> tuple[str, ...]:
        """Those of "train", "valid" and "test" that exist, after `setup`."""
        raise NotImplementedError

    def _sampler(self, split: str) -> BatchSampler:
        raise NotImplementedError

    def _auto_workers(self, split: str) -> int:
        """What `num_workers=auto` means for a split."""
        return 0

    def train_dataloader(self) -> DataLoader[Any]:
        """Batches in an order of their own in each epoch; after a resume, the rest of the epoch.

        With `trainer.overfit_batches` every epoch, resumed or not, has the first epoch's batches in its order.
        """
        sampler = self._sampler("train")
        if self._resume and not self._overfits():
            state, steps = self._resume, len(sampler)
            done = state["batches_done"]
            if state["steps"] != steps:
                log.warning(
                    "the checkpoint's epoch had %d steps, this one has %d (other batch size or number of ranks?): "
                    "some samples of the unfinished epoch may be left out or seen twice", state["steps"], steps
                )  # fmt: skip
            sampler.set_epoch(state["epoch"])  # Lightning begins to fetch before it says which epoch it is
            sampler.resume(epoch=state["epoch"], batches_done=done if done < steps else 0)
        self._train_sampler = sampler
        return self._loader("train", sampler)

    def val_dataloader(self) -> DataLoader[Any] | list[DataLoader[Any]]:
        """Every validation sample; an empty list where there is no such split."""
        return self._loader("valid", self._sampler("valid")) if "valid" in self.splits() else []

    def test_dataloader(self) -> DataLoader[Any] | list[DataLoader[Any]]:
        """Every test sample; an empty list where there is no such split."""
        return self._loader("test", self._sampler("test")) if "test" in self.splits() else []

    def state_dict(self) -> dict[str, int]:
        """How far the training epoch is, so that a resumed run sees exactly the samples that are missing."""
        if self._train_sampler is None or self.trainer is None:
            return {}
        progress = self.trainer.fit_loop.epoch_loop.batch_progress.current
        return {
            "epoch": self._train_sampler.epoch,
            "batches_done": progress.processed,  # type: ignore[attr-defined]
            "steps": len(self._train_sampler),
        }

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Used by the next `train_dataloader`."""
        if not all(isinstance(state_dict.get(key), int) for key in ("epoch", "batches_done", "steps")):
            raise UserError(f"the checkpoint's state of the data must hold epoch, batches_done, steps: {state_dict}")
        self._resume = dict(state_dict)

    def _ranks(self) -> tuple[int, int]:
        """Rank of this process and number of ranks. Raises UserError when Lightning would deal batches too."""
        if self.trainer is None:
            return 0, 1
        rank, world_size = self.trainer.global_rank, self.trainer.world_size
        if world_size > 1 and self.trainer._accelerator_connector.use_distributed_sampler:
            raise UserError("set trainer.use_distributed_sampler=false: hotloop's loaders deal batches to ranks")
        return rank, world_size

    def _ranks_here(self) -> int:
        """Number of ranks on this machine."""
        return self.trainer.num_devices if self.trainer is not None else 1

    def _device(self) -> str:
        """Type of the device that batches go to."""
        return self.trainer.strategy.root_device.type if self.trainer is not None else "cpu"

    def _loader(self, split: str, sampler: BatchSampler) -> DataLoader[Any]:
        asked, workers = self._loading, self._workers(split)
        if not workers and (asked.persistent_workers or asked.prefetch_factor):
            log.info("data.persistent_workers and data.prefetch_factor do nothing without data.num_workers: dropped")
        dataset, order = self._datasets[split], sampler
        if self._overfits():
            # Lightning then puts a SequentialSampler, which counts items, in the place of any other sampler.
            dataset, order = FixedBatches(dataset, sampler), None  # type: ignore[assignment]
        return Loader(
            dataset,
            order,
            workers=workers,
            persistent_workers=workers > 0 and asked.persistent_workers is not False,
            prefetch_factor=asked.prefetch_factor if workers else None,
            pin_memory=self._pins(),
            # of its own, so that starting an epoch takes nothing from the generator that dropout uses
            generator=torch.Generator().manual_seed(asked.seed),
        )

    def _overfits(self) -> bool:
        return self.trainer is not None and self.trainer.overfit_batches > 0  # type: ignore[attr-defined]

    def _workers(self, split: str) -> int:
        asked = self._loading.num_workers
        if asked == "auto":
            return self._auto_workers(split)
        if int(asked) > cores():
            log.warning("data.num_workers=%s lowered to %d, the number of CPU cores", asked, cores())
        return min(int(asked), cores())

    def _pins(self) -> bool:
        asked = self._loading.pin_memory
        if asked is True and not torch.cuda.is_available():
            log.info("data.pin_memory does nothing without a CUDA device: dropped")
            return False
        return self._device() == "cuda" if asked == "auto" else bool(asked)
