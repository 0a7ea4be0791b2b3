"""Small bitext for the text tests."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

WriteSplit = Callable[..., Path]


@pytest.fixture
def write_split(tmp_path: Path) -> WriteSplit:
    """Writes `<stem>.fr` and `<stem>.en` with these lines into a folder, which it returns."""

    def write(stem: str, source: Sequence[str], target: Sequence[str], folder: str = "corpus") -> Path:
        where = tmp_path / folder
        where.mkdir(exist_ok=True)
        for language, lines in (("fr", source), ("en", target)):
            text = "".join(line + "\n" for line in lines)
            (where / f"{stem}.{language}").write_bytes(text.encode("utf-8"))
        return where

    return write
