"""The bucket sampler: everything once, like with like, in an order that seed and epoch decide."""

import os
import subprocess
import sys

import numpy as np
import pytest

from hotloop.data.text.batching import BucketBatchSampler
from hotloop.errors import UserError


def lengths(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    source = draw.integers(1, 30, count).astype(np.int32)
    return source, (source + draw.integers(1, 6, count)).astype(np.int32)


def sampler(count: int = 500, **options: object) -> BucketBatchSampler:
    given = {"shuffle": True, "seed": 7, **({} if "max_tokens" in options else {"batch_size": 16}), **options}
    return BucketBatchSampler(*lengths(count), **given)  # type: ignore[arg-type]


LIMITS = [{"batch_size": 1}, {"batch_size": 2}, {"batch_size": 7}, {"max_tokens": 60}, {"max_tokens": 1}]


@pytest.mark.parametrize("limit", [*LIMITS, {"batch_size": 3, "bucketing": False}])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
def test_ranks_together_see_everything_in_equally_many_steps(
    limit: dict[str, int], shuffle: bool, world_size: int
) -> None:
    for count in (*range(1, 24), 100, 333):
        source, target = lengths(count)
        source[0] = 90  # one pair far longer than the rest
        seen: list[int] = []
        steps = set()
        for rank in range(world_size):
            mine = BucketBatchSampler(  # type: ignore[misc]
                source,
                target,
                shuffle=shuffle,
                rank=rank,
                world_size=world_size,
                **limit,  # type: ignore[arg-type]
            )
            batches = list(mine)
            assert len(batches) == len(mine)
            steps.add(len(batches))
            for batch in batches:
                assert len(batch) <= limit.get("batch_size", count)
                widest = max(source[batch].max(), target[batch].max())
                assert len(batch) == 1 or len(batch) * widest <= limit.get("max_tokens", 10**9)
            seen += [number for batch in batches for number in batch]
        assert set(seen) == set(range(count))
        assert len(steps) == 1
        assert len(seen) - count < world_size
        assert world_size > 1 or len(seen) == count


def test_batches_of_one_step_are_of_like_size() -> None:
    ranks = [list(sampler(960, rank=rank, world_size=4)) for rank in range(4)]
    source, _ = lengths(960)
    for step in zip(*ranks, strict=True):
        widths = [source[batch].max() for batch in step]
        assert max(widths) - min(widths) <= 4


def test_order_differs_by_epoch_and_seed_and_comes_again() -> None:
    one = sampler()
    epochs = []
    for epoch in (0, 1, 0):
        one.set_epoch(epoch)
        epochs.append(list(one))
    assert epochs[0] == epochs[2] != epochs[1]
    assert {tuple(sorted(batch)) for batch in epochs[0]} != {tuple(sorted(batch)) for batch in epochs[1]}
    assert list(sampler(seed=8)) != epochs[0]
    assert list(sampler()) == epochs[0]


def test_order_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "import numpy as np; from hotloop.data.text.batching import BucketBatchSampler as B;"
        "n = np.arange(40, dtype=np.int32) % 7; print(list(B(n, n, batch_size=4, shuffle=True, seed=3)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "1234"}, capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    n = np.arange(40, dtype=np.int32) % 7
    assert told.strip() == str(list(BucketBatchSampler(n, n, batch_size=4, shuffle=True, seed=3)))


def test_most_batches_have_one_source_length_and_little_padding() -> None:
    source, target = lengths(20_000)
    bucketed, random = (
        BucketBatchSampler(source, target, batch_size=64, shuffle=True, bucketing=bucketing)
        for bucketing in (True, False)
    )
    same = [len(set(source[batch])) == 1 for batch in bucketed]
    assert np.mean(same) > 0.85
    for kind in (bucketed, random):
        for side, share in ((source, kind.padding_share().source), (target, kind.padding_share().target)):
            positions = sum(len(batch) * int(side[batch].max()) for batch in kind)
            assert share == pytest.approx(1 - side.sum() / positions)
    assert max(bucketed.padding_share()) < 0.05 < min(random.padding_share())


def test_training_batches_come_in_random_order_evaluation_longest_first() -> None:
    source, _ = lengths(500)
    widths = [source[batch].max() for batch in sampler(shuffle=False)]
    assert widths == sorted(widths, reverse=True)
    shuffled = [source[batch].max() for batch in sampler()]
    assert shuffled not in (sorted(shuffled), sorted(shuffled, reverse=True))


def test_without_bucketing_and_shuffling_the_order_is_that_of_the_file() -> None:
    assert list(sampler(5, batch_size=2, shuffle=False, bucketing=False)) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize("rank", [0, 1])
def test_resuming_leaves_out_what_was_done_in_that_epoch_only(rank: int) -> None:
    one = sampler(rank=rank, world_size=2)
    one.set_epoch(3)
    whole = list(one)
    again = sampler(rank=rank, world_size=2)
    again.set_epoch(3)
    again.resume(epoch=3, batches_done=5)
    assert list(again) == whole[5:]
    assert list(again) == whole[5:]  # Lightning may begin the epoch twice
    assert len(again) == len(whole)
    again.set_epoch(4)
    assert len(list(again)) == len(whole)


def test_no_pairs_no_batches() -> None:
    for options in ({}, {"max_tokens": 9}, {"bucketing": False}):
        empty = sampler(0, **options)
        assert (list(empty), len(empty), empty.padding_share()) == ([], 0, (0.0, 0.0))


def test_too_long_pairs_are_told(caplog: pytest.LogCaptureFixture) -> None:
    sampler(100, max_tokens=20)
    assert "longer than max_tokens 20" in caplog.text


def test_options_are_checked() -> None:
    with pytest.raises(UserError, match="bucketing"):
        sampler(max_tokens=9, bucketing=False)
    for wrong in ({"batch_size": None}, {"max_tokens": 9, "batch_size": 9}, {"rank": 2, "world_size": 2}):
        with pytest.raises(ValueError):
            sampler(**wrong)
