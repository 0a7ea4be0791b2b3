"""The picture of one or more runs: loss against training time, speed, where the time went, memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from hotloop.callbacks.tables import number
from hotloop.report.names import shortened
from hotloop.report.runs import Run

# Okabe and Ito's colours, which colour-blind people tell apart, without the yellow that is pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v")  # 35 pairs with the colours
PHASES = {"data wait": "#D55E00", "step": "#0072B2", "validation": "#56B4E9", "checkpoints": "#E69F00"}
WIDTH = 44  # characters of a name


def draw(runs: Sequence[Run], found: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Write the picture as PNG.

    Args:
        runs: what to draw.
        found: their rows, as `compare.rows` makes them.
        path: of the picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = math.ceil(len(runs) / 3)  # of the legend
    # The object interface: no figure is registered with pyplot, so none has to be closed.
    figure = Figure(figsize=(12, 8.5 + 0.2 * rows + 0.25 * max(0, len(runs) - 8)), dpi=100, layout="constrained")
    (loss, speed), (time, memory) = figure.subplots(2, 2)
    draw_loss(loss, runs)
    draw_speed(speed, runs)
    if len(runs) == 1:
        draw_time_by_epoch(time, runs[0])
    else:
        draw_time_by_run(time, runs, found)
    draw_memory(memory, runs)
    if len(runs) == 1:
        figure.suptitle(literal(runs[0].name), fontsize=11)
    else:
        figure.legend(handles=_handles(runs), loc="outside lower center", ncols=min(3, len(runs)), fontsize=9)
    FigureCanvasAgg(figure).print_png(path)
    return path


def draw_loss(axes: Any, runs: Sequence[Run]) -> None:
    """Training and validation loss at the ends of the epochs, against the seconds of training until then."""
    drawn: list[float] = []
    for index, run in enumerate(runs):
        seconds = list(accumulate(epoch.get("seconds") or 0.0 for epoch in run.epochs))
        for key, style, filled in (("train_loss", "--", False), ("val_loss", "-", True)):
            values = _values(run, key)
            drawn += [value for value in values if math.isfinite(value)]
            axes.plot(seconds, values, linestyle=style, **_look(index, len(values), filled=filled))
    axes.set(xlabel="seconds of training", ylabel="loss", title="Loss: training (dashed, hollow), validation (solid)")
    axes.set_xlim(left=0)
    if drawn and min(drawn) > 0 and max(drawn) > 30 * min(drawn):
        axes.set_yscale("log")
    _say_if_empty(axes, drawn)


def draw_speed(axes: Any, runs: Sequence[Run]) -> None:
    """Tokens a second by epoch; samples where a run has no tokens."""
    in_tokens = all(any(epoch.get("tokens_per_s") for epoch in run.epochs) for run in runs if run.epochs)
    key, unit = ("tokens_per_s", "target tokens/s") if in_tokens else ("samples_per_s", "samples/s")
    drawn = _by_epoch(axes, runs, key)
    axes.set(ylabel=unit, title="Speed of training")
    _from_zero(axes, drawn)


def draw_memory(axes: Any, runs: Sequence[Run]) -> None:
    """Peak memory by epoch: resident, and dashed that of the GPU."""
    drawn = _by_epoch(axes, runs, "peak_rss_mb")
    on_gpu = _by_epoch(axes, runs, "peak_gpu_mb", linestyle="--", filled=False)
    title = "Peak memory: resident (solid), GPU (dashed, hollow)" if on_gpu else "Peak resident memory"
    axes.set(ylabel="MB", title=title)
    _from_zero(axes, drawn + on_gpu)


def draw_time_by_epoch(axes: Any, run: Run) -> None:
    """Seconds of each epoch by what they were spent on, stacked."""
    epochs = _epoch_numbers(run)
    below = [0.0] * len(epochs)
    for phase, colour in PHASES.items():
        heights = [seconds_by_phase(epoch)[phase] for epoch in run.epochs]
        axes.bar(epochs, heights, bottom=below, color=colour, label=phase, width=0.8)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set(xlabel="epoch", ylabel="seconds", title="Where the time went")
    if any(below):
        axes.set_ylim(0, 1.22 * max(below))  # room for the legend
        axes.legend(ncols=4, fontsize=8, loc="upper center")
    _whole_numbers(axes)
    _say_if_empty(axes, below)


def draw_time_by_run(axes: Any, runs: Sequence[Run], found: Sequence[Mapping[str, Any]]) -> None:
    """Shares of each run's time by what it was spent on, stacked; the seconds at the end of each bar."""
    spent = [seconds_by_phase({"seconds": row["training_s"], **{key: row[key] for key in _PARTS}}) for row in found]
    whole = [sum(parts.values()) for parts in spent]
    left = [0.0] * len(runs)
    for phase, colour in PHASES.items():
        widths = [100 * parts[phase] / (total or 1.0) for parts, total in zip(spent, whole, strict=True)]
        axes.barh(range(len(runs)), widths, left=left, color=colour, label=phase, height=0.7)
        left = [low + width for low, width in zip(left, widths, strict=True)]
    for index, total in enumerate(whole):
        text = f" {number(total, 1 if total < 100 else 0)} s" if total else " no epochs"
        axes.text(left[index], index, text, va="center", fontsize=8)
    names = shortened([run.name for run in runs], 26)
    axes.set_yticks(range(len(runs)), [literal(name) for name in names], fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="% of the time", xlim=(0, 115), xticks=range(0, 101, 20))
    axes.legend(ncols=4, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    axes.set_title("Where the time went", pad=26)


_PARTS = ("data_wait_s", "validation_s", "checkpoint_s")


def seconds_by_phase(record: Mapping[str, Any]) -> dict[str, float]:
    """Seconds waiting for data, stepping, validating and writing checkpoints; zero where not known.

    Args:
        record: with `seconds` of training, of which `data_wait_s` is a part, `validation_s` and `checkpoint_s`.
    """
    wait, validation, checkpoint = (record.get(key) or 0.0 for key in _PARTS)
    training = record.get("seconds") or 0.0
    return dict(zip(PHASES, (wait, max(0.0, training - wait), validation, checkpoint), strict=True))


def literal(name: str) -> str:
    """`name` as a label: a $ in it is no formula, and an underscore at its beginning does not hide it."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def _by_epoch(axes: Any, runs: Sequence[Run], key: str, *, linestyle: str = "-", filled: bool = True) -> list[float]:
    """Draw a figure of every run against the epochs; returns what was drawn."""
    drawn: list[float] = []
    for index, run in enumerate(runs):
        values = _values(run, key)
        known = [value for value in values if math.isfinite(value)]
        if known:
            axes.plot(_epoch_numbers(run), values, linestyle=linestyle, **_look(index, len(values), filled=filled))
        drawn += known
    axes.set_xlabel("epoch")
    _whole_numbers(axes)
    return drawn


def _values(run: Run, key: str) -> list[float]:
    """One an epoch, NaN where it is not known."""
    return [math.nan if epoch.get(key) is None else epoch[key] for epoch in run.epochs]


def _epoch_numbers(run: Run) -> list[int]:
    """Counted from 1."""
    numbers = [epoch.get("epoch") for epoch in run.epochs]
    return [index + 1 if number is None else int(number) + 1 for index, number in enumerate(numbers)]


def _look(index: int, points: int, *, filled: bool = True) -> dict[str, Any]:
    colour = COLOURS[index % len(COLOURS)]
    return {
        "color": colour,
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 5,
        "markerfacecolor": colour if filled else "white",
        "markevery": max(1, points // 12),
        "linewidth": 1.4,
    }


def _handles(runs: Sequence[Run]) -> list[Any]:
    from matplotlib.lines import Line2D

    names = shortened([run.name for run in runs], WIDTH)
    return [Line2D([], [], label=literal(name), **_look(index, 1)) for index, name in enumerate(names)]


def _whole_numbers(axes: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _from_zero(axes: Any, drawn: Sequence[float]) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axes.set_ylim(0, 1.1 * max(drawn, default=0.0) or 1.0)
    if max(drawn, default=0.0) >= 1000:
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    _say_if_empty(axes, drawn)


def _say_if_empty(axes: Any, drawn: Sequence[float]) -> None:
    if not drawn:
        axes.text(0.5, 0.5, "no figures", ha="center", va="center", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
