"""E33: no entry point opens a checkpoint that would run its author's code."""

import pickle
from pathlib import Path

import pytest
import torch

from hotloop import checkpoint
from hotloop.errors import UserError
from tests.conftest import ROOT, compose_config


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self):
        return (open, (str(self.canary), "w"))


@pytest.fixture
def canary(tmp_path) -> Path:
    return tmp_path / "canary"


@pytest.fixture(params=["zip", "raw pickle", "inside hotloop", "inside the weights"])
def evil(request, tmp_path, canary) -> Path:
    path = tmp_path / "evil.ckpt"
    content = {"state_dict": {}, "hotloop": {"format": 1, "model": {}}, "x": Bomb(canary)}
    if request.param == "raw pickle":
        path.write_bytes(pickle.dumps(content))
    elif request.param == "inside hotloop":
        torch.save({"state_dict": {}, "hotloop": {"format": 1, "model": Bomb(canary)}}, path)
    elif request.param == "inside the weights":
        torch.save({"state_dict": {"model.a": Bomb(canary)}, "hotloop": {"format": 1, "model": {}}}, path)
    else:
        torch.save(content, path)
    return path


def assert_refused(canary, call, *arguments, **options):
    with pytest.raises(UserError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value) and "evil.ckpt" in str(caught.value)
    assert not canary.exists()


def test_e33_training_on_refuses(evil, canary, train_tiny):
    assert_refused(canary, train_tiny, f"ckpt_path='{evil}'")


@pytest.mark.parametrize("force", ["0", "1"])
def test_e33_evaluating_and_predicting_refuse(evil, canary, tmp_path, monkeypatch, force):
    from hotloop.inference import evaluate, predict

    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", force)
    options = (f"ckpt_path='{evil}'",)
    assert_refused(canary, evaluate, compose_config(*options, f"run_dir={tmp_path}", config_name="evaluate"))
    assert_refused(canary, predict, compose_config(*options, config_name="predict"))


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04broken", b"\x80\x04."])
def test_e33_anything_else_is_told_apart_from_a_checkpoint(tmp_path, content):
    path = tmp_path / "evil.ckpt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"evil\.ckpt is not a checkpoint or is damaged"):
        checkpoint.read_checkpoint(path)


def test_e33_a_truncated_checkpoint_is_damaged_not_dangerous(train_tiny):
    run = train_tiny()
    run.last.write_bytes(run.last.read_bytes()[:-1000])
    with pytest.raises(UserError, match="damaged"):
        checkpoint.read_checkpoint(run.last)


def test_e33_a_foreign_checkpoint_is_told(tmp_path):
    path = tmp_path / "other.ckpt"
    torch.save({"state_dict": {}}, path)
    with pytest.raises(UserError, match="was not written by hotloop"):
        checkpoint.read_hotloop_checkpoint(path)
    torch.save({"weights": torch.zeros(1)}, path)
    with pytest.raises(UserError, match="no state_dict"):
        checkpoint.read_checkpoint(path)


@pytest.mark.parametrize(
    "name", ["os.system", "torch.nn.Linear", "Linear", "nn", "Optional", "__import__", "Seq2SeqState", None, 3]
)
def test_e33_a_checkpoint_names_no_class_but_a_model_of_ours(tmp_path, name):
    with pytest.raises(UserError, match="which is not among"):
        checkpoint.build_architecture({"class": name, "options": {}}, "evil.ckpt")


@pytest.mark.parametrize("options", [{"hidden": -1}, {"unknown": 1}, {"hidden": "x"}, {"attention": "evil"}])
def test_e33_options_that_the_model_refuses_are_told(options):
    sizes = {"source_vocabulary": 9, "target_vocabulary": 9}
    with pytest.raises(UserError, match=r"evil\.ckpt: Seq2Seq refuses"):
        checkpoint.build_architecture({"class": "Seq2Seq", "options": sizes | options}, "evil.ckpt")


def test_e33_weights_that_do_not_fit_are_told(train_tiny):
    from hotloop.inference import load_translation

    run = train_tiny()
    content = torch.load(run.last, weights_only=True)
    content["state_dict"].pop(next(iter(content["state_dict"])))
    torch.save(content, run.last)
    with pytest.raises(UserError, match="the weights do not fit"):
        load_translation(run.last)


def test_e33_nothing_in_the_project_unpickles_or_loads_yaml_unsafely():
    unsafe = (
        "weights_only=" + "False",
        "yaml." + "load(",
        "Unsafe" + "Loader",
        "Full" + "Loader",
        "allow_pickle=" + "True",
    )
    sources = [p for folder in ("src", "benchmarks", "tests") for p in (ROOT / folder).rglob("*.py")]
    for path in [*sources, *ROOT.glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert not [mark for mark in unsafe if mark in text], path


def test_e33_a_class_of_the_same_name_from_elsewhere_is_not_taken_for_it():
    saved = {"class": "Seq2Seq", "module": "my_package.seq2seq", "options": {}}
    with pytest.raises(UserError, match=r"give model_modules=\[my_package\.seq2seq\]"):
        checkpoint.build_architecture(saved, "evil.ckpt")


def test_e33_damaged_bytes_are_noticed(train_tiny):
    run = train_tiny()
    content = bytearray(run.last.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 200] = bytes(255 - byte for byte in content[middle : middle + 200])
    run.last.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        checkpoint.read_checkpoint(run.last)


def test_e33_weights_that_are_not_numbers_are_told(train_tiny):
    from hotloop.inference import load_translation

    run = train_tiny()
    content = torch.load(run.last, weights_only=True)
    name = next(iter(content["state_dict"]))
    content["state_dict"][name][0] = float("nan")
    torch.save(content, run.last)
    with pytest.raises(UserError, match=f"{name} holds NaN"):
        load_translation(run.last)


@pytest.mark.parametrize(("key", "value"), [("model", "x"), ("model", []), ("task", []), ("data", "x"), ("data", {})])
def test_e33_a_damaged_description_is_told(train_tiny, key, value):
    from hotloop.inference import load_translation

    run = train_tiny()
    content = torch.load(run.last, weights_only=True)
    content["hotloop"][key] = value
    torch.save(content, run.last)
    with pytest.raises(UserError, match=r"damaged|no tokenisers"):
        load_translation(run.last)


def test_e03_a_tokeniser_of_another_size_than_the_model_is_told(train_tiny):
    from hotloop.inference import load_translation

    run = train_tiny()
    content = torch.load(run.last, weights_only=True)
    content["hotloop"]["model"]["options"]["target_vocabulary"] += 5
    torch.save(content, run.last)
    with pytest.raises(UserError, match=r"the target tokeniser has \d+ ids, the model \d+"):
        load_translation(run.last)
