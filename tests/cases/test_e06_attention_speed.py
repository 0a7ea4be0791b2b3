"""E06: the fast, vectorised decoder is the same function as the word-by-word one (speed: benchmarks/)."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from hotloop.models.attention import SCORES
from hotloop.models.seq2seq import Seq2Seq


@pytest.mark.parametrize("attention", [None, *SCORES], ids=str)
def test_e06_vectorised_equals_word_by_word(attention):
    torch.manual_seed(0)
    model = Seq2Seq(
        source_vocabulary=200, target_vocabulary=200, embedding=32, hidden=64, attention=attention, init="xavier"
    )
    lengths = torch.tensor([25, 15, 20, 18])
    source, target_in = torch.randint(4, 200, (4, 25)), torch.randint(4, 200, (4, 21))
    labels = torch.randint(4, 200, (4 * 21,))
    logits, gradients = {}, {}
    for decoding in ("parallel", "stepwise"):
        model.decoding = decoding
        model.zero_grad()
        logits[decoding] = model.project(model(source, lengths, target_in, torch.full((4,), 21)))
        F.cross_entropy(logits[decoding].flatten(0, 1), labels).backward()
        gradients[decoding] = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    torch.testing.assert_close(logits["stepwise"], logits["parallel"], rtol=0, atol=1e-5)
    difference = (gradients["stepwise"] - gradients["parallel"]).norm() / gradients["parallel"].norm()
    assert difference <= 1e-4


@pytest.mark.parametrize("attention", [None, *SCORES], ids=str)
@pytest.mark.parametrize("steps", [20, 40])
def test_e06_training_calls_the_decoder_once_whatever_the_length(attention, steps):
    """One recurrent call and one attention call for all steps, not one for each word."""
    model = Seq2Seq(source_vocabulary=20, target_vocabulary=20, embedding=8, hidden=8, attention=attention)
    calls = []
    for module in model.modules():
        if isinstance(module, nn.LSTM | nn.Linear | nn.Embedding):
            module.register_forward_hook(lambda module, *_: calls.append(module))
    target_in = torch.full((2, steps), 4)
    model.project(model(torch.full((2, 5), 4), torch.tensor([5, 3]), target_in, torch.tensor([steps, steps])))
    assert len(calls) == len(set(calls))
