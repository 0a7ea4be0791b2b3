"""Names of checkpoints, and where the best and the newest are."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hotloop.callbacks.checkpointing import Checkpoint, checkpoints, monitored
from hotloop.callbacks.interruption import Interruption


def saver(**values: Any) -> Any:
    return SimpleNamespace(**({"monitor": None, "best_model_path": "", "last_model_path": ""} | values))


def trainer(*savers: Any, interrupted: str | None = None) -> Any:
    interruption = Interruption("interrupted.ckpt")
    interruption.saved = None if interrupted is None else Path(interrupted)
    return SimpleNamespace(checkpoint_callbacks=list(savers), callbacks=[*savers, interruption])


BEST = saver(monitor="val/loss", best_model_path="best.ckpt", best_model_score=torch.tensor(0.5))
LAST = saver(best_model_path="last.ckpt")
BOTH = saver(monitor="val/loss", best_model_path="best.ckpt", last_model_path="its_last.ckpt", best_model_score=None)


@pytest.mark.parametrize(
    ("savers", "interrupted", "expected"),
    [
        ([], None, ("", "")),
        ([BEST], None, ("best.ckpt", "")),
        ([LAST], None, ("", "last.ckpt")),
        ([BEST, LAST], None, ("best.ckpt", "last.ckpt")),
        ([LAST, BEST], None, ("best.ckpt", "last.ckpt")),
        ([BOTH], None, ("best.ckpt", "its_last.ckpt")),
        ([BEST, saver(monitor="val/bleu", best_model_path="second.ckpt")], None, ("best.ckpt", "")),
        ([saver(monitor="val/loss"), LAST], None, ("", "last.ckpt")),
        ([BEST, LAST], "interrupted.ckpt", ("best.ckpt", "interrupted.ckpt")),
    ],
)
def test_the_best_and_the_newest(savers: list[Any], interrupted: str | None, expected: tuple[str, str]) -> None:
    assert checkpoints(trainer(*savers, interrupted=interrupted)) == expected


def test_what_checkpoints_are_chosen_by() -> None:
    assert monitored(trainer(LAST, BEST)) == ("val/loss", torch.tensor(0.5))
    assert monitored(trainer(LAST)) == (None, None)


def test_epochs_in_file_names_count_from_one(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    kept = Checkpoint(
        dirpath=tmp_path / "kept", filename="epoch{epoch:03d}", auto_insert_metric_name=False, monitor="val/loss",
        save_top_k=-1, save_last=True,
    )  # fmt: skip
    make_trainer([kept], max_epochs=2).fit(toy.Task(), datamodule=toy.Data())
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "epoch001.ckpt",
        "epoch002.ckpt",
        "last.ckpt",
    ]
    assert torch.load(tmp_path / "kept" / "epoch002.ckpt", weights_only=True)["epoch"] == 1, "Lightning's own count"
