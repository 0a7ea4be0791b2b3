"""What a search may be told, and which of it goes together."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from hotloop.models.interface import Translator

LONGEST = 100_000  # tokens


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How translations are looked for.

    Attributes:
        beam_size: K; 1 = greedy.
        n_best: translations of a sentence, at most K; with `sample`, draws.
        length_penalty: alpha of Wu et al. 2016, equation 14; it normalises scores. At most 5.
        coverage_penalty: beta of the same equation: a score suffers for source words that were hardly looked at.
            At most 100.
        min_length: tokens before EOS may come.
        max_length: cap on tokens; None = 2 * source + 10, or what `min_length` needs. See `length_cap`.
        allow_unknown: whether UNK may be produced.
        replace_unknown: UNK becomes the source word that its step looked at most (Jean et al. 2015, section 3.3).
        no_repeat_ngram: no n tokens in a row occur twice in a translation; 0 = off (Paulus et al. 2018, section 2.5).
        sample: draw tokens instead of searching for the likeliest.
        temperature: of draws; below 1 sharper, above 1 flatter. From 0.001 to 1000.
        top_k: draw among the k likeliest tokens; 0 = all.
        top_p: draw among the fewest tokens that together have this probability (Holtzman et al. 2020, section 3.1).
        seed: of draws.

    Raises ValueError, naming option and value, for one out of range, or one that would do nothing beside the others.
    """

    beam_size: int = 1
    n_best: int = 1
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0
    min_length: int = 0
    max_length: int | None = None
    allow_unknown: bool = True
    replace_unknown: bool = False
    no_repeat_ngram: int = 0
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_ranges({field.name: getattr(self, field.name) for field in fields(self)})
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length = {self.min_length} is more than max_length = {self.max_length}")
        if self.sample:
            self._refuse(("beam_size", "coverage_penalty"), "does nothing with sample = True: nothing is searched for")
            return
        self._refuse(("temperature", "top_k", "top_p", "seed"), "does nothing without sample = True")
        if self.n_best > self.beam_size:
            raise ValueError(f"n_best = {self.n_best} is more than beam_size = {self.beam_size}: ask for a wider beam")
        if self.beam_size == 1:
            self._refuse(("coverage_penalty",), "does nothing with beam_size = 1: there is nothing to choose from")

    def check_model(self, model: Translator) -> None:
        """ValueError for an option that needs attention where `model` has none."""
        if self.needs_attention and not model.attends:
            name = "replace_unknown" if self.replace_unknown else "coverage_penalty"
            raise ValueError(f"{name} = {getattr(self, name)} needs a model with attention: this one has none")

    @property
    def greedy(self) -> "SearchOptions":
        """The same limits and rules, for the likeliest token at each step: neither beams nor draws."""
        of_beams_and_draws = (
            "beam_size",
            "n_best",
            "coverage_penalty",
            "sample",
            "temperature",
            "top_k",
            "top_p",
            "seed",
        )
        return replace(self, **{name: DEFAULTS[name] for name in of_beams_and_draws})

    @property
    def needs_attention(self) -> bool:
        """Whether the search has to know where each step looked."""
        return self.replace_unknown or self.coverage_penalty > 0

    def _refuse(self, names: tuple[str, ...], why: str) -> None:
        if self.replace_unknown and not self.allow_unknown:
            raise ValueError("replace_unknown = True does nothing with allow_unknown = False: there is no UNK")
        for name in names:
            if getattr(self, name) != DEFAULTS[name]:
                raise ValueError(f"{name} = {getattr(self, name)} {why}")


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(SearchOptions)}

# The smallest and the largest value of each whole number.
_WHOLE = {
    "beam_size": (1, 1_000),
    "n_best": (1, 1_000),
    "min_length": (0, LONGEST),
    "max_length": (1, LONGEST),
    "no_repeat_ngram": (0, LONGEST),
    "top_k": (0, 2**31),
    "seed": (0, 2**63 - 1),
}

# The same of each real number. Beyond them powers, quotients and sums leave the range of float32, and nothing is best.
_REAL = {
    "length_penalty": (0.0, 5.0),
    "coverage_penalty": (0.0, 100.0),
    "temperature": (0.001, 1_000.0),
}


def check_ranges(values: Mapping[str, Any]) -> None:
    """ValueError, naming option and value, for the first of these options that is out of its own range."""
    for name, value in values.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in _WHOLE:
            low, high = _WHOLE[name]
            if name == "max_length" and value is None:
                continue
            if not number or not isinstance(value, int) or value < low:
                raise ValueError(f"{name} = {value!r}: must be a whole number of at least {low}")
            if value > high:
                raise ValueError(f"{name} = {value}: must be at most {high}")
        elif isinstance(DEFAULTS[name], bool):
            if not isinstance(value, bool):
                raise ValueError(f"{name} = {value!r}: must be true or false")
        elif name in _REAL:
            least, most = _REAL[name]
            if not number or not least <= value <= most:
                raise ValueError(f"{name} = {value!r}: must be a number from {least:g} to {most:g}")
        elif not number or not 0 < value <= 1:
            raise ValueError(f"{name} = {value!r}: must be a number above 0 and at most 1")
