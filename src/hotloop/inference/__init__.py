"""What evaluate.py and predict.py do: a trained model from its checkpoint alone, on anything of its kind."""

from pathlib import Path
from typing import Any

from hotloop import checkpoint
from hotloop.config import plain_config
from hotloop.errors import UserError
from hotloop.inference import regression, translation
from hotloop.inference.options import check_evaluation, check_prediction, checkpoint_path, refuse
from hotloop.inference.regression import load_regression
from hotloop.inference.translation import load_translation
from hotloop.run import quieten_libraries

__all__ = ["evaluate", "load_regression", "load_translation", "predict"]

KINDS = {"text": translation, "images": regression}


def evaluate(config: Any) -> dict[str, float]:
    """Measure a checkpoint on the data of its run or on others.

    Args:
        config: composed from conf/evaluate.yaml.

    Returns:
        the metrics by name; also written to `evaluation.json` in the folder of the run.

    Raises:
        UserError: any mistake in the configuration, the checkpoint or the data.
    """
    quieten_libraries()
    settings = plain_config(config)
    check_evaluation(settings)
    module, held = chosen(settings)
    return module.evaluate(settings, held)


def predict(config: Any) -> None:
    """Translate lines, or tell the numbers of pictures.

    Args:
        config: composed from conf/predict.yaml.

    Raises:
        UserError: any mistake in the configuration, the checkpoint or the data.
    """
    settings = plain_config(config)
    check_prediction(settings)
    module, held = chosen(settings)
    module.predict(settings, held)


def chosen(settings: dict[str, Any]) -> tuple[Any, Any]:
    """The module for the kind of data that the checkpoints were trained on, and what they hold.

    That is a dictionary by file for text, whose models may work together, and for pictures what the one file holds.
    """
    asked = settings["ckpt_path"]
    paths = [checkpoint_path(name) for name in (asked if isinstance(asked, list) else [asked])]
    first: dict[Path, Path] = {}
    for path in paths:
        same = first.setdefault(path.resolve(), path)
        if same is not path:
            names = str(path) if same == path else f"{same} and {path}"
            raise UserError(f"ckpt_path: a file is there twice ({names}); an ensemble is of different ones")
    contents = {path: checkpoint.read_hotloop_checkpoint(path) for path in paths}
    kinds = {}
    for path, held in contents.items():
        kind = held["hotloop"]["data"].get("kind")
        if kind not in KINDS:
            raise UserError(f"ckpt_path: {path} is from a run on {kind!r}; known are {' and '.join(KINDS)}")
        kinds[kind] = path
    if len(kinds) > 1:
        raise UserError(f"ckpt_path: {' and '.join(map(str, kinds.values()))} are from runs on {' and '.join(kinds)}")
    if kind != "text" and len(paths) > 1:
        raise UserError(f"ckpt_path={asked}: an ensemble is of translation models, these are from runs on {kind}")
    settings["ckpt_path"] = paths[0] if len(paths) == 1 else paths
    for other, module in KINDS.items():
        if other != kind:
            refuse(settings, module.OPTIONS, f"the checkpoint is from a run on {kind}")
    return KINDS[kind], contents if kind == "text" else contents[paths[0]]
