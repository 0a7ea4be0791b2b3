"""Each rule on a module with its fault and on the same module without it."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hotloop.diagnose.breakdown import Breakdown, Phase, Step, breakdown
from hotloop.diagnose.findings import Finding, findings
from hotloop.diagnose.source_lines import Loop


def found_in(
    module: nn.Module, batch: Tensor, *, facts: dict[str, Any] | None = None, optimizer: Any = torch.optim.SGD,
    next_batch: Callable[[], Tensor] | None = None,
) -> dict[str, Finding]:  # fmt: skip
    """The findings of real steps, by kind."""
    step = Step(module, optimizer(module.parameters(), lr=1e-4), next_batch or (lambda: batch), module)
    return {each.kind: each for each in findings(breakdown(step, steps=5), facts)}


class Base(nn.Module):
    """Two large layers; `fault` adds what is wrong."""

    def __init__(self, *, fault: bool = False) -> None:
        super().__init__()
        self.fault = fault
        self.first, self.second = nn.Linear(192, 256), nn.Linear(256, 192)

    def body(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).square().mean()


class Decoder(Base):
    """A recurrent layer over 24 steps, and its fault: one step at a time."""

    def __init__(self, *, fault: bool) -> None:
        super().__init__(fault=fault)
        self.decoder = nn.LSTM(64, 64, batch_first=True)
        self.head = nn.Linear(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        if not self.fault:
            return self.head(self.decoder(x)[0]).square().mean()
        state, found = None, []
        for t in range(x.shape[1]):
            output, state = self.decoder(x[:, t : t + 1], state)  # repeated
            found.append(self.head(output))
        return torch.cat(found, dim=1).square().mean()


class Functional(Decoder):
    """The same loop, without calling a module."""

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(len(x), 64)
        loss = x.new_zeros(())
        for t in range(x.shape[1]):
            h, c = torch.lstm_cell(x[:, t], (h, c), *self.decoder.all_weights[0])
            loss = loss + h.square().mean()
        return loss


class Flat(Base):
    """Pictures (B, 4, 32, 32) to numbers; its fault: a layer over all pixels in place of their averages."""

    def __init__(self, *, fault: bool) -> None:
        super().__init__(fault=fault)
        self.convolution = nn.Conv2d(4, 4, 3, padding=1)
        self.wide = nn.Linear(4 * 32 * 32, 320) if fault else nn.Linear(4, 320)
        del self.first, self.second

    def forward(self, x: Tensor) -> Tensor:
        x = self.convolution(x)
        return self.wide(x.flatten(1) if self.fault else x.mean((2, 3))).square().mean()


class Table(Base):
    """A few rows of a table are read; its fault: the table is large, and each step updates all of it."""

    def __init__(self, *, fault: bool) -> None:
        super().__init__(fault=fault)
        self.table = nn.Embedding(5_000 if fault else 10, 192)

    def forward(self, x: Tensor) -> Tensor:
        row = self.table(torch.zeros(1, dtype=torch.long))
        return (self.table.weight[:1] + row).square().mean() if self.fault else super().forward(x + row)


class Reading(Base):
    """Its fault: a value is read for each row."""

    def forward(self, x: Tensor) -> Tensor:
        out = self.body(x)
        if self.fault:
            for row in range(50):
                if out[row, 0].item() > 1e9:
                    raise ValueError
        return out.square().mean()


class Growing(Base):
    """Its fault: steps are joined to what is there, one by one, and not all at the end."""

    def forward(self, x: Tensor) -> Tensor:
        out = x.view(-1, 32, 192) * self.first.bias[:192]
        if not self.fault:
            return super().forward(x) + torch.stack([out[:, t] for t in range(4)], dim=1).mean()
        grown = out[:, :0]
        for t in range(out.shape[1]):
            grown = torch.cat((grown, out[:, t : t + 1]), dim=1)
        return grown.mean()


class Ill(Base):
    """Its fault: a factor on the loss."""

    factor = 1.0

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.factor


class Small(Base):
    """Its fault: Python between many operators on few numbers."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.fault:
            return super().forward(x)
        value, count = self.first.bias[:1], 0
        for _ in range(700):
            value = value * 0.999
            count += sum(1 for _ in range(400))
        return value.sum() + count


ROWS = torch.randn(1024, 192)


@pytest.mark.parametrize(
    ("kind", "module", "batch"),
    [
        ("loop", Decoder, torch.randn(32, 24, 64)),
        ("one_layer", Flat, torch.randn(256, 4, 32, 32)),
        ("synchronisation", Reading, ROWS),
        ("growing_copies", Growing, ROWS),
        ("launch_bound", Small, ROWS),
    ],
)
def test_a_fault_is_found_and_its_clean_twin_is_clean(kind, module, batch):
    assert kind in found_in(module(fault=True), batch)
    assert found_in(module(fault=False), batch) == {}


def test_a_loop_is_described_with_its_numbers_and_its_place():
    loop = found_in(Decoder(fault=True), torch.randn(32, 24, 64), facts={"decoding": "stepwise"})["loop"]
    assert "called 24 times a step by a loop in forward (decoding: stepwise)" in loop.message
    assert loop.message.startswith("decoder, head: ")
    with open(__file__, encoding="utf-8") as file:
        line = next(number for number, text in enumerate(file, start=1) if "# repeated" in text)
    assert loop.where.endswith(f"test_findings.py:{line}")
    assert loop.evidence["times"] == 24
    assert loop.evidence["share"] < loop.evidence["share_of_forward"]


def test_a_loop_over_functions_is_found_too():
    loop = found_in(Functional(fault=True), torch.randn(32, 24, 64))["loop"]
    assert loop.message.startswith("operators: called 24 times a step by a loop in forward")
    assert loop.evidence["times"] == 24


def test_a_slow_loader_is_found():
    def next_batch() -> Tensor:
        time.sleep(0.1)
        return ROWS

    found = found_in(Base(), ROWS, next_batch=next_batch, facts={"workers": 0, "batch_size": 1024})
    assert list(found) == ["data_wait"]
    assert "workers 0, batch size 1024" in found["data_wait"].message
    assert found["data_wait"].evidence["seconds"] >= 0.1


def test_an_update_of_what_was_not_used_is_found():
    found = found_in(Table(fault=True), ROWS, optimizer=torch.optim.Adam)
    assert "the optimiser (Adam, not fused) takes" in found["optimizer"].message
    assert found_in(Table(fault=False), ROWS, optimizer=torch.optim.SGD) == {}


def test_numbers_that_are_no_numbers_are_found():
    module = Ill()
    assert found_in(module, ROWS) == {}
    module.factor = float("nan")
    found = found_in(module, ROWS)["not_finite"]
    assert found.evidence["share"] == 1
    assert "100% of the gradients' values" in found.message


def test_gradients_too_small_for_fast_arithmetic_are_found():
    module = Ill()
    module.factor = 1e-36
    found = found_in(module, ROWS)
    assert "denormals" in found
    assert found["denormals"].evidence["of"] == "gradients"


@pytest.fixture(scope="module")
def clean() -> Breakdown:
    module = Base()
    step = Step(module, torch.optim.SGD(module.parameters(), lr=1e-4), lambda: ROWS, module)
    return breakdown(step, steps=3)


def with_shares(found: Breakdown, **shares: float) -> Breakdown:
    phases = {
        name: Phase(share, share, share, share, share)
        for name, share in {"data": 0.0, "forward": 0.0, "backward": 0.0, "optimizer": 0.0, **shares}.items()
    }
    return replace(found, phases=phases, step_seconds=1.0)


def test_padding_is_told_from_the_facts(clean):
    assert [each.kind for each in findings(clean, {"padding_share": 0.5})] == ["padding"]
    assert findings(clean, {"padding_share": 0.19}) == findings(clean, {"padding_share": None}) == []


def test_findings_come_by_their_share_of_the_step(clean):
    found = with_shares(clean, data=0.3, forward=0.1, backward=0.1, optimizer=0.5)
    kinds = [each.kind for each in findings(found, {"padding_share": 0.9})]
    assert kinds == ["optimizer", "data_wait", "padding"]


def test_one_read_value_is_too_many_on_a_device(clean):
    found = replace(clean, watched={**clean.watched, "aten::_local_scalar_dense": {"calls": 1, "share": 0.0}})
    assert findings(found) == []
    assert [each.kind for each in findings(replace(found, device="cuda"))] == ["synchronisation"]


def test_joining_is_told_only_of_what_grows(clean):
    found = replace(clean, watched={**clean.watched, "aten::cat": {"calls": 30, "share": 0.5}})
    assert findings(found) == []
    (finding,) = findings(replace(found, growing={"mine.py:3": 29, "mine.py:9": 4}))
    assert (finding.kind, finding.where) == ("growing_copies", "mine.py:3")


@pytest.mark.parametrize("fused", [True, None])
def test_the_form_of_the_optimiser_is_told(clean, fused):
    found = replace(with_shares(clean, optimizer=1.0), optimizer={"name": "AdamW", "fused": fused, "foreach": None})
    (finding,) = findings(found)
    assert ("(AdamW, fused)" in finding.message) == bool(fused)


def test_a_loop_that_saves_memory_is_meant(clean):
    loop = Loop("src/hotloop/tasks/chunked_loss.py:31", "forward", 20, 40, 0.1, 0.9, ("projection",))
    assert findings(replace(clean, loops=[loop])) == []
    assert len(findings(replace(clean, loops=[replace(loop, place="mine.py:31")]))) == 1


def test_repeated_modules_are_found_without_their_lines(clean):
    modules = [replace(each, calls=23, share=0.2) for each in clean.modules]
    (finding,) = findings(replace(clean, modules=modules))
    assert (finding.kind, finding.where) == ("loop", "first")
    assert "first, second: called up to 23 times a step, 40% of the forward pass" in finding.message
