"""Picture files by number: found again, checked once, known by their content."""

import logging
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hotloop.data.images import inspecting
from hotloop.data.images.files import PictureFiles, Rows
from hotloop.errors import UserError


def picture(path: Path, value: int = 0, *, deep: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((6, 8), value * 257, np.uint16) if deep else np.full((6, 8, 3), value, np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four pictures, the last of them cut off."""
    for number, name in enumerate(("a.png", "sub/b é.png", "c.png", "cut.png")):
        picture(tmp_path / "pictures" / name, number)
    cut = tmp_path / "pictures" / "cut.png"
    cut.write_bytes(cut.read_bytes()[:45])
    return tmp_path / "pictures"


NAMES = ("a.png", "sub/b é.png", "c.png", "cut.png")


def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    """What is found out anew from now on: (HEADER, CONTENT or PIXELS, names)."""
    calls: list[tuple[int, list[str]]] = []
    real = inspecting._looked_at

    def noted(paths: list[str], *, what: int, **options: Any) -> Any:
        calls.append((what, [os.path.basename(path) for path in paths]))
        return real(paths, what=what, **options)

    monkeypatch.setattr(inspecting, "_looked_at", noted)
    return calls


def test_pictures_by_number(folder: Path) -> None:
    files = PictureFiles(folder, ["c.png", "sub/b é.png", "c.png", str(folder / "a.png")])
    assert (len(files), files.bits) == (4, 8)
    assert [int(files.read(number)[0, 0, 0]) for number in range(4)] == [2, 1, 2, 0]
    assert files.name(1) == "sub/b é.png"
    assert files.read(0, at_least=(2, 2)).shape == (6, 8, 3)


def test_one_picture_of_16_bits_makes_all_16(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    picture(folder / "deep.png", 9, deep=True)
    files = PictureFiles(folder, ["a.png", "c.png", "deep.png"])
    assert files.bits == 16
    assert [(files.read(n).dtype, int(files.read(n)[0, 0, 0])) for n in (1, 2)] == [
        (np.uint16, 2 * 257), (np.uint16, 9 * 257),
    ]  # fmt: skip
    assert "1 of 3 pictures have 16 bits" in caplog.text
    shallow = PictureFiles(folder, ["deep.png"], bits=8)
    assert (shallow.bits, shallow.read(0).dtype, int(shallow.read(0)[0, 0, 0])) == (8, np.uint8, 9)
    assert files.subset(np.array([0])).bits == 16


def test_what_cannot_be_read_is_named_with_its_row(folder: Path) -> None:
    rows = Rows(("t.csv",), np.zeros(5, np.uint8), np.arange(2, 7), ("line",))
    files = PictureFiles(folder, [*NAMES, "gone.png"], rows=rows, missing={4: "not found"})
    assert files.place(1) == "sub/b é.png (t.csv, line 3)"
    broken = files.broken()
    assert list(broken) == [3, 4]
    assert broken[3].startswith("cut.png (t.csv, line 5): ")
    assert broken[4] == "gone.png (t.csv, line 6): not found"
    assert files.missing() == {4: broken[4]}
    for number, told in broken.items():
        with pytest.raises(UserError) as caught:
            files.read(number)
        assert str(caught.value) == told


def test_headers_alone_do_not_find_what_is_cut_off(folder: Path) -> None:
    (folder / "page.png").write_text("<html></html>")
    files = PictureFiles(folder, [*NAMES, "page.png"])
    assert list(files.broken(decode=False)) == [4]
    assert list(files.broken()) == [3, 4]


def test_a_file_that_comes_twice_is_checked_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = looked_at(monkeypatch)
    files = PictureFiles(folder, ["cut.png", "a.png", "cut.png"], bits=8)
    assert list(files.broken()) == [0, 2]
    assert calls == [(inspecting.PIXELS, ["cut.png", "a.png"])]


def test_subsets_are_renumbered(folder: Path) -> None:
    rows = Rows(("t.csv",), np.zeros(5, np.uint8), np.arange(2, 7), ("line",))
    files = PictureFiles(folder, [*NAMES, "gone.png"], rows=rows, missing={4: "not found"})
    some = files.subset(np.array([4, 2, 3]))
    assert [some.place(n) for n in range(3)] == ["gone.png (t.csv, line 6)", "c.png (t.csv, line 4)",
                                                 "cut.png (t.csv, line 5)"]  # fmt: skip
    assert list(some.broken()) == [0, 2]
    assert int(some.read(1)[0, 0, 0]) == 2
    assert some.fingerprint() == PictureFiles(folder, ["gone.png", "c.png", "cut.png"]).fingerprint()
    assert files.subset(np.array([2])).broken() == {}


def test_the_fingerprint_follows_content_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    def of(place: Path = folder, names: tuple[str, ...] = NAMES, **options: Any) -> str:
        return PictureFiles(place, names, **options).fingerprint()

    first = of()
    os.utime(folder / "a.png", (1, 1))
    folder.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "c.png").rename(tmp_path / "elsewhere" / "renamed.png")
    elsewhere = tmp_path / "elsewhere"
    names = ("a.png", "sub/b é.png", "renamed.png", "cut.png")
    assert of(elsewhere, names) == first
    assert of(elsewhere, names[::-1]) != first
    assert of(elsewhere, names, alpha="black") != first
    assert of(elsewhere, names, bits=16) != first
    assert of(elsewhere, names[:3]) != first
    picture(elsewhere / "a.png", 77)
    assert of(elsewhere, names) != first


def test_what_was_found_out_is_remembered(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    first = PictureFiles(folder, NAMES, cache_dir=cache)
    told, mark = first.broken(), first.fingerprint()
    calls = looked_at(monkeypatch)
    again = PictureFiles(folder, NAMES, cache_dir=cache)
    assert (again.broken(), again.fingerprint(), again.bits) == (told, mark, 8)
    assert not calls

    picture(folder / "new.png", 5)
    more = PictureFiles(folder, (*NAMES, "new.png"), cache_dir=cache)
    assert list(more.broken()) == [3]
    assert [names for _, names in calls] == [["new.png"], ["new.png"]]
    calls.clear()
    assert PictureFiles(folder, NAMES, cache_dir=cache).broken() == told  # and the new one is not forgotten
    assert PictureFiles(folder, ("new.png",), cache_dir=cache).broken() == {}
    assert not calls
    picture(folder / "newer.png", 6)
    assert PictureFiles(folder, ("newer.png",), cache_dir=cache).broken() == {}
    calls.clear()
    assert PictureFiles(folder, NAMES, cache_dir=cache).broken() == told
    assert not calls


def test_touched_files_are_hashed_and_changed_ones_checked(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    PictureFiles(folder, NAMES, cache_dir=cache, bits=8).broken()
    os.utime(folder / "a.png", (5, 5))
    os.utime(folder / "cut.png", (5, 5))
    picture(folder / "c.png", 200)
    (folder / "c.png").write_bytes((folder / "c.png").read_bytes()[:45])
    calls = looked_at(monkeypatch)
    assert list(PictureFiles(folder, NAMES, cache_dir=cache, bits=8).broken()) == [2, 3]
    assert calls == [(inspecting.CONTENT, ["a.png", "c.png", "cut.png"]), (inspecting.PIXELS, ["c.png"])]
    calls.clear()
    assert list(PictureFiles(folder, NAMES, cache_dir=cache, bits=8).broken()) == [2, 3]
    assert not calls


def test_a_mended_file_is_whole_again(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert list(PictureFiles(folder, NAMES, cache_dir=cache).broken()) == [3]
    picture(folder / "cut.png", 3)
    for _ in range(2):
        assert PictureFiles(folder, NAMES, cache_dir=cache).broken() == {}
    (folder / "cut.png").unlink()
    assert list(PictureFiles(folder, NAMES, cache_dir=cache).broken()) == [3]


def test_a_damaged_memory_is_written_anew(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    PictureFiles(folder, NAMES, cache_dir=cache).broken()
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    assert list(PictureFiles(folder, NAMES, cache_dir=cache).broken()) == [3]
    assert "damaged" in caplog.text
    calls = looked_at(monkeypatch)
    assert list(PictureFiles(folder, NAMES, cache_dir=cache).broken()) == [3]
    assert not calls


def test_a_cache_folder_that_cannot_be_written_costs_only_time(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    assert list(PictureFiles(folder, NAMES, cache_dir=tmp_path / "file" / "cache").broken()) == [3]
    assert "cannot write" in caplog.text


def test_several_processes_find_the_same(folder: Path) -> None:
    alone = PictureFiles(folder, NAMES).broken(workers=1)
    assert PictureFiles(folder, NAMES).broken(workers=2) == alone
    assert list(alone) == [3]


def test_workers_get_arrays_and_not_an_object_a_picture(tmp_path: Path) -> None:
    few, many = (
        PictureFiles(tmp_path, [f"images/{number:07d}.jpg" for number in range(count)], bits=8)
        for count in (1_000, 11_000)
    )
    loaded = pickle.loads(pickle.dumps(many))
    assert loaded.name(10_999) == "images/0010999.jpg"
    held = [value for part in (many, many._inspector) for value in vars(part).values()]
    assert not [value for value in held if isinstance(value, (list, tuple, dict)) and len(value) > 10]
    assert (len(pickle.dumps(many)) - len(pickle.dumps(few))) / 10_000 < 150  # bytes a picture


@pytest.mark.parametrize(("options", "told"), [({"bits": 12}, "bits"), ({"alpha": "pink"}, "alpha")])
def test_options_that_are_none(folder: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=rf"data\.source\.{told}"):
        PictureFiles(folder, NAMES, **options)
