"""What a checkpoint holds, how a task is built from the file alone, and where the last run left its own.

A checkpoint is a Lightning checkpoint with one more key, "hotloop": tensors and plain containers only, so
that PyTorch's safe unpickler reads it. Nothing named in a file is ever imported: the file says "Seq2Seq",
and that name is looked up among the classes of `hotloop.models`.
"""

import importlib
import inspect
import pickle
import pkgutil
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import hotloop.models
from hotloop.errors import UserError

FORMAT = 1


def plain(value: Any, where: str = "checkpoint") -> Any:
    """`value` again, if it is made of plain containers, strings, numbers, booleans, None and tensors.

    Raises:
        TypeError: names the place of the first other object.
    """
    if value is None or isinstance(value, (bool, int, float, str, torch.Tensor)):
        return value
    if isinstance(value, dict):
        return {key: plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise TypeError(f"{where} is a {type(value).__name__}: a checkpoint holds plain data only")


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint with the safe unpickler, onto the CPU.

    Raises:
        UserError: no such file, not a checkpoint, damaged, or it holds objects that would run code.
    """
    if not str(path):
        raise UserError("ckpt_path is empty: give a checkpoint file")
    path = Path(path)
    if path.is_dir():
        found = _most_useful(path)
        hint = f"; it holds {found}" if found else ""
        raise UserError(f"ckpt_path: {path} is a folder, not a checkpoint file{hint}")
    if not path.is_file():
        near = sorted(p.name for p in path.parent.glob("*.ckpt")) if path.parent.is_dir() else []
        hint = f"; {path.parent} holds {', '.join(near)}" if near else ""
        raise UserError(f"ckpt_path: there is no file {path}{hint}")
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                if archive.testzip() is not None:
                    raise UserError(f"ckpt_path: {path} is damaged: its checksums do not fit its content")
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if zipfile.is_zipfile(path):
            raise UserError(
                f"ckpt_path: {path} is refused: it holds more than tensors and plain data, and opening it "
                "could run somebody's code"
            ) from error
        raise UserError(f"ckpt_path: {path} is not a checkpoint or is damaged") from error
    except (RuntimeError, EOFError, OSError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise UserError(f"ckpt_path: {path} is not a checkpoint or is damaged ({_first_line(error)})") from error
    if not isinstance(content, dict) or "state_dict" not in content:
        raise UserError(f"ckpt_path: {path} is no Lightning checkpoint: it has no state_dict")
    return content


def read_hotloop_checkpoint(path: str | Path) -> dict[str, Any]:
    """`read_checkpoint`, and the file must be one that hotloop wrote.

    Raises:
        UserError: as `read_checkpoint`, or the file was written by something else or by a newer hotloop.
    """
    content = read_checkpoint(path)
    saved = content.get("hotloop")
    if not isinstance(saved, dict) or "model" not in saved:
        raise UserError(f"ckpt_path: {path} was not written by hotloop: it does not say how to build its model")
    if saved.get("format") != FORMAT:
        raise UserError(f"ckpt_path: {path} has format {saved.get('format')!r}; this version reads {FORMAT}")
    wrong = [key for key in ("model", "task", "data", "config") if not isinstance(saved.get(key), dict)]
    if not wrong and not isinstance(saved["model"].get("options"), dict):
        wrong = ["model"]
    if wrong:
        raise UserError(f"ckpt_path: {path} is damaged: what it says of its {', '.join(wrong)} cannot be read")
    return content


def architectures(extra_modules: Iterable[str] = ()) -> dict[str, type[nn.Module]]:
    """Every model class by name: those defined in `hotloop.models` and in `extra_modules`."""
    names = [f"hotloop.models.{module.name}" for module in pkgutil.iter_modules(hotloop.models.__path__)]
    found: dict[str, type[nn.Module]] = {}
    for name in (*names, *extra_modules):
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            raise UserError(f"model_modules: cannot import {name}: {error}") from error
        for _, item in inspect.getmembers(module, inspect.isclass):
            if item.__module__ == module.__name__ and issubclass(item, nn.Module):
                found[item.__name__] = item
    return found


def build_architecture(saved: dict[str, Any], path: str | Path, extra_modules: Iterable[str] = ()) -> nn.Module:
    """The model that a checkpoint describes, with fresh weights.

    Args:
        saved: `{"class": name, "options": keyword arguments}` as stored in the file.
        path: the file, for messages.
        extra_modules: modules of your own whose models may be built.

    Raises:
        UserError: unknown class, or options that the class refuses.
    """
    name, options = saved.get("class"), saved.get("options")
    known = architectures(extra_modules)
    if not isinstance(name, str) or name not in known or not isinstance(options, dict):
        raise UserError(
            f"{path}: its model is {name!r}, which is not among {', '.join(sorted(known))}; "
            "name the module of your own model in model_modules=[my_package.my_model]"
        )
    if saved.get("module", known[name].__module__) != known[name].__module__:
        raise UserError(
            f"{path}: its {name} is that of {saved['module']}, found was that of {known[name].__module__}: "
            f"give model_modules=[{saved['module']}]"
        )
    try:
        return known[name](**options)
    except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError: sizes beyond the memory
        raise UserError(f"{path}: {name} refuses the stored options: {_first_line(error)}") from error


def load_weights(task: nn.Module, content: dict[str, Any], path: str | Path) -> None:
    """Load the file's weights into `task`; every tensor must fit.

    Raises:
        UserError: names and shapes that do not fit.
    """
    for name, value in content["state_dict"].items():
        if isinstance(value, torch.Tensor) and value.is_floating_point() and not value.isfinite().all():
            raise UserError(f"{path}: {name} holds NaN or infinite numbers: that run had diverged")
    try:
        task.load_state_dict(content["state_dict"], strict=True)
    except (RuntimeError, TypeError, AttributeError) as error:
        detail = " ".join(str(error).split())[:300]
        raise UserError(f"{path}: the weights do not fit the model: {detail}") from error


def _most_useful(folder: Path) -> Path | None:
    """Of the checkpoints below a folder a best one, else a newest state, else any; the latest of several."""
    starts = ("epoch", "last", "interrupted", "averaged")

    def usefulness(path: Path) -> tuple[int, int, str]:
        place = next((i for i, start in enumerate(starts) if path.name.startswith(start)), len(starts))
        return -place, path.stat().st_mtime_ns, path.name

    return max((path for path in folder.rglob("*.ckpt") if path.is_file()), key=usefulness, default=None)


def find_last(runs: Path) -> Path:
    """The newest `last.ckpt` below `runs`.

    Raises:
        UserError: there is none.
    """
    found = [p for p in runs.rglob("checkpoints/*.ckpt") if p.name in ("last.ckpt", "interrupted.ckpt")]
    if not found:
        raise UserError(f"ckpt_path=last: no run below {runs} has a checkpoint; give ckpt_path=FILE")
    return max(found, key=lambda p: p.stat().st_mtime_ns)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
