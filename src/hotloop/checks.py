"""What can be known to be wrong before data is read: one line for the first mistake, with its key."""

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import Logger
from torch import nn

from hotloop.config import build, check_options, check_tree, find_target, flat_items, nearest
from hotloop.errors import UserError

# Keys of `data` that only other keys refer to.
SHORTHANDS = ("dir", "src_lang", "tgt_lang", "targets")

# Every key of conf/train.yaml, and what its value has to be.
TOP_LEVEL: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "run_dir": (str,),
    "seed": (int, type(None)),
    "ckpt_path": (str, type(None)),
    "test": (bool,),
    "auto_batch_size": (bool,),
    "compile": (bool,),
    "matmul_precision": (str,),
    "monitor": (str,),
    "mode": (str,),
    "allow_targets": (list,),
    **dict.fromkeys(("model", "data", "task", "optimizer", "scheduler", "trainer"), (dict,)),
    **dict.fromkeys(("callbacks", "logger"), (dict, type(None))),
}
WORDS = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "a group",
    type(None): "null",
}

# What the target of a group has to be.
KINDS: dict[str, type] = {
    "model": nn.Module,
    "task": pl.LightningModule,
    "data": pl.LightningDataModule,
    "optimizer": torch.optim.Optimizer,
}
MEMBERS: dict[str, type] = {"callbacks": pl.Callback, "logger": Logger}


def check(settings: dict[str, Any], chosen: Mapping[str, str]) -> None:
    """Check the whole configuration.

    Args:
        settings: plain values, as composed from conf/train.yaml; `mode` already settled.
        chosen: option of each group, for messages.

    Raises:
        UserError: the first mistake.
    """
    check_top_level(settings)
    if settings["auto_batch_size"] and settings["ckpt_path"] is not None:
        raise UserError("auto_batch_size=true is for new runs: continue one with the data.batch_size that it found")
    check_trainer(settings["trainer"])
    check_targets(settings)
    check_pair(settings, chosen)
    check_monitor(settings)
    probe_model(settings)


def check_top_level(settings: Mapping[str, Any]) -> None:
    """Every key is there, none is unknown, and each has a value of its type."""
    for key in settings:
        if key not in TOP_LEVEL:
            raise UserError(f"{key}: no such key{nearest(key, TOP_LEVEL)}")
    for key, types in TOP_LEVEL.items():
        if key not in settings:
            raise UserError(f"{key} was taken out of the configuration, but it is required")
        value = settings[key]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            expected = " or ".join(WORDS[kind] for kind in types)
            raise UserError(f"{key}={value!r}: expected {expected}")
    for key, options in (("mode", ("min", "max")), ("matmul_precision", ("highest", "high", "medium"))):
        if settings[key] not in options:
            raise UserError(f"{key}={settings[key]!r}: expected {' or '.join(options)}")
    if not all(isinstance(name, str) and name for name in settings["allow_targets"]):
        raise UserError(
            f"allow_targets={settings['allow_targets']!r}: expected names of packages, such as [my_package]"
        )


def check_trainer(trainer: Mapping[str, Any]) -> None:
    """Types of all keys, and the ranges that Lightning itself would meet with a traceback, or not at all."""
    check_options(pl.Trainer, trainer, "trainer")
    for key in ("max_epochs", "max_steps"):
        if key not in trainer:
            raise UserError(f"trainer.{key} was taken out of the configuration, but it is required")
    if trainer.get("limit_train_batches") is not None and not trainer["limit_train_batches"]:
        raise UserError("trainer.limit_train_batches=0 trains nothing: give a share or a number of batches, or null")
    for key in ("accumulate_grad_batches", "check_val_every_n_epoch"):
        value = trainer.get(key)
        if value is not None and value < 1:
            raise UserError(f"trainer.{key}={value}: expected a whole number of at least 1")
    clip = trainer.get("gradient_clip_val")
    if clip is not None and not clip > 0:
        raise UserError(f"trainer.gradient_clip_val={clip}: expected a number above 0, or null for no clipping")


def check_targets(settings: dict[str, Any]) -> None:
    """Every `_target_` is allowed, of the right kind, and knows its options."""
    allowed = settings["allow_targets"]
    for group, kind in KINDS.items():
        check_kind(settings[group], group, kind, allowed)
    for group, kind in MEMBERS.items():
        for name, node in (settings[group] or {}).items():
            if node is not None:
                check_kind(node, f"{group}.{name}", kind, allowed)
    for key in ("model", "task", "scheduler"):
        check_tree(settings[key], key, allowed)
    check_tree(settings["callbacks"], "callbacks", allowed)
    check_tree(settings["logger"], "logger", allowed)
    check_tree({k: v for k, v in settings["optimizer"].items() if k != "fused"}, "optimizer", allowed)
    check_tree({k: v for k, v in settings["data"].items() if k not in SHORTHANDS}, "data", allowed)
    check_tree(settings["trainer"], "trainer", allowed)
    find_target(settings["scheduler"].get("_target_"), "scheduler", allowed)


def check_kind(node: Any, key: str, kind: type, allowed: Iterable[str]) -> None:
    """`node` names a class of `kind`."""
    if not isinstance(node, dict):
        raise UserError(f"{key}={node!r}: expected a group of options with _target_, or null")
    target = find_target(node.get("_target_"), key, allowed)
    if not (inspect.isclass(target) and issubclass(target, kind)):
        raise UserError(f"{key}._target_: {node['_target_']} is not a {kind.__name__}")


def check_pair(settings: Mapping[str, Any], chosen: Mapping[str, str]) -> None:
    """Refuse a model together with data of another kind."""
    task_kind = kind_of(settings, "task")
    data_kind = kind_of(settings, "data")
    if task_kind and data_kind and task_kind != data_kind:
        raise UserError(
            f"model={chosen.get('model', '?')} works on {task_kind} but data={chosen.get('data', '?')} holds "
            f"{data_kind}: leave out data=… (each model brings data that fits) or choose another model"
        )


def kind_of(settings: Mapping[str, Any], group: str) -> str | None:
    """The kind of data that a group's class is for: "text" or "images"; None where it does not say."""
    return getattr(find_target(settings[group].get("_target_"), group, settings["allow_targets"]), "kind", None)


def metric_modes(settings: Mapping[str, Any]) -> dict[str, str]:
    """The metrics of the task, and whether the best value of each is the "min" or the "max"."""
    node = settings.get("task")
    if not isinstance(node, dict):
        return {}
    return dict(getattr(find_target(node.get("_target_"), "task", settings.get("allow_targets") or ()), "metrics", {}))


def mode_of(monitor: str, known: Mapping[str, str]) -> str | None:
    """Whether the best `monitor` is the "min" or the "max"; None where it is not known.

    "val/mae/angle", the error of one target of several, goes the way of "val/mae".
    """
    whole = "/".join(monitor.split("/")[:2])
    return known.get(monitor, known.get(whole))


TRAIN_LOSS = "monitor=train/loss_epoch"


def check_monitor(settings: Mapping[str, Any]) -> None:
    """`monitor` has to be something that this run measures, and `mode` has to fit it."""
    monitor, known = settings["monitor"], metric_modes(settings)
    mode = mode_of(monitor, known)
    if known and mode is None:
        raise UserError(f"monitor={monitor}: no such metric{nearest(monitor, known)}")
    if known and settings["mode"] != mode:
        raise UserError(f"mode={settings['mode']}: the best {monitor} is the {mode}; leave mode=auto")
    for name, node in (settings["callbacks"] or {}).items():
        watched = node.get("monitor") if isinstance(node, dict) else None
        if known and watched is not None and mode_of(str(watched), known) is None:
            raise UserError(f"callbacks.{name}.monitor={watched}: no such metric{nearest(str(watched), known)}")
    if monitor.startswith("val/") and settings["trainer"].get("limit_val_batches") == 0:
        raise UserError(f"monitor={monitor} needs validation: trainer.limit_val_batches above 0, or {TRAIN_LOSS}")
    if monitor in ("val/bleu", "val/chrf") and settings["task"].get("decode_every", 1) != 1:
        raise UserError(f"monitor={monitor} needs task.decode_every=1: it has to be measured at every validation")


def probe_model(settings: Mapping[str, Any]) -> None:
    """Build the model once without memory, so that a wrong size is told before data is prepared."""
    allowed = settings["allow_targets"]
    target = find_target(settings["model"]["_target_"], "model", allowed)
    expected = getattr(find_target(settings["data"]["_target_"], "data", allowed), "expected_facts", None)
    facts = {name: 224 if name in ("height", "width") else 8 for name in needed_facts(target)}
    if expected is not None:
        facts |= model_facts(settings, expected(settings["data"]))
    with torch.device("meta"):
        build(settings["model"], "model", allowed=allowed, **facts)


def needed_facts(target: Any) -> tuple[str, ...]:
    """Names of the options that the data has to give: those without a default."""
    parameters = inspect.signature(target).parameters.values()
    return tuple(p.name for p in parameters if p.default is p.empty and p.kind is p.KEYWORD_ONLY)


def model_facts(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the model is told of the data: as the task wants it, and no more than the model takes.

    Args:
        settings: plain values.
        facts: those of the data module.
    """
    allowed = settings["allow_targets"]
    adapt = getattr(find_target(settings["task"]["_target_"], "task", allowed), "model_facts", None)
    adapted = dict(facts) if adapt is None else adapt(facts, settings["task"])
    taken = inspect.signature(find_target(settings["model"]["_target_"], "model", allowed)).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        return adapted
    return {name: value for name, value in adapted.items() if name in taken}


def probe_optimizer(settings: Mapping[str, Any], *, optimizer: Any, schedule: Any) -> None:
    """Build optimiser and schedule once over two numbers.

    Args:
        settings: plain values.
        optimizer: `module → Optimizer`.
        schedule: `optimizer → scheduler`, called with `total_steps=`.
    """
    trainer = settings["trainer"]
    no_epochs = trainer["max_epochs"] == -1 or (trainer["max_epochs"] is None and trainer.get("max_time"))
    endless = no_epochs and trainer["max_steps"] == -1
    try:
        built = optimizer(nn.Linear(1, 1))
    except (TypeError, ValueError, IndexError) as error:
        raise UserError(f"optimizer: {error}") from error
    rates = [group["lr"] for group in built.param_groups]
    if not all(0 <= float(rate) < float("inf") for rate in rates):
        raise UserError(f"optimizer.lr={rates[0]}: expected a finite number of at least 0")
    try:
        schedule(built, total_steps=float("inf") if endless else 10**9)
    except (TypeError, ValueError) as error:
        raise UserError(f"scheduler: {error}") from error


# ---- continuing a run ----------------------------------------------------------------------------------


def check_resumable(content: Mapping[str, Any], settings: Mapping[str, Any], path: Path) -> None:
    """Refuse to continue from `content` with settings that the file would contradict, or with nothing left to do.

    Raises:
        UserError: another model, other options of model or optimiser, weights only, or a finished run.
    """
    saved = content["hotloop"]
    name = str(settings["model"]["_target_"]).rpartition(".")[2]
    if saved["model"].get("class") != name:
        raise UserError(f"ckpt_path: {path} holds a {saved['model'].get('class')}, the command asks for a {name}")
    if not content.get("optimizer_states") or "loops" not in content:
        raise UserError(f"ckpt_path: {path} holds weights only: no run can continue from it")
    averaging = (settings["callbacks"] or {}).get("averaging")
    averages = content.get("averaging")
    moving = isinstance(averages, dict) and "trained" in averages
    if moving and not (isinstance(averaging, dict) and averaging.get("ema")):
        raise UserError(
            f"ckpt_path: {path} holds averaged weights, and training would go on from the average without "
            "callbacks.averaging.ema: repeat the override"
        )
    changed = differences(saved["model"]["options"], settings["model"], "model", ignored=("_target_", "decoding"))
    old_optimizer = saved["config"].get("optimizer")
    if isinstance(old_optimizer, dict):
        # The optimiser continues with the state in the file; a new value would look as if it were in force.
        changed += differences(old_optimizer, settings["optimizer"], "optimizer", ignored=("fused",))
    if changed:
        raise UserError(
            f"ckpt_path: {path} was trained with other options ({', '.join(changed)}): repeat its overrides"
        )
    epochs, finished = settings["trainer"]["max_epochs"], finished_epochs(content)
    if finished is not None and epochs is not None and 0 <= epochs <= finished:
        raise UserError(
            f"ckpt_path: {path} has already finished {finished} epochs and trainer.max_epochs={epochs}: nothing is "
            f"left to train; test it with evaluate.py ckpt_path={path}, or give trainer.max_epochs={2 * finished} or so"
        )


def finished_epochs(content: Mapping[str, Any]) -> int | None:
    """How many epochs have ended where `content` was saved; None within one, or where the file does not say.

    Not `content["epoch"]` + 1: Lightning raises that number only behind an epoch's last checkpoint, so that a file
    saved at the end of the training (Ctrl-C in the last validation) holds one more than `last.ckpt` does.
    """
    try:
        loop = content["loops"]["fit_loop"]
        ended = loop["epoch_loop.batch_progress"]["is_last_batch"]
        return int(loop["epoch_progress"]["current"]["ready"]) if ended else None
    except (KeyError, TypeError, ValueError):
        return None


def differences(old: Mapping[str, Any], new: Mapping[str, Any], key: str, *, ignored: Iterable[str]) -> list[str]:
    """Options that are in both and differ, as "key old → new"."""
    common = [name for name in new if name in old and name not in ignored]
    return [f"{key}.{name} {old[name]!r} → {new[name]!r}" for name in common if old[name] != new[name]]


def check_measurable(settings: Mapping[str, Any], splits: Iterable[str]) -> None:
    """`monitor` needs a validation set, if it is measured on one."""
    if settings["monitor"].startswith("val/") and "valid" not in splits:
        size = "0.1" if kind_of(settings, "data") == "images" else "1000"
        raise UserError(
            f"monitor={settings['monitor']} needs a validation set: data.valid_size={size} (or, where the data has "
            f"splits of its own, validation data that can be read), or {TRAIN_LOSS}"
        )


# What a data module saves and a run that continues must find again, with what another value would mean.
MEANINGS = {
    "source_tokenizer": "another source tokeniser, so the same ids would mean other words",
    "target_tokenizer": "another target tokeniser, so the same ids would mean other words",
    "form": "another form of text, so the same ids would mean other words",
    "pixels": "another form of pictures, so the same pixels would mean something else",
    "targets": "other targets or another scale of them, so the same output would mean other numbers",
}


def check_same_data(saved: Mapping[str, Any], data: Any, path: Path, settings: Mapping[str, Any]) -> None:
    """Refuse to continue when the prepared data gives ids, pixels or targets another meaning than they had.

    Raises:
        UserError: other tokenisers, or another form of text, pictures or targets.
    """
    old, new = saved["data"], data.saved()
    for key, meaning in MEANINGS.items():
        if key in new and old.get(key) != new[key]:
            old_options = saved["config"].get("data")
            before = dict(flat_items(old_options)) if isinstance(old_options, dict) else {}
            now = {k: v for k, v in flat_items(settings["data"]) if not isinstance(v, dict)}
            changed = differences(before, now, "data", ignored=()) or ["no option: the data itself"]
            raise UserError(f"ckpt_path: {path} was trained with {meaning}; what differs: {', '.join(changed[:6])}")
