"""A small task and data module that keep to the names the callbacks ask for."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotloop.data.text.batch import Batch
from hotloop.decoding import SearchOptions
from hotloop.vocabulary import BOS, EOS, PAD

VOCABULARY = 12


@dataclass(frozen=True)
class StepResult:
    loss_sum: Tensor
    tokens: int
    samples: int


def make_batch(first: int, size: int) -> Batch:
    """Sentences of 1 to 4 words, so that there is padding."""
    words = [[4 + (i + k) % 8 for k in range(1 + i % 4)] for i in range(first, first + size)]
    source = [[*row, EOS] for row in words]
    target = [[BOS, *row, EOS] for row in words]

    def padded(rows: list[list[int]]) -> Tensor:
        width = max(map(len, rows))
        return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])

    return Batch(
        source=padded(source),
        source_length=torch.tensor([len(row) for row in source]),
        target=padded(target),
        target_length=torch.tensor([len(row) for row in target]),
        ids=torch.arange(first, first + size),
    )


class Loader:
    """Batches in a fixed order; remembers its position, so that a run resumes within an epoch."""

    def __init__(self, batches: int, size: int) -> None:
        self.batches = [make_batch(i * size, size) for i in range(batches)]
        self.position = self.start = 0

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Any:
        self.position, self.start = self.start, 0
        while self.position < len(self.batches):
            self.position += 1
            yield self.batches[self.position - 1]

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position % len(self.batches)}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = self.start = state["position"]


class Data(pl.LightningDataModule):
    def __init__(self, batches: int = 6, size: int = 4) -> None:
        super().__init__()
        self.batches, self.size = batches, size

    def train_dataloader(self) -> Loader:
        return Loader(self.batches, self.size)

    def val_dataloader(self) -> Loader:
        return Loader(2, self.size)

    test_dataloader = val_dataloader

    def summary(self) -> dict[str, Any]:
        return {"train": self.batches * self.size, "valid": 8, "test": 8, "padding_share": 0.25}

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        return ["un chat | noir", "", "déjà vu *ici*"], ["a black cat", "", "already seen <here>"]


class Words:
    """A tokeniser without a vocabulary: the id of a word is its length."""

    def encode(self, lines: Any) -> list[list[int]]:
        return [[4 + len(word) % 8 for word in line.split()] for line in lines]

    def decode(self, rows: Any) -> list[str]:
        return [" ".join(f"w{i}" for i in row) for row in rows]

    def pieces(self, row: Any) -> list[str]:
        return [f"w{i}" for i in row]


@dataclass
class Memory:
    step: int
    source: Tensor

    def select(self, rows: Tensor, *, width: int = 1) -> "Memory":
        return Memory(self.step, self.source[rows])


class Copier(nn.Module):
    """A Translator that copies the source; its attention is the diagonal. `forward` is there to be trained."""

    attends = True
    alignment_layer = 0
    source_vocabulary = target_vocabulary = VOCABULARY

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.dropout = nn.Dropout(0.5)
        self.output = nn.Linear(8, VOCABULARY)

    def forward(self, source: Tensor, source_length: Tensor, target_in: Tensor, target_length: Tensor) -> Tensor:
        return self.dropout(self.embedding(target_in))

    def project(self, hidden: Tensor) -> Tensor:
        return self.output(hidden)

    def start(self, source: Tensor, source_length: Tensor, *, keep_attention: bool = False) -> Memory:
        return Memory(0, source)

    def step(self, token: Tensor, state: Memory) -> tuple[Tensor, Memory]:
        last = min(state.step, state.source.size(1) - 1)
        logits = F.one_hot(state.source[:, last], VOCABULARY).float() * 20
        return logits, Memory(state.step + 1, state.source)

    def attention_weights(self, source: Tensor, source_length: Tensor, target_in: Tensor) -> Tensor:
        diagonal = torch.eye(target_in.size(1), source.size(1), device=source.device)
        return diagonal.expand(source.size(0), 1, 1, -1, -1)


class Task(pl.LightningModule):
    def __init__(self, *, attends: bool = True, reports_steps: bool = True, fail_at: int | None = None) -> None:
        super().__init__()
        self.model = Copier()
        self.model.attends = attends
        self.source_tokenizer = self.target_tokenizer = Words()
        self.search = SearchOptions()
        self.reports_steps = reports_steps
        self.fail_at = fail_at
        self.seen: list[int] = []
        self.rates: list[float] = []
        self.losses: list[float] = []

    def _losses(self, batch: Batch) -> Tensor:
        hidden = self.model(batch.source, batch.source_length, batch.target[:, :-1], batch.target_length - 1)
        labels = batch.target[:, 1:]
        real = labels.ne(PAD)
        return F.cross_entropy(self.model.project(hidden[real]), labels[real], reduction="none")

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        if self.fail_at == self.global_step:
            raise RuntimeError("the disk of dreams is full")
        losses = self._losses(batch)
        self.seen += batch.ids.tolist()
        self.losses.append(float(losses.detach().mean()))
        self.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])
        if self.reports_steps:
            self.last_step = StepResult(losses.detach().sum(), len(losses), len(batch))
        return losses.mean()

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self.log("val/loss", self._losses(batch).mean(), batch_size=len(batch))

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        self.log("test/loss", self._losses(batch).mean(), batch_size=len(batch))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=100)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


@pytest.fixture
def toy() -> SimpleNamespace:
    """The classes above, by name."""
    return SimpleNamespace(Task=Task, Data=Data, Loader=Loader, StepResult=StepResult, make_batch=make_batch)


@pytest.fixture
def make_trainer(tmp_path: Path) -> Any:
    """`make_trainer(callbacks, **options)`: a quiet CPU trainer that keeps its files in `tmp_path`."""

    def make(callbacks: list[pl.Callback], **options: Any) -> pl.Trainer:
        defaults = {
            "accelerator": "cpu",
            "devices": 1,
            "max_epochs": 2,
            "logger": False,
            "default_root_dir": tmp_path,
            "enable_checkpointing": any(isinstance(c, pl.callbacks.ModelCheckpoint) for c in callbacks),
            "enable_progress_bar": any(isinstance(c, pl.callbacks.ProgressBar) for c in callbacks),
            "enable_model_summary": False,
            "num_sanity_val_steps": 1,
            "log_every_n_steps": 2,
        }
        return pl.Trainer(callbacks=callbacks, **(defaults | options))

    return make
