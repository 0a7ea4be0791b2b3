"""The cache: decoded once, the same numbers as without it, shared, keyed by content, rebuilt when damaged."""

import json
import multiprocessing
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop.data.images import cache as module
from hotloop.data.images import decoding, room
from hotloop.data.images.cache import Cache, PictureArray, choose, in_memory, name_of, on_disk
from hotloop.data.images.decoding import ReadPictures
from hotloop.data.images.form import PixelForm
from hotloop.errors import UserError
from tests.data.images.made_pictures import MadeReader, MadeSource

FORM = PixelForm((8, 6))
KINDS: dict[str, Callable[..., Cache]] = {"disk": on_disk, "ram": in_memory}


def made(count: int = 20, **options: Any) -> MadeReader:
    return MadeSource(count, **options).reader


def folder_of(cache: Cache) -> Path:
    assert cache.path is not None
    return cache.path


@pytest.mark.parametrize("workers", [1, 2, None])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_holds_what_reading_gives(
    tmp_path: Path, kind: str, bits: int, workers: int | None, monkeypatch: Any
) -> None:
    monkeypatch.setattr(decoding, "_CHUNK_BYTES", 7 * FORM.bytes)
    reader, form = made(bits=bits), PixelForm((8, 6), bits=bits, channels="grey")
    numbers = np.array([3, 19, 0, 3])
    found = KINDS[kind](reader, form, tmp_path, workers=workers)
    wanted = ReadPictures(reader, form).gather(numbers)
    got = found.pictures.gather(numbers)
    assert (got.dtype, got.shape) == (wanted.dtype, (4, *form.shape))
    assert np.array_equal(got, wanted)
    assert got.flags.writeable and got.flags.c_contiguous
    assert (len(found.pictures), found.broken, found.bytes) == (20, {}, 20 * form.bytes)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_the_cache_is_not_decoded_again(tmp_path: Path, kind: str) -> None:
    first = KINDS[kind](made(), FORM, tmp_path)
    again = made()
    second = KINDS[kind](again, FORM, tmp_path)
    assert not again.reads
    assert np.array_equal(first.pictures.gather(np.arange(20)), second.pictures.gather(np.arange(20)))


def test_the_name_follows_content_and_form() -> None:
    name = name_of(made(), FORM)
    assert name_of(made(), PixelForm((8, 6))) == name
    assert name_of(made(content="b"), FORM) != name
    for other in ({"size": (6, 8)}, {"fit": "crop"}, {"channels": "grey"}, {"alpha": "black"}):
        assert name_of(made(), PixelForm(**{"size": (8, 6), **other})) != name


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_pictures_that_cannot_be_read_are_known_now_and_later(tmp_path: Path, kind: str, workers: int) -> None:
    for _ in range(2):
        found = KINDS[kind](made(bad=(2, 17)), FORM, tmp_path, workers=workers)
        assert found.broken == {2: "it is truncated", 17: "it is truncated"}
        assert not found.pictures.gather(np.array([2])).any()
        assert found.pictures.gather(np.array([3])).any()


def damage_bytes(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[200:] = bytes(len(content) - 200)
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "pixels.npy").write_bytes((folder / "pixels.npy").read_bytes()[:-5]),
        lambda folder: (folder / "pixels.npy").write_bytes(b"x" * (folder / "pixels.npy").stat().st_size),
        lambda folder: damage_bytes(folder / "pixels.npy"),  # what a machine that went down leaves
        lambda folder: damage_bytes(folder / "sums.npy"),
        lambda folder: (folder / "pixels.npy").unlink(),
        lambda folder: (folder / "meta.json").write_text("{"),
        lambda folder: (folder / "meta.json").unlink(),
    ],
)
def test_a_damaged_cache_is_built_again(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    first = on_disk(made(), FORM, tmp_path)
    before = first.pictures.gather(np.arange(20))
    folder = folder_of(first)
    del first
    damage(folder)
    again = on_disk(made(), FORM, tmp_path)
    assert np.array_equal(again.pictures.gather(np.arange(20)), before)
    assert "building it again" in caplog.text


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write", full)
    with pytest.raises(UserError, match=r"no space left while preparing the pictures.*data\.cache_dir"):
        on_disk(made(), FORM, tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_for_which_there_is_no_room_are_told_before_they_are_decoded(
    tmp_path: Path, kind: str, monkeypatch: Any
) -> None:
    needed = 20 * PixelForm((100, 200)).bytes
    for name in ("free_disk", "free_memory"):
        monkeypatch.setattr(module, name, lambda *_: needed // 4)
    reader = made()
    with pytest.raises(UserError, match=rf"data\.cache={kind}: the pictures take 1.2 MB, but 300 kB are free") as told:
        KINDS[kind](reader, PixelForm((100, 200)), tmp_path)
    assert "data.size=[47,94] would fit" in str(told.value) and "data.cache=none" in str(told.value)
    assert not reader.reads


@pytest.mark.parametrize(
    ("disk", "memory", "chosen"), [(2.1, 0, "disk"), (1.9, 4.1, "ram"), (1.9, 3.9, "none"), (0, 0, "none")]
)
def test_auto_follows_what_is_free(
    tmp_path: Path, disk: float, memory: float, chosen: str, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    needed = 20 * FORM.bytes
    monkeypatch.setattr(module, "free_disk", lambda _: disk * needed)
    monkeypatch.setattr(module, "free_memory", lambda: memory * needed)
    assert choose(made(), FORM, tmp_path) == chosen
    assert (f"data.cache=auto → {chosen}" in caplog.text) == (chosen != "disk")
    if chosen != "disk":
        monkeypatch.undo()
        on_disk(made(), FORM, tmp_path)
        monkeypatch.setattr(module, "free_disk", lambda _: 0)
        assert choose(made(), FORM, tmp_path) == "disk"  # it is there already


def test_free_room_is_read_from_the_machine(tmp_path: Path) -> None:
    assert room.free_memory() > 1 << 20
    assert room.free_disk(tmp_path / "not" / "there") == pytest.approx(room.free_disk(tmp_path), rel=0.1)
    assert room.free_disk(Path("n" * 300)) == 0
    assert [room.size_text(size) for size in (0, 999, 1500, 12_345, 2_000_000, 1.23e9)] == [
        "0 bytes", "999 bytes", "1.5 kB", "12 kB", "2.0 MB", "1.2 GB",
    ]  # fmt: skip


@pytest.mark.parametrize("where", ["/dev/null/x", "n" * 300])
def test_a_folder_that_cannot_be_is_told_but_memory_needs_none(where: str) -> None:
    with pytest.raises(UserError, match=r"cannot make the folder data\.cache_dir="):
        on_disk(made(), FORM, Path(where))
    assert len(in_memory(made(), FORM, Path(where)).pictures) == 20


@pytest.mark.parametrize("kind", KINDS)
def test_the_array_cannot_be_written_to_and_travels_as_a_path(tmp_path: Path, kind: str) -> None:
    found = KINDS[kind](made(2000), FORM, tmp_path)
    packed = pickle.dumps(found.pictures)
    assert len(packed) < 400
    other = pickle.loads(packed)
    assert np.array_equal(other.gather(np.arange(9)), found.pictures.gather(np.arange(9)))
    with pytest.raises(ValueError, match="read-only"):
        found.pictures._array[0] = 0


def _build(kind: str, folder: Path, barrier: Any, told: Any) -> None:
    """In a process of its own: what it decoded, and the sum of what it sees."""
    reader = made()
    barrier.wait(timeout=60)
    kept = KINDS[kind](reader, FORM, folder, workers=1)
    told.put((len(reader.reads), int(kept.pictures.gather(np.arange(20)).sum())))
    barrier.wait(timeout=60)


def build_in_processes(kind: str, folder: Path, count: int) -> list[tuple[int, int]]:
    context = multiprocessing.get_context("fork")
    barrier, told = context.Barrier(count), context.SimpleQueue()
    processes = [context.Process(target=_build, args=(kind, folder, barrier, told)) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert all(process.exitcode == 0 for process in processes)
    return [told.get() for _ in processes]


forks = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs fork and files in memory")


@forks
@pytest.mark.parametrize("kind", KINDS)
def test_several_processes_at_once_decode_once(tmp_path: Path, kind: str) -> None:
    told = build_in_processes(kind, tmp_path, 3)
    assert sorted(reads for reads, _ in told) == [0, 0, 20]
    assert {total for _, total in told} == {int(ReadPictures(made(), FORM).gather(np.arange(20)).sum())}


@forks
def test_memory_of_a_process_that_has_ended_is_not_looked_for(tmp_path: Path) -> None:
    build_in_processes("ram", tmp_path, 1)
    (note,) = tmp_path.glob("*.ram")
    again = made()
    assert len(in_memory(again, FORM, tmp_path, workers=1).pictures) == 20
    assert len(again.reads) == 20
    # The number of that process may be another's now.
    content = json.loads(note.read_text())
    with open(tmp_path / "other", "wb") as other:
        note.write_text(json.dumps({**content, "path": f"/proc/{os.getpid()}/fd/{other.fileno()}"}))
        more = made()
        in_memory(more, FORM, tmp_path, workers=1)
    assert len(more.reads) == 20


@forks
def test_memory_is_shared_with_forked_processes(tmp_path: Path) -> None:
    kept = in_memory(made(), FORM, tmp_path)
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        total = pool.apply(_sum, (kept.pictures,))
    assert total == int(kept.pictures.gather(np.arange(20)).sum())


def _sum(pictures: PictureArray) -> int:
    return int(pictures.gather(np.arange(20)).sum())


def test_more_processes_help_only_where_it_takes_long(tmp_path: Path, monkeypatch: Any) -> None:
    used = []

    def loader(chunks: Any, todo: Any, *, workers: int) -> Any:
        used.append((len(todo), workers))
        return (chunks[numbers] for numbers in todo)

    monkeypatch.setattr(decoding, "Loader", loader)
    monkeypatch.setattr(decoding, "cores", lambda: 4)
    monkeypatch.setattr(decoding, "_CHUNK_BYTES", 5 * FORM.bytes)
    on_disk(made(), FORM, tmp_path / "quick")
    assert not used
    monkeypatch.setattr(decoding, "_SERIAL_SECONDS", 0.0)
    kept = on_disk(made(), FORM, tmp_path / "long")
    assert used == [(3, 3)]  # the first of four chunks was the measure
    assert np.array_equal(kept.pictures.gather(np.arange(20)), ReadPictures(made(), FORM).gather(np.arange(20)))
    on_disk(made(), FORM, tmp_path / "asked", workers=2)
    assert used[1:] == [(4, 2)]
    on_disk(made(), FORM, tmp_path / "alone", workers=1)
    assert len(used) == 2


def test_an_empty_set_has_an_empty_cache(tmp_path: Path) -> None:
    assert len(on_disk(made(0), FORM, tmp_path).pictures) == 0
    assert len(on_disk(made(0), FORM, tmp_path).pictures) == 0
