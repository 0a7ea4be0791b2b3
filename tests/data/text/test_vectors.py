import gzip
import lzma
import struct
from pathlib import Path

import numpy as np
import pytest

from hotloop.data.text.subword_tokenizer import SubwordTokenizer
from hotloop.data.text.vectors import read_vectors, surface_forms, token_vectors
from hotloop.data.text.word_tokenizer import WordTokenizer
from hotloop.errors import UserError

ROWS = {"chat": [1.0, -2.0, 0.5], "noir": [0.25, 1e-3, 3.0], "Paris": [4.0, 5.0, 6.0], "paris": [7.0, 8.0, 9.0]}


def text_of(rows: dict[str, list[float]], *, end: str = "\n") -> str:
    return "".join(f"{word} {' '.join(map(repr, row))}{end}" for word, row in rows.items())


def binary_of(rows: dict[str, list[float]], *, end: bytes = b"\n") -> bytes:
    width = len(next(iter(rows.values())))
    body = b"".join(word.encode() + b" " + struct.pack(f"<{width}f", *row) + end for word, row in rows.items())
    return f"{len(rows)} {width}\n".encode() + body


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


FORMS = {
    "glove.txt": text_of(ROWS),
    "with_header.vec": "4 3\n" + text_of(ROWS),
    "fasttext.vec": "4 3\n" + text_of(ROWS, end=" \n"),
    "windows.vec": "4 3\r\n" + text_of(ROWS, end="\r\n"),
    "tabs.txt": text_of(ROWS).replace(" ", "\t"),
    "columns.txt": text_of(ROWS).replace(" ", "   "),
    "mixed.vec": "4 3\n" + text_of(ROWS, end=" \t\n").replace(" ", " \t "),
    "marked.txt": "\ufeff" + text_of({"noir": ROWS["noir"]}) + text_of({k: v for k, v in ROWS.items() if k != "noir"}),
    "marked_header.vec": "\ufeff4 3\n" + text_of(ROWS),
    "no_last_line_end.txt": text_of(ROWS).rstrip(),
    "word2vec.bin": binary_of(ROWS),
    "without_line_ends.bin": binary_of(ROWS, end=b""),
    "binary.vec": binary_of(ROWS),
    "text.bin": "4 3\n" + text_of(ROWS),
    "small.vec.gz": gzip.compress(text_of(ROWS).encode()),
    "small.vec.xz": lzma.compress(text_of(ROWS).encode()),
    "news.bin.gz": gzip.compress(binary_of(ROWS)),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_wanted_rows_whatever_its_name(tmp_path, name):
    found = read_vectors(write(tmp_path / name, FORMS[name]), {"noir", "paris", "absent"})
    assert (found.width, found.read, sorted(found.rows)) == (3, 4, ["noir", "paris"])
    np.testing.assert_allclose(found.rows["noir"], ROWS["noir"], rtol=1e-6)
    np.testing.assert_allclose(found.rows["paris"], ROWS["paris"])


def test_words_may_hold_spaces_and_look_like_numbers(tmp_path):
    file = write(tmp_path / "v.txt", ". . . 1 2 3\n7 4 5 6\nat name 1.5 2 3\n1 2 3 4\n\u00a0x 1 1 1\n\u0085 2 2 2\n")
    found = read_vectors(file, {". . .", "7", "at name", "1", "\u00a0x", "\u0085"})
    assert {word: row.tolist() for word, row in found.rows.items()} == {
        ". . .": [1, 2, 3], "7": [4, 5, 6], "at name": [1.5, 2, 3], "1": [2, 3, 4], "\u00a0x": [1, 1, 1],
        "\u0085": [2, 2, 2],
    }  # fmt: skip


def test_of_a_repeated_word_the_first_row_counts(tmp_path, caplog):
    file = write(tmp_path / "v.txt", "le 1 2\nla 3 4\nle 5 6\n")
    with caplog.at_level("INFO"):
        found = read_vectors(file, {"le"})
    assert found.rows["le"].tolist() == [1, 2] and found.repeated == 1
    assert "1 words came more than once" in caplog.text


def test_a_header_that_says_more_is_warned_of(tmp_path, caplog):
    assert read_vectors(write(tmp_path / "v.vec", "99 2\nle 1 2\n"), {"le"}).read == 1
    assert "99 rows, the file has 1" in caplog.text


def test_words_that_are_not_utf8_are_passed_over(tmp_path):
    file = write(tmp_path / "v.txt", b"caf\xe9 1 2\nle 3 4\n")
    assert read_vectors(file, {"le", "café"}).rows.keys() == {"le"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("le 1 2 3\nla 1 2\n", "line 2: 2 numbers, the rows before have 3"),
        ("2 3\nle 1 2\n", "line 2: 2 numbers, the rows before have 3"),
        ("le 1 2 3\nla 1 x 3\n", "line 2: 'x' is no number"),
        ("le 1 2 3\nla 1 nan 3\n", "NaN"),
        ("", "line 1: no word vector"),
        ("only words here\n", "line 1: no word vector"),
        ("5 0\n", "vectors of 0 numbers"),
        (gzip.compress(b"le 1 2\n"), "looks like gzip data: name it"),
        (b"PK\x03\x04....", "a zip archive"),
        (binary_of(ROWS)[:-9], "cut off in row 4 of 4"),
        (binary_of({"le": [1.0, float("inf")]}), "infinite"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(tmp_path, content, message):
    file = write(tmp_path / "v.txt", content)
    with pytest.raises(UserError, match=message) as told:
        read_vectors(file, {"le", "la", *ROWS})
    assert str(file) in str(told.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no such file.*absent\.vec"):
        read_vectors(tmp_path / "absent.vec", {"le"})


def test_a_word_tokeniser_is_asked_for_its_words_without_marks(tmp_path):
    tokenizer = WordTokenizer.train({"l'homme,": 3, "Chat": 2, "Paris": 2}, size=20)
    file = write(tmp_path / "v.txt", "l' 1 1\nhomme 2 2\n, 3 3\nchat 4 4\nParis 5 5\nparis 6 6\n<unk> 9 9\n")
    found = token_vectors(file, tokenizer)
    by_piece = dict(zip(tokenizer.pieces(found.ids.tolist()), found.rows[:, 0].tolist(), strict=True))
    assert by_piece == {"l'￭": 1, "homme": 2, "￭,": 3, "Chat": 4, "Paris": 5}
    assert (found.lowercased, found.words, found.width) == (1, 5, 2)
    assert min(found.ids) > 3


def test_a_sub_word_tokeniser_is_asked_for_what_begins_a_word(tmp_path):
    text = {"maison": 50, "maisons": 20, "maisonnette": 20, "chat": 40, ",": 30, "chats,": 10}
    tokenizer = SubwordTokenizer.train(text, kind="bpe", size=40)
    surfaces = surface_forms(tokenizer)
    pieces = tokenizer.pieces(list(surfaces))
    assert "maison" in surfaces.values() and "," in surfaces.values()
    assert all(piece.startswith("▁") or not any(map(str.isalnum, piece)) for piece in pieces)
    file = write(tmp_path / "v.txt", "maison 1 1\ns 2 2\n")
    found = token_vectors(file, tokenizer)
    assert tokenizer.pieces(found.ids.tolist()) == ["▁maison"]


def test_no_word_found_gives_no_rows(tmp_path):
    found = token_vectors(write(tmp_path / "v.txt", "xyz 1 2\n"), WordTokenizer(["le"]))
    assert found.rows.shape == (0, 2) and found.words == 1


@pytest.mark.parametrize(
    ("name", "width", "rows", "words"),
    [
        ("fasttext.fr.300.5k.vec", 300, 5000, {"de", "maison"}),
        ("glove.6B.50d.8k.txt", 50, 8000, {"the", "house"}),
        ("awkward/word2vec_binary.bin", 10, 2747, {"the", "to"}),
        ("awkward/word2vec_text_20x300.txt", 300, 20, {"one"}),
        ("awkward/glove_no_header_50d.txt", 50, 76, {"the"}),
        ("awkward/header_says_more.vec", 300, 20, {"de"}),
        ("awkward/duplicate_word.vec", 300, 20, {"de"}),
        ("awkward/word_with_spaces.vec", 300, 20, {"de", ". . ."}),
    ],
)
def test_real_files(shared_data, name, width, rows, words):
    found = read_vectors(shared_data / "vectors" / name, words)
    assert (found.width, found.read, found.rows.keys()) == (width, rows, words)
    assert all(0.001 < np.abs(row).mean() < 20 for row in found.rows.values())


def test_a_real_file_with_a_short_row_names_its_line(shared_data):
    with pytest.raises(UserError, match="line 9: 297 numbers, the rows before have 300"):
        read_vectors(shared_data / "vectors/awkward/row_too_short.vec", set())
