"""What an image loader yields and a task reads."""

from __future__ import annotations

import torch
from torch import Tensor


class ImageBatch:
    """Pictures as they were decoded, resized and augmented; whole numbers, so that few bytes travel.

    The task turns them into normalised floating-point numbers on the device. No dataclass: under precision=*-true
    Lightning would rebuild one field by field and round the targets to half precision.

    Args:
        images: (B, C, H, W) uint8, or int32 for 16-bit pictures; memory format channels_last.
        targets: (B, T) float32, in the user's units; T = 0 where they are not known.
        ids: (B,) int64, CPU: sample numbers inside the split.
    """

    def __init__(self, *, images: Tensor, targets: Tensor, ids: Tensor) -> None:
        self.images, self.targets, self.ids = images, targets, ids

    def __len__(self) -> int:
        return self.images.size(0)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> ImageBatch:
        """The same batch with `images` and `targets` on `device`."""
        # Copies from pinned memory need no waiting, but Lightning only says so with bare tensors.
        on_the_way = non_blocking or (torch.device(device).type != "cpu" and self.images.is_pinned())
        return ImageBatch(
            images=self.images.to(device, non_blocking=on_the_way),
            targets=self.targets.to(device, non_blocking=on_the_way),
            ids=self.ids,
        )

    def pin_memory(self) -> ImageBatch:
        """The same batch with `images` and `targets` in page-locked memory (called by the DataLoader)."""
        return ImageBatch(images=self.images.pin_memory(), targets=self.targets.pin_memory(), ids=self.ids)
