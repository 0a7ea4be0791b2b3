"""E08: decoding stops, at a cap that depends on the sentence alone."""

import pytest
import torch

from hotloop.decoding import SearchOptions, search
from hotloop.decoding.lines import translate_lines
from hotloop.models.seq2seq import Seq2Seq
from hotloop.vocabulary import EOS

BEAMS = pytest.mark.parametrize("beam_size", [1, 4])


class Words:
    def encode(self, lines):
        return [[int(word) for word in line.split()] for line in lines]

    def decode(self, rows):
        return [" ".join(map(str, row)) for row in rows]


def model_that_never_ends(attention="general"):
    torch.manual_seed(0)
    model = Seq2Seq(source_vocabulary=20, target_vocabulary=20, embedding=8, hidden=8, attention=attention)
    with torch.no_grad():
        model.projection.bias[EOS] = -1e4
    return model


def count_steps(model, monkeypatch):
    calls, step = [], model.step
    monkeypatch.setattr(model, "step", lambda token, state: calls.append(len(token)) or step(token, state))
    return calls


@BEAMS
@pytest.mark.parametrize("attention", [None, "general"])
def test_e08_without_eos_exactly_max_length_tokens(beam_size, attention, monkeypatch):
    model = model_that_never_ends(attention)
    calls = count_steps(model, monkeypatch)
    source = torch.randint(4, 20, (64, 9))
    found = search(model, source, torch.randint(1, 10, (64,)), SearchOptions(beam_size=beam_size, max_length=20))
    assert [len(group[0].tokens) for group in found] == [20] * 64
    assert all(EOS not in group[0].tokens and not group[0].finished for group in found)
    assert all(torch.isfinite(torch.tensor(group[0].score)) for group in found)
    assert len(calls) == 20


@BEAMS
def test_e08_unset_cap_is_twice_the_source_plus_ten(beam_size):
    """Seven tokens, EOS not counted, whatever the neighbours; the same rule for lines and for batches of ids."""
    model = model_that_never_ends()
    source, length = torch.randint(4, 20, (2, 12)), torch.tensor([8, 12])
    found = search(model, source, length, SearchOptions(beam_size=beam_size))
    assert [len(group[0].tokens) for group in found] == [24, 32]
    lines = translate_lines(model, Words(), Words(), ["4 5 6 7 8 9 10"], SearchOptions(beam_size=beam_size))
    assert len(lines[0][0].text.split()) == 24


@BEAMS
def test_e08_five_steps_when_every_row_ends_at_step_five(beam_size, monkeypatch):
    model = model_that_never_ends()
    step, calls = model.step, []

    def end_at_five(token, state):
        calls.append(len(token))
        logits, state = step(token, state)
        if len(calls) == 5:
            logits[:, EOS] = 1e4
        return logits, state

    monkeypatch.setattr(model, "step", end_at_five)
    source = torch.randint(4, 20, (6, 9))
    found = search(model, source, torch.tensor([9, 2, 5, 9, 1, 3]), SearchOptions(beam_size=beam_size))
    assert len(calls) == 5
    assert all(len(group[0].tokens) == 4 and group[0].finished for group in found)
