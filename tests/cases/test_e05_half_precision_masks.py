"""E05: masks that fit half precision."""

import re
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import hotloop
from hotloop.models.attention import SCORES, LuongAttention
from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer

LENGTHS = torch.tensor([4, 1])
MASK = torch.arange(4) < LENGTHS[:, None]
HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


@HALVES
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("size", [1.0, 30.0], ids=["usual", "large"])
def test_e05_attention_in_half_precision(dtype, score, size):
    torch.manual_seed(0)
    module = LuongAttention(hidden=32, score=score).to(dtype)
    states = (torch.randn(2, 3, 32) * size).to(dtype).requires_grad_()
    values = (torch.randn(2, 4, 32) * size).to(dtype).requires_grad_()
    memory = module.remember(values, MASK)
    weights, context = module.weights(states, memory), module(states, memory)
    assert (weights[1, :, 1:] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3), rtol=0, atol=1e-3)
    torch.testing.assert_close(context[1], values[1, :1].expand(3, 32), rtol=1e-2, atol=1e-2)
    context.float().sum().backward()
    for tensor in (context, weights, states.grad, values.grad, *(p.grad for p in module.parameters())):
        assert torch.isfinite(tensor).all()


@HALVES
@pytest.mark.parametrize("attention", [None, *SCORES, "transformer"], ids=str)
def test_e05_model_trains_in_half_precision(dtype, attention):
    torch.manual_seed(0)
    sizes = {"source_vocabulary": 20, "target_vocabulary": 20, "hidden": 32}
    if attention == "transformer":
        model = Transformer(shared_vocabulary=False, attention_dropout=0.1, **sizes).to(dtype)
    else:
        model = Seq2Seq(embedding=16, attention=attention, **sizes).to(dtype)
    source, target_in = torch.randint(4, 20, (2, 4)), torch.randint(4, 20, (2, 5))
    logits = model.project(model(source, LENGTHS, target_in, torch.tensor([5, 5])))
    loss = F.cross_entropy(logits.flatten(0, 1).float(), torch.randint(4, 20, (10,)))
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_e05_no_mask_constant_is_written_out():
    """A literal like −1e9 overflows in float16; the boolean mask or the dtype's own minimum does not."""
    folder = Path(hotloop.__file__).parent
    files = [path for name in ("models", "decoding") for path in (folder / name).rglob("*.py")]
    assert len(files) >= 6
    for path in files:
        assert not re.search(r"-\s*1e\d|-\s*1\.0e\d|-\s*10\s*\*\*", path.read_text()), path
