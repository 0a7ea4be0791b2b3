"""How good predicted numbers are, by torchmetrics on whole sets; never averages of batches."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torchmetrics.functional import mean_absolute_error, mean_squared_error, pearson_corrcoef


def score_regression(
    predictions: Tensor, targets: Tensor, *, names: Sequence[str], baseline: Sequence[float]
) -> dict[str, float]:
    """Errors and correlations of predictions, each the mean over the targets.

    Args:
        predictions: (N, T), in the user's units.
        targets: (N, T).
        names: of the T targets. With several, the mean absolute error of each is told as `mae/NAME` besides.
        baseline: the T means of the training targets: what a model without pictures would predict.

    Returns:
        mse, rmse, mae, baseline_rmse, baseline_mae; and those of r2, pearson and spearman that are defined for every
        target: r2 needs targets that differ, the correlations (Pearson; Spearman 1904) predictions that differ too.

    Raises:
        ValueError: shapes that differ, are not (N, T), or N = 0.
    """
    if predictions.shape != targets.shape or targets.ndim != 2 or targets.shape[1] != len(names):
        raise ValueError(
            f"predictions of shape {tuple(predictions.shape)} and targets of shape {tuple(targets.shape)} "
            f"are not (N, {len(names)})"
        )
    if not len(targets):
        raise ValueError("no sample to score")
    predictions, targets = predictions.cpu().double(), targets.cpu().double()
    mean = torch.tensor(baseline, dtype=torch.float64).expand_as(targets)
    squared = by_target(mean_squared_error, predictions, targets)
    absolute = by_target(mean_absolute_error, predictions, targets)
    scores = {
        "mse": squared.mean(),
        "rmse": squared.sqrt().mean(),
        "mae": absolute.mean(),
        "baseline_rmse": by_target(mean_squared_error, mean, targets).sqrt().mean(),
        "baseline_mae": by_target(mean_absolute_error, mean, targets).mean(),
    }
    if len(names) > 1:
        scores |= {f"mae/{name}": error for name, error in zip(names, absolute, strict=True)}
    if varies(targets):
        # torchmetrics' own r2 takes every sum of squares below 1e-4 for 0, so it depends on the unit.
        spread = by_target(mean_squared_error, targets.mean(0).expand_as(targets), targets)
        scores["r2"] = (1 - squared / spread).mean()
        if varies(predictions):
            scores["pearson"] = by_target(pearson_corrcoef, scaled(predictions), scaled(targets)).mean()
            ranked = (scaled(ranks(predictions)), scaled(ranks(targets)))
            scores["spearman"] = by_target(pearson_corrcoef, *ranked).mean()
    return {name: float(value) for name, value in scores.items()}


def by_target(score: Callable[[Tensor, Tensor], Tensor], predictions: Tensor, targets: Tensor) -> Tensor:
    """`score` of each column of two (N, T) tensors: (T,)."""
    return torch.stack([score(p.contiguous(), t.contiguous()) for p, t in zip(predictions.T, targets.T, strict=True)])


def varies(values: Tensor) -> bool:
    """Whether each column of (N, T) holds different numbers, all finite."""
    return bool(values.isfinite().all() and (values != values[:1]).any(dim=0).all())


def scaled(values: Tensor) -> Tensor:
    """Columns of (N, T) with mean 0 and largest number 1; correlations stay the same."""
    centred = values - values.mean(0)
    return centred / centred.abs().amax(0)


def ranks(values: Tensor) -> Tensor:
    """Rank from 1 of each number in its column of (N, T), float64; equal numbers share the mean of their ranks.

    torchmetrics' own ranks are float32, and overflow where tens of thousands of numbers are equal.
    """
    columns = []
    for column in values.T:
        _, inverse, counts = torch.unique(column, return_inverse=True, return_counts=True)
        columns.append((counts.cumsum(0) - (counts - 1) / 2).double()[inverse])
    return torch.stack(columns, dim=1)
