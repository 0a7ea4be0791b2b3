"""Train a model: python train.py model=seq2seq_attn data=europarl precision=16-mixed"""

import sys
from pathlib import Path
from typing import Any

try:
    from hotloop.doors import open_door
except ModuleNotFoundError as error:
    sys.exit(f"{error}: run this with the Python that has hotloop, .venv/bin/python after make setup")


def main(config: Any) -> float | None:
    from hotloop.run import train

    return train(config)


if __name__ == "__main__":
    open_door(main, config_name="train", conf=Path(__file__).resolve().parent / "conf")
