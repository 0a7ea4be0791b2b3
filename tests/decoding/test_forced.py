import math

import pytest
import torch

from hotloop.decoding import SearchOptions, search
from hotloop.decoding.forced import PairScore, score_pairs, score_stream
from hotloop.models.seq2seq import Seq2Seq
from hotloop.vocabulary import BOS, EOS


class Words:
    def encode(self, lines):
        return [[int(word) for word in line.split()] for line in lines]


PAIRS = [("5 6 7", "8 9"), ("9", ""), ("", "4 5"), ("", ""), ("5 6 7 8 9 10 11", "4 4 4 4 4"), ("9", "1"), ("5", "6")]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return Seq2Seq(source_vocabulary=40, target_vocabulary=40, embedding=8, hidden=8, decoder_dropout=0.5)


def one_by_one(model, source, target):
    """Token after token, as a search does."""
    model.eval()
    words, total, state = (
        [*target, EOS],
        0.0,
        model.start(torch.tensor([[*source, EOS]]), torch.tensor([len(source) + 1])),
    )
    with torch.no_grad():
        for before, word in zip([BOS, *words[:-1]], words, strict=True):
            logits, state = model.step(torch.tensor([before]), state)
            total += logits[0].log_softmax(-1)[word].item()
    return total


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_scores_are_the_sums_over_single_steps_in_the_order_of_the_pairs(model, batch_size):
    model.train()
    found = score_pairs(model, Words(), Words(), PAIRS, batch_size=batch_size)
    assert model.training
    rows = [(Words().encode([source])[0], Words().encode([target])[0]) for source, target in PAIRS]
    for score, (source, target) in zip(found, rows, strict=True):
        assert score.log_probability == pytest.approx(one_by_one(model, source, target), abs=1e-4)
        assert score.tokens == len(target) + 1
        assert score.perplexity == pytest.approx(math.exp(-score.log_probability / score.tokens))


def test_what_a_search_finds_has_the_score_it_tells(model):
    source = torch.tensor([[5, 6, 7, EOS]])
    [group] = search(model, source, torch.tensor([4]), SearchOptions(beam_size=3, n_best=3, max_length=6))
    for hypothesis in group:
        if hypothesis.finished:
            target = " ".join(map(str, hypothesis.tokens))
            [score] = score_pairs(model, Words(), Words(), [("5 6 7", target)])
            assert score.log_probability == pytest.approx(hypothesis.log_probability, abs=1e-4)


def test_a_stream_gives_the_same_and_no_pairs_nothing(model):
    stream = list(score_stream(model, Words(), Words(), iter(PAIRS), chunk=3))
    expected = score_pairs(model, Words(), Words(), PAIRS)
    assert [score.tokens for score in stream] == [score.tokens for score in expected]
    assert [s.log_probability for s in stream] == pytest.approx([s.log_probability for s in expected], abs=1e-4)
    assert score_pairs(model, Words(), Words(), []) == []


def test_a_hopeless_pair_has_infinite_perplexity():
    assert PairScore(-2000.0, 1).perplexity == math.inf


def test_the_size_of_a_batch_is_checked(model):
    with pytest.raises(ValueError, match="batch_size = 0"):
        score_pairs(model, Words(), Words(), PAIRS, batch_size=0)
