"""What evaluate.py and predict.py do: a trained model from its checkpoint alone, on any text."""

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import lightning.pytorch as pl
import torch

from hotloop import announce, checkpoint
from hotloop.callbacks.progress import ThroughputBar
from hotloop.config import build, check_options, plain_config
from hotloop.data.text.form import TextForm
from hotloop.data.text.lines import LinesDataModule
from hotloop.data.text.readers import BitextFiles, read_lines, read_pairs
from hotloop.data.text.tokenizer import load_tokenizer
from hotloop.decoding.lines import translate_stream
from hotloop.errors import UserError
from hotloop.run import lightning_mistakes, quieten_libraries
from hotloop.tasks.translation import TranslationTask

log = logging.getLogger(__name__)

STREAM_CHUNK = 2048  # lines read before they are translated: enough to sort by length, small enough to keep flowing


def load_translation(path: str | Path, *, model_modules: list[str] | None = None, **search: Any) -> TranslationTask:
    """The task that a checkpoint holds: model, weights and tokenisers, ready to translate and to be measured.

    Args:
        path: a checkpoint written by a translation run.
        model_modules: modules of your own that define its model.
        search: `beam_size`, `length_penalty`, `max_length`; None = as in training.

    Raises:
        UserError: see `hotloop.checkpoint`, or options out of range.
    """
    content = checkpoint.read_hotloop_checkpoint(path)
    saved = content["hotloop"]
    data = saved["data"]
    if "source_tokenizer" not in data or "target_tokenizer" not in data:
        raise UserError(f"ckpt_path: {path} holds no tokenisers: it is not from a translation run")
    model = checkpoint.build_architecture(saved["model"], path, model_modules or ())
    source_tokenizer = load_tokenizer(data["source_tokenizer"])
    target_tokenizer = load_tokenizer(data["target_tokenizer"])
    for side, tokenizer in (("source", source_tokenizer), ("target", target_tokenizer)):
        size = getattr(model, f"{side}_vocabulary")
        if tokenizer.size != size:
            raise UserError(f"{path}: the {side} tokeniser has {tokenizer.size} ids, the model {size}")
    known = ("beam_size", "length_penalty", "max_length")
    options = {key: value for key, value in saved["task"].items() if key in known}
    options |= {key: value for key, value in search.items() if value is not None}
    try:
        task = TranslationTask(
            model=model,
            source_tokenizer=source_tokenizer,
            target_tokenizer=target_tokenizer,
            **options,
        )
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error
    checkpoint.load_weights(task, content, path)
    task.saved = saved
    return task.eval()


def evaluate(config: Any) -> dict[str, float]:
    """Measure a checkpoint: BLEU and chrF with their signatures, loss and perplexity.

    Args:
        config: composed from conf/evaluate.yaml.

    Returns:
        the metrics by name; also written to `evaluation.json` in the folder of the run.

    Raises:
        UserError: any mistake in the configuration, the checkpoint or the text.
    """
    quieten_libraries()
    settings = plain_config(config)
    check_evaluation(settings)
    path = checkpoint_path(settings["ckpt_path"])
    task = load_translation(
        path,
        model_modules=settings["model_modules"],
        **{key: settings[key] for key in ("beam_size", "length_penalty", "max_length")},
    )
    form = TextForm.from_saved(task.saved["data"])
    files = evaluation_files(settings, task.saved["data"])
    pairs = [(form.normalise(source), form.normalise(target)) for source, target in read_pairs(files)]
    if not pairs:
        raise UserError(f"{files.source} has no line: nothing to evaluate")
    data = LinesDataModule(
        [source for source, _ in pairs],
        [target for _, target in pairs],
        form.natural([target for _, target in pairs]),
        source_tokenizer=task.source_tokenizer,
        target_tokenizer=task.target_tokenizer,
        batch_size=settings["batch_size"],
    )
    node = {"_target_": "lightning.pytorch.Trainer", **settings["trainer"]}
    node |= {"logger": False, "enable_checkpointing": False, "enable_model_summary": False}
    trainer = build(node, "trainer", callbacks=[ThroughputBar()])
    try:
        with lightning_mistakes():
            trainer.test(task, datamodule=data, verbose=False)
    except SystemExit:  # Lightning's answer to Ctrl-C
        raise KeyboardInterrupt from None
    if not task.sentences:
        raise UserError("nothing was measured: the options of the trainer left no batch")
    metrics = {name.removeprefix("test/"): float(value) for name, value in trainer.callback_metrics.items()}
    if trainer.is_global_zero:
        result = {
            "checkpoint": str(path),
            "source": str(files.source),
            "reference": str(files.target),
            "sentences": task.sentences,
            "metrics": metrics,
            "signatures": task.signatures,
            "search": task.search_options,
            "precision": trainer.precision,
        }
        target = Path(settings["run_dir"]) / "evaluation.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        if settings["output"]:
            write_lines(settings["output"], task.hypotheses)
        rows = [("sentences", f"{task.sentences:,}"), *((name, f"{value:.4f}") for name, value in metrics.items())]
        log.info("result\n%s", announce.table([*rows, *task.signatures.items(), ("written to", str(target))]))
    return metrics


def checkpoint_path(asked: str) -> Path:
    """The file asked for; "last" is the newest below runs/."""
    return checkpoint.find_last(Path("runs")) if asked == "last" else Path(asked)


def check_evaluation(settings: dict[str, Any]) -> None:
    """Types and ranges of conf/evaluate.yaml, before the checkpoint is read."""
    check_common(settings)
    if settings["split"] not in ("valid", "test"):
        raise UserError(f"split={settings['split']!r}: expected test or valid")
    check_texts(settings, "source", "reference", "output", optional=True)
    if (settings["source"] is None) != (settings["reference"] is None):
        raise UserError("give both source=FILE and reference=FILE, or neither")
    check_options(pl.Trainer, settings["trainer"], "trainer")


def check_common(settings: dict[str, Any]) -> None:
    """What conf/evaluate.yaml and conf/predict.yaml share."""
    check_texts(settings, "ckpt_path")
    if not settings["ckpt_path"]:
        raise UserError("ckpt_path is empty: give a checkpoint file")
    modules = settings["model_modules"]
    if not isinstance(modules, list) or not all(isinstance(name, str) and name for name in modules):
        raise UserError(f"model_modules={modules!r}: expected a list of modules, such as [my_package.my_model]")
    check_whole_number(settings, "batch_size")
    for key in ("beam_size", "max_length"):
        if settings[key] is not None:
            check_whole_number(settings, key)
    penalty = settings["length_penalty"]
    if penalty is not None and (isinstance(penalty, bool) or not isinstance(penalty, (int, float))):
        raise UserError(f"length_penalty={penalty!r}: expected a number of at least 0, or null")


def check_texts(settings: dict[str, Any], *keys: str, optional: bool = False) -> None:
    for key in keys:
        if not isinstance(settings[key], str) and not (optional and settings[key] is None):
            raise UserError(f"{key}={settings[key]!r}: expected a file name" + (" or null" if optional else ""))


def check_whole_number(settings: dict[str, Any], key: str) -> None:
    value = settings[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{key}={value!r}: expected a whole number of at least 1")


def evaluation_files(settings: dict[str, Any], saved: dict[str, Any]) -> BitextFiles:
    """The bitext to measure on: the one given, or the set that the run was trained with."""
    if settings["source"] is not None:
        return BitextFiles(Path(settings["source"]), Path(settings["reference"]))
    texts = saved.get("texts")
    texts = texts.get(settings["split"]) if isinstance(texts, dict) else None
    if not isinstance(texts, dict) or not all(isinstance(texts.get(side), str) for side in ("source", "target")):
        raise UserError(f"the run had no {settings['split']} set: give source=FILE reference=FILE")
    files = BitextFiles(Path(texts["source"]), Path(texts["target"]))
    for path in (files.source, files.target):
        if path is not None and not path.is_file():
            raise UserError(
                f"{path}, the {settings['split']} set of that run, is gone: give source=FILE reference=FILE"
            )
    return files


def predict(config: Any) -> None:
    """Translate line by line: one line out for each line in, in order.

    Args:
        config: composed from conf/predict.yaml.

    Raises:
        UserError: any mistake in the configuration, the checkpoint or the text.
    """
    settings = plain_config(config)
    check_common(settings)
    check_texts(settings, "input", "output", "device")
    check_whole_number(settings, "n_best")
    task = load_translation(
        checkpoint_path(settings["ckpt_path"]),
        model_modules=settings["model_modules"],
        **{key: settings[key] for key in ("beam_size", "length_penalty", "max_length")},
    )
    if settings["n_best"] > task.search_options["beam_size"]:
        raise UserError(f"n_best={settings['n_best']} needs beam_size={settings['n_best']} or more")
    form = TextForm.from_saved(task.saved["data"])
    device = choose_device(settings["device"])
    task.model.to(device)
    typed = settings["input"] == "-" and sys.stdin.isatty()
    found = translate_stream(
        task.model,
        task.source_tokenizer,
        task.target_tokenizer,
        (form.normalise(line) for line in input_lines(settings["input"])),
        chunk=1 if typed else STREAM_CHUNK,
        batch_size=settings["batch_size"],
        n_best=settings["n_best"],
        **task.search_options,
    )
    with output_file(settings["output"]) as out:
        for number, group in enumerate(found, 1):
            for translation in group:
                place = "" if settings["n_best"] == 1 else f"{number}\t{translation.score:.4f}\t"
                print(f"{place}{translation.text}", file=out, flush=typed)


def choose_device(asked: str) -> torch.device:
    """The device to translate on.

    Raises:
        UserError: no such device on this machine.
    """
    if asked == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(asked)
        if device.type == "meta":
            raise TypeError("no memory, no translation")
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise UserError(f"device={asked!r} is not on this machine: use auto, cpu, cuda, cuda:1 or mps") from error
    return device


def input_lines(name: str) -> Iterator[str]:
    """Lines of a file, or of standard input for "-"; UTF-8, split at LF only."""
    if name != "-":
        yield from read_lines(Path(name))
        return
    for number, raw in enumerate(sys.stdin.buffer, 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"standard input, line {number}: not UTF-8 ({error.reason}); convert it first") from error
        yield line.removesuffix("\n").removesuffix("\r")


@contextmanager
def output_file(name: str) -> Iterator[TextIO]:
    """The file to write, or standard output for "-"; UTF-8, LF line ends.

    A file gets its name when it is complete: a failure leaves what was there before, and input and output may
    be the same file.
    """
    if name == "-":
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        yield sys.stdout
        sys.stdout.flush()  # here, where a reader that has gone can still be told apart from a failure
        return
    target = Path(name)
    special = target.exists() and not target.is_file()  # a pipe or a device cannot be renamed onto
    draft = target if special else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        file = open(draft, "w", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UserError(f"output: cannot write {name}: {error.strerror}") from error
    try:
        with file:
            yield file
        if not special:
            os.replace(draft, target)
    except BaseException:
        if not special:
            draft.unlink(missing_ok=True)
        raise


def write_lines(name: str, lines: list[str]) -> None:
    with output_file(name) as file:
        file.writelines(f"{line}\n" for line in lines)
