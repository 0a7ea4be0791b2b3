"""E01: the two sides of a split differ in length: told with both files and both counts, never truncated."""

from pathlib import Path

import pytest

from hotloop.data.text.bitext import BitextDataModule
from hotloop.data.text.corpora import BitextFolder
from hotloop.errors import UserError


@pytest.mark.parametrize("end", ["", "\n\n"])
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_e01_unequal_line_counts_stop_before_training(tmp_path: Path, split: str, end: str) -> None:
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.fr").write_text("".join(f"le chat {n}\n" for n in range(5)))
        short = 4 if name == split else 5
        text = "".join(f"the cat {n}\n" for n in range(short))
        (tmp_path / f"{name}.en").write_text(text + (end if name == split else ""))
    data = BitextDataModule(corpus=BitextFolder(dir=tmp_path), cache_dir=tmp_path / "cache")
    count = 4 + len(end)
    with pytest.raises(UserError) as told:
        data.prepare_data()
    for part in (f"{split}.fr has 5 lines", f"{split}.en has {count}"):
        assert part in str(told.value)
    assert not list((tmp_path / "cache").glob("*/meta.json"))
