"""Translate lines: python predict.py ckpt_path=FILE input=FILE output=FILE"""

from pathlib import Path
from typing import Any

from hotloop.doors import open_door


def main(config: Any) -> None:
    from hotloop.inference import predict

    predict(config)


if __name__ == "__main__":
    open_door(main, config_name="predict", conf=Path(__file__).resolve().parent / "conf")
