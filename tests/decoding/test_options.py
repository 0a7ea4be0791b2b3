import math

import pytest

from hotloop.decoding import SearchOptions
from hotloop.decoding.options import DEFAULTS
from tests.decoding.toys import TableModel, random_logits, random_weights


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size = 0"),
        ({"beam_size": 100_000}, "beam_size = 100000: must be at most 1000"),
        ({"n_best": True}, "n_best = True"),
        ({"length_penalty": "much"}, "length_penalty = 'much'"),
        ({"length_penalty": 6}, "length_penalty = 6: must be a number from 0 to 5"),
        ({"length_penalty": 10**400}, "length_penalty = 1000.*: must be a number from 0 to 5"),
        ({"coverage_penalty": 1e38, "beam_size": 2}, r"coverage_penalty = 1e\+38: must be a number from 0 to 100"),
        ({"coverage_penalty": math.nan, "beam_size": 2}, "coverage_penalty = nan: must be a number"),
        ({"coverage_penalty": -1.0, "beam_size": 2}, "coverage_penalty = -1.0"),
        ({"min_length": -1}, "min_length = -1"),
        ({"max_length": 100_001}, "max_length = 100001: must be at most 100000"),
        ({"allow_unknown": 1}, "allow_unknown = 1: must be true or false"),
        ({"no_repeat_ngram": 1.5}, "no_repeat_ngram = 1.5"),
        ({"sample": "yes"}, "sample = 'yes'"),
        ({"sample": True, "temperature": 0}, "temperature = 0: must be a number from 0.001 to 1000"),
        ({"sample": True, "temperature": 1e-9}, "temperature = 1e-09: must be a number from 0.001"),
        ({"sample": True, "temperature": math.inf}, "temperature = inf"),
        ({"sample": True, "top_p": 0.0}, "top_p = 0.0"),
        ({"sample": True, "top_p": 1.1}, "top_p = 1.1"),
        ({"sample": True, "top_k": -1}, "top_k = -1"),
        ({"sample": True, "seed": 2**63}, "seed = 9223372036854775808: must be at most"),
    ],
)
def test_a_value_out_of_range_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        SearchOptions(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage_penalty": 0.2}, "coverage_penalty = 0.2 does nothing with beam_size = 1"),
        ({"temperature": 0.5}, "temperature = 0.5 does nothing without sample"),
        ({"top_k": 5}, "top_k = 5 does nothing without sample"),
        ({"top_p": 0.5, "beam_size": 4}, "top_p = 0.5 does nothing without sample"),
        ({"seed": 5}, "seed = 5 does nothing without sample"),
        ({"sample": True, "beam_size": 4}, "beam_size = 4 does nothing with sample"),
        ({"sample": True, "coverage_penalty": 0.5}, "coverage_penalty = 0.5 does nothing with sample"),
        ({"replace_unknown": True, "allow_unknown": False}, "replace_unknown = True does nothing with allow_unknown"),
        ({"sample": True, "replace_unknown": True, "allow_unknown": False}, "replace_unknown = True does nothing"),
        ({"min_length": 9, "max_length": 8}, "min_length = 9 is more than max_length = 8"),
        ({"n_best": 3, "beam_size": 2}, "n_best = 3 is more than beam_size = 2"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SearchOptions(**options)


def test_what_goes_together_is_accepted():
    SearchOptions(sample=True, n_best=5, temperature=0.7, top_k=3, top_p=0.9, seed=1, replace_unknown=True)
    SearchOptions(beam_size=4, n_best=4, coverage_penalty=0.2, min_length=3, max_length=3, no_repeat_ngram=2)
    assert DEFAULTS["beam_size"] == 1 and DEFAULTS["max_length"] is None


@pytest.mark.parametrize("options", [{"coverage_penalty": 0.2, "beam_size": 2}, {"replace_unknown": True}])
def test_what_needs_attention_is_refused_for_a_model_without(options):
    SearchOptions(**options).check_model(TableModel(random_logits(0), random_weights(0, 4)))
    with pytest.raises(ValueError, match=f"{next(iter(options))} = .* needs a model with attention"):
        SearchOptions(**options).check_model(TableModel(random_logits(0)))


def test_greedy_keeps_the_rules_and_drops_beams_and_draws():
    rules = {"min_length": 2, "max_length": 9, "no_repeat_ngram": 3, "replace_unknown": True, "length_penalty": 0.5}
    beams = SearchOptions(beam_size=4, n_best=2, coverage_penalty=0.2, **rules)
    draws = SearchOptions(sample=True, n_best=3, temperature=0.5, top_k=5, top_p=0.9, seed=3, **rules)
    assert beams.greedy == draws.greedy == SearchOptions(**rules)
