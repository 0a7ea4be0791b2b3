"""A whole diagnosis of tiny models on tiny data."""

import json
import shlex
from types import SimpleNamespace

import pytest

from hotloop.diagnose import trial
from hotloop.diagnose.diagnosis import diagnose
from hotloop.diagnose.levers import Lever, try_levers
from hotloop.errors import UserError
from hotloop.run import train
from tests.conftest import TINY, TINY_IMAGES, compose_config


@pytest.fixture
def diagnose_tiny(tmp_path, bitext, pictures):
    def run(*overrides, images=False):
        given = [
            "model=inception" if images else "model=seq2seq_attn",
            "data=images" if images else "data=bitext",
            f"data.dir={pictures if images else bitext}",
            f"data.cache_dir={tmp_path / 'cache'}",
            "name=test",
            f"run_dir={tmp_path / 'diagnosis'}",
            *(TINY_IMAGES if images else TINY),
            *([] if any(o.startswith("diagnose.") for o in overrides) else ["diagnose.minutes=0.1"]),
            *overrides,
        ]

        def compose(*, overrides):
            return compose_config(*overrides, config_name="diagnose")

        advice = diagnose(compose(overrides=given), overrides=given, compose=compose)
        content = json.loads((tmp_path / "diagnosis" / "diagnosis.json").read_text(encoding="utf-8"))
        return advice, content, tmp_path / "diagnosis"

    return run


def test_a_decoder_that_goes_word_by_word_is_tried_at_once_and_the_command_can_be_run(diagnose_tiny, tmp_path, capsys):
    _, content, folder = diagnose_tiny("model.decoding=stepwise")
    parallel = next(lever for lever in content["levers"] if lever["overrides"] == ["model.decoding=parallel"])
    assert parallel["rounds"] >= 2 and parallel["speed_up"] > 0
    assert parallel["loss_difference"] < 0.1
    assert "model.decoding=parallel" in capsys.readouterr().out

    command = shlex.split(parallel["command"])
    assert command[1] == "train.py"
    assert "model.decoding=parallel" in command and "model.decoding=stepwise" not in command
    assert not [part for part in command if part.startswith(("diagnose", "run_dir"))]
    train(compose_config(*command[2:], f"run_dir={tmp_path / 'run'}", "trainer.max_steps=2", "test=false"))

    page = (folder / "diagnosis.md").read_text(encoding="utf-8")
    assert content["base_command"] in page
    assert "model.decoding=parallel" in page
    assert (folder / "diagnosis.png").stat().st_size > 5_000
    assert sorted(path.name for path in folder.iterdir()) == ["diagnosis.json", "diagnosis.md", "diagnosis.png"]


def test_pictures_are_diagnosed_too_and_their_cache_is_not_made_for_it(diagnose_tiny, tmp_path):
    _, content, _ = diagnose_tiny("data.cache=none", "model.head=flatten", "model.pool=4", images=True)
    tried = {" ".join(lever["overrides"]): lever["verdict"] for lever in content["levers"]}
    assert tried["data.cache=auto"] in ("faster", "noise", "slower")
    assert "model.head=gap" in tried
    assert not list(tmp_path.rglob("cache/**/*.npy"))


def test_a_command_with_a_seed_is_measured_with_it(diagnose_tiny):
    _, content, _ = diagnose_tiny("seed=3")
    assert content["seed"] == 3
    assert "seed=3" in content["base_command"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("diagnose.minutes=0", "diagnose.minutes=0"),
        ("diagnose.minutes=soon", "diagnose.minutes='soon'"),
        ("ckpt_path=last", "ckpt_path"),
        ("model.hidden=-1", "hidden"),
    ],
)
def test_mistakes_are_told_in_one_line(diagnose_tiny, override, message):
    with pytest.raises(UserError, match=message):
        diagnose_tiny(override)


def test_a_lever_that_the_settings_refuse_is_told_with_the_reason():
    def refuse(overrides):
        raise UserError("b=2 needs c=3")

    found = try_levers([Lever(("b=2",))], settings={}, data=None, settings_with=refuse, seconds=60.0)
    assert [(each.lever.name, each.reason) for each in found] == [("b=2", "b=2 needs c=3")]
    found = try_levers([Lever(("b=2",))], settings={}, data=None, settings_with=refuse, seconds=0.0)
    assert "diagnose.minutes" in found[0].reason


def test_a_slow_step_is_measured_on_fewer_samples(monkeypatch):
    taken = {2: 0.4, 4: 0.8, 8: 1.6, 16: 3.2}

    class FakeTrial:
        def __init__(self, settings, data):
            self.size = data.batch_size

        def step(self):
            return SimpleNamespace(seconds=taken[self.size])

        def close(self):
            pass

    monkeypatch.setattr(trial, "Trial", FakeTrial)
    data = SimpleNamespace(batch_size=64)
    settings = {"data": {"batch_size": 64, "max_tokens": None}}
    assert trial.affordable_batch(settings, data, seconds=1.0) == 4
    assert trial.affordable_batch(settings, data, seconds=0.1) == 2
    assert trial.affordable_batch(settings, data, seconds=20.0) is None
    assert data.batch_size == 64
