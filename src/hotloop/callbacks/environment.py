"""What a run ran on: versions, revision, device, memory."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import lightning
import lightning.pytorch as pl
import psutil
import torch

import hotloop

FACTS = (
    "versions", "git", "device", "processes", "strategy", "precision", "optimizer", "fused", "parameters",
    "trainable_parameters", "slow_paths", "data", "resumed_from",
)  # fmt: skip


def describe(trainer: pl.Trainer, pl_module: pl.LightningModule, *, precision: str | None) -> dict[str, Any]:
    """What does not change during a run, by the names in `FACTS`; {} on every process but the first.

    Args:
        trainer: attached to its model and data.
        pl_module: the task.
        precision: as it was asked for; Lightning may use another.
    """
    if not trainer.is_global_zero:
        return {}
    summary = getattr(trainer.datamodule, "summary", None)  # type: ignore[attr-defined]
    slow_paths = getattr(pl_module, "slow_paths", None)
    optimizer = trainer.optimizers[0] if trainer.optimizers else None
    parameters = list(pl_module.parameters())
    return {
        "versions": versions(),
        "git": git_state(Path.cwd()),
        "device": device_name(trainer.strategy.root_device),
        "processes": trainer.world_size,
        "strategy": type(trainer.strategy).__name__,
        "precision": {"asked": precision or trainer.precision, "used": trainer.precision},
        "optimizer": None if optimizer is None else type(optimizer).__name__,
        "fused": None if optimizer is None else bool(optimizer.defaults.get("fused")),
        "parameters": sum(p.numel() for p in parameters),
        "trainable_parameters": sum(p.numel() for p in parameters if p.requires_grad),
        # Of training alone: an evaluation always takes the quick way.
        "slow_paths": slow_paths() if optimizer is not None and callable(slow_paths) else {},
        "data": summary() if callable(summary) else {},
        "resumed_from": None if trainer.ckpt_path is None else str(trainer.ckpt_path),
    }


def versions() -> dict[str, str | None]:
    """Versions of what decides speed and results."""
    return {
        "python": platform.python_version(),
        "hotloop": hotloop.__version__,
        "torch": torch.__version__,
        "lightning": lightning.__version__,
        "cuda": torch.version.cuda,
        "cudnn": str(torch.backends.cudnn.version()) if torch.cuda.is_available() else None,
    }


def git_state(folder: Path) -> dict[str, Any]:
    """Revision of the repository that holds `folder` and whether tracked files were changed; {} outside of one."""
    revision = _git(folder, "rev-parse", "HEAD")
    if revision is None:
        return {}
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"revision": revision, "changed": None if changed is None else bool(changed)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def device_name(device: torch.device) -> str:
    """A device as a reader knows it: the model of the GPU, or of the CPU with the threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "cpu":
        return f"{_processor()} ({torch.get_num_threads()} threads)"
    return device.type


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "CPU"


def resident_mb() -> float:
    """Resident memory of this process now, in MB (10⁶ bytes); its loader workers are not counted."""
    return psutil.Process(os.getpid()).memory_info().rss / 1e6


def synchronize(device: torch.device) -> None:
    """Wait until `device` has done all that was asked of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def peak_gpu_mb(device: torch.device) -> float | None:
    """Most memory that PyTorch had allocated on `device` since `reset_peak`, in MB; None without a GPU."""
    return torch.cuda.max_memory_allocated(device) / 1e6 if device.type == "cuda" else None


def reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
