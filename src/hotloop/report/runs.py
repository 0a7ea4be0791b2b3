"""Finding runs and reading what they left: report.json, and the settings that Hydra kept beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.callbacks.json_file import as_json
from hotloop.errors import UserError
from hotloop.report.names import distinct_names

REPORT = "report.json"
FIGURES = (
    "epoch", "steps", "samples", "tokens", "seconds", "data_wait_s", "validation_s", "checkpoint_s",
    "samples_per_s", "tokens_per_s", "train_loss", "val_loss", "padding_share", "peak_rss_mb", "peak_gpu_mb",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        name: the part of its path that tells it from the others.
        folder: of report.json.
        report: what report.json holds; NaN and infinities are None.
        overrides: what was typed to start it; None where Hydra left no note.
        settings: its whole configuration, dotted keys; None where Hydra left none.
    """

    name: str
    folder: Path
    report: dict[str, Any]
    overrides: list[str] | None = None
    settings: dict[str, Any] | None = None

    @property
    def epochs(self) -> list[dict[str, Any]]:
        return self.report["epochs"]


def read_runs(places: Iterable[Path]) -> list[Run]:
    """The runs in these places, in the order of the places, each run once.

    Args:
        places: run folders, report.json files, or folders above run folders, whose runs are sorted by path.

    Raises:
        UserError: nothing there, or a file that is no report of a training run.
    """
    found = {file.resolve(): file for place in places for file in report_files(place)}
    names = distinct_names([file.parent if file.name == REPORT else file for file in found])
    return [
        Run(name, file.parent, read_report(file), read_overrides(file.parent), read_settings(file.parent))
        for name, file in zip(names, found.values(), strict=True)
    ]


def report_files(place: Path) -> list[Path]:
    """The report of a run, or those of all runs below a folder."""
    place = place.expanduser()
    if place.is_file():
        return [place]
    if not place.exists():
        raise UserError(f"{place}: no such file or folder; name a run folder, such as runs/NAME/DATE_TIME")
    if (place / REPORT).is_file():
        return [place / REPORT]
    files = sorted((file for file in place.rglob(REPORT) if file.is_file()), key=_by_number)
    if not files:
        raise UserError(f"{place}: no {REPORT} in or below it; name a run folder, such as runs/NAME/DATE_TIME")
    return files


def _by_number(path: Path) -> list[Any]:
    """A key that sorts job 10 of a sweep behind job 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", str(path))]


def read_report(file: Path) -> dict[str, Any]:
    """What a report.json holds, its types checked; NaN and infinities become None.

    Raises:
        UserError: it cannot be read, or it is no report of a training run.
    """
    try:
        content = as_json(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is no JSON ({error}): name the {REPORT} of a run") from error
    if not isinstance(content, dict) or not {"task", "status", "epochs"} <= set(content):
        raise UserError(f"{file} is no report of a training run: expected task, status and epochs in it")
    _check(file, content)
    return content


def _check(file: Path, content: Mapping[str, Any]) -> None:
    for key in ("task", "status"):
        _expect(isinstance(content[key], str), file, key, content[key], "a text")
    _expect(isinstance(content["epochs"], list), file, "epochs", content["epochs"], "a list")
    for index, epoch in enumerate(content["epochs"]):
        _expect(isinstance(epoch, dict), file, f"epochs[{index}]", epoch, "a mapping")
        for key in FIGURES:
            _expect(_is_figure(epoch.get(key)), file, f"epochs[{index}].{key}", epoch.get(key), "a number or null")
    metrics = content.get("metrics") or {}
    _expect(isinstance(metrics, dict), file, "metrics", metrics, "a mapping")
    for key, value in metrics.items():
        _expect(_is_figure(value), file, f"metrics.{key}", value, "a number or null")
    monitor = content.get("monitor") or {"name": ""}
    _expect(isinstance(monitor, dict) and isinstance(monitor.get("name"), str), file, "monitor", monitor, "a name")
    _expect(_is_figure(monitor.get("best")), file, "monitor.best", monitor.get("best"), "a number or null")


def _is_figure(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or (number and abs(value) < 1e300)


def _expect(right: bool, file: Path, key: str, value: Any, expected: str) -> None:
    if not right:
        raise UserError(f"{file} is no report of a training run: {key}={str(value)[:60]!r}, expected {expected}")


def read_overrides(folder: Path) -> list[str] | None:
    """What was typed to start the run, from .hydra/overrides.yaml; None without that file."""
    content = _hydra_file(folder / ".hydra" / "overrides.yaml", list)
    return None if content is None else [str(item) for item in content]


def read_settings(folder: Path) -> dict[str, Any] | None:
    """The configuration in .hydra/config.yaml, dotted keys, leaves only; None without that file."""
    from hotloop.config import flat_items

    content = _hydra_file(folder / ".hydra" / "config.yaml", dict)
    if content is None:
        return None
    return {key: value for key, value in flat_items(content) if not isinstance(value, dict) or not value}


def _hydra_file(file: Path, kind: type) -> Any:
    import yaml

    if not file.is_file():
        return None
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror or error}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(
            f"{file} is no YAML: {' '.join(str(error).split())[:120]}; remove it to compare without"
        ) from error
    if not isinstance(content, kind):
        raise UserError(f"{file}: expected a {kind.__name__} as Hydra writes it; remove it to compare without")
    return content


def differing(tables: Sequence[Mapping[str, Any] | None]) -> dict[str, list[Any]]:
    """The keys that have not the same value everywhere, with the value of each; None where one lacks it."""
    keys = dict.fromkeys(key for table in tables for key in table or ())
    values = {key: [None if table is None else table.get(key) for table in tables] for key in keys}
    return {key: found for key, found in values.items() if any(value != found[0] for value in found)}
