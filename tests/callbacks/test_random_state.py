"""Dropout that does not depend on what ran before."""

from typing import Any

import pytest
import torch

from hotloop.callbacks.random_state import SeedEveryStep, mix


def test_near_inputs_give_different_seeds() -> None:
    seeds = {mix(s, r, e, b) for s in range(5) for r in range(4) for e in range(10) for b in range(50)}
    assert len(seeds) == 5 * 4 * 10 * 50
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_order_matters() -> None:
    assert mix(1, 0, 2, 3) != mix(1, 0, 3, 2)


def test_mix_is_stable() -> None:
    # resuming years later must find the same masks
    assert mix(1, 0, 0, 0) == 8160745652321985707


@pytest.mark.parametrize("seed", [-1, 2**40])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    torch.default_generator.manual_seed(mix(seed, 0, 0, 0))


def losses(toy: Any, make_trainer: Any, seed: int, *, disturbed: bool = False) -> list[float]:
    class Disturbed(toy.Task):
        def on_train_batch_end(self, *args: Any) -> None:
            if disturbed:
                torch.rand(7)

    torch.manual_seed(0)
    task = Disturbed()
    make_trainer([SeedEveryStep(seed=seed)], limit_val_batches=0).fit(task, datamodule=toy.Data())
    return task.losses


def test_dropout_depends_on_the_seed_and_the_step_alone(toy: Any, make_trainer: Any) -> None:
    assert losses(toy, make_trainer, 1) == losses(toy, make_trainer, 1, disturbed=True)


def test_another_seed_gives_other_masks(toy: Any, make_trainer: Any) -> None:
    assert losses(toy, make_trainer, 1) != losses(toy, make_trainer, 2)


def test_masks_change_from_step_to_step_and_epoch_to_epoch(toy: Any, make_trainer: Any) -> None:
    drawn: list[tuple[float, ...]] = []

    class Drawing(toy.Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            drawn.append(tuple(torch.rand(3).tolist()))
            return super().training_step(batch, batch_idx)

    make_trainer([SeedEveryStep(seed=1)], limit_val_batches=0).fit(Drawing(), datamodule=toy.Data(batches=6))
    assert len(set(drawn)) == 12
