"""Dividing rows: the sizes asked for, groups whole, the same on every machine."""

from typing import Any

import numpy as np
import pytest

from hotloop.data.images.source import TargetTable
from hotloop.data.images.splitting import divide
from hotloop.errors import UserError


def table(count: int, *, groups: Any = None, split: Any = None) -> TargetTable:
    return TargetTable(
        ("target",),
        np.zeros((count, 1)),
        None if split is None else np.array(split, dtype=np.int8),
        None if groups is None else np.array(groups, dtype=np.int64),
    )


def counts(split: np.ndarray) -> list[int]:
    return np.bincount(split, minlength=3).tolist()


@pytest.mark.parametrize("how", ["random", "ordered"])
@pytest.mark.parametrize(
    ("valid_size", "test_size", "expected"),
    [(0.1, 0.2, [70, 10, 20]), (7, 3, [90, 7, 3]), (0, 0, [100, 0, 0]), (0.0, 0.5, [50, 0, 50]),
     (0.001, 1, [98, 1, 1]), (98, 1, [1, 98, 1])],
)  # fmt: skip
def test_sizes_are_shares_or_numbers(how: str, valid_size: float, test_size: float, expected: list[int]) -> None:
    split = divide(table(100), valid_size=valid_size, test_size=test_size, how=how)
    assert split.dtype == np.int8
    assert counts(split) == expected


def test_ordered_takes_the_last_rows() -> None:
    split = divide(table(10), valid_size=2, test_size=3, how="ordered")
    assert split.tolist() == [0, 0, 0, 0, 0, 1, 1, 2, 2, 2]


def test_the_choice_is_fixed_by_the_seed_for_all_time() -> None:
    def chosen(seed: int, name: int, **sizes: Any) -> list[int]:
        options = {"valid_size": 3, "test_size": 3, **sizes}
        return np.flatnonzero(divide(table(40), seed=seed, **options) == name).tolist()

    assert chosen(0, 1) == [2, 32, 33]  # literal: another version of numpy must not divide otherwise
    assert chosen(0, 2) == [3, 9, 30]
    assert chosen(1, 1) != chosen(0, 1)
    assert chosen(0, 2, valid_size=9) == chosen(0, 2)
    assert chosen(0, 1, test_size=0.5) == chosen(0, 1)


def test_random_is_spread_over_all_rows() -> None:
    where = np.flatnonzero(divide(table(10_000), valid_size=0.1, test_size=0) == 1)
    assert len(where) == 1000
    assert abs(np.histogram(where, bins=10, range=(0, 10_000))[0] - 100).max() < 40


@pytest.mark.parametrize("how", ["random", "ordered"])
def test_groups_are_never_divided(how: str) -> None:
    groups = np.sort(np.random.default_rng(0).integers(0, 30, 500))[::-1] * 7
    split = divide(table(500, groups=groups), valid_size=0.2, test_size=0.1, how=how, seed=3)
    assert all(len(set(split[groups == group])) == 1 for group in set(groups.tolist()))
    assert abs(counts(split)[1] - 100) <= 20
    assert abs(counts(split)[2] - 50) <= 20
    if how == "ordered":
        assert (np.diff(split) >= 0).all()


def test_groups_larger_than_asked_for_are_taken_whole() -> None:
    split = divide(table(9, groups=[0] * 3 + [1] * 2 + [2] * 4), valid_size=1, test_size=0)
    assert counts(split) == [7, 2, 0]


def test_splits_of_the_table_stay_and_others_come_from_training_rows() -> None:
    given = [0] * 20 + [2] * 5
    split = divide(table(25, split=given), valid_size=0.1, test_size=0.5)
    assert counts(split) == [18, 2, 5]
    assert split[20:].tolist() == [2] * 5
    whole = [0, 0, 1, 2]
    assert divide(table(4, split=whole), valid_size=0.5, test_size=0.5).tolist() == whole


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        (1, {"valid_size": 0.1, "test_size": 0}, r"1 training rows are too few .*data.valid_size=0.1"),
        (2, {"valid_size": 0.1, "test_size": 0.1}, "2 training rows are too few"),
        (10, {"valid_size": 5, "test_size": 5}, "data.valid_size=5 and data.test_size=5"),
        (10, {"valid_size": 11, "test_size": 0}, "too few"),
        (10, {"valid_size": 1.0, "test_size": 0}, r"data.valid_size must be .*1\.0"),
        (10, {"valid_size": -1, "test_size": 0}, "got -1"),
        (10, {"valid_size": 0, "test_size": True}, "data.test_size .*True"),
        (10, {"valid_size": "0.1", "test_size": 0}, "got '0.1'"),
        (10, {"valid_size": float("nan"), "test_size": 0}, "got nan"),
        (10, {"valid_size": 0, "test_size": 0, "how": "sorted"}, "random or ordered"),
    ],
)
def test_what_cannot_be_divided(rows: int, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        divide(table(rows), **options)


def test_few_groups_and_no_training_rows_are_told() -> None:
    with pytest.raises(UserError, match=r"8 training rows in 2 groups"):
        divide(table(8, groups=[0, 1] * 4), valid_size=1, test_size=1)
    with pytest.raises(UserError, match="in 1 group, which"):
        divide(table(8, groups=[5] * 8), valid_size=1, test_size=0)
    with pytest.raises(UserError, match="none of the 3 rows is for training"):
        divide(table(3, split=[1, 2, 2]), valid_size=0, test_size=0)
