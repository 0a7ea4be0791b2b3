"""Steps added up."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hotloop.callbacks.counting import StepCounter, samples_in


def step(loss: float) -> Any:
    return SimpleNamespace(loss_sum=torch.tensor(loss), tokens=3, samples=2)


def test_steps_are_added_up() -> None:
    counter = StepCounter()
    for loss in (1.0, 2.0, 6.0):
        counter.count(step(loss), torch.zeros(2))
    totals = counter.read()
    assert (totals.samples, totals.tokens, totals.losses, totals.loss_sum) == (6, 9, 3, 9.0)


def test_reading_twice_counts_once() -> None:
    counter = StepCounter()
    counter.count(step(4.0), torch.zeros(2))
    counter.read()
    assert counter.read().loss_sum == 4.0


def test_what_was_read_does_not_change_afterwards() -> None:
    counter = StepCounter()
    counter.count(step(4.0), torch.zeros(2))
    before = counter.read()
    counter.count(step(4.0), torch.zeros(2))
    assert before.samples == 2


def test_the_same_result_twice_is_a_skipped_step() -> None:
    counter, result = StepCounter(), step(4.0)
    counter.count(result, torch.zeros(2))
    counter.count(result, torch.zeros(2))
    assert counter.read().samples == 2


def test_padding_is_counted_on_both_sides(toy: Any) -> None:
    counter, batch = StepCounter(), toy.make_batch(0, 4)
    counter.count(None, batch)
    totals = counter.read()
    assert totals.cells == batch.source.numel() + batch.target.numel()
    assert totals.real_cells == int(batch.source.ne(0).sum() + batch.target.ne(0).sum())


@pytest.mark.parametrize(
    ("batch", "samples"),
    [
        (torch.zeros(5, 3), 5),
        ((torch.zeros(5, 3), torch.zeros(5)), 5),
        ([torch.zeros(5, 3)], 5),
        ({"x": torch.zeros(5, 3)}, 5),
        ({"x": (torch.zeros(5), 1)}, 5),
        (["a", "b"], 2),
        (torch.tensor(1.0), 1),
        ((), 0),
        ({}, 0),
        (3, 0),
    ],
)
def test_samples_in_any_batch(batch: Any, samples: int) -> None:
    assert samples_in(batch) == samples


def test_samples_in_a_batch_object(toy: Any) -> None:
    assert samples_in(toy.make_batch(0, 7)) == 7
