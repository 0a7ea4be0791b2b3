"""What a run prints: at its start what it is about to do, at its end what came out and how to go on."""

import logging
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import nn

from hotloop.callbacks.checkpointing import checkpoints
from hotloop.callbacks.image_panels import plain_errors
from hotloop.callbacks.interruption import Interruption
from hotloop.callbacks.translations import plain_samples, sample_rows
from hotloop.tasks.scheduled_sampling import slow_paths

log = logging.getLogger(__name__)


def command(script: str, *overrides: str) -> str:
    """A command ready to paste into a shell."""
    return " ".join([interpreter(), script, *(shlex.quote(override) for override in overrides)])


def interpreter() -> str:
    """ "python" where that is this one, else its path, as after `make train` without an activated environment."""
    environment = Path(sys.prefix)
    if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return "python"
    return shlex.quote(relative(environment / "bin" / "python"))


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns, the first padded to the widest name."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in rows)


def device_name(trainer: pl.Trainer) -> str:
    """The device in words, with the threads of a CPU or the number of devices."""
    device = trainer.strategy.root_device
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        return f"{trainer.num_devices} × {name}" if trainer.num_devices > 1 else name
    if device.type == "cpu":
        processes = f", {trainer.num_devices} processes" if trainer.num_devices > 1 else ""
        return f"cpu, {torch.get_num_threads()} threads{processes}"
    return str(device)


def cpu_lacks_bfloat16() -> bool:
    """Whether this is known to be a processor that has to emulate bfloat16, which is slower than float32."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    tests = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return not any(getattr(torch.cpu, test, bool)() for test in tests)


def precision_note(asked: str, used: str, device: torch.device) -> str:
    """The precision that really runs, and what to expect of it."""
    note = used
    if asked != used:
        note = f"{used} ({asked} was asked for; a {device.type} has no float16 training)"
    if device.type == "cpu" and used.startswith("bf16") and cpu_lacks_bfloat16():
        note += "; this processor has no bfloat16 arithmetic, so precision=32-true is faster here"
    return note


def start(
    settings: dict[str, Any], *, trainer: pl.Trainer, model: nn.Module, data: Any, choices: dict[str, str]
) -> None:
    """Print device, precision, parameters, data sizes and the folder of the run."""
    if not trainer.is_global_zero:
        return
    total = sum(p.numel() for p in model.parameters())
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    parameters = f"{total:,} parameters" + (f", {trained:,} trained" if trained != total else "")
    rows = [
        ("device", device_name(trainer)),
        (
            "precision",
            precision_note(settings["trainer"]["precision"], trainer.precision, trainer.strategy.root_device),
        ),
        ("model", f"{choices.get('model', type(model).__name__)}: {parameters}"),
        *((name, text) for name, text in data.description().items()),
        ("seed", str(settings["seed"])),
        ("folder", str(settings["run_dir"])),
    ]
    rows += slow_paths(model, settings["task"].get("scheduled_sampling", "two_pass")).items()
    if settings["compile"]:
        rows.append(("compile", "on: the first steps take a minute or two"))
    log.info("start\n%s", table(rows))


def finish(
    settings: dict[str, Any], *, trainer: pl.Trainer, task: Any, data: Any, overrides: list[str], samples: bool
) -> None:
    """Print the metrics, sample outputs, and the commands to evaluate, predict, resume and look."""
    if not trainer.is_global_zero:
        return
    metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
    rows = [(name, f"{value:.4g}") for name, value in sorted(metrics.items()) if name.startswith("test/")]
    rows = rows or [(name, f"{value:.4g}") for name, value in sorted(metrics.items()) if name.startswith("val/")]
    rows += task.result_rows() if hasattr(task, "result_rows") else []  # a task of the user's own may have none
    if rows:
        log.info("result\n%s", table(rows))
    if samples:
        show_samples(task, data, metrics)
    log.info("next\n%s", table(next_commands(settings, trainer=trainer, kind=kind_of(task), overrides=overrides)))


def kind_of(task: Any) -> str | None:
    """What the task works on: "text" or "images"; None for one of the user's that does not say."""
    return getattr(task, "kind", None)


def show_samples(task: Any, data: Any, metrics: Mapping[str, float]) -> None:
    """Print sentences of the test set with their translations, or the pictures that were read worst."""
    if kind_of(task) == "text":
        found = sample_rows(task, data, count=3, split="test", **task.search_options)
        log.info("samples of the test set\n%s", plain_samples(found))
    # The task keeps what it measured last, which is the test set if there was a test.
    elif kind_of(task) == "images" and task.results is not None and any(name.startswith("test/") for name in metrics):
        names = data.for_task()["target_names"]
        errors = plain_errors(task.results, names, data.dataset("test").name, count=5)
        log.info("largest errors of the test set: true → predicted (error)\n%s", table(errors))


def interrupted(settings: dict[str, Any], *, trainer: pl.Trainer, overrides: list[str]) -> None:
    """Print how to go on after Ctrl-C."""
    stopped = [c for c in trainer.callbacks if isinstance(c, Interruption) and c.saved]  # type: ignore[attr-defined]
    if not stopped or not trainer.is_global_zero:
        return
    if stopped[0].complete:  # only the test is left
        kind = kind_of(trainer.lightning_module)
        rows = next_commands(settings, trainer=trainer, kind=kind, overrides=overrides)
    else:
        rows = [("resume", resume_command(settings, overrides, relative(str(stopped[0].saved))))]
    log.info("next\n%s", table(rows))


def resume_command(settings: dict[str, Any], overrides: list[str], path: str, *, max_epochs: int | None = None) -> str:
    """The command of this run again, from a checkpoint, with the seed that this run had."""
    kept = [o for o in overrides if not o.startswith(("ckpt_path=", "seed="))]
    if max_epochs is not None:
        kept = [o for o in kept if not o.startswith("trainer.max_epochs=")] + [f"trainer.max_epochs={max_epochs}"]
    return command("train.py", *kept, f"seed={settings['seed']}", f"ckpt_path={path}")


def next_commands(
    settings: dict[str, Any], *, trainer: pl.Trainer, kind: str | None, overrides: list[str]
) -> list[tuple[str, str]]:
    """Commands to paste, each with its purpose."""
    rows, run_dir = [], Path(settings["run_dir"])
    best, last = checkpoints(trainer)
    module = str(settings["model"]["_target_"]).rpartition(".")[0]
    modules = [] if module.startswith("hotloop.models.") else [f"model_modules=[{module}]"]
    files = ("input=FOLDER", "output=predictions.csv") if kind == "images" else ("input=FILE", "output=FILE")
    if best:
        best = relative(best)
        rows += [
            ("best checkpoint", best),
            ("evaluate", command("evaluate.py", f"ckpt_path={best}", *modules)),
            ("predict", command("predict.py", f"ckpt_path={best}", *modules, *files)),
        ]
    if last:
        epochs = settings["trainer"]["max_epochs"]
        # A finished run goes on only if it may run for longer.
        longer = 2 * epochs if epochs and 0 < epochs <= trainer.current_epoch else None
        rows.append(("resume", resume_command(settings, overrides, relative(last), max_epochs=longer)))
    if (run_dir / "tensorboard").is_dir():
        rows.append(("look", f"{interpreter()} -m tensorboard.main --logdir {shlex.quote(relative(run_dir))}"))
    rows.append(("report", relative(run_dir / "report.json")))
    return rows


def relative(path: str | Path) -> str:
    """`path` as seen from here, where that is shorter."""
    path = Path(path)
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
