"""From a configuration to objects to a finished run: the only place where Hydra meets Lightning."""

import inspect
import logging
import os
import random
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from torch import nn

from hotloop import announce, checkpoint
from hotloop.batch_size import find_batch_size
from hotloop.callbacks.averaging import weigh_average
from hotloop.callbacks.interruption import Interrupted
from hotloop.callbacks.report import TrainingReport
from hotloop.checks import (
    SHORTHANDS,
    check,
    check_measurable,
    check_resumable,
    check_same_data,
    kind_of,
    metric_modes,
    mode_of,
    model_facts,
    probe_optimizer,
)
from hotloop.config import build, find_target, plain_config
from hotloop.data.text.vectors import token_vectors
from hotloop.errors import UserError
from hotloop.optim import ENDING, build_optimizer
from hotloop.tasks.pretrained import Pretrained, check_continued, start_from_vectors

log = logging.getLogger(__name__)

# Switches of the Trainer, each with the kind of callback that it concerns.
LIGHTNINGS_OWN = {"enable_progress_bar": pl.callbacks.ProgressBar, "enable_checkpointing": pl.callbacks.ModelCheckpoint}


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
    settings = checked(config)
    resume_from = resume_path(settings)
    if resume_from is not None:
        # Read once before Lightning does: safely, and to see whether it fits.
        content = checkpoint.read_hotloop_checkpoint(resume_from)
        settings["seed"] = resumed_seed(config, content, settings["seed"])
        check_resumable(content, settings, resume_from)
        check_continued(content["hotloop"]["task"], settings["task"], resume_from)
        log.info("continuing from %s (epoch %s, step %s)", resume_from, content["epoch"] + 1, content["global_step"])
        say_if_other_length(content, settings)
    pl.seed_everything(settings["seed"], workers=True, verbose=False)
    if torch.cuda.is_available():
        torch.set_float32_matmul_precision(settings["matmul_precision"])

    callbacks = build_callbacks(settings)  # before the data: their mistakes are told at once
    if resume_from is None:
        pretrained_of(settings).check_files()
    data = build_data(settings)
    data.prepare_data()
    data.setup("fit")
    check_measurable(settings, data.splits())
    if resume_from is not None:
        check_same_data(content["hotloop"], data, resume_from, settings)
    model, task = build_model_and_task(settings, data)
    if resume_from is None and pretrained_of(settings).files():
        start_from_vectors(task, data, token_vectors)
    compile_if_asked(settings, model)
    trainer = build_trainer(settings, callbacks=callbacks)
    if settings["auto_batch_size"]:
        data.batch_size = find_batch_size(task, data, trainer)
        task.saved["config"]["data"]["batch_size"] = data.batch_size
    announce.start(settings, trainer=trainer, model=model, data=data, choices=choices())

    try:
        with lightning_mistakes():
            trainer.fit(task, datamodule=data, ckpt_path=resume_from, weights_only=True)
    except Interrupted:
        announce.interrupted(settings, trainer=trainer, overrides=task_overrides())
        raise
    if weigh_average(trainer, task, data):
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            if isinstance(callback, TrainingReport):
                callback.renew(trainer)
    best, last = announce.checkpoints(trainer)
    value = getattr(trainer.checkpoint_callback, "best_model_score", None)
    value = trainer.callback_metrics.get(settings["monitor"]) if value is None else value
    finish = partial(announce.finish, settings, trainer=trainer, task=task, data=data, overrides=task_overrides())
    if settings["test"] and not settings["trainer"]["fast_dev_run"] and "test" in data.splits():
        try:
            trainer.test(task, datamodule=data, ckpt_path=best or last or None, weights_only=True, verbose=False)
        except SystemExit:  # Lightning's answer to Ctrl-C
            log.warning("the test was interrupted; the training is complete")
            finish(samples=False)
            raise KeyboardInterrupt from None
    finish(samples="test" in data.splits() and settings["test"])
    return None if value is None else float(value)


def checked(config: Any) -> dict[str, Any]:
    """Plain settings in which nothing can be seen to be wrong before data is read.

    Raises:
        UserError: the first mistake, with its key.
    """
    settings = settle(config)
    check(settings, choices())
    probe_optimizer(settings, optimizer=optimizer_factory(settings), schedule=schedule_factory(settings))
    return settings


def settle(config: Any) -> dict[str, Any]:
    """Plain settings, with the seed chosen and `mode=auto` replaced by what `monitor` asks for."""
    settings = plain_config(config)
    settings["seed"] = choose_seed(settings.get("seed"))
    if settings.get("mode") == "auto":
        mode = mode_of(str(settings.get("monitor")), metric_modes(settings)) or "min"
        settings["mode"] = mode
        for node in (settings.get("callbacks") or {}).values():
            if isinstance(node, dict) and node.get("mode") == "auto":
                node["mode"] = mode
    return settings


@contextmanager
def lightning_mistakes() -> Iterator[None]:
    """Turn what Lightning refuses of the configuration into one line; errors from elsewhere pass."""
    try:
        yield
    except (MisconfigurationException, ValueError, TypeError, ModuleNotFoundError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        if frames and "lightning" in Path(frames[-1].filename).parts:
            raise UserError(" ".join(str(error).split())) from error
        raise


def choose_seed(seed: Any) -> int:
    """`seed`, or a new one for null; the same in all processes of a run, which deal the batches by it.

    Raises:
        UserError: not a whole number from 0 to 4,294,967,295, or null where processes start independently.
    """
    if seed is None:
        if "LOCAL_RANK" in os.environ and "PL_GLOBAL_SEED" in os.environ:  # started by Lightning from rank 0
            return int(os.environ["PL_GLOBAL_SEED"])
        if "LOCAL_RANK" in os.environ or int(os.environ.get("SLURM_NTASKS") or 1) > 1:
            raise UserError("seed=null: give a number where torchrun or SLURM starts the processes; all need the same")
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
    warnings.filterwarnings("ignore", message=".*AMP with fp16 is not supported on CPU.*")  # the start message says it
    warnings.filterwarnings("ignore", message=".*is smaller than the logging interval.*")
    warnings.filterwarnings("ignore", message=".*across ranks is zero.*")
    # The samplers resume within an epoch by the data module's state, which this check does not know of.
    warnings.filterwarnings("ignore", message=".*your dataloader is not resumable.*")
    warnings.filterwarnings("ignore", message=".*Checkpoint directory .* exists and is not empty.*")


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


def build_model_and_task(settings: dict[str, Any], data: Any) -> tuple[nn.Module, Any]:
    """A new model, its sizes taken from the data, and the task that trains it."""
    facts = model_facts(settings, data.facts)
    model = build(settings["model"], "model", allowed=settings["allow_targets"], **facts)
    return model, build_task(settings, data, model)


def compile_if_asked(settings: dict[str, Any], model: nn.Module) -> None:
    if settings["compile"]:
        # Sentences differ in length from batch to batch; pictures have one size.
        model.compile(dynamic=True if kind_of(settings, "task") == "text" else None)


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


def pretrained_of(settings: dict[str, Any]) -> Pretrained:
    """What the embeddings begin as, by options of the task.

    Raises:
        UserError: options that `Pretrained` refuses.
    """
    node = {"_target_": "hotloop.tasks.pretrained.Pretrained", **(settings["task"].get("pretrained") or {})}
    return build(node, "task.pretrained")


def saved_settings(settings: dict[str, Any], *, data: Any, model: nn.Module) -> dict[str, Any]:
    """What a checkpoint says beside the weights; plain data."""
    options = {key: value for key, value in settings["model"].items() if key != "_target_"}
    content = {
        "format": checkpoint.FORMAT,
        "model": {
            "class": type(model).__name__,
            "module": type(model).__module__,
            "options": options | model_facts(settings, data.facts),
        },
        "task": {key: value for key, value in settings["task"].items() if key != "_target_"},
        "data": data.saved(),
        "config": settings,
    }
    return checkpoint.plain(content)


def build_callbacks(settings: dict[str, Any]) -> list[pl.Callback]:
    given = {"config": settings, "seed": settings["seed"], "precision": str(settings["trainer"]["precision"])}
    kind = kind_of(settings, "task")
    built = []
    for name, node in (settings["callbacks"] or {}).items():
        if node is None:
            continue
        target = find_target(node.get("_target_"), f"callbacks.{name}", settings["allow_targets"])
        if kind is not None and getattr(target, "kind", kind) != kind:
            continue  # it watches data of another kind
        takes = inspect.signature(target).parameters
        more = {key: value for key, value in given.items() if key in takes and key not in node}
        built.append(build(node, f"callbacks.{name}", allowed=settings["allow_targets"], **more))
    # Lightning refuses a callback of a kind that the Trainer was told to do without.
    kinds = tuple(kind for key, kind in LIGHTNINGS_OWN.items() if settings["trainer"].get(key) is False)
    return [callback for callback in built if not isinstance(callback, kinds)]


def build_trainer(settings: dict[str, Any], *, callbacks: list[pl.Callback]) -> pl.Trainer:
    loggers = [
        build(node, f"logger.{name}", allowed=settings["allow_targets"])
        for name, node in (settings["logger"] or {}).items()
        if node is not None
    ]
    node = {"_target_": "lightning.pytorch.Trainer", **settings["trainer"]}
    # Where nothing of the kind is asked for, Lightning would add its own.
    for key, kind in LIGHTNINGS_OWN.items():
        if node.get(key) is None:
            node[key] = any(isinstance(callback, kind) for callback in callbacks)
    return build(node, "trainer", logger=loggers or False, callbacks=callbacks)


def say_if_other_length(content: dict[str, Any], settings: dict[str, Any]) -> None:
    """A schedule over more or fewer epochs has another learning rate at this step than the one the file ended with."""
    trainer = content["hotloop"]["config"].get("trainer")
    old = trainer.get("max_epochs") if isinstance(trainer, dict) else None
    new = settings["trainer"]["max_epochs"]
    ends = [epochs if isinstance(epochs, int) and epochs >= 0 else float("inf") for epochs in (old, new)]
    if ends[0] != ends[1] and settings["scheduler"].get("shape") in ENDING:
        curve = "longer" if ends[1] > ends[0] else "shorter"
        log.info("trainer.max_epochs %s → %s: the learning rate goes on from here on the %s curve", old, new, curve)


def resumed_seed(config: Any, content: dict[str, Any], drawn: int) -> int:
    """A run that continues keeps its seed, unless the command gives another."""
    seed = content["hotloop"]["config"].get("seed")
    return seed if config.seed is None and isinstance(seed, int) else drawn


def resume_path(settings: dict[str, Any]) -> Path | None:
    """The checkpoint to continue from; None for a new run."""
    asked = settings["ckpt_path"]
    if asked is None:
        return None
    return checkpoint.find_last(Path("runs") / settings["name"]) if asked == "last" else Path(asked)


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
