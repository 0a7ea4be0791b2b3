"""Checks on the composed configuration, before anything is built, and the one way to build from it.

A node with `_target_` is a class or function to call. Only targets on an allow-list are ever called, each
option is held against the signature of its target, and mistakes become one line with the key, the value and
the nearest valid names.
"""

import difflib
import inspect
import logging
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hydra.utils import get_object
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from hotloop.errors import UserError

# Packages whose classes a configuration may name. `allow_targets` in the configuration adds your own.
ALLOWED = ("hotloop", "torch.optim", "lightning.pytorch", "torchvision.transforms.v2")


def nearest(name: str, names: Iterable[str], count: int = 3) -> str:
    """A hint such as "; did you mean hidden, heads?" or, with nothing near, the list of `names`."""
    names = sorted(set(names))
    close = difflib.get_close_matches(name, names, n=count, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; there is {', '.join(names)}" if 0 < len(names) <= 30 else ""


def plain_config(config: Any) -> Any:
    """A resolved copy made of dict, list, str, numbers, booleans and None.

    Raises:
        UserError: a required key has no value, or a reference leads nowhere.
    """
    if not OmegaConf.is_config(config):
        return config
    for key, value in flat_items(OmegaConf.to_container(config, resolve=False)):
        if value == "???":  # OmegaConf's mark of a required value
            raise UserError(f"{key} is required: add {key}=… to the command")
    try:
        return OmegaConf.to_container(config, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(" ".join(str(error).split())) from error


def find_target(name: Any, key: str, allowed: Iterable[str] = ()) -> Any:
    """The class or function called `name`, if the allow-list has its package.

    Args:
        name: dotted path, as in `_target_`.
        key: configuration key, for messages.
        allowed: packages allowed besides `ALLOWED`.

    Raises:
        UserError: not on the list, or there is no such thing.
    """
    packages = (*ALLOWED, *allowed)

    def listed(module: str) -> bool:
        return any(module == package or module.startswith(package + ".") for package in packages)

    if not isinstance(name, str) or not listed(name):
        raise UserError(
            f"{key}._target_: {name!r} is refused; targets come from {', '.join(packages)}. "
            "Add your own package with allow_targets=[my_package]"
        )
    try:
        logging.getLogger("hydra.utils").setLevel(logging.CRITICAL)  # it would tell the same in three lines
        found = get_object(name)
    except Exception as error:
        raise UserError(f"{key}._target_: cannot import {name}: {' '.join(str(error).split())}") from error
    # The path may lead through a module to something else (….os.system), so ask the object itself.
    if not callable(found) or not listed(getattr(found, "__module__", "") or ""):
        raise UserError(f"{key}._target_: {name} is refused: it is no class or function of {', '.join(packages)}")
    return found


def build(node: Any, key: str, *, allowed: Iterable[str] = (), **more: Any) -> Any:
    """Call the target of `node` with its options, nested targets first.

    Args:
        node: plain dict with `_target_`.
        key: its configuration key, for messages.
        allowed: packages allowed besides `ALLOWED`.
        more: options that are objects, not configuration.

    Raises:
        UserError: refused target, unknown option, wrong type, or a value that the target itself refuses.
    """
    target = find_target(node.get("_target_"), key, allowed)
    options = {name: value for name, value in node.items() if name != "_target_"}
    check_options(target, options, key, given=more)
    options = {name: _build_nested(value, f"{key}.{name}", allowed) for name, value in options.items()}
    try:
        return target(**options, **more)
    except (TypeError, ValueError, ImportError) as error:
        raise UserError(f"{key}: {' '.join(str(error).split())}") from error
    except Exception as error:
        text = " ".join(str(error).split())
        if type(error).__name__ == "MisconfigurationException":
            raise UserError(f"{key}: {text}") from error
        if isinstance(error, RuntimeError) and ("allocate" in text or "out of memory" in text):
            raise UserError(f"{key}: too large for the memory of this machine ({text[:120]})") from error
        raise


def _build_nested(value: Any, key: str, allowed: Iterable[str]) -> Any:
    if isinstance(value, dict) and "_target_" in value:
        return build(value, key, allowed=allowed)
    if isinstance(value, dict):
        return {name: _build_nested(item, f"{key}.{name}", allowed) for name, item in value.items()}
    if isinstance(value, list):
        return [_build_nested(item, f"{key}[{i}]", allowed) for i, item in enumerate(value)]
    return value


def check_tree(node: Any, key: str, allowed: Iterable[str] = ()) -> None:
    """Check every target below `node` without calling one.

    Raises:
        UserError: see `build`.
    """
    if isinstance(node, dict):
        if "_target_" in node:
            target = find_target(node["_target_"], key, allowed)
            check_options(target, {k: v for k, v in node.items() if k != "_target_"}, key)
        for name, item in node.items():
            check_tree(item, f"{key}.{name}", allowed)
    elif isinstance(node, list):
        for i, item in enumerate(node):
            check_tree(item, f"{key}[{i}]", allowed)


def check_options(
    target: Any,
    options: Mapping[str, Any],
    key: str,
    *,
    given: Mapping[str, Any] = types.MappingProxyType({}),
) -> None:
    """Hold the names and types of `options` against the signature of `target`.

    Raises:
        UserError: an option that the target does not know, or a value of the wrong type.
    """
    function = target.__init__ if inspect.isclass(target) else target
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # written in C: it will check its options itself
        return
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    names = [n for n in parameters if n != "self" and parameters[n].kind is not inspect.Parameter.VAR_KEYWORD]
    try:
        hints = get_type_hints(function)
    except Exception:
        hints = {}
    for name, value in options.items():
        if name in given:
            raise UserError(f"{key}.{name} is set by the program and cannot be configured")
        if name not in names:
            if open_ended:
                continue
            raise UserError(f"{key}.{name}: no such option{nearest(name, set(names) - set(given))}")
        if isinstance(value, dict) and "_target_" in value:
            continue
        if name in hints and not fits(value, hints[name]):
            raise UserError(f"{key}.{name}={value!r}: expected {describe(hints[name])}{_misfit(value, hints[name])}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a plain value can stand for the type `hint`; types that no plain value has fit everything."""
    if hint is Any or isinstance(hint, (str, typing.TypeVar)):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in get_args(hint))
    if origin is Literal:
        return any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in get_args(hint))
    if origin is typing.Annotated:
        return fits(value, get_args(hint)[0])
    plain = origin or hint
    if plain is bool:
        return isinstance(value, bool)
    if plain is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if plain is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if plain is str:
        return isinstance(value, str)
    if inspect.isclass(plain):
        if issubclass(plain, Mapping):
            inner = get_args(hint)
            return isinstance(value, dict) and (len(inner) < 2 or all(fits(v, inner[1]) for v in value.values()))
        if plain is tuple:
            return isinstance(value, list)
        if plain in (list, set) or (
            plain.__module__ == "collections.abc" and plain.__name__ in ("Sequence", "Iterable")
        ):
            inner = get_args(hint)
            return isinstance(value, list) and (not inner or all(fits(v, inner[0]) for v in value))
        if plain.__module__ == "pathlib":
            return isinstance(value, str)
        # An object (a logger, a strategy): no number or text can be one.
        return plain is object or not isinstance(value, (bool, int, float, str, type(None)))
    return True


def describe(hint: Any) -> str:
    """A type in words that a user of the command line understands."""
    words = list(dict.fromkeys(_words(hint)))
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _misfit(value: Any, hint: Any) -> str:
    """Which entry is wrong in a list that would do but for its entries; with near names, where names are asked for."""
    if not isinstance(value, list):
        return ""
    for part in get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,):
        if not fits([], part) or not (inner := get_args(part)):
            continue
        wrong = next((entry for entry in value if not fits(entry, inner[0])), None)
        near = nearest(wrong, map(str, get_args(inner[0]))) if isinstance(wrong, str) else ""
        return f"; {wrong!r} does not fit" + (near if "did you mean" in near else "")
    return ""


PLURALS = {int: "whole numbers", float: "numbers", str: "texts", bool: "true and false"}


def _list_words(hint: Any) -> str:
    """A list in words: "a list of whole numbers", "a list of source, target or output"."""
    inner = get_args(hint)[:1]
    if inner and get_origin(inner[0]) is Literal:
        return f"a list of {describe(inner[0])}"
    return f"a list of {PLURALS[inner[0]]}" if inner and inner[0] in PLURALS else "a list"


def _words(hint: Any) -> Iterator[str]:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        for part in get_args(hint):
            yield from _words(part)
    elif origin is Literal:
        yield from (str(choice) for choice in get_args(hint))
    elif hint is None or hint is type(None):
        yield "null"
    else:
        known = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
        plain = origin or hint
        named = {
            "list": _list_words(hint),
            "tuple": "a list",
            "dict": "a mapping",
            "Sequence": _list_words(hint),
            "Mapping": "a mapping",
            "Path": "a path",
        }
        name = getattr(plain, "__name__", str(plain))
        yield known.get(plain, named.get(name, f"a {name}"))


def flat_items(content: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key of nested dicts, dotted, with its value: branches and leaves."""
    for name, value in content.items():
        yield f"{prefix}{name}", value
        if isinstance(value, dict):
            yield from flat_items(value, f"{prefix}{name}.")
