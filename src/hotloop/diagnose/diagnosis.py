"""From a configuration to a diagnosis: where a step goes, what each override gives, one command."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch

from hotloop import announce
from hotloop.callbacks.environment import device_name
from hotloop.checks import kind_of
from hotloop.config import plain_config
from hotloop.diagnose.advice import Advice, advise, joined
from hotloop.diagnose.breakdown import Breakdown, Step, breakdown
from hotloop.diagnose.findings import Finding, findings
from hotloop.diagnose.levers import Gain, compare, levers_for, try_levers
from hotloop.diagnose.pages import write_pages
from hotloop.diagnose.tables import advice_text, breakdown_text, gains_table
from hotloop.diagnose.trial import Trial, affordable_batch, ready_data, single_trainer
from hotloop.errors import UserError
from hotloop.run import checked, quieten_libraries, task_overrides

log = logging.getLogger(__name__)

STEPS = 120  # steps that should fit into the time
# Of the time; the best combinations get the rest.
BREAKDOWN_SHARE, LEVERS_SHARE = 0.1, 0.65
OWN = "diagnose"  # the key that train.py does not know


def diagnose(config: Any, *, overrides: list[str] | None = None, compose: Callable[..., Any] | None = None) -> Advice:
    """Measure the training that `config` describes, try what could make it faster, and say what to type.

    Args:
        config: composed from conf/diagnose.yaml.
        overrides: of the command line; None asks Hydra.
        compose: `overrides=list → config`; None takes Hydra's.

    Raises:
        UserError: any mistake in the configuration or the data.
    """
    quieten_libraries()
    logging.getLogger("hotloop.data").setLevel(logging.WARNING)
    if compose is None:
        from hydra import compose as hydras

        compose = functools.partial(hydras, "diagnose")
    typed = task_overrides() if overrides is None else overrides
    minutes = minutes_of(plain_config(config))
    settings = training_settings(config)
    kind = kind_of(settings, "task")
    if kind not in ("text", "images"):
        raise UserError("diagnose.py knows the tasks translation and regression; this task is neither")

    def settings_with(more: tuple[str, ...]) -> dict[str, Any]:
        changed = training_settings(compose(overrides=[*without(typed, more), *more]), seed=settings["seed"])
        if size is not None:
            changed["data"]["batch_size"] = size
        return changed

    if torch.cuda.is_available():
        torch.set_float32_matmul_precision(settings["matmul_precision"])
    data = ready_data(settings)
    trainer = single_trainer(settings)
    device = trainer.strategy.root_device
    announce_start(settings, trainer, data, minutes)
    seconds = 60.0 * minutes
    size = affordable_batch(settings, data, seconds=seconds / STEPS)
    if size is not None:
        whole = settings["data"]["batch_size"]
        log.info("measured on batches of %d instead of %d samples: whole steps would take too long", size, whole)
        settings["data"]["batch_size"] = data.batch_size = size
    found, said = explain(settings, data, seconds=BREAKDOWN_SHARE * seconds)
    print(breakdown_text(found, said) + "\n")
    gains = try_levers(
        levers_for(settings, device=device.type, kind=kind, whole=size is None),
        settings=settings,
        data=data,
        settings_with=settings_with,
        seconds=LEVERS_SHARE * seconds,
    )
    print(gains_table(gains, kind=kind) + "\n")

    def measure(several: tuple[Gain, ...]) -> Gain:
        share = (1 - BREAKDOWN_SHARE - LEVERS_SHARE) * seconds / 2
        return compare(joined(several), settings, data, settings_with, seconds=share)

    advice = advise([gain for gain in gains if isinstance(gain, Gain)], measure)

    def command_of(more: tuple[str, ...]) -> str:
        kept = [o for o in without(typed, more) if not key_of(o).startswith((f"{OWN}.", "run_dir", "hydra."))]
        return announce.command("train.py", *kept, *more)

    print(advice_text(advice, command_of))
    folder = Path(settings["run_dir"])
    write_pages(
        folder, found=found, said=said, gains=gains, advice=advice, command_of=command_of, settings=settings, kind=kind,
        device=device_name(device),
    )  # fmt: skip
    log.info("written to %s: diagnosis.json, diagnosis.md, diagnosis.png", announce.relative(folder))
    return advice


def explain(settings: dict[str, Any], data: Any, *, seconds: float) -> tuple[Breakdown, list[Finding]]:
    """Where a step of these settings goes, and what the rules say of it, in about `seconds`."""
    trial = Trial(settings, data)
    try:
        trial.step()
        taken = trial.step().seconds
        step = Step(
            module=trial.task.model,
            optimizer=trial.optimizer,
            next_batch=trial.next_batch,
            loss=lambda batch: trial.losses(batch).mean(),
            after_backward=trial.clip_gradients,
        )
        steps = min(10, max(2, int(seconds / taken / 2) - 4))
        found = breakdown(step, steps=steps, warm_up=1)
    finally:
        trial.close()
    facts = {
        "device": found.device,
        "precision": str(settings["trainer"]["precision"]),
        "padding_share": trial.padding_share,
        "batch_size": settings["data"].get("batch_size"),
        "workers": settings["data"].get("num_workers"),
        "decoding": settings["model"].get("decoding"),
    }
    return found, findings(found, {name: value for name, value in facts.items() if value is not None})


def training_settings(config: Any, *, seed: int | None = None) -> dict[str, Any]:
    """Checked settings of the training alone, with `seed` where the command gave none."""
    plain = {key: value for key, value in plain_config(config).items() if key != OWN}
    if plain.get("seed") is None and seed is not None:
        plain["seed"] = seed
    if plain.get("ckpt_path") is not None:
        raise UserError("diagnose.py begins from new weights: leave ckpt_path out")
    return checked(plain)


def minutes_of(settings: dict[str, Any]) -> float:
    minutes = (settings.get(OWN) or {}).get("minutes")
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not 0.1 <= minutes <= 1440:
        raise UserError(f"diagnose.minutes={minutes!r}: expected a number from 0.1 to 1440")
    return float(minutes)


def announce_start(settings: dict[str, Any], trainer: pl.Trainer, data: Any, minutes: float) -> None:
    rows = [
        ("device", f"{announce.device_name(trainer)}; one process"),
        ("precision", str(settings["trainer"]["precision"])),
        *data.description().items(),
        ("time", f"about {minutes:g} minutes; diagnose.minutes=… for more or less"),
    ]
    log.info("diagnosis\n%s", announce.table(rows))


def key_of(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")


def without(overrides: list[str], more: tuple[str, ...]) -> list[str]:
    """`overrides` but for those of a key that `more` sets, too."""
    keys = {key_of(override) for override in more}
    if "precision" in keys:
        keys.add("trainer.precision")
    return [override for override in overrides if key_of(override) not in keys]
