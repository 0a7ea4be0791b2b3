"""Plain batches: everything once, dealt to ranks, none of a single sample where two are needed."""

import logging

import pytest

from hotloop.data.sampling import BatchSampler


def ranks(count: int, world_size: int, **options: object) -> list[list[list[int]]]:
    given = {"batch_size": 4, "shuffle": True, "seed": 7, **options}
    samplers = [
        BatchSampler(count, rank=rank, world_size=world_size, **given)  # type: ignore[arg-type]
        for rank in range(world_size)
    ]
    return [list(sampler) for sampler in samplers]


@pytest.mark.parametrize("at_least_two", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
def test_ranks_together_see_everything_in_equally_many_steps(
    world_size: int, shuffle: bool, at_least_two: bool
) -> None:
    for count in range(1, 40):
        dealt = ranks(count, world_size, shuffle=shuffle, at_least_two=at_least_two)
        seen = [number for rank in dealt for batch in rank for number in batch]
        assert set(seen) == set(range(count))
        assert len({len(rank) for rank in dealt}) == 1
        assert len(seen) - count <= world_size * 4 - 1
        assert world_size > 1 or len(seen) == count
        smallest = min(len(batch) for rank in dealt for batch in rank)
        assert smallest >= (2 if at_least_two and count > 1 else 1)


def test_without_shuffling_the_order_is_that_of_the_numbers() -> None:
    assert ranks(6, 1, shuffle=False) == [[[0, 1, 2, 3], [4, 5]]]


def test_a_single_sample_at_the_end_joins_the_batch_before_and_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert ranks(9, 1, shuffle=False, at_least_two=True) == [[[0, 1, 2, 3], [4, 5, 6, 7, 8]]]
    assert caplog.text.count("joins the batch before") == 1
    caplog.clear()
    assert ranks(9, 1, shuffle=False) == [[[0, 1, 2, 3], [4, 5, 6, 7], [8]]]
    assert ranks(1, 1, at_least_two=True) == [[[0]]]
    assert ranks(2, 1, shuffle=False, batch_size=1, at_least_two=True) == [[[0], [1]]]  # asked for
    assert not caplog.text


def test_epochs_and_seeds_differ_and_come_again() -> None:
    sampler = BatchSampler(40, batch_size=4, shuffle=True, seed=3)
    epochs = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        epochs.append(list(sampler))
    assert epochs[0] == epochs[2] != epochs[1]
    assert list(BatchSampler(40, batch_size=4, shuffle=True, seed=4)) != epochs[0]


def test_resuming_leaves_out_what_was_done_in_that_epoch_only() -> None:
    sampler = BatchSampler(40, batch_size=4, shuffle=True)
    whole = list(sampler)
    sampler.resume(epoch=0, batches_done=3)
    assert (list(sampler), len(sampler)) == (whole[3:], 10)
    sampler.set_epoch(1)
    assert len(list(sampler)) == 10


def test_a_rank_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 2 of 2"):
        BatchSampler(4, batch_size=2, shuffle=False, rank=2, world_size=2)
