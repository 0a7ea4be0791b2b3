"""Dropout (Srivastava et al. 2014) that does not spend its time on random numbers."""

import torch
from torch import Tensor
from torch.nn import functional as F


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """x with each number set to 0 with probability `rate`, the others divided by 1 - rate; of any shape.

    `F.dropout` draws a whole random number for each entry, which takes a CPU longer than the layer norm beside it.
    16 random bits decide as well: four entries share a draw, and `rate` is exact to 1 in 65,536.
    """
    if not training or rate == 0.0 or x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, rate, training)
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
    first_kept = round(rate * 2**16) - 2**15
    return x * (bits >= first_kept).to(x.dtype).mul_(1 / (1 - rate))
