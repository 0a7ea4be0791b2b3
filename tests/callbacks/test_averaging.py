from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from torch import Tensor, nn

from hotloop import checkpoint
from hotloop.callbacks.averaging import Averaging, averaged_tensors, mean_checkpoint
from hotloop.callbacks.checkpointing import Checkpoint
from hotloop.errors import UserError
from tests.cases.test_e15_resume import LONG, stop_after
from tests.conftest import TINY


class Watch(pl.Callback):
    """Notes the weights after each optimiser step, and those that validation sees and leaves behind."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Tensor]] = []
        self.validated: list[dict[str, Tensor]] = []
        self.after: list[dict[str, Tensor]] = []
        self._last = 0

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *args: Any) -> None:
        if trainer.global_step != self._last:
            self._last = trainer.global_step
            self.steps.append(weights_of(pl_module))

    def on_validation_batch_start(self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if batch_idx == 0 and not trainer.sanity_checking:
            self.validated.append(weights_of(pl_module))

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self.after.append(weights_of(pl_module))


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in averaged_tensors(module)}


def plain_average(start: dict[str, Tensor], steps: list[dict[str, Tensor]], ema: float) -> dict[str, Tensor]:
    average = {name: value.clone() for name, value in start.items()}
    for n, weights in enumerate(steps):
        decay = min(ema, (1 + n) / (10 + n))
        for name, value in weights.items():
            average[name] = decay * average[name] + (1 - decay) * value
    return average


def assert_close(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("accumulate", [1, 4])
def test_the_moving_average_follows_the_optimiser_steps(toy: SimpleNamespace, make_trainer, tmp_path, accumulate):
    watch, task = Watch(), toy.Task()
    start = weights_of(task)
    saver = Checkpoint(dirpath=tmp_path, filename="last", monitor=None)
    trainer = make_trainer([Averaging(ema=0.5), watch, saver], accumulate_grad_batches=accumulate)
    trainer.fit(task, toy.Data())
    assert len(watch.steps) == {1: 12, 4: 4}[accumulate]
    expected = plain_average(start, watch.steps, 0.5)
    assert_close(watch.validated[-1], expected)
    assert_close(watch.after[-1], watch.steps[-1])  # training goes on from its own weights
    assert_close(weights_of(task), expected)  # and the average is what is left at the end
    content = torch.load(saver.best_model_path, weights_only=True)
    assert content["state_dict"].keys() == toy.Task().state_dict().keys()
    assert_close(content["state_dict"], expected)
    assert_close(content["averaging"]["trained"], watch.steps[-1])


def test_a_checkpoint_of_weights_only_holds_the_average(toy: SimpleNamespace, make_trainer, tmp_path):
    watch = Watch()
    saver = Checkpoint(dirpath=tmp_path, filename="last", monitor=None, save_weights_only=True)
    make_trainer([Averaging(ema=0.9), watch, saver]).fit(toy.Task(), toy.Data())
    assert_close(torch.load(saver.best_model_path, weights_only=True)["state_dict"], watch.validated[-1])


def test_shared_weights_are_averaged_once_and_saved_under_both_names(toy: SimpleNamespace, make_trainer, tmp_path):
    task, watch = toy.Task(), Watch()
    task.model.output.weight = task.model.embedding.weight
    start = weights_of(task)
    saver = Checkpoint(dirpath=tmp_path, filename="last", monitor=None)
    make_trainer([Averaging(ema=0.9), watch, saver]).fit(task, toy.Data())
    state = torch.load(saver.best_model_path, weights_only=True)["state_dict"]
    assert torch.equal(state["model.output.weight"], state["model.embedding.weight"])
    assert_close({"model.embedding.weight": state["model.output.weight"]}, plain_average(start, watch.steps, 0.9))


def test_the_average_of_half_precision_weights_keeps_small_changes(toy: SimpleNamespace, make_trainer):
    """In bfloat16 a thousandth of the way from 1 to 2 is no way at all."""
    averaging, task = Averaging(ema=0.999), toy.Task()
    averaging._updates = 100_000
    with torch.no_grad():
        task.model.output.weight.fill_(1.0)

    class Jump(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *args: Any) -> None:
            with torch.no_grad():
                pl_module.model.output.weight.fill_(2.0)

    make_trainer([Jump(), averaging], precision="bf16-true", max_epochs=40, num_sanity_val_steps=0).fit(
        task, toy.Data()
    )
    assert task.model.output.weight.dtype == torch.bfloat16
    assert task.model.output.weight.detach().float().mean() == pytest.approx(2 - 0.999**240, abs=0.02)


def test_statistics_of_batch_norms_are_averaged_and_other_buffers_left_alone():
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    module.register_buffer("mask", torch.full((2,), -torch.inf))
    names = [name for name, _ in averaged_tensors(module)]
    assert names[-2:] == ["1.running_mean", "1.running_var"] and len(names) == 6


def test_batch_norms_of_a_whole_run_hold_the_averaged_statistics(train_tiny_images):
    run = train_tiny_images("callbacks.averaging.ema=0.9", "trainer.max_epochs=2")
    content = checkpoint.read_checkpoint(run.last)
    names = [name for name in content["state_dict"] if name.endswith("running_var")]
    assert names
    for name in names:
        assert not torch.equal(content["state_dict"][name], content["averaging"]["trained"][name])
        assert content["state_dict"][name].gt(0).all()


@pytest.mark.parametrize("precision", ["32-true", "bf16-true"])
@pytest.mark.parametrize(("batches", "accumulate"), [(27, 1), (40, 1), (41, 3)])
def test_e15_an_interrupted_run_continues_to_the_same_average(train_tiny, monkeypatch, batches, accumulate, precision):
    common = (
        *LONG, "callbacks.averaging.ema=0.99", f"precision={precision}",
        f"trainer.accumulate_grad_batches={accumulate}", "data.tokenizer.min_frequency=1",
    )  # fmt: skip
    whole = train_tiny(*common, folder="whole")
    with monkeypatch.context() as patch:
        stop_after(patch, batches)
        with pytest.raises((SystemExit, KeyboardInterrupt)):
            train_tiny(*common, folder="first")
    interrupted = whole.folder.parent / "first" / "checkpoints" / "interrupted.ckpt"
    second = train_tiny(*common, f"ckpt_path='{interrupted}'", folder="second")
    one, other = (checkpoint.read_checkpoint(run.last) for run in (whole, second))
    assert one["averaging"]["updates"] == other["averaging"]["updates"] == one["global_step"]
    for part in ("trained", "average"):
        for name, value in one["averaging"][part].items():
            assert torch.equal(value, other["averaging"][part][name]), name
    assert bool(one["averaging"]["average"]) == (precision == "bf16-true")
    for name, value in one["state_dict"].items():
        assert torch.equal(value, other["state_dict"][name]), name
    assert any(not torch.equal(v, one["state_dict"][name]) for name, v in one["averaging"]["trained"].items())


def test_the_average_is_what_is_validated_tested_and_evaluated(train_tiny):
    from hotloop.inference import load_translation

    run = train_tiny("callbacks.averaging.ema=0.9", "trainer.max_epochs=2", "test=true")
    content = checkpoint.read_checkpoint(run.last)
    task = load_translation(run.last)
    assert all(torch.equal(value, content["state_dict"][name]) for name, value in task.state_dict().items())
    assert run.report["metrics"]["test/loss"] > 0


def test_a_run_that_would_train_on_from_the_average_is_refused(train_tiny):
    first = train_tiny(*LONG, "trainer.max_epochs=1", "callbacks.averaging.ema=0.9", folder="first")
    with pytest.raises(UserError, match=r"repeat the override"):
        train_tiny(*LONG, f"ckpt_path='{first.last}'", folder="second")


def test_an_average_may_begin_in_a_run_that_continues(train_tiny):
    first = train_tiny(*LONG, "trainer.max_epochs=1", folder="first")
    second = train_tiny(*LONG, "callbacks.averaging.ema=0.9", f"ckpt_path='{first.last}'", folder="second")
    assert checkpoint.read_checkpoint(second.last)["averaging"]["updates"] == 60


def test_the_last_states_are_averaged_at_the_end(train_tiny, caplog):
    with caplog.at_level("INFO"):
        run = train_tiny("callbacks.averaging.last=2", "trainer.max_epochs=4", "test=true")
    folder = run.folder / "checkpoints"
    kept = sorted(folder.glob("recent*.ckpt"))
    assert len(kept) == 2
    states = [checkpoint.read_checkpoint(path)["state_dict"] for path in kept]
    mean = checkpoint.read_hotloop_checkpoint(folder / "averaged.ckpt")["state_dict"]
    for name, value in mean.items():
        torch.testing.assert_close(value, (states[0][name] + states[1][name]) / 2)
    assert "mean of the last states: val/loss" in caplog.text


@pytest.mark.parametrize("better", [True, False])
def test_the_mean_is_tested_if_it_is_better(train_tiny, monkeypatch, better):
    """With a learning rate that only wanders, or with a mean that is spoilt."""
    from hotloop.callbacks import averaging

    if not better:

        def spoilt(paths: list[str]) -> dict[str, Any]:
            content = mean_checkpoint(paths)
            assert content is not None
            content["state_dict"] = {name: 3 * value for name, value in content["state_dict"].items()}
            return content

        monkeypatch.setattr(averaging, "mean_checkpoint", spoilt)
    options = ("trainer.max_epochs=6", "trainer.limit_train_batches=10", "optimizer.lr=0.03")
    watched = tuple(option for option in TINY if option not in ("logger=none", "callbacks=minimal"))
    run = train_tiny("callbacks.averaging.last=5", *options, tiny=watched)
    assert (Path(run.report["best_checkpoint"]).name == "averaged.ckpt") == better
    last = run.report["epochs"][-1]["metrics"]["val/loss"]
    assert run.report["metrics"]["val/loss"] == pytest.approx(run.report["monitor"]["best"] if better else last)
    from hotloop.inference import load_translation

    load_translation(run.report["best_checkpoint"])
    # What is measured besides leaves no mark in curves, samples and maps.
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    boards = [EventAccumulator(str(file)).Reload() for file in run.folder.rglob("events.out.tfevents.*")]
    found = {tag: [e.step for e in board.Scalars(tag)] for board in boards for tag in board.Tags()["scalars"]}
    assert found["val/loss"] == [9, 19, 29, 39, 49, 59]
    texts = [e.step for board in boards if "translations/valid/text_summary" in board.Tags()["tensors"]
             for e in board.Tensors("translations/valid/text_summary")]  # fmt: skip
    assert texts == [10, 20, 30, 40, 50, 60]


def test_the_states_to_average_are_found_by_a_run_that_continues(train_tiny):
    first = train_tiny(*LONG, "trainer.max_epochs=2", "callbacks.averaging.last=3", folder="first")
    second = train_tiny(
        *LONG, "trainer.max_epochs=3", "callbacks.averaging.last=3", f"ckpt_path='{first.last}'", folder="second"
    )
    kept = checkpoint.read_checkpoint(second.last)["averaging"]["kept"]
    assert [Path(path).name for path in kept] == ["recent0000020.ckpt", "recent0000040.ckpt", "recent0000060.ckpt"]
    assert len(list((first.folder / "checkpoints").glob("recent*"))) == 2  # files of the old run stay


def test_averages_on_two_processes_are_those_of_the_same_batches_on_one(train_tiny):
    """Each process keeps the average for itself; with the same steps they are one."""
    two = train_tiny(
        "callbacks.averaging.ema=0.9", "trainer.max_epochs=1", "trainer.devices=2", "trainer.strategy=ddp_fork",
        "trainer.precision=bf16-mixed", "trainer.accumulate_grad_batches=2", "data.num_workers=0", folder="two",
    )  # fmt: skip
    content = checkpoint.read_checkpoint(two.last)
    assert content["averaging"]["updates"] == content["global_step"]
    assert any(not torch.equal(v, content["state_dict"][k]) for k, v in content["averaging"]["trained"].items())


def test_the_mean_on_two_processes(train_tiny):
    run = train_tiny(
        "callbacks.averaging.last=2", "trainer.max_epochs=3", "trainer.devices=2", "trainer.strategy=ddp_fork",
        "data.num_workers=0", "test=true",
    )  # fmt: skip
    assert (run.folder / "checkpoints" / "averaged.ckpt").is_file()
    assert run.report["metrics"]["test/loss"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [({"ema": 1.0}, "1.0"), ({"ema": 0.0}, "0.0"), ({"last": 1}, "1"), ({"ema": 0.9, "last": 5}, "choose one")],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Averaging(**options)


def test_damaged_and_lost_states_are_left_out_with_a_warning(train_tiny, caplog):
    first = train_tiny(*LONG, "trainer.max_epochs=4", "callbacks.averaging.last=4", folder="first")
    old = sorted((first.folder / "checkpoints").glob("recent*.ckpt"))
    old[0].write_bytes(old[0].read_bytes()[:1000])
    old[1].unlink()
    assert "cannot be read" not in caplog.text
    options = (*LONG, "trainer.max_epochs=5", "callbacks.averaging.last=5", f"ckpt_path='{first.last}'")
    second = train_tiny(*options, folder="second")
    assert "of 4 states to average 2 cannot be read" in caplog.text
    assert len(checkpoint.read_checkpoint(second.last)["averaging"]["kept"]) == 3


def test_a_state_that_is_damaged_while_the_run_goes_on_does_not_spoil_its_end(tmp_path, caplog):
    paths = [str(tmp_path / f"recent{n}.ckpt") for n in range(4)]
    for number, path in enumerate(paths):
        torch.save({"state_dict": {"w": torch.full((2,), float(number)), "n": torch.tensor(number)}}, path)
    Path(paths[3]).write_bytes(b"PK")
    torch.save({"state_dict": {"w": torch.zeros(3), "n": torch.tensor(0)}}, paths[0])
    mean = mean_checkpoint(paths)
    assert mean is not None
    assert mean["state_dict"]["w"].tolist() == [1.5, 1.5] and mean["state_dict"]["n"] == 2
    assert "of 4 states to average 2 cannot be read" in caplog.text
    assert mean_checkpoint(paths[2:]) is None and mean_checkpoint([]) is None


@pytest.mark.parametrize(
    "content",
    [
        5, [1], {"kept": 5}, {"kept": [5]}, {"updates": "x"}, {"trained": 5}, {"trained": {}, "average": [1]},
        {"trained": {"model.w": 1}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["ema=0.9", "last=2"])
def test_what_a_file_says_of_averages_is_not_trusted(toy: SimpleNamespace, make_trainer, content, kind):
    name, value = kind.split("=")
    averaging, task = Averaging(**{name: float(value) if name == "ema" else int(value)}), toy.Task()
    trainer = make_trainer([averaging])
    trainer.state.fn = "fit"
    with pytest.raises(UserError, match=r"averaged weights cannot be read|repeat the override"):
        averaging.on_load_checkpoint(trainer, task, {"state_dict": task.state_dict(), "averaging": content})


def test_averaged_weights_of_another_shape_are_refused(toy: SimpleNamespace, make_trainer):
    averaging, task = Averaging(ema=0.9), toy.Task()
    trainer = make_trainer([averaging])
    trainer.state.fn = "fit"
    trained = {name: torch.zeros(1) for name, _ in averaged_tensors(task)}
    with pytest.raises(UserError, match="do not fit the model"):
        averaging.on_load_checkpoint(
            trainer, task, {"state_dict": {}, "averaging": {"trained": trained, "average": {}}}
        )


def test_a_checkpoint_whose_averages_are_no_group_is_refused_in_one_line(train_tiny):
    first = train_tiny(*LONG, "trainer.max_epochs=1", folder="first")
    content = torch.load(first.last, weights_only=True)
    content["averaging"] = 5
    torch.save(content, first.last)
    with pytest.raises(UserError, match="averaged weights cannot be read"):
        train_tiny(*LONG, "callbacks.averaging.ema=0.9", f"ckpt_path='{first.last}'", folder="second")


def test_both_averages_are_refused_before_anything_is_prepared(train_tiny, tmp_path):
    with pytest.raises(UserError, match="choose one of the two averages"):
        train_tiny("callbacks.averaging.ema=0.9", "callbacks.averaging.last=2")
    assert not (tmp_path / "cache").exists()
