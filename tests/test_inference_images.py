"""Evaluating and predicting pictures from a checkpoint alone."""

import csv
import io
import json
import os
import shutil

import pytest
import torch
from PIL import Image

from hotloop.errors import UserError
from hotloop.inference import evaluate, load_regression, predict
from tests.conftest import compose_config, write_pictures


def evaluated(tmp_path, checkpoint, *overrides: str) -> dict[str, float]:
    options = (f"ckpt_path='{checkpoint}'", f"run_dir={tmp_path / 'evaluation'}", "trainer.accelerator=cpu", *overrides)
    return evaluate(compose_config(*options, config_name="evaluate"))


def predicted(checkpoint, *overrides: str) -> None:
    predict(compose_config(f"ckpt_path='{checkpoint}'", "device=cpu", *overrides, config_name="predict"))


@pytest.mark.parametrize(
    "form",
    [
        (),
        ("data.channels=grey", "data.fit=pad", "data.size=[16,12]"),
        ("data.normalize=imagenet", "data.cache=none"),
        ("data.split=ordered", "data.test_size=6"),
        ("task.loss=gaussian_nll",),
        ("task.loss=huber", "task.huber_delta=0.5", "task.channels_last=false"),
    ],
    ids=lambda form: " ".join(form) or "plain",
)
def test_evaluate_finds_what_the_run_found(train_tiny_images, tmp_path, form):
    run = train_tiny_images("test=true", "trainer.max_epochs=2", *form)
    expected = run.report["metrics"]
    table = tmp_path / "out.csv"
    found = evaluated(tmp_path, run.report["best_checkpoint"], f"output={table}", "batch_size=3")
    for name in ("loss", "rmse", "mae", "baseline_rmse"):
        assert found[name] == pytest.approx(expected[f"test/{name}"], rel=1e-5), name
    written = json.loads((tmp_path / "evaluation" / "evaluation.json").read_text())
    rows = list(csv.DictReader(table.open()))
    assert written["metrics"] == found and written["samples"] == len(rows)
    errors = [abs(float(row["target"]) - float(row["target_predicted"])) for row in rows]
    assert sum(errors) / len(errors) == pytest.approx(found["mae"], rel=1e-4)

    valid = evaluated(tmp_path, run.last, "split=valid")
    assert valid["loss"] == pytest.approx(run.report["epochs"][-1]["val_loss"], rel=1e-5)


def test_the_generated_sets_are_found_again(train_tiny_images, tmp_path):
    small = ("data=gauges", "data.source.count=8", "data.source.valid=4", "data.source.test=4", "data.size=24")
    run = train_tiny_images(*small, "test=true", data=None)
    found = evaluated(tmp_path, run.last)
    assert found["loss"] == pytest.approx(run.report["metrics"]["test/loss"], rel=1e-5)


def test_other_pictures_are_measured_by_their_own_table(train_tiny_images, tmp_path):
    run = train_tiny_images()
    other = write_pictures(tmp_path / "other", 9, seed=3)
    (other / "targets.csv").rename(other / "numbers.csv")
    found = evaluated(tmp_path, run.last, f"images={other}", "targets=numbers.csv")
    written = json.loads((tmp_path / "evaluation" / "evaluation.json").read_text())
    assert written["samples"] == 9 and found["mae"] > 0

    (other / "bar002.png").unlink()
    with pytest.raises(UserError, match=r"bar002\.png.*on_error=skip"):
        evaluated(tmp_path, run.last, f"images={other}", "targets=numbers.csv")
    evaluated(tmp_path, run.last, f"images={other}", "targets=numbers.csv", "on_error=skip")
    assert json.loads((tmp_path / "evaluation" / "evaluation.json").read_text())["samples"] == 8


def test_a_folder_is_predicted_into_a_table_in_the_order_of_its_names(train_tiny_images, tmp_path, pictures):
    run = train_tiny_images()
    output = tmp_path / "predictions.csv"
    predicted(run.last, f"input={pictures}", f"output={output}", "batch_size=7")
    rows = list(csv.DictReader(output.open()))
    assert [row["image"] for row in rows] == [f"bar{number:03d}.png" for number in range(40)]
    one = tmp_path / "one.csv"
    predicted(run.last, f"input={pictures / 'bar005.png'}", f"output={one}")
    ((name, value),) = list(csv.reader(one.open()))[1:]
    assert name == "bar005.png" and float(value) == pytest.approx(float(rows[5]["target"]), rel=1e-4, abs=1e-3)


def test_a_prediction_comes_with_its_standard_deviation_where_the_model_has_one(train_tiny_images, capsys, pictures):
    run = train_tiny_images("task.loss=gaussian_nll")
    predicted(run.last, f"input={pictures / 'bar001.png'}")
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert list(row) == ["image", "target", "target_std"] and float(row["target_std"]) > 0


def test_a_picture_that_cannot_be_read_stops_or_leaves_an_empty_row(train_tiny_images, tmp_path, pictures):
    run = train_tiny_images()
    (pictures / "bar007.png").write_bytes(b"")
    output = tmp_path / "predictions.csv"
    with pytest.raises(UserError, match=r"bar007\.png.*on_error=skip"):
        predicted(run.last, f"input={pictures}", f"output={output}")
    assert not output.exists()
    predicted(run.last, f"input={pictures}", f"output={output}", "on_error=skip")
    rows = list(csv.DictReader(output.open()))
    assert len(rows) == 40 and [row["image"] for row in rows if row["target"] == ""] == ["bar007.png"]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("input=/nowhere", "/nowhere"),
        ("input='-'", "input=FOLDER"),
        ("beam_size=4", "beam_size=4 does nothing here"),
        ("n_best=2", "n_best=2 does nothing here"),
        ("on_error=maybe", "on_error='maybe'"),
    ],
)
def test_wrong_options_are_told_in_one_line(train_tiny_images, pictures, override, expected):
    run = train_tiny_images()
    options = (override,) if override.startswith("input") else (f"input={pictures}", override)
    with pytest.raises(UserError) as caught:
        predicted(run.last, *options)
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_pictures_that_are_gone_are_told_with_what_to_give(train_tiny_images, tmp_path, pictures):
    run = train_tiny_images()
    shutil.move(pictures, tmp_path / "elsewhere")
    with pytest.raises(UserError, match="images=FOLDER targets=TABLE"):
        evaluated(tmp_path, run.last)
    assert evaluated(tmp_path, run.last, f"images={tmp_path / 'elsewhere'}", "targets=targets.csv")["mae"] > 0


def test_a_text_option_does_nothing_for_pictures_and_the_other_way_round(train_tiny, tmp_path):
    run = train_tiny()
    with pytest.raises(UserError, match="on_error=skip does nothing here"):
        predicted(run.last, f"input={tmp_path}", "on_error=skip")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("pixels"),
        lambda data: data.pop("targets"),
        lambda data: data["targets"].update(names=[]),
        lambda data: data["targets"].update(std=[0.0]),
        lambda data: data["targets"].update(mean="0"),
        lambda data: data["pixels"].update(size=7),
        lambda data: data["pixels"].update(mean=[1.0]),
        lambda data: data.update(kind="sound"),
        lambda data: data.pop("kind"),
    ],
)
def test_a_checkpoint_that_does_not_say_how_to_read_pictures_is_refused(train_tiny_images, pictures, damage):
    run = train_tiny_images()
    content = torch.load(run.last, weights_only=True)
    damage(content["hotloop"]["data"])
    torch.save(content, run.last)
    with pytest.raises(UserError) as caught:
        predicted(run.last, f"input={pictures}")
    assert "last.ckpt" in str(caught.value)


def test_a_loaded_task_predicts_what_the_run_predicted(train_tiny_images, pictures):
    run = train_tiny_images()
    task = load_regression(run.last)
    data = torch.zeros(2, 3, 16, 16, dtype=torch.uint8)
    assert task.predict(data).shape == (2, 1)


def test_sixteen_bit_pictures_keep_their_depth(train_tiny_images, tmp_path):
    folder = tmp_path / "deep"
    folder.mkdir()
    rows = ["image,target"]
    for number in range(12):
        Image.new("I;16", (8, 8), 1000 * number).save(folder / f"{number:02d}.png")
        rows.append(f"{number:02d}.png,{number}")
    (folder / "targets.csv").write_text("\n".join(rows) + "\n")
    run = train_tiny_images("model.stem=[]", "data.size=8", "test=true", data=folder)
    assert run.report["data"]["bits"] == 16
    assert evaluated(tmp_path, run.last)["loss"] == pytest.approx(run.report["metrics"]["test/loss"], rel=1e-5)
    predicted(run.last, f"input={folder}", f"output={tmp_path / 'deep.csv'}")


def test_a_full_disk_is_told(train_tiny_images, pictures):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full on this system")
    run = train_tiny_images()
    with pytest.raises(UserError, match="output: cannot write /dev/full: No space left"):
        predicted(run.last, f"input={pictures}", "output=/dev/full")
