"""Coverage, shortest length and repeats against looking at every hypothesis there is."""

import math

import pytest
import torch

from hotloop.decoding import Hypothesis, SearchOptions, beam_search, greedy_search, length_cap, search
from hotloop.vocabulary import EOS, UNK
from tests.decoding.toys import VOCABULARY, WORDS, TableModel, random_logits, random_weights, sources

CAP, LENGTH = 4, 4


def repeats(words, size):
    grams = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
    return len(set(grams)) < len(grams)


def every_hypothesis(logits, weights, sentence, options):
    """All that the options allow, in the order of a search."""
    found, prefixes = [], [((), 0.0, [0.0] * (LENGTH - 1))]
    for step in range(1, CAP + 1):
        longer, normal = [], ((5 + step) / 6) ** options.length_penalty
        for prefix, total, coverage in prefixes:
            log_probs = logits(sentence, prefix).log_softmax(-1).tolist()
            looked = weights(sentence, prefix).tolist()
            covered = [mine + new for mine, new in zip(coverage, looked, strict=False)]  # not the EOS of the source
            missing = options.coverage_penalty * sum(math.log(min(one, 1.0)) for one in covered)

            def scored(words, total, finished, normal=normal, missing=missing):
                return Hypothesis(list(words), total / normal + missing, total, finished)

            if len(prefix) >= options.min_length:
                found.append(scored(prefix, total + log_probs[EOS], True))
            for word in [UNK, *WORDS]:
                if options.no_repeat_ngram and repeats((*prefix, word), options.no_repeat_ngram):
                    continue
                longer.append(((*prefix, word), total + log_probs[word], covered))
                if step == CAP:
                    found.append(scored((*prefix, word), total + log_probs[word], False))
        prefixes = longer
    return sorted(found, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))


@pytest.mark.parametrize(
    "chosen",
    [
        {"coverage_penalty": 0.2},
        {"coverage_penalty": 3.0, "length_penalty": 0.0},
        {"coverage_penalty": 2.0, "length_penalty": 5.0},
        {"min_length": 2},
        {"min_length": CAP},
        {"no_repeat_ngram": 1},
        {"no_repeat_ngram": 2, "min_length": 3},
        {"no_repeat_ngram": 2, "min_length": 1, "coverage_penalty": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_the_tree_finds_the_best_of_all(chosen, seed):
    logits, weights = random_logits(seed), random_weights(seed, LENGTH)
    options = SearchOptions(beam_size=2 * 4**CAP, n_best=6, max_length=CAP, **chosen)
    found = beam_search(TableModel(logits, weights), *sources(4, 5), options)
    for sentence, group in zip((4, 5), found, strict=True):
        expected = every_hypothesis(logits, weights, sentence, options)[:6]
        assert [(h.tokens, h.finished) for h in group] == [(h.tokens, h.finished) for h in expected]
        for mine, right in zip(group, expected, strict=True):
            assert mine.score == pytest.approx(right.score, abs=1e-4)
            assert mine.log_probability == pytest.approx(right.log_probability, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("chosen", [{"min_length": 3}, {"no_repeat_ngram": 2}, {"min_length": 2, "no_repeat_ngram": 1}])
def test_a_beam_of_one_is_greedy_under_every_option(seed, chosen):
    options = SearchOptions(max_length=8, **chosen)
    arguments = sources(4, 5, 6, UNK)
    greedy = greedy_search(TableModel(random_logits(seed)), *arguments, options)
    beam = beam_search(TableModel(random_logits(seed)), *arguments, options)
    for ours, others in zip(greedy, beam, strict=True):
        assert [(h.tokens, h.finished) for h in ours] == [(h.tokens, h.finished) for h in others]
        assert ours[0].score == pytest.approx(others[0].score, abs=1e-5)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_neighbours_change_nothing_under_any_option(beam_size):
    options = SearchOptions(
        beam_size=beam_size, n_best=beam_size, min_length=2, no_repeat_ngram=2, replace_unknown=True,
        coverage_penalty=0.3 if beam_size > 1 else 0.0,
    )  # fmt: skip
    model = TableModel(random_logits(1), random_weights(1, LENGTH))
    source, _ = sources(4, 5, 6, UNK)
    length = torch.tensor([2, 4, 3, 4])
    together = search(model, source, length, options)
    for row in range(4):
        alone = search(model, source[row : row + 1], length[row : row + 1], options)
        assert alone[0] == together[row]


def test_coverage_changes_which_translation_wins():
    """Two equal ways, of which one looks at the first word only."""

    def logits(sentence, words):
        row = torch.full((VOCABULARY,), -30.0)
        if not words:
            row[4], row[5] = math.log(0.6), math.log(0.4)
        else:
            row[EOS if len(words) == 2 else words[-1]] = 0.0
        return row

    def weights(sentence, words):
        place = len(words) if words and words[0] == 5 else 0
        return torch.nn.functional.one_hot(torch.tensor(place), LENGTH) * 0.9 + 0.025

    for beta, expected in ((0.0, [4, 4]), (1.0, [5, 5])):
        options = SearchOptions(beam_size=2, coverage_penalty=beta)
        assert beam_search(TableModel(logits, weights), *sources(4), options)[0][0].tokens == expected


@pytest.mark.parametrize("how", [{}, {"beam_size": 3}, {"sample": True}, {"sample": True, "top_k": 2}], ids=str)
def test_a_translation_that_cannot_go_on_is_cut(how):
    """Four words, none twice, six wanted: the last word that can be said is the end."""
    options = SearchOptions(min_length=6, no_repeat_ngram=1, **how)
    for group in search(TableModel(random_logits(0)), *sources(4, 5), options):
        assert sorted(group[0].tokens) == [UNK, *WORDS] and not group[0].finished
        assert math.isfinite(group[0].score)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_cap_makes_room_for_the_shortest_length(beam_size):
    always = lambda sentence, words: torch.tensor([0.0, 0.0, 0.0, 9.0, 1.0, 0.5, 0.0])  # noqa: E731
    [group] = search(TableModel(always), *sources(4, length=2), SearchOptions(beam_size=beam_size, min_length=30))
    assert len(group[0].tokens) == 30 and group[0].finished
    [group] = search(TableModel(always), *sources(4), SearchOptions(beam_size=beam_size, min_length=15, max_length=15))
    assert len(group[0].tokens) == 15 and not group[0].finished
    assert length_cap(torch.tensor([1, 30]), min_length=30).tolist() == [31, 70]
    assert length_cap(1, min_length=30) == 31


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_nothing_is_said_twice(beam_size, size):
    stubborn = lambda sentence, words: torch.tensor([0.0, 0.0, 0.0, -3.0, 5.0, 4.0, 3.0])  # noqa: E731
    options = SearchOptions(beam_size=beam_size, max_length=12, no_repeat_ngram=size)
    for group in search(TableModel(stubborn), *sources(4, 5), options):
        assert not repeats(group[0].tokens, size) and len(group[0].tokens) >= 3


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_source_word_looked_at_is_told_for_each_token(beam_size):
    logits, weights = random_logits(2), random_weights(2, LENGTH)
    options = SearchOptions(beam_size=beam_size, n_best=beam_size, max_length=6, replace_unknown=True)
    for sentence, group in zip((4, 5), search(TableModel(logits, weights), *sources(4, 5), options), strict=True):
        for found in group:
            expected = [
                int(weights(sentence, tuple(found.tokens[:i]))[: LENGTH - 1].argmax()) for i in range(len(found.tokens))
            ]
            assert found.looked_at == expected
    assert search(TableModel(logits, weights), *sources(4))[0][0].looked_at is None
