"""Translations of any text by a trained model, and how good they are."""

import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hotloop import announce, checkpoint
from hotloop.data.text.form import TextForm
from hotloop.data.text.lines import LinesDataModule
from hotloop.data.text.readers import BitextFiles, read_lines, read_pairs
from hotloop.data.text.tokenizer import load_tokenizer
from hotloop.decoding.ensemble import Ensemble
from hotloop.decoding.forced import score_stream
from hotloop.decoding.lines import translate_stream
from hotloop.decoding.options import DEFAULTS, SearchOptions
from hotloop.errors import UserError
from hotloop.inference.options import choose_device, refuse
from hotloop.inference.output import measure, output_file, test_metrics, write_evaluation, write_lines
from hotloop.tasks.translation import TranslationTask

log = logging.getLogger(__name__)

# What only translation knows, with the values when nobody sets them.
OPTIONS = {
    "source": None,
    "reference": None,
    "score": None,
    "n_best": 1,
} | {name: None for name in DEFAULTS if name != "n_best"}

STREAM_CHUNK = 2048  # lines read before they are translated: enough to sort by length, small enough to keep flowing


def load_translation(path: str | Path, *, model_modules: list[str] | None = None, **search: Any) -> TranslationTask:
    """The task that a checkpoint holds: model, weights and tokenisers, ready to translate and to be measured.

    Args:
        path: a checkpoint written by a translation run.
        model_modules: modules of your own that define its model.
        search: of `hotloop.decoding.SearchOptions`; None = as in training.

    Raises:
        UserError: see `hotloop.checkpoint`, or options out of range.
    """
    return translation_task(checkpoint.read_hotloop_checkpoint(path), path, model_modules=model_modules, **search)


def translation_task(
    content: dict[str, Any], path: str | Path, *, model_modules: list[str] | None = None, **search: Any
) -> TranslationTask:
    """The same from what `path` holds."""
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
    task = TranslationTask(model=model, source_tokenizer=source_tokenizer, target_tokenizer=target_tokenizer)
    task.search = search_options(saved["task"], search, {path: model})
    checkpoint.load_weights(task, content, path)
    task.saved = saved
    return task.eval()


def search_options(trained: dict[str, Any], asked: dict[str, Any], models: Mapping[str | Path, Any]) -> SearchOptions:
    """Those asked for (None = not asked), the others as in training of the first model; see `SearchOptions`.

    What training used is left out where what is asked for leaves it nothing to do.
    """
    asked = {key: value for key, value in asked.items() if value is not None}
    options = {key: value for key, value in trained.items() if key in DEFAULTS}
    if asked.get("sample"):
        options.pop("beam_size", None)
    if asked.get("sample") or asked.get("beam_size", options.get("beam_size")) == 1:
        options.pop("coverage_penalty", None)
    if asked.get("allow_unknown") is False:
        options.pop("replace_unknown", None)
    options |= asked
    n_best = options.get("n_best", 1)
    if n_best > options.get("beam_size", 1) and not options.get("sample"):
        raise UserError(f"n_best={n_best} needs beam_size={n_best} or more")
    try:
        found = SearchOptions(**options)
    except (TypeError, ValueError) as error:
        raise UserError(f"{next(iter(models))}: {error}") from error
    for path, model in models.items():
        try:
            found.check_model(model)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from error
    return found


def ensemble_task(
    contents: dict[Path, dict[str, Any]], *, model_modules: list[str] | None = None, **search: Any
) -> TranslationTask:
    """A task on all models of these files together; of one file the task that it holds.

    Raises:
        UserError: see `load_translation`, or the files do not share tokenisers and form of text.
    """
    (first, content), *others = contents.items()
    if not others:
        return translation_task(content, first, model_modules=model_modules, **search)
    members = {path: translation_task(content, path, model_modules=model_modules) for path, content in contents.items()}
    for path, other in others:
        for what, key in (("target tokenisers", "target_tokenizer"), ("source tokenisers", "source_tokenizer"),
                          ("forms of text", "form")):  # fmt: skip
            if content["hotloop"]["data"].get(key) != other["hotloop"]["data"].get(key):
                raise UserError(f"ckpt_path: {first} and {path} have different {what}: they are no ensemble")
    models: dict[str | Path, Any] = {path: member.model for path, member in members.items()}
    task = TranslationTask(
        model=Ensemble(list(models.values())),
        source_tokenizer=members[first].source_tokenizer,
        target_tokenizer=members[first].target_tokenizer,
    )
    task.search = search_options(content["hotloop"]["task"], search, models)
    task.saved = content["hotloop"]
    return task.eval()


def evaluate(settings: dict[str, Any], contents: dict[Path, dict[str, Any]]) -> dict[str, float]:
    """BLEU and chrF with their signatures, loss and perplexity; see `hotloop.inference.evaluate`."""
    task = asked_task(settings, contents)
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
    trainer = measure(task, settings, datamodule=data)
    if not task.sentences:
        raise UserError("nothing was measured: the options of the trainer left no batch")
    metrics = test_metrics(trainer)
    if trainer.is_global_zero:
        result = {
            "checkpoint": str(next(iter(contents))) if len(contents) == 1 else [str(path) for path in contents],
            "source": str(files.source),
            "reference": str(files.target),
            "sentences": task.sentences,
            "metrics": metrics,
            "signatures": task.signatures,
            "search": task.search_options,
            "precision": trainer.precision,
        }
        target = write_evaluation(settings, result)
        if settings["output"]:
            write_lines(settings["output"], task.hypotheses)
        rows = [("sentences", f"{task.sentences:,}"), *((name, f"{value:.4f}") for name, value in metrics.items())]
        log.info("result\n%s", announce.table([*rows, *task.signatures.items(), ("written to", str(target))]))
    return metrics


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


def asked_task(settings: dict[str, Any], contents: dict[Path, dict[str, Any]]) -> TranslationTask:
    """The task on the checkpoints, with the search that the settings ask for."""
    search = {key: settings[key] for key in DEFAULTS if key in settings}
    return ensemble_task(contents, model_modules=settings["model_modules"], **search)


def predict(settings: dict[str, Any], contents: dict[Path, dict[str, Any]]) -> None:
    """Line by line: one line out for each line in, in order; see `hotloop.inference.predict`."""
    if settings["score"] is not None:
        write_scores(settings, contents)
        return
    task = asked_task(settings, contents)
    form = TextForm.from_saved(task.saved["data"])
    device = choose_device(settings["device"])
    task.model.to(device)
    typed = settings["input"] == "-" and sys.stdin.isatty()
    found = translate_stream(
        task.model,
        task.source_tokenizer,
        task.target_tokenizer,
        (form.normalise(line) for line in input_lines(settings["input"])),
        task.search,
        chunk=1 if typed else STREAM_CHUNK,
        batch_size=settings["batch_size"],
        device=device,
    )
    with output_file(settings["output"]) as out:
        for number, group in enumerate(found, 1):
            for translation in group:
                place = "" if settings["n_best"] == 1 else f"{number}\t{translation.score:.4f}\t"
                print(f"{place}{translation.text}", file=out, flush=typed)


def write_scores(settings: dict[str, Any], contents: dict[Path, dict[str, Any]]) -> None:
    """How likely the translations in a file are: log-probability, tokens and perplexity of each pair, by tabs."""
    nothing = {key: OPTIONS[key] for key in DEFAULTS}
    refuse(settings, nothing, "score=FILE tells how likely given translations are; nothing is searched for")
    if settings["input"] == "-":
        raise UserError("score=FILE needs input=FILE: its lines are the sources, those of score the translations")
    task = asked_task(settings | nothing, contents)
    form = TextForm.from_saved(task.saved["data"])
    device = choose_device(settings["device"])
    task.model.to(device)
    found = score_stream(
        task.model,
        task.source_tokenizer,
        task.target_tokenizer,
        (
            (form.normalise(source), form.normalise(target))
            for source, target in read_pairs(BitextFiles(Path(settings["input"]), Path(settings["score"])))
        ),
        chunk=STREAM_CHUNK,
        batch_size=settings["batch_size"],
        device=device,
    )
    with output_file(settings["output"]) as out:
        for pair in found:
            print(f"{pair.log_probability:.4f}\t{pair.tokens}\t{pair.perplexity:.4f}", file=out)


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
