import math
import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import IterableDataset

from hotloop.data.images.batch import ImageBatch
from hotloop.errors import UserError
from hotloop.models.inception import InceptionRegressor
from hotloop.tasks.losses import mean_and_variance, regression_losses
from hotloop.tasks.regression import RegressionTask
from hotloop.tasks.scaling import Scaling, normalised_pictures
from tests.tasks.pictures import (
    MEAN,
    STD,
    Linear,
    known_batch,
    known_task,
    loader,
    picture_batch,
    regression_task,
    split,
    trainer,
)

LOSSES = ("mse", "l1", "huber", "gaussian_nll")


def inception(outputs: int = 1) -> InceptionRegressor:
    torch.manual_seed(0)
    return InceptionRegressor(outputs=outputs, channels=3, height=8, width=8, stem=[4], blocks=[4])


# ---- losses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        ("mse", lambda x, y: ((x - y) ** 2).mean(1)),
        ("l1", lambda x, y: (x - y).abs().mean(1)),
        ("huber", lambda x, y: F.huber_loss(x, y, reduction="none", delta=0.3).mean(1)),
    ],
)
def test_losses_equal_their_formulas_for_each_sample(loss, plain):
    outputs, targets = torch.randn(5, 3), torch.randn(5, 3)
    torch.testing.assert_close(regression_losses(outputs, targets, loss=loss, huber_delta=0.3), plain(outputs, targets))


def test_gaussian_loss_is_the_negative_log_density():
    outputs, targets = torch.randn(5, 4, dtype=torch.float64), torch.randn(5, 2, dtype=torch.float64)
    mean, variance = mean_and_variance(outputs)
    density = torch.distributions.Normal(mean, variance.sqrt()).log_prob(targets)
    torch.testing.assert_close(regression_losses(outputs, targets, loss="gaussian_nll"), -density.mean(1))
    torch.testing.assert_close(variance, F.softplus(outputs[:, 2:]) + 1e-6)


@pytest.mark.parametrize("spread", [-1e4, 1e4])
def test_gaussian_loss_stays_finite_and_can_recover(spread):
    outputs = torch.tensor([[3.0, spread]], requires_grad=True)
    loss = regression_losses(outputs, torch.zeros(1, 1), loss="gaussian_nll").sum()
    loss.backward()
    assert loss.isfinite() and outputs.grad.isfinite().all()
    assert outputs.grad[0, 0] > 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_losses_are_computed_in_float32(loss, dtype):
    outputs = torch.randn(4, 2 if loss == "gaussian_nll" else 1).to(dtype).requires_grad_()
    losses = regression_losses(outputs, torch.randn(4, 1), loss=loss)
    assert losses.dtype == torch.float32 and losses.shape == (4,)
    losses.sum().backward()
    assert outputs.grad.dtype == dtype and outputs.grad.isfinite().all()


# ---- scaling --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize(("bits", "dtype"), [(8, torch.uint8), (16, torch.int32)])
@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_are_normalised_as_in_the_plain_formula(memory, bits, dtype, channels):
    top = 2**bits - 1
    images = torch.randint(0, top + 1, (4, channels, 5, 7)).to(dtype).contiguous(memory_format=memory)
    images[0] = top
    mean, std = [0.4, 0.5, 0.3][:channels], [0.2, 0.3, 0.1][:channels]
    pixels = Scaling([top * x for x in mean], [top * x for x in std])
    view = (1, channels, 1, 1)
    centre, spread = (torch.tensor(x, dtype=torch.float64).view(view) for x in (mean, std))
    expected = (images.double() / top - centre) / spread
    before = images.clone()
    for channels_last in (True, False):
        found = normalised_pictures(images, pixels, dtype=torch.float32, channels_last=channels_last)
        torch.testing.assert_close(found.double(), expected, atol=2e-6, rtol=0)
        form = torch.channels_last if channels_last else torch.contiguous_format
        assert found.is_contiguous(memory_format=form)
    exact = normalised_pictures(images, pixels, dtype=torch.float64, channels_last=True)
    torch.testing.assert_close(exact, expected, atol=1e-12, rtol=0)
    assert torch.equal(images, before)


def test_white_in_sixteen_bits_is_finite_in_float16():
    images = torch.full((1, 1, 2, 2), 65535, dtype=torch.int32)
    found = normalised_pictures(images, Scaling([32767.5], [32767.5]), dtype=torch.float16, channels_last=True)
    assert found.dtype == torch.float16 and found.unique().tolist() == [1.0]


def test_standardised_targets_come_back():
    targets = torch.tensor([[1_000_003.0, -2e-5], [999_990.0, 7e-5]])
    scaling = Scaling([1e6, 1e-5], [5.0, 3e-5])
    standard = scaling.normalised(targets, torch.float64)
    assert standard.tolist() == [pytest.approx([0.6, -1.0]), pytest.approx([-2.0, 2.0])]
    before = standard.clone()
    assert torch.equal(scaling.restored(standard, torch.float64).float(), targets)
    assert torch.equal(standard, before)


def test_scales_made_during_validation_serve_in_training():
    scaling, weight = Scaling([1.0], [2.0]), torch.ones(1, requires_grad=True)
    with torch.inference_mode():
        scaling.restored(torch.ones(1), torch.float32)
    (scaling.restored(weight, torch.float32) * weight).sum().backward()
    assert weight.grad is not None


# ---- training -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("targets", [1, 3])
def test_learns_the_brightness_of_pictures(loss, targets):
    batch = picture_batch(64, targets=targets)
    outputs = RegressionTask.model_facts({"outputs": targets}, {"loss": loss})["outputs"]
    task = regression_task(inception(outputs), targets=targets, loss=loss)
    task.optimizer_factory.keywords.update(optimizer=torch.optim.Adam, lr=0.01)
    run = trainer(max_epochs=25)
    run.fit(task, loader(split(batch, 16)), loader(split(batch, 7)))
    assert run.callback_metrics["val/mae"] < 0.35 * run.callback_metrics["val/baseline_mae"]
    assert run.callback_metrics["val/r2"] > 0.8 and run.callback_metrics["val/pearson"] > 0.9


def test_each_step_tells_its_loss_and_samples_and_no_tokens():
    batch = picture_batch(8)
    task = regression_task(Linear())
    expected = 8 * F.mse_loss(task.model(task.normalised(batch.images)), (batch.targets - MEAN) / STD)
    run = trainer()
    run.fit(task, loader([batch]))
    assert (task.last_step.tokens, task.last_step.samples) == (0, 8)
    torch.testing.assert_close(task.last_step.loss_sum, expected.detach())
    assert run.callback_metrics["train/loss_epoch"] == pytest.approx(float(expected.detach()) / 8, rel=1e-5)


def moves(batches, *, accumulate=1, clip=None, **options):
    """How far each parameter of a linear model moved in one epoch, and the optimiser steps made."""
    torch.manual_seed(0)
    model = Linear(2).double()
    start = {name: value.detach().clone() for name, value in model.named_parameters()}
    run = trainer(accumulate_grad_batches=accumulate, gradient_clip_val=clip, **options)
    run.fit(regression_task(model, targets=2), loader(batches))
    return {name: value.detach() - start[name] for name, value in model.named_parameters()}, run.global_step


def assert_same(one, other):
    for name, value in one.items():
        assert value.abs().max() > 0, name
        torch.testing.assert_close(value, other[name], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("clip", [None, 0.05])
def test_batches_of_unequal_size_are_one_big_batch(clip):
    big = picture_batch(7, targets=2)
    expected, steps = moves([big], clip=clip)
    found, accumulated_steps = moves([*split(big, 3)], accumulate=3, clip=clip)
    assert steps == accumulated_steps == 1
    assert_same(found, expected)


class DealtToRanks(IterableDataset):
    """Every other batch, by rank."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        yield from self.batches[torch.distributed.get_rank() :: 2]


PROCESSES = {"devices": 2, "strategy": "ddp_fork", "use_distributed_sampler": False}
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")


@FORKS
def test_two_processes_give_the_gradient_of_the_big_batch():
    big = picture_batch(7, targets=2)
    expected, _ = moves([big])
    found, _ = moves(DealtToRanks(split(big, 4)), **PROCESSES)
    assert_same(found, expected)


@FORKS
def test_two_processes_measure_each_picture_once():
    """Seven pictures, one of them dealt twice to even out the processes."""
    torch.manual_seed(0)
    outputs, targets = torch.randn(7, 1), torch.randn(7, 1)
    parts = split(known_batch(targets), 2)
    one = trainer().validate(known_task(outputs.clone()), loader(parts), verbose=False)
    two = trainer(**PROCESSES).validate(
        known_task(outputs.clone()), loader(DealtToRanks([*parts, *parts[:2]])), verbose=False
    )
    assert one[0]["val/mae"] == pytest.approx(float((outputs - targets).abs().mean()))
    assert two[0] == pytest.approx(one[0])


def test_a_diverged_run_ends_with_a_message():
    task = regression_task(Linear())
    task.optimizer_factory.keywords["lr"] = 1e30
    with pytest.raises(UserError, match=r"the training loss is (nan|inf) in epoch 1"):
        trainer().fit(task, loader(split(picture_batch(8), 1)))


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true", "64-true", "16-true"])
@pytest.mark.parametrize("loss", ["mse", "gaussian_nll"])
def test_runs_in_every_precision(precision, loss):
    batch = picture_batch(8, targets=1)
    task = regression_task(inception(2 if loss == "gaussian_nll" else 1), loss=loss)
    run = trainer(precision=precision)
    run.fit(task, loader(split(batch, 4)), loader(split(batch, 3)))
    assert all(value.isfinite() for value in run.callback_metrics.values())
    assert task.results.predictions.dtype == task.results.targets.dtype == np.float64
    with run.precision_plugin.forward_context():
        predicted = task.predict(batch.images)
    assert predicted.dtype == torch.float32
    np.testing.assert_allclose(predicted.numpy(), task.results.predictions, rtol=0.05)


@pytest.mark.parametrize("channels_last", [True, False])
def test_channels_last_reaches_weights_and_pictures(channels_last):
    form = torch.channels_last if channels_last else torch.contiguous_format
    task = regression_task(inception(), channels_last=channels_last)
    weight = task.model.stem[0].conv.weight
    assert weight.is_contiguous(memory_format=form) and task.normalised(picture_batch(4).images).is_contiguous(
        memory_format=form
    )


# ---- validation and test --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 4, 10])
def test_metrics_are_those_of_the_whole_set_for_any_batch_size(size):
    from scipy import stats
    from sklearn import metrics

    generator = torch.Generator().manual_seed(0)
    targets = torch.randn(10, 2, generator=generator)
    targets[3] = targets[4]
    outputs = targets + torch.randn(10, 2, generator=generator)
    task = known_task(outputs, target_mean=[0.5, -1.0], target_std=[2.0, 3.0])
    (found,) = trainer().validate(task, loader(split(known_batch(targets), size)), verbose=False)
    predictions = (outputs.double() * torch.tensor([2.0, 3.0]) + torch.tensor([0.5, -1.0])).numpy()
    truth = targets.double().numpy()
    columns = list(zip(predictions.T, truth.T, strict=True))
    means = np.tile([0.5, -1.0], (10, 1))
    expected = {
        "val/loss": metrics.mean_squared_error((truth - means) / [2.0, 3.0], outputs.double().numpy()),
        "val/mse": metrics.mean_squared_error(truth, predictions),
        "val/rmse": metrics.root_mean_squared_error(truth, predictions),
        "val/mae": metrics.mean_absolute_error(truth, predictions),
        "val/mae/t0": metrics.mean_absolute_error(truth[:, 0], predictions[:, 0]),
        "val/mae/t1": metrics.mean_absolute_error(truth[:, 1], predictions[:, 1]),
        "val/r2": metrics.r2_score(truth, predictions),
        "val/pearson": np.mean([stats.pearsonr(p, t).statistic for p, t in columns]),
        "val/spearman": np.mean([stats.spearmanr(p, t).statistic for p, t in columns]),
        "val/baseline_rmse": metrics.root_mean_squared_error(truth, means),
        "val/baseline_mae": metrics.mean_absolute_error(truth, means),
    }
    assert found == pytest.approx(expected, rel=1e-5)
    assert set(RegressionTask.metrics) - {"train/loss_epoch"} <= set(found)


def test_results_are_sorted_by_sample_and_in_the_units_of_the_user():
    targets = torch.tensor([[1.5], [2.5], [3.5]])
    task = known_task(torch.tensor([[0.0], [1.0], [2.0]]), target_mean=[10.0], target_std=[0.1])
    assert task.results is None and task.result_rows() == []
    batch = known_batch(targets)
    shuffled = [
        ImageBatch(images=batch.images[i : i + 1], targets=targets[i : i + 1], ids=batch.ids[i : i + 1])
        for i in (2, 0, 1, 0)
    ]
    trainer().test(task, loader(shuffled), verbose=False)
    assert task.results.ids.tolist() == [0, 1, 2]
    assert task.results.predictions.tolist() == [pytest.approx([10.0]), pytest.approx([10.1]), pytest.approx([10.2])]
    assert task.results.targets.tolist() == targets.tolist()
    (row,) = task.result_rows()
    assert row == ("error of t0", "7.6 on average; predicting the mean of the training set: 7.5")


def test_targets_keep_their_digits_under_half_precision():
    """bfloat16 has steps of 0.5 between 64 and 128."""
    batch = known_batch(torch.tensor([[70.3], [101.7]]))
    task = known_task(torch.zeros(2, 1), target_mean=[85.1], target_std=[15.7])
    trainer(precision="bf16-true").validate(task, loader([batch]), verbose=False)
    np.testing.assert_allclose(task.results.targets, [[70.3], [101.7]], rtol=1e-6)
    np.testing.assert_allclose(task.results.predictions, [[85.1], [85.1]], rtol=1e-6)


@pytest.mark.parametrize(
    ("outputs", "targets", "missing", "reason"),
    [
        ([[1.0]], [[2.0]], {"r2", "pearson", "spearman"}, "one picture"),
        ([[1.0], [2.0]], [[3.0], [3.0]], {"r2", "pearson", "spearman"}, "all targets are equal"),
        ([[1.0], [1.0]], [[3.0], [4.0]], {"pearson", "spearman"}, "all predictions are equal"),
    ],
    ids=["one picture", "equal targets", "equal predictions"],
)
def test_what_is_undefined_is_left_out_and_said_once(outputs, targets, missing, reason, caplog, recwarn):
    task = known_task(torch.tensor(outputs))
    run = trainer(max_epochs=2)
    batch = known_batch(torch.tensor(targets))
    with caplog.at_level("INFO", logger="hotloop"):
        for _ in range(2):
            (found,) = run.validate(task, loader([batch]), verbose=False)
    assert {f"val/{name}" for name in missing} == {"val/r2", "val/pearson", "val/spearman"} - set(found)
    assert all(math.isfinite(value) for value in found.values()) and found["val/mae"] > 0
    said = [record.getMessage() for record in caplog.records if record.name.startswith("hotloop")]
    assert len(said) == 1 and reason in said[0]
    assert not [warning for warning in recwarn if "variance" in str(warning.message)]


def test_a_gaussian_model_learns_how_uncertain_it_is():
    """Noise of 3 units in the targets of one half, of 0.3 in those of the other."""
    generator = torch.Generator().manual_seed(0)
    count = 512
    noisy = torch.arange(count) % 2
    images = (noisy * 255).to(torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 2, 2)
    noise = torch.randn(count, generator=generator)
    targets = (20 + noise * torch.where(noisy == 1, 3.0, 0.3)).unsqueeze(1)
    task = regression_task(
        Linear(2, size=2, channels=1), channels=1, loss="gaussian_nll", target_mean=[20.0], target_std=[2.0]
    )
    task.optimizer_factory.keywords.update(optimizer=torch.optim.Adam, lr=0.05)
    batch = ImageBatch(images=images, targets=targets, ids=torch.arange(count))
    trainer(max_epochs=30).fit(task, loader(split(batch, 64)))
    means, spreads = task.predict_distribution(images[:2])
    assert means.flatten().tolist() == pytest.approx([20.0, 20.0], abs=0.6)
    assert spreads.flatten().tolist() == pytest.approx([0.3, 3.0], rel=0.25)
    assert torch.equal(task.predict(images[:2]), means)


def test_predict_gives_what_validation_saw_and_leaves_the_model_as_it_was():
    batch = picture_batch(6, targets=2)
    task = regression_task(inception(2), targets=2)
    trainer().validate(task, loader([batch]), verbose=False)
    before = {name: value.clone() for name, value in task.model.state_dict().items()}
    task.train()
    found = torch.cat([task.predict(part.images) for part in split(batch, 4)])
    assert found.dtype == torch.float32 and found.shape == (6, 2) and not found.requires_grad
    np.testing.assert_allclose(found.numpy(), task.results.predictions, rtol=1e-5)
    assert task.model.training
    assert all(torch.equal(value, before[name]) for name, value in task.model.state_dict().items())
    assert task.predict_distribution(batch.images)[1] is None


# ---- options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*LOSSES, None])
def test_the_model_is_told_how_many_numbers_the_loss_needs(loss):
    facts = {"outputs": 3, "channels": 1, "height": 9, "width": 8}
    found = RegressionTask.model_facts(facts, {} if loss is None else {"loss": loss})
    assert found == facts | {"outputs": 6 if loss == "gaussian_nll" else 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "mae"}, "loss must be one of mse, l1, huber, gaussian_nll, not 'mae'"),
        ({"huber_delta": 0.0}, "huber_delta.*0.0"),
        ({"target_names": ["a", "b"]}, "2 target_names, 1 target_mean"),
        ({"target_std": [0.0]}, r"target_std must be above 0, not \[0.0\]"),
        ({"pixel_std": [0.1, 0.0, 0.1]}, "pixel_std must be above 0"),
        ({"pixel_std": [0.1]}, "3 pixel_mean but 1 pixel_std"),
    ],
)
def test_options_out_of_range_are_refused_with_their_value(options, message):
    with pytest.raises(ValueError, match=message):
        regression_task(Linear(), **options)


def test_a_model_with_other_outputs_is_refused_with_both_shapes():
    with pytest.raises(ValueError, match=r"outputs of shape \(4, 2\).*\(4, 1\)"):
        regression_task(Linear(2)).predict(picture_batch(4).images)
