"""Checks of options, in words that name the option and its value."""

from collections.abc import Sequence


def check_positive(**values: object) -> None:
    """ValueError unless each is a whole number of at least 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} = {value!r}: must be a whole number of at least 1")


def check_rates(**values: object) -> None:
    """ValueError unless each is a number from 0 up to, but not including, 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise ValueError(f"{name} = {value!r}: must be a number from 0 up to, but not including, 1")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """ValueError unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} = {value!r}: choose one of {', '.join(map(str, choices))}")
