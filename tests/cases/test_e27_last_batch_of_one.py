"""E27: a last batch of one picture; predictions are never broadcast against targets."""

import logging
import warnings

import pytest
import torch

from hotloop.inference import predict
from hotloop.models.inception import InceptionRegressor
from hotloop.tasks.losses import regression_losses
from tests.conftest import compose_config, write_pictures
from tests.tasks.pictures import loader, picture_batch, regression_task, split, trainer

LOSSES = ("mse", "l1", "huber")


@pytest.mark.parametrize("loss", LOSSES)
def test_e27_right_predictions_have_no_loss(loss):
    """Broadcast to 4 × 4, the mean square would be 2.5."""
    predictions = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    losses = regression_losses(predictions, torch.tensor([[1.0], [2.0], [3.0], [4.0]]), loss=loss)
    assert losses.tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("loss", [*LOSSES, "gaussian_nll"])
@pytest.mark.parametrize(
    ("outputs", "targets"),
    [((4, 1), (4,)), ((4,), (4, 1)), ((4,), (4,)), ((4, 1), (1, 1)), ((1, 1), (4, 1)), ((4, 3), (4, 1)), ((), (1, 1))],
)
def test_e27_shapes_that_differ_are_refused(loss, outputs, targets):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch only warns of a target size that is "different to the input size"
        with pytest.raises(ValueError, match=r"outputs of shape .* do not fit targets of shape"):
            regression_losses(torch.zeros(outputs), torch.zeros(targets), loss=loss)


@pytest.mark.parametrize("head", ["gap", "flatten"])
@pytest.mark.parametrize("channels_last", [True, False])
def test_e27_five_pictures_in_batches_of_four_run_everywhere_and_measure_as_one_batch(head, channels_last):
    five = picture_batch(5)
    torch.manual_seed(0)
    model = InceptionRegressor(outputs=1, channels=3, height=8, width=8, stem=[4], blocks=[4], head=head, pool=4)
    task = regression_task(model, channels_last=channels_last)
    run = trainer()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*target size.*")
        run.fit(task, loader(split(five, 4)), loader(split(five, 4)))
    assert run.global_step == 2
    (parts,) = run.test(task, loader(split(five, 4)), verbose=False)
    (whole,) = run.test(task, loader([five]), verbose=False)
    assert parts == pytest.approx(whole, rel=1e-5)
    predicted = [task.predict(part.images) for part in split(five, 4)]
    assert [tuple(p.shape) for p in predicted] == [(4, 1), (1, 1)]
    torch.testing.assert_close(torch.cat(predicted), task.predict(five.images))


def test_e27_a_data_set_of_one_picture_trains():
    one = picture_batch(1)
    model = InceptionRegressor(outputs=1, channels=3, height=8, width=8, stem=[4], blocks=[4])
    task = regression_task(model)
    run = trainer(max_epochs=2)
    run.fit(task, loader([one]), loader([one]))
    assert run.global_step == 2 and all(value.isfinite() for value in run.callback_metrics.values())


@pytest.mark.filterwarnings("error:.*target size.*:UserWarning")
def test_e27_sets_of_five_in_batches_of_four(train_tiny_images, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    data = write_pictures(tmp_path / "fifteen", 15)
    options = ("data.valid_size=5", "data.test_size=5", "test=true", "trainer.max_epochs=2")
    run = train_tiny_images(*options, "data.batch_size=4", data=data)
    assert [epoch["steps"] for epoch in run.report["epochs"]] == [1, 1]  # the fifth picture joined the batch of four
    assert [epoch["samples"] for epoch in run.report["epochs"]] == [5, 5]
    assert "the last batch would hold a single sample: it joins the batch before" in caplog.text
    whole = train_tiny_images(*options, "data.batch_size=5", data=data, folder="whole")
    for name in ("test/rmse", "test/mae", "val/rmse", "val/mae"):
        assert run.report["metrics"][name] == pytest.approx(whole.report["metrics"][name], rel=1e-4)
    output = tmp_path / "predictions.csv"
    overrides = (f"ckpt_path='{run.last}'", f"input={data}", f"output={output}", "batch_size=14", "device=cpu")
    predict(compose_config(*overrides, config_name="predict"))
    assert len(output.read_text().splitlines()) == 16
