from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from hotloop.config import build, check_options, check_tree, describe, find_target, fits, nearest
from hotloop.errors import UserError


@pytest.mark.parametrize(
    ("value", "hint", "right"),
    [
        (3, int, True),
        (3.0, int, False),
        (True, int, False),
        ("3", int, False),
        (3, float, True),
        (True, float, False),
        ("1e-3", float, False),
        (True, bool, True),
        (1, bool, False),
        (None, int | None, True),
        ("a", int | None, False),
        ("a", Literal["a", "b"], True),
        ("c", Literal["a", "b"], False),
        (1, Literal["a", 1], True),
        (True, Literal["a", 1], False),
        ([1, 2], list[int], True),
        ([1, "b"], list[int], False),
        ("ab", Sequence[str], False),
        (["a"], Sequence[str], True),
        ({"a": 1}, dict[str, int], True),
        ({"a": "b"}, dict[str, int], False),
        ([0.9, 0.98], tuple[float, float], True),
        ("a/b", Path, True),
        (3, Path, False),
        (object(), Any, True),
        (3, "ForwardReference", True),
    ],
)
def test_plain_values_against_types(value, hint, right):
    assert fits(value, hint) is right


def test_types_in_words():
    assert describe(int | None) == "a whole number or null"
    assert describe(Literal["dot", "general"] | None) == "dot, general or null"


def test_nearest_names_the_close_ones_or_all_of_a_few():
    assert nearest("hiden", ["hidden", "layers"]) == "; did you mean hidden?"
    assert nearest("zzz", ["hidden", "layers"]) == "; there is hidden, layers"


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "builtins.eval",
        "torch.load",
        "torch.hub.load",
        "webbrowser.open",
        "subprocess.Popen",
        "hotloopx.evil",
        "torch.optim.sys.exit",
        "lightning.pytorch.callbacks.callback.torch.load",
        "hotloop.checkpoint.torch.load",
        "hotloop.config.get_object",
        "hotloop.doors.os.system",
        "hotloop.vocabulary.PAD",
        None,
        3,
    ],
)
def test_targets_off_the_list_are_refused_by_any_path(target):
    with pytest.raises(UserError, match=r"refused|cannot import"):
        find_target(target, "callbacks.x")


def test_a_listed_package_without_that_name_is_told():
    with pytest.raises(UserError, match="cannot import"):
        find_target("torch.optim.AdamX", "optimizer")


def test_own_packages_can_be_added():
    assert find_target("fractions.Fraction", "model", ["fractions"]).__name__ == "Fraction"


def test_an_unknown_option_gets_the_nearest_names():
    with pytest.raises(UserError, match=r"optimizer\.momentun: no such option; did you mean momentum\?"):
        check_tree({"_target_": "torch.optim.SGD", "lr": 0.1, "momentun": 0.9}, "optimizer")


def test_a_wrong_type_is_told_with_key_value_and_what_was_expected():
    class Model:
        def __init__(self, *, hidden: int, attention: Literal["dot", "general"] | None = None) -> None: ...

    with pytest.raises(UserError, match=r"model\.hidden='big': expected a whole number"):
        check_options(Model, {"hidden": "big"}, "model")
    with pytest.raises(UserError, match=r"model\.attention='dott': expected dot, general or null"):
        check_options(Model, {"attention": "dott"}, "model")


def test_what_the_program_sets_cannot_be_configured():
    with pytest.raises(UserError, match="set by the program"):
        build({"_target_": "torch.optim.SGD", "lr": 0.1, "params": []}, "optimizer", params=[])


def test_a_value_that_the_target_refuses_is_told_with_the_key():
    import torch

    with pytest.raises(UserError, match=r"optimizer: .*-1"):
        build({"_target_": "torch.optim.SGD", "lr": -1.0}, "optimizer", params=[torch.zeros(1)])


def test_targets_inside_lists_and_dicts_are_checked_too():
    with pytest.raises(UserError, match=r"callbacks\.a\[0\]\._target_"):
        check_tree({"a": [{"_target_": "os.system"}]}, "callbacks")


@pytest.mark.parametrize(
    ("hint", "value", "told"),
    [
        (
            Sequence[Literal["source", "target", "output"]],
            ["target", "outputs"],
            r"expected a list of source, target or output; 'outputs' does not fit; did you mean output\?",
        ),
        (list[int], [1, "b"], r"expected a list of whole numbers; 'b' does not fit$"),
        (Literal["mean", "all"] | Sequence[int], [0, 1.5], r"mean, all or a list of whole numbers; 1\.5 does not fit$"),
        (Literal["mean", "all"] | Sequence[int], "men", r"expected mean, all or a list of whole numbers$"),
        (list[dict[str, int]], 3, r"expected a list$"),
    ],
)
def test_a_list_is_told_by_what_is_to_be_in_it(hint, value, told):
    class Model:
        def __init__(self, *, tie: Any) -> None: ...

    Model.__init__.__annotations__["tie"] = hint
    with pytest.raises(UserError, match=told):
        check_options(Model, {"tie": value}, "model")
