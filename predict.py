"""Translate lines: python predict.py ckpt_path=FILE input=FILE output=FILE"""

import sys
from pathlib import Path
from typing import Any

try:
    from hotloop.doors import open_door
except ModuleNotFoundError as error:
    sys.exit(f"{error}: run this with the Python that has hotloop, .venv/bin/python after make setup")


def main(config: Any) -> None:
    from hotloop.inference import predict

    predict(config)


if __name__ == "__main__":
    open_door(main, config_name="predict", conf=Path(__file__).resolve().parent / "conf")
