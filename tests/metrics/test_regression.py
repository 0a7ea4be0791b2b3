import math

import numpy as np
import pytest
import torch

from hotloop.metrics.regression import ranks, score_regression


def scored(predictions, targets, baseline=0.0):
    """Scores of one target."""
    columns = (torch.tensor(values, dtype=torch.float64).unsqueeze(1) for values in (predictions, targets))
    return score_regression(*columns, names=["x"], baseline=[baseline])


def test_errors_of_a_set_worked_out_by_hand():
    found = scored([1.0, 2.0, 6.0], [2.0, 2.0, 4.0], baseline=3.0)
    assert found["mse"] == pytest.approx(5 / 3) and found["rmse"] == pytest.approx(math.sqrt(5 / 3))
    assert found["mae"] == pytest.approx(1.0)
    assert found["baseline_mae"] == pytest.approx(1.0) and found["baseline_rmse"] == pytest.approx(1.0)
    assert found["r2"] == pytest.approx(1 - 5 / (8 / 3))
    assert "mae/x" not in found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rounded", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (1e6, 1.0), (0.0, 1e-9)])
def test_equal_those_of_scikit_learn_and_scipy(seed, rounded, offset, scale):
    from scipy import stats
    from sklearn import metrics

    generator = np.random.default_rng(seed)
    targets = generator.normal(size=50)
    predictions = targets + generator.normal(size=50)
    if rounded:
        targets, predictions = targets.round(), predictions.round()
    targets, predictions = offset + scale * targets, offset + scale * predictions
    found = scored(predictions, targets, baseline=offset)
    assert found["mse"] == pytest.approx(metrics.mean_squared_error(targets, predictions))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(targets, predictions))
    assert found["r2"] == pytest.approx(metrics.r2_score(targets, predictions))
    assert found["pearson"] == pytest.approx(stats.pearsonr(predictions, targets).statistic)
    assert found["spearman"] == pytest.approx(stats.spearmanr(predictions, targets).statistic)


def test_several_targets_are_averaged_and_their_errors_told_apart():
    targets = torch.tensor([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
    predictions = targets + torch.tensor([1.0, 4.0])
    found = score_regression(predictions, targets, names=["near", "far"], baseline=[1.0, 10.0])
    assert (found["mae"], found["rmse"], found["mse"]) == (2.5, 2.5, 8.5)
    assert (found["mae/near"], found["mae/far"]) == (1.0, 4.0)
    assert found["pearson"] == pytest.approx(1.0) and found["spearman"] == pytest.approx(1.0)
    assert found["r2"] == pytest.approx(((1 - 3 / 2) + (1 - 48 / 200)) / 2)


@pytest.mark.parametrize(
    ("predictions", "targets", "defined"),
    [
        ([1.0], [2.0], set()),
        ([1.0, 2.0], [3.0, 3.0], set()),
        ([1.0, 1.0], [3.0, 4.0], {"r2"}),
        ([1.0, 2.0], [3.0, 4.0], {"r2", "pearson", "spearman"}),
        ([1.0, math.nan], [3.0, 4.0], {"r2"}),
    ],
    ids=["one sample", "equal targets", "equal predictions", "two samples", "not a number"],
)
def test_what_has_no_value_is_left_out_without_a_warning(predictions, targets, defined, recwarn):
    found = scored(predictions, targets)
    assert set(found) - {"mse", "rmse", "mae", "baseline_rmse", "baseline_mae"} == defined
    assert all(math.isfinite(found[name]) for name in ("baseline_mae", "baseline_rmse"))
    assert not list(recwarn)


def test_one_target_that_never_differs_leaves_the_correlations_of_all_undefined():
    targets = torch.tensor([[1.0, 5.0], [2.0, 5.0]])
    found = score_regression(targets, targets, names=["a", "b"], baseline=[0.0, 0.0])
    assert "r2" not in found and "pearson" not in found and found["mae"] == 0.0


def test_equal_numbers_share_the_mean_of_their_ranks():
    values = torch.tensor([[30.0, 1.0], [10.0, 1.0], [10.0, 0.0], [20.0, 1.0]])
    assert ranks(values).T.tolist() == [[4.0, 1.5, 1.5, 3.0], [3.0, 3.0, 1.0, 3.0]]


def test_ranks_of_a_hundred_thousand_equal_numbers_do_not_overflow():
    targets = torch.cat([torch.zeros(100_000), torch.arange(1.0, 1001.0)]).unsqueeze(1)
    found = score_regression(targets, targets, names=["x"], baseline=[0.0])
    assert found["spearman"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("predictions", "targets", "message"),
    [
        ((4, 1), (4,), r"\(4, 1\) and targets of shape \(4,\)"),
        ((4,), (4,), r"\(4,\)"),
        ((4, 2), (4, 2), r"\(N, 1\)"),
        ((0, 1), (0, 1), "no sample"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(predictions, targets, message):
    with pytest.raises(ValueError, match=message):
        score_regression(torch.zeros(predictions), torch.zeros(targets), names=["x"], baseline=[0.0])
