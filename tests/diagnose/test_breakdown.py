"""Where a step's time goes, on modules whose costs are known."""

import itertools
import json
import time
from dataclasses import replace

import pytest
import torch
from torch import nn

from hotloop.diagnose.breakdown import PHASES, Breakdown, Step, breakdown
from hotloop.errors import UserError


class Stepwise(nn.Module):
    """A cell and a head, step after step, behind three layers that are called once."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(16, 16) for _ in range(3)), nn.Dropout(0.5))
        self.cell = nn.GRUCell(16, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers(x)
        h, found = x.new_zeros(len(x), 16), []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)  # the loop
            found.append(self.head(h))
        return torch.stack(found, dim=1).square().mean()


class Layer(nn.Module):
    """A layer in own code."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ self.weight)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.projection = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
        self.projection.weight = self.embedding.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.projection(self.embedding(ids)).square().mean()


def step_of(module: nn.Module, batch: torch.Tensor, **parts) -> Step:
    return Step(module, torch.optim.SGD(module.parameters(), lr=1e-3), lambda: batch, module, **parts)


@pytest.fixture(scope="module")
def model() -> Stepwise:
    return Stepwise()


@pytest.fixture(scope="module")
def stepwise(model: Stepwise) -> Breakdown:
    step = step_of(model, torch.randn(2, 12, 16))
    return breakdown(replace(step, loss=lambda x: model(x)), steps=4)  # a line outside the loop


def line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, start=1) if text in line)


def test_phases_make_up_the_step(stepwise):
    assert tuple(stepwise.phases) == PHASES
    assert sum(phase.share for phase in stepwise.phases.values()) == pytest.approx(1)
    assert sum(phase.mean for phase in stepwise.phases.values()) == pytest.approx(stepwise.step_seconds)
    for phase in stepwise.phases.values():
        assert 0 < phase.lower_quartile <= phase.median <= phase.upper_quartile


def test_time_goes_to_the_phase_that_spends_it():
    module = nn.Linear(4, 4)
    slow = step_of(module, torch.randn(2, 4), after_backward=lambda: time.sleep(0.02))
    found = breakdown(Step(module, slow.optimizer, slow.next_batch, lambda x: module(x).mean(), slow.after_backward))
    assert found.phases["optimizer"].median > 0.02
    assert found.phases["optimizer"].share > 0.6


def test_a_loader_that_stalls_at_every_fourth_batch_is_seen():
    module, count = nn.Linear(4, 1), itertools.count()

    def next_batch() -> torch.Tensor:
        if next(count) % 4 == 0:
            time.sleep(0.04)
        return torch.ones(2, 4)

    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    found = breakdown(Step(module, optimizer, next_batch, lambda x: module(x).mean()), steps=8)
    assert found.phases["data"].median < 0.01 < found.phases["data"].mean
    assert found.phases["data"].share > 0.5


def test_modules_are_counted_as_they_are_called(stepwise):
    modules = {each.name: each for each in stepwise.modules}
    assert list(modules) == ["layers.0", "layers.1", "layers.2", "layers.3", "cell", "head"]
    assert [each.calls for each in modules.values()] == [1, 1, 1, 1, 12, 12]
    assert modules["head"].parameters == 16 * 4 + 4
    assert modules["head"].output_bytes == 12 * 2 * 4 * 4
    assert modules["layers.3"].parameters == 0
    assert sum(each.parameters for each in stepwise.modules) == stepwise.parameters
    assert sum(each.parameter_share for each in stepwise.modules) == pytest.approx(1)
    assert 0.1 < sum(each.share for each in stepwise.modules) < 1


def test_a_modules_time_is_its_own():
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.inner = nn.Parameter(torch.ones(())), Inner()

        def forward(self, x):
            return self.inner(x).mean() * self.scale

    class Inner(nn.Module):
        def forward(self, x):
            time.sleep(0.02)
            return x

    modules = {each.name: each for each in breakdown(step_of(Outer(), torch.ones(3)), steps=1).modules}
    assert modules["inner"].seconds >= 0.02
    assert modules["Outer"].seconds < 0.01
    assert (modules["Outer"].parameters, modules["inner"].parameters) == (1, 0)


def test_shared_parameters_count_once():
    found = breakdown(step_of(Tied(), torch.arange(10)), steps=1)
    assert found.parameters == 40
    assert [(each.name, each.parameters) for each in found.modules] == [("embedding", 40), ("projection", 0)]


def test_operators_are_told_apart_by_phase(stepwise):
    assert len(stepwise.operators) == 10
    assert {"forward", "backward"} <= {each.phase for each in stepwise.operators}
    assert [each.seconds for each in stepwise.operators] == sorted(
        (each.seconds for each in stepwise.operators), reverse=True
    )
    forward = {each.name: each.calls for each in stepwise.operators if each.phase == "forward"}
    assert forward["aten::addmm"] == 12 * 3 + 3  # two in a GRU cell, one in the head
    assert stepwise.launches_per_step > sum(each.calls for each in stepwise.operators)
    assert 0 < stepwise.operator_seconds < stepwise.profiled_seconds


def test_a_loop_is_placed_at_its_statement(stepwise):
    (loop,) = stepwise.loops
    assert loop.times == 12
    assert loop.function == "forward"
    assert loop.place.endswith(f"test_breakdown.py:{line_of('# the ' + 'loop')}")
    assert set(loop.modules) == {"cell", "head"}
    assert 0.2 < loop.share < 1


def test_a_loop_inside_a_loop_does_not_count_as_rounds():
    cell, inner = nn.GRUCell(64, 64), nn.Parameter(torch.eye(64))

    def loss(x: torch.Tensor) -> torch.Tensor:
        h = x[:, 0]
        for t in range(x.shape[1]):
            h = cell(x[:, t], h)
            for _ in range(5):
                h = h @ inner
        return h.mean()

    found = breakdown(Step(cell, torch.optim.SGD(cell.parameters()), lambda: torch.randn(8, 10, 64), loss), steps=1)
    assert [loop.times for loop in found.loops] == [10]
    assert found.loops[0].calls > 50


def test_a_stack_of_layers_is_no_loop():
    stack = nn.Sequential(*(Layer() for _ in range(20)))
    found = breakdown(Step(stack, torch.optim.SGD(stack.parameters()), lambda: torch.ones(2, 16),
                           lambda x: stack(x).mean()), steps=1)  # fmt: skip
    assert found.loops == []


def test_the_line_that_takes_the_time_is_seen():
    module = nn.Linear(4, 1)

    def next_batch() -> torch.Tensor:
        time.sleep(0.03)  # slow
        return torch.ones(2, 4)

    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    found = breakdown(Step(module, optimizer, next_batch, lambda x: module(x).mean()), steps=5)
    line = found.lines[0]
    assert line.place.endswith(f"test_breakdown.py:{line_of('# ' + 'slow')}")
    assert line.function == "next_batch"
    assert line.share > 0.6
    assert found.looks > 20


def test_lines_that_wait_for_values_are_placed():
    module = nn.Linear(4, 1)

    def loss(x: torch.Tensor) -> torch.Tensor:
        out = module(x)
        for value in out[:, 0]:
            assert value.item() < 1e9  # reads
        return out[out < 1e9].mean() if out.sum() < 1e9 else out.mean()

    found = breakdown(Step(module, torch.optim.Adam(module.parameters()), lambda: torch.ones(5, 4), loss), steps=1)
    assert found.watched["aten::_local_scalar_dense"]["calls"] == 6  # and not the step counters of Adam
    assert found.watched["aten::nonzero"]["calls"] == 2  # of the mask, again in the backward pass
    assert list(found.waiting["nonzero"].values()) == [1]
    places = {place.rpartition(":")[2]: calls for place, calls in found.waiting["item"].items()}
    assert places == {str(line_of("# " + "reads")): 5, str(line_of("# " + "reads") + 1): 1}


def test_the_module_is_left_as_it_was():
    model = Stepwise()
    model.layers.eval()

    def loss(x: torch.Tensor) -> torch.Tensor:
        model.layers.train()
        return model(x)

    optimizer = torch.optim.SGD(model.cell.parameters(), lr=0.1)  # forgets the gradients of the cell alone
    state = torch.get_rng_state()
    breakdown(Step(model, optimizer, lambda: torch.randn(2, 5, 16), loss), steps=2)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.training and not model.layers.training and not model.layers[0].training
    for module in model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks


def test_hooks_and_gradients_are_gone_after_an_error():
    model, count = Stepwise(), itertools.count()

    def loss(x: torch.Tensor) -> torch.Tensor:
        if next(count) == 4:  # warm-up, timed, sampled and profiled come before the first with hooks
            raise RuntimeError("out of memory")
        return model(x)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(RuntimeError, match="out of memory"):
        breakdown(Step(model, optimizer, lambda: torch.randn(2, 5, 16), loss), steps=1, warm_up=1)
    assert next(count) == 5
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_as_many_batches_are_used_as_promised():
    model = Stepwise()
    batches = iter([torch.randn(2, 3, 16)] * 12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    breakdown(Step(model, optimizer, lambda: next(batches), model), steps=2, warm_up=1)
    assert next(batches, None) is None
    with pytest.raises(UserError, match="batches ended"):
        breakdown(Step(model, optimizer, lambda: next(batches), model), steps=2, warm_up=1)


def test_what_has_no_step_in_phases_is_refused():
    model = Stepwise()
    with pytest.raises(UserError, match="LBFGS"):
        breakdown(Step(model, torch.optim.LBFGS(model.parameters()), lambda: None, model))
    with pytest.raises(UserError, match="Identity has no parameters"):
        breakdown(Step(nn.Identity(), torch.optim.SGD(model.parameters()), lambda: None, model))
    with pytest.raises(UserError, match="steps=0"):
        breakdown(step_of(model, torch.ones(1)), steps=0)


def test_a_breakdown_goes_into_json(stepwise):
    content = json.loads(json.dumps(stepwise.as_dict()))
    assert content["phases"]["forward"]["share"] == stepwise.phases["forward"].share
    assert content["modules"][4]["kind"] == "GRUCell"
    assert content["optimizer"] == {"name": "SGD", "fused": None, "foreach": None}
    assert content["peak_rss_mb"] > 50
