"""The command line's own work: file names as values, and mistakes told in one line."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser

from hotloop.doors import explain, file_name, group_names, option_names, quote_path

CONF = Path(__file__).resolve().parent.parent / "conf"


def value_of(argument: str) -> str:
    return OverridesParser.create().parse_override(argument).value()


@pytest.mark.parametrize(
    "path",
    [
        "runs/a/checkpoints/best.ckpt",
        "/tmp/epoch=0-step=5.ckpt",
        "/tmp/my run/best.ckpt",
        "/tmp/run [3]/best.ckpt",
        "/tmp/run (copy)/best.ckpt",
        "/tmp/{a}/best.ckpt",
        "/tmp/a,b/best.ckpt",
        "/tmp/it's/best.ckpt",
        '/tmp/"quoted"/best.ckpt',
        "C:\\runs\\best.ckpt",
        "C:\\runs\\",
        "/tmp/été/$x & y;z.ckpt",
        "-",
        "123",
        "true",
    ],
)
@pytest.mark.parametrize("key", ["ckpt_path", "data.dir", "input", "source", "data.corpus.dir", "hydra.run.dir"])
def test_e18_any_path_reaches_hydra_as_it_was_typed(key, path):
    assert str(value_of(quote_path(f"{key}={path}"))) == path


@pytest.mark.parametrize(
    "value",
    [
        "[a.ckpt,b.ckpt]",
        "[runs/a=1/epoch=3.ckpt, /tmp/my run/it's.ckpt]",
        "['a, b.ckpt',\"c.ckpt\"]",
        "[only.ckpt]",
    ],
)
def test_a_list_of_checkpoints_reaches_hydra_as_a_list(value, tmp_path, monkeypatch):
    expected = {
        "[a.ckpt,b.ckpt]": ["a.ckpt", "b.ckpt"],
        "[runs/a=1/epoch=3.ckpt, /tmp/my run/it's.ckpt]": ["runs/a=1/epoch=3.ckpt", "/tmp/my run/it's.ckpt"],
        "['a, b.ckpt',\"c.ckpt\"]": ["a, b.ckpt", "c.ckpt"],
        "[only.ckpt]": ["only.ckpt"],
    }
    found = OverridesParser.create().parse_override(quote_path(f"ckpt_path={value}")).value()
    assert [str(name) for name in found] == expected[value]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[a.ckpt,b.ckpt]").write_text("")  # a file that is called so is meant by its name
    assert str(value_of(quote_path("ckpt_path=[a.ckpt,b.ckpt]"))) == "[a.ckpt,b.ckpt]"


@pytest.mark.parametrize(
    "argument",
    [
        "model=seq2seq",
        "model.hidden=3",
        "data.tokenizer={kind: bpe}",
        "ckpt_path=null",
        "ckpt_path='a=b'",
        "data.dir=${oc.env:HOME}/x",
        "-m",
        "--cfg",
        "optimizer.betas=[0.9,0.98]",
        "~callbacks.report",
        "ckpt_path=",
    ],
)
def test_everything_else_is_left_alone(argument):
    assert quote_path(argument) == argument


def test_a_sweep_over_paths_stays_a_sweep():
    assert quote_path("data.dir=a,b", multirun=True) == "data.dir=a,b"


def message(*overrides: str) -> str:
    with pytest.raises(Exception) as caught, initialize_config_dir(str(CONF), version_base="1.3"):
        compose("train", overrides=list(overrides))
    return explain(caught.value, list(overrides), conf=CONF, config_name="train")


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("model.hiden=3", "model.hiden: no such key; did you mean model.hidden"),
        ("hidden=3", "hidden: no such key; did you mean model.hidden?"),
        ("modle=seq2seq", "modle: no such key; did you mean"),
        ("trainer.max_epoch=3", "did you mean trainer.max_epochs"),
        ("model=seq2sec", "model=seq2sec: no such option; did you mean seq2seq"),
        ("precision=16", "precision=16: choose one of 16-mixed, 16-true, 32-true"),
        ("precision=32", "precision=32: choose one of"),
        ("precision=fp16", "precision=fp16: no such option"),
        ("optimizer.lr=[1", "cannot read 'optimizer.lr=[1'"),
        ("task.lable_smoothing=0", "did you mean task.label_smoothing"),
    ],
)
def test_a_mistake_is_one_line_with_the_nearest_names(override, expected):
    text = message(override)
    assert expected in text
    assert "\n" not in text


def test_a_mistake_beside_a_chosen_group_is_explained_from_that_choice():
    assert "did you mean optimizer.momentum" in message("optimizer=sgd", "optimizer.momentun=0.9")


def test_groups_and_options_are_read_from_the_folder():
    assert {"model", "data", "precision", "strategy", "trainer", "callbacks", "logger"} <= set(group_names(CONF))
    assert "32-true" in option_names("precision", CONF)


@pytest.mark.parametrize("text", ["data.dir=../../x,seed=1", "a=/etc/passwd", "a='b c'", "x" * 300])
def test_a_job_of_a_sweep_gets_one_folder_whatever_its_overrides(text):
    name = file_name(text)
    assert 0 < len(name) <= 120 and "/" not in name and " " not in name


def test_a_list_of_packages_stays_a_list():
    assert quote_path("allow_targets=[my_package]", multirun=False) == "allow_targets=[my_package]"
    assert quote_path("data.source.valid_targets=a b.csv", multirun=False) != "data.source.valid_targets=a b.csv"
