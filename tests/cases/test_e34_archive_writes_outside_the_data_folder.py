"""E34: an archive or a download from elsewhere must not reach anything outside the data folder."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from hotloop.data.archive import extract
from hotloop.data.text.europarl import Europarl
from hotloop.errors import UserError

TEXT = {"europarl-v7.fr-en.fr": b"Bonjour.\n", "europarl-v7.fr-en.en": b"Hello.\n", "ok.txt": b"ok"}


def as_tar(evil: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in TEXT.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        # A declared size without the bytes: only the header is written.
        tar.fileobj.write(evil.tobuf())
        tar.fileobj.write(bytes(1024))
    return buffer.getvalue()


def as_zip(evil: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in TEXT.items():
            file.writestr(name, content)
        info = zipfile.ZipInfo(evil.name)
        info.external_attr = (0o120777 if evil.issym() else 0o100644) << 16
        file.writestr(info, evil.linkname.encode())
        file.getinfo(evil.name).file_size = evil.size or len(evil.linkname)  # goes into the directory at the end
    return buffer.getvalue()


def member(name: str, *, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = tarfile.SYMTYPE if link else tarfile.REGTYPE
    info.linkname, info.size = link, size
    return info


EVIL = {
    "climbing": member("../../evil.txt"),
    "absolute": member("/tmp/hotloop-e34-evil.txt"),
    "link": member("link", link="/etc"),
    "huge": member("huge.bin", size=50 * 10**9),
}


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("make", [as_tar, as_zip])
@pytest.mark.parametrize("kind", EVIL)
def test_e34_archive_is_refused_by_the_name_of_its_member(tmp_path, make, kind):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "bad.archive").write_bytes(make(EVIL[kind]))
    before = everything(tmp_path)
    with pytest.raises(UserError, match=EVIL[kind].name):
        extract(tmp_path / "bad.archive", inner / "target", max_bytes=10**9)
    assert everything(tmp_path) == before
    assert not Path("/tmp/hotloop-e34-evil.txt").exists()


@pytest.mark.parametrize("make", [as_tar, as_zip])
@pytest.mark.parametrize("kind", ["climbing", "absolute"])
def test_e34_europarl_refuses_such_an_archive_although_it_holds_the_right_files(tmp_path, make, kind):
    folder = tmp_path / "a" / "europarl"
    folder.mkdir(parents=True)
    (folder / "fr-en.tgz").write_bytes(make(EVIL[kind]))
    with pytest.raises(UserError, match=EVIL[kind].name):
        Europarl(dir=str(folder), download=False).files()
    kept = [name for name in everything(tmp_path) if "/." not in name]
    assert kept == ["a", "a/europarl", "a/europarl/fr-en.tgz", "a/europarl/fr-en.tgz.sha256"]


def test_e34_wrong_checksum_is_an_error_before_unpacking(tmp_path, monkeypatch):
    def unpack(*_args, **_options):
        raise AssertionError("unpacked before the checksum was held against the file")

    monkeypatch.setattr("hotloop.data.text.europarl.extract", unpack)
    (tmp_path / "fr-en.tgz").write_bytes(as_tar(EVIL["climbing"]))
    with pytest.raises(UserError, match=f"fr-en.tgz.*{'0' * 64} is expected"):
        Europarl(dir=str(tmp_path), download=False, sha256="0" * 64).files()
