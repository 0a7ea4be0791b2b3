"""Loaders over whole batches: what a worker meets reaches the user as one line; Ctrl-C is the parent's affair."""

import gc
import signal
from typing import Any

import pytest
from torch.utils.data import Dataset

from hotloop.data.loading import FixedBatches, Loader, LoaderOptions
from hotloop.errors import UserError


class Numbers(Dataset[Any]):
    def __len__(self) -> int:
        return 9

    def __getitem__(self, number: Any) -> Any:
        if number == 5:
            raise UserError("a.jpg: it is truncated")
        if number == 6:
            return signal.getsignal(signal.SIGINT) is signal.SIG_IGN, gc.get_freeze_count() > 0
        if number == 7:
            raise KeyError("a mistake of ours")
        return number


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_users_mistake_in_a_worker_is_one_line(workers: int) -> None:
    loader = iter(Loader(Numbers(), [0, 1, 5], workers=workers))
    assert (next(loader), next(loader)) == (0, 1)
    with pytest.raises(UserError) as told:
        next(loader)
    assert str(told.value) == "a.jpg: it is truncated"


def test_our_own_mistakes_keep_their_traceback() -> None:
    with pytest.raises(KeyError, match="a mistake of ours"):
        list(Loader(Numbers(), [7], workers=1))


def test_workers_leave_interrupts_to_the_parent_and_inherited_objects_alone() -> None:
    assert list(Loader(Numbers(), [6], workers=1)) == [[True, True]]


def test_without_a_sampler_batches_come_by_number() -> None:
    fixed = FixedBatches(Numbers(), iter([3, 1, 2]))
    assert list(Loader(fixed)) == list(Loader(fixed, workers=1)) == [3, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "data.num_workers"),
        ({"num_workers": True}, "data.num_workers"),
        ({"prefetch_factor": 0}, "data.prefetch_factor"),
        ({"pin_memory": "yes"}, "data.pin_memory"),
        ({"seed": 0.5}, "data.seed"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        LoaderOptions(**options)
