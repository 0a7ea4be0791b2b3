"""What the documentation says can be typed: overrides compose, links lead somewhere, every card is listed."""

import re
from pathlib import Path
from typing import Any

import pytest
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tests.conftest import ROOT, compose_config

METHODS = ROOT / "docs" / "methods"
CARDS = sorted(path for path in METHODS.glob("*.md") if path.name != "README.md")
PAGES = [*CARDS, METHODS / "README.md"]
OVERRIDE = re.compile(r"\+{0,2}[A-Za-z_][\w.@/]*=[^\s|…]*")
GROUPS = {path.name for path in (ROOT / "conf").iterdir() if path.is_dir()}
# A group's options are files; what lies below them are keys. Both may be overridden, and so may the keys of train.yaml.
TOP_LEVEL = GROUPS | {key for key in OmegaConf.load(ROOT / "conf" / "train.yaml") if key != "defaults"}


def named(path: Path) -> Any:
    return str(path.relative_to(ROOT))


def overrides_in(text: str) -> list[list[str]]:
    """The overrides of each piece of code between backticks, those that are typed together in one list.

    `key=value` with an unknown key and no dot is other code, such as an argument of a Python function.
    """
    found = []
    for block, inline in re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", text, flags=re.DOTALL):
        for line in (block or inline).splitlines():
            words = [word for word in line.split("#")[0].split() if OVERRIDE.fullmatch(word)]
            typed = [w for w in words if "." in w.split("=")[0] or w.split("=")[0].lstrip("+") in TOP_LEVEL]
            if typed:
                found.append(typed)
    return found


def check_command(*overrides: str) -> None:
    """What `python train.py` does with `overrides` before it reads data."""
    from hotloop.run import checked

    checked(compose_config("name=test", "run_dir=run", *overrides))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_override_is_accepted_by_the_program(page):
    for overrides in overrides_in(page.read_text(encoding="utf-8")):
        check_command(*overrides)


@pytest.mark.parametrize("card", CARDS, ids=named)
def test_a_card_names_an_override_and_says_whether_the_mathematics_stay(card):
    text = card.read_text(encoding="utf-8")
    assert overrides_in(text)
    for part in ("**What it does.**", "**Same mathematics?**", "**Helps**", "**Hurts**", "**Override.**", "**Measured"):
        assert part in text, part


def test_every_card_is_listed_once():
    listed = re.findall(r"^\| \[[^]]+\]\((\w+\.md)\)", (METHODS / "README.md").read_text(encoding="utf-8"), flags=re.M)
    assert sorted(listed) == [card.name for card in CARDS]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_and_named_tests_exist(page):
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    files = re.findall(r"`((?:tests|benchmarks|notebooks|docs|conf|src)/[\w./]+)`", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [name for name in files if not (ROOT / name).exists()]
    assert not missing


@pytest.mark.parametrize("override", ["data.bukketing=true", "optimiser.fused=auto", "precision=bf17-mixed"])
def test_a_wrong_name_in_a_card_would_be_found(override):
    ((found,),) = overrides_in(f"Set `{override}`.")
    with pytest.raises((HydraException, OmegaConfBaseException)):
        compose_config(found)


@pytest.mark.parametrize(
    "override",
    [
        "model.decoding=paralel",
        "data.bucketing=7.5",
        "data.batch_size=4k",
        "trainer.accumulate_grad_batches=four",
        "optimizer.fused=perhaps",
        "compile=yes please",
    ],
)
def test_a_wrong_value_in_a_card_would_be_found(override):
    from hotloop.errors import UserError

    with pytest.raises(UserError):
        check_command(override)


def test_other_code_is_no_override():
    assert overrides_in("`fused=True` and `h = f(x)`, `data/cache`, $x=1$, `dynamic=True`") == []
    assert overrides_in("```\npython train.py model=seq2seq data.batch_size=4  # compile=true\n```") == [
        ["model=seq2seq", "data.batch_size=4"]
    ]
