import pytest
import torch
import torch.nn.functional as F

from hotloop.tasks.losses import projected_losses, smoothed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_equals_the_plain_formulation_in_value_and_gradient(smoothing):
    torch.manual_seed(0)
    logits = torch.randn(7, 11, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 11, (7,))
    weights = torch.rand(7, dtype=torch.float64)
    expected = F.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing)
    (expected_gradient,) = torch.autograd.grad((expected * weights).sum(), logits)
    smoothed, plain = smoothed_cross_entropy(logits, labels, smoothing)
    (gradient,) = torch.autograd.grad((smoothed * weights).sum(), logits)
    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(plain, F.cross_entropy(logits, labels, reduction="none"))
    torch.testing.assert_close(gradient, expected_gradient)
    assert not plain.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reductions_run_in_float32(dtype):
    logits = torch.full((2, 30_000), 10.0, dtype=dtype, requires_grad=True)
    smoothed, plain = smoothed_cross_entropy(logits, torch.tensor([0, 1]), 0.1)
    assert smoothed.dtype == plain.dtype == torch.float32
    assert plain == pytest.approx([10.30895] * 2, abs=1e-4)
    smoothed.sum().backward()
    assert logits.grad.dtype == dtype and logits.grad.isfinite().all()


def test_no_token_gives_no_loss():
    smoothed, plain = smoothed_cross_entropy(torch.zeros(0, 5), torch.zeros(0, dtype=torch.int64), 0.1)
    assert smoothed.shape == plain.shape == (0,)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 100])
def test_half_precision_projects_whole_groups_of_rows_and_gives_the_same(half, rows):
    torch.manual_seed(0)
    linear, hidden = torch.nn.Linear(8, 12), torch.randn(rows, 8, requires_grad=True)
    labels, seen = torch.randint(0, 12, (rows,)), []

    def project(part):
        seen.append(len(part))
        return linear(part)

    found = []
    for function in (
        lambda: projected_losses(project, hidden, labels, 0.1),
        lambda: smoothed_cross_entropy(linear(hidden), labels, 0.1),
    ):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            smoothed, plain = function()
        gradients = torch.autograd.grad(smoothed.sum(), [hidden, *linear.parameters()])
        found.append([smoothed, plain, *gradients])
    assert seen == [rows + -rows % 64 if half else rows]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0.02 if half else 1e-6, atol=0.05 if half else 1e-6)
