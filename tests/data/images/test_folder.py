"""Folders of pictures with their targets: found as a table, folder names or file names say."""

import json
import logging
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hotloop.data.images.files import PictureFiles
from hotloop.data.images.folder import ImageFolder
from hotloop.data.images.source import TargetTable
from hotloop.errors import UserError


def pictures(folder: Path, *names: str) -> None:
    """Each with its number as its grey."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((3, 4, 3), number, np.uint8)).save(folder / name, format="PNG")


def opened(folder: Path, rows: str | None = None, **options: Any) -> tuple[TargetTable, PictureFiles]:
    """Of a table with the columns image and target, unless `rows` brings its own header."""
    if rows is not None:
        header = "" if rows.startswith(("image", "#")) else "image,target\n"
        (folder / "targets.csv").write_text(header + rows.removeprefix("#"), encoding="utf-8")
    return ImageFolder(dir=folder, **options).open()


def shown(reader: PictureFiles) -> list[int]:
    return [int(reader.read(number)[0, 0, 0]) for number in range(len(reader))]


# ---- tables --------------------------------------------------------------------------------------------


def test_rows_become_targets_and_pictures_in_their_order(tmp_path: Path) -> None:
    pictures(tmp_path, "a.png", "images/b.png", "images/a.png")
    table, reader = opened(tmp_path, "b.png,2.5\na.png,-1\nb.png,3\nimages/a.png,0\n")
    assert table.names == ("target",)
    assert table.targets.tolist() == [[2.5], [-1], [3], [0]]
    assert table.targets.dtype == np.float64
    assert table.split is None
    assert shown(reader) == [1, 0, 1, 2]
    assert reader.place(1) == "a.png (targets.csv, line 3)"
    assert table.groups is not None  # the same picture twice stays in one split
    assert table.groups.tolist() == [0, 1, 0, 2]


def test_several_targets_and_groups(tmp_path: Path) -> None:
    pictures(tmp_path, "a.png", "b.png", "c.png")
    rows = "image,video,angle,speed\na.png,v2,1,10\nb.png,v1,2,20\nc.png,v2,3,30\n"
    table, _ = opened(tmp_path, rows, target_columns=["speed", "angle"], group_column="video")
    assert table.names == ("speed", "angle")
    assert table.targets.tolist() == [[10, 1], [20, 2], [30, 3]]
    assert table.groups is not None
    assert table.groups.tolist() == [0, 1, 0]
    assert opened(tmp_path, rows, target_columns="angle")[0].targets.tolist() == [[1], [2], [3]]


def test_names_are_found_as_they_were_meant(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pictures(tmp_path, "A.PNG", "images/" + unicodedata.normalize("NFD", "été.png"), "sub/c d.png", "002.png", "e.png")
    (tmp_path / "targets.csv").write_text(
        f"image,target\na.png,0\n{unicodedata.normalize('NFC', 'Été')},1\nsub\\c d.png,2\n002,3\n{tmp_path}/e.png,4\n"
    )
    _, reader = opened(tmp_path)
    assert shown(reader) == [0, 1, 2, 3, 4]
    assert reader.name(4) == "e.png"
    assert not reader.missing()
    assert "names spelled otherwise than their files: 3, as 'a.png' for A.PNG" in caplog.text


def test_paths_of_another_machine_and_bare_names(tmp_path: Path) -> None:
    pictures(
        tmp_path, "IMG/center_1.jpg", "IMG/center_2.JPG", "images/deep/x.png", "cam1/f.png", "cam2/f.png", "deep/y.png"
    )
    rows = [
        r"C:\Users\me\run\IMG\center_1.jpg", r"C:\Users\me\run\IMG\center_2.jpg", "/home/me/deep/x.png",
        "/home/me/cam1/f.png", "/home/me/cam2/f.png", "y.png",
    ]  # fmt: skip
    _, reader = opened(tmp_path, "".join(f"{name},1\n" for name in rows))
    assert shown(reader) == [0, 1, 2, 3, 4, 5]


def test_nothing_is_guessed(tmp_path: Path) -> None:
    pictures(tmp_path, "cam1/f.png", "cam2/f.png", "a.png", "A.PNG", "b.png", "b.jpg", "cam1/only.png", "z.png")
    rows = ["z.png", "/x/cam3/f.png", "a.PNG", "b", "cam3/only.png", "/x/1/only.png", "/x/2/only.png", "Z.png"]
    _, reader = opened(tmp_path, "".join(f"{name},1\n" for name in rows))
    told = reader.missing()
    assert shown(reader.subset(np.array([0, 5]))) == [7, 6]
    assert list(told) == [1, 2, 3, 4, 6, 7]
    assert told[1] == "/x/cam3/f.png (targets.csv, line 3): no such file; it may be cam1/f.png or cam2/f.png"
    assert told[2].endswith("no such file; it may be A.PNG or a.png")
    assert "it may be b.jpg or b.png" in told[3]
    assert told[4] == "cam3/only.png (targets.csv, line 6): no such file"  # another folder's file is another picture
    assert told[6].endswith("cam1/only.png is like it, but is named elsewhere")
    assert told[7].endswith("z.png is like it, but is named elsewhere")
    assert list(reader.broken(decode=False)) == list(told)


@pytest.mark.parametrize(
    "name", ["/", "C:\\", "~/", "file:///", ".", "..", "images", "x" * 400, "https://x/a.png", "a\0.png"]
)
def test_cells_that_can_be_no_file(tmp_path: Path, name: str) -> None:
    pictures(tmp_path, "images/a.png")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"image": n, "target": 1}) + "\n" for n in ("a.png", name)))
    _, reader = opened(tmp_path, targets="t.jsonl")
    assert list(reader.missing()) == list(reader.broken()) == [1]
    assert "no such file" in reader.missing()[1]


def test_no_picture_at_all_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none of the 2 pictures is there, as 'x.png' \(targets.csv, line 2\)"):
        opened(tmp_path, "x.png,1\ny.png,2\n")


def test_splits_of_a_column(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = [f"{letter}.png" for letter in "abcdefg"]
    pictures(tmp_path, *names)
    words = ("train", "Val", "validation", "dev", "valid", "TEST", "training")
    rows = "image,target,split\n" + "".join(f"{n},1,{w}\n" for n, w in zip(names, words, strict=True))
    table, _ = opened(tmp_path, rows, split_column="split")
    assert table.split is not None
    assert table.split.tolist() == [0, 1, 1, 1, 1, 2, 0]
    assert opened(tmp_path)[0].split is None
    assert "column 'split' is not used; data.source.split_column=split" in caplog.text
    with pytest.raises(UserError, match=r"line 3, column 'split': 'holdout' is none of train"):
        opened(tmp_path, rows.replace("Val", "holdout"), split_column="split")


def test_splits_of_several_tables(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pictures(tmp_path, "a.png", "b.png", "c.png")
    (tmp_path / "v.csv").write_text("file,speed,angle\nb.png,7,8\n")
    (tmp_path / "t.jsonl").write_text('{"image": "a.png", "angle": 5}\n')
    rows = "image,angle\na.png,1\nc.png,2\n"
    table, reader = opened(tmp_path, rows, valid_targets="v.csv", test_targets=str(tmp_path / "t.jsonl"))
    assert table.split is not None
    assert (table.split.tolist(), table.targets.tolist()) == ([0, 0, 1, 2], [[1], [2], [8], [5]])
    assert [reader.place(n) for n in (2, 3)] == ["b.png (v.csv, line 2)", "a.png (t.jsonl, line 1)"]
    assert "pictures in more than one split: 1, as a.png" in caplog.text
    with pytest.raises(UserError, match=r"no table .*gone.csv \(data.source.test_targets\); it holds t.jsonl"):
        opened(tmp_path, test_targets="gone.csv")
    with pytest.raises(UserError, match="exclude each other"):
        opened(tmp_path, valid_targets="v.csv", split_column="s")


def test_tables_without_names_of_columns(tmp_path: Path) -> None:
    pictures(tmp_path, "IMG/c1.png", "IMG/c2.png")
    table, reader = opened(tmp_path, "#IMG/c1.png, l1.png, 0.5, 30\nIMG/c2.png, l2.png, -0.5, 30\n",
                           image_column=1, target_columns=3)  # fmt: skip
    assert (table.names, table.targets.tolist(), shown(reader)) == (("column_3",), [[0.5], [-0.5]], [0, 1])
    with pytest.raises(UserError, match="which column holds the target, 'column_3', 'column_4'"):
        opened(tmp_path, image_column=1)
    with pytest.raises(UserError, match=r"all others as numbers, or all as names; got \[1, 'angle'\]"):
        opened(tmp_path, image_column=1, target_columns="angle")


# ---- folder and file names -----------------------------------------------------------------------------


def test_folder_names_are_targets(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pictures(tmp_path, "30/f10.png", "30/f9.PNG", "x/-2.5/b.png", ".hidden/z.png", "__MACOSX/30/f9.PNG", "30/._f9.png")
    (tmp_path / "30" / "folder.jpg").mkdir()
    (tmp_path / "30" / "loop").symlink_to(tmp_path)
    for name in ("Thumbs.db", ".DS_Store", "desktop.ini", "30/notes.txt"):
        (tmp_path / name).write_text("x")
    table, reader = opened(tmp_path, targets="folder")
    assert [reader.name(n) for n in range(3)] == ["30/f9.PNG", "30/f10.png", "x/-2.5/b.png"]  # 9 comes before 10
    assert (len(reader), table.targets.tolist()) == (3, [[30], [30], [-2.5]])
    assert reader.place(0) == "30/f9.PNG"
    assert "3 files that are no pictures are left alone (1 .db, 1 .ini, 1 .txt)" in caplog.text
    pictures(tmp_path, "cats/a.png")
    with pytest.raises(UserError, match=r"cats/a\.png, target: 'cats' is no finite number"):
        opened(tmp_path, targets="folder")


def test_file_names_hold_targets(tmp_path: Path) -> None:
    pictures(tmp_path, "v1_001_85.png", "v1_002_90.png", "v2_001_-3.5.png")
    table, reader = opened(tmp_path, targets="name", pattern=r"_([-\d.]+)\.png$")
    assert (table.names, table.targets.tolist()) == (("target",), [[85], [90], [-3.5]])
    assert shown(reader) == [0, 1, 2]
    named = r"(?P<video>v\d)_(?P<frame>\d+)_(?P<angle>[-\d.]+)\.png"
    table, _ = opened(tmp_path, targets="name", pattern=named, target_columns="angle", group_column="video")
    assert (table.names, table.targets.tolist()) == (("angle",), [[85], [90], [-3.5]])
    assert table.groups is not None
    assert table.groups.tolist() == [0, 0, 1]
    both, _ = opened(tmp_path, targets="name", pattern=r"(\d+)_([-\d.]+)\.png", target_columns=["target_1", "target_2"])
    assert both.targets.tolist() == [[1, 85], [2, 90], [1, -3.5]]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"targets": "name"}, "pattern and data.targets=name go together"),
        ({"pattern": "x"}, "go together"),
        ({"targets": "name", "pattern": "("}, r"pattern=\(: no regular expression"),
        ({"targets": "name", "pattern": "a"}, "has no group"),
        ({"targets": "name", "pattern": r"a(\d)"}, r"1 of 2 pictures do not fit .*as b\.png"),
        ({"targets": "name", "pattern": r"(\w)\.png"}, r"b\.png, target: 'b' is no"),
        ({"targets": "folder", "valid_targets": "v.csv"}, "has no tables"),
        ({"targets": "gone.csv"}, r"no table .*gone\.csv \(data\.targets\); it holds no table; data\.targets=folder"),
        ({"target_columns": []}, "names no column"),
        ({"image_column": 0}, "counted from 1"),
        ({"targets": "folder"}, r"a1\.png is in no folder named by a number"),
        ({"targets": "name", "pattern": r"(\d|b)", "target_columns": "x"}, r"no column 'x'"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    pictures(tmp_path, "a1.png", "b.png")
    with pytest.raises(UserError, match=told):
        ImageFolder(dir=tmp_path, **options).open()


def test_folders_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for name, told in (("gone", "does not exist"), ("file", "is no folder")):
        with pytest.raises(UserError, match=rf"data\.dir=.*{name} {told}"):
            ImageFolder(dir=tmp_path / name).open()
    with pytest.raises(UserError, match="holds no pictures"):
        ImageFolder(dir=tmp_path / "empty", targets="folder").open()


def test_a_table_without_names_of_pictures(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"which column holds the file names.*'face', 'target'.*image_column"):
        opened(tmp_path, "#face,target\na.png,1\n")


def test_one_picture_with_two_targets_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    Image.new("RGB", (4, 4)).save(tmp_path / "b.png")
    (tmp_path / "targets.csv").write_text("image,target\na.png,1\nb.png,2\na.png,3\n")
    ImageFolder(dir=tmp_path).open()
    assert "a.png has different targets in targets.csv, line 2 and in targets.csv, line 4" in caplog.text
    caplog.clear()
    (tmp_path / "targets.csv").write_text("image,target\na.png,1\nb.png,2\na.png,1\n")
    ImageFolder(dir=tmp_path).open()
    assert "different targets" not in caplog.text
