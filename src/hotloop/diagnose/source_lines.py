"""Which lines of the user's or hotloop's own code a step's time and its calls of torch belong to."""

import os
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = tuple(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    for name in ("source_lines", "breakdown", "module_costs", "operators", "trial", "diagnosis")
)
LIBRARIES = tuple(
    {os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
WAITING = {"item": "item", "__bool__": "item", "__int__": "item", "__float__": "item", "tolist": "item",
           "nonzero": "nonzero", "masked_select": "nonzero", "argwhere": "nonzero"}  # fmt: skip
JOINING = ("cat", "concat", "concatenate", "hstack", "vstack")


@dataclass(frozen=True)
class Line:
    """A source line that was running, in a call of torch or by itself, when the step was looked at.

    Attributes:
        place: ``file:line``.
        function: the function it is in.
        share: of all looks, 0 … 1.
    """

    place: str
    function: str
    share: float


@dataclass(frozen=True)
class Loop:
    """Source lines that called torch several times for the same owner and weights, in one forward pass.

    Attributes:
        place: ``file:line`` of the statement that was repeated.
        function: the function it is in.
        times: how often it was repeated.
        calls: calls of torch that these repetitions made.
        seconds: in these calls, in one forward pass.
        share: of the time of all calls of torch in the forward pass, 0 … 1.
        modules: names of the modules that were called by them, the slowest first; without the one that loops.
    """

    place: str
    function: str
    times: int
    calls: int
    seconds: float
    share: float
    modules: tuple[str, ...]


@lru_cache(maxsize=4096)
def is_own(path: str) -> bool:
    """Whether a source file is the user's or hotloop's, not Python's, a library's or this measurement's."""
    path = os.path.abspath(path) if not path.startswith("<") else path
    if path in TOOL or path.startswith("<"):
        return False
    if path.startswith(PACKAGE + os.sep):
        return True
    return not path.startswith(LIBRARIES) and "site-packages" not in path and "dist-packages" not in path


def own_frames(frame: FrameType | None) -> list[FrameType]:
    """The frames of own code inside the step, the innermost first."""
    found = []
    while frame is not None and frame.f_code.co_filename not in TOOL:
        if is_own(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back
    return found


def place_of(code: CodeType, line: int) -> str:
    """``file:line``, the file relative to the working folder where it is below it."""
    path, here = os.path.abspath(code.co_filename), os.getcwd() + os.sep
    return f"{path.removeprefix(here)}:{line}"


@contextmanager
def sampled(lines: "Counter[tuple[str, str] | None]", *, every: float = 0.002) -> Iterator[None]:
    """Count in `lines` where the calling thread is, every `every` seconds.

    Each look adds one to (``file:line``, function), or to None where no own code is running.
    """
    watched, stop = threading.get_ident(), threading.Event()

    def look() -> None:
        while not stop.wait(every):
            frames = own_frames(sys._current_frames().get(watched))
            top = frames[0] if frames else None
            lines[(place_of(top.f_code, top.f_lineno), top.f_code.co_name) if top else None] += 1

    thread = threading.Thread(target=look, name="line sampler", daemon=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(min(interval, every / 4))  # else a busy loop keeps the sampler waiting for 5 ms
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


def top_lines(lines: "Counter[tuple[str, str] | None]", *, count: int = 5) -> list[Line]:
    """The `count` lines that were seen most."""
    looks = sum(lines.values())
    return [Line(*key, share=seen / looks) for key, seen in lines.most_common() if key is not None][:count]


@dataclass
class _Repeated:
    """Calls of torch by the same instructions for one owner and the same weights."""

    frames: list[FrameType]  # those that all of the calls have in common, the innermost first
    owner: str
    owner_id: int
    times: int = 0
    seconds: float = 0.0
    line: int = 0  # where the innermost common frame stood at the last call

    def repeated_module(self) -> str:
        """The owner's name; empty if there is none, or if it is the owner that loops or calls what loops."""
        return "" if any(id(frame.f_locals.get("self")) == self.owner_id for frame in self.frames) else self.owner


class CallTracer(TorchFunctionMode):
    """Counts and times the calls of torch that Python code makes, by the source line they come from.

    Two calls are the same if they come from the same instructions for the same module with the same parameters: a
    stack of twelve layers makes twelve different calls, a decoder that is called word by word makes one many times
    over. The innermost frame that lives through all calls of a kind is the one that loops; calls that stand in
    a loop of their own inside it are made more often than it goes round.

    Args:
        names: of modules, by id.
        synchronize: waits for the device.
    """

    def __init__(self, *, names: Mapping[int, str], synchronize: Callable[[], None]) -> None:
        super().__init__()
        self._names, self._synchronize = names, synchronize
        self._repeated: dict[Any, _Repeated] = {}
        self._sizes: dict[str, list[int]] = {}
        self._waiting: dict[str, Counter[str]] = {"item": Counter(), "nonzero": Counter()}
        self.seconds = 0.0
        self.loops: list[Loop] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        began = time.perf_counter()
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name == "__get__" or not (isinstance(result, Tensor | tuple) or name in WAITING):
            return result
        self._synchronize()
        self._note(name, args, result, time.perf_counter() - began)
        return result

    def finish(self, *, at_least: int = 4) -> None:
        """Put what was repeated at least so often into `loops`, by the function that loops, the slowest first.

        Lets go of the frames, and so of the tensors that they hold.
        """
        groups: dict[CodeType, list[_Repeated]] = {}
        for each in self._repeated.values():
            if each.times >= at_least and each.frames:
                groups.setdefault(each.frames[0].f_code, []).append(each)
        for code, group in groups.items():
            group.sort(key=lambda each: -each.seconds)
            seconds = sum(each.seconds for each in group)
            self.loops.append(
                Loop(
                    place_of(code, group[0].line), code.co_name, _rounds(group),
                    sum(each.times for each in group), seconds, seconds / self.seconds if self.seconds else 0.0,
                    tuple(dict.fromkeys(name for each in group if (name := each.repeated_module()))),
                )
            )  # fmt: skip
        self.loops.sort(key=lambda loop: -loop.seconds)
        self._repeated.clear()

    def waiting(self) -> dict[str, dict[str, int]]:
        """Lines that read a tensor's value (``item``) or count its entries (``nonzero``): calls by place."""
        return {kind: dict(places.most_common(5)) for kind, places in self._waiting.items()}

    def growing(self) -> dict[str, int]:
        """Lines that joined tensors to an ever longer one: calls by place."""
        return {
            place: len(sizes)
            for place, sizes in self._sizes.items()
            if len(sizes) >= 4 and sizes[-1] >= 2 * sizes[0] and sizes == sorted(sizes)
        }

    def _note(self, name: str, args: Any, result: Any, seconds: float) -> None:
        caller = sys._getframe(2)
        frames = own_frames(caller)
        if not frames:
            return
        self.seconds += seconds
        top = frames[0]
        waiting = WAITING.get(name) or ("nonzero" if name == "__getitem__" and _has_mask(args[1]) else None)
        if waiting is not None:
            self._waiting[waiting][place_of(top.f_code, top.f_lineno)] += 1
        elif name in JOINING and isinstance(result, Tensor):
            self._sizes.setdefault(place_of(top.f_code, top.f_lineno), []).append(result.numel())
        owner = _owner(caller)
        weights = tuple(id(value) for value in args if isinstance(value, nn.Parameter))
        key = (*_route(caller, top), owner, weights)
        known = self._repeated.get(key)
        if known is None:
            known = self._repeated[key] = _Repeated(frames, self._names.get(owner, ""), owner)
        else:  # kept frames are alive, so no other frame has the identity of one of them
            alive = {id(frame) for frame in frames}
            known.frames = [frame for frame in known.frames if id(frame) in alive]
        known.times += 1
        known.seconds += seconds
        known.line = known.frames[0].f_lineno if known.frames else 0


def _rounds(group: list[_Repeated]) -> int:
    """How often a loop went round: as its rarest call, of those whose time matters."""
    mean = sum(each.seconds for each in group) / len(group)
    return min(each.times for each in group if each.seconds >= mean / 2)


def _route(caller: FrameType | None, top: FrameType) -> Iterator[tuple[CodeType, int]]:
    """The instructions by which the innermost own frame got to a call of torch."""
    while caller is not None:
        yield caller.f_code, caller.f_lasti
        caller = None if caller is top else caller.f_back


def _has_mask(index: Any) -> bool:
    """Whether what stands in the brackets picks entries by a boolean tensor."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, Tensor) and part.dtype == torch.bool for part in parts)


def _owner(frame: FrameType | None) -> int:
    """The id of the module whose method is running; 0 outside any."""
    while frame is not None and frame.f_code.co_filename not in TOOL:
        if frame.f_code.co_varnames[:1] == ("self",):
            owner = frame.f_locals.get("self")
            if isinstance(owner, nn.Module):
                return id(owner)
        frame = frame.f_back
    return 0
