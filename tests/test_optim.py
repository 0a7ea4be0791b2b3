import math

import pytest
import torch
from torch import nn

from hotloop.optim import build_optimizer, build_schedule, parameter_groups


@pytest.fixture
def module() -> nn.Module:
    return nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3))


def test_vectors_never_decay(module):
    decaying, free = parameter_groups(module, 0.1)
    assert {p.ndim for p in decaying["params"]} == {2} and decaying["weight_decay"] == 0.1
    assert {p.ndim for p in free["params"]} == {1} and free["weight_decay"] == 0.0


def test_without_decay_there_is_one_group_with_every_trained_parameter(module):
    module[0].weight.requires_grad_(False)
    (group,) = parameter_groups(module, 0.0)
    assert [id(p) for p in group["params"]] == [id(p) for p in module[1].parameters()]


def test_fused_is_chosen_where_the_class_has_it(module):
    assert build_optimizer(module, optimizer=torch.optim.AdamW, lr=0.1).param_groups[0]["fused"] is True
    assert "fused" not in build_optimizer(module, optimizer=torch.optim.RMSprop, lr=0.1).param_groups[0]


def test_fused_gives_way_to_scaled_and_clipped_gradients(module):
    chosen = build_optimizer(module, optimizer=torch.optim.AdamW, lr=0.1, scaled_and_clipped=True)
    assert not chosen.param_groups[0]["fused"]
    with pytest.raises(ValueError, match="gradient clipping"):
        build_optimizer(module, optimizer=torch.optim.AdamW, lr=0.1, fused=True, scaled_and_clipped=True)


@pytest.mark.parametrize(("fused", "message"), [("yes", "'yes'"), (1.5, "1.5")])
def test_other_values_of_fused_are_refused(module, fused, message):
    with pytest.raises(ValueError, match=message):
        build_optimizer(module, optimizer=torch.optim.AdamW, lr=0.1, fused=fused)


def test_fused_is_refused_where_the_class_has_none(module):
    with pytest.raises(ValueError, match="RMSprop has no fused form"):
        build_optimizer(module, optimizer=torch.optim.RMSprop, lr=0.1, fused=True)


def factors(shape: str, *, steps: int = 10, lr: float = 0.1, **options) -> list[float]:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr)
    schedule = build_schedule(optimizer, shape=shape, total_steps=steps, **options)
    values = [optimizer.param_groups[0]["lr"]]
    for _ in range(steps):
        optimizer.step()
        schedule.step()
        values.append(optimizer.param_groups[0]["lr"])
    return values


def test_cosine_goes_from_the_peak_through_half_to_the_minimum():
    values = factors("cosine")
    assert values[0] == pytest.approx(0.1)
    assert values[5] == pytest.approx(0.05)
    assert values[-1] == pytest.approx(0.0, abs=1e-9)


def test_linear_ends_at_the_minimum():
    values = factors("linear", minimum=0.02)
    assert values[5] == pytest.approx(0.06)
    assert values[-1] == pytest.approx(0.02)


def test_warm_up_rises_in_equal_steps_to_the_peak():
    assert factors("constant", warmup_steps=4)[:6] == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1])


def test_warm_up_may_be_a_share_of_the_run():
    assert factors("constant", warmup_steps=0.4)[:6] == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1])


def test_inverse_sqrt_halves_after_four_times_the_warm_up():
    values = factors("inverse_sqrt", steps=16, warmup_steps=4)
    assert values[4] == pytest.approx(0.1)
    assert values[16] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": "cosin"}, "'cosin'"),
        ({"shape": "cosine", "total_steps": math.inf}, "max_epochs"),
        ({"warmup_steps": -1}, "-1"),
        ({"warmup_steps": 1.5}, "1.5"),
        ({"warmup_steps": 0.1, "total_steps": math.inf}, "max_epochs"),
        ({"minimum": 0.5}, "above the learning rate 0.1"),
    ],
)
def test_a_wrong_schedule_is_refused(options, message):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    with pytest.raises(ValueError, match=message):
        build_schedule(optimizer, **{"total_steps": 10, **options})


@pytest.mark.parametrize(("steps", "warmup"), [(20, 6), (20, 0.3), (7, 2), (17, 0.3), (3, 0.5)])
def test_one_cycle_is_the_curve_of_pytorch(steps, warmup):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    share = warmup if warmup < 1 else warmup / steps
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.1, total_steps=steps, pct_start=share, cycle_momentum=False
    )
    expected = [optimizer.param_groups[0]["lr"]]
    for _ in range(steps - 1):
        optimizer.step()
        theirs.step()
        expected.append(optimizer.param_groups[0]["lr"])
    minimum = 0.1 / 25 / 1e4  # where PyTorch's ends
    found = factors("one_cycle", steps=steps, warmup_steps=warmup, minimum=minimum)
    assert found[:steps] == pytest.approx(expected, rel=1e-9)
    assert found[steps - 1] == found[steps] == pytest.approx(minimum)  # the last step is taken at the minimum


@pytest.mark.parametrize(("steps", "warmup"), [(1, 0), (1, 0.3), (1, 1), (2, 1), (4, 4)])
def test_one_cycle_of_few_steps_has_a_peak(steps, warmup):
    assert max(factors("one_cycle", steps=steps, warmup_steps=warmup)[:steps]) == pytest.approx(0.1)


def test_one_cycle_without_warm_up_begins_at_the_peak():
    assert factors("one_cycle")[0] == pytest.approx(0.1)


def test_one_cycle_needs_an_end():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    with pytest.raises(ValueError, match="one_cycle needs an end"):
        build_schedule(optimizer, shape="one_cycle", warmup_steps=5, total_steps=math.inf)


def test_a_warm_up_longer_than_the_run_is_told(caplog: pytest.LogCaptureFixture) -> None:
    for warmup, told in ((100, True), (99, False), (0.5, False)):
        caplog.clear()
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        build_schedule(optimizer, total_steps=100, shape="inverse_sqrt", warmup_steps=warmup)
        assert ("warmup_steps=100, but the run has 100 steps" in caplog.text) is told


def after_a_late_start(*, fused: bool, **options) -> list[torch.Tensor]:
    """Weights after five steps, of which the first two give the first layer no gradient."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    optimizer = build_optimizer(module, optimizer=torch.optim.SGD, lr=0.1, momentum=0.9, fused=fused, **options)

    def closure(step: int) -> torch.Tensor:  # as Lightning does: the gradients are made within the step
        optimizer.zero_grad()
        loss = module(torch.ones(2, 3)).square().sum()
        loss.backward()
        if step < 2:
            module[0].weight.grad = module[0].bias.grad = None
        return loss

    for step in range(5):
        optimizer.step(lambda step=step: closure(step))
    return [p.detach() for p in module.parameters()]


@pytest.mark.parametrize("options", [{}, {"nesterov": True}, {"weight_decay": 0.1}])
def test_fused_sgd_takes_a_parameter_whose_first_gradient_comes_late(options):
    torch.testing.assert_close(after_a_late_start(fused=True, **options), after_a_late_start(fused=False, **options))


def test_a_run_of_one_step_is_told_in_the_singular_and_a_share_of_it_not_at_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    build_schedule(optimizer, total_steps=1, warmup_steps=0.05)
    assert not caplog.text
    build_schedule(optimizer, total_steps=1, warmup_steps=4)
    assert "the run has 1 step:" in caplog.text
