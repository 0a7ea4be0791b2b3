"""The LSTM model: its size, its options, and that its fast paths equal the slow, obvious ones."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from hotloop.models.attention import SCORES
from hotloop.models.seq2seq import Seq2Seq
from hotloop.vocabulary import PAD

TINY = {"source_vocabulary": 23, "target_vocabulary": 19, "embedding": 12, "hidden": 16}
PUBLISHED = {
    "source_vocabulary": 10_411,
    "target_vocabulary": 10_017,
    "embedding": 300,
    "hidden": 512,
    "encoder_layers": 4,
    "decoder_layers": 4,
    "bidirectional": True,
    "bridge": "layers",
}


def parameter_count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def batch(source_lengths, steps=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    source = torch.full((len(source_lengths), max(source_lengths)), PAD)
    for row, length in enumerate(source_lengths):
        source[row, :length] = torch.randint(4, 23, (length,), generator=generator)
    target_in = torch.randint(4, 19, (len(source_lengths), steps), generator=generator)
    return source, torch.tensor(source_lengths), target_in, torch.full((len(source_lengths),), steps)


def gradients(model, inputs):
    model.zero_grad()
    logits = model.project(model(*inputs))
    labels = torch.arange(logits[..., 0].numel()) % 19
    F.cross_entropy(logits.flatten(0, 1), labels).backward()
    return logits.detach(), {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def assert_same_gradients(one, two):
    for name in one:
        scale = max(one[name].abs().max().item(), 1e-8)
        torch.testing.assert_close(one[name], two[name], rtol=0, atol=1e-4 * scale, msg=name)


@pytest.mark.parametrize(("attention", "count"), [(None, 41_471_097), ("scaled_dot", 42_520_697)])
def test_published_configuration_has_the_published_number_of_parameters(attention, count):
    with torch.device("meta"):
        assert parameter_count(Seq2Seq(attention=attention, **PUBLISHED)) == count


def test_published_attention_is_softmax_of_scaled_dot_products_then_tanh():
    """Written out as the published model computes it, from the same weights."""
    torch.manual_seed(0)
    model = Seq2Seq(attention="scaled_dot", encoder_layers=4, decoder_layers=4, **TINY).eval()
    source, source_length, target_in, target_length = batch([7, 4, 5])
    with torch.no_grad():
        packed = nn.utils.rnn.pack_padded_sequence(
            model.source_embedding(source), source_length, batch_first=True, enforce_sorted=False
        )
        outputs, (h, c) = model.encoder(packed)
        outputs = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)[0]
        assert h.shape == (8, 3, 16)
        first = [
            torch.einsum("ebh,de->dbh", last, bridge.weight) + bridge.bias[:, None, None]
            for last, bridge in ((h, model.bridge_hidden), (c, model.bridge_cell))
        ]
        keys = model.memory(outputs)
        states, _ = model.decoder(model.target_embedding(target_in), tuple(map(torch.Tensor.contiguous, first)))
        rows = []
        for row, length in enumerate(source_length.tolist()):
            for step in range(6):
                scores = keys[row, :length] @ states[row, step] / 16**0.5
                context = scores.softmax(0) @ keys[row, :length]
                rows.append(torch.tanh(model.combine(torch.cat((context, states[row, step])))))
        expected = torch.stack(rows).view(3, 6, 16)
        torch.testing.assert_close(model(source, source_length, target_in, target_length), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize(
    ("attention", "input_feeding"),
    [(None, False), *((score, feeding) for score in SCORES for feeding in (False, True))],
)
@pytest.mark.parametrize("source_lengths", [[7, 7, 7], [7, 2, 5]], ids=["equal", "unequal"])
def test_stepwise_decoding_equals_parallel_in_logits_and_gradients(cell, attention, source_lengths, input_feeding):
    torch.manual_seed(0)
    # Some gradients are as small as float32's rounding.
    model = Seq2Seq(cell=cell, attention=attention, input_feeding=input_feeding, **TINY).double()
    inputs = batch(source_lengths)
    parallel, parallel_gradients = gradients(model, inputs)
    model.decoding = "stepwise"
    stepwise, stepwise_gradients = gradients(model, inputs)
    torch.testing.assert_close(stepwise, parallel, rtol=0, atol=1e-5)
    assert_same_gradients(parallel_gradients, stepwise_gradients)


def test_input_feeding_is_written_out_as_in_the_paper():
    """h_t = LSTM([y_t; a_{t-1}], h_{t-1}) and a_t = tanh(W [c_t; h_t]), a_0 = 0."""
    torch.manual_seed(0)
    model = Seq2Seq(attention="dot", input_feeding=True, decoder_layers=1, **TINY).eval()
    source, source_length, target_in, target_length = batch([7, 4])
    with torch.no_grad():
        state = model.start(source, source_length)
        h, c, fed = state.hidden[0], state.cell[0], torch.zeros(2, 16)
        expected = []
        for step in range(6):
            gates = (
                torch.cat((model.target_embedding(target_in[:, step]), fed), dim=1) @ model.decoder.weight_ih_l0.T
                + model.decoder.bias_ih_l0 + h @ model.decoder.weight_hh_l0.T + model.decoder.bias_hh_l0
            )  # fmt: skip
            i, f, g, o = gates.chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            context = model.attention(h[:, None], state.memory)[:, 0]
            fed = torch.tanh(model.combine(torch.cat((context, h), dim=1)))
            expected.append(fed)
        found = model(source, source_length, target_in, target_length)
    torch.testing.assert_close(found, torch.stack(expected, dim=1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_input_feeding_under_autocast_has_the_gradients_of_the_plain_loop(cell):
    torch.manual_seed(0)
    model = Seq2Seq(cell=cell, attention="general", input_feeding=True, **TINY)
    found = []
    for decoding in ("parallel", "stepwise"):
        model.decoding = decoding
        with torch.autocast("cpu", torch.bfloat16):
            found.append(gradients(model, batch([7, 2, 5]))[1])
    for name, value in found[0].items():
        assert value.dtype == torch.float32
        difference = (value - found[1][name]).norm() / found[1][name].norm()
        assert difference < 0.25, (name, difference)  # a lost gradient gives 1


def test_input_feeding_keeps_no_gradient_of_a_matrix_for_each_step():
    """What makes the loop fast: the matrices' gradients are one product, however many steps there are."""
    model = Seq2Seq(attention="general", input_feeding=True, **TINY)
    products = {}
    for steps in (5, 20):
        hidden = model(*batch([7, 4], steps=steps))
        with torch.profiler.profile() as profile:
            hidden.sum().backward()
        products[steps] = {
            event.key: event.count for event in profile.key_averages() if event.key in ("aten::mm", "aten::bmm")
        }
    # One more product a matrix and step is what goes on to the step before: 3 by layers and combine, 2 by attention.
    grown = {name: products[20][name] - products[5][name] for name in products[5]}
    assert grown == {"aten::mm": 15 * 3, "aten::bmm": 15 * 2}


@pytest.mark.parametrize("attention", [None, "general"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_full_batch_equals_the_same_rows_among_shorter_ones(attention, bidirectional):
    """Equal lengths take a path without packing; a shorter neighbour or a padded width takes the other."""
    torch.manual_seed(0)
    model = Seq2Seq(attention=attention, bidirectional=bidirectional, encoder_layers=3, **TINY).eval()
    source, length, target_in, target_length = batch([6, 6])
    wide = F.pad(source, (0, 3), value=PAD)
    with torch.no_grad():
        full = model(source, length, target_in, target_length)
        padded = model(wide, length, target_in, target_length)
        rows = [0, 1, 0]
        mixed = model(source[rows], torch.tensor([6, 6, 2]), target_in[rows], target_length[rows])[:2]
    torch.testing.assert_close(padded, full, rtol=0, atol=1e-6)
    torch.testing.assert_close(mixed, full, rtol=0, atol=1e-6)


def test_gradients_of_the_full_and_the_padded_batch_agree():
    torch.manual_seed(0)
    model = Seq2Seq(attention="general", encoder_layers=3, decoder_layers=2, **TINY)
    source, length, target_in, target_length = batch([6, 6])
    full, full_gradients = gradients(model, (source, length, target_in, target_length))
    padded, padded_gradients = gradients(model, (F.pad(source, (0, 3)), length, target_in, target_length))
    torch.testing.assert_close(padded, full, rtol=0, atol=1e-6)
    assert_same_gradients(full_gradients, padded_gradients)


def test_layers_bridge_is_one_linear_map_over_the_layer_axis():
    model = Seq2Seq(attention=None, encoder_layers=3, decoder_layers=2, **TINY)
    assert model.bridge_hidden.weight.shape == model.bridge_cell.weight.shape == (2, 6)


def test_concat_bridge_joins_the_directions_of_each_layer():
    torch.manual_seed(0)
    model = Seq2Seq(attention=None, bridge="concat", **TINY).eval()
    source, length, *_ = batch([5, 5])
    with torch.no_grad():
        _, (h, _) = model.encoder(model.source_embedding(source))  # (layer 0 →, 0 ←, 1 →, 1 ←)
        state = model.start(source, length)
        for layer in range(2):
            joined = torch.cat((h[2 * layer], h[2 * layer + 1]), dim=-1)
            expected = torch.tanh(model.bridge_hidden[layer](joined))
            torch.testing.assert_close(state.hidden[layer], expected, rtol=0, atol=1e-6)


def test_a_gru_has_three_quarters_of_the_recurrent_parameters_and_one_bridge():
    gru, lstm = (Seq2Seq(cell=cell, attention=None, **TINY) for cell in ("gru", "lstm"))
    for name in ("encoder", "decoder"):
        assert 4 * parameter_count(getattr(gru, name)) == 3 * parameter_count(getattr(lstm, name))
    assert not hasattr(gru, "bridge_cell")
    assert gru.start(*batch([5, 2])[:2]).cell == ()


def test_zero_bridge_starts_from_zeros():
    model = Seq2Seq(attention="dot", bridge="zero", decoder_layers=3, **TINY)
    source, length, *_ = batch([5, 2])
    state = model.start(source, length)
    assert all((tensor == 0).all() and tensor.shape == (2, 16) for tensor in state.hidden + state.cell)
    assert len(state.hidden) == 3


@pytest.mark.parametrize("bridge", ["concat", "zero"])
def test_the_encoder_may_have_a_width_of_its_own(bridge):
    half = Seq2Seq(attention="general", bridge=bridge, encoder_hidden=8, **TINY)
    assert (half.encoder.hidden_size, half.decoder.hidden_size) == (8, 16)
    assert parameter_count(half.memory) == 0  # two directions of 8 are as wide as the decoder
    wide = Seq2Seq(attention="general", bridge=bridge, encoder_hidden=24, bidirectional=False, **TINY)
    assert wide.memory.weight.shape == (16, 24)


def test_tied_embeddings_share_one_matrix_and_start_with_moderate_logits():
    torch.manual_seed(0)
    sizes = {**TINY, "target_embedding": 16, "attention": "dot"}
    tied, untied = Seq2Seq(tie_embeddings=True, **sizes), Seq2Seq(**sizes)
    assert tied.projection.weight is tied.target_embedding.weight
    assert parameter_count(untied) - parameter_count(tied) == 19 * 16
    inputs = batch([5, 3])
    assert tied.project(tied(*inputs)).std() < 2


def test_embedding_widths_can_differ():
    model = Seq2Seq(attention="general", **{**TINY, "source_embedding": 5, "target_embedding": 9})
    assert model.source_embedding.weight.shape == (23, 5)
    assert model.target_embedding.weight.shape == (19, 9)
    assert model(*batch([5, 3])).shape == (2, 6, 16)


def test_xavier_gives_zero_biases_and_bounded_matrices():
    model = Seq2Seq(attention="general", init="xavier", **TINY)
    for name, parameter in model.named_parameters():
        if "bias" in name:
            assert (parameter == 0).all(), name
    gate_bound = (6 / (16 + 12)) ** 0.5
    assert gate_bound * 0.8 < model.decoder.weight_ih_l0.abs().max() <= gate_bound
    assert (model.source_embedding.weight[PAD] == 0).all() and (model.target_embedding.weight[PAD] == 0).all()


@pytest.mark.parametrize("input_feeding", [False, True])
@pytest.mark.parametrize(
    "rate", ["encoder_embedding_dropout", "encoder_dropout", "decoder_embedding_dropout", "decoder_dropout"]
)
def test_each_dropout_acts_in_training_and_not_in_evaluation(rate, input_feeding):
    torch.manual_seed(0)
    model = Seq2Seq(attention="general", input_feeding=input_feeding, **{rate: 0.5}, **TINY)
    inputs = batch([5, 3])
    with torch.no_grad():
        assert not torch.equal(model(*inputs), model(*inputs))
        model.eval()
        torch.testing.assert_close(model(*inputs), model(*inputs), rtol=0, atol=0)


def test_stepwise_training_drops_the_same_share_as_parallel():
    torch.manual_seed(0)
    model = Seq2Seq(attention=None, decoder_dropout=0.25, **{**TINY, "hidden": 200})
    for decoding in ("parallel", "stepwise"):
        model.decoding = decoding
        share = (model(*batch([5, 5, 5])) == 0).float().mean()
        assert 0.2 < share < 0.3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden = 0"),
        ({"hidden": 16.0}, "hidden = 16.0"),
        ({"encoder_layers": True}, "encoder_layers = True"),
        ({"decoder_layers": -1}, "decoder_layers = -1"),
        ({"source_embedding": 0}, "source_embedding = 0"),
        ({"source_vocabulary": 0}, "source_vocabulary = 0"),
        ({"encoder_dropout": 1.0}, "encoder_dropout = 1.0"),
        ({"decoder_dropout": -0.1}, "decoder_dropout = -0.1"),
        ({"decoder_embedding_dropout": float("nan")}, "decoder_embedding_dropout = nan"),
        ({"encoder_embedding_dropout": "0.1"}, "encoder_embedding_dropout = '0.1'"),
        ({"attention": "luong"}, "attention = 'luong'.*None, dot, scaled_dot, general, concat, mlp"),
        ({"bridge": "copy"}, "bridge = 'copy'.*layers, concat, zero"),
        ({"decoding": "fast"}, "decoding = 'fast'.*parallel, stepwise"),
        ({"init": "he"}, "init = 'he'.*default, xavier"),
        ({"cell": "rnn"}, "cell = 'rnn'.*lstm, gru"),
        ({"input_feeding": True, "attention": None}, "input_feeding without attention.*choose attention from"),
        ({"teacher_forcing": 1.5}, "teacher_forcing = 1.5"),
        ({"bridge": "zero", "attention": None}, "zero"),
        ({"bridge": "concat", "decoder_layers": 3}, "concat.*2 and 3"),
        ({"encoder_hidden": 0}, "encoder_hidden = 0"),
        ({"encoder_hidden": 8}, "encoder_hidden=8 is not hidden=16.*concat"),
        ({"tie_embeddings": True}, "tie_embeddings.*12 and 16"),
    ],
)
def test_options_out_of_range_are_named_with_their_value(options, message):
    with pytest.raises(ValueError, match=message):
        Seq2Seq(**{**TINY, **options})
