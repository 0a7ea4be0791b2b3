"""What the modules of a model cost in one training step, and whether their values are sound."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.diagnose.operators import Run


@dataclass(frozen=True)
class ModuleCost:
    """A module that has parameters of its own or no children.

    Attributes:
        name: as in `named_modules`, the class's name for the root.
        kind: the class.
        parameters: its own; shared ones count where they come first.
        parameter_share: of all parameters, 0 … 1.
        seconds: in its forward, without that of its children, in one step.
        share: of the forward pass, 0 … 1.
        calls: of its forward, in one step.
        output_bytes: of what it returned, all calls together.
    """

    name: str
    kind: str
    parameters: int
    parameter_share: float
    seconds: float
    share: float
    calls: int
    output_bytes: int


def module_costs(
    root: nn.Module, run: Run, *, names: Mapping[int, str], synchronize: Callable[[], None]
) -> list[ModuleCost]:
    """Times each module's forward in one step, through hooks that are gone afterwards.

    Args:
        root: the module and all below it.
        run: does one step, each phase inside the context that it is given for it.
        names: of the modules, by id.
        synchronize: waits for the device.
    """
    own: dict[int, float] = defaultdict(float)
    calls: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    running: list[list[float]] = []  # start, seconds of children
    forward: list[float] = []

    def enter(module: nn.Module, _: Any) -> None:
        synchronize()
        running.append([time.perf_counter(), 0.0])

    def leave(module: nn.Module, _: Any, output: Any) -> None:
        synchronize()
        began, children = running.pop()
        took = time.perf_counter() - began
        if running:
            running[-1][1] += took
        own[id(module)] += took - children
        calls[id(module)] += 1
        sizes[id(module)] += sum(value.numel() * value.element_size() for value in _tensors(output))

    @contextmanager
    def hooked(phase: str) -> Iterator[None]:
        if phase != "forward":  # a forward that is done again in the backward pass is not one of the model's
            yield
            return
        with ExitStack() as hooks:
            for module in root.modules():
                hooks.callback(module.register_forward_pre_hook(enter).remove)
                hooks.callback(module.register_forward_hook(leave).remove)
            began = time.perf_counter()
            yield
            forward.append(time.perf_counter() - began)

    run(hooked)
    seen: set[int] = set()
    found, total = [], sum(parameter.numel() for parameter in root.parameters())
    for module in root.modules():
        parameters = [p for p in module.parameters(recurse=False) if id(p) not in seen]
        if not parameters and any(True for _ in module.children()):
            continue
        seen.update(map(id, parameters))
        count, key = sum(p.numel() for p in parameters), id(module)
        found.append(
            ModuleCost(
                names[key], type(module).__name__, count, count / total, own[key], own[key] / forward[0], calls[key],
                sizes[key],
            )
        )  # fmt: skip
    return found


class Health:
    """Shares of values that are no numbers, or that a CPU computes slowly, in one step."""

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self._module, self._on_cpu = module, device.type == "cpu"
        self._outputs: list[Tensor] = []
        self.shares: dict[str, Any] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep what the modules give."""

        def keep(module: nn.Module, _: Any, output: Any) -> None:
            self._outputs += [value.detach() for value in _tensors(output)]

        with ExitStack() as hooks:
            for module in self._module.modules() if self._on_cpu else ():
                if next(module.children(), None) is None:
                    hooks.callback(module.register_forward_hook(keep).remove)
            yield

    def read(self) -> None:
        """Look at these and at the gradients."""
        gradients = [p.grad for p in self._module.parameters() if p.grad is not None]
        gradients = [g.coalesce().values() if g.is_sparse else g for g in gradients]
        self.shares = {
            "nonfinite_gradients": _share(gradients, lambda g: ~g.isfinite()),
            "denormal_gradients": _share(gradients, _denormal) if self._on_cpu else None,
            "denormal_activations": _share(self._outputs, _denormal) if self._on_cpu else None,
        }
        self._outputs.clear()


def _denormal(values: Tensor) -> Tensor:
    return (values != 0) & (values.abs() < torch.finfo(values.dtype).tiny)


def _share(tensors: Iterable[Tensor], is_one: Callable[[Tensor], Tensor]) -> float:
    floating = [value for value in tensors if value.is_floating_point()]
    size = sum(value.numel() for value in floating)
    return sum(int(is_one(value).sum()) for value in floating) / size if size else 0.0


def _tensors(output: Any) -> Iterator[Tensor]:
    """The tensors in what a module gave."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, tuple | list):
        for value in output:
            yield from _tensors(value)
