"""Valid JSON, all or nothing."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from hotloop.callbacks.json_file import as_json, write_json


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "report.json"
    write_json(path, {"a": 1})

    def full(*args: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("hotloop.callbacks.json_file.os.replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}


def test_json_holds_no_nan_infinity_or_objects() -> None:
    value = {
        "nan": math.nan,
        "inf": [math.inf, -math.inf],
        "tensor": torch.tensor(2.5),
        "tensors": torch.tensor([1.0, math.nan]),
        "path": Path("a/b"),
        1: (True, None, 7),
    }
    plain = as_json(value)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain == {
        "nan": None,
        "inf": [None, None],
        "tensor": 2.5,
        "tensors": [1.0, None],
        "path": "a/b",
        "1": [True, None, 7],
    }
