"""Where the time of a training goes, and what to change: python diagnose.py [the overrides of train.py]"""

import sys
from pathlib import Path
from typing import Any

try:
    from hotloop.doors import open_door
except ModuleNotFoundError as error:
    sys.exit(f"{error}: run this with the Python that has hotloop, .venv/bin/python after make setup")


def main(config: Any) -> None:
    from hotloop.diagnose.diagnosis import diagnose

    diagnose(config)


if __name__ == "__main__":
    open_door(main, config_name="diagnose", conf=Path(__file__).resolve().parent / "conf")
