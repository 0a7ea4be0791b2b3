"""E09, E10: references nested the right way, corpus scores, detokenised text."""

import pytest

from hotloop.data.text.normalisation import detokenize
from hotloop.metrics.translation import score_translations

HYPOTHESES = [
    "the cat sat on the mat today",
    "a completely different sentence here now",
    "he was not at home yesterday",
]
REFERENCES = ["the cat sat on the mat today", "the house is very big and red", "he was not at home last night"]


def test_e09_score_is_that_of_the_corpus_in_any_order():
    assert score_translations(HYPOTHESES, REFERENCES).bleu == pytest.approx(55.61, abs=0.01)
    assert score_translations(HYPOTHESES[::-1], REFERENCES[::-1]).bleu == pytest.approx(55.61, abs=0.01)


def test_e09_unequal_counts_are_refused():
    with pytest.raises(ValueError, match="3 hypotheses but 2 references"):
        score_translations(HYPOTHESES, REFERENCES[:2])


@pytest.mark.parametrize("references", [[[r] for r in REFERENCES], "one line", []])
def test_e09_anything_but_flat_lists_is_refused(references):
    with pytest.raises(ValueError):
        score_translations(HYPOTHESES, references)


def test_e09_signature_says_how_the_score_was_made():
    signature = score_translations(HYPOTHESES, REFERENCES).bleu_signature
    assert all(part in signature for part in ("tok:13a", "smooth:exp", "version:"))


def test_e10_a_corpus_without_any_4_gram_scores_zero_and_says_why(caplog):
    with caplog.at_level("INFO"):
        assert score_translations(["thank you"], ["thank you"]).bleu == 0.0
    assert "no 4-gram in the corpus" in caplog.text


def test_e10_tokenised_text_is_detokenised_before_scoring():
    hypothesis = detokenize(["Hello , world !  It 's fine ."], "en")
    assert score_translations(hypothesis, ["Hello, world! It's fine."]).bleu == pytest.approx(100.0)


def test_e10_tokenised_text_scored_as_it_is_would_be_worth_less():
    score = score_translations(["Hello , world !  It 's fine ."], ["Hello, world! It's fine."]).bleu
    assert score == pytest.approx(41.1, abs=0.1)
