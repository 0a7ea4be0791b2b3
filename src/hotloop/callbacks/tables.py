"""Epochs in words: a line when each ends, and the table that ends a run. Both count from 1."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from hotloop.callbacks.accounting import ratio

SHOWN = 20


def epoch_line(record: Mapping[str, Any], *, epochs: int | None, step: int) -> str:
    """What one epoch came to, in one line for the screen and the log file.

    Args:
        record: entry of `epochs` in report.json, its `metrics` the ones to show; `data_wait_s` None = not known.
        epochs: how many there will be; None or -1 = open.
        step: optimiser steps of the run so far.
    """
    whole = record["seconds"] + record["validation_s"] + record["checkpoint_s"]
    parts = [epoch_name(record["epoch"], epochs), f"step {step}", f"{whole:.1f} s"]
    parts.append(speed(samples_per_s=record["samples_per_s"], tokens_per_s=record["tokens_per_s"]))
    if record["data_wait_s"] is not None:
        parts.append(f"data wait {percent(record['data_wait_s'], record['seconds'])} %")
    if record["train_loss"] is not None:
        parts.append(f"loss {number(record['train_loss'], 3)}")
    return " · ".join([*parts, *(f"{name} {value:.4g}" for name, value in record["metrics"].items())])


def epoch_name(epoch: int, epochs: int | None) -> str:
    """`epoch 4/10` for the epoch that Lightning calls 3; without the end where it is open."""
    return f"epoch {epoch + 1}" + (f"/{epochs}" if epochs and epochs > 0 else "")


def speed(*, samples_per_s: float | None, tokens_per_s: float | None) -> str:
    """Tokens a second, or samples a second for tasks without tokens."""
    count, unit = (samples_per_s, "samples/s") if tokens_per_s is None else (tokens_per_s, "tokens/s")
    return f"{number(count, 0)} {unit}"


def shown_metrics(task: Any, metrics: Mapping[str, float]) -> dict[str, float]:
    """The validation metrics for the line of an epoch: the loss and the task's `headline`, or all without one."""
    headline = getattr(task, "headline", None)
    if headline is None:
        return {name: value for name, value in metrics.items() if name.startswith("val/")}
    return {name: metrics[name] for name in ("val/loss", *headline) if name in metrics}


def epoch_table(epochs: Sequence[Mapping[str, Any]]) -> Table:
    """The last epochs of a report, one row each."""
    caption = f"the last {SHOWN} of {len(epochs)} epochs" if len(epochs) > SHOWN else None
    table = Table(caption=caption, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold")
    rate = "tokens_per_s" if any(epoch["tokens_per_s"] for epoch in epochs) else "samples_per_s"
    columns = {
        "epoch": lambda e: str(e["epoch"] + 1),
        "steps": lambda e: str(e["steps"]),
        "train s": lambda e: number(e["seconds"], 1),
        "wait %": lambda e: percent(e["data_wait_s"], e["seconds"]),
        "valid s": lambda e: number(e["validation_s"], 1),
        rate.replace("_per_", "/"): lambda e: number(e[rate], 0),
        "loss": lambda e: number(e["train_loss"], 3),
        "valid loss": lambda e: number(e["val_loss"], 3),
        "RSS MB": lambda e: number(e["peak_rss_mb"], 0),
        "GPU MB": lambda e: number(e["peak_gpu_mb"], 0),
    }
    if not any(epoch["peak_gpu_mb"] for epoch in epochs):
        del columns["GPU MB"]
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for epoch in epochs[-SHOWN:]:
        table.add_row(*(show(epoch) for show in columns.values()))
    return table


def number(value: float | None, digits: int) -> str:
    """A figure for a table: fixed digits, spaces between thousands, a dash where nothing is known."""
    return "–" if value is None else f"{value:,.{digits}f}".replace(",", " ")


def percent(part: float, whole: float) -> str:
    """`part` of `whole` in per cent, a dash where that means nothing."""
    share = ratio(part, whole)
    return number(None if share is None else 100 * share, 0)
