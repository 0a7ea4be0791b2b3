import bz2
import errno
import gzip
import io
import lzma
import os
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from hotloop.data import archive as module
from hotloop.data.archive import extract
from hotloop.errors import UserError

FILES = {"a.txt": b"one\n", "sub/deep/b.txt": random.Random(1).randbytes(3_000_000), "empty": b""}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".tar.gz": gzip.compress,
    ".tar.bz2": bz2.compress,
    ".tar.xz": lzma.compress,
    ".tar.zst": zstandard.ZstdCompressor().compress,
}


def tar_of(*members: tuple[dict[str, Any], bytes]) -> bytes:
    """A tar of (header fields, content) pairs; `size` is the content's unless given."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for header, content in members:
            info = tarfile.TarInfo()
            info.size = len(content)
            for key, value in header.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(*members: tuple[dict[str, Any], bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for header, content in members:
            info = zipfile.ZipInfo(header["name"])
            info.external_attr = header.get("mode", 0o100644) << 16
            file.writestr(info, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with links and hidden ones."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if not p.is_dir()}


def refused(tmp_path: Path, data: bytes, *, match: str, max_bytes: int = 50_000, **options: Any) -> None:
    """Unpacking has to fail with this message and must leave nothing at all."""
    inner = tmp_path / "x" / "y"
    inner.mkdir(parents=True)
    path = tmp_path / "bad.archive"
    path.write_bytes(data)
    with pytest.raises(UserError, match=match):
        extract(path, inner / "target", max_bytes=max_bytes, **options)
    assert [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*"))] == ["bad.archive", "x", "x/y"]


@pytest.mark.parametrize("kind", [*COMPRESS, ".zip"])
def test_every_kind_is_unpacked_whatever_its_name(tmp_path, kind):
    members = [({"name": name}, content) for name, content in FILES.items()]
    path = tmp_path / "archive.bin"
    path.write_bytes(zip_of(*members) if kind == ".zip" else COMPRESS[kind](tar_of(*members)))
    target = tmp_path / "made" / "here"
    found = extract(path, target, max_bytes=10_000_000)
    assert tree(target) == FILES
    assert found == [target / "a.txt", target / "empty", target / "sub" / "deep" / "b.txt"]
    assert [p.name for p in target.parent.iterdir()] == ["here"]


def test_only_wanted_members_are_written(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(tar_of(*(({"name": f"./{name}"}, content) for name, content in FILES.items())))
    found = extract(path, tmp_path / "t", members=lambda name: name == "a.txt", max_bytes=10_000_000)
    assert found == [tmp_path / "t" / "a.txt"]
    assert tree(tmp_path / "t") == {"a.txt": b"one\n"}


def test_nothing_wanted_says_what_is_there(tmp_path):
    data = tar_of(({"name": "a.txt"}, b""), ({"name": "b/c.txt"}, b""))
    refused(tmp_path, data, members=lambda _: False, match=r"none of the files wanted; it holds: a.txt, b/c.txt")


def test_folders_and_a_leading_dot_are_usual(tmp_path):
    path = tmp_path / "a.tar"
    folder = {"type": tarfile.DIRTYPE, "mode": 0o000}
    path.write_bytes(
        tar_of(
            ({"name": "./", **folder}, b""),
            ({"name": "./sub", **folder}, b""),
            ({"name": "./sub/a", "mode": 0o4777}, b"x"),
            ({"name": "./sub/", **folder}, b""),
        )
    )
    extract(path, tmp_path / "t", max_bytes=50_000)
    assert tree(tmp_path / "t") == {"sub/a": b"x"}
    assert (tmp_path / "t" / "sub" / "a").stat().st_mode & 0o7111 == 0, "no set-uid, no executable bits"


def test_empty_target_is_used_and_a_full_one_left_alone(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(tar_of(({"name": "a.txt"}, b"new")))
    (tmp_path / "t").mkdir()
    extract(path, tmp_path / "t", max_bytes=50_000)
    (tmp_path / "t" / "a.txt").write_bytes(b"mine")
    with pytest.raises(UserError, match="exists already"):
        extract(path, tmp_path / "t", max_bytes=50_000)
    with pytest.raises(UserError, match="exists already"):
        extract(path, path, max_bytes=50_000)
    assert tree(tmp_path) == {"a.tar": path.read_bytes(), "t/a.txt": b"mine"}


NAMES = ["../evil.txt", "../../evil.txt", "/tmp/evil.txt", "//evil", "a/../../evil.txt", "a/..", "C:/evil", "C:evil"]


@pytest.mark.parametrize("name", [*NAMES, "..\\evil.txt", "a\\..\\..\\evil.txt", "C:\\evil.txt"])
@pytest.mark.parametrize("make", [tar_of, zip_of])
@pytest.mark.parametrize("wanted", [None, lambda name: name == "ok.txt"])
def test_names_that_lead_out_are_refused_even_when_not_wanted(tmp_path, name, make, wanted):
    data = make(({"name": "ok.txt"}, b"ok"), ({"name": name}, b"evil"))
    refused(tmp_path, data, members=wanted, match="outside the folder: refused")


@pytest.mark.parametrize("link", ["/etc", "../../x", "ok.txt", "sub/..", "."])
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_in_a_tar_are_refused(tmp_path, link, kind):
    data = tar_of(({"name": "ok.txt"}, b"ok"), ({"name": "link", "type": kind, "linkname": link}, b""))
    refused(tmp_path, data, match="'link' is a link to '.*': refused")


def test_writing_through_a_link_is_refused_when_the_link_itself_is_not_wanted(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    path = tmp_path / "a.tar"
    link = {"name": "sub", "type": tarfile.SYMTYPE, "linkname": str(outside)}
    path.write_bytes(tar_of((link, b""), ({"name": "sub/file"}, b"x")))
    extract(path, tmp_path / "t", members=lambda name: name == "sub/file", max_bytes=50_000)
    assert tree(tmp_path / "t") == {"sub/file": b"x"}
    assert not (tmp_path / "t" / "sub").is_symlink()
    assert tree(outside) == {}


def test_links_in_a_zip_are_refused(tmp_path):
    refused(tmp_path, zip_of(({"name": "link", "mode": 0o120777}, b"/etc")), match="'link' is a link: refused")


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_refused(tmp_path, kind):
    refused(tmp_path, tar_of(({"name": "dev", "type": kind}, b"")), match="'dev' is a device or pipe: refused")


def test_device_in_a_zip_is_refused(tmp_path):
    refused(tmp_path, zip_of(({"name": "dev", "mode": 0o020666}, b"")), match="'dev' is a device or pipe: refused")


@pytest.mark.parametrize("names", [("a", "a"), ("a", "./a"), ("a//b", "a/b")])
@pytest.mark.parametrize("make", [tar_of, zip_of])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path, names, make):
    data = make(*(({"name": name}, b"x") for name in names))
    refused(tmp_path, data, match=f"member '{names[1]}' occurs twice")


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a")])
def test_a_file_where_a_folder_is_needed_is_refused(tmp_path, names):
    data = tar_of(*(({"name": name}, b"x") for name in names))
    refused(tmp_path, data, match=f"member '{names[1]}' collides")


def test_one_member_of_a_declared_size_over_the_limit_is_refused(tmp_path):
    info = tarfile.TarInfo("huge.txt")
    info.size = 50 * 10**9
    refused(tmp_path, info.tobuf() + bytes(1024), match=r"'huge.txt' declares 50,000,000,000 bytes.*limit is 50,000")


def test_members_are_added_up(tmp_path):
    members = [({"name": f"{n}.txt"}, bytes(7000)) for n in range(10)]
    refused(tmp_path, zip_of(*members), match=r"'7.txt' declares 7,000 bytes.*56,000; the limit is 50,000")


def test_too_many_members_are_refused(tmp_path):
    data = tar_of(*(({"name": str(n)}, b"") for n in range(11)))
    refused(tmp_path, data, max_members=10, match="more than 10 members, from '10' on")


@pytest.mark.parametrize("kind", COMPRESS)
def test_tar_bomb_behind_an_unwanted_member_is_refused(tmp_path, kind):
    data = tar_of(({"name": "bomb"}, bytes(5_000_000)), ({"name": "ok.txt"}, b"ok"))
    refused(
        tmp_path,
        COMPRESS[kind](data),
        members=lambda name: name == "ok.txt",
        max_bytes=1_000_000,
        match="member 'bomb' takes the decompressed data over the limit of 1,000,000",
    )


def test_endless_zeros_after_the_end_are_refused(tmp_path):
    data = tar_of(({"name": "ok.txt"}, b"ok")) + bytes(5_000_000)
    refused(tmp_path, gzip.compress(data), max_bytes=1_000_000, match="over the limit of 1,000,000")


def test_sparse_file_counts_with_its_real_size(tmp_path):
    sparse = {"name": "sparse", "pax_headers": {"GNU.sparse.size": "5000000", "GNU.sparse.map": "0,1"}}
    refused(tmp_path, tar_of((sparse, b"x")), max_bytes=1_000_000, match="'sparse' .* 1,000,000")


def test_zip_whose_real_size_is_more_than_declared_is_refused(tmp_path):
    data = bytearray(zip_of(({"name": "a"}, bytes(100_000))))
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (10).to_bytes(4, "little")
    refused(tmp_path, bytes(data), match="bad.archive is damaged")


def test_zip_whose_real_size_is_less_than_declared_is_refused(tmp_path):
    data = bytearray(zip_of(({"name": "a"}, bytes(100))))
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (1000).to_bytes(4, "little")
    refused(tmp_path, bytes(data), match="bad.archive is damaged: member 'a' has 100 bytes, not 1,000")


def test_encrypted_zip_is_refused(tmp_path):
    data = bytearray(zip_of(({"name": "a"}, b"x")))
    for place in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1
    refused(tmp_path, bytes(data), match="'a' is encrypted: refused")


@pytest.mark.parametrize("kind", [*COMPRESS, ".zip"])
@pytest.mark.parametrize("keep", [0.3, 0.8])
@pytest.mark.parametrize("wanted", [None, lambda name: name.startswith("a")])
def test_archive_cut_off_is_refused(tmp_path, kind, keep, wanted):
    members = [({"name": f"{letter}.txt"}, random.Random(1).randbytes(20_000)) for letter in "abc"]
    whole = zip_of(*members) if kind == ".zip" else COMPRESS[kind](tar_of(*members))
    refused(tmp_path, whole[: int(keep * len(whole))], members=wanted, max_bytes=10**6, match="bad.archive is damaged")


@pytest.mark.parametrize("kind", [".tar.gz", ".tar.bz2", ".tar.xz", ".zip"])
def test_flipped_byte_is_noticed(tmp_path, kind):
    members = [({"name": "a.txt"}, random.Random(1).randbytes(20_000))]
    data = bytearray(zip_of(*members) if kind == ".zip" else COMPRESS[kind](tar_of(*members)))
    data[len(data) // 2] ^= 0xFF
    refused(tmp_path, bytes(data), max_bytes=10**6, match="bad.archive is damaged")


def test_gzip_with_a_wrong_sum_is_noticed(tmp_path):
    data = bytearray(gzip.compress(tar_of(({"name": "a.txt"}, b"x"))))
    data[-8] ^= 0xFF
    refused(tmp_path, bytes(data), max_bytes=10**6, match="damaged.*CRC")


def test_damaged_header_in_the_middle_is_not_the_end(tmp_path):
    data = bytearray(tar_of(({"name": "a.txt"}, b"x"), ({"name": "b.txt"}, b"y")))
    data[1024] ^= 0xFF  # the first block is a.txt's header, the second its content
    refused(tmp_path, bytes(data), max_bytes=10**6, match="unreadable data after member 'a.txt'")


def test_header_cut_in_the_middle_is_not_the_end(tmp_path):
    data = tar_of(({"name": "a.txt"}, b"x"), ({"name": "b.txt"}, b"y"))[:1200]
    refused(tmp_path, data, max_bytes=10**6, match="mid-block after member 'a.txt'")


@pytest.mark.parametrize("data", [b"", b"<html>404</html>", bytes(3), b"PK\x03\x04", b"\x1f\x8b", b"BZh9"])
def test_what_is_no_archive_is_refused(tmp_path, data):
    refused(tmp_path, data, match=r"bad.archive is damaged or not a tar or zip archive: .+")


def test_missing_archive_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"cannot read the archive .*no\.tgz"):
        extract(tmp_path / "no.tgz", tmp_path / "t", max_bytes=1)
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module._Budget, "write", full)
    refused(tmp_path, tar_of(({"name": "a.txt"}, b"x")), max_bytes=10**6, match="cannot unpack .*No space left")
