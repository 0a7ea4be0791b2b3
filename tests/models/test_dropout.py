import pytest
import torch

from hotloop.models.dropout import dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_share_asked_for_is_dropped_and_the_rest_scaled(rate, dtype):
    torch.manual_seed(0)
    found = dropout(torch.ones(400, 501, dtype=dtype), rate, True)
    assert found.dtype == dtype
    assert (found == 0).float().mean() == pytest.approx(rate, abs=0.005)  # more than four standard deviations
    kept = found[found != 0].float()
    assert kept.min() == kept.max() == pytest.approx(1 / (1 - rate), rel=0.01)


def test_neighbours_are_dropped_independently():
    torch.manual_seed(0)
    dropped = (dropout(torch.ones(1_000_000), 0.5, True) == 0).float() - 0.5
    for shift in (1, 2, 3, 4, 8):
        assert (dropped[shift:] * dropped[:-shift]).mean().abs() < 0.002


def test_the_gradient_passes_where_the_number_did():
    x = torch.randn(7, 13, requires_grad=True)
    found = dropout(x, 0.4, True)
    found.sum().backward()
    torch.testing.assert_close(x.grad * x, found)


def test_nothing_is_dropped_in_evaluation_or_at_rate_zero():
    x = torch.randn(5, 3)
    assert torch.equal(dropout(x, 0.5, False), x)
    assert torch.equal(dropout(x, 0.0, True), x)


def test_a_seed_decides_what_is_dropped():
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(dropout(torch.ones(9, 11), 0.3, True))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_an_empty_tensor_stays_empty():
    assert dropout(torch.ones(0, 4), 0.3, True).shape == (0, 4)
