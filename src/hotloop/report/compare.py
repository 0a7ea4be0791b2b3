"""Figures of whole runs, and the tables of them for the screen and for Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hotloop.callbacks.accounting import ratio
from hotloop.callbacks.tables import number
from hotloop.report.markdown import markdown_table, plain
from hotloop.report.names import readable
from hotloop.report.runs import Run, differing

if TYPE_CHECKING:
    from rich.table import Table

MISSING = "–"
WORDS = ("run", "status", "best")  # columns of words; the others hold figures
SHOWN_SETTINGS = 60
FACTS = ("device", "precision", "parameters", "seed")
NOTES = """\
Speeds are totals over the seconds of training, validation and checkpoints left out; × is the ratio to the first run
where the task is the same. Waiting for data is a share of the training seconds, validation and checkpoints of all
three together; padding is the mean over the epochs, weighted by samples; memory is that of the fullest epoch.
Only epochs that ended count."""


@dataclass(frozen=True)
class Grid:
    """A table: its title, the heads of the columns (a line break within one is allowed) and the cells."""

    title: str
    heads: list[str]
    cells: list[list[str]]


def rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """One mapping a run, for JSON; seconds, megabytes, shares from 0 to 1, None where something is not known."""
    found = [_row(run) for run in runs]
    for row in found:
        comparable = row["task"] == found[0]["task"]
        for speed in ("samples_per_s", "tokens_per_s"):
            row[f"{speed}_ratio"] = _ratio(row[speed], found[0][speed]) if comparable else None
    return found


def _row(run: Run) -> dict[str, Any]:
    epochs, report = run.epochs, run.report
    training, validation, checkpoint = (total(epochs, key) for key in ("seconds", "validation_s", "checkpoint_s"))
    parts = [seconds for seconds in (training, validation, checkpoint) if seconds is not None]
    whole = sum(parts) if parts else None
    samples = total(epochs, "samples")
    # null in an epoch means that it had no tokens
    tokens = sum(epoch.get("tokens") or 0 for epoch in epochs) or None
    wait = total(epochs, "data_wait_s")
    monitor, metrics = report.get("monitor") or {}, report.get("metrics") or {}
    return {
        "name": run.name,
        "folder": readable(str(run.folder)),
        "task": report["task"],
        "status": report["status"],
        "error": report.get("error"),
        "device": report.get("device"),
        "parameters": report.get("parameters"),
        "epochs": len(epochs),
        "steps": total(epochs, "steps"),
        "samples": samples,
        "tokens": tokens,
        "training_s": training,
        "samples_per_s": _ratio(samples, training),
        "tokens_per_s": _ratio(tokens, training),
        "seconds_per_million_tokens": _ratio(training, tokens, 1e6),
        "seconds_per_thousand_samples": _ratio(training, samples, 1e3),
        "data_wait_s": wait,
        "data_wait_share": _ratio(wait, training),
        "validation_s": validation,
        "validation_share": _ratio(validation, whole),
        "checkpoint_s": checkpoint,
        "checkpoint_share": _ratio(checkpoint, whole),
        "padding_share": _padding(epochs),
        "peak_rss_mb": _most(epochs, "peak_rss_mb"),
        "peak_gpu_mb": _most(epochs, "peak_gpu_mb"),
        "monitor": monitor.get("name"),
        "best": monitor.get("best"),
        "test": {name: value for name, value in metrics.items() if name.startswith("test/")},
    }


def total(epochs: Sequence[Mapping[str, Any]], key: str) -> Any:
    """Sum over the epochs; None where there is none or one does not know it."""
    values = [epoch.get(key) for epoch in epochs]
    return None if not values or None in values else sum(values)


def _most(epochs: Sequence[Mapping[str, Any]], key: str) -> Any:
    return max((epoch[key] for epoch in epochs if epoch.get(key) is not None), default=None)


def _padding(epochs: Sequence[Mapping[str, Any]]) -> float | None:
    known = [epoch for epoch in epochs if epoch.get("padding_share") is not None and epoch.get("samples")]
    return _ratio(sum(e["padding_share"] * e["samples"] for e in known), sum(e["samples"] for e in known))


def _ratio(value: float | None, by: float | None, scale: float = 1.0) -> float | None:
    found = None if value is None or by is None else ratio(value, by)
    return None if found is None else scale * found


# ---- tables -------------------------------------------------------------------------------------------


def grids(found: Sequence[Mapping[str, Any]]) -> list[Grid]:
    """Speed, where the time and the memory went, and what was reached; columns without any figure are left out."""
    several = len(found) > 1
    monitors = {row["monitor"] for row in found if row["best"] is not None}
    one = next(iter(monitors)) if len(monitors) == 1 else None
    tests = dict.fromkeys(name for row in found for name in row["test"])
    speed: dict[str, Callable[[Any], str]] = {
        "status": lambda row: row["status"],
        "epochs": lambda row: str(row["epochs"]),
        "train\ns": lambda row: number(row["training_s"], 1),
        "samples\n/s": lambda row: _figure(row["samples_per_s"]),
        "samples\n×": lambda row: number(row["samples_per_s_ratio"], 2),
        "tokens\n/s": lambda row: _figure(row["tokens_per_s"]),
        "tokens\n×": lambda row: number(row["tokens_per_s_ratio"], 2),
        "s / 10⁶\ntokens": lambda row: _figure(row["seconds_per_million_tokens"]),
        "s / 10³\nsamples": lambda row: _figure(row["seconds_per_thousand_samples"] if not row["tokens"] else None),
    }
    if not several:
        del speed["samples\n×"], speed["tokens\n×"]
    costs: dict[str, Callable[[Any], str]] = {
        "wait\n%": lambda row: _percent(row["data_wait_share"]),
        "valid\ns": lambda row: number(row["validation_s"], 1),
        "valid\n%": lambda row: _percent(row["validation_share"]),
        "ckpt\ns": lambda row: number(row["checkpoint_s"], 1),
        "ckpt\n%": lambda row: _percent(row["checkpoint_share"]),
        "padding\n%": lambda row: _percent(row["padding_share"]),
        "RSS\nMB": lambda row: number(row["peak_rss_mb"], 0),
        "GPU\nMB": lambda row: number(row["peak_gpu_mb"], 0),
    }
    reached: dict[str, Callable[[Any], str]] = {
        f"best\n{one}" if one else "best": lambda row: _best(row, named=one is None),
        **{name.replace("/", "\n", 1): _test_metric(name) for name in tests},
    }
    titles = {"Speed": speed, "Time and memory": costs, "Reached": reached}
    return [_grid(title, columns, found) for title, columns in titles.items()]


def _grid(title: str, columns: Mapping[str, Callable[[Any], str]], found: Sequence[Mapping[str, Any]]) -> Grid:
    shown = {head: [show(row) for row in found] for head, show in columns.items()}
    shown = {head: cells for head, cells in shown.items() if set(cells) != {MISSING}}
    names = [row["name"] for row in found]
    return Grid(title, ["run", *shown], [list(cells) for cells in zip(names, *shown.values(), strict=True)])


def _figure(value: float | None) -> str:
    """About three digits, without an exponent: speeds go from hundredths to millions."""
    return number(value, 0 if value is None or abs(value) >= 100 else 1 if abs(value) >= 10 else 2)


def _percent(share: float | None) -> str:
    return number(None if share is None else 100 * share, 1)


def _metric(value: float | None) -> str:
    return MISSING if value is None else f"{value:.4g}"


def _test_metric(name: str) -> Callable[[Any], str]:
    return lambda row: _metric(row["test"].get(name))


def _best(row: Mapping[str, Any], *, named: bool) -> str:
    return f"{row['monitor']} {_metric(row['best'])}" if named and row["best"] is not None else _metric(row["best"])


def failures(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """What ended the runs that failed, a line each."""
    return [f"{row['name']}: {' '.join(str(row['error']).split())}" for row in found if row["error"]]


def rich_table(grid: Grid, *, name_width: int | None = None) -> Table:
    """The grid for a terminal; names longer than `name_width` characters fold, figures never do."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold")
    for head in grid.heads:
        justify: Literal["left", "right"] = "left" if head in WORDS else "right"
        first = head == "run"
        table.add_column(
            Text(head), justify=justify, no_wrap=not first, overflow="fold", width=name_width if first else None
        )
    for cells in grid.cells:
        table.add_row(*map(Text, cells))  # Text: brackets in a name are no mark-up
    return table


# ---- Markdown -----------------------------------------------------------------------------------------


def markdown(runs: Sequence[Run], found: Sequence[Mapping[str, Any]], *, picture: str) -> str:
    """The tables, the picture and what the runs were told, as a document."""
    title = f"Training run {runs[0].name}" if len(runs) == 1 else f"{len(runs)} training runs"
    parts = [f"# {plain(title)}"]
    for grid in grids(found):
        parts += [f"## {grid.title}", markdown_table(grid.heads, grid.cells, figures=_of_figures(grid))]
    parts += [NOTES, f"![Loss, speed, time and memory]({picture})"]
    if lines := failures(found):
        parts += ["## Failures", "\n".join(f"- {plain(line)}" for line in lines)]
    if len(runs) > 1:
        parts += _differences(runs)
    told = [run for run in runs if run.overrides is not None]
    if told:
        parts.append("## Overrides")
        parts += [f"{plain(run.name)}:\n\n{_code_block(run.overrides or ['(none)'])}" for run in told]
    return "\n\n".join(parts) + "\n"


def _of_figures(grid: Grid) -> list[int]:
    return [number for number, head in enumerate(grid.heads) if head not in WORDS]


def _differences(runs: Sequence[Run]) -> list[str]:
    facts = differing([{key: run.report.get(key) for key in FACTS} for run in runs])
    settings = differing([run.settings for run in runs])
    settings.pop("seed", None)  # the report knows the one that was drawn
    everywhere = {key: values for key, values in settings.items() if None not in values}
    lines = {**facts, **everywhere, **settings}  # those that only some models or data have come last
    if not lines:
        return []
    cells = [[key, *map(_value, values)] for key, values in list(lines.items())[:SHOWN_SETTINGS]]
    more = len(lines) - len(cells)
    table = markdown_table(["", *(run.name for run in runs)], cells)
    return ["## What differs", table, *([f"… and {more} more settings."] if more else [])]


def _value(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"asked", "used"}:  # precision
        value = value["used"] or value["asked"]
    return MISSING if value is None else str(value)


def _code_block(lines: Sequence[str]) -> str:
    return "\n".join(f"    {' '.join(line.split())}" for line in lines)
