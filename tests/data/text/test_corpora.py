"""Finding the files of one's own bitext."""

import gzip
from pathlib import Path

import pytest

from hotloop.data.text.corpora import BitextFolder
from hotloop.data.text.readers import read_pairs
from hotloop.errors import UserError


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"a\n") if name.endswith(".gz") else b"a\n")
    return folder


def test_parallel_files_by_stem_and_language(tmp_path: Path) -> None:
    touch(tmp_path, "train.fr", "train.en.gz", "val.fr", "val.en", "test_2016_flickr.fr", "test_2016_flickr.en", "x.de")
    found = BitextFolder(dir=tmp_path, valid="val", test="test_2016_flickr").files()
    assert {split: [path.name for path in files.paths()] for split, files in found.items()} == {
        "train": ["train.fr", "train.en.gz"],
        "valid": ["val.fr", "val.en"],
        "test": ["test_2016_flickr.fr", "test_2016_flickr.en"],
    }
    assert list(read_pairs(found["train"])) == [("a", "a")]


def test_direction_dots_and_folders_in_a_stem(tmp_path: Path) -> None:
    touch(tmp_path, "raw/news.2020.de", "raw/news.2020.cs")
    corpus = BitextFolder(dir=str(tmp_path), src_lang="de", tgt_lang="cs", train="raw/news.2020", valid=None, test=None)
    assert (corpus.src_lang, corpus.tgt_lang) == ("de", "cs")
    files = corpus.files()
    assert list(files) == ["train"]
    assert files["train"].source.name == "news.2020.de"


def test_columns_reach_the_reader(tmp_path: Path) -> None:
    touch(tmp_path, "train.tsv", "valid.jsonl", "test.jsonl")
    files = BitextFolder(dir=tmp_path).files()
    assert (files["train"].format, files["train"].columns) == ("tsv", None)
    assert (files["valid"].format, files["valid"].columns) == ("jsonl", ("fr", "en"))
    files = BitextFolder(dir=tmp_path, columns=("source", "target")).files()
    assert files["test"].columns == ("source", "target")


def test_what_is_missing_is_told_with_what_is_there(tmp_path: Path) -> None:
    touch(tmp_path, "train.fr", "train.de", "dev.fr")
    with pytest.raises(UserError) as told:
        BitextFolder(dir=tmp_path).files()
    for part in ("train.fr with train.en", "train.tsv", "train.jsonl", "holds: dev.fr, train.de, train.fr"):
        assert part in str(told.value)
    assert "null" not in str(told.value)
    touch(tmp_path, "train.en")
    with pytest.raises(UserError, match=r"no valid files.*data\.corpus\.valid=null.*data\.valid_size"):
        BitextFolder(dir=tmp_path).files()
    with pytest.raises(UserError, match="does not exist"):
        BitextFolder(dir=tmp_path / "nowhere").files()


def test_two_candidates_are_not_guessed_between(tmp_path: Path) -> None:
    touch(tmp_path, "train.fr", "train.en", "train.tsv")
    with pytest.raises(UserError, match=r"train\.fr \+ train\.en or train\.tsv"):
        BitextFolder(dir=tmp_path, valid=None, test=None).files()
    assert BitextFolder(dir=tmp_path, valid=None, test=None, format="tsv").files()["train"].format == "tsv"
    touch(tmp_path, "train.fr.gz")
    with pytest.raises(UserError, match=r"train\.fr and train\.fr\.gz"):
        BitextFolder(dir=tmp_path, valid=None, test=None, format="parallel").files()


def test_options_are_checked() -> None:
    for message, options in (
        ("both 'en'", {"src_lang": "en"}),
        ("'csv'", {"format": "csv"}),
        ("'fr'", {"columns": "fr"}),
        ("'en' twice", {"columns": ["en", "en"]}),
        ("2 twice", {"columns": [2, 2]}),
        ("parallel has no columns", {"columns": [1, 2], "format": "parallel"}),
        ("train", {"train": ""}),
    ):
        with pytest.raises(UserError, match=message):
            BitextFolder(dir=".", **options)  # type: ignore[arg-type]
