"""Statistics of a corpus: python -m hotloop.data.describe data=bitext data.dir=FOLDER"""

from __future__ import annotations

import inspect
import logging
from pathlib import Path
from typing import Any

from hotloop.doors import open_door
from hotloop.errors import UserError

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[3]  # of a project that is installed in place


def main(config: Any) -> None:
    """Print statistics of the sentence pairs of `config.data`, and write them and plots to the folder `output`.

    Raises:
        UserError: the data are not text, or a mistake in them.
    """
    from hotloop.config import build, find_target, plain_config
    from hotloop.data.cache_folder import write_json

    settings = plain_config(config)
    check_types(settings)
    node, allowed = dict(settings["data"]), settings["allow_targets"]
    target = find_target(node.get("_target_"), "data", allowed)
    if getattr(target, "kind", None) != "text":
        raise UserError("only sentence pairs can be described: choose data=bitext, europarl or parliament")
    for name in set(node) - {"_target_", *inspect.signature(target).parameters}:
        del node[name]  # shorthands for the corpus
    data = build(node, "data", allowed=allowed)
    data.setup()

    from hotloop.data.text.describing.plots import draw
    from hotloop.data.text.describing.statistics import describe
    from hotloop.data.text.describing.table import report

    found = describe(data)
    folder = Path(settings["output"]).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "describe.json", found.values)
        pictures = draw(found, folder)
    except OSError as error:
        raise UserError(f"cannot write to output={folder}: {error.strerror}") from error
    print(report(found.values))
    print(f"written to {folder}: describe.json, {', '.join(path.name for path in pictures)}")


def check_types(settings: dict[str, Any]) -> None:
    """Raise UserError for a key of conf/describe.yaml that has another type of value than it needs."""
    for key, kind, expected in (
        ("output", str, "a folder"),
        ("data", dict, "a group: data=bitext, europarl or parliament"),
        ("allow_targets", list, "a list of packages"),
    ):
        if not isinstance(settings.get(key), kind) or settings[key] == "":
            raise UserError(f"{key}={settings.get(key)!r}: expected {expected}")


def conf_folder() -> Path:
    """The configuration of the project that this is run in, else of the one that hotloop is installed from."""
    for folder in (Path.cwd() / "conf", ROOT / "conf"):
        if (folder / "describe.yaml").is_file():
            return folder
    raise UserError(f"no configuration here: run this in a folder that holds conf/describe.yaml, not in {Path.cwd()}")


if __name__ == "__main__":
    try:
        conf = conf_folder()
    except UserError as error:
        raise SystemExit(f"describe.py: {error}") from None
    open_door(main, config_name="describe", conf=conf)
