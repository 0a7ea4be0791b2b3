"""Optimisers and learning-rate schedules: parameter groups, the fused choice, warm-up by optimiser step."""

import inspect
import logging
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

log = logging.getLogger(__name__)

# Below this, eps vanishes beside float16 numbers: 1e-8 rounds to 0 and a zero gradient becomes 0/0.
SMALLEST_HALF_EPS = 1e-4


def parameter_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups: matrices decay, vectors (biases, norms) do not. One group when nothing decays."""
    trained = [p for p in module.parameters() if p.requires_grad]
    if not weight_decay:
        return [{"params": trained}]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def build_optimizer(
    module: nn.Module,
    *,
    optimizer: type[Optimizer],
    fused: bool | str = "auto",
    scaled_and_clipped: bool = False,
    **options: Any,
) -> Optimizer:
    """Build `optimizer` over the parameters of `module`.

    Args:
        optimizer: any class of `torch.optim`.
        fused: True, False, or "auto": fused where the class offers it (an AdamW step on a CPU is about five
            times cheaper), except where a gradient scaler and clipping are both in use.
        scaled_and_clipped: a gradient scaler (precision=16-mixed on CUDA) and gradient clipping are both on.
            A fused step would un-scale the gradients itself, after they were clipped at the wrong scale.
        options: the class's own options (`lr`, `betas`, `eps`, `weight_decay`, …).

    Raises:
        ValueError: `fused` is neither a boolean nor "auto", or True together with `scaled_and_clipped`.
    """
    if fused not in (True, False, "auto"):
        raise ValueError(f"fused must be true, false or auto, not {fused!r}")
    if fused is True and scaled_and_clipped:
        raise ValueError(
            "fused=true cannot be combined with gradient clipping under 16-mixed: use fused=auto, "
            "precision=bf16-mixed or trainer.gradient_clip_val=null"
        )
    known = inspect.signature(optimizer).parameters
    if "fused" in known:
        use = fused is True or (fused == "auto" and not scaled_and_clipped)
        options["fused"] = use or None
    elif fused is True:
        raise ValueError(f"{optimizer.__name__} has no fused form: use fused=auto")
    if "eps" in known and any(p.dtype == torch.float16 for p in module.parameters()):
        default = known["eps"].default
        eps = options.get("eps", default if isinstance(default, float) else SMALLEST_HALF_EPS)
        if eps < SMALLEST_HALF_EPS:
            log.warning("optimizer.eps raised from %g to %g: it vanishes in float16", eps, SMALLEST_HALF_EPS)
            options["eps"] = SMALLEST_HALF_EPS
    built = optimizer(parameter_groups(module, options.get("weight_decay", 0.0)), **options)
    if isinstance(built, SGD) and options.get("fused") and options.get("momentum"):
        built.register_step_pre_hook(fill_momentum)
    return built


def fill_momentum(optimizer: Optimizer, *_: Any) -> None:
    """Give zeros to parameters that have no momentum yet, where others of their group have some.

    The fused SGD fails where a parameter gets its first gradient later than others, as a frozen one does when it
    thaws. Zeros are the momentum of what never moved; no update is another for them, except that `dampening` holds
    for the first step, too.
    """
    for group in optimizer.param_groups:
        missing = [p for p in group["params"] if optimizer.state.get(p, {}).get("momentum_buffer") is None]
        if 0 < len(missing) < len(group["params"]):
            for parameter in missing:
                optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)


# Share of the peak that a one-cycle run begins at (Smith & Topin 2018; PyTorch's div_factor of 25).
ONE_CYCLE_START = 1 / 25


def schedule_factor(step: int, *, shape: str, warmup: float, total: float, floor: float) -> float:
    """Learning rate at optimiser step `step` (from 0), as a share of the peak.

    A linear warm-up over `warmup` steps reaches 1, then the shape takes over: "constant", "linear" and
    "cosine" end at `floor` after `total` steps (Loshchilov & Hutter 2017, eq. 5, one cycle);
    "inverse_sqrt" decays as √(warmup / step) (Vaswani et al. 2017, §5.3). "one_cycle" is the curve of PyTorch's
    OneCycleLR: by half a cosine from a 25th to 1 at the last step of the warm-up, which need not be whole, and by
    another to `floor` at the last step of the run.
    """
    if shape == "one_cycle":
        peak, last = max(0.0, warmup - 1), total - 1
        if step < peak:
            return _half_cosine(ONE_CYCLE_START, 1.0, step / peak)
        return _half_cosine(1.0, floor, min(1.0, (step - peak) / (last - peak)) if last > peak else 0.0)
    if step < warmup:
        return (step + 1) / warmup
    if shape == "constant":
        return 1.0
    if shape == "inverse_sqrt":
        return max(floor, math.sqrt(max(warmup, 1) / max(step, 1)))
    progress = min(1.0, (step - warmup) / max(1.0, total - warmup))
    if shape == "linear":
        return floor + (1 - floor) * (1 - progress)
    return _half_cosine(1.0, floor, progress)


def _half_cosine(start: float, end: float, progress: float) -> float:
    return end + (start - end) * 0.5 * (1 + math.cos(math.pi * progress))


SHAPES = ("constant", "linear", "cosine", "inverse_sqrt", "one_cycle")
ENDING = ("linear", "cosine", "one_cycle")  # they come down to the minimum at the end of the run


def build_schedule(
    optimizer: Optimizer,
    *,
    total_steps: float,
    shape: str = "constant",
    warmup_steps: int | float = 0,
    minimum: float = 0.0,
) -> LambdaLR:
    """A schedule that is stepped once per optimiser step.

    Args:
        total_steps: optimiser steps of the whole run; infinite if the run has no end.
        shape: one of `SHAPES`.
        warmup_steps: optimiser steps of warm-up; below 1, a share of `total_steps`.
        minimum: the lowest learning rate, in the optimiser's unit.

    Raises:
        ValueError: unknown shape, negative numbers, a minimum above the peak, or a shape that needs the end
            of a run that has none.
    """
    if shape not in SHAPES:
        raise ValueError(f"shape must be one of {', '.join(SHAPES)}, not {shape!r}")
    if warmup_steps < 0 or minimum < 0:
        raise ValueError(f"warmup_steps ({warmup_steps}) and minimum ({minimum}) must not be negative")
    warmup = warmup_steps
    if 0 < warmup_steps < 1:
        if not math.isfinite(total_steps):
            raise ValueError("warmup_steps as a share needs an end: set trainer.max_epochs or trainer.max_steps")
        warmup = warmup_steps * total_steps if shape == "one_cycle" else math.ceil(warmup_steps * total_steps)
    elif warmup_steps != int(warmup_steps):
        raise ValueError(f"warmup_steps must be a whole number or a share below 1, not {warmup_steps}")
    if warmup_steps >= 1 and warmup_steps >= total_steps:
        log.warning(
            "scheduler.warmup_steps=%d, but the run has %d step%s: all of it is warm-up",
            warmup_steps, total_steps, "" if total_steps == 1 else "s",
        )  # fmt: skip
    if shape in ENDING and not math.isfinite(total_steps):
        raise ValueError(f"shape {shape} needs an end: set trainer.max_epochs or trainer.max_steps")
    peaks = [group["lr"] for group in optimizer.param_groups]
    if any(minimum > float(peak) for peak in peaks):
        raise ValueError(f"minimum {minimum} is above the learning rate {max(map(float, peaks))}")
    factors: list[Callable[[int], float]] = [
        partial(
            schedule_factor,
            shape=shape,
            warmup=warmup,
            total=total_steps,
            floor=minimum / float(peak) if peak else 0.0,
        )
        for peak in peaks
    ]
    return LambdaLR(optimizer, factors)
