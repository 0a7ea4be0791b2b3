"""From a configuration to objects to a finished run: the only place where Hydra meets Lightning."""

import inspect
import logging
import random
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import nn

from hotloop import announce, checkpoint
from hotloop.callbacks.interruption import Interrupted
from hotloop.config import build, check_options, check_tree, find_target, nearest, plain_config
from hotloop.errors import UserError
from hotloop.optim import build_optimizer

log = logging.getLogger(__name__)

# Keys of `data` that only other keys refer to.
SHORTHANDS = ("dir", "src_lang", "tgt_lang")


def train(config: Any) -> float | None:
    """Train, test the best checkpoint, and say what came out.

    Args:
        config: composed from conf/train.yaml.

    Returns:
        The best value of `monitor`, for sweeps; None if nothing was measured.

    Raises:
        UserError: any mistake in the configuration or the data.
    """
    quieten_libraries()
    settings = plain_config(config)
    run_dir = Path(settings["run_dir"])
    seed = settings["seed"] = choose_seed(settings["seed"])
    check(settings)
    resume_from = resume_path(settings)
    pl.seed_everything(seed, workers=True, verbose=False)
    if torch.cuda.is_available():
        torch.set_float32_matmul_precision(settings["matmul_precision"])

    data = build_data(settings)
    data.prepare_data()
    data.setup("fit")
    model = build(settings["model"], "model", allowed=settings["allow_targets"], **data.facts)
    task = build_task(settings, data, model)
    if settings["compile"]:
        model.compile(dynamic=True)
    trainer = build_trainer(settings, callbacks=build_callbacks(settings))
    announce.start(settings, trainer=trainer, model=model, data=data, choices=choices())

    try:
        trainer.fit(task, datamodule=data, ckpt_path=resume_from, weights_only=True)
    except Interrupted:
        announce.interrupted(settings, trainer=trainer, overrides=task_overrides())
        raise
    best, _ = announce.checkpoints(trainer)
    value = trainer.callback_metrics.get(settings["monitor"])
    score = getattr(trainer.checkpoint_callback, "best_model_score", None)
    if settings["test"] and not settings["trainer"]["fast_dev_run"]:
        trainer.test(task, datamodule=data, ckpt_path=best or None, weights_only=True, verbose=False)
    announce.finish(settings, trainer=trainer, task=task, data=data, run_dir=run_dir, overrides=task_overrides())
    found = score if score is not None else value
    return None if found is None else float(found)


def choose_seed(seed: Any) -> int:
    """`seed`, or a new one for null.

    Raises:
        UserError: not a whole number from 0 to 4,294,967,295.
    """
    if seed is None:
        return random.SystemRandom().randrange(2**32)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise UserError(f"seed={seed!r}: expected a whole number from 0 to 4294967295, or null for a new one")
    return seed


def quieten_libraries() -> None:
    """Keep what Lightning says of itself out of the log; its warnings stay."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)
        logger.handlers.clear()
    warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated.*")
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    # The samplers resume within an epoch by the data module's state, which this check does not know of.
    warnings.filterwarnings("ignore", message=".*your dataloader is not resumable.*")
    warnings.filterwarnings("ignore", message=".*Checkpoint directory .* exists and is not empty.*")


# ---- checks --------------------------------------------------------------------------------------------


def check(settings: dict[str, Any]) -> None:
    """Everything that can be known to be wrong before data is read.

    Raises:
        UserError: the first mistake, with its key.
    """
    allowed = settings["allow_targets"]
    check_types(settings)
    for key in ("model", "task", "scheduler", "callbacks", "logger"):
        check_tree(settings[key], key, allowed)
    check_tree({k: v for k, v in settings["optimizer"].items() if k != "fused"}, "optimizer", allowed)
    check_tree({k: v for k, v in settings["data"].items() if k not in SHORTHANDS}, "data", allowed)
    check_tree(settings["trainer"], "trainer", allowed)
    check_options(pl.Trainer, settings["trainer"], "trainer")
    check_pair(settings)
    check_monitor(settings)
    probe_model(settings)
    probe_optimizer(settings)


def check_types(settings: dict[str, Any]) -> None:
    """The plain keys of conf/train.yaml."""
    for key in ("test", "compile"):
        if not isinstance(settings[key], bool):
            raise UserError(f"{key}={settings[key]!r}: expected true or false")
    for key, options in (("mode", ("min", "max")), ("matmul_precision", ("highest", "high", "medium"))):
        if settings[key] not in options:
            raise UserError(f"{key}={settings[key]!r}: expected {' or '.join(options)}")
    if not isinstance(settings["monitor"], str):
        raise UserError(f"monitor={settings['monitor']!r}: expected the name of a metric, such as val/loss")
    allowed = settings["allow_targets"]
    if not isinstance(allowed, list) or not all(isinstance(name, str) and name for name in allowed):
        raise UserError(f"allow_targets={allowed!r}: expected a list of packages, such as [my_package]")


def check_pair(settings: dict[str, Any]) -> None:
    """Refuse a model together with data of another kind."""
    allowed = settings["allow_targets"]
    task_kind = getattr(find_target(settings["task"]["_target_"], "task", allowed), "kind", None)
    data_kind = getattr(find_target(settings["data"]["_target_"], "data", allowed), "kind", None)
    if task_kind and data_kind and task_kind != data_kind:
        chosen = choices()
        raise UserError(
            f"model={chosen.get('model', '?')} works on {task_kind} but data={chosen.get('data', '?')} holds "
            f"{data_kind}: leave out data=… (each model brings data that fits) or choose another model"
        )


def check_monitor(settings: dict[str, Any]) -> None:
    """`monitor` has to be something that the task measures."""
    task = find_target(settings["task"]["_target_"], "task", settings["allow_targets"])
    known = getattr(task, "metrics", None)
    if known and settings["monitor"] not in known:
        raise UserError(f"monitor={settings['monitor']}: no such metric{nearest(settings['monitor'], known)}")


def probe_model(settings: dict[str, Any]) -> None:
    """Build the model once without memory, so that a wrong size is told before data is prepared."""
    target = find_target(settings["model"]["_target_"], "model", settings["allow_targets"])
    with torch.device("meta"):
        build(settings["model"], "model", allowed=settings["allow_targets"], **dict.fromkeys(needed_facts(target), 8))


def needed_facts(target: Any) -> tuple[str, ...]:
    """Names of the options that the data has to give: those without a default."""
    parameters = inspect.signature(target).parameters.values()
    return tuple(p.name for p in parameters if p.default is p.empty and p.kind is p.KEYWORD_ONLY)


def probe_optimizer(settings: dict[str, Any]) -> None:
    """Build optimiser and schedule once over one number."""
    module = nn.Linear(1, 1)
    trainer = settings["trainer"]
    endless = trainer["max_epochs"] == -1 and trainer["max_steps"] == -1
    try:
        optimizer = optimizer_factory(settings)(module)
    except (TypeError, ValueError) as error:
        raise UserError(f"optimizer: {error}") from error
    try:
        schedule_factory(settings)(optimizer, total_steps=float("inf") if endless else 1000)
    except (TypeError, ValueError) as error:
        raise UserError(f"scheduler: {error}") from error


# ---- building ------------------------------------------------------------------------------------------


def build_data(settings: dict[str, Any]) -> Any:
    node = {key: value for key, value in settings["data"].items() if key not in SHORTHANDS}
    target = find_target(node["_target_"], "data", settings["allow_targets"])
    if "seed" in inspect.signature(target).parameters:
        node.setdefault("seed", settings["seed"])
    return build(node, "data", allowed=settings["allow_targets"])


def optimizer_factory(settings: dict[str, Any]) -> partial[torch.optim.Optimizer]:
    node = dict(settings["optimizer"])
    target = find_target(node.pop("_target_", None), "optimizer", settings["allow_targets"])
    return partial(build_optimizer, optimizer=target, **node)


def schedule_factory(settings: dict[str, Any]) -> partial[Any]:
    node = dict(settings["scheduler"])
    return partial(find_target(node.pop("_target_", None), "scheduler", settings["allow_targets"]), **node)


def build_task(settings: dict[str, Any], data: Any, model: nn.Module) -> pl.LightningModule:
    return build(
        settings["task"],
        "task",
        allowed=settings["allow_targets"],
        model=model,
        **data.for_task(),
        optimizer=optimizer_factory(settings),
        schedule=schedule_factory(settings),
        saved=saved_settings(settings, data=data, model=model),
    )


def saved_settings(settings: dict[str, Any], *, data: Any, model: nn.Module) -> dict[str, Any]:
    """What a checkpoint says beside the weights; plain data."""
    options = {key: value for key, value in settings["model"].items() if key != "_target_"}
    content = {
        "format": checkpoint.FORMAT,
        "model": {"class": type(model).__name__, "options": options | dict(data.facts)},
        "task": {key: value for key, value in settings["task"].items() if key != "_target_"},
        "data": data.saved(),
        "config": settings,
    }
    return checkpoint.plain(content)


def build_callbacks(settings: dict[str, Any]) -> list[pl.Callback]:
    given = {"config": settings, "seed": settings["seed"]}
    built = []
    for name, node in (settings["callbacks"] or {}).items():
        if node is None:
            continue
        target = find_target(node.get("_target_"), f"callbacks.{name}", settings["allow_targets"])
        takes = inspect.signature(target).parameters
        more = {key: value for key, value in given.items() if key in takes and key not in node}
        built.append(build(node, f"callbacks.{name}", allowed=settings["allow_targets"], **more))
    # Lightning refuses a callback of a kind that the Trainer was told to do without.
    unwanted = {"enable_progress_bar": pl.callbacks.ProgressBar, "enable_checkpointing": pl.callbacks.ModelCheckpoint}
    kinds = tuple(kind for key, kind in unwanted.items() if settings["trainer"][key] is False)
    return [callback for callback in built if not isinstance(callback, kinds)]


def build_trainer(settings: dict[str, Any], *, callbacks: list[pl.Callback]) -> pl.Trainer:
    loggers = [
        build(node, f"logger.{name}", allowed=settings["allow_targets"])
        for name, node in (settings["logger"] or {}).items()
        if node is not None
    ]
    node = {"_target_": "lightning.pytorch.Trainer", **settings["trainer"]}
    if node["enable_progress_bar"] is None:  # Lightning would add a bar of its own
        node["enable_progress_bar"] = any(isinstance(callback, pl.callbacks.ProgressBar) for callback in callbacks)
    return build(node, "trainer", logger=loggers or False, callbacks=callbacks)


def resume_path(settings: dict[str, Any]) -> str | None:
    """The checkpoint to continue from, read once to make sure that it is one of ours and safe.

    Raises:
        UserError: see `hotloop.checkpoint`.
    """
    asked = settings["ckpt_path"]
    if asked is None:
        return None
    if not isinstance(asked, str):
        raise UserError(f"ckpt_path={asked!r}: expected a file, last, or null")
    path = checkpoint.find_last(Path("runs") / settings["name"]) if asked == "last" else Path(asked)
    content = checkpoint.read_hotloop_checkpoint(path)
    check_same_model(content["hotloop"], settings, path)
    log.info("continuing from %s (epoch %s, step %s)", path, content.get("epoch"), content.get("global_step"))
    return str(path)


def check_same_model(saved: Mapping[str, Any], settings: dict[str, Any], path: Path) -> None:
    """Refuse to continue with another model than the one in the file."""
    old, new = saved["model"]["options"], {k: v for k, v in settings["model"].items() if k != "_target_"}
    name = str(settings["model"]["_target_"]).rpartition(".")[2]
    if saved["model"]["class"] != name:
        raise UserError(f"ckpt_path: {path} holds a {saved['model']['class']}, the command asks for a {name}")
    shape_free = ("decoding",)
    wrong = [
        f"model.{k} {old[k]!r} → {v!r}" for k, v in new.items() if k in old and old[k] != v and k not in shape_free
    ]
    if wrong:
        raise UserError(f"ckpt_path: {path} was trained with other options ({', '.join(wrong)}): repeat its overrides")


# ---- Hydra ---------------------------------------------------------------------------------------------


def choices() -> dict[str, str]:
    """The option chosen for each group on this command line."""
    from hydra.core.hydra_config import HydraConfig

    if not HydraConfig.initialized():
        return {}
    return {key: str(value) for key, value in HydraConfig.get().runtime.choices.items() if "hydra" not in key}


def task_overrides() -> list[str]:
    """The overrides of this command line, as typed."""
    from hydra.core.hydra_config import HydraConfig

    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []
