"""Compare runs: python -m hotloop.report RUN [RUN …]"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotloop.errors import UserError

DESCRIPTION = """\
Compares training runs: speed, where the time went, memory and what was reached. Prints tables and writes
report.md, report.png and comparison.json."""

NARROWEST = 10  # characters of a line of a name in a narrow terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0, or 1 with one line on standard error for a user's mistake; 130 after Ctrl-C."""
    options = parser().parse_args(arguments)
    try:
        compare(options.runs, output=options.output)
    except UserError as error:
        print(f"hotloop.report: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the tables, `head` say, has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m hotloop.report", description=DESCRIPTION)
    found.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        type=Path,
        help="a run folder, its report.json, or a folder above runs, such as runs/NAME or multirun/DATE_TIME; "
        "speeds are told as ratios to the first",
    )
    found.add_argument(
        "--output",
        metavar="FOLDER",
        type=Path,
        help="where to write (default: the run folder of a single run, else comparison)",
    )
    return found


def compare(places: Sequence[Path], *, output: Path | None = None) -> list[dict[str, Any]]:
    """Print the tables of the runs and write report.md, report.png and comparison.json; returns the rows.

    Args:
        places: run folders, report.json files, or folders above run folders.
        output: folder to write to; None = that of a single run, else `comparison` in the current folder.

    Raises:
        UserError: no run there, a file that is no report, or nothing can be written to `output`.
    """
    from hotloop.callbacks.json_file import write_json
    from hotloop.report.compare import markdown, rows
    from hotloop.report.names import readable
    from hotloop.report.plots import draw
    from hotloop.report.runs import read_runs

    runs = read_runs(places)
    found = rows(runs)
    folder = (output or (runs[0].folder if len(runs) == 1 else Path("comparison"))).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        picture = draw(runs, found, folder / "report.png")
        text = markdown(runs, found, picture=picture.name)
        (folder / "report.md").write_text(text, encoding="utf-8")
        write_json(folder / "comparison.json", {"runs": found})
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}; choose another --output") from error
    show(found)
    print(f"written to {readable(str(folder))}: report.md, report.png, comparison.json")
    return found


def show(found: Sequence[dict[str, Any]]) -> None:
    """Print the tables; names fold in a narrow terminal, figures are never cut."""
    from rich.console import Console
    from rich.measure import Measurement

    from hotloop.report.compare import failures, grids, rich_table

    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=1000)  # a file or a pipe
    given = console.width
    for grid in grids(found):
        if len(grid.heads) == 1:
            continue
        needed = Measurement.get(console, console.options.update(max_width=10_000), rich_table(grid)).maximum
        longest = max(len(cells[0]) for cells in grid.cells)
        name_width = min(longest, max(NARROWEST, longest - (needed - given)))
        console.width = max(given, needed - longest + name_width)
        console.print(rich_table(grid, name_width=max(name_width, len("run"))))
    for line in failures(found):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
