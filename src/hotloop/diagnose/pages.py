"""A diagnosis as files: diagnosis.json, diagnosis.md and diagnosis.png."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.callbacks.environment import versions
from hotloop.callbacks.json_file import write_json
from hotloop.diagnose.advice import Advice
from hotloop.diagnose.breakdown import Breakdown
from hotloop.diagnose.findings import Finding
from hotloop.diagnose.levers import Gain, Untried
from hotloop.diagnose.tables import (
    Rows,
    advice_lines,
    at,
    gain_rows,
    line_rows,
    module_rows,
    operator_rows,
    phase_rows,
)
from hotloop.errors import UserError
from hotloop.report.markdown import markdown_table

COLOURS = {"faster": "tab:blue", "noise": "tab:gray", "slower": "tab:orange"}


def write_pages(
    folder: Path,
    *,
    found: Breakdown,
    said: list[Finding],
    gains: list[Gain | Untried],
    advice: Advice,
    command_of: Callable[[tuple[str, ...]], str],
    settings: dict[str, Any],
    kind: str,
    device: str,
) -> None:
    """Write the three files.

    Raises:
        UserError: the folder cannot be written to.
    """
    content = {
        "base_command": command_of(()),
        "device": device,
        "versions": versions(),
        "seed": settings["seed"],
        "batch_size": settings["data"].get("batch_size"),
        "breakdown": found.as_dict(),
        "findings": [dataclasses.asdict(finding) for finding in said],
        "levers": [record(gain, command_of) for gain in gains],
        "same_model": None if advice.same_model is None else record(advice.same_model, command_of),
        "any_model": None if advice.any_model is None else record(advice.any_model, command_of),
    }
    try:
        write_json(folder / "diagnosis.json", content)
        drawn = draw(gains, folder / "diagnosis.png")
        (folder / "diagnosis.md").write_text(
            page(found, said, gains, advice, command_of, content=content, kind=kind, picture=drawn), encoding="utf-8"
        )
    except OSError as error:
        raise UserError(f"cannot write to {folder} (run_dir=…): {error.strerror or error}") from error


def record(gain: Gain | Untried, command_of: Callable[[tuple[str, ...]], str]) -> dict[str, Any]:
    """A lever and its figures as JSON."""
    values = dataclasses.asdict(gain)
    lever = values.pop("lever")
    verdict = gain.verdict if isinstance(gain, Gain) else "not tried"
    return {**lever, **values, "verdict": verdict, "command": command_of(gain.lever.overrides)}


def page(
    found: Breakdown,
    said: list[Finding],
    gains: list[Gain | Untried],
    advice: Advice,
    command_of: Callable[[tuple[str, ...]], str],
    *,
    content: dict[str, Any],
    kind: str,
    picture: bool,
) -> str:
    """The text of diagnosis.md."""
    parts = [f"# Diagnosis\n\n`{content['base_command']}`\n\non {content['device']}, seed {content['seed']}"]
    lines = advice_lines(advice, command_of)
    told = [f"**{what}**: {expected}\n\n```\n{command}\n```" for what, command, expected in lines]
    parts.append("## What to change\n\n" + ("\n\n".join(told) or "Nothing that was tried is faster."))
    where = "\n".join(f"- {finding.message}{at(finding)}" for finding in said) or "No rule found anything wrong."
    parts.append(f"## Findings\n\n{where}")
    parts.append(
        "## Overrides tried\n\nEach was run beside the settings as they are, step by step in turn. The spread is that "
        "of the middle half of the rounds, or a standard error where the batches are others. Gains under 3 % or with a "
        "spread around 1 are noise.\n\n" + table_of(gain_rows(gains, kind=kind))
    )
    if picture:
        parts.append("![speed-up of each override](diagnosis.png)")
    tables = (phase_rows(found), operator_rows(found), module_rows(found), line_rows(found))
    parts.append(
        f"## Where a step goes\n\nBatches of {content['batch_size']}, medians over {found.steps} steps. Source lines "
        "are sampled.\n\n" + "\n\n".join(map(table_of, tables))
    )
    return "\n\n".join(parts) + "\n"


def table_of(rows: Rows) -> str:
    """Rows as a table of Markdown."""
    return markdown_table(rows[0], rows[1:])


def draw(gains: list[Gain | Untried], path: Path) -> bool:
    """A bar a lever, with its spread; whether there was anything to draw."""
    measured = sorted((gain for gain in gains if isinstance(gain, Gain)), key=lambda gain: gain.speed_up)
    if not measured:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.4 + 0.42 * len(measured)), layout="constrained")
    axes = figure.subplots()
    values = [gain.speed_up for gain in measured]
    errors = [
        [max(0.0, gain.speed_up - gain.low) for gain in measured],
        [max(0.0, gain.high - gain.speed_up) for gain in measured],
    ]
    axes.barh(
        [gain.lever.name for gain in measured],
        values,
        xerr=errors,
        capsize=3,
        color=[COLOURS[g.verdict] for g in measured],
    )
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set(
        xlabel="speed-up over the settings as they are (blue: faster, grey: noise, orange: slower)",
        xlim=(0, 1.12 * max(max(gain.high, gain.speed_up) for gain in measured)),
    )
    for row, gain in enumerate(measured):
        axes.annotate(
            f"{gain.speed_up:.2f}",
            (max(gain.high, gain.speed_up), row),
            (4, 0),
            textcoords="offset points",
            va="center",
        )
    FigureCanvasAgg(figure).print_png(path)  # type: ignore[arg-type]
    return True
