"""From the numbers of the data to numbers around 0 with spread 1, and back."""

from collections.abc import Sequence

import torch
from torch import Tensor


class Scaling:
    """(x − mean) / std along one axis, and its inverse, in the precision and on the device of x.

    No module with buffers on purpose: precision=bf16-true would round the buffers to three digits.

    Args:
        mean: one number an entry of the axis.
        std: the same, above 0.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean = torch.tensor(mean, dtype=torch.float64)
        self.std = torch.tensor(std, dtype=torch.float64)
        self._there: dict[tuple[torch.device, torch.dtype, int], tuple[Tensor, Tensor, Tensor, Tensor]] = {}

    def normalised(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """(…, n) of any dtype as (x − mean) / std over the last axis; n is a multiple of the entries."""
        factor, shift, _, _ = self._constants(values, dtype)
        return values.to(dtype, copy=True).mul_(factor).add_(shift)

    def restored(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """(…, n) as x · std + mean: the inverse of `normalised`."""
        _, _, std, mean = self._constants(values, dtype)
        return values.to(dtype, copy=True).mul_(std).add_(mean)

    def _constants(self, values: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """1 / std, −mean / std, std and mean, repeated along the last axis of `values`; made once, then kept there."""
        key = (values.device, dtype, values.shape[-1])
        if key not in self._there:
            times = values.shape[-1] // len(self.mean)
            with torch.inference_mode(False):  # made during validation, they serve in training too
                made = (1 / self.std, -self.mean / self.std, self.std, self.mean)
                first, second, third, fourth = (x.to(dtype).repeat(times).to(values.device) for x in made)
                self._there[key] = (first, second, third, fourth)
        return self._there[key]


def normalised_pictures(images: Tensor, pixels: Scaling, *, dtype: torch.dtype, channels_last: bool) -> Tensor:
    """Whole numbers (B, C, H, W) as normalised numbers (B, C, H, W), in the memory format asked for.

    One conversion, then arithmetic in place. Rows of W · C numbers that lie side by side in memory are scaled at
    once: with three numbers at a time a CPU takes up to ten times as long.

    Args:
        images: uint8 or int32.
        pixels: one entry a channel, in units of `images`.
        dtype: of the result. The arithmetic is float32 at least: float16 does not hold 65,535.
        channels_last: memory format of the result.
    """
    precise = torch.promote_types(dtype, torch.float32)
    pictures = images.permute(0, 2, 3, 1).contiguous()  # a view of what the loaders give
    rows = pixels.normalised(pictures.flatten(2), precise).to(dtype)
    found = rows.view(pictures.shape).permute(0, 3, 1, 2)
    return found.contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
