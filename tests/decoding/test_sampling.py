"""Draws: from the right distribution, and the same whatever else is in the batch."""

import pytest
import torch

from hotloop.decoding import SearchOptions, search
from hotloop.decoding.lines import translate_lines, translate_stream
from hotloop.decoding.sampling import Draws, draw, mixed
from hotloop.models.seq2seq import Seq2Seq
from tests.decoding.toys import TableModel, random_logits, sources


def drawn(log_probability, count=40_000, **options):
    """How often each token of one row (V,) is drawn."""
    chances = Draws(SearchOptions(sample=True, seed=3), torch.arange(count)).chances(torch.arange(count), 0)
    tokens = draw(log_probability.expand(count, -1), chances, SearchOptions(sample=True, **options))
    return tokens.bincount(minlength=len(log_probability)) / count


PROBABILITY = torch.tensor([0.0, 0.05, 0.2, 0.4, 0.05, 0.3])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, PROBABILITY),
        ({"temperature": 0.5}, PROBABILITY**2),
        ({"temperature": 2.0}, PROBABILITY**0.5),
        ({"top_k": 2}, PROBABILITY * (PROBABILITY >= 0.3)),
        ({"top_k": 99}, PROBABILITY),
        ({"top_p": 0.65}, PROBABILITY * (PROBABILITY >= 0.3)),
        ({"top_p": 0.75}, PROBABILITY * (PROBABILITY >= 0.2)),
        ({"top_p": 1e-6}, PROBABILITY * (PROBABILITY >= 0.4)),
        ({"top_k": 3, "top_p": 0.5}, PROBABILITY * (PROBABILITY >= 0.3)),
    ],
    ids=str,
)
def test_tokens_are_drawn_as_often_as_they_should(options, expected):
    found = drawn(PROBABILITY.log(), **options)
    assert (found - expected / expected.sum()).abs().max() < 0.01
    assert (found[expected == 0] == 0).all()


def test_chances_are_even_and_those_of_neighbours_have_nothing_in_common():
    draws = Draws(SearchOptions(sample=True, n_best=2), torch.arange(20_000))
    row = torch.arange(40_000)
    chances = [draws.chances(row, step) for step in range(2)]
    one = chances[0]
    assert float(one.min()) >= 0 and float(one.max()) < 1
    assert (one.histc(10, 0, 1) / 40_000 - 0.1).abs().max() < 0.01
    pairs = [(one, chances[1]), (one[::2], one[1::2]), (one[:-2], one[2:])]
    assert all(torch.corrcoef(torch.stack(pair))[0, 1].abs() < 0.03 for pair in pairs)
    assert len(mixed(torch.arange(100_000)).unique()) == 100_000


def test_the_mixing_is_that_of_splitmix64():
    """The first numbers of the published generator for seed 1234567."""
    golden = 0x9E3779B97F4A7C15 - 2**64
    found = mixed(torch.tensor([1234567, 1234567 + golden]))
    assert [number % 2**64 for number in found.tolist()] == [6457827717110365317, 3203168211198807973]


@pytest.mark.parametrize("few", [1, 3, 64])
def test_sorting_the_first_few_changes_no_draw(few, monkeypatch):
    numbers = (torch.randn(200, 300, generator=torch.Generator().manual_seed(0)) * 4).log_softmax(-1)
    chance = torch.rand(200, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    options = SearchOptions(sample=True, top_p=0.8)
    expected = draw(numbers, chance, options)
    monkeypatch.setattr("hotloop.decoding.sampling.FEW", few)
    assert torch.equal(draw(numbers, chance, options), expected)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return Seq2Seq(source_vocabulary=40, target_vocabulary=40, embedding=8, hidden=8)


class Words:
    def encode(self, lines):
        return [[int(word) for word in line.split()] for line in lines]

    def decode(self, rows):
        return [" ".join(map(str, row)) for row in rows]


LINES = ["5 6 7", "5 6 7", "", "9", "20 21 22 23 24 25", "8 8", "30 31 32 33"]
OPTIONS = SearchOptions(sample=True, n_best=3, top_k=20, seed=5, max_length=9)


def test_draws_depend_on_seed_and_line_alone(model):
    def translate(options=OPTIONS, **more):
        found = translate_lines(model, Words(), Words(), LINES, options, **more)
        return [[translation.text for translation in group] for group in found]

    expected = translate(batch_size=1)
    assert translate(batch_size=3) == translate(batch_size=64) == expected
    assert len({text for group in expected for text in group}) > 15
    assert expected[0] != expected[1]  # the same line at another place
    assert translate(SearchOptions(sample=True, n_best=3, top_k=20, seed=6, max_length=9)) != expected
    stream = translate_stream(model, Words(), Words(), iter(LINES), OPTIONS, chunk=2)
    assert [[translation.text for translation in group] for group in stream] == expected


def test_the_first_draws_do_not_depend_on_how_many_are_asked_for(model):
    source, length = sources(4, 5)
    few = search(model, source, length, SearchOptions(sample=True, n_best=2, max_length=9))
    many = search(model, source, length, SearchOptions(sample=True, n_best=6, max_length=9))
    for one, more in zip(few, many, strict=True):
        assert {tuple(h.tokens) for h in one} <= {tuple(h.tokens) for h in more} and len(more) == 6


def test_scores_are_those_of_the_model_whatever_the_temperature():
    logits = random_logits(1)
    for group in search(
        TableModel(logits), *sources(4, 5), SearchOptions(sample=True, n_best=4, temperature=3.0, max_length=6)
    ):
        assert [h.score for h in group if h.finished] == sorted((h.score for h in group if h.finished), reverse=True)
    [group] = search(TableModel(logits), *sources(4), SearchOptions(sample=True, temperature=3.0, max_length=6))
    tokens = [*group[0].tokens, *([3] if group[0].finished else [])]
    total = sum(logits(4, tuple(tokens[:i])).log_softmax(-1)[token].item() for i, token in enumerate(tokens))
    assert group[0].log_probability == pytest.approx(total, abs=1e-5)


def test_drawing_the_likeliest_alone_is_greedy(model):
    greedy = search(model, *sources(4, 5, 6))
    drawn = search(model, *sources(4, 5, 6), SearchOptions(sample=True, top_k=1, seed=9))
    assert [group[0].tokens for group in drawn] == [group[0].tokens for group in greedy]


def test_draws_keep_to_the_other_options():
    options = SearchOptions(sample=True, n_best=20, min_length=3, max_length=8, no_repeat_ngram=2, temperature=2.0)
    for group in search(TableModel(random_logits(4)), *sources(4, 5), options):
        for found in group:
            pairs = list(zip(found.tokens, found.tokens[1:], strict=False))
            assert len(found.tokens) >= 3 and len(set(pairs)) == len(pairs)
