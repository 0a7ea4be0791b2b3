"""What evaluate.py and predict.py do: a trained model from its checkpoint alone, on anything of its kind."""

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
    module, content = chosen(settings)
    return module.evaluate(settings, content)


def predict(config: Any) -> None:
    """Translate lines, or tell the numbers of pictures.

    Args:
        config: composed from conf/predict.yaml.

    Raises:
        UserError: any mistake in the configuration, the checkpoint or the data.
    """
    settings = plain_config(config)
    check_prediction(settings)
    module, content = chosen(settings)
    module.predict(settings, content)


def chosen(settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The module for the kind of data that the checkpoint was trained on, and what the file holds."""
    path = settings["ckpt_path"] = checkpoint_path(settings["ckpt_path"])
    content = checkpoint.read_hotloop_checkpoint(path)
    kind = content["hotloop"]["data"].get("kind")
    if kind not in KINDS:
        raise UserError(f"ckpt_path: {path} is from a run on {kind!r}; known are {' and '.join(KINDS)}")
    for other, module in KINDS.items():
        if other != kind:
            refuse(settings, module.OPTIONS, f"the checkpoint is from a run on {kind}")
    return KINDS[kind], content
