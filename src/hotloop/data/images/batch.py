"""What an image loader yields and a task reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass  # not frozen: Lightning rebuilds it field by field under precision=*-true
class ImageBatch:
    """Pictures as they were decoded, resized and augmented; whole numbers, so that few bytes travel.

    The task turns them into normalised floating-point numbers on the device.
    """

    images: Tensor  # (B, C, H, W) uint8, or int32 for 16-bit pictures; memory format channels_last
    targets: Tensor  # (B, T) float32, in the user's units; T = 0 where they are not known
    ids: Tensor  # (B,) int64, CPU: sample numbers inside the split

    def __len__(self) -> int:
        return self.images.size(0)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> ImageBatch:
        """The same batch with `images` and `targets` on `device`."""
        # Copies from pinned memory need no waiting, but Lightning only says so with bare tensors.
        on_the_way = non_blocking or (torch.device(device).type != "cpu" and self.images.is_pinned())
        return replace(
            self,
            images=self.images.to(device, non_blocking=on_the_way),
            targets=self.targets.to(device, non_blocking=on_the_way),
        )

    def pin_memory(self) -> ImageBatch:
        """The same batch with `images` and `targets` in page-locked memory (called by the DataLoader)."""
        return replace(self, images=self.images.pin_memory(), targets=self.targets.pin_memory())
