"""Luong's scores against their formulas, in loops."""

import pytest
import torch

from hotloop.models import attention as attention_module
from hotloop.models.attention import SCORES, LuongAttention

BATCH, STEPS, SOURCE, HIDDEN = 3, 4, 5, 8
LENGTHS = torch.tensor([5, 1, 3])
MASK = torch.arange(SOURCE) < LENGTHS[:, None]


@pytest.fixture(params=SCORES)
def module(request):
    torch.manual_seed(0)
    return LuongAttention(hidden=HIDDEN, score=request.param)


def inputs(dtype=torch.float32, scale=1.0):
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(BATCH, STEPS, HIDDEN, generator=generator) * scale
    values = torch.randn(BATCH, SOURCE, HIDDEN, generator=generator) * scale
    return states.to(dtype), values.to(dtype)


def score_by_formula(module, state, value):
    if module.score == "dot":
        return state @ value
    if module.score == "scaled_dot":
        return state @ value / HIDDEN**0.5
    if module.score == "general":
        return state @ module.key.weight @ value / len(state) ** 0.5
    joined = torch.cat((module.query.weight, module.key.weight), dim=1)  # the paper's W, acting on [h_t; h_s]
    return module.energy.weight[0] @ torch.tanh(joined @ torch.cat((state, value)))


@pytest.mark.parametrize("masked", [True, False])
def test_contexts_and_weights_follow_the_formula(module, masked):
    states, values = inputs()
    lengths = LENGTHS.tolist() if masked else [SOURCE] * BATCH
    with torch.no_grad():
        memory = module.remember(values, MASK if masked else None)
        contexts, weights = module(states, memory), module.weights(states, memory)
        for row in range(BATCH):
            for step in range(STEPS):
                real = values[row, : lengths[row]]
                scores = torch.stack([score_by_formula(module, states[row, step], value) for value in real])
                expected = scores.softmax(0)
                torch.testing.assert_close(weights[row, step, : lengths[row]], expected, rtol=0, atol=1e-6)
                torch.testing.assert_close(contexts[row, step], expected @ real, rtol=0, atol=1e-6)
    assert (weights[:, :, :] * ~MASK[:, None] == 0).all() or not masked


def test_memory_select_keeps_repeats_and_reorders(module):
    states, values = inputs()
    rows = torch.tensor([2, 0, 0])
    with torch.no_grad():
        memory = module.remember(values, MASK)
        torch.testing.assert_close(module(states[rows], memory.select(rows)), module(states, memory)[rows])
    assert (memory.select(rows).keys is memory.select(rows).values) is False or module.score in ("dot", "scaled_dot")


@pytest.mark.parametrize("gradient", [True, False])
def test_concat_in_pieces_equals_concat_at_once(monkeypatch, gradient):
    torch.manual_seed(0)
    module = LuongAttention(hidden=HIDDEN, score="concat")
    states, values = inputs()
    states.requires_grad_(gradient)
    results = []
    for limit in (10**9, 2 * BATCH * SOURCE * HIDDEN, 1):
        monkeypatch.setattr(attention_module, "CONCAT_ELEMENTS", limit)
        module.zero_grad()
        states.grad = None
        with torch.set_grad_enabled(gradient):
            context = module(states, module.remember(values, MASK))
            if gradient:
                context.square().sum().backward()
        results.append([context.detach()] + ([states.grad, module.query.weight.grad.clone()] if gradient else []))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


def test_concat_pieces_are_as_long_as_the_limit_allows(monkeypatch):
    module = LuongAttention(hidden=HIDDEN, score="concat")
    seen = []
    piece = module._concat_piece
    monkeypatch.setattr(
        module, "_concat_piece", lambda queries, keys: seen.append(queries.shape[1]) or piece(queries, keys)
    )
    monkeypatch.setattr(attention_module, "CONCAT_ELEMENTS", 3 * BATCH * SOURCE * HIDDEN)
    states, values = inputs()
    with torch.no_grad():
        module(states, module.remember(values, MASK))
    assert seen == [3, 1]


def test_dot_and_scaled_dot_have_no_parameters():
    assert [sum(p.numel() for p in LuongAttention(hidden=8, score=s).parameters()) for s in SCORES[:4]] == [
        0,
        0,
        64,
        136,
    ]


def test_mlp_is_another_name_of_concat():
    torch.manual_seed(0)
    concat, mlp = (LuongAttention(hidden=HIDDEN, score=score) for score in ("concat", "mlp"))
    mlp.load_state_dict(concat.state_dict(), strict=True)
    states, values = inputs()
    found, expected = (module(states, module.remember(values, MASK)) for module in (mlp, concat))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_unknown_score_is_refused_with_the_valid_ones():
    with pytest.raises(ValueError, match=r"'bahdanau'.*dot, scaled_dot, general, concat, mlp"):
        LuongAttention(hidden=8, score="bahdanau")
