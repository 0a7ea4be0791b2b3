"""Lines for the log file alone."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.log_file import log_to_file


@pytest.fixture
def handler(tmp_path: Path) -> Iterator[logging.FileHandler]:
    """A log file on the root logger, as Hydra sets it up."""
    found = logging.FileHandler(tmp_path / "train.log", encoding="utf-8")
    found.setFormatter(logging.Formatter("[%(name)s] %(levelname)s %(message)s"))
    logging.getLogger().addHandler(found)
    yield found
    logging.getLogger().removeHandler(found)
    found.close()


def content(handler: logging.FileHandler) -> str:
    path = Path(handler.baseFilename)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_a_line_goes_to_the_file_and_not_to_the_screen(
    handler: logging.FileHandler, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = logging.StreamHandler()
    logging.getLogger().addHandler(screen)
    try:
        log_to_file("epoch 1/2 · 50 % done", source="hotloop.somewhere")
    finally:
        logging.getLogger().removeHandler(screen)
    assert content(handler) == "[hotloop.somewhere] INFO epoch 1/2 · 50 % done\n"
    assert capsys.readouterr() == ("", "")


def test_a_file_that_is_not_opened_is_not_made(tmp_path: Path) -> None:
    late = logging.FileHandler(tmp_path / "late.log", delay=True)
    logging.getLogger().addHandler(late)
    try:
        log_to_file("a line")
    finally:
        logging.getLogger().removeHandler(late)
    assert not (tmp_path / "late.log").exists()
