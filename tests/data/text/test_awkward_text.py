"""Real awkward files: each does what its README says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop.data.text.corpora import BitextFolder
from hotloop.data.text.preparing.filters import Filters
from hotloop.data.text.preparing.prepare import PreparedCorpus, prepare
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.readers import read_pairs
from hotloop.data.text.tokenizer import TokenizerOptions
from hotloop.errors import UserError
from hotloop.vocabulary import BOS, EOS, PAD, UNK

KEEP = Filters(max_length=None, duplicates="keep")


@pytest.fixture
def prepared(shared_data: Path, tmp_path: Path) -> Any:
    def of(case: str, kind: str = "word", **options: Any) -> PreparedCorpus:
        corpus = BitextFolder(dir=shared_data / "awkward-text" / case, valid=None, test=None)
        recipe = Recipe(
            files=corpus.files(), src_lang="fr", tgt_lang="en", filters=KEEP, valid_size=0, test_size=0,
            tokenizer=TokenizerOptions(kind=kind, vocabulary_size=2_000, min_frequency=1), **options,
        )  # fmt: skip
        return prepare(recipe, tmp_path / "cache")

    return of


def lines(prepared: PreparedCorpus, side: str) -> list[str]:
    rows = prepared.rows("train", side)
    padded, _ = rows.gather(np.arange(len(rows)))
    tokenizer = prepared.source_tokenizer if side == "source" else prepared.target_tokenizer
    return tokenizer.decode(padded.tolist())


def vocabulary(prepared: PreparedCorpus) -> list[str]:
    return prepared.source_tokenizer.pieces(range(prepared.source_tokenizer.size))


def test_bom_and_crlf_on_one_side(prepared: Any) -> None:
    corpus = prepared("bom_crlf")
    assert corpus.pairs == {"train": 40}
    assert not [piece for piece in vocabulary(corpus) if "\ufeff" in piece or "\r" in piece]
    assert not [line for side in ("source", "target") for line in lines(corpus, side) if "\ufeff" in line]


def test_line_separators_inside_lines(prepared: Any, shared_data: Path) -> None:
    corpus = prepared("u2028_in_line")
    assert corpus.pairs == {"train": 30}
    folder = shared_data / "awkward-text" / "u2028_in_line"
    for side, language in (("source", "fr"), ("target", "en")):
        raw = (folder / f"train.{language}").read_bytes().decode().split("\n")[:-1]
        assert lines(corpus, side) == [" ".join(line.split()) for line in raw]


def test_both_sides_empty(prepared: Any) -> None:
    with pytest.raises(UserError, match=r"no training pairs are left.*30 of 30 pairs dropped \(empty\)"):
        prepared("empty_sides")


def test_one_side_empty(prepared: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    corpus = prepared("one_sided_empty")
    assert (corpus.meta["read"], corpus.pairs, corpus.meta["dropped"]) == (43, {"train": 20}, {"empty": 23})
    assert "23 of 43 pairs dropped (empty)" in caplog.text


def test_sides_of_different_length(prepared: Any) -> None:
    with pytest.raises(UserError, match=r"train\.fr has 50 lines.*train\.en has 49"):
        prepared("mismatch")


def test_blank_lines_at_the_end(prepared: Any) -> None:
    with pytest.raises(UserError, match=r"train\.fr has 23 lines.*train\.en has 21"):
        prepared("trailing_blank_lines")


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_moses_entities(prepared: Any, kind: str) -> None:
    as_it_is = prepared("html_entities", kind)
    assert as_it_is.pairs == {"train": 200}
    assert any("&apos;" in line for line in lines(as_it_is, "source"))
    natural = prepared("html_entities", kind, pretokenized=True)
    assert natural.pairs == {"train": 200}
    text = "\n".join(lines(natural, "source") + lines(natural, "target"))
    assert "&apos;" not in text
    assert "&quot;" not in text
    assert " ," not in text


def test_mixed_normal_forms(prepared: Any, shared_data: Path, tmp_path: Path) -> None:
    import unicodedata

    corpus = prepared("nfc_nfd_mixed")
    folder, nfc = shared_data / "awkward-text" / "nfc_nfd_mixed", tmp_path / "nfc"
    nfc.mkdir()
    for name in ("train.fr", "train.en"):
        text = (folder / name).read_bytes().decode()
        (nfc / name).write_bytes(unicodedata.normalize("NFC", text).encode())
    options: dict[str, Any] = {"tokenizer": TokenizerOptions(kind="word", vocabulary_size=2_000, min_frequency=1)}
    files = BitextFolder(dir=nfc, valid=None, test=None).files()
    composed = prepare(
        Recipe(files=files, src_lang="fr", tgt_lang="en", filters=KEEP, valid_size=0, test_size=0, **options),
        tmp_path / "cache",
    )
    assert corpus.pairs == {"train": 40}
    assert vocabulary(corpus) == vocabulary(composed)
    assert composed.folder != corpus.folder


@pytest.mark.parametrize("kind", ["word", "bpe", "unigram"])
def test_literal_special_tokens(prepared: Any, kind: str, shared_data: Path) -> None:
    corpus = prepared("literal_special_tokens", kind)
    assert corpus.pairs == {"train": 20}
    for side, own in (("source", {EOS}), ("target", {BOS, EOS})):
        rows = corpus.rows("train", side)
        padded, lengths = rows.gather(np.arange(len(rows)))
        for row, length in zip(padded.tolist(), lengths.tolist(), strict=True):
            inner = row[1 : length - 1] if side == "target" else row[: length - 1]
            assert not {PAD, UNK, *own} & set(inner)
    files = BitextFolder(dir=shared_data / "awkward-text" / "literal_special_tokens", valid=None, test=None).files()
    sources = [" ".join(source.split()) for source, _ in read_pairs(files["train"])]
    assert lines(corpus, "source") == sources
    assert any("<pad>" in line for line in sources)


def test_replacement_characters(prepared: Any) -> None:
    corpus = prepared("replacement_chars")
    assert corpus.pairs == {"train": 20}
    assert any("\ufffd" in line for line in lines(corpus, "source") + lines(corpus, "target"))
