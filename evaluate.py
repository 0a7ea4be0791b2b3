"""Measure a checkpoint: python evaluate.py ckpt_path=FILE"""

from pathlib import Path
from typing import Any

from hotloop.doors import open_door


def main(config: Any) -> dict[str, float]:
    from hotloop.inference import evaluate

    return evaluate(config)


if __name__ == "__main__":
    open_door(main, config_name="evaluate", conf=Path(__file__).resolve().parent / "conf")
