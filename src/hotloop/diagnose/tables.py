"""A diagnosis in words: what the screen and diagnosis.md show."""

from __future__ import annotations

from collections.abc import Callable

from hotloop.diagnose.advice import Advice
from hotloop.diagnose.breakdown import Breakdown
from hotloop.diagnose.findings import Finding
from hotloop.diagnose.levers import Gain, Untried

HEAD = ("override", "speed-up", "spread", "step", "{unit}/s", "verdict", "changes")

Rows = list[tuple[str, ...]]  # a head, and a row each

SHOWN = 5  # operators, modules and lines


def phase_rows(found: Breakdown) -> Rows:
    """Where a step goes."""
    rows: Rows = [("part of the step", "median", "middle half", "share")]
    for name, phase in found.phases.items():
        spread = f"{milliseconds(phase.lower_quartile)} – {milliseconds(phase.upper_quartile)} ms"
        rows.append((name, f"{milliseconds(phase.median)} ms", spread, f"{phase.share:.0%}"))
    return rows


def operator_rows(found: Breakdown) -> Rows:
    """The operators that take most of a step."""
    rows: Rows = [("operator", "part", "calls", "time", "share")]
    for each in found.operators[:SHOWN]:
        rows.append((each.name, each.phase, f"{each.calls:,}", f"{milliseconds(each.seconds)} ms", f"{each.share:.0%}"))
    return rows


def module_rows(found: Breakdown) -> Rows:
    """The modules that take most of the forward pass."""
    rows: Rows = [("module", "kind", "parameters", "calls", "output", "share of forward")]
    for each in sorted(found.modules, key=lambda module: -module.seconds)[:SHOWN]:
        rows.append(
            (
                each.name, each.kind, f"{each.parameters:,}", f"{each.calls:,}", f"{each.output_bytes / 1e6:,.1f} MB",
                f"{each.share:.0%}",
            )
        )  # fmt: skip
    return rows


def line_rows(found: Breakdown) -> Rows:
    """The source lines that were running most often."""
    rows: Rows = [("source line", "function", "share of looks")]
    return rows + [(each.place, each.function, f"{each.share:.0%}") for each in found.lines[:SHOWN]]


def milliseconds(seconds: float) -> str:
    """Three digits or the whole number."""
    value = 1000 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def breakdown_text(found: Breakdown, said: list[Finding]) -> str:
    """Where a step goes, and what the rules say of it."""
    parts = [
        f"a step takes {milliseconds(found.step_seconds)} ms, {found.launches_per_step:,} operator calls, "
        f"{found.parameters:,} parameters"
    ]
    parts += [columns(rows) for rows in (phase_rows(found), operator_rows(found), module_rows(found), line_rows(found))]
    return "\n\n".join(parts) + "\n\n" + findings_text(said)


def findings_text(said: list[Finding]) -> str:
    """The findings, one a line."""
    if not said:
        return "no rule found anything wrong with the step"
    return "findings\n" + "\n".join(f"  {each.message}{at(each)}" for each in said)


def at(finding: Finding) -> str:
    """Where a finding points to, if that is a line of source."""
    return f" ({finding.where})" if ":" in finding.where else ""


def columns(rows: Rows, *, left: tuple[int, ...] = (0, 1)) -> str:
    """Rows under each other; the columns of `left` and the last one begin, the others end alike."""
    last = len(rows[0]) - 1
    widths = [max(len(row[column]) for row in rows) for column in range(last)] + [0]
    lines = [
        "  ".join(
            f"{cell:<{width}}" if column in left else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(f"  {line.rstrip()}" for line in lines)


def gain_rows(gains: list[Gain | Untried], *, kind: str) -> Rows:
    """A head and a row a lever, the fastest first, those without a figure last."""
    unit = "target tokens" if kind == "text" else "pictures"
    measured = sorted((gain for gain in gains if isinstance(gain, Gain)), key=lambda gain: -gain.speed_up)
    rows: Rows = [tuple(name.format(unit=unit) for name in HEAD)]
    for gain in measured:
        rows.append(
            (
                gain.lever.name,
                f"{gain.speed_up:.2f} ×",
                f"{gain.low:.2f} – {gain.high:.2f}",
                f"{1000 * gain.step_s:,.0f} ms",
                f"{gain.units_per_s:,.0f}",
                gain.verdict,
                gain.lever.changes + losses(gain),
            )
        )
    untried = [gain for gain in gains if isinstance(gain, Untried)]
    rows += [(each.lever.name, "–", "–", "–", "–", "not tried", each.reason) for each in untried]
    return rows


def losses(gain: Gain) -> str:
    """How far the losses of equal steps lay apart, where that can be said."""
    difference = gain.loss_difference
    return "" if difference is None else f" (losses within {difference:.1g})"


def gains_table(gains: list[Gain | Untried], *, kind: str) -> str:
    """The levers in columns."""
    rows = gain_rows(gains, kind=kind)
    if len(rows) == 1:
        return "no override applies to these settings"
    return "overrides tried, each beside the settings as they are\n" + columns(rows, left=(0, 5))


def advice_lines(advice: Advice, command_of: Callable[[tuple[str, ...]], str]) -> list[tuple[str, str, str]]:
    """(what, command, what to expect) of each piece of advice."""
    lines = []
    for what, gain in (
        ("the same model, faster", advice.same_model),
        ("another model or other batches, faster still", advice.any_model),
    ):
        if gain is not None:
            expected = (
                f"{gain.speed_up:.2f} × as fast ({gain.low:.2f} – {gain.high:.2f} over {gain.rounds} rounds); "
                f"changes {gain.lever.changes}{losses(gain)}"
            )
            lines.append((what, command_of(gain.lever.overrides), expected))
    return lines


def advice_text(advice: Advice, command_of: Callable[[tuple[str, ...]], str]) -> str:
    """The commands to paste, with the gain of each."""
    lines = advice_lines(advice, command_of)
    if not lines:
        return "nothing that was tried is faster than these settings"
    return "\n".join(f"{what}: {expected}\n  {command}" for what, command, expected in lines)
