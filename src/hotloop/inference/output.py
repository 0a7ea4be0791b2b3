"""Where results go: a file that appears when it is complete, or standard output; and evaluation.json."""

import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import lightning.pytorch as pl

from hotloop.callbacks.progress import ThroughputBar
from hotloop.config import build
from hotloop.errors import UserError
from hotloop.run import lightning_mistakes

# What goes wrong with a place while it is written to.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def measure(task: pl.LightningModule, settings: dict[str, Any], **data: Any) -> pl.Trainer:
    """Run `trainer.test` as conf/evaluate.yaml asks for.

    Args:
        task: a loaded task.
        settings: plain values of conf/evaluate.yaml.
        data: `datamodule=` or `dataloaders=`.
    """
    node = {"_target_": "lightning.pytorch.Trainer", **settings["trainer"]}
    node |= {"logger": False, "enable_checkpointing": False, "enable_model_summary": False}
    trainer = build(node, "trainer", callbacks=[ThroughputBar()])
    try:
        with lightning_mistakes():
            trainer.test(task, verbose=False, **data)
    except SystemExit:  # Lightning's answer to Ctrl-C
        raise KeyboardInterrupt from None
    return trainer


def test_metrics(trainer: pl.Trainer) -> dict[str, float]:
    """What the test measured, without "test/" before each name."""
    return {name.removeprefix("test/"): float(value) for name, value in trainer.callback_metrics.items()}


def write_evaluation(settings: dict[str, Any], result: dict[str, Any]) -> Path:
    """Write evaluation.json into the folder of the run."""
    target = Path(settings["run_dir"]) / "evaluation.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return target


@contextmanager
def output_file(name: str) -> Iterator[TextIO]:
    """The file to write, its folder made where there is none, or standard output for "-"; UTF-8, LF line ends.

    A file gets its name when it is complete: a failure leaves what was there before, and input and output may
    be the same file.
    """
    if name == "-":
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        yield sys.stdout
        sys.stdout.flush()  # here, where a reader that has gone can still be told apart from a failure
        return
    target = Path(name)
    special = target.exists() and not target.is_file()  # a pipe or a device cannot be renamed onto
    draft = target if special else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = open(draft, "w", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UserError(f"output: cannot write {name}: {error.strerror}") from error
    try:
        with file:
            yield file
        if not special:
            os.replace(draft, target)
    except BaseException as error:
        if not special:
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in FULL:
            raise UserError(f"output: cannot write {name}: {error.strerror}") from error
        raise


def write_lines(name: str, lines: Iterable[str]) -> None:
    with output_file(name) as file:
        file.writelines(f"{line}\n" for line in lines)
