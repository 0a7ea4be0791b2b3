"""A source written to files: what data=images reads is what the source gives."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hotloop.data.images.folder import ImageFolder
from hotloop.data.images.gauges import Gauges
from hotloop.data.images.source import SPLITS, TargetTable
from hotloop.data.images.writing import write_folder
from hotloop.errors import UserError


def test_pictures_and_table_are_those_of_the_source(tmp_path: Path) -> None:
    source = Gauges(count=3, valid=1, test=1, size=24)
    path = write_folder(source, tmp_path / "new" / "folder")
    table, reader = source.open()
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 and list(rows[0]) == ["image", "split", "reading"]
    for number, row in enumerate(rows):
        assert np.array_equal(np.asarray(Image.open(path.parent / row["image"])), reader.read(number))
        assert float(row["reading"]) == table.targets[number, 0]  # to the last bit
        assert row["split"] == SPLITS[table.split[number]]  # type: ignore[index]


def test_a_folder_of_pictures_reads_it_back(tmp_path: Path) -> None:
    source = Gauges(count=3, valid=1, test=1, size=24)
    write_folder(source, tmp_path)
    (table, reader), (again, files) = source.open(), ImageFolder(dir=str(tmp_path), split_column="split").open()
    assert again.names == table.names and np.array_equal(again.targets, table.targets)
    assert np.array_equal(again.split, table.split)  # type: ignore[arg-type]
    assert all(np.array_equal(files.read(number), reader.read(number)) for number in range(5))


class Plain:
    """Two grey pictures without splits."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def open(self) -> tuple[TargetTable, "Plain"]:
        return TargetTable(names=("a", "b"), targets=np.array([[1.0, 2.0], [3.5, -4.0]])), self

    def read(self, number: int, at_least: tuple[int, int] | None = None) -> np.ndarray:
        return np.full((4, 6, 3), 50 * number, np.uint8)

    def __len__(self) -> int:
        return 2

    def name(self, number: int) -> str:
        return str(number)

    def fingerprint(self) -> str:
        return "plain"


def test_a_source_without_splits_gets_no_split_column(tmp_path: Path) -> None:
    path = write_folder(Plain(8), tmp_path, ending="jpg")
    assert path.read_text(encoding="utf-8") == "image,a,b\n000000.jpg,1.0,2.0\n000001.jpg,3.5,-4.0\n"
    with Image.open(tmp_path / "000001.jpg") as picture:
        assert picture.format == "JPEG" and picture.size == (6, 4)


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="16 bits"):
        write_folder(Plain(16), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write pictures to"):
        write_folder(Plain(8), tmp_path / "file")
