"""From files to the cache: what is in it, when it is built again, and what a failure leaves."""

import gzip
import json
import logging
import lzma
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from hotloop.data.processes import one_interrupt, worker_processes
from hotloop.data.text.corpora import BitextFolder
from hotloop.data.text.preparing.filters import Filters
from hotloop.data.text.preparing.prepare import PreparedCorpus, prepare
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.tokenizer import TokenizerOptions
from hotloop.errors import UserError
from hotloop.vocabulary import BOS, EOS

WORDS = TokenizerOptions(kind="word", vocabulary_size=1_000, min_frequency=1)
WriteSplit = Callable[..., Path]


def recipe(folder: Path, **options: Any) -> Recipe:
    names = {name: options.pop(name) for name in ("valid", "test") if name in options}
    corpus = BitextFolder(dir=folder, **names)
    given = {"tokenizer": WORDS, **options}
    return Recipe(files=corpus.files(), src_lang="fr", tgt_lang="en", **given)


@pytest.fixture
def corpus(write_split: WriteSplit) -> Path:
    write_split("train", [f"le chat {n}" for n in range(12)], [f"the cat {n}" for n in range(12)])
    write_split("valid", ["le chien", "", "le chat 3"], ["the dog", "x", ""])
    return write_split("test", ["un  chat\u00a0noir"], ["a black cat"])


def decoded(prepared: PreparedCorpus, split: str, side: str) -> list[str]:
    rows = prepared.rows(split, side)
    tokenizer = prepared.source_tokenizer if side == "source" else prepared.target_tokenizer
    padded, lengths = rows.gather(np.arange(len(rows)))
    return tokenizer.decode([row[:length].tolist() for row, length in zip(padded, lengths, strict=True)])


def test_training_is_filtered_and_encoded(corpus: Path, tmp_path: Path) -> None:
    prepared = prepare(recipe(corpus), tmp_path / "cache")
    kept = [n for n in range(12) if n != 3]  # its source is in valid
    assert decoded(prepared, "train", "source") == [f"le chat {n}" for n in kept]
    assert decoded(prepared, "train", "target") == [f"the cat {n}" for n in kept]
    assert prepared.pairs == {"train": 11, "valid": 3, "test": 1}
    assert (prepared.meta["read"], prepared.meta["dropped"]) == (12, {"leak": 1})
    source, _ = prepared.rows("train", "source").gather(np.array([0]))
    target, _ = prepared.rows("train", "target").gather(np.array([0]))
    assert source[0, -1] == EOS
    assert BOS not in source
    assert (target[0, 0], target[0, -1]) == (BOS, EOS)


def test_valid_and_test_keep_every_line(corpus: Path, tmp_path: Path) -> None:
    prepared = prepare(recipe(corpus), tmp_path / "cache")
    assert prepared.texts("valid") == (["le chien", "", "le chat 3"], ["the dog", "x", ""])
    assert prepared.texts("test") == (["un chat noir"], ["a black cat"])
    assert prepared.rows("valid", "source").lengths.tolist() == [3, 1, 4]
    assert prepared.rows("valid", "target").lengths.tolist() == [4, 3, 2]


def test_vocabularies_are_learnt_from_training_alone(corpus: Path, tmp_path: Path) -> None:
    prepared = prepare(recipe(corpus), tmp_path / "cache")
    known = prepared.source_tokenizer.pieces(range(prepared.source_tokenizer.size))
    assert "chat" in known
    assert "chien" not in known
    assert "noir" not in known
    assert prepared.target_tokenizer is not prepared.source_tokenizer


def test_the_target_vocabulary_may_have_another_size(corpus: Path, tmp_path: Path) -> None:
    uneven = TokenizerOptions(kind="word", min_frequency=1, vocabulary_size=10, target_vocabulary_size=8)
    prepared = prepare(recipe(corpus, tokenizer=uneven), tmp_path / "cache")
    assert (prepared.source_tokenizer.size, prepared.target_tokenizer.size) == (10, 8)
    with pytest.raises(UserError, match="target_vocabulary_size"):
        TokenizerOptions(shared=True, target_vocabulary_size=8)


def test_vocabularies_are_learnt_from_evenly_spaced_pairs(write_split: WriteSplit, tmp_path: Path) -> None:
    folder = write_split("train", [f"mot{n}" for n in range(10)], [f"word{n}" for n in range(10)])
    few = TokenizerOptions(kind="word", min_frequency=1, sample=4)
    prepared = prepare(
        recipe(folder, valid=None, test=None, valid_size=0, test_size=0, tokenizer=few), tmp_path / "cache"
    )
    known = prepared.source_tokenizer.pieces(range(4, prepared.source_tokenizer.size))
    assert known == ["mot0", "mot3", "mot6", "mot9"]
    assert TokenizerOptions().sampled_pairs == 10 * TokenizerOptions(kind="unigram").sampled_pairs


def test_shared_vocabulary(corpus: Path, tmp_path: Path) -> None:
    shared = TokenizerOptions(kind="word", min_frequency=1, shared=True)
    prepared = prepare(recipe(corpus, tokenizer=shared), tmp_path / "cache")
    assert prepared.target_tokenizer is prepared.source_tokenizer
    assert {"chat", "cat"} <= set(prepared.source_tokenizer.pieces(range(prepared.source_tokenizer.size)))
    assert decoded(prepared, "train", "target")[0] == "the cat 0"


def test_a_second_run_reads_what_the_first_built(corpus: Path, tmp_path: Path, monkeypatch: Any) -> None:
    first = prepare(recipe(corpus), tmp_path / "cache")
    monkeypatch.setattr("hotloop.data.text.preparing.prepare.build", None)  # would fail
    moved = tmp_path / "moved"
    shutil.copytree(corpus, moved)  # other paths, other dates, same bytes
    assert prepare(recipe(moved), tmp_path / "cache").folder == first.folder


@pytest.mark.parametrize(
    "change",
    [
        {"lowercase": True},
        {"unicode_form": "nfkc"},
        {"pretokenized": True},
        {"filters": Filters(max_length=99)},
        {"tokenizer": TokenizerOptions(kind="word", min_frequency=2)},
        {"test": None, "test_size": 2},
    ],
)
def test_another_option_is_another_folder(corpus: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    first = prepare(recipe(corpus), tmp_path / "cache")
    assert prepare(recipe(corpus, **change), tmp_path / "cache").folder != first.folder


def test_sizes_of_splits_that_exist_do_not_matter(corpus: Path, tmp_path: Path) -> None:
    first = prepare(recipe(corpus, valid_size=5), tmp_path / "cache")
    assert prepare(recipe(corpus, valid_size=6), tmp_path / "cache").folder == first.folder


def test_another_byte_is_another_folder(corpus: Path, tmp_path: Path) -> None:
    first = prepare(recipe(corpus), tmp_path / "cache")
    path = corpus / "valid.en"
    path.write_bytes(path.read_bytes().replace(b"dog", b"cow"))
    second = prepare(recipe(corpus), tmp_path / "cache")
    assert second.folder != first.folder
    assert second.texts("valid")[1][0] == "the cow"


@pytest.mark.parametrize("damage", ["truncated", "missing", "no meta", "empty meta"])
def test_a_damaged_cache_is_built_again(
    corpus: Path, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = prepare(recipe(corpus), tmp_path / "cache")
    before = decoded(first, "train", "source")
    tokens, meta = first.folder / "train.source.tokens.npy", first.folder / "meta.json"
    if damage == "truncated":
        tokens.write_bytes(tokens.read_bytes()[:-3])
    elif damage == "missing":
        tokens.unlink()
    elif damage == "no meta":
        meta.unlink()
    else:
        meta.write_text("")
    again = prepare(recipe(corpus), tmp_path / "cache")
    assert again.folder == first.folder
    assert decoded(again, "train", "source") == before
    assert "incomplete" in caplog.text


def test_a_killed_build_is_started_afresh(corpus: Path, tmp_path: Path) -> None:
    first = prepare(recipe(corpus), tmp_path / "cache")
    left = first.folder.with_name(f"{first.folder.name}.building")
    first.folder.rename(left)
    (left / "meta.json").unlink()
    (left / "garbage").write_text("x")
    again = prepare(recipe(corpus), tmp_path / "cache")
    assert not left.exists()
    assert not (again.folder / "garbage").exists()


def test_killing_a_build_leaves_no_process_and_nothing_in_the_way(write_split: WriteSplit, tmp_path: Path) -> None:
    lines = [f"mot{n % 97} {'mot ' * 20} {n}" for n in range(20_000)]
    folder = write_split("train", lines, lines)
    program = (
        "import sys; from pathlib import Path;"
        "from hotloop.data.text.corpora import BitextFolder; from hotloop.data.text.preparing.recipe import Recipe;"
        "from hotloop.data.text.preparing.prepare import prepare;"
        "f = BitextFolder(dir=sys.argv[1], valid=None, test=None).files();"
        "prepare(Recipe(files=f, src_lang='fr', tgt_lang='en'), Path(sys.argv[2]), workers=2)"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(folder), str(tmp_path / "cache")])
    processes: list[psutil.Process] = []
    deadline = time.monotonic() + 30
    while len(processes) < 3 and time.monotonic() < deadline:  # two workers and Python's resource tracker
        processes = psutil.Process(child.pid).children(recursive=True)
        time.sleep(0.01)
    child.kill()
    child.wait()
    assert len(processes) >= 3
    assert list((tmp_path / "cache").glob("*.building"))
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not alive
    again = prepare(recipe(folder, valid=None, test=None, tokenizer=TokenizerOptions()), tmp_path / "cache")
    assert again.pairs["train"] == 18_000
    assert not list((tmp_path / "cache").glob("*.building"))


@pytest.mark.parametrize("moment", ["first", "working"])
def test_two_interrupts_end_a_build_and_leave_nothing(write_split: WriteSplit, tmp_path: Path, moment: str) -> None:
    lines = [f"mot{n % 97} {'mot ' * 20} {n}" for n in range(60_000)]
    folder = write_split("train", lines, lines)
    program = (
        "import signal, sys; from pathlib import Path;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"  # a shell's background jobs inherit another
        "from hotloop.data.text.corpora import BitextFolder; from hotloop.data.text.preparing.recipe import Recipe;"
        "from hotloop.data.text.preparing.prepare import prepare;"
        "f = BitextFolder(dir=sys.argv[1], valid=None, test=None).files();"
        "prepare(Recipe(files=f, src_lang='fr', tgt_lang='en'), Path(sys.argv[2]), workers=2)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(folder), str(tmp_path / "cache")],
        start_new_session=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    parent, processes = psutil.Process(child.pid), []
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:  # until the first worker is there, or lines have come back
            processes = parent.children(recursive=True)
            written = [path for path in (tmp_path / "cache").glob("*.building/all.target.txt") if path.stat().st_size]
            if written if moment == "working" else len(processes) >= 2:
                break
            time.sleep(0.005)
        for _ in range(2):  # as a terminal does: to the whole group
            os.killpg(child.pid, signal.SIGINT)
            time.sleep(0.02)
        child.wait(timeout=60)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    assert len(processes) >= 2
    assert child.returncode in (1, 130, -signal.SIGINT)
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not alive
    assert not list((tmp_path / "cache").glob("*.building"))


def test_another_handler_of_interrupts_stays() -> None:
    mine = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with one_interrupt():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt), one_interrupt():
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)  # ignored: the clean-up goes on
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, mine)


def test_an_error_ends_busy_workers_at_once() -> None:
    with pytest.raises(ZeroDivisionError), worker_processes(2) as executor:
        for _ in range(4):
            executor.submit(time.sleep, 600)
        while not executor._processes:
            time.sleep(0.01)
        found = [psutil.Process(pid) for pid in executor._processes]
        _ = 1 / 0
    assert found
    assert not psutil.wait_procs(found, timeout=20)[1]


def test_long_lines_are_told_with_file_and_line(write_split: WriteSplit, tmp_path: Path) -> None:
    short, long = [f"le chat {n}" for n in range(12)], "mot " * 1_500
    folder = write_split("train", [*short, f"x {long}"], [*short, long])
    write_split("valid", ["a", "b", long, *"c" * 6_000, f"{long} d"], ["a"] * 6_004)
    write_split("test", ["a", "b"], ["a", long])
    prepared = prepare(recipe(folder, filters=Filters(max_length=None)), tmp_path / "cache")
    told = {text.split(":")[0]: text for text in prepared.warnings}
    assert set(told) == {"training set", "valid.fr, line 3, 6,004", "test.en, line 2"}
    assert "2 source line(s) of more than 1,000 tokens, the longest 1,502" in told["valid.fr, line 3, 6,004"]
    assert "task.max_length" in told["valid.fr, line 3, 6,004"]
    assert "data.filters.max_length" in told["training set"]
    assert prepared.pairs == {"train": 13, "valid": 6_004, "test": 2}
    again = prepare(recipe(folder, filters=Filters(max_length=None)), tmp_path / "cache")
    assert again.warnings == prepared.warnings  # from the cache too


def test_the_line_of_a_table_counts_its_header(tmp_path: Path) -> None:
    rows = ["fr\ten", "a\tb", "mot " * 1_500 + "\tx"]
    for name, lines in (("train", ["fr\ten", "a\tb"]), ("valid", rows)):
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines))
    files = BitextFolder(dir=tmp_path, test=None, columns=("fr", "en")).files()
    keep = Filters(leaks="keep")
    made = Recipe(files=files, src_lang="fr", tgt_lang="en", test_size=0, tokenizer=WORDS, filters=keep)
    assert prepare(made, tmp_path / "cache").warnings[0].startswith("valid.tsv, line 3: 1 source line(s)")


def test_splits_from_training_that_cannot_be_filled(write_split: WriteSplit, tmp_path: Path) -> None:
    folder = write_split("train", ["le chat"] * 30 + ["a", "b"], [f"the cat {n}" for n in range(32)])
    prepared = prepare(recipe(folder, valid=None, test=None, valid_size=5, test_size=0), tmp_path / "cache")
    assert prepared.pairs == {"train": 30, "valid": 2}
    assert "2 of the 5 pairs that data.valid_size asks for" in prepared.warnings[0]
    write_split("train", ["le chat"] * 30, [f"the cat {n}" for n in range(30)])
    with pytest.raises(UserError, match=r"0 of the 5 pairs that data\.valid_size asks for"):
        prepare(recipe(folder, valid=None, test=None, valid_size=5, test_size=0), tmp_path / "cache")


@pytest.mark.parametrize("where", ["/dev/null/x", "/dev/null/x/y", "/proc/foo", "file", "file/x", "n" * 300])
def test_a_cache_folder_that_cannot_be_is_told(corpus: Path, tmp_path: Path, monkeypatch: Any, where: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(UserError, match=r"cannot make the folder data\.cache_dir="):
        prepare(recipe(corpus), Path(where))


@pytest.mark.parametrize("call", ["write_json", "FileLock", "content_hash"])
def test_a_cache_folder_that_cannot_be_written_to_is_told(
    corpus: Path, tmp_path: Path, monkeypatch: Any, call: str
) -> None:
    def refused(path: Any, *_: Any, memo: Path = tmp_path / "cache" / "x", **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(memo))

    place = {"content_hash": "text.preparing.recipe"}.get(call, "cache_folder")
    monkeypatch.setattr(f"hotloop.data.{place}.{call}", refused)
    with pytest.raises(UserError, match=r"cannot write to data\.cache_dir=.*Permission denied"):
        prepare(recipe(corpus), tmp_path / "cache")


def test_errors_of_other_files_keep_their_place(corpus: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def gone(*_: Any) -> None:
        raise FileNotFoundError(2, "No such file", "/elsewhere")

    monkeypatch.setattr("hotloop.data.text.preparing.prepare.build", gone)
    with pytest.raises(FileNotFoundError):
        prepare(recipe(corpus), tmp_path / "cache")


def test_a_failed_build_leaves_nothing_that_looks_finished(corpus: Path, tmp_path: Path) -> None:
    with open(corpus / "train.en", "ab") as file:
        file.write(b"\xff\n")
    with pytest.raises(UserError, match=r"train\.en, line 13"):
        prepare(recipe(corpus), tmp_path / "cache")
    assert {path.suffix for path in (tmp_path / "cache").iterdir()} <= {".lock", ".json"}


def test_two_builders_at_once_build_once(corpus: Path, tmp_path: Path, monkeypatch: Any) -> None:
    import hotloop.data.text.preparing.prepare as module

    built, real, folders = [], module.build, []

    def counted(*args: Any) -> dict[str, Any]:
        built.append(1)
        return real(*args)

    monkeypatch.setattr(module, "build", counted)
    threads = [
        threading.Thread(target=lambda: folders.append(prepare(recipe(corpus), tmp_path / "cache").folder))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(built) == 1
    assert len(folders) == 4
    assert len(set(folders)) == 1


def test_several_processes_build_the_same_bytes(
    write_split: WriteSplit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [f"mot{n % 97} mot{n % 89} mot{n % 83} {n}" for n in range(12_000)]
    folder = write_split("train", lines, [line.upper() for line in lines])
    options = {"valid": None, "test": None, "tokenizer": TokenizerOptions(kind="bpe", vocabulary_size=300)}
    one, two = (prepare(recipe(folder, **options), tmp_path / f"cache{n}", workers=n) for n in (1, 2))
    assert {path.name for path in one.folder.iterdir()} == {path.name for path in two.folder.iterdir()}
    for path in one.folder.iterdir():
        if path.name != "meta.json":
            assert path.read_bytes() == (two.folder / path.name).read_bytes()
    assert not list(one.folder.glob("*train*.txt"))
    prepare(recipe(folder, **{**options, "tokenizer": TokenizerOptions(vocabulary_size=90_000)}), tmp_path, workers=2)
    assert "vocabulary_size 90000 lowered to" in caplog.text  # what is logged elsewhere is heard here


def test_the_cache_does_not_depend_on_the_hash_seed(corpus: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path;"
        "from hotloop.data.text.corpora import BitextFolder; from hotloop.data.text.preparing.recipe import Recipe;"
        "from hotloop.data.text.preparing.prepare import prepare;"
        "from hotloop.data.text.tokenizer import TokenizerOptions;"
        "r = Recipe(files=BitextFolder(dir=sys.argv[1]).files(), src_lang='fr', tgt_lang='en',"
        " tokenizer=TokenizerOptions(kind='unigram', vocabulary_size=60));"
        "print(prepare(r, Path(sys.argv[2])).folder); print('torch' in sys.modules)"
    )
    folders = []
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", program, str(corpus), str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True, timeout=120,
        ).stdout.split("\n")  # fmt: skip
        assert told[1] == "False"  # the processes that encode must not load torch
        folders.append(Path(told[0]))
    assert folders[0].name == folders[1].name
    for path in folders[0].iterdir():
        if path.name != "meta.json":
            assert path.read_bytes() == (folders[1] / path.name).read_bytes()


def test_absent_splits_are_taken_from_training(write_split: WriteSplit, tmp_path: Path) -> None:
    lines = [f"mot {n // 2}" for n in range(200)]  # every source twice, with other targets
    folder = write_split("train", lines, [f"word {n}" for n in range(200)])
    prepared = prepare(recipe(folder, valid=None, test=None, valid_size=20, test_size=10), tmp_path / "cache")
    assert prepared.pairs == {"train": 170, "valid": 20, "test": 10}
    sources = [set(decoded(prepared, "train", "source")), *(set(prepared.texts(s)[0]) for s in ("valid", "test"))]
    assert [len(found) for found in sources] == [85, 10, 5]
    assert len(set.union(*sources)) == 100
    assert all(int(t.split()[1]) // 2 == int(s.split()[1]) for s, t in zip(*prepared.texts("valid"), strict=True))
    none = prepare(recipe(folder, valid=None, test=None, valid_size=0, test_size=0), tmp_path / "cache")
    assert none.pairs == {"train": 200}


def test_a_tokenised_corpus_gives_natural_references(write_split: WriteSplit, tmp_path: Path) -> None:
    french, english = ["l&apos; eau est froide ."] * 3, ["it &apos;s cold , isn &apos;t it ?"] * 3
    folder = write_split("train", french, english)
    write_split("valid", french, english)
    keep = Filters(duplicates="keep", leaks="keep")
    prepared = prepare(recipe(folder, test=None, test_size=0, filters=keep, pretokenized=True), tmp_path / "cache")
    source, references = prepared.texts("valid")
    assert source == french
    assert references == ["it's cold, isn't it?"] * 3
    assert decoded(prepared, "valid", "target") == references
    assert (
        prepared.source_tokenizer.encode(source)[0]
        == prepared.rows("valid", "source").gather(np.array([0]))[0][0, :-1].tolist()
    )


def test_the_drops_are_one_line_of_the_log(
    write_split: WriteSplit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    folder = write_split("train", ["a", "", "a", "b " * 200], ["x", "y", "x", "z"])
    prepare(recipe(folder, valid=None, test=None, valid_size=0, test_size=0), tmp_path / "cache")
    assert "training set: 3 of 4 pairs dropped (empty 1, too long 1, duplicate 1)" in caplog.text
    assert "prepared 1 pairs in" in caplog.text


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (([], []), r"there are no training pairs in .*train\.fr and .*train\.en$"),
        ((["", " "], ["a", "b"]), r"no training pairs are left of .*: 2 of 2 pairs dropped \(empty\)"),
        ((["le chien"], ["x"]), r"1 of 1 pairs dropped \(source also in valid or test\)"),
    ],
)
def test_nothing_left_says_why(
    corpus: Path, write_split: WriteSplit, tmp_path: Path, train: tuple[list[str], list[str]], message: str
) -> None:
    write_split("train", *train)
    with pytest.raises(UserError, match=message):
        prepare(recipe(corpus), tmp_path / "cache")


@pytest.mark.parametrize("layout", ["gz", "tsv", "jsonl.xz"])
def test_every_layout_gives_the_same_arrays(corpus: Path, tmp_path: Path, layout: str) -> None:
    plain, other = prepare(recipe(corpus), tmp_path / "cache"), tmp_path / "other"
    other.mkdir()
    for split in ("train", "valid", "test"):
        sides = [(corpus / f"{split}.{language}").read_text(encoding="utf-8") for language in ("fr", "en")]
        rows = list(zip(*(side.split("\n")[:-1] for side in sides), strict=True))
        if layout == "gz":
            for language, text in zip(("fr", "en"), sides, strict=True):
                (other / f"{split}.{language}.gz").write_bytes(gzip.compress(text.encode()))
        elif layout == "tsv":
            (other / f"{split}.tsv").write_bytes("".join(f"{fr}\t{en}\n" for fr, en in rows).encode())
        else:
            text = "".join(json.dumps({"translation": {"en": en, "fr": fr}}) + "\n" for fr, en in rows)
            (other / f"{split}.jsonl.xz").write_bytes(lzma.compress(text.encode()))
    again = prepare(recipe(other), tmp_path / "cache")
    assert again.folder != plain.folder
    for path in plain.folder.iterdir():
        if path.name != "meta.json":
            assert path.read_bytes() == (again.folder / path.name).read_bytes()


def test_a_corpus_without_training_pairs_is_refused(corpus: Path) -> None:
    files = {"test": BitextFolder(dir=corpus).files()["test"]}
    with pytest.raises(UserError, match="no train split"):
        Recipe(files=files, src_lang="fr", tgt_lang="en")


@pytest.mark.parametrize("split", ["valid", "test"])
def test_an_empty_split_is_refused(corpus: Path, write_split: WriteSplit, tmp_path: Path, split: str) -> None:
    write_split(split, [], [])
    with pytest.raises(UserError, match=f"the {split} split is empty"):
        prepare(recipe(corpus), tmp_path / "cache")


def test_more_than_65_536_ids_take_four_bytes(write_split: WriteSplit, tmp_path: Path) -> None:
    lines = [" ".join(f"m{n + k}" for k in range(50)) for n in range(0, 70_000, 50)]
    folder = write_split("train", lines, ["x"] * len(lines))
    words = TokenizerOptions(kind="word", vocabulary_size=100_000, min_frequency=1)
    prepared = prepare(
        recipe(folder, valid=None, test=None, valid_size=0, test_size=0, tokenizer=words), tmp_path / "cache"
    )
    assert prepared.source_tokenizer.size == 70_004
    assert decoded(prepared, "train", "source") == lines


def test_a_disk_that_is_full_is_told(corpus: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hotloop.data.text.preparing.prepare.build", full)
    with pytest.raises(UserError, match=r"no space left.*data\.cache_dir"):
        prepare(recipe(corpus), tmp_path / "cache")


def test_meta_holds_no_path_and_no_date(corpus: Path, tmp_path: Path) -> None:
    prepared = prepare(recipe(corpus), tmp_path / "cache")
    text = json.dumps(prepared.meta["recipe"]) + (prepared.folder / "tokenizers.json").read_text()
    assert str(tmp_path) not in text
