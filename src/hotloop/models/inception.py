"""Inception regressor: pictures to numbers (Szegedy et al. 2016, "Inception-v4", Fig. 4)."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotloop.models.options import check_positive

Downsample = Literal["max", "conv", "none"]
Head = Literal["gap", "flatten"]
BRANCHES = ("1×1", "reduced 3×3", "3×3", "reduced double 3×3", "double 3×3", "pool")
NORM_EPS = 1e-3  # as in the published network; activations of variance below it are not blown up to 1


class BasicConv2d(nn.Module):
    """Convolution without bias, batch normalisation, ReLU: (B, C, H, W) to (B, out, H / stride, W / stride)."""

    def __init__(self, channels: int, out: int, *, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(out, eps=NORM_EPS)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)), inplace=True)


class PooledConv2d(BasicConv2d):
    """3×3 average pooling of stride 1 before a 1×1 `BasicConv2d`; (B, C, H, W) to (B, out, H, W).

    Both are linear and one acts on places, the other on channels, so their order does not matter: the pooling runs
    where there are fewer channels.
    """

    def __init__(self, channels: int, out: int) -> None:
        super().__init__(channels, out)
        self.pools_last = channels > out

    def forward(self, x: Tensor) -> Tensor:
        if not self.pools_last:
            return super().forward(F.avg_pool2d(x, 3, stride=1, padding=1))
        return F.relu(self.norm(F.avg_pool2d(self.conv(x), 3, stride=1, padding=1)), inplace=True)


class InceptionBlock(nn.Module):
    """Four views of the same map, side by side: (B, C, H, W) to (B, out, H, W).

    The branches are 1×1; 1×1 → 3×3; 1×1 → 3×3 → 3×3; average pool 3×3 → 1×1.

    Args:
        channels: C.
        widths: channels of, in this order, the 1×1, the 1×1 before the 3×3, the 3×3, the 1×1 before the two 3×3,
            each of these two, and the 1×1 behind the pool. The first, third, fifth and sixth make `out`.
    """

    def __init__(self, channels: int, widths: Sequence[int]) -> None:
        super().__init__()
        single, reduced, wide, reduced_twice, twice, pooled = widths
        self.single = BasicConv2d(channels, single)
        self.wide = nn.Sequential(BasicConv2d(channels, reduced), BasicConv2d(reduced, wide, kernel=3))
        self.twice = nn.Sequential(
            BasicConv2d(channels, reduced_twice),
            BasicConv2d(reduced_twice, twice, kernel=3),
            BasicConv2d(twice, twice, kernel=3),
        )
        self.pooled = PooledConv2d(channels, pooled)
        self.out = single + wide + twice + pooled

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.single(x), self.wide(x), self.twice(x), self.pooled(x)), dim=1)


class InceptionRegressor(nn.Module):
    """Stem, Inception blocks with downsampling between them, and a linear head: a few numbers a picture.

    Options (all by keyword):

    - ``stem``: widths of 3×3 convolutions of stride 2 before the blocks; each makes what follows 4 times cheaper.
    - ``blocks``: one entry a block: a whole number n for branches of [n, 2n/3, n, 2n/3, n, n] channels, or these six
      (see `InceptionBlock`). A block of n has 4n channels.
    - ``downsample``, between two blocks: ``"max"`` (pool of 3×3, stride 2), ``"conv"`` (3×3 of stride 2, as many
      channels) or ``"none"``.
    - ``head``: ``"gap"`` averages the map over ``grid`` × ``grid`` fields, or as many as a small map has places; with
      1 the head knows what is in the picture, with 4 also where. ``"flatten"`` keeps the largest value of each field of
      ``pool`` × ``pool`` pixels.
    - ``dropout``: on what the last layer reads.

    Parameters of the published model (no stem, one block of 96, head ``"flatten"``, pictures of 3 × 224 × 224)::

        1×1                    3·96 + 2·96                                                480
        1×1 → 3×3              3·64 + 2·64 + 9·64·96 + 2·96                            55,808
        1×1 → 3×3 → 3×3        3·64 + 2·64 + 9·64·96 + 2·96 + 9·96·96 + 2·96          138,944
        average pool → 1×1     3·96 + 2·96                                                480
        linear                 384·28·28 + 1                                          301,057
                                                                                      496,769
        with the gap head      384 + 1 instead of 301,057                             196,097

    Raises ValueError for an option outside its range, and for pictures too small for the stem, blocks and head.
    """

    def __init__(
        self,
        *,
        outputs: int,
        channels: int,
        height: int,
        width: int,
        stem: Sequence[int] = (),
        blocks: Sequence[int | Sequence[int]] = (96,),
        downsample: Downsample = "max",
        head: Head = "gap",
        grid: int = 1,
        pool: int = 8,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_positive(outputs=outputs, channels=channels, height=height, width=width, grid=grid, pool=pool)
        check_positive(**{f"stem[{i}]": size for i, size in enumerate(stem)})
        for name, value, valid in (("downsample", downsample, get_args(Downsample)), ("head", head, get_args(Head))):
            if value not in valid:
                raise ValueError(f"{name} = {value!r}: choose one of {', '.join(valid)}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout = {dropout!r}: must be a number from 0 up to, but not including, 1")
        if not blocks:
            raise ValueError("blocks is empty: give at least one width")
        widths = [block_widths(block, f"blocks[{i}]") for i, block in enumerate(blocks)]
        halvings = len(stem) + (len(widths) - 1 if downsample != "none" else 0)
        rows, columns = halved(height, halvings), halved(width, halvings)
        _check_size((height, width), (rows, columns), halvings, least=pool if head == "flatten" else 1)

        layers: list[nn.Module] = []
        for size in stem:
            layers.append(BasicConv2d(channels, size, kernel=3, stride=2))
            channels = size
        self.stem = nn.Sequential(*layers)
        layers = []
        for i, sizes in enumerate(widths):
            if i > 0 and downsample == "max":
                layers.append(nn.MaxPool2d(3, stride=2, padding=1))
            elif i > 0 and downsample == "conv":
                layers.append(BasicConv2d(channels, channels, kernel=3, stride=2))
            block = InceptionBlock(channels, sizes)
            layers.append(block)
            channels = block.out
        self.blocks = nn.Sequential(*layers)
        if head == "flatten":
            self.pool: nn.Module = nn.MaxPool2d(pool)
            fields = (rows // pool) * (columns // pool)
        else:
            grid = min(grid, rows, columns)
            self.pool = average_fields(rows, columns, grid)
            fields = grid * grid
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(channels * fields, outputs)
        self._init()

    def forward(self, images: Tensor) -> Tensor:
        """Normalised pictures (B, C, H, W) to numbers (B, outputs)."""
        features = self.dropout(self.pool(self.blocks(self.stem(images))).flatten(1))
        if not torch.is_autocast_enabled(features.device.type):
            return self.linear(features)
        # Not in half precision: bfloat16 would leave a prediction two to three digits.
        with torch.autocast(features.device.type, enabled=False):
            return self.linear(features.to(self.linear.weight.dtype))

    def _init(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        # Small whatever the width: the first predictions are close to the mean of the targets.
        nn.init.normal_(self.linear.weight, std=0.1 * self.linear.in_features**-0.5)
        nn.init.zeros_(self.linear.bias)


def block_widths(block: int | Sequence[int], name: str) -> list[int]:
    """The six widths of an `InceptionBlock`.

    Raises:
        ValueError: `block` is neither a whole number of at least 2 nor six of at least 1; the message has `name`.
    """
    if isinstance(block, int) and not isinstance(block, bool):
        if block < 2:
            raise ValueError(f"{name} = {block}: must be at least 2")
        reduced = 2 * block // 3
        return [block, reduced, block, reduced, block, block]
    if not isinstance(block, Sequence) or len(block) != len(BRANCHES):
        raise ValueError(f"{name} = {block!r}: give one whole number, or six for {', '.join(BRANCHES)}")
    check_positive(**{f"{name}[{i}]": width for i, width in enumerate(block)})
    return list(block)


def halved(size: int, times: int) -> int:
    """Pixels of a side after `times` layers of stride 2; an odd side is rounded up."""
    return -(-size // 2**times)


def average_fields(rows: int, columns: int, grid: int) -> nn.Module:
    """Pooling of a map of (rows, columns) to (grid, grid) means that together cover all of it.

    Fields overlap where `grid` does not divide a side. `nn.AdaptiveAvgPool2d` would do nearly the same, but on GPUs
    its gradient is not reproducible.
    """
    if grid == 1:
        return nn.AdaptiveAvgPool2d(1)
    stride = (rows // grid, columns // grid)
    kernel = (rows - (grid - 1) * stride[0], columns - (grid - 1) * stride[1])
    return nn.AvgPool2d(kernel, stride)


def _check_size(picture: tuple[int, int], last: tuple[int, int], halvings: int, *, least: int) -> None:
    """The last map (rows, columns) has `least` places a side, and two in all: batch normalisation needs a variance."""
    if min(last) < least or last[0] * last[1] < 2:
        needed = f"{least}×{least}" if least > 1 else "two places"
        raise ValueError(
            f"pictures of {picture[0]}×{picture[1]} pixels shrink to {last[0]}×{last[1]} (halved {halvings} times), "
            f"but the head needs {needed}: use larger pictures, fewer stem layers, or downsample=none"
        )
