"""Reading bitext: nothing is lost, nothing slides, and every complaint names its place."""

import gzip
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hotloop.data.text.readers import BitextFiles, read_lines, read_pairs
from hotloop.errors import UserError


def zstd(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression.zstd import compress
    else:
        from zstandard import compress
    return compress(data)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


@pytest.mark.parametrize("end", COMPRESS)
def test_plain_and_compressed_files_give_the_same_lines(tmp_path: Path, end: str) -> None:
    lines = [f"ligne {n} é" for n in range(50_000)]
    path = tmp_path / f"train.fr{end}"
    path.write_bytes(COMPRESS[end]("\n".join(lines).encode()))
    assert list(read_lines(path)) == lines


def test_zstandard_of_several_frames_and_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "train.fr.zst"
    path.write_bytes(zstd(b"a\nb") + zstd(b"c\n") + zstd(b"") + zstd(b"d"))
    assert list(read_lines(path)) == ["a", "bc", "d"]


@pytest.mark.parametrize("end", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "not compressed", "flipped"])
def test_damaged_archives_name_the_file(tmp_path: Path, end: str, damage: str) -> None:
    whole = COMPRESS[end]("".join(f"{n * n} ligne\n" for n in range(9_000)).encode())
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes(byte ^ 255 for byte in whole[middle : middle + 40]) + whole[middle + 40 :]
    path = tmp_path / f"train.fr{end}"
    path.write_bytes({"cut": whole[:middle], "not compressed": b"bonjour\n", "flipped": flipped}[damage])
    with pytest.raises(UserError, match=f"train.fr{end}"):
        list(read_lines(path))


@pytest.mark.parametrize("end", [".gz", ".xz", ".zst"])
def test_a_compressed_file_without_its_extension_is_recognised(tmp_path: Path, end: str) -> None:
    path = tmp_path / "train.fr"
    path.write_bytes(COMPRESS[end](b"bonjour\n" * 99))
    with pytest.raises(UserError, match=rf"train\.fr, line 1: not UTF-8 .*{end}"):
        list(read_lines(path))


def test_compressed_bytes_are_not_taken_for_old_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "train.fr"
    path.write_bytes(b"\x1f\x8b\x08\x00\r\r\r\r" + bytes(40) + b"\xff")  # a time in its header may be anything
    with pytest.raises(UserError, match=r"train\.fr, line 1: not UTF-8 .*\.gz"):
        list(read_lines(path))


@pytest.mark.parametrize(
    "inside", ["\u2028", "\u2029", "\u0085", "\x0c", "\x0b", "\x1c", "\x1d", "\x1e", "\r", "\x00", "\ufeff"]
)
def test_only_line_feeds_end_a_line(tmp_path: Path, inside: str) -> None:
    path = tmp_path / "train.fr"
    path.write_bytes(f"a{inside}b\nc\n".encode())
    assert list(read_lines(path)) == [f"a{inside}b", "c"]


def test_byte_order_mark_and_carriage_returns_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "train.fr"
    path.write_bytes(b"\xef\xbb\xbfa\r\n\r\nb\r\r\nc")
    assert list(read_lines(path)) == ["a", "", "b\r", "c"]


@pytest.mark.parametrize(("content", "lines"), [(b"", []), (b"\n", [""]), (b"a", ["a"]), (b"a\n\n", ["a", ""])])
def test_the_last_line_needs_no_line_feed(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    path = tmp_path / "train.fr"
    path.write_bytes(content)
    assert list(read_lines(path)) == lines


@pytest.mark.parametrize(
    ("content", "line", "hint"),
    [
        ("bon\nété\n".encode("latin-1"), 2, "-f LATIN1 "),
        ("bon\nl’été\n".encode("cp1252"), 2, "-f CP1252 "),
        ("été\n".encode("utf-16"), 1, "-f UTF-16 "),
        ("été\n".encode("utf-16-be"), 1, "-f UTF-16BE "),
        ("l'été dernier\n".encode("utf-16-le"), 1, "-f UTF-16LE "),
        ("bonjour\n".encode("utf-16-be"), 1, "-f UTF-16BE "),
        ("été\n".encode("utf-32"), 1, "-f UTF-32 "),
        (b"\x00\x00\xfe\xff" + "bon\n".encode("utf-32-be"), 1, "-f UTF-32 "),
        ("bon\nété".encode()[:-1], 2, "ends inside a character"),
        ("bon\nété €".encode()[:-2], 2, "ends inside a character"),
        (b"a\nb\n\xed\xa0\x80\n", 3, "not UTF-8"),
    ],
)
def test_other_encodings_are_told_with_the_advice_that_fits(
    tmp_path: Path, content: bytes, line: int, hint: str
) -> None:
    path = tmp_path / "train.fr"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"train.fr, line {line}: .*{hint}") as told:
        list(read_lines(path))
    assert str(told.value).count("iconv") == 1


@pytest.mark.parametrize("content", [b"a\rb\rc\r", b"a\rb\rc", b"\xef\xbb\xbfa\rb", "été\rmai".encode("latin-1")])
def test_lines_that_end_with_cr_alone_are_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "train.fr"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"train\.fr: the lines end with CR alone .*: tr '\\r' '\\n' <"):
        list(read_lines(path))


def test_a_missing_file_is_told_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "train.de").touch()
    with pytest.raises(UserError, match=r"train\.fr.*holds: train\.de"):
        list(read_lines(tmp_path / "train.fr"))
    with pytest.raises(UserError, match="does not exist"):
        list(read_lines(tmp_path / "nowhere" / "train.fr"))
    with pytest.raises(UserError, match="is a folder"):
        list(read_lines(tmp_path))


@pytest.mark.parametrize(("left", "right"), [(5, 4), (4, 5), (0, 3), (3, 0), (1_000, 7)])
def test_unequal_counts_are_told_to_the_end(tmp_path: Path, left: int, right: int) -> None:
    files = BitextFiles(tmp_path / "t.fr", tmp_path / "t.en")
    files.source.write_text("a\n" * left)
    (tmp_path / "t.en").write_text("b\n" * right)
    with pytest.raises(UserError, match=rf"t\.fr has {left:,} lines.*t\.en has {right:,};"):
        list(read_pairs(files))


def test_columns_by_number_and_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(b'fr\tid\ten\n"le\t7\tthe" \n\t8\tx\r\n')
    rows = [("fr", "id"), ('"le', "7"), ("", "8")]
    assert list(read_pairs(BitextFiles(path, format="tsv"))) == rows
    assert list(read_pairs(BitextFiles(path, format="tsv", columns=(3, 1))))[1:] == [('the" ', '"le'), ("x", "")]
    assert list(read_pairs(BitextFiles(path, format="tsv", columns=("fr", "en")))) == [('"le', 'the" '), ("", "x")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((1, 4), r"t\.tsv, line 1: 3 column\(s\), column 4"),
        (("fr", "de"), "no column 'de' in the header; it has 'fr', 'id', 'en'"),
        ((0, 1), "from 1 on"),
        ((1, "en"), "from 1 on"),
        ((True, 2), "from 1 on"),
    ],
)
def test_wrong_columns_are_told(tmp_path: Path, columns: tuple[int | str, int | str], message: str) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("fr\tid\ten\na\tb\tc\n")
    with pytest.raises(UserError, match=message):
        list(read_pairs(BitextFiles(path, format="tsv", columns=columns)))


def test_a_short_row_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("a\tb\nc\nd\te\n")
    with pytest.raises(UserError, match=r"t\.tsv, line 2: 1 column"):
        list(read_pairs(BitextFiles(path, format="tsv")))


def test_json_lines_flat_and_nested(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    records = [{"fr": "a\nb", "en": "c", "id": 1}, {"translation": {"fr": "é", "en": "e"}}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    files = BitextFiles(path, format="jsonl", columns=("fr", "en"))
    assert list(read_pairs(files)) == [("a\nb", "c"), ("é", "e")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"fr": "a"', "not a JSON object"),
        ("", "not a JSON object"),
        ('["a", "b"]', "found list"),
        ('{"fr": "a", "de": "b"}', "no key 'en'; the object has 'fr', 'de'"),
        ('{"fr": "a", "en": null}', "must hold text, found NoneType"),
        ('{"fr": "a", "en": "\\ud83d"}', "surrogate"),
        ("[" * 100_000, "not a JSON object"),
    ],
)
def test_wrong_json_lines_name_their_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"fr": "a", "en": "b"}\n' + line + "\n")
    with pytest.raises(UserError, match=f"t.jsonl, line 2: .*{message}"):
        list(read_pairs(BitextFiles(path, format="jsonl", columns=("fr", "en"))))


def test_formats_and_files_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for files, message in (
        (BitextFiles(path), "two files"),
        (BitextFiles(path, path, format="tsv"), "in one file"),
        (BitextFiles(path, format="csv"), "unknown bitext format 'csv'"),
        (BitextFiles(path, format="jsonl"), "which two keys"),
    ):
        with pytest.raises(UserError, match=message):
            list(read_pairs(files))
