"""A build that was killed goes on where it was, and ends with the same bytes."""

import json
import logging
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop.data import cache_folder
from hotloop.data.text.corpora import BitextFolder
from hotloop.data.text.preparing import build as building
from hotloop.data.text.preparing import journal as journals
from hotloop.data.text.preparing.filters import Filters
from hotloop.data.text.preparing.journal import Journal
from hotloop.data.text.preparing.prepare import PreparedCorpus, prepare
from hotloop.data.text.preparing.recipe import Recipe
from hotloop.data.text.preparing.store import TokenRows, TokenWriter
from hotloop.data.text.tokenizer import TokenizerOptions
from hotloop.errors import UserError

WriteSplit = Callable[..., Path]

# Kills itself at the n-th note of the journal, before or after it is written; prints how often it was called.
PROGRAM = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from hotloop.data.text.corpora import BitextFolder
    from hotloop.data.text.preparing import build, chunks, journal
    from hotloop.data.text.preparing.prepare import prepare
    from hotloop.data.text.preparing.recipe import Recipe
    from hotloop.data.text.tokenizer import TokenizerOptions

    corpus, work = Path(sys.argv[1]), Path(sys.argv[2])
    chunks.PAIRS = 100
    journal._SECONDS_BETWEEN_NOTES = -1.0
    note, remove, learn = journal.Journal.note, journal.Journal.remove, build._learn
    calls, learnt = 0, work / "learnt"

    def prepared(cache):
        options = TokenizerOptions(kind="bpe", vocabulary_size=80)
        files = BitextFolder(dir=corpus, test=None).files()
        prepare(Recipe(files=files, src_lang="fr", tgt_lang="en", test_size=20, tokenizer=options), cache, workers=1)

    def in_a_child(cache, kill_at, moment):
        def dying(real):
            def call(self, *args, **options):
                global calls
                calls += 1
                if calls == kill_at and moment == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
                real(self, *args, **options)
                if calls == kill_at and moment == "after":
                    os.kill(os.getpid(), signal.SIGKILL)
            return call

        def learning(*args):
            with open(learnt, "a") as file:
                file.write(f"{cache.name}\\n")
            return learn(*args)

        child = os.fork()
        if child == 0:
            journal.Journal.note, journal.Journal.remove, build._learn = dying(note), dying(remove), learning
            prepared(cache)
            os._exit(0)
        return os.waitpid(child, 0)[1]

    assert in_a_child(work / "whole", 0, "") == 0
    for moment in ("before", "after"):
        for kill_at in range(1, 100 if moment == "before" else 1):  # after a note is before the next
            cache = work / f"{moment}-{kill_at}"
            killed = in_a_child(cache, kill_at, moment)
            assert killed in (0, signal.SIGKILL), killed
            if killed == 0:
                break
            assert in_a_child(cache, 0, "") == 0
        runs = 1
        # two calls of a run may be removals that were done before
        while in_a_child(work / f"{moment}-again-and-again", 3, moment) and runs < 100:
            runs += 1
        print(moment, runs)
    """
)


SMALL: dict[str, Any] = {
    "src_lang": "fr",
    "tgt_lang": "en",
    "tokenizer": TokenizerOptions(kind="word", min_frequency=1),
    "valid_size": 20,
    "test_size": 0,
}


def recipe(folder: Path, **more: Any) -> Recipe:
    return Recipe(files=BitextFolder(dir=folder, valid=None, test=None).files(), **{**SMALL, **more})


@pytest.fixture
def corpus(write_split: WriteSplit) -> Path:
    # with repeats and empty lines
    lines = [f"mot{n % 17} {'été ' * (n % 5)}{n % 130}" if n % 40 else "" for n in range(260)]
    write_split("train", lines, [line.upper() for line in lines])
    return write_split("valid", ["mot3", "", lines[7]], ["x", "y", "z"])


def content(cache: Path) -> dict[str, bytes]:
    (folder,) = (path for path in cache.iterdir() if path.is_dir())
    assert not folder.name.endswith(".building")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "meta.json"}


def facts(cache: Path) -> dict[str, Any]:
    (path,) = cache.glob("*/meta.json")
    meta = json.loads(path.read_text())
    return {key: value for key, value in meta.items() if key not in ("seconds", "stages")}


def test_killed_anywhere_it_goes_on_to_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(corpus), str(tmp_path)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    told = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in told] == ["before", "after"]
    # reading 2, choosing 1, learning 1, encoding 3 splits, each with notes between; removing 2
    assert all(int(runs) > 5 for _, runs in told)
    caches = sorted(path for path in tmp_path.iterdir() if path.name.startswith(("before", "after")))
    assert len(caches) > 15
    for cache in caches:
        assert content(cache) == content(tmp_path / "whole"), cache
        assert facts(cache) == facts(tmp_path / "whole"), cache
    learnt = (tmp_path / "learnt").read_text().split()
    assert learnt.count("after-again-and-again") == 1  # what was noted is not done again
    assert set(content(tmp_path / "whole")) == {
        "tokenizers.json",
        *(f"{split}.{side}.{array}.npy" for split in ("train", "valid", "test") for side in ("source", "target")
          for array in ("tokens", "offsets")),
        *(f"{split}.{side}.txt" for split in ("valid", "test") for side in ("source", "target")),
    }  # fmt: skip


@pytest.fixture
def broken_off(corpus: Path, tmp_path: Path, monkeypatch: Any) -> Path:
    """The draft of a build that was interrupted when it had learnt the vocabularies."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(building, "_encode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepare(recipe(corpus), tmp_path / "cache")
    (draft,) = (tmp_path / "cache").glob("*.building")
    return draft


def finished(corpus: Path, tmp_path: Path) -> PreparedCorpus:
    prepared = prepare(recipe(corpus), tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*.building"))
    assert content(tmp_path / "cache") == content_of_another(corpus, tmp_path)
    return prepared


def content_of_another(corpus: Path, tmp_path: Path) -> dict[str, bytes]:
    prepare(recipe(corpus), tmp_path / "another")
    return content(tmp_path / "another")


def test_an_interrupted_build_says_that_it_goes_on(
    corpus: Path, broken_off: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    caplog.set_level(logging.INFO)
    with monkeypatch.context() as patch:
        patch.setattr(building, "_learn", None)  # would fail
        patch.setattr(building, "_clean", None)
        prepare(recipe(corpus), tmp_path / "cache")
    assert "going on with a preparation that was broken off (done: reading train, choosing, learning)" in caplog.text
    assert set(finished(corpus, tmp_path).meta["stages"]) >= {"reading train", "learning", "encoding valid"}


@pytest.mark.parametrize("damage", ["journal", "no journal", "old journal", "shorter", "missing", "longer", "more"])
def test_a_draft_that_does_not_fit_its_journal_is_no_danger(
    corpus: Path, broken_off: Path, tmp_path: Path, damage: str
) -> None:
    journal, text = broken_off / "journal.json", broken_off / "train.target.txt"
    if damage == "journal":
        journal.write_text('{"version": 1, "sizes": [')
    elif damage == "no journal":
        journal.unlink()
    elif damage == "old journal":
        journal.write_text(journal.read_text().replace('"version": 1', '"version": 0'))
    elif damage == "shorter":
        text.write_bytes(text.read_bytes()[:-1])
    elif damage == "missing":
        text.unlink()
    elif damage == "longer":
        text.write_bytes(text.read_bytes() + b"half a li")
    else:
        (broken_off / "train.source.tokens.npy").write_bytes(b"half an array")
    finished(corpus, tmp_path)


def test_another_text_does_not_go_on_with_the_draft(corpus: Path, broken_off: Path, tmp_path: Path) -> None:
    with open(corpus / "train.fr", "a") as fr, open(corpus / "train.en", "a") as en:
        fr.write("un de plus\n")
        en.write("one more\n")
    prepared = prepare(recipe(corpus), tmp_path / "cache")
    assert prepared.meta["read"] == 261
    assert broken_off.exists()


@pytest.mark.parametrize(
    ("error", "kept"), [(BrokenProcessPool(), True), (OSError(28, "full"), False), (ZeroDivisionError(), False)]
)
def test_what_is_kept_of_a_build_that_failed(
    corpus: Path, broken_off: Path, tmp_path: Path, monkeypatch: Any, error: Exception, kept: bool
) -> None:
    def failing(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(building, "_encode", failing)
        with pytest.raises((UserError, ZeroDivisionError)) as told:
            prepare(recipe(corpus), tmp_path / "cache")
    assert broken_off.exists() == kept
    assert ("the same command goes on" in str(told.value)) == kept
    finished(corpus, tmp_path)


def test_old_drafts_of_other_builds_are_removed(corpus: Path, broken_off: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    held, young = cache / "held.building", cache / "young.building"
    for draft in (held, young):
        draft.mkdir()
    long_ago = time.time() - cache_folder.STALE - 60
    for path in (*broken_off.iterdir(), broken_off, held):
        os.utime(path, (long_ago, long_ago))
    with cache_folder.locked(cache / "held.lock", "it"):
        prepare(recipe(corpus, lowercase=True), cache)
    assert (broken_off.exists(), held.exists(), young.exists()) == (False, True, True)


def test_a_journal_cuts_off_what_was_written_after_its_note(tmp_path: Path) -> None:
    journal, path = Journal(tmp_path), tmp_path / "lines"
    path.write_bytes(b"one\n")
    journal.note("reading", {"read": 1}, [path])
    with open(path, "ab") as file:
        file.write(b"tw")
    (tmp_path / "stray").touch()
    again = Journal(tmp_path)
    assert path.read_bytes() == b"one\n"
    assert not (tmp_path / "stray").exists()
    assert (again.notes("reading"), again.done("reading"), again.notes("other")) == ({"read": 1}, False, {})
    assert again.seconds()["reading"] >= 0
    again.remove([path])
    assert not path.exists()
    assert Journal(tmp_path).notes("reading") == {"read": 1}


def test_notes_are_not_due_at_every_chunk(tmp_path: Path, monkeypatch: Any) -> None:
    journal = Journal(tmp_path)
    assert not journal.due
    monkeypatch.setattr(journals, "_SECONDS_BETWEEN_NOTES", -1.0)
    assert journal.due


def test_rows_are_appended_behind_those_before(tmp_path: Path) -> None:
    for append in (False, True):
        writer = TokenWriter(tmp_path / "rows", vocabulary_size=100, append=append)
        writer.append(np.array([4, 5, 6]), np.array([2, 1]))
        writer.flush()
        writer.close()
    rows = TokenRows.open(tmp_path / "rows")
    padded, lengths = rows.gather(np.arange(4))
    assert lengths.tolist() == [2, 1, 2, 1]
    assert padded.tolist() == [[4, 5], [6, 0], [4, 5], [6, 0]]
    with open(tmp_path / "rows.tokens.npy", "ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match="no whole number"):
        TokenWriter(tmp_path / "rows", vocabulary_size=100, append=True)


@pytest.mark.parametrize(
    ("tokenizer", "side", "advice"),
    [
        (TokenizerOptions(kind="word", vocabulary_size=10, min_frequency=1), "source", "vocabulary_size=… (it has 10"),
        (TokenizerOptions(kind="word", min_frequency=3), "target", "data.tokenizer.min_frequency=1"),
    ],
)
def test_many_unknown_words_are_told(
    write_split: WriteSplit, tmp_path: Path, tokenizer: TokenizerOptions, side: str, advice: str
) -> None:
    folder = write_split("train", [f"le mot{n}" for n in range(50)], [f"the word{n}" for n in range(50)])
    given = recipe(folder, tokenizer=tokenizer, valid_size=0, test_size=0)
    prepared = prepare(given, tmp_path / "cache")
    share = prepared.meta["unknown"]["train"][side]
    rows = prepared.rows("train", side)
    tokens, lengths = rows.gather(np.arange(50))
    marks = 1 if side == "source" else 2
    assert share == pytest.approx(np.mean(tokens == 1) * tokens.size / (lengths.sum() - 50 * marks), abs=1e-6)
    (told,) = (text for text in prepared.warnings if f"of the {side} tokens are unknown" in text)
    assert told.startswith(f"training set: {100 * share:.1f} %")
    assert advice in told
    assert "data.tokenizer.kind=bpe" in told


def test_few_unknown_words_are_not_told(write_split: WriteSplit, tmp_path: Path) -> None:
    lines = [f"le mot {n if n == 7 else ''}" for n in range(40)]
    folder = write_split("train", lines, lines)
    words = TokenizerOptions(kind="word", min_frequency=2)
    keep = Filters(duplicates="keep")
    prepared = prepare(recipe(folder, tokenizer=words, filters=keep, valid_size=0, test_size=0), tmp_path / "cache")
    assert 0 < prepared.meta["unknown"]["train"]["source"] < 0.05
    assert prepared.warnings == []
