"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with real data (Europarl, Multi30k, awkward files); it lies outside the project."""
    folder = Path(os.environ.get("HOTLOOP_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set HOTLOOP_SHARED to a folder that has data/")
    return folder
