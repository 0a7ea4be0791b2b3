"""Why a picture cannot be read, in plain words."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from PIL import Image, UnidentifiedImageError

# What a file starts with that is no picture, or one that is not read here.
_OTHERS = (
    (rb"\s*(<!doctype html|<html|<head|<body|<script)", "an HTML page, not a picture: a failed download?"),
    (rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)?(<!doctype svg[^>]*>\s*)?<svg", "an SVG drawing: save it as PNG"),
    (rb"\s*<(\?xml|error)", "an XML document, not a picture: a failed download?"),
    (rb"version https://git-lfs", "a pointer of Git LFS, not the picture itself: run git lfs pull"),
    (rb"....ftyp(hei|hev|mif1|msf1)", "an HEIC picture: convert it to JPEG"),
    (rb"....ftypavi", "an AVIF picture: convert it to PNG or JPEG"),
    (rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", "a JPEG 2000 picture: convert it to PNG"),
    (rb"....ftyp", "a video, not a picture: save its frames as pictures"),
    (rb"%PDF", "a PDF document: save its pages as pictures"),
    (rb"%!PS|\xc5\xd0\xd3\xc6", "PostScript: save it as PNG"),
    (rb"8BPS", "a Photoshop document: save it as PNG or TIFF"),
    (rb"PK\x03\x04", "a zip archive: unpack it"),
    (rb"\x1f\x8b", "gzip data: unpack it"),
    (rb"P[1-6][\s#]", "a Netpbm picture (PPM): convert it to PNG"),
    (rb"\x00\x00\x01\x00.\x00", "an icon: convert it to PNG"),
)
# What a file starts with that claims to be a picture.
_PICTURES = (
    (rb"\xff\xd8", "JPEG"),
    (rb"\x89PNG", "PNG"),
    (rb"GIF8", "GIF"),
    (rb"BM", "BMP"),
    (rb"RIFF....WEBP", "WebP"),
    (rb"II\*\0|MM\0\*|II\+\0|MM\0\+", "TIFF"),
)
_CUT = r"truncat|incomplete|not enough|premature|unexpected end|ended too early|end of file|eof|buffer overrun"


class Unreadable(Exception):
    """A reason why a picture cannot be read, fit for the user; the file is named by whoever catches it."""


def reason_for(error: Exception, head: bytes, path: str | Path) -> str:
    """What is wrong with the file `path`, whose first bytes are `head`, over which a decoder raised `error`."""
    if isinstance(error, Unreadable):
        return str(error)
    if isinstance(error, OSError) and error.errno not in (
        None,
        errno.EINVAL,
    ):  # EINVAL: a place before the file's start
        return _of_the_system(error, path)
    if not head:
        return "empty (0 bytes): a failed download or copy?"
    if isinstance(error, (Image.DecompressionBombError, MemoryError)):
        pixels = next(
            (f"{int(number):,} pixels" for number in re.findall(r"\d+", str(error))), "more than fits in memory"
        )
        return f"its header claims {pixels}, too many to be read: a damaged file, or one to make smaller"
    claimed = next((name for magic, name in _PICTURES if re.match(magic, head, re.DOTALL)), None)
    if claimed is None:
        flags = re.DOTALL | re.IGNORECASE
        known = next((what for magic, what in _OTHERS if re.match(magic, head, flags)), None)
        if known:
            return known
        looks = "text" if _is_text(head) else "no format that is read here"
        return f"not a picture (its content is {looks}): JPEG, PNG, WebP, TIFF, BMP or GIF was expected"
    if re.search(_CUT, str(error), re.IGNORECASE):
        return f"{claimed} that is cut off (its data end too early): get it again"
    if isinstance(error, UnidentifiedImageError):
        return f"damaged {claimed}, or of a kind that is not read: its header makes no sense; save it again as PNG"
    if re.fullmatch(r"-?\d+|decoder error -?\d+.*", str(error)):  # decoders without words
        return f"damaged {claimed}: its data cannot be unpacked"
    return f"damaged {claimed}: {_tidy(error)}"


def _of_the_system(error: OSError, path: str | Path) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is a link, but not the file it leads to" if Path(path).is_symlink() else "no such file"
    if isinstance(error, IsADirectoryError):
        return "a folder, a picture was expected"
    if isinstance(error, PermissionError):
        return "may not be read: permission denied"
    return f"cannot be read: {error.strerror}"


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return False
        text = head[: error.start].decode("utf-8")
    return all(letter.isprintable() or letter.isspace() for letter in text)


def _tidy(error: Exception) -> str:
    """The message in one line, without the places in the decoder's source that torch puts before it."""
    text = " ".join(str(error).split())
    text = re.sub(r"^.*\.cpp:\d+, ", "", text)
    return text[:200].rstrip(".") or type(error).__name__
