"""Token arrays, the data set over them, and what tells that a folder is whole."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from hotloop.data.cache_folder import content_hash, finish, read_meta
from hotloop.data.text.batch import Batch
from hotloop.data.text.dataset import BitextDataset, encode_pairs
from hotloop.data.text.preparing.store import TokenRows, TokenWriter
from hotloop.data.text.tokenizer import TokenizerOptions, count_words, train_tokenizer
from hotloop.errors import UserError
from hotloop.vocabulary import BOS, EOS, PAD

ROWS = [[5, 6, 7], [], [8], [9, 10, 11, 12], []]


def written(stem: Path, vocabulary_size: int = 100) -> TokenRows:
    writer = TokenWriter(stem, vocabulary_size=vocabulary_size)
    for part in (ROWS[:2], [], ROWS[2:]):
        flat = np.array([i for row in part for i in row], dtype=np.int64)
        writer.append(flat, np.array([len(row) for row in part], dtype=np.int64))
    writer.close()
    return TokenRows.open(stem)


@pytest.mark.parametrize("where", ["memory", "disk", "pickled memory", "pickled disk"])
def test_rows_come_back_padded_in_the_order_asked(tmp_path: Path, where: str) -> None:
    rows = TokenRows.from_lists(ROWS) if "memory" in where else written(tmp_path / "train.source")
    if "pickled" in where:
        rows = pickle.loads(pickle.dumps(rows))
    assert len(rows) == 5
    assert rows.lengths.tolist() == [3, 0, 1, 4, 0]
    padded, lengths = rows.gather(np.array([2, 0, 2, 1]))
    assert padded.tolist() == [[8, PAD, PAD], [5, 6, 7], [8, PAD, PAD], [PAD, PAD, PAD]]
    assert lengths.tolist() == [1, 3, 1, 0]
    assert rows.gather(np.array([1, 4]))[0].shape == (2, 0)
    assert padded.dtype == lengths.dtype == np.int64


@pytest.mark.parametrize(("size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_two_bytes_where_they_fit(tmp_path: Path, size: int, dtype: type) -> None:
    writer = TokenWriter(tmp_path / "x", vocabulary_size=size)
    writer.append(np.array([size - 1]), np.array([1]))
    writer.close()
    assert np.load(tmp_path / "x.tokens.npy").dtype == dtype
    assert TokenRows.open(tmp_path / "x").gather(np.array([0]))[0].tolist() == [[size - 1]]


def test_a_mapped_data_set_travels_as_a_path(tmp_path: Path) -> None:
    rows = written(tmp_path / "train.source")
    data = BitextDataset(rows, rows)
    assert len(pickle.dumps(data)) < 1_000
    assert pickle.loads(pickle.dumps(data))[[0]].source.tolist() == [[5, 6, 7]]


def test_no_rows_at_all(tmp_path: Path) -> None:
    TokenWriter(tmp_path / "x", vocabulary_size=9).close()
    for rows in (TokenRows.from_lists([]), TokenRows.open(tmp_path / "x")):
        assert len(rows) == 0
        assert rows.gather(np.array([], dtype=np.int64))[0].shape == (0, 0)


def test_pairs_of_lines_become_a_data_set() -> None:
    lines = ["le chat", "", "un"]
    tokenizer = train_tokenizer(count_words(lines), TokenizerOptions(kind="word", min_frequency=1))
    le, chat, un = (tokenizer.encode([word])[0][0] for word in ("le", "chat", "un"))
    batch = encode_pairs(lines, ["un", "le", ""], tokenizer, tokenizer)[[2, 0, 1]]
    assert batch.source.tolist() == [[un, EOS, PAD], [le, chat, EOS], [EOS, PAD, PAD]]
    assert batch.target.tolist() == [[BOS, EOS, PAD], [BOS, un, EOS], [BOS, le, EOS]]
    assert batch.source_length.tolist() == [2, 3, 1]
    assert batch.target_length.tolist() == [2, 3, 3]
    assert batch.ids.tolist() == [2, 0, 1]
    assert len(batch) == 3
    with pytest.raises(UserError, match="3 source lines, but 1 target"):
        encode_pairs(lines, ["un"], tokenizer, tokenizer)


def test_only_the_ids_move_to_the_device() -> None:
    whole = torch.ones(2, 3, dtype=torch.int64)
    batch = Batch(whole, whole[:, 0], whole, whole[:, 0], whole[:, 0]).to("meta")
    assert (batch.source.device.type, batch.target.device.type) == ("meta", "meta")
    assert {batch.source_length.device.type, batch.target_length.device.type, batch.ids.device.type} == {"cpu"}
    assert batch.to("meta", non_blocking=True).source.device.type == "meta"


def test_a_folder_is_whole_only_with_all_its_bytes(tmp_path: Path) -> None:
    assert read_meta(tmp_path) is None
    (tmp_path / "a.npy").write_bytes(b"12345")
    finish(tmp_path, {"pairs": 3})
    meta = read_meta(tmp_path)
    assert meta is not None
    assert meta["pairs"] == 3
    for damage in (lambda p: p.write_bytes(b"1234"), lambda p: p.unlink()):
        damage(tmp_path / "a.npy")
        assert read_meta(tmp_path) is None
    (tmp_path / "a.npy").write_bytes(b"12345")
    for broken in ("", "{", "[]", "{}", '{"sizes": 3}'):
        (tmp_path / "meta.json").write_text(broken)
        assert read_meta(tmp_path) is None


def test_content_hashes_are_remembered_until_the_file_changes(tmp_path: Path) -> None:
    path, copy, memo = tmp_path / "a", tmp_path / "b", tmp_path / "deep" / "contents.json"
    path.write_bytes(b"one")
    copy.write_bytes(b"one")
    first = content_hash(path, memo=memo)
    assert content_hash(copy, memo=memo) == first
    size, times = path.stat().st_size, path.stat().st_mtime_ns
    path.write_bytes(b"two")
    os.utime(path, ns=(times + 1, times + 1))
    assert path.stat().st_size == size
    assert content_hash(path, memo=memo) != first
    memo.write_text("not json")
    assert content_hash(copy, memo=memo) == first
    memo.write_text(memo.read_text().replace(first, "remembered"))
    assert content_hash(copy, memo=memo) == "remembered"
