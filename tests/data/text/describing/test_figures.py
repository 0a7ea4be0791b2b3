"""The arithmetic of text statistics, against values worked out by hand."""

from collections import Counter

import numpy as np
import pytest

from hotloop.data.text.describing.figures import (
    both_sides,
    coverage,
    duplicates,
    heaps,
    leaks,
    length_figures,
    ratio_figures,
    thinned,
    unknown_by_size,
    vocabulary_figures,
)
from hotloop.data.text.describing.reading import PairFacts, facts_of, words_of
from hotloop.data.text.describing.words import WordCounts
from hotloop.data.text.preparing.filters import Filters


def lengths(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def facts(*pairs: tuple[str, str]) -> PairFacts:
    return facts_of(pairs, filters=Filters(max_length=3), unicode_form="nfc", lowercase=False)


def test_lengths() -> None:
    assert length_figures(lengths(*range(1, 101), 1000)) == {
        "mean": round((5050 + 1000) / 101, 2), "median": 51.0, "p95": 96.0, "p99": 100.0, "max": 1000,
    }  # fmt: skip
    assert length_figures(lengths(2, 4))["median"] == 3.0
    assert set(length_figures(lengths()).values()) == {0}


def test_ratios_leave_out_pairs_without_text_on_one_side() -> None:
    found = ratio_figures(lengths(2, 4, 0, 10), lengths(4, 4, 7, 0))
    assert found["overall"] == round(8 / 6, 3)
    assert found["median"] == 1.5
    assert (found["p5"], found["p95"]) == (1.05, 1.95)
    assert set(ratio_figures(lengths(0), lengths(3)).values()) == {0.0}
    assert both_sides(lengths(1), lengths(3))["ratio"]["overall"] == 3.0


def test_facts_are_of_normalised_text() -> None:
    found = facts((" e\u0301te\u0301  chaud ", "hot summer"), ("été chaud", "hot  summer"), ("", "x"), ("a b c d", "y"))
    assert found.source_words.tolist() == [2, 2, 0, 4]
    assert found.target_words.tolist() == [2, 2, 1, 1]
    assert found.passes.tolist() == [True, True, False, False]
    assert found.pair_hash[0] == found.pair_hash[1]
    assert len(set(found.pair_hash.tolist())) == 3
    assert found.whole.tolist() == [True, True, False, True]


def test_repeats() -> None:
    found = duplicates(facts(("a", "x"), ("a", "y"), ("b", "x"), ("a", "x"), ("", ""), ("", ""), ("c", "")))
    assert found == {"pairs": 1, "sources": 2, "targets": 2, "empty": 3}
    assert duplicates(facts()) == {"pairs": 0, "sources": 0, "targets": 0, "empty": 0}


def test_leaks() -> None:
    training = facts(("a", "x"), ("b", "y"), ("", "z"))
    held_out = facts(("a", "x"), ("a", "new"), ("new", "y"), ("b", "x"), ("", "z"), ("new", "z"), ("new", "new"))
    assert leaks(held_out, training) == {"source": 3, "target": 3, "pair": 1}


def test_heaps_law_is_found_again() -> None:
    law = heaps([(n, round(10 * n**0.5)) for n in range(1_000, 2_000_000, 5_000)])
    assert law is not None
    assert law["beta"] == pytest.approx(0.5, abs=1e-3)
    assert law["k"] == pytest.approx(10, rel=1e-2)
    assert heaps([(10, 5), (20, 8)]) is None


def test_thinning_keeps_both_ends() -> None:
    points = [(n, n) for n in range(1, 1_001)]
    kept = thinned(points, 20)
    assert len(kept) <= 20
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert kept == sorted(set(kept))
    assert thinned(points[:5]) == points[:5]


def test_coverage() -> None:
    frequencies = np.array([80, 10, 5, 4, 1])
    assert coverage(frequencies, 100) == {
        "0.90": {"words": 2, "share": 0.4},
        "0.95": {"words": 3, "share": 0.6},
        "0.99": {"words": 4, "share": 0.8},
    }
    assert coverage(frequencies, 110) == {"0.90": {"words": 4, "share": 0.8}}  # 10 more words were not told apart


def test_unknown_words_by_size_of_the_vocabulary() -> None:
    training = [("the", 9), ("cat", 5), ("dog", 2)]
    split = Counter({"the": 4, "dog": 2, "cow": 1, "cat": 1})
    # ids: 4 specials and so many words
    assert unknown_by_size(training, split, (5, 6, 7, 8)) == {"5": 0.5, "6": 0.375, "7": 0.125}
    assert unknown_by_size(training, Counter(), (5,)) == {"5": 0.0}


def test_words_are_those_of_the_word_tokeniser() -> None:
    pairs = [("l'eau est froide, froide.", "the water's cold"), ("L'eau", "")]
    source, target = words_of(pairs, unicode_form="nfc", lowercase=True, whole=False)
    assert {word.replace("\x1f", ""): count for word, count in source.items()} == {
        "l'": 2, "eau": 2, "est": 1, "froide": 2, ",": 1, ".": 1,
    }  # fmt: skip
    assert {word.replace("\x1f", "") for word in target} == {"the", "water", "'s", "cold"}
    whole, _ = words_of(pairs, unicode_form="nfc", lowercase=False, whole=True)
    assert whole == {"l'eau": 1, "est": 1, "froide,": 1, "froide.": 1, "L'eau": 1}


def test_words_are_counted_as_they_come() -> None:
    words = WordCounts()
    for part in ({"a": 3, "b": 1}, {"a": 1, "c": 1}, {"b": 2, ",": 5}):
        words.add(part)
    assert words.growth == [(4, 2), (6, 3), (13, 4)]
    assert words.by_frequency() == [(",", 5), ("a", 4), ("b", 3), ("c", 1)]
    found = vocabulary_figures(words)
    assert (found["running"], found["distinct"], found["once"], found["at_least"]) == (13, 4, 1, False)
    assert found["frequent"] == [["a", 4], ["b", 3], ["c", 1]]  # the comma is no word


def test_memory_for_words_has_a_limit() -> None:
    words = WordCounts(largest=3)
    for part in ({"a": 3, "b": 1}, {"c": 1, "d": 4, "a": 1}, {"e": 1, "d": 1, "b": 2}):
        words.add(part)
    assert words.counts == {"a": 4, "b": 3, "c": 1}
    assert (words.running, words.others, words.capped) == (14, 6, True)
    assert vocabulary_figures(words)["at_least"]
