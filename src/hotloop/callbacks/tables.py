"""The table of epochs that ends a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

SHOWN = 20


def epoch_table(epochs: Sequence[Mapping[str, Any]]) -> Table:
    """The last epochs of a report, one row each."""
    caption = f"the last {SHOWN} of {len(epochs)} epochs" if len(epochs) > SHOWN else None
    table = Table(caption=caption, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold")
    speed = "tokens_per_s" if any(epoch["tokens_per_s"] for epoch in epochs) else "samples_per_s"
    columns = {
        "epoch": lambda e: str(e["epoch"]),
        "steps": lambda e: str(e["steps"]),
        "train s": lambda e: number(e["seconds"], 1),
        "wait %": lambda e: number(100 * e["data_wait_s"] / e["seconds"] if e["seconds"] else None, 0),
        "valid s": lambda e: number(e["validation_s"], 1),
        speed.replace("_per_", "/"): lambda e: number(e[speed], 0),
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
