"""How fast a device multiplies matrices: what its arithmetic is measured against."""

from __future__ import annotations

import time

import torch

from hotloop.callbacks.environment import synchronize

SIZES = (256, 512, 1024, 2048, 4096, 8192)
LONG_ENOUGH = 0.005  # seconds: a larger product would tell the same
DTYPES = {"bf16": torch.bfloat16, "16": torch.float16, "64": torch.float64}


def matmul_rate(device: torch.device, dtype: torch.dtype, *, repeats: int = 3) -> float:
    """FLOP a second of a large square product of matrices, the best of a few: what this device reaches today.

    It takes less than 0.1 seconds.

    Args:
        device: where.
        dtype: of the factors; float32 follows PyTorch's matmul precision, as a training does.
        repeats: products that are timed at each size, after one that is not.
    """
    best = 0.0
    for size in SIZES:
        # Random numbers: some devices multiply zeros faster.
        generator = torch.Generator(device).manual_seed(0)
        left, right = (torch.randn(size, size, device=device, generator=generator).to(dtype) for _ in range(2))
        seconds = min([_product_seconds(left, right) for _ in range(1 + repeats)][1:])
        best = max(best, 2 * size**3 / seconds)
        if seconds > LONG_ENOUGH:
            break
    return best


def product_dtype(precision: str) -> torch.dtype:
    """The dtype in which a Lightning precision, such as "bf16-mixed", multiplies matrices."""
    return DTYPES.get(precision.partition("-")[0], torch.float32)


def _product_seconds(left: torch.Tensor, right: torch.Tensor) -> float:
    synchronize(left.device)
    began = time.perf_counter()
    torch.mm(left, right)
    synchronize(left.device)
    return time.perf_counter() - began
