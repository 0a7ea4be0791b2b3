"""E13, E14: accumulated gradients are those of the big batch; schedules run by optimiser step."""

import os
from functools import partial

import lightning.pytorch as pl
import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

from hotloop import checkpoint
from hotloop.data.text.batch import Batch
from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer
from hotloop.optim import build_optimizer
from hotloop.tasks.translation import TranslationTask
from hotloop.vocabulary import BOS, EOS, PAD
from tests.conftest import made_pairs, write_bitext


def batch_of(lengths: list[int]) -> Batch:
    """Pairs with these target lengths (EOS counted, BOS not) and sources of 4 tokens."""
    width = max(lengths) + 1
    generator = torch.Generator().manual_seed(sum(lengths))
    target = torch.randint(4, 20, (len(lengths), width), generator=generator)
    for row, length in enumerate(lengths):
        target[row, 0], target[row, length], target[row, length + 1 :] = BOS, EOS, PAD
    source = torch.randint(4, 20, (len(lengths), 4), generator=generator)
    source[:, -1] = EOS
    return Batch(
        source=source,
        source_length=torch.full((len(lengths),), 4),
        target=target,
        target_length=torch.tensor(lengths) + 1,
        ids=torch.arange(len(lengths)),
    )


def rows_of(batch: Batch) -> list[Batch]:
    """The pairs one by one, without their padding."""
    return [
        Batch(
            source=batch.source[i : i + 1],
            source_length=batch.source_length[i : i + 1],
            target=batch.target[i : i + 1, : int(batch.target_length[i])],
            target_length=batch.target_length[i : i + 1],
            ids=batch.ids[i : i + 1],
        )
        for i in range(len(batch))
    ]


def joined(pairs: list[Batch]) -> Batch:
    """One batch of several."""
    width = max(pair.target.shape[1] for pair in pairs)
    return Batch(
        source=torch.cat([pair.source for pair in pairs]),
        source_length=torch.cat([pair.source_length for pair in pairs]),
        target=torch.cat([F.pad(pair.target, (0, width - pair.target.shape[1]), value=PAD) for pair in pairs]),
        target_length=torch.cat([pair.target_length for pair in pairs]),
        ids=torch.cat([pair.ids for pair in pairs]),
    )


def trained(
    batches: list[Batch] | IterableDataset,
    *,
    accumulate: int = 1,
    clip: float | None = None,
    smoothing: float = 0.0,
    transformer: bool = False,
    **trainer_options,
):
    """How far each parameter moved in one epoch of plain SGD, and the optimiser steps made."""
    torch.manual_seed(0)
    sizes = {"source_vocabulary": 20, "target_vocabulary": 20, "hidden": 8}
    if transformer:
        model = Transformer(shared_vocabulary=False, heads=2, embedding_dropout=0.0, dropout=0.0, **sizes).double()
    else:
        model = Seq2Seq(embedding=8, **sizes).double()
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    task = TranslationTask(
        model=model,
        source_tokenizer=None,
        target_tokenizer=None,
        optimizer=partial(build_optimizer, optimizer=torch.optim.SGD, lr=0.5),
        label_smoothing=smoothing,
    )
    trainer = pl.Trainer(
        accelerator="cpu",
        **{"devices": 1, **trainer_options},
        max_epochs=1,
        accumulate_grad_batches=accumulate,
        gradient_clip_val=clip,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(task, DataLoader(batches, batch_size=None))
    return {name: value.detach() - start[name] for name, value in model.named_parameters()}, trainer.global_step


def assert_same(one, other):
    for name, value in one.items():
        assert value.abs().max() > 0, name
        torch.testing.assert_close(value, other[name], rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("transformer", [False, True], ids=["LSTM", "Transformer"])
@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_e13_four_batches_of_one_are_one_batch_of_four(clip, smoothing, transformer):
    big = batch_of([2, 9, 3, 7])
    expected, steps = trained([big], clip=clip, smoothing=smoothing, transformer=transformer)
    found, accumulated_steps = trained(
        rows_of(big), accumulate=4, clip=clip, smoothing=smoothing, transformer=transformer
    )
    assert steps == accumulated_steps == 1
    assert_same(found, expected)


def test_e13_the_incomplete_group_at_the_end_counts_in_full():
    """Five pairs by groups of four: the second step is the gradient of the fifth pair, not a quarter of it."""
    pairs = rows_of(batch_of([2, 9, 3, 7, 5]))
    expected, _ = trained([joined(pairs[:4]), pairs[4]])
    found, steps = trained(pairs, accumulate=4)
    assert steps == 2
    assert_same(found, expected)


class DealtToRanks(IterableDataset):
    """Every other batch, by rank."""

    def __init__(self, batches: list[Batch]) -> None:
        self.batches = batches

    def __iter__(self):
        yield from self.batches[torch.distributed.get_rank() :: 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")
@pytest.mark.parametrize("accumulate", [1, 2])
def test_e13_two_processes_give_the_gradient_of_the_one_big_batch(accumulate):
    pairs = rows_of(batch_of([2, 9, 3, 7]))
    expected, steps = trained([joined(pairs)] if accumulate == 2 else [joined(pairs[:2]), joined(pairs[2:])])
    processes = {"devices": 2, "strategy": "ddp_fork", "use_distributed_sampler": False}
    found, _ = trained(DealtToRanks(pairs), accumulate=accumulate, **processes)
    assert steps == (1 if accumulate == 2 else 2)
    assert_same(found, expected)


@pytest.mark.parametrize(("accumulate", "steps"), [(1, 15), (2, 9), (4, 6)])
def test_e14_cosine_ends_at_its_minimum_after_the_optimiser_steps(train_tiny, tmp_path, accumulate, steps):
    data = tmp_path / "ten"
    write_bitext(data, "train", made_pairs(10))
    for name in ("valid", "test"):
        write_bitext(data, name, made_pairs(3, seed=5))
    run = train_tiny(
        "scheduler=cosine",
        "scheduler.warmup_steps=0",
        "optimizer.lr=0.1",
        "data.batch_size=2",
        "trainer.max_epochs=3",
        f"trainer.accumulate_grad_batches={accumulate}",
        "trainer.log_every_n_steps=1",
        "logger=csv",
        data=data,
    )
    content = checkpoint.read_checkpoint(run.last)
    assert content["global_step"] == steps
    (schedule,) = content["lr_schedulers"]
    assert schedule["last_epoch"] == steps
    assert schedule["_last_lr"][0] == pytest.approx(0.0, abs=1e-9)
    table = (run.folder / "csv" / "metrics.csv").read_text().splitlines()
    column = table[0].split(",").index("lr")
    rates = [float(row.split(",")[column]) for row in table[1:] if row.split(",")[column]]
    assert len(rates) == steps and rates[0] == pytest.approx(0.1) and rates == sorted(rates, reverse=True)
