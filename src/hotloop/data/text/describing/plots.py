"""Pictures of the statistics of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hotloop.data.text.describing.statistics import Statistics
from hotloop.data.text.preparing.texts import SIDES

COLOURS = {"source": "tab:blue", "target": "tab:orange"}
DASHES = {"train": ":", "valid": "-", "test": "--"}


def draw(found: Statistics, folder: Path) -> list[Path]:
    """Write lengths.png, vocabulary.png and unknown.png; returns their paths."""
    return [
        _write(draw_lengths(found), folder / "lengths.png"),
        _write(draw_vocabulary(found), folder / "vocabulary.png"),
        _write(draw_unknown(found), folder / "unknown.png"),
    ]


def draw_lengths(found: Statistics) -> Any:
    """Histograms of words and tokens a sentence and of their ratio, and source against target length."""
    figure, ((words, tokens), (ratio, plane)) = _figure(2, 2, size=(11, 8))
    for axes, lengths, unit in ((words, found.words, "words"), (tokens, found.tokens, "tokens")):
        longest = max(int(np.percentile(side, 99.5)) if len(side) else 0 for side in lengths.values()) + 2
        for side, name in _languages(found).items():
            counts = np.bincount(np.minimum(lengths[side], longest), minlength=longest + 1)[:longest]
            axes.step(range(longest), counts, where="mid", color=COLOURS[side], label=name)
            if len(lengths[side]):
                axes.axvline(np.median(lengths[side]), color=COLOURS[side], linestyle=":", linewidth=1)
        axes.set(
            xlabel=f"{unit} (dotted: median)", ylabel="training sentences", title=f"{unit.capitalize()} a sentence"
        )
        axes.legend()
    source, target = found.words["source"], found.words["target"]
    whole = (source > 0) & (target > 0)
    source, target = source[whole], target[whole]
    ratio.hist(np.clip(target / source, 0, 3), bins=np.linspace(0, 3, 61), color="tab:gray")
    ratio.axvline(1.0, color="black", linewidth=0.8)
    names = _languages(found)
    ratio.set(
        xlabel=f"{names['target']} words / {names['source']} words (3 and more at the end)",
        ylabel="training pairs",
        title="Length ratio",
        yscale="log",
    )
    edge = (int(np.percentile(np.concatenate([source, target]), 99)) if len(source) else 1) + 1
    # one bin a length: fewer would beat against whole numbers
    bins = np.arange(0.5, edge + 1)
    image = plane.hist2d(source, target, bins=(bins, bins), cmap="viridis", norm="log", cmin=1)[3]
    plane.set(xlabel=f"{names['source']} words", ylabel=f"{names['target']} words", title="Length against length")
    figure.colorbar(image, ax=plane, label="training pairs")
    return figure


def draw_vocabulary(found: Statistics) -> Any:
    """Different words against running words with Heaps' law, and how much of the text the frequent words make up."""
    figure, ((growth, cover),) = _figure(1, 2, size=(11, 4.5))
    below = _further_right(found)
    for side, name in _languages(found).items():
        facts = found.values["vocabulary"][side]
        running, distinct = np.array(facts["growth"], dtype=float).reshape(-1, 2).T
        growth.plot(running, distinct, ".-", color=COLOURS[side], label=name)
        if law := facts["heaps"]:
            label = f"{name}: {law['k']:.3g} · N^{law['beta']:.3f}"
            fitted = running[100 * running >= running[-1]]  # where `heaps` looks
            growth.plot(fitted, law["k"] * fitted ** law["beta"], "--", color=COLOURS[side], linewidth=1, label=label)
        shares = [100 * float(share) for share in facts["coverage"]]
        words = [entry["words"] for entry in facts["coverage"].values()]
        cover.plot(words, shares, "o-", color=COLOURS[side], label=name)
        for share, number in zip(shares, words, strict=True):
            right = side == below
            cover.annotate(
                f"{number:,}", (number, share), textcoords="offset points", fontsize=8, color=COLOURS[side],
                xytext=(7, -11) if right else (-7, 5), ha="left" if right else "right",
            )  # fmt: skip
    growth.set(xlabel="running words", ylabel="different words", title="Vocabulary growth", xscale="log", yscale="log")
    cover.set(xlabel="most frequent words", ylabel="% of the text", title="Coverage", xscale="log", ylim=(87, 101))
    cover.margins(x=0.18)
    for axis in (growth.xaxis, growth.yaxis, cover.xaxis):
        _label_numbers(axis)
    growth.legend()
    cover.legend(loc="lower right")
    return figure


def _further_right(found: Statistics) -> str:
    """The side that needs more words for the same share: its labels go to the right, those of the other to the left."""
    needed = {
        side: sum(entry["words"] for entry in found.values["vocabulary"][side]["coverage"].values()) for side in SIDES
    }
    return max(SIDES, key=lambda side: needed[side])


def draw_unknown(found: Statistics) -> Any:
    """Share of unknown words against the size of a word vocabulary, and that of the tokeniser in use as a line."""
    figure, (panels,) = _figure(1, 2, size=(11, 4.5))
    for axes, (side, name) in zip(panels, _languages(found).items(), strict=True):
        for split, shares in found.values["unknown"]["words"][side].items():
            sizes = [int(size) for size in shares]
            percent = [100 * share for share in shares.values()]
            axes.plot(sizes, percent, marker="o", linestyle=DASHES[split], color=COLOURS[side], label=f"{split}, words")
        used = found.values["unknown"]["tokenizer"]
        for split in used:
            if split != "train" or len(used) == 1:
                axes.axhline(
                    100 * used[split][side], color="black", linewidth=1, linestyle=DASHES[split],
                    label=f"{split}, tokeniser in use",
                )  # fmt: skip
        axes.set(xlabel="ids of a word vocabulary", ylabel="% unknown", title=f"Unknown, {name}", xscale="log")
        _label_numbers(axes.xaxis)
        axes.set_ylim(bottom=-0.2)
        axes.legend(fontsize=8, handlelength=4)
    return figure


def _label_numbers(axis: Any) -> None:
    """Label a logarithmic axis at 1, 2 and 5 times the powers of ten, in plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def _languages(found: Statistics) -> dict[str, str]:
    return dict(zip(SIDES, found.values["languages"], strict=True))


def _figure(rows: int, columns: int, *, size: tuple[float, float]) -> tuple[Any, Any]:
    # The object interface: no figure is registered with pyplot, so none has to be closed.
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=100, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _write(figure: Any, path: Path) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for axes in figure.axes:
        legend = axes.get_legend()
        # Names of languages are text, a $ in one is no formula; labels of ticks are formulas.
        for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *(legend.get_texts() if legend else ())):
            text.set_parse_math(False)
    FigureCanvasAgg(figure).print_png(path)
    return path
