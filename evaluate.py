"""Measure a checkpoint: python evaluate.py ckpt_path=FILE"""

import sys
from pathlib import Path
from typing import Any

try:
    from hotloop.doors import open_door
except ModuleNotFoundError as error:
    sys.exit(f"{error}: run this with the Python that has hotloop, .venv/bin/python after make setup")


def main(config: Any) -> dict[str, float]:
    from hotloop.inference import evaluate

    return evaluate(config)


if __name__ == "__main__":
    open_door(main, config_name="evaluate", conf=Path(__file__).resolve().parent / "conf")
