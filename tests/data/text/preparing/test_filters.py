"""Which training pairs are dropped, and how it is told; how splits are taken off the training pairs."""

from collections import Counter

import numpy as np
import pytest

from hotloop.data.text.preparing.filters import Filters, check_anything_left, describe_drops
from hotloop.data.text.preparing.splitting import assign_roles
from hotloop.errors import UserError


@pytest.mark.parametrize(
    ("options", "source", "target", "reason"),
    [
        ({}, "", "a", "empty"),
        ({}, "a", "", "empty"),
        ({}, "a", "b", None),
        ({"min_length": 2}, "a b", "a", "short"),
        ({"min_length": 2}, "a", "a b", "short"),
        ({"max_length": 3}, "a b c", "a b c d", "long"),
        ({"max_length": 3}, "a b c", "a b d", None),
        ({"max_length": None}, "a " * 999 + "a", "b", None),
        ({"max_ratio": 2}, "a b c d", "a b", None),
        ({"max_ratio": 2}, "a b", "a b c d e", "ratio"),
        ({"max_ratio": 1.5}, "a b c d", "a b", "ratio"),
        ({}, "a", "a", None),
        ({"identical": "drop"}, "a", "a", "identical"),
    ],
)
def test_reasons(options: dict[str, object], source: str, target: str, reason: str | None) -> None:
    assert Filters(**options).reason(source, target) == reason  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_length": 0}, "min_length"),
        ({"min_length": True}, "min_length"),
        ({"max_length": 2.5}, "max_length"),
        ({"min_length": 5, "max_length": 4}, "max_length 4 is below data.filters.min_length 5"),
        ({"max_ratio": 0.5}, "max_ratio"),
        ({"max_ratio": float("nan")}, "max_ratio"),
        ({"max_ratio": "2"}, "max_ratio"),
        ({"duplicates": "no"}, "duplicates must be drop or keep, got 'no'"),
        ({"leaks": False}, "leaks"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Filters(**options)  # type: ignore[arg-type]


def test_the_line_for_the_log() -> None:
    assert describe_drops({"empty": 2}, 5) == "2 of 5 pairs dropped (empty)"
    assert describe_drops({"duplicate": 1, "empty": 2}, 1_500) == "3 of 1,500 pairs dropped (empty 2, duplicate 1)"
    assert describe_drops({"leak": 0}, 5) == "0 of 5 pairs dropped"


def test_nothing_left_is_told_with_the_reasons() -> None:
    with pytest.raises(UserError, match=r"a and b: 3 of 3 pairs dropped \(empty 2, too long 1\)"):
        check_anything_left({"empty": 2, "long": 1}, 3, "a and b")
    with pytest.raises(UserError, match=r"no training pairs in a and b$"):
        check_anything_left({}, 0, "a and b")
    check_anything_left({"empty": 2}, 3, "a and b")


def hashes(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def roles(source: np.ndarray, pair: np.ndarray, **options: object) -> tuple[list[int], Counter[str]]:
    given = {"held_out": hashes(), "filters": Filters(), "off_training": {}, **options}
    result = assign_roles(source, pair, **given)  # type: ignore[arg-type]
    return result.role.tolist(), result.dropped


def test_the_first_of_equal_pairs_stays() -> None:
    source, pair = hashes(1, 1, 2, 1, 2), hashes(10, 11, 20, 10, 20)
    assert roles(source, pair) == ([1, 1, 1, 0, 0], Counter(duplicate=2, leak=0))
    assert roles(source, pair, filters=Filters(duplicates="keep"))[0] == [1] * 5


def test_sources_of_valid_and_test_leave_training() -> None:
    source, pair = hashes(1, 2, 3, 2), hashes(10, 20, 30, 21)
    assert roles(source, pair, held_out=hashes(2, 9)) == ([1, 0, 1, 0], Counter(duplicate=0, leak=2))
    assert roles(source, pair, held_out=hashes(2, 9), filters=Filters(leaks="keep"))[0] == [1] * 4


def test_splits_are_taken_by_hash_of_the_source() -> None:
    draw = np.random.default_rng(0)
    source = draw.integers(0, 800, 2_000).astype(np.uint64) * np.uint64(2**50)
    pair = np.arange(2_000).astype(np.uint64)
    role = np.array(roles(source, pair, off_training={"valid": 100, "test": 50})[0])
    assert [(role == r).sum() for r in (1, 2, 3)] == [1_850, 100, 50]
    for one, other in ((1, 2), (1, 3), (2, 3)):
        assert not set(source[role == one]) & set(source[role == other])
    shuffled = draw.permutation(2_000)
    again = np.array(roles(source[shuffled], pair[shuffled], off_training={"valid": 100, "test": 50})[0])
    assert (again == role[shuffled]).all()  # the order of the file does not matter
    alone = np.array(roles(source, pair, off_training={"test": 50})[0])
    assert ((alone == 3) == (role == 3)).all()  # nor does the other split's size


def test_a_sentence_too_frequent_for_the_split_is_passed_over() -> None:
    source = hashes(*[1] * 50, 2, 3, 4, 5)
    role = roles(source, np.arange(54).astype(np.uint64), off_training={"valid": 3})[0]
    assert role == [1] * 50 + [2, 2, 2, 1]


def test_a_split_that_cannot_be_filled_is_told_and_an_empty_one_refused() -> None:
    same, pair = hashes(*[1] * 50, 2, 3), np.arange(52).astype(np.uint64)
    result = assign_roles(same, pair, held_out=hashes(), filters=Filters(), off_training={"valid": 4})
    assert result.count("valid") == 2
    assert len(result.warnings) == 1
    assert "2 of the 4 pairs that data.valid_size asks for" in result.warnings[0]
    assert "off the 52 training pairs" in result.warnings[0]
    for split, wanted in (("valid", {"valid": 4}), ("test", {"valid": 2, "test": 10})):
        with pytest.raises(UserError, match=rf"^0 of the \d+ pairs that data\.{split}_size .* data\.{split}_size=0 "):
            roles(same if split == "test" else hashes(*[1] * 52), pair, off_training=wanted)
    assert not assign_roles(same, pair, held_out=hashes(), filters=Filters(), off_training={"valid": 2}).warnings


def test_a_split_that_takes_everything_is_refused() -> None:
    with pytest.raises(UserError, match=r"3 training pairs are too few.*data\.valid_size=2, data\.test_size=1:"):
        roles(hashes(1, 2, 3), hashes(1, 2, 3), off_training={"valid": 2, "test": 1})
