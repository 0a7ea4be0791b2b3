"""What a text loader yields and a task reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass  # not frozen: Lightning rebuilds it field by field under precision=*-true
class Batch:
    """Sentence pairs as ids, padded with PAD behind each row.

    The lengths and the sample numbers stay on the CPU: packing wants them there, and reading them back
    from a device would make the host wait in every step.
    """

    source: Tensor  # (B, S) int64: tokens + EOS
    source_length: Tensor  # (B,) int64, CPU
    target: Tensor  # (B, T) int64: BOS + tokens + EOS
    target_length: Tensor  # (B,) int64, CPU; counts BOS and EOS
    ids: Tensor  # (B,) int64, CPU: sample numbers inside the split

    def __len__(self) -> int:
        return self.source.size(0)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """The same batch with `source` and `target` on `device`."""
        # Copies from pinned memory need no waiting, but Lightning only says so with bare tensors.
        on_the_way = non_blocking or (torch.device(device).type != "cpu" and self.source.is_pinned())
        return replace(
            self,
            source=self.source.to(device, non_blocking=on_the_way),
            target=self.target.to(device, non_blocking=on_the_way),
        )

    def pin_memory(self) -> Batch:
        """The same batch with `source` and `target` in page-locked memory (called by the DataLoader)."""
        return replace(self, source=self.source.pin_memory(), target=self.target.pin_memory())
