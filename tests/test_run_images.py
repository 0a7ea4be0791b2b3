"""Whole runs of a tiny regressor in this process: what lands in the folder, and mistakes told before training."""

import csv

import numpy as np
import pytest
import torch
from PIL import Image

from hotloop.errors import UserError
from tests.conftest import compose_config, write_pictures


def test_a_run_leaves_report_checkpoints_and_the_value_that_was_monitored(train_tiny_images):
    run = train_tiny_images("trainer.max_epochs=2", "test=true")
    report = run.report
    assert report["status"] == "finished" and report["task"] == "regression"
    assert [epoch["samples"] for epoch in report["epochs"]] == [32, 32]
    assert {f"test/{name}" for name in ("loss", "mse", "rmse", "mae", "r2", "baseline_rmse", "baseline_mae")} <= set(
        report["metrics"]
    )
    assert report["data"]["pictures"] == {"train": 32, "valid": 4, "test": 4}
    assert run.last.is_file() and report["best_checkpoint"]
    assert run.value == pytest.approx(min(epoch["val_loss"] for epoch in report["epochs"]))


def test_the_model_learns(train_tiny_images, tmp_path):
    data = write_pictures(tmp_path / "more", 120)
    run = train_tiny_images("trainer.max_epochs=12", "optimizer.lr=1e-2", "test=true", "model.grid=4", data=data)
    metrics = run.report["metrics"]
    assert metrics["test/rmse"] < 0.5 * metrics["test/baseline_rmse"]


@pytest.mark.parametrize(
    "overrides",
    [
        ("model.head=flatten", "model.pool=2"),
        ("model.downsample=conv", "model.blocks=[4,4]"),
        ("task.loss=l1",),
        ("task.loss=huber",),
        ("task.loss=gaussian_nll",),
        ("task.channels_last=false",),
        ("precision=bf16-mixed",),
        ("precision=16-mixed",),
        ("precision=bf16-true",),
        ("precision=64-true",),
        ("data.cache=none",),
        ("data.cache=disk",),
        ("data.cache=ram", "data.num_workers=1"),
        ("data.channels=grey",),
        ("data.normalize=imagenet",),
        ("data.normalize=none",),
        ("data.fit=pad",),
        ("data.fit=crop", "data.size=[16,12]"),
        ("data.augment.horizontal_flip=0.5", "data.augment.brightness=0.2", "data.augment.rotate=5"),
        ("data.augment.crop=[0.7,1.0]", "data.num_workers=1"),
        ("data.split=ordered",),
        ("trainer.accumulate_grad_batches=3",),
        ("trainer.gradient_clip_val=null",),
        ("optimizer=sgd", "scheduler=linear"),
        ("monitor=val/r2",),
        ("monitor=val/mae",),
        ("callbacks=early_stopping", "callbacks.progress=null", "logger=csv"),
        ("debug=quick", "data.batch_size=4"),
        ("debug=overfit", "trainer.max_epochs=2", "trainer.check_val_every_n_epoch=1"),
    ],
    ids=lambda overrides: " ".join(overrides),
)
def test_each_option_trains(train_tiny_images, overrides):
    report = train_tiny_images(*overrides).report
    assert report["status"] == "finished"
    assert -3 < report["epochs"][0]["train_loss"] < 10


def test_a_model_gets_only_the_facts_that_it_takes(train_tiny_images, monkeypatch):
    import hotloop.models.inception as module

    class Flat(torch.nn.Module):
        def __init__(self, *, outputs: int) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, outputs)

        def forward(self, images):
            return self.linear(images.mean((2, 3)))

    Flat.__module__ = module.__name__
    monkeypatch.setattr(module, "Flat", Flat, raising=False)
    tiny = tuple(o for o in compose_tiny() if not o.startswith("model."))
    options = ("model._target_=hotloop.models.inception.Flat", *(f"~model.{key}" for key in inception_options()))
    assert train_tiny_images(*options, tiny=tiny).report["parameters"] == 4


def compose_tiny() -> tuple[str, ...]:
    from tests.conftest import TINY_IMAGES

    return TINY_IMAGES


def inception_options() -> list[str]:
    return [key for key in compose_config("model=inception").model if key != "_target_"]


def refused(train, *overrides: str, **options) -> str:
    with pytest.raises(UserError) as caught:
        train(*overrides, **options)
    message = str(caught.value)
    assert "\n" not in message.strip()
    return message


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("model.blocks=[]", "blocks"),
        ("model.blocks=[0]", "blocks[0]"),
        ("model.blocks=4", "model.blocks=4: expected a list"),
        ("model.head=gapp", "model.head='gapp': expected"),
        ("model.stem=[4,4,4,4,4,4]", "16×16"),
        ("task.loss=mae", "task.loss='mae': expected"),
        ("task.huber_delta=0", "huber_delta"),
        ("data.size=0", "size"),
        ("data.size=[16]", "size"),
        ("data.size=1000000", "data.size=1000000: at most 16,384 pixels a side"),
        ("data.region=[0.5,0,0.4,1]", "top before bottom"),
        ("trainer.limit_train_batches=0", "trains nothing"),
        ("data.valid_size=0", "data.valid_size=0.1"),
        ("data.cache=memory", "data.cache must be auto"),
        ("data.normalize=zscore", "data.normalize must be"),
        ("+data.augment.flip=0.5", "data.augment has no option 'flip'"),
        ("data.augment.rotate=-5", "rotate"),
        ("data.augment.horizontal_flip=2", "horizontal_flip"),
        ("data.on_error=ignore", "data.on_error must be"),
        ("data.batch_size=0", "data.batch_size"),
        ("data.valid_size=-1", "valid_size"),
        ("data.test_size=1.5", "test_size"),
        ("data.targets=nothing.csv", "nothing.csv"),
        ("data.source.target_columns=[angle]", "angle"),
        ("data.dir=/nowhere", "/nowhere"),
        ("data.dir=''", "data.dir is empty"),
        ("monitor=val/bleu", "val/bleu"),
        ("mode=max", "mode=max: the best val/loss is the min"),
        ("task=translation", "works on text but data="),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_it(train_tiny_images, override, expected):
    assert expected in refused(train_tiny_images, override)


def test_a_wrong_model_is_told_before_pictures_are_read(train_tiny_images, tmp_path):
    refused(train_tiny_images, "model.blocks=[0]")
    assert not (tmp_path / "cache").exists()


def test_a_resumed_run_equals_an_uninterrupted_one(train_tiny_images):
    augment = ("data.augment.horizontal_flip=0.5", "data.augment.brightness=0.3", "model.dropout=0.2")
    whole = train_tiny_images(*augment, "trainer.max_epochs=3", folder="whole")
    half = train_tiny_images(*augment, "trainer.max_epochs=2", folder="half")
    rest = train_tiny_images(*augment, "trainer.max_epochs=3", f"ckpt_path='{half.last}'", folder="rest")
    assert rest.losses[-1] == whole.losses[-1]
    first, second = (torch.load(run.last, weights_only=True)["state_dict"] for run in (whole, rest))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("change", ["data.size=12", "data.normalize=half", "data.split_seed=5"])
def test_a_run_is_not_resumed_on_pictures_of_another_form(train_tiny_images, change):
    first = train_tiny_images()
    message = refused(
        train_tiny_images, change, f"ckpt_path='{first.last}'", "trainer.max_epochs=2", "model.grid=2", folder="two"
    )
    assert "was trained with" in message


def test_several_targets_are_learnt_and_told_apart(train_tiny_images, pictures):
    rows = list(csv.DictReader((pictures / "targets.csv").open()))
    lines = ["image,column,grey"]
    for row in rows:
        grey = np.asarray(Image.open(pictures / row["image"])).mean()
        lines.append(f"{row['image']},{row['target']},{grey:.3f}")
    (pictures / "both.csv").write_text("\n".join(lines) + "\n")
    options = ("data.targets=both.csv", "data.source.target_columns=[column,grey]")
    run = train_tiny_images(*options, "test=true", "monitor=val/mae/grey")
    metrics = run.report["metrics"]
    whole = metrics["test/mae"]
    assert whole == pytest.approx((metrics["test/mae/column"] + metrics["test/mae/grey"]) / 2)
    assert run.value == pytest.approx(min(epoch["metrics"]["val/mae/grey"] for epoch in run.report["epochs"]))


def test_the_embedded_sets_need_no_file(train_tiny_images):
    small = ("data.source.count=16", "data.source.valid=4", "data.source.test=4", "data.size=24")
    run = train_tiny_images("data=gauges", *small, "test=true", data=None)
    assert run.report["data"]["pictures"] == {"train": 16, "valid": 4, "test": 4}


def test_the_published_experiment_has_the_published_parameters(train_tiny_images):
    options = (
        "experiment=inception_published",
        "data.source.count=2",
        "data.source.valid=1",
        "data.source.test=1",
        "trainer.max_epochs=1",
        "trainer.accelerator=cpu",
        "logger=none",
        "callbacks.progress=null",
    )
    run = train_tiny_images(*options, data=None, tiny=())
    assert run.report["parameters"] == 496_769 and run.report["status"] == "finished"


def test_bad_pictures_stop_a_run_or_are_skipped_and_counted(train_tiny_images, pictures):
    (pictures / "bar003.png").write_bytes(b"<html>not found</html>")
    assert "bar003.png" in refused(train_tiny_images)
    run = train_tiny_images("data.on_error=skip", folder="second")
    assert sum(run.report["data"]["pictures"].values()) == 39
    assert run.report["data"]["skipped"] == 1 and run.report["data"]["skipped_names"] == ["bar003.png"]


def test_pictures_can_be_skipped_only_where_they_are_looked_for(train_tiny_images):
    message = refused(train_tiny_images, "data.on_error=skip", "data.cache=none", "data.verify=none")
    assert "data.on_error=skip needs data.verify=decode" in message


@pytest.mark.parametrize(("factor", "expected"), [(1e-200, "smaller unit"), (1e300, "larger unit")])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_targets_that_float32_cannot_hold_are_refused_by_name(train_tiny_images, pictures, factor, expected):
    rows = list(csv.DictReader((pictures / "targets.csv").open()))
    lines = [f"{row['image']},{factor * (1 + float(row['target']))!r}" for row in rows]
    (pictures / "targets.csv").write_text("\n".join(["image,target", *lines]) + "\n")
    message = refused(train_tiny_images)
    assert "target target" in message and expected in message


def test_a_transform_of_torchvision_can_be_named(train_tiny_images):
    run = train_tiny_images("data.augment.extra=[{_target_:torchvision.transforms.v2.GaussianBlur,kernel_size:3}]")
    assert run.report["status"] == "finished"
