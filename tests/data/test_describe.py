"""Statistics of a corpus, from files to numbers and pictures."""

import json
import logging
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from PIL import Image

from hotloop.data import describe
from hotloop.errors import UserError
from tests.conftest import ROOT, compose_config, made_pairs, write_bitext

TRAIN = [("le chat dort", "the cat sleeps"), ("le chien dort", "the dog sleeps"), ("un chat", "a cat")]


def statistics(folder: Path, *overrides: str) -> dict[str, Any]:
    given = (
        "data=bitext", f"data.dir={folder}", f"data.cache_dir={folder / 'cache'}", f"output={folder / 'out'}",
        "data.prepare_workers=1",
    )  # fmt: skip
    describe.main(compose_config(*given, *overrides, config_name="describe"))
    return json.loads((folder / "out" / "describe.json").read_text(encoding="utf-8"))


def test_a_small_corpus_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bitext(
        tmp_path, "train", [*TRAIN, TRAIN[0], ("", "empty"), ("le chat rit", "the cat laughs"), ("long", "x " * 9)]
    )
    write_bitext(tmp_path, "valid", [("le chat rit", "the cat laughs"), ("la vache", "a cat")])
    write_bitext(tmp_path, "test", [("le chat", "the cow sleeps")])
    found = statistics(tmp_path, "data.filters.max_length=5")
    assert found["read"] == {"train": 7, "valid": 2, "test": 1}
    assert found["pairs"] == {"train": 3, "valid": 2, "test": 1}
    assert found["dropped"] == {"empty": 1, "long": 1, "duplicate": 1, "leak": 1}
    assert found["words"]["train"]["source"]["mean"] == round(8 / 3, 2)
    assert found["words"]["train"]["target"]["max"] == 3
    assert found["tokens"]["train"]["source"]["mean"] == round(8 / 3, 2)  # every word is a token here
    assert found["tokens"]["valid"]["target"]["mean"] == 2.5
    assert found["vocabulary"]["source"]["running"] == 8
    assert found["vocabulary"]["source"]["distinct"] == 5
    assert found["vocabulary"]["source"]["frequent"][:3] == [["chat", 2], ["dort", 2], ["le", 2]]
    assert found["unknown"]["tokenizer"]["train"] == {"source": 0.0, "target": 0.0}
    assert found["unknown"]["tokenizer"]["valid"] == {"source": 0.6, "target": 0.2}  # rit, la, vache; laughs
    assert found["unknown"]["words"]["source"]["valid"] == {"1000": 0.6}
    assert found["unknown"]["words"]["target"]["test"] == {"1000": round(1 / 3, 5)}
    assert found["duplicates"]["train"] == {"pairs": 1, "sources": 1, "targets": 1, "empty": 1}
    assert found["leaks"]["valid"] == {
        "files": {"source": 1, "target": 2, "pair": 1},
        "training": {"source": 0, "target": 1, "pair": 0},  # a target is no reason to drop a pair
    }
    assert found["leaks"]["test"]["files"] == {"source": 0, "target": 0, "pair": 0}
    assert found["batching"]["batches"] == 1
    # one batch: rows of 4 and 5 positions with EOS, BOS; the pair of 2 words wastes one in each
    assert found["batching"]["padding"]["configured"] == {"source": round(1 / 12, 4), "target": round(1 / 15, 4)}
    printed = capsys.readouterr().out
    assert "fr to en: 3 pairs train, 2 pairs valid, 1 pairs test" in printed
    assert "left out: empty 1, long 1, duplicate 1, leak 1" in printed.replace("long 1, empty 1", "empty 1, long 1")


def test_splits_taken_from_training_are_described_as_they_were_split(tmp_path: Path) -> None:
    pairs = [(f"mot{n} {n % 7}", f"word{n % 50}") for n in range(300)]
    write_bitext(tmp_path, "train", pairs)
    absent = ("data.corpus.valid=null", "data.corpus.test=null", "data.valid_size=40", "data.test_size=30")
    found = statistics(tmp_path, *absent, "data.tokenizer.kind=bpe", "data.tokenizer.vocabulary_size=60")
    assert found["pairs"] == {"train": 230, "valid": 40, "test": 30}
    assert found["read"] == {"train": 300}
    valid = found["leaks"]["valid"]
    assert valid["files"] is None
    assert (valid["training"]["source"], valid["training"]["pair"]) == (0, 0)
    assert valid["training"]["target"] > 0
    assert found["unknown"]["words"]["source"]["valid"]["1000"] > 0.4  # each has a word of its own
    assert found["words"]["test"]["source"]["mean"] == 2.0


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    write_bitext(tmp_path, "train", made_pairs(6_000))
    for name in ("valid", "test"):
        write_bitext(tmp_path, name, made_pairs(50, seed=1))
    one = statistics(tmp_path)
    assert statistics(tmp_path, "data.prepare_workers=2") == one


def test_the_pictures_can_be_opened(tmp_path: Path) -> None:
    write_bitext(tmp_path, "train", made_pairs(300))
    for name in ("valid", "test"):
        write_bitext(tmp_path, name, made_pairs(20, seed=1))
    statistics(tmp_path)
    for name in ("lengths", "vocabulary", "unknown"):
        pixels = np.asarray(Image.open(tmp_path / "out" / f"{name}.png").convert("L"))
        assert pixels.shape[1] == 1100
        assert 0.02 < (pixels < 250).mean() < 0.9


def test_one_pair_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train", "valid", "test"):
        write_bitext(tmp_path, name, [(name, "x")])
    assert statistics(tmp_path)["vocabulary"]["source"]["heaps"] is None
    assert "Heaps –: no law of growth" in capsys.readouterr().out


def test_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only sentence pairs can be described: choose data=bitext"):
        describe.main(compose_config("data=gauges", f"output={tmp_path}", config_name="describe"))


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    for name in ("train", "valid", "test"):
        write_bitext(tmp_path, name, made_pairs(20, seed=ord(name[1])))
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to output="):
        statistics(tmp_path, f"output={tmp_path / 'file' / 'x'}")


def test_the_configuration_is_that_of_the_project_one_stands_in(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert describe.conf_folder() == ROOT / "conf"
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "describe.yaml").touch()
    assert describe.conf_folder() == tmp_path / "conf"
    monkeypatch.setattr(describe, "ROOT", tmp_path / "elsewhere")
    (tmp_path / "conf" / "describe.yaml").unlink()
    with pytest.raises(UserError, match=r"no configuration here.*conf/describe\.yaml"):
        describe.conf_folder()


@pytest.fixture
def door(tmp_path: Path, monkeypatch: Any, capfd: Any) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def call(*arguments: str) -> tuple[int, str, str]:
        path = ROOT / "src" / "hotloop" / "data" / "describe.py"
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        code = 0
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            for handler in set(root.handlers) - set(handlers):
                handler.close()
            root.handlers[:], root.level = handlers, level
            GlobalHydra.instance().clear()
            HydraConfig.instance().cfg = None
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_the_command_writes_where_it_says(door: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    folder = tmp_path / "my text"
    for name in ("train", "valid", "test"):
        write_bitext(folder, name, made_pairs(30, seed=ord(name[1])))
    code, out, err = door("data=bitext", f"data.dir={folder}")
    assert code == 0, err
    assert "written to runs/describe/bitext: describe.json, lengths.png, vocabulary.png, unknown.png" in out
    assert (tmp_path / "runs" / "describe" / "bitext" / "describe.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("data=bitext", "data.dir=nowhere"), "no train files"),
        (("data=bitext",), "data.dir is required"),
        (("data=gauges",), "only sentence pairs"),
        (("data.dirr=x",), "data.dirr: no such key; did you mean data.dir"),
    ],
)
def test_mistakes_are_one_line(
    door: Callable[..., tuple[int, str, str]], tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    code, _, err = door(*arguments)
    assert code == 1
    assert told in err
    assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.glob("runs/describe/*"))


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("output=null", "output=None: expected a folder"),
        ("output=3", "output=3: expected a folder"),
        ("allow_targets=null", "allow_targets=None: expected a list"),
    ],
)
def test_values_of_another_type_are_told(tmp_path: Path, override: str, told: str) -> None:
    for name in ("train", "valid", "test"):
        write_bitext(tmp_path, name, made_pairs(20, seed=ord(name[1])))
    with pytest.raises(UserError, match=told):
        statistics(tmp_path, override)


def test_a_language_is_no_formula(tmp_path: Path) -> None:
    for name in ("train", "valid", "test"):
        write_bitext(tmp_path, name, made_pairs(20, seed=ord(name[1])))
        (tmp_path / f"{name}.en").rename(tmp_path / f"{name}.$x_{{b")
    statistics(tmp_path, "data.tgt_lang='$x_{b'")
    assert (tmp_path / "out" / "vocabulary.png").is_file()


def test_a_small_text_shows_how_its_vocabulary_grows(tmp_path: Path) -> None:
    for name, count in (("train", 300), ("valid", 20), ("test", 20)):
        write_bitext(tmp_path, name, made_pairs(count, seed=ord(name[1])))
    facts = statistics(tmp_path)["vocabulary"]["source"]
    assert len(facts["growth"]) > 10
    assert facts["growth"][0][0] < 50
    assert facts["growth"][-1] == [facts["running"], facts["distinct"]]
    assert facts["heaps"] is not None
