"""Tables and text of Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence


def markdown_table(heads: Sequence[str], cells: Sequence[Sequence[str]], *, figures: Collection[int] = ()) -> str:
    """A table; the columns whose numbers are in `figures` end alike, the others begin alike."""
    rule = ["---:" if column in figures else "---" for column in range(len(heads))]
    lines = [[plain(cell) for cell in line] for line in (heads, *cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def plain(text: str) -> str:
    """`text` with what Markdown would read as marks written out."""
    # an underscore within a word is none
    return re.sub(r"[\\`*|<\[]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", " ".join(text.split()))
