"""Unpack archives that strangers made: nothing leaves the folder or grows without limit; all or nothing."""

import bz2
import gzip
import io
import lzma
import os
import secrets
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from hotloop.errors import UserError

CHUNK = 1 << 20
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, NotImplementedError)


def extract(
    archive: Path,
    target: Path,
    *,
    members: Callable[[str], bool] | None = None,
    max_bytes: int,
    max_members: int = 1_000_000,
) -> list[Path]:
    """Unpack a tar (plain, gzip, bzip2, xz, zstandard) or zip archive into the new folder `target`.

    The kind is told from the content, not from the name. Everything is written to a hidden folder beside
    `target` that gets its name at the very end, so on any error `target` does not exist. A file gets the
    usual permissions of a new file; owner, mode and date in the archive are ignored.

    Every name and size is checked here: `tarfile`'s filter "data" is missing before Python 3.10.12 and 3.11.4
    and knows no size limit. Links are refused altogether, those inside the folder too: a chain of them can
    lead out of it although each alone does not (CVE-2025-4517).

    Args:
        archive: the archive.
        target: folder to make; it must not exist or must be empty.
        members: takes a member's name (`a/b.txt`) and says whether it is wanted; default all.
        max_bytes: most bytes of the unpacked archive, wanted or not, by declared and by real size.
        max_members: most entries.

    Returns:
        The files written, sorted.

    Raises:
        UserError: missing, damaged, encrypted or unknown archive; a member with an absolute path, `..`, a
            back-slash or a drive letter; two members with one name; a wanted member that is a link or a
            device; too much data; no wanted member at all; a full disk.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target} exists already: {archive} is unpacked into a new folder only")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = target.with_name(f".{target.name}.unpacking-{secrets.token_hex(6)}")
        work.mkdir()
    except OSError as error:
        raise UserError(f"cannot unpack {archive} into {target.parent}: {error}") from error
    try:
        budget = _Budget(archive, max_bytes, max_members)
        written = _unpack(archive, work, members, budget)
        if target.exists():
            target.rmdir()  # Windows does not rename onto a folder, not even onto an empty one
        os.replace(work, target)
    except _DAMAGE as error:
        raise UserError(f"{archive} is damaged or not a tar or zip archive: {error or type(error).__name__}") from error
    except OSError as error:
        raise UserError(f"cannot unpack {archive} into {target}: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return sorted(target.joinpath(*path.parts) for path in written)


@dataclass
class _Budget:
    """What an archive may still take; counts what is declared, what is decompressed and what is written."""

    archive: Path
    max_bytes: int
    max_members: int
    member: str = ""
    declared: int = 0
    written: int = 0
    members: int = 0

    def enter(self, member: str, size: int, wanted: bool) -> None:
        self.member = member
        self.members += 1
        self.declared += max(size, 0) if wanted else 0
        if self.members > self.max_members:
            raise UserError(f"{self.archive} has more than {self.max_members:,} members, from {member!r} on: refused")
        if self.declared > self.max_bytes:
            raise UserError(
                f"{self.archive}: member {member!r} declares {size:,} bytes, with those before it "
                f"{self.declared:,}; the limit is {self.max_bytes:,}: refused"
            )

    def check(self, size: int, what: str) -> None:
        if size > self.max_bytes:
            raise UserError(
                f"{self.archive}: member {self.member!r} takes the {what} data over the limit of "
                f"{self.max_bytes:,} bytes: refused"
            )

    def write(self, size: int) -> None:
        self.written += size
        self.check(self.written, "unpacked")


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    kind: str  # "file", "folder", or what it is instead
    open: Callable[[], IO[bytes] | None]


def _unpack(archive: Path, work: Path, wanted: Callable[[str], bool] | None, budget: _Budget) -> list[PurePosixPath]:
    seen: set[PurePosixPath] = set()
    written: list[PurePosixPath] = []
    for member in _members(archive, budget):
        path = _safe_path(archive, member.name)
        is_file = member.kind != "folder"
        take = wanted is None or (is_file and wanted(str(path)))
        budget.enter(member.name, member.size, take)
        if is_file and path in seen:
            raise UserError(f"{archive}: member {member.name!r} occurs twice: refused")
        if is_file:
            seen.add(path)
        if not take:
            continue
        if member.kind not in ("file", "folder"):
            raise UserError(f"{archive}: member {member.name!r} is {member.kind}: refused")
        place = work.joinpath(*path.parts)
        try:
            if is_file:
                _write(member, place, budget)
                written.append(path)
            else:
                place.mkdir(parents=True, exist_ok=True)
        except (
            FileExistsError,
            NotADirectoryError,
        ) as error:  # a file where a folder is needed, or a/A on macOS
            raise UserError(f"{archive}: member {member.name!r} collides with an earlier one: refused") from error
    if not written and wanted is not None:
        names = sorted(map(str, seen))
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        raise UserError(
            f"{archive} holds none of the files wanted; it holds: {', '.join(names[:10]) or 'nothing'}{more}"
        )
    return written


def _write(member: _Member, place: Path, budget: _Budget) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    source = member.open()
    if source is None:
        raise UserError(f"{budget.archive}: member {member.name!r} has no content: refused")
    total = 0
    with source, place.open("xb") as out:
        while chunk := source.read(CHUNK):
            budget.write(len(chunk))
            out.write(chunk)
            total += len(chunk)
    if total != member.size:
        raise UserError(f"{budget.archive} is damaged: member {member.name!r} has {total:,} bytes, not {member.size:,}")


def _safe_path(archive: Path, name: str) -> PurePosixPath:
    """The member's path inside the folder; refuses what could lead out of it on any operating system."""
    path = PurePosixPath(name)
    reason = (
        "an absolute path" if path.is_absolute()
        else "'..' in its path" if ".." in path.parts
        else "a back-slash in its path" if "\\" in name
        else "a drive letter" if PureWindowsPath(name).drive
        else "a NUL character in its path" if "\0" in name
        else ""
    )  # fmt: skip
    if reason:
        raise UserError(f"{archive}: member {name!r} has {reason} and could be written outside the folder: refused")
    return path


def _members(archive: Path, budget: _Budget) -> Iterator[_Member]:
    try:
        with archive.open("rb") as file:
            magic = file.read(6)
    except OSError as error:
        raise UserError(f"cannot read the archive {archive}: {error}") from error
    if magic[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        yield from _zip_members(archive)
    else:
        yield from _tar_members(archive, magic, budget)


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            mode = info.external_attr >> 16
            kind = "folder" if info.is_dir() else "file"
            if stat.S_ISLNK(mode):
                kind = "a link"
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                kind = "a device or pipe"
            elif info.flag_bits & 1:
                kind = "encrypted"
            # orig_filename is the name before zipfile cuts it at a NUL or turns separators round.
            yield _Member(info.orig_filename, info.file_size, kind, partial(file.open, info))


def _tar_members(archive: Path, magic: bytes, budget: _Budget) -> Iterator[_Member]:
    with archive.open("rb") as file:
        stream = _Counted(_decompressed(file, magic), budget)
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for info in tar:
                kind = "file" if info.isreg() else "folder" if info.isdir() else "a device or pipe"
                if info.issym() or info.islnk():
                    kind = f"a link to {info.linkname!r}"
                yield _Member(info.name, info.size, kind, partial(tar.extractfile, info))
            # tarfile takes a damaged header for the end, and only reading on makes gzip and xz check sums.
            while rest := tar.fileobj.read(CHUNK):  # type: ignore[union-attr]
                if rest.strip(b"\0"):
                    raise tarfile.ReadError(f"unreadable data after member {budget.member!r}")
            if stream.count % tarfile.BLOCKSIZE:  # nor does tarfile mind a header that is cut off
                raise tarfile.ReadError(f"it ends in mid-block after member {budget.member!r}")


def _decompressed(file: IO[bytes], magic: bytes) -> IO[bytes]:
    if magic[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=file, mode="rb")  # type: ignore[return-value]
    if magic[:3] == b"BZh":
        return bz2.BZ2File(file)
    if magic == b"\xfd7zXZ\x00":
        return lzma.LZMAFile(file)
    if magic[:4] == b"\x28\xb5\x2f\xfd":
        return _zstandard(file)
    return file


def _zstandard(file: IO[bytes]) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14
    except ImportError:
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return zstd.ZstdFile(file)


class _Counted(io.RawIOBase):
    """Reads on; refuses once more than the budget has come out of the decompressor."""

    def __init__(self, stream: IO[bytes], budget: _Budget) -> None:
        self.stream, self.budget, self.count = stream, budget, 0

    def read(self, size: int = -1) -> bytes:
        try:
            data = self.stream.read(size)
        except Exception as error:
            # Broken data shows as OSError, EOFError or the library's own error.
            raise tarfile.ReadError(f"{error or type(error).__name__}") from error
        self.count += len(data)
        self.budget.check(self.count, "decompressed")
        return data
