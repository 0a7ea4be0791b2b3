"""E15, E16, E18: a run that continues equals one that was never interrupted; its checkpoint is plain."""

import signal
import threading
import time

import pytest
import torch

from hotloop import checkpoint
from hotloop.errors import UserError

LONG = ("trainer.max_epochs=4", "scheduler=cosine", "scheduler.warmup_steps=0", "trainer.limit_train_batches=20")


def assert_same_weights(one, other):
    first, second = (checkpoint.read_checkpoint(path) for path in (one, other))
    assert first["global_step"] == second["global_step"]
    for name, value in first["state_dict"].items():
        assert torch.equal(value, second["state_dict"][name]), name
    assert first["lr_schedulers"][0]["_last_lr"] == second["lr_schedulers"][0]["_last_lr"]


def stop_after(monkeypatch, batches: int):
    """Ctrl-C in the training step number `batches`."""
    from hotloop.tasks.translation import TranslationTask

    original, count = TranslationTask.training_step, [0]

    def step(self, batch, batch_idx):
        count[0] += 1
        if count[0] == batches:
            signal.raise_signal(signal.SIGINT)
        return original(self, batch, batch_idx)

    monkeypatch.setattr(TranslationTask, "training_step", step)


@pytest.mark.parametrize("workers", ["auto", "1"])
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("batches", [27, 40, 41], ids=["within an epoch", "at its last step", "at its first step"])
def test_e15_an_interrupted_run_continues_to_the_same_weights(train_tiny, monkeypatch, batches, accumulate, workers):
    if workers == "1" and (batches != 27 or accumulate != 1):
        pytest.skip("one case with workers is enough: the sampler runs in the main process")
    common = (*LONG, f"trainer.accumulate_grad_batches={accumulate}", f"data.num_workers={workers}")
    whole = train_tiny(*common, folder="whole")
    with monkeypatch.context() as patch:
        stop_after(patch, batches)
        with pytest.raises((SystemExit, KeyboardInterrupt)):
            train_tiny(*common, folder="first")
    interrupted = whole.folder.parent / "first" / "checkpoints" / "interrupted.ckpt"
    assert interrupted.is_file()
    second = train_tiny(*common, f"ckpt_path='{interrupted}'", folder="second")
    assert_same_weights(whole.last, second.last)
    assert [e["epoch"] for e in second.report["epochs"]] == [0, 1, 2, 3]
    assert second.losses == pytest.approx(whole.losses, abs=1e-6)
    assert second.report["metrics"]["val/loss"] == pytest.approx(whole.report["metrics"]["val/loss"], abs=1e-7)


def test_e15_a_run_continues_after_its_last_epoch(train_tiny):
    """The first resumed step is that of the third epoch, with the learning rate that belongs there."""
    whole = train_tiny(*LONG, folder="whole")
    content = checkpoint.read_checkpoint(
        train_tiny(*LONG, "trainer.max_epochs=2", "scheduler=constant", folder="a").last
    )
    assert content["global_step"] == 40
    with pytest.raises((SystemExit, KeyboardInterrupt)), pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 40)
        train_tiny(*LONG, folder="half")
    half = whole.folder.parent / "half" / "checkpoints" / "interrupted.ckpt"
    second = train_tiny(*LONG, f"ckpt_path='{half}'", folder="second")
    rates = [epoch["learning_rate"] for epoch in second.report["epochs"]]
    assert rates == pytest.approx([epoch["learning_rate"] for epoch in whole.report["epochs"]])
    assert_same_weights(whole.last, second.last)


def test_e15_best_score_and_patience_are_carried_over(train_tiny):
    common = (*LONG, "callbacks=early_stopping", "callbacks.progress=null", "optimizer.lr=0.0", "scheduler=constant")
    first = train_tiny(*common, "trainer.max_epochs=2", "callbacks.early_stopping.patience=3", folder="first")
    second = train_tiny(
        *common,
        "trainer.max_epochs=20",
        "callbacks.early_stopping.patience=3",
        f"ckpt_path='{first.last}'",
        folder="second",
    )
    assert len(second.report["epochs"]) == 4  # nothing ever improves: one good epoch and three without
    saver = checkpoint.read_checkpoint(second.last)["callbacks"]
    (state,) = [value for name, value in saver.items() if "Checkpoint" in name and "'val/loss'" in name]
    assert float(state["best_model_score"]) == pytest.approx(first.value)
    assert state["best_model_path"].startswith(str(first.folder))


def test_e15_last_finds_the_newest_checkpoint_of_that_name(train_tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = train_tiny(*LONG, "trainer.max_epochs=1", folder="runs/test/old")
    time.sleep(0.01)
    new = train_tiny(*LONG, "trainer.max_epochs=2", folder="runs/test/new")
    assert checkpoint.find_last(tmp_path / "runs" / "test") == new.last
    old.last.touch()
    assert checkpoint.find_last(tmp_path / "runs" / "test") == old.last
    third = train_tiny(*LONG, "ckpt_path=last", folder="runs/test/third")
    assert [e["epoch"] for e in third.report["epochs"]] == [0, 1, 2, 3]


def test_e15_another_model_is_refused(train_tiny):
    first = train_tiny(*LONG, "trainer.max_epochs=1", folder="first")
    with pytest.raises(UserError, match=r"model\.hidden 32 → 48"):
        train_tiny(*LONG, "model.hidden=48", f"ckpt_path='{first.last}'", folder="second")


def test_e15_options_that_the_checkpoint_would_outvote_are_refused(train_tiny):
    first = train_tiny(*LONG, "trainer.max_epochs=1", folder="first")
    for override, told in (
        ("optimizer.lr=5e-4", r"optimizer\.lr 0\.003 → 0\.0005"),
        ("optimizer.weight_decay=0.1", r"optimizer\.weight_decay"),
        ("optimizer=sgd", r"optimizer\._target_"),
    ):
        with pytest.raises(UserError, match=told):
            train_tiny(*LONG, override, f"ckpt_path='{first.last}'", folder="second")


@pytest.mark.parametrize(
    "override", ["data.lowercase=true", "data.tokenizer.vocabulary_size=30", "data.tokenizer.kind=bpe"]
)
def test_e15_other_text_than_the_checkpoint_knows_is_refused(train_tiny, override):
    first = train_tiny(*LONG, "trainer.max_epochs=1", "data.tokenizer.vocabulary_size=44", folder="first")
    with pytest.raises(UserError, match="was trained with another"):
        train_tiny(*LONG, "data.tokenizer.vocabulary_size=44", override, f"ckpt_path='{first.last}'", folder="second")


def test_e15_a_resumed_run_keeps_its_seed_unless_another_is_given(train_tiny):
    first = train_tiny(*LONG, "trainer.max_epochs=1", "seed=77", folder="first")
    kept = train_tiny(*LONG, "trainer.max_epochs=2", "seed=null", f"ckpt_path='{first.last}'", folder="second")
    other = train_tiny(*LONG, "trainer.max_epochs=2", "seed=5", f"ckpt_path='{first.last}'", folder="third")
    assert kept.report["seed"] == 77 and other.report["seed"] == 5


def test_e15_a_finished_run_says_that_nothing_is_left(train_tiny):
    first = train_tiny(*LONG, "trainer.max_epochs=1", folder="first")
    with pytest.raises(UserError, match="already finished 1 epochs"):
        train_tiny(*LONG, "trainer.max_epochs=1", f"ckpt_path='{first.last}'", folder="second")


def test_e15_ctrl_c_in_the_last_validation_says_how_to_go_on(train_tiny, monkeypatch, caplog):
    from hotloop.tasks.translation import TranslationTask

    original = TranslationTask.validation_step

    def step(self, batch, batch_idx):
        if not self.trainer.sanity_checking and batch_idx == 0:
            signal.raise_signal(signal.SIGINT)
        return original(self, batch, batch_idx)

    whole = train_tiny(*LONG, "scheduler=constant", "trainer.max_epochs=2", folder="whole")
    with monkeypatch.context() as patch, caplog.at_level("INFO"), pytest.raises(SystemExit):
        patch.setattr(TranslationTask, "validation_step", step)
        train_tiny(*LONG, "scheduler=constant", "trainer.max_epochs=1", folder="first")
    folder = whole.folder.parent / "first" / "checkpoints"
    told = caplog.records[-1].getMessage()
    assert "evaluate.py ckpt_path=" in told
    assert "trainer.max_epochs=2" in told and "interrupted.ckpt" in told
    interrupted = f"ckpt_path='{folder / 'interrupted.ckpt'}'"
    with pytest.raises(UserError, match=r"already finished 1 epochs .* evaluate\.py .* trainer\.max_epochs=2"):
        train_tiny(*LONG, "scheduler=constant", "trainer.max_epochs=1", interrupted, folder="again")
    second = train_tiny(*LONG, "scheduler=constant", "trainer.max_epochs=2", interrupted, folder="second")
    assert_same_weights(whole.last, second.last)
    assert [e["epoch"] for e in second.report["epochs"]] == [0, 1]


def test_e15_weights_alone_cannot_be_continued(train_tiny):
    first = train_tiny(*LONG, "trainer.max_epochs=1", "callbacks.last.save_weights_only=true", folder="first")
    with pytest.raises(UserError, match="holds weights only"):
        train_tiny(*LONG, f"ckpt_path='{first.last}'", folder="second")


def test_e16_a_checkpoint_is_plain_data_and_builds_its_model_alone(train_tiny, tmp_path, monkeypatch):
    run = train_tiny("test=true")
    content = torch.load(run.last, weights_only=True)
    checkpoint.plain({key: value for key, value in content.items() if key == "hotloop"})
    monkeypatch.chdir(tmp_path)  # no configuration at hand
    from hotloop.inference import load_translation

    task = load_translation(run.last)
    assert sum(p.numel() for p in task.model.parameters()) == run.report["parameters"]


def test_e18_file_names_hold_nothing_that_hydra_reads_as_grammar(train_tiny):
    run = train_tiny("trainer.max_epochs=2")
    names = [path.name for path in (run.folder / "checkpoints").iterdir()]
    assert names and not any(character in name for name in names for character in "=,()[]{} ")


def test_a_second_ctrl_c_needs_no_patience():
    """The handler of the callback gives way at the second signal."""
    from hotloop.callbacks.interruption import Interrupted, Interruption

    assert threading.current_thread() is threading.main_thread()
    callback = Interruption(path="unused.ckpt")
    previous = signal.getsignal(signal.SIGINT)
    try:
        callback._handle(signal.SIGINT, None)
        with pytest.raises(Interrupted):
            callback._handle(signal.SIGINT, None)
    finally:
        signal.signal(signal.SIGINT, previous)
