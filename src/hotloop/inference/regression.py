"""Numbers for any pictures by a trained model, and how good they are."""

import csv
import inspect
import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from hotloop import announce, checkpoint
from hotloop.checks import SHORTHANDS
from hotloop.config import check_options
from hotloop.data.images.decoding import Chunks
from hotloop.data.images.digits import Digits
from hotloop.data.images.files import PictureFiles
from hotloop.data.images.folder import ImageFolder
from hotloop.data.images.form import PixelForm
from hotloop.data.images.gauges import Gauges
from hotloop.data.images.images import ImageDataModule
from hotloop.data.images.locating import scan_pictures
from hotloop.data.images.source import PictureReader, TargetTable
from hotloop.data.images.test_set import PictureTestSet
from hotloop.data.loading import Loader
from hotloop.data.processes import cores
from hotloop.errors import UserError
from hotloop.inference.options import choose_device
from hotloop.inference.output import measure, output_file, test_metrics, write_evaluation
from hotloop.tasks.regression import RegressionTask

log = logging.getLogger(__name__)

# What only pictures know, with the values when nobody sets them.
OPTIONS = {"images": None, "targets": None, "on_error": "fail"}

SOURCES = {"ImageFolder": ImageFolder, "Gauges": Gauges, "Digits": Digits}
GIVE = "give images=FOLDER targets=TABLE"


def load_regression(path: str | Path, *, model_modules: list[str] | None = None) -> RegressionTask:
    """The task that a checkpoint holds: model, weights and scales, ready to predict and to be measured.

    Args:
        path: a checkpoint written by a run on pictures.
        model_modules: modules of your own that define its model.

    Raises:
        UserError: see `hotloop.checkpoint`.
    """
    return regression_task(checkpoint.read_hotloop_checkpoint(path), path, model_modules=model_modules)


def regression_task(
    content: dict[str, Any], path: str | Path, *, model_modules: list[str] | None = None
) -> RegressionTask:
    """The same from what `path` holds."""
    saved = content["hotloop"]
    try:
        targets, pixels = saved["data"]["targets"], saved["data"]["pixels"]
        scales = {
            "target_names": targets["names"],
            "target_mean": targets["mean"],
            "target_std": targets["std"],
            "pixel_mean": pixels["mean"],
            "pixel_std": pixels["std"],
            "pixel_max": PixelForm.from_saved(pixels).largest,
        }
        known = dict(zip(("height", "width", "channels"), PixelForm.from_saved(pixels).shape, strict=True))
        if any(saved["model"]["options"].get(name, value) != value for name, value in known.items()):
            raise ValueError("model and pictures differ in size")
    except (KeyError, TypeError, ValueError, UserError) as error:
        raise UserError(f"ckpt_path: {path} does not say what its pictures and targets are like") from error
    model = checkpoint.build_architecture(saved["model"], path, model_modules or ())
    taken = set(inspect.signature(RegressionTask).parameters) - {"saved", "optimizer", "schedule", "model", *scales}
    options = {key: value for key, value in saved["task"].items() if key in taken}
    try:
        task = RegressionTask(model=model, **scales, **options)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error
    checkpoint.load_weights(task, content, path)
    task.saved = saved
    return task.eval()


def evaluate(settings: dict[str, Any], content: dict[str, Any]) -> dict[str, float]:
    """RMSE, MAE, R² and correlations beside the mean predictor's error; see `hotloop.inference.evaluate`."""
    path = settings["ckpt_path"]
    task = regression_task(content, path, model_modules=settings["model_modules"])
    form = PixelForm.from_saved(task.saved["data"]["pixels"])
    if settings["images"] is not None:
        table, reader, numbers = own_pictures(settings, task, form)
        where = f"{settings['images']}, {settings['targets']}"
    else:
        table, reader, numbers = pictures_of_run(settings, content, path)
        where = f"the {settings['split']} set of the run"
    if table.names != task.target_names:
        raise UserError(f"{where}: its targets are {', '.join(table.names)}; expected {', '.join(task.target_names)}")
    data = PictureTestSet(
        reader,
        form,
        numbers=numbers,
        targets=table.targets[numbers],
        batch_size=settings["batch_size"],
        workers=reading_workers(len(numbers)),
    )
    trainer = measure(task, settings, datamodule=data)
    if task.results is None:
        raise UserError("nothing was measured: the options of the trainer left no batch")
    metrics = test_metrics(trainer)
    if trainer.is_global_zero:
        result = {
            "checkpoint": str(path),
            "pictures": where,
            "samples": len(task.results.ids),
            "metrics": metrics,
            "precision": trainer.precision,
        }
        target = write_evaluation(settings, result)
        if settings["output"]:
            names = [reader.name(int(numbers[number])) for number in task.results.ids]
            write_table(settings["output"], comparison(names, task))
        rows = [
            ("pictures", f"{len(task.results.ids):,}"),
            *((name, f"{value:.4f}") for name, value in metrics.items()),
        ]
        log.info("result\n%s", announce.table([*rows, *task.result_rows(), ("written to", str(target))]))
    return metrics


def own_pictures(
    settings: dict[str, Any], task: RegressionTask, form: PixelForm
) -> tuple[TargetTable, PictureReader, np.ndarray[Any, np.dtype[np.int64]]]:
    """Targets, pictures, and the numbers of those that can be read, of a folder with a table."""
    options = source_options(task.saved["config"], "ImageFolder")
    kept = ("image_column", "target_columns", "pattern")
    more = {key: options[key] for key in kept if options.get(key) is not None}
    if settings["targets"] not in ("folder", "name"):
        more.setdefault("target_columns", list(task.target_names))
        more.pop("pattern", None)
    source = ImageFolder(dir=settings["images"], targets=settings["targets"], bits=form.bits, alpha=form.alpha, **more)
    table, reader = source.open()
    broken = reader.broken(workers=None) if settings["on_error"] == "skip" else reader.missing()
    return table, reader, readable(broken, len(reader), settings["on_error"])


def pictures_of_run(
    settings: dict[str, Any], content: dict[str, Any], path: Path
) -> tuple[TargetTable, PictureReader, np.ndarray[Any, np.dtype[np.int64]]]:
    """Targets, pictures and the numbers of one split of the run that wrote the checkpoint."""
    config, split = content["hotloop"]["config"], settings["split"]
    node = config.get("data")
    options = node.get("source") if isinstance(node, dict) else None
    name = str(options.get("_target_")).rpartition(".")[2] if isinstance(options, dict) else ""
    if name not in SOURCES:
        raise UserError(f"{path}: its pictures came from {name or 'nowhere'}, which is not known here: {GIVE}")
    kind = SOURCES[name]
    made = source_options(config, name)
    check_options(kind, made, "source")
    taken = set(inspect.signature(ImageDataModule).parameters) - set(SHORTHANDS) - {"source", "augment"}
    form = {key: value for key, value in node.items() if key in taken}
    form |= {"cache": "none", "normalize": "none", "num_workers": 0}
    check_options(ImageDataModule, form, "data")
    try:
        data = ImageDataModule(source=kind(**made), **form)
        data.setup()
    except UserError as error:
        raise UserError(f"the pictures of that run cannot be opened ({error}): {GIVE}") from error
    dataset = data.dataset(split)
    if dataset is None:
        raise UserError(f"the run had no {split} set: {GIVE}")
    return data.opened.table, data.opened.reader, dataset.numbers


def source_options(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The options of the run's source, if that was a `name`; else {}."""
    node = config.get("data")
    node = node.get("source") if isinstance(node, dict) else None
    if not isinstance(node, dict) or str(node.get("_target_")).rpartition(".")[2] != name:
        return {}
    return {key: value for key, value in node.items() if key != "_target_"}


def readable(broken: Mapping[int, str], count: int, on_error: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Numbers below `count` without those in `broken`, which are told.

    Raises:
        UserError: there are such, and `on_error` is "fail"; or nothing is left.
    """
    first = "; ".join(list(broken.values())[:5])
    what = f"{len(broken):,} of {count:,} pictures cannot be read: {first}"
    if broken and on_error == "fail":
        raise UserError(f"{what}; on_error=skip goes on without them")
    if len(broken) == count:
        raise UserError(what)
    if broken:
        log.warning("%s; they are skipped", what)
    return np.setdiff1d(np.arange(count), np.fromiter(broken, np.int64, len(broken)))


def predict(settings: dict[str, Any], content: dict[str, Any]) -> None:
    """A CSV with a row for each picture, in order; see `hotloop.inference.predict`."""
    task = regression_task(content, settings["ckpt_path"], model_modules=settings["model_modules"])
    form = PixelForm.from_saved(task.saved["data"]["pixels"])
    reader = pictures_at(settings["input"], form)
    task.to(choose_device(settings["device"]))
    write_table(settings["output"], predicted(task, reader, form, settings))


def pictures_at(name: str, form: PixelForm) -> PictureFiles:
    """The pictures of a folder, by name, or one picture.

    Raises:
        UserError: there is none.
    """
    path = Path(name).expanduser()
    if name == "-":
        raise UserError("this checkpoint works on images: give input=FOLDER, or input=PICTURE")
    if not path.exists():
        raise UserError(f"input: there is no folder and no picture {path}")
    if path.is_dir():
        return PictureFiles(path, scan_pictures(path), bits=form.bits, alpha=form.alpha)
    return PictureFiles(path.parent, [path.name], bits=form.bits, alpha=form.alpha)


def predicted(
    task: RegressionTask, reader: PictureFiles, form: PixelForm, settings: Mapping[str, Any]
) -> Iterator[Sequence[Any]]:
    """Rows of a table, its head first: the name of each picture and its numbers; none for one that is skipped."""
    wanted = [
        range(first, min(first + settings["batch_size"], len(reader)))
        for first in range(0, len(reader), settings["batch_size"])
    ]
    with_deviations = task.loss == "gaussian_nll"
    yield ["image", *task.target_names, *(f"{name}_std" for name in task.target_names if with_deviations)]
    batches = Loader(Chunks(reader, form), wanted, workers=reading_workers(len(reader)))
    for numbers, (pictures, broken) in zip(wanted, batches, strict=True):
        if broken and settings["on_error"] == "fail":
            number, reason = next(iter(broken.items()))
            raise UserError(f"{reader.name(number)}: {reason}; on_error=skip leaves its row empty and goes on")
        images = pictures.int() if form.bits == 16 else pictures
        means, deviations = task.predict_distribution(images.permute(0, 3, 1, 2))
        columns = [means.tolist(), deviations.tolist() if deviations is not None else [[]] * len(numbers)]
        for row, number in enumerate(numbers):
            if number in broken:
                log.warning("%s: %s; its row is empty", reader.name(number), broken[number])
                yield [reader.name(number), *[""] * sum(len(column[row]) for column in columns)]
            else:
                yield [reader.name(number), *(f"{value:.7g}" for column in columns for value in column[row])]


def comparison(names: Sequence[str], task: RegressionTask) -> Iterator[Sequence[Any]]:
    """Rows of a table, its head first: name, true and predicted numbers of each picture."""
    assert task.results is not None
    yield ["image", *task.target_names, *(f"{name}_predicted" for name in task.target_names)]
    for name, true, found in zip(names, task.results.targets, task.results.predictions, strict=True):
        yield [name, *(f"{value:.7g}" for value in (*true, *found))]


def write_table(name: str, rows: Iterator[Sequence[Any]]) -> None:
    """Write a CSV to a file, or to standard output for "-"."""
    first = list(islice(rows, 2))  # the head alone is no answer, should the first picture be refused
    with output_file(name) as file:
        csv.writer(file, lineterminator="\n").writerows(chain(first, rows))


def reading_workers(count: int) -> int:
    """Processes that decode `count` pictures: starting them takes as long as decoding some hundred."""
    return 0 if count < 500 else min(cores() - 1, 8)
