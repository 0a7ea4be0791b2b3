"""Tables of targets in every dialect; complaints name file, line, column and value."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from hotloop.data.images.tables import Table, find_targets, read_table
from hotloop.errors import UserError


def written(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "image,target\na.png,1\nb c.png,-2.5\n"),
        ("t.csv", "\ufeffimage,target\r\na.png,1\r\nb c.png,-2.5"),
        ("t.csv", "image, target\na.png, 1\n\n  \nb c.png, -2.5\n\n"),
        ("t.csv", '"image","target"\n"a.png","1"\n"b c.png","-2.5"\n'),
        ("t.csv", '"image", "target"\n"a.png", "1"\n"b c.png", "-2.5"\n'),
        ("t.csv", "\n\r\nimage;target\na.png;1\nb c.png;-2.5\n"),
        ("t.csv", "image,target\ra.png,1\rb c.png,-2.5\r"),
        ("t.csv", "image;target\na.png;1\nb c.png;-2,5\n"),
        ("t.csv", "image;target\na.png;1\nb c.png;-2.5\n"),
        ("t.csv", "sep=;\nimage;target\na.png;1\nb c.png;-2,5\n"),
        ("t.csv", "image,target,\na.png,1,\nb c.png,\u22122.5,\n"),
        ("t.tsv", "image\ttarget\na.png\t1\nb c.png\t-25e-1\n"),
        ("t.csv", "image|target\na.png|1.\nb c.png|-2.5\n"),
        ("t.txt", 'image target\na.png 1\n"b c.png" -2.5\n'),
        ("t.jsonl", '{"image": "a.png", "target": 1}\n\n{"image": "b c.png", "target": "-2.5"}\n'),
    ],
)
def test_dialects(tmp_path: Path, name: str, content: str) -> None:
    table = read_table(written(tmp_path, content, name))
    assert table.texts("image") == ["a.png", "b c.png"]
    assert table.numbers("target").tolist() == [1, -2.5]
    assert find_targets(table, None, ["image"]) == ["target"]


def test_unicode_text_of_spreadsheets(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "image\ttarget\né.png\t4\n".encode("utf-16")))
    assert (table.texts("image"), table.numbers("target").tolist()) == (["é.png"], [4])


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, 'image,note,target\n\na.png,"two\nlines",1\nb.png,,x\n'))
    assert table.rows.tolist() == [3, 5]
    with pytest.raises(UserError, match=r"t\.csv, line 5, column 'target': 'x' is no finite number"):
        table.numbers("target")
    with pytest.raises(UserError, match="line 5, column 'note': empty"):
        table.texts("note")


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    columns = {
        "file": ["a.png", "b.png"],
        "angle": arrow.array([1, None], arrow.int32()),
        "bytes": [b"1", b"2"],
        "nested": [{"path": "x"}, {"path": "y"}],
        "split": arrow.array(["train", "test"]).dictionary_encode(),
    }
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(arrow.table(columns), path)
    table = read_table(path)
    assert list(table.columns) == ["file", "angle", "split"]
    assert table.texts("split") == ["train", "test"]
    with pytest.raises(UserError, match=r"t\.parquet, row 2, column 'angle': empty"):
        table.numbers("angle")
    path.write_bytes(b"PAR1 no more PAR1")
    with pytest.raises(UserError, match=r"t\.parquet is damaged"):
        read_table(path)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"t\.parquet: .*pip install pyarrow"):
        read_table(written(tmp_path, b"PAR1", "t.parquet"))


@pytest.mark.parametrize(
    "value", ["nan", "", " ", "inf", "-Infinity", "abc", "1e400", "1_000", "0x10", "1,5", "1.234,5", "12 px", "½", "²"]
)
def test_cells_that_are_no_numbers(tmp_path: Path, value: str) -> None:
    table = read_table(written(tmp_path, f'image,target\na.png,1\nb.png,"{value}"\n'))
    with pytest.raises(UserError, match=r"t\.csv, line 3, column 'target': ") as told:
        table.numbers("target")
    assert repr(value) in str(told.value) if value.strip() else "empty" in str(told.value)


@pytest.mark.parametrize("value", [None, True, [1], {"a": 1}, float("nan"), "x", 10**400])
def test_json_values_that_are_no_numbers(tmp_path: Path, value: Any) -> None:
    table = read_table(written(tmp_path, json.dumps({"image": "a.png", "target": value}) + "\n", "t.jsonl"))
    with pytest.raises(UserError, match=r"t\.jsonl, line 1, column 'target'"):
        table.numbers("target")


def test_half_a_character_is_no_text(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, '{"image": "\\ud83d.png", "target": 1}\n', "t.jsonl"))
    with pytest.raises(UserError, match="line 1, column 'image': holds half of a surrogate pair"):
        table.texts("image")


def test_a_missing_key_is_an_empty_cell(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, '{"image": "a"}\n{"image": "b", "target": 1}\n', "t.jsonl"))
    with pytest.raises(UserError, match="line 1, column 'target': empty"):
        table.numbers("target")


def test_decimal_commas_and_points_do_not_mix(tmp_path: Path) -> None:
    mixed = read_table(written(tmp_path, "image;a;b\nx;1,5;7\ny;2.5;1,234\n"))
    with pytest.raises(UserError, match=r"line 2, column 'a': '1,5': decimal points and decimal commas"):
        mixed.numbers("a")
    assert mixed.numbers("b").tolist() == [7, 1.234]
    with pytest.raises(UserError, match="write it with a decimal point"):
        read_table(written(tmp_path, "image\ta\nx\t1,234\n", "t.tsv")).numbers("a")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "\n\n", "is empty"),
        ("t.csv", "image,target\n", "has no rows"),
        ("t.csv", "image,target\na.png\n", r"line 2: 1 cells, but 2 columns"),
        ("t.csv", "image,target\na,b.png,1\n", r"line 2: 3 cells, but 2 columns"),
        ("t.csv", 'image,target\na.png,1\n"b.png,2\n', r"line 3: not CSV"),
        ("t.csv", "image,target,target\na,1,2\n", "several columns are called 'target'"),
        ("t.csv", "a.png,0.5\nb.png,1\n", r"must name the columns, it holds 'a.png'.*image_column=1"),
        ("t.csv", "image,0.5\nb.png,1\n", "must name the columns, it holds '0.5'"),
        ("t.csv", b"image,target\n\xe9.png,1\n", r"line 2: not UTF-8 \(byte 0xe9\)"),
        ("t.csv", b"PK\x03\x04", "is no text"),
        ("t.xlsx", b"PK\x03\x04", "is a spreadsheet: save it as CSV"),
        ("t.json", "[]", r"one JSON object a line"),
        ("t.jsonl", "[1]\n", r"line 1: a JSON object a line was expected, found list"),
        ("t.jsonl", '{"a": 1}\n{"a"\n', "line 2: not a JSON object"),
    ],
)
def test_tables_that_are_none(tmp_path: Path, name: str, content: str | bytes, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        read_table(written(tmp_path, content, name))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_columns_by_number_for_tables_without_names(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "a.png,3,x\nb.png,4,y\n"), header=False)
    assert table.rows.tolist() == [1, 2]
    assert table.column(2, "key") == "column_2"
    assert find_targets(table, None, ["column_1"]) == ["column_2"]
    with pytest.raises(UserError, match=r"no column 'column_4' \(key\)"):
        table.column(4, "key")


def test_columns_by_name_in_any_case(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "Image,Angle,angle,speed\na,1,2,3\n"))
    assert table.column("image", "key") == "Image"
    assert table.column("angle", "key") == "angle"
    with pytest.raises(UserError, match="key=ANGLE may be 'Angle' or 'angle'"):
        table.column("ANGLE", "key")
    with pytest.raises(UserError, match=r"no column 'sped' \(key\); it has 'Image'.*did you mean speed"):
        table.column("sped", "key")


@pytest.mark.parametrize(
    ("content", "wanted", "expected"),
    [
        ("image,speed,target\na,1,2\n", None, ["target"]),
        ("image,speed,Target\na,1,2\n", None, ["Target"]),
        ("image,note,angle\na,x,2\n", None, ["angle"]),
        (",image,angle\n0,a,2\n", None, ["angle"]),
        ("Unnamed: 0,image,angle\n0,a,2\n", None, ["angle"]),
        ("image,angle\na,1\nb,nan\nc,2\n", None, ["angle"]),
        ("image,speed,angle\na,1,2\n", ["angle", "speed"], ["angle", "speed"]),
        ("image,speed,angle\na,1,2\n", None, "which column holds the target, 'speed', 'angle'.*target_columns"),
        ("image,label\na,cat\n", None, "None of 'image', 'label' holds numbers"),
        ("image,speed\na,1\n", ["speed", "SPEED"], "names 'speed', which is taken"),
        ("image,speed\na,1\n", ["image"], "names 'image', which is taken"),
    ],
)
def test_which_columns_are_targets(
    tmp_path: Path, content: str, wanted: list[str | int] | None, expected: list[str] | str
) -> None:
    table: Table = read_table(written(tmp_path, content))
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            find_targets(table, wanted, ["image"])
    else:
        assert find_targets(table, wanted, ["image"]) == expected


def test_a_key_that_comes_twice_in_an_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"image": "a.png", "target": 1}\n{"image": "b.png", "target": 1, "target": 9}\n')
    with pytest.raises(UserError, match=r"line 2: .*the key 'target' comes twice"):
        read_table(tmp_path / "t.jsonl")


def test_columns_of_bytes_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"image": [b"x"], "target": [1.0]}), tmp_path / "t.parquet")
    assert list(read_table(tmp_path / "t.parquet").columns) == ["target"]
    assert "the columns image hold bytes" in caplog.text
