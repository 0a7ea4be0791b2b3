"""What every text model must do; a new one needs an entry in TRANSLATORS and nothing else here."""

import pytest
import torch
from torch.nn import functional as F

from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer
from hotloop.vocabulary import BOS, EOS, PAD

SOURCE_VOCABULARY, TARGET_VOCABULARY = 23, 19
SIZES = {"source_vocabulary": SOURCE_VOCABULARY, "target_vocabulary": TARGET_VOCABULARY}
TINY = {"embedding": 12, "hidden": 16, **SIZES}
SMALL = {"hidden": 16, "heads": 2, "feed_forward": 24, "shared_vocabulary": False, **SIZES}

TRANSLATORS = {
    "plain": lambda: Seq2Seq(attention=None, **TINY),
    "plain, concat bridge": lambda: Seq2Seq(attention=None, bridge="concat", **TINY),
    "plain, one direction, deep decoder": lambda: Seq2Seq(
        attention=None, bidirectional=False, decoder_layers=3, encoder_layers=1, **TINY
    ),
    "dot": lambda: Seq2Seq(attention="dot", **TINY),
    "scaled_dot": lambda: Seq2Seq(attention="scaled_dot", encoder_layers=4, decoder_layers=4, **TINY),
    "general": lambda: Seq2Seq(attention="general", **TINY),
    "general, one direction": lambda: Seq2Seq(attention="general", bidirectional=False, bridge="concat", **TINY),
    "concat": lambda: Seq2Seq(attention="concat", init="xavier", **TINY),
    "general, narrow encoder": lambda: Seq2Seq(attention="general", bridge="concat", encoder_hidden=8, **TINY),
    "general, wide encoder": lambda: Seq2Seq(
        attention="general", bridge="zero", encoder_hidden=24, bidirectional=False, cell="gru", **TINY
    ),
    "general, zero bridge": lambda: Seq2Seq(attention="general", bridge="zero", encoder_layers=1, **TINY),
    "general, tied": lambda: Seq2Seq(attention="general", target_embedding=16, tie_embeddings=True, **TINY),
    "mlp": lambda: Seq2Seq(attention="mlp", cell="gru", bridge="concat", **TINY),
    "gru": lambda: Seq2Seq(attention=None, cell="gru", decoder_layers=3, **TINY),
    "gru, zero bridge": lambda: Seq2Seq(attention="general", cell="gru", bridge="zero", init="xavier", **TINY),
    "feeding": lambda: Seq2Seq(attention="general", input_feeding=True, **TINY),
    "feeding, concat": lambda: Seq2Seq(attention="concat", input_feeding=True, decoder_layers=1, **TINY),
    "feeding, gru, dot": lambda: Seq2Seq(attention="dot", input_feeding=True, cell="gru", decoder_layers=3, **TINY),
    "feeding, stepwise": lambda: Seq2Seq(attention="scaled_dot", input_feeding=True, decoding="stepwise", **TINY),
    "transformer": lambda: Transformer(**SMALL),
    "transformer, post-norm": lambda: Transformer(norm="post", activation="gelu", tie=["target", "output"], **SMALL),
    "transformer, learned": lambda: Transformer(positions="learned", max_positions=4, **SMALL),
    "transformer, rotary": lambda: Transformer(positions="rotary", activation="swiglu", decoder_layers=1, **SMALL),
    "transformer, checkpointed": lambda: Transformer(activation_checkpointing=True, encoder_layers=1, **SMALL),
    "stepwise": lambda: Seq2Seq(attention="general", decoding="stepwise", **TINY),
}


@pytest.fixture(params=TRANSLATORS)
def model(request):
    torch.manual_seed(1)
    return TRANSLATORS[request.param]().eval()


def sentences(*, source_lengths, target_lengths, seed=0):
    """Random rows with EOS behind the source, BOS before the target input, PAD behind both."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.full((len(source_lengths), max(source_lengths)), PAD)
    target_in = torch.full((len(target_lengths), max(target_lengths)), PAD)
    for row, (s, t) in enumerate(zip(source_lengths, target_lengths, strict=True)):
        source[row, :s] = torch.randint(4, SOURCE_VOCABULARY, (s,), generator=generator)
        source[row, s - 1] = EOS
        target_in[row, :t] = torch.randint(4, TARGET_VOCABULARY, (t,), generator=generator)
        target_in[row, 0] = BOS
    return source, torch.tensor(source_lengths), target_in, torch.tensor(target_lengths)


UNEQUAL = {"source_lengths": [7, 1, 4], "target_lengths": [3, 6, 1]}
EQUAL = {"source_lengths": [5, 5, 5], "target_lengths": [4, 4, 4]}
LENGTHS = pytest.mark.parametrize("lengths", [UNEQUAL, EQUAL], ids=["unequal", "equal"])


@LENGTHS
def test_forward_and_project_give_the_promised_shapes(model, lengths):
    batch = sentences(**lengths)
    hidden = model(*batch)
    assert hidden.shape == (3, max(lengths["target_lengths"]), 16)
    assert model.project(hidden).shape == (*hidden.shape[:2], TARGET_VOCABULARY)
    real = hidden[torch.ones(hidden.shape[:2], dtype=torch.bool)]
    assert model.project(real).shape == (real.shape[0], TARGET_VOCABULARY)
    assert (model.source_vocabulary, model.target_vocabulary) == (SOURCE_VOCABULARY, TARGET_VOCABULARY)


@LENGTHS
def test_every_parameter_gets_a_finite_gradient(model, lengths):
    model.train()
    batch = sentences(**lengths)
    logits = model.project(model(*batch))
    F.cross_entropy(logits.flatten(0, 1), torch.randint(4, TARGET_VOCABULARY, (logits[..., 0].numel(),))).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


@LENGTHS
def test_step_by_step_gives_the_teacher_forced_logits(model, lengths):
    source, source_length, target_in, target_length = sentences(**lengths)
    with torch.no_grad():
        expected = model.project(model(source, source_length, target_in, target_length))
        state = model.start(source, source_length)
        for step in range(target_in.shape[1]):
            logits, state = model.step(target_in[:, step], state)
            assert logits.shape == (len(source), TARGET_VOCABULARY)
            real = target_length > step
            torch.testing.assert_close(logits[real], expected[real, step], rtol=0, atol=1e-5)


def test_later_words_do_not_change_earlier_steps(model):
    source, source_length, target_in, target_length = sentences(**EQUAL)
    changed = target_in.clone()
    changed[:, 2:] = 4 + (changed[:, 2:] - 3) % 10
    with torch.no_grad():
        before = model(source, source_length, target_in, target_length)
        after = model(source, source_length, changed, target_length)
    torch.testing.assert_close(before[:, :2], after[:, :2], rtol=0, atol=0)
    assert not torch.equal(before[:, 2:], after[:, 2:])


def test_the_source_matters_to_every_step(model):
    source, source_length, target_in, target_length = sentences(**EQUAL)
    other = source.clone()
    other[:, 1] = 4 + (other[:, 1] - 3) % 10
    with torch.no_grad():
        difference = model(source, source_length, target_in, target_length) - model(
            other, source_length, target_in, target_length
        )
    assert (difference.abs().amax(-1) > 0).all()


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0], [1, 1, 0, 2, 2], [1]], ids=str)
def test_select_keeps_repeats_and_reorders_rows(model, rows):
    source, source_length, target_in, _ = sentences(**UNEQUAL)
    chosen = torch.tensor(rows)
    with torch.no_grad():
        _, state = model.step(target_in[:, 0], model.start(source, source_length))
        expected, after = model.step(target_in[:, 1], state)
        logits, after_chosen = model.step(target_in[chosen, 1], state.select(chosen))
        torch.testing.assert_close(logits, expected[chosen], rtol=0, atol=1e-6)
        expected, _ = model.step(target_in[:, 2], after)  # the first state is still good after select
        logits, _ = model.step(target_in[chosen, 2], after_chosen)
        torch.testing.assert_close(logits, expected[chosen], rtol=0, atol=1e-6)


@LENGTHS
def test_attention_weights_are_a_distribution_over_real_positions(model, lengths):
    source, source_length, target_in, _ = sentences(**lengths)
    if not model.attends:
        with pytest.raises(ValueError, match="attention"):
            model.attention_weights(source, source_length, target_in)
        return
    with torch.no_grad():
        weights = model.attention_weights(source, source_length, target_in)
    assert (weights.shape[0], *weights.shape[3:]) == (3, target_in.shape[1], source.shape[1])
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), rtol=0, atol=1e-6)
    real = (torch.arange(source.shape[1]) < source_length[:, None])[:, None, None, None].expand_as(weights)
    assert (weights[~real] == 0).all()
    assert (weights[real] > 0).all()


@LENGTHS
def test_step_by_step_attention_is_that_of_the_teacher_forced_pass(model, lengths):
    source, source_length, target_in, target_length = sentences(**lengths)
    if not model.attends:
        with pytest.raises(ValueError, match="attention"):
            model.start(source, source_length, keep_attention=True)
        return
    with torch.no_grad():
        weights = model.attention_weights(source, source_length, target_in)
        state = model.start(source, source_length, keep_attention=True)
        for step in range(target_in.shape[1]):
            _, state = model.step(target_in[:, step], state)
            real = target_length > step
            expected = weights[:, model.alignment_layer].mean(1)[real, step]
            torch.testing.assert_close(state.attention[real], expected, rtol=0, atol=1e-5)


def test_attention_is_told_under_autocast(model):
    if not model.attends:
        return
    source, source_length, target_in, _ = sentences(**UNEQUAL)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        weights = model.attention_weights(source, source_length, target_in)
        _, state = model.step(target_in[:, 0], model.start(source, source_length, keep_attention=True))
    for found in (weights, state.attention):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.sum(-1), torch.ones(found.shape[:-1]), rtol=0, atol=1e-5)


def test_hypotheses_of_one_sentence_share_its_source(model):
    source, source_length, target_in, _ = sentences(**UNEQUAL)
    with torch.no_grad():
        _, state = model.step(target_in[:, 0], model.start(source, source_length))
        rows = torch.tensor([0, 0, 1, 1, 2, 2])
        shared, apart = state.select(rows, width=2), state.select(rows)
        for tokens, rows in (([4, 5, 6, 7, 8, 9], [1, 0, 4, 5]), ([4, 9, 6, 7], [2, 3])):  # a sentence leaves
            expected, apart = model.step(torch.tensor(tokens), apart)
            logits, shared = model.step(torch.tensor(tokens), shared)
            torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
            shared, apart = shared.select(torch.tensor(rows), width=2), apart.select(torch.tensor(rows))
        torch.testing.assert_close(
            model.step(torch.tensor([4, 5]), shared)[0], model.step(torch.tensor([4, 5]), apart)[0], rtol=0, atol=1e-5
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_other_precisions_agree_with_float32(model, dtype):
    batch = sentences(**UNEQUAL)
    with torch.no_grad():
        expected = model.project(model(*batch))
        model.to(dtype)
        logits = model.project(model(*batch))
        _, state = model.step(batch[2][:, 0], model.start(*batch[:2]))
        stepped, _ = model.step(batch[2][:, 1], state)
    assert logits.dtype == stepped.dtype == dtype
    tolerance = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float64: 1e-5}[dtype]
    real = torch.arange(6) < batch[3][:, None]
    torch.testing.assert_close(logits[real].float(), expected[real], rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(stepped[:2].float(), expected[:2, 1], rtol=tolerance, atol=tolerance)


def test_bfloat16_autocast_trains_and_decodes(model):
    model.train()
    batch = sentences(**UNEQUAL)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model.project(model(*batch))
        F.cross_entropy(logits.flatten(0, 1).float(), torch.full((18,), 5)).backward()
        _, state = model.step(batch[2][:, 0], model.start(*batch[:2]))
        stepped, _ = model.step(batch[2][:, 1], state)
    assert torch.isfinite(stepped.float()).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_a_copy_with_the_same_state_dict_is_the_same_model(model):
    torch.manual_seed(2)
    other = TRANSLATORS[next(name for name, make in TRANSLATORS.items() if _same_shapes(make(), model))]()
    other.load_state_dict(model.state_dict())
    batch = sentences(**UNEQUAL)
    with torch.no_grad():
        torch.testing.assert_close(other.eval()(*batch), model(*batch), rtol=0, atol=1e-6)


def _same_shapes(one, two):
    shapes = [{name: tensor.shape for name, tensor in model.state_dict().items()} for model in (one, two)]
    options = [
        (model.attends, getattr(getattr(model, "attention", None), "score", None), getattr(model, "bridge", None))
        for model in (one, two)
    ]
    return shapes[0] == shapes[1] and options[0] == options[1]
