"""E02: a blank line on one side drops that pair in training, and keeps its place in validation and test."""

import logging
from pathlib import Path

import numpy as np
import pytest

from hotloop.data.text.bitext import BitextDataModule
from hotloop.data.text.corpora import BitextFolder
from hotloop.vocabulary import BOS, EOS

FRENCH = ["un chat", "", "deux chiens", "trois oies", "dix loups"]
ENGLISH = ["a cat", "x", "two dogs", "   ", "ten wolves"]
BLANKS = ["", "   ", "\t", "\u00a0", "\u2028", "\x00", "\r"]


def data_module(folder: Path, french: list[str], english: list[str]) -> BitextDataModule:
    for name, source, target in (("train", french, english), ("test", FRENCH, ENGLISH)):
        (folder / f"{name}.fr").write_bytes("".join(line + "\n" for line in source).encode())
        (folder / f"{name}.en").write_bytes("".join(line + "\n" for line in target).encode())
    data = BitextDataModule(
        corpus=BitextFolder(dir=folder, valid=None),
        tokenizer={"kind": "word", "min_frequency": 1},
        filters={"leaks": "keep"},
        valid_size=0,
        batch_size=2,
        cache_dir=folder / "cache",
    )
    data.prepare_data()
    data.setup()
    return data


@pytest.mark.parametrize("blank", BLANKS)
def test_e02_pairs_with_a_blank_side_are_dropped_together(
    tmp_path: Path, blank: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    data = data_module(
        tmp_path, ["un chat", blank, "deux chiens", "trois oies", "dix loups"], [*ENGLISH[:3], blank, ENGLISH[4]]
    )
    train = data.dataset("train")
    assert train is not None
    source = data.source_tokenizer.decode(train.source.gather(np.arange(3))[0].tolist())
    target = data.target_tokenizer.decode(train.target.gather(np.arange(3))[0].tolist())
    assert list(zip(source, target, strict=True)) == [
        ("un chat", "a cat"), ("deux chiens", "two dogs"), ("dix loups", "ten wolves"),
    ]  # fmt: skip
    assert len(train) == 3
    assert "2 of 5 pairs dropped (empty)" in caplog.text


def test_e02_a_blank_test_line_keeps_its_place(tmp_path: Path) -> None:
    data = data_module(tmp_path, FRENCH, ENGLISH)
    assert data.texts("test") == (FRENCH, ["a cat", "x", "two dogs", "", "ten wolves"])
    loader = data.test_dataloader()
    assert not isinstance(loader, list)
    seen = {}
    for batch in loader:
        assert int(batch.source_length.min()) >= 1  # an empty sentence is still EOS: packing takes it
        for number, row, length in zip(batch.ids.tolist(), batch.source, batch.source_length, strict=True):
            seen[number] = row[:length].tolist()
        for number, row in zip(batch.ids.tolist(), batch.target.tolist(), strict=True):
            assert row[0] == BOS
            assert number != 3 or row[:2] == [BOS, EOS]
    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert seen[1] == [EOS]
