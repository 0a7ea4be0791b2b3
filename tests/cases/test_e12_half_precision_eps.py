"""E12: eps = 1e-8 rounds to 0 in float16, and the first step makes the weights NaN."""

import pytest
import torch
from torch import nn

from hotloop.optim import build_optimizer

OPTIMIZERS = [torch.optim.RMSprop, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("options", [{}, {"eps": 1e-8}, {"eps": 1e-10}])
def test_e12_weights_stay_finite_in_float16_also_those_without_a_gradient(optimizer, options):
    torch.manual_seed(0)
    embedding = nn.Embedding(6, 4).half()
    steps = build_optimizer(embedding, optimizer=optimizer, lr=1e-3, **options)
    for _ in range(3):
        steps.zero_grad()
        (embedding(torch.tensor([0, 1, 2])).float().square().mean() * 1e-3).backward()
        steps.step()
    assert embedding.weight.isfinite().all()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_e12_eps_stays_as_configured_for_other_dtypes(optimizer):
    for dtype in (torch.float32, torch.bfloat16):
        chosen = build_optimizer(nn.Linear(2, 2).to(dtype), optimizer=optimizer, lr=1e-3, eps=1e-8)
        assert chosen.param_groups[0]["eps"] == 1e-8


def test_e12_a_larger_eps_is_kept_in_float16():
    chosen = build_optimizer(nn.Linear(2, 2).half(), optimizer=torch.optim.AdamW, lr=1e-3, eps=1e-3)
    assert chosen.param_groups[0]["eps"] == 1e-3
