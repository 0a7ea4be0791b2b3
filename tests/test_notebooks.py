"""Notebooks are kept executed, with their pictures, and still run."""

import ast
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from tests.conftest import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 1_000_000  # bytes
MACHINE_PATH = re.compile(r"(?<![\w.])(?:/(?:home|root|tmp|work|Users|mnt|opt|var)/|[A-Z]:\\)")


def cells_of(notebook: Path) -> list[dict[str, Any]]:
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def outputs_of(notebook: Path) -> list[dict[str, Any]]:
    return [output for cell in cells_of(notebook) for output in cell.get("outputs", [])]


def without_pictures(content: Any) -> Any:
    """Base64 has slashes of its own."""
    if isinstance(content, dict):
        return {key: without_pictures(value) for key, value in content.items() if not key.startswith("image/")}
    return [without_pictures(value) for value in content] if isinstance(content, list) else content


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_as_executed_from_top_to_bottom(notebook):
    counts = [cell["execution_count"] for cell in cells_of(notebook) if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert not [output for output in outputs_of(notebook) if output["output_type"] == "error"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_pictures_and_stays_small(notebook):
    assert any("image/png" in output.get("data", {}) for output in outputs_of(notebook))
    assert notebook.stat().st_size < LARGEST


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_nothing_of_the_machine_but_its_processor(notebook):
    content = without_pictures(json.loads(notebook.read_text(encoding="utf-8")))
    assert not MACHINE_PATH.findall(json.dumps(content, ensure_ascii=False))
    assert not any("execution" in cell["metadata"] for cell in content["cells"])  # time stamps of each cell
    assert not [output for output in outputs_of(notebook) if output.get("name") == "stderr"]


def options_in(notebook: Path, name: str) -> dict[str, Any]:
    """The dict that a cell gives that name."""
    source = "\n".join("".join(cell["source"]) for cell in cells_of(notebook) if cell["cell_type"] == "code")
    (found,) = [
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name
    ]
    return ast.literal_eval(found)


@pytest.mark.parametrize(
    ("name", "file"),
    [("RECOMMENDED", "model/inception.yaml"), ("PUBLISHED", "experiment/inception_published.yaml")],
)
def test_the_image_notebook_trains_the_models_of_the_configuration(name, file):
    config = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / file))
    options = options_in(ROOT / "notebooks" / "image_regressor_from_hours_to_minutes.ipynb", name)
    assert options == {key: value for key, value in config.get("model", config).items() if key in options}
    assert {"stem", "blocks", "head"} <= options.keys()


@pytest.mark.parametrize("text", ["in /home/me/x", '"/tmp/a"', "C:\\data", "see (/work/b)"])
def test_machine_paths_are_recognised(text):
    assert MACHINE_PATH.search(text)


@pytest.mark.parametrize("text", ["runs/tmp/a", "https://a.org/home/b", "src/hotloop", "and/or", "model/work/x"])
def test_relative_paths_and_addresses_are_no_machine_paths(text):
    assert not MACHINE_PATH.search(text)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_without_a_failing_cell(notebook, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is missing: pip install -e '.[notebooks]'")
    pytest.importorskip("ipykernel", reason="ipykernel is missing: pip install -e '.[notebooks]'")
    import nbformat

    content = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(content, timeout=900, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(
        env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    )  # raises where a cell fails
    pictures = [
        output for cell in content.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == sum("image/png" in output.get("data", {}) for output in outputs_of(notebook))
