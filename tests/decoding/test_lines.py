"""Lines in, translations out: order, empty lines, batching."""

import pytest
import torch

from hotloop.decoding import SearchOptions, search
from hotloop.decoding.lines import Translation, translate_lines, translate_stream
from hotloop.models.seq2seq import Seq2Seq
from hotloop.vocabulary import EOS, SPECIALS


class Words:
    """A tokenizer of blank-separated words w4, w5, …; anything else is dropped."""

    size = 40

    def encode(self, lines):
        return [[int(word[1:]) for word in line.split() if word[1:].isdigit()] for line in lines]

    def decode(self, rows):
        return [" ".join(f"w{i}" for i in row if i >= len(SPECIALS)) for row in rows]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    model = Seq2Seq(source_vocabulary=40, target_vocabulary=40, embedding=8, hidden=8)
    with torch.no_grad():  # spread the logits, and let EOS come now and then
        model.projection.weight.mul_(20)
        model.projection.bias[EOS] += 2
    return model


LINES = ["w5 w6 w7", "", "w9", "  \t", "w5 w6 w7 w8 w9 w10 w11", "w20 w21", "w9", "?"]


def translate(model, lines, *, batch_size=64, device=None, **options):
    return translate_lines(
        model, Words(), Words(), lines, SearchOptions(**options), batch_size=batch_size, device=device
    )


def assert_same(found, expected):
    assert [[t.text for t in group] for group in found] == [[t.text for t in group] for group in expected]
    scores = [t.score for group in found for t in group]
    assert scores == pytest.approx([t.score for group in expected for t in group], abs=1e-5)


def test_translations_come_in_the_order_of_the_lines(model):
    together = translate(model, LINES, batch_size=3)
    assert_same(together, [translate(model, [line])[0] for line in LINES])
    assert_same(together[2:3], together[6:7])
    assert len({group[0].text for group in together}) > 3


def test_one_line_is_the_search_result_decoded(model):
    source = torch.tensor([[5, 6, 7, EOS]])
    [group] = search(
        model, source, torch.tensor([4]), SearchOptions(beam_size=4, n_best=3, length_penalty=0.5, max_length=6)
    )
    assert translate(model, ["w5 w6 w7"], beam_size=4, n_best=3, length_penalty=0.5, max_length=6) == [
        [Translation(Words().decode([hypothesis.tokens])[0], hypothesis.score) for hypothesis in group]
    ]


@pytest.mark.parametrize("line", ["", " ", "\t\n", "\u3000", "\xa0 ", "?"], ids=repr)
def test_a_line_without_tokens_never_meets_the_model(line):
    assert translate(None, [line, line], device="cpu") == [[Translation("", 0.0)], [Translation("", 0.0)]]


def test_no_lines_give_no_translations(model):
    assert translate(model, []) == []


def test_lines_of_like_length_share_a_batch(model, monkeypatch):
    shapes, start = [], model.start
    monkeypatch.setattr(model, "start", lambda source, length: shapes.append((*source.shape,)) or start(source, length))
    translate(model, ["w5", "w5 w6 w7 w8", "w6", "w5 w6 w7 w9"], batch_size=2)
    assert shapes == [(2, 2), (2, 5)]


def test_stream_reads_no_further_than_it_must_and_gives_the_same(model):
    taken = []

    def lines():
        for line in LINES:
            taken.append(line)
            yield line + "\n"

    stream = translate_stream(model, Words(), Words(), lines(), chunk=3, batch_size=2)
    assert taken == []
    first = next(stream)
    assert taken == LINES[:3]
    assert_same([first, *stream], translate(model, LINES))


@pytest.mark.parametrize("batch_size", [0, 1.5, True])
def test_the_size_of_a_batch_is_checked(model, batch_size):
    with pytest.raises(ValueError, match=f"batch_size = {batch_size}"):
        translate(model, ["w5"], batch_size=batch_size)
    with pytest.raises(ValueError, match=f"batch_size = {batch_size}"):
        list(translate_stream(model, Words(), Words(), ["w5"], batch_size=batch_size))
    with pytest.raises(ValueError, match=f"batch_size = {batch_size}"):
        translate(model, [], batch_size=batch_size)


def test_chunk_must_be_positive(model):
    with pytest.raises(ValueError, match="chunk = 0"):
        list(translate_stream(model, Words(), Words(), ["w5"], chunk=0))
