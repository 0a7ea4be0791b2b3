"""SHA-256 sums of data files, kept beside them in the format of `sha256sum`: `fr-en.tgz.sha256`."""

import hashlib
import logging
import re
from pathlib import Path

from hotloop.errors import UserError

logger = logging.getLogger(__name__)


def verify(path: Path, sha256: str | None = None) -> None:
    """Hold a file against `sha256`, else against the sum recorded beside it; record the sum if there is none.

    Raises:
        UserError: another sum (the file is left alone), or the file or its record cannot be read.
    """
    found = sha256_of(path)
    wrong = disagreement(path, found, sha256)
    if wrong:
        raise UserError(f"{path} is damaged or another version: {wrong}; delete the file to fetch it again")
    record(path, found)


def disagreement(path: Path, found: str, sha256: str | None) -> str | None:
    """What is wrong with the sum `found` of the file `path`: it is neither `sha256` nor, without it, recorded."""
    note = _note(path)
    wanted, where = (sha256.lower(), "expected") if sha256 else (_recorded(note), f"recorded in {note}")
    if wanted in (None, found):
        return None
    meant = "" if sha256 else " (delete that record too if the change is meant)"
    return f"its SHA-256 sum is {found}, but {wanted} is {where}{meant}"


def sha256_of(path: Path) -> str:
    """SHA-256 sum of a file's content, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    return digest.hexdigest()


def record(path: Path, sha256: str) -> None:
    """Write the sum of the file `path` beside it; only a warning if the folder cannot be written to."""
    note = _note(path)
    try:
        if _recorded(note) != sha256:
            note.write_text(f"{sha256}  {path.name}\n", encoding="utf-8")
    except OSError as error:
        logger.warning("cannot write %s: %s", note, error)


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _recorded(note: Path) -> str | None:
    try:
        text = note.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {note}: {error}") from error
    found = re.match(r"[0-9a-fA-F]{64}\b", text)
    if not found:
        raise UserError(f"{note} holds no SHA-256 sum; delete it to have it written again")
    return found[0].lower()
