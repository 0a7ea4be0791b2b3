"""What is particular to the Transformer; what it shares with the other text models is in test_translators.py."""

import math
from pathlib import Path

import pytest
import torch
import yaml
from torch.nn import functional as F

from hotloop.models.transformer import Transformer
from hotloop.models.transformer_layers import Attention, SinusoidTable, plain_attention, rotate
from hotloop.vocabulary import BOS, EOS, PAD

CONF = Path(__file__).parents[2] / "conf" / "model"
WORDS = 16
SIZES = {"source_vocabulary": WORDS, "target_vocabulary": WORDS}
SMALL = {"hidden": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 2}


def small(*, shared_vocabulary=True, **options):
    torch.manual_seed(0)
    return Transformer(**SIZES, shared_vocabulary=shared_vocabulary, **SMALL | options)


def size_of(option, vocabulary, **changes):
    """Parameters of a size in conf/model, without making them."""
    options = {}
    for name in ("transformer", option):
        options |= yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    options = {key: value for key, value in options.items() if key not in ("defaults", "_target_")} | changes
    with torch.device("meta"):
        model = Transformer(
            source_vocabulary=vocabulary, target_vocabulary=vocabulary, shared_vocabulary=True, **options
        )
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("option", "published", "rounded"), [("transformer_base", 63_082_496, 65), ("transformer_big", 214_245_376, 213)]
)
def test_the_published_sizes_have_the_published_number_of_parameters(option, published, rounded):
    tie = ["source", "target", "output"]
    hidden = 512 if option.endswith("base") else 1024
    assert size_of(option, 37_000, norm="post", tie=tie) == published
    assert size_of(option, 37_000, tie=tie) == published + 4 * hidden  # two more norms
    assert published / 1e6 == pytest.approx(rounded, rel=0.03)  # as the paper's Table 3 has it


def test_small_is_that_of_the_comparison_with_other_toolkits():
    assert size_of("transformer", 8_000, tie=[]) == 11_674_624
    assert size_of("transformer_tiny", 8_000, tie=[]) < size_of("transformer", 8_000, tie=[]) / 2


@pytest.mark.parametrize(
    ("tie", "matrices"),
    [([], 3), (["target", "output"], 2), (["source", "target"], 2), (["source", "output"], 2),
     (["output", "source", "target"], 1)],
)  # fmt: skip
def test_any_of_the_three_matrices_can_be_one(tie, matrices):
    model = small(tie=tie)
    weights = {
        "source": model.source_embedding.weight,
        "target": model.target_embedding.weight,
        "output": model.projection.weight,
    }
    assert len({id(weight) for weight in weights.values()}) == matrices
    assert len({id(weights[name]) for name in tie}) <= 1
    assert all((weights[side][PAD] == 0).all() for side in ("source", "target"))
    again = small(tie=tie)
    again.load_state_dict(model.state_dict())
    assert (
        len({id(w) for w in (again.source_embedding.weight, again.target_embedding.weight, again.projection.weight)})
        == matrices
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tie": ["source", "target"], "shared_vocabulary": False}, "data.tokenizer.shared=true"),
        ({"tie": ["target"]}, "two or three"),
        ({"tie": ["target", "target"]}, "two or three"),
        ({"tie": ["target", "decoder"]}, "tie = 'decoder'"),
        ({"hidden": 18, "heads": 2}, "hidden = 18 and heads = 2"),
        ({"norm": "none"}, "norm = 'none'"),
        ({"positions": "sine"}, "positions = 'sine'"),
        ({"activation": "tanh"}, "activation = 'tanh'"),
        ({"dropout": 1.0}, "dropout = 1.0"),
        ({"attention_dropout": -0.1}, "attention_dropout = -0.1"),
        ({"encoder_layers": 0}, "encoder_layers = 0"),
        ({"alignment_layer": 2}, "alignment_layer = 2: must be null or 0 to 1"),
    ],
    ids=str,
)  # fmt: skip
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)


def random_pairs(count, *, generator, length=7):
    source = torch.randint(4, WORDS, (count, length), generator=generator)
    target = torch.randint(4, WORDS, (count, length), generator=generator)
    source[:, -1] = target[:, -1] = EOS
    return source, target, torch.full((count,), length)


def loss_of(model, source, target, length):
    target_in = torch.cat((torch.full_like(target[:, :1], BOS), target[:, :-1]), dim=1)
    logits = model.project(model(source, length, target_in, length))
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def test_without_the_causal_mask_the_model_learns_to_copy_the_answer_and_nothing_else(monkeypatch):
    """Target words are drawn at random, so that nobody can know them: six in seven cost ln 12, the last is EOS.

    Without the mask the training loss falls far below, because each step sees the words that it is asked for; in use
    those words are not there yet.
    """
    known = 6 / 7 * math.log(12)
    losses, right = {}, Attention.forward
    for masked in (True, False):
        with monkeypatch.context() as patch:
            if not masked:
                patch.setattr(
                    Attention, "forward", lambda self, *args, mask=None, causal=False: right(self, *args, mask=mask)
                )
            model, generator = small(hidden=32, dropout=0.0, embedding_dropout=0.0), torch.Generator().manual_seed(0)
            optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
            for _ in range(150):
                loss_of(model, *random_pairs(64, generator=generator)).backward()
                optimizer.step()
                optimizer.zero_grad()
            with torch.no_grad():
                losses[masked] = float(loss_of(model.eval(), *random_pairs(500, generator=generator)))
    assert known - 0.01 < losses[True] < known + 0.15
    assert losses[False] < known / 3


def test_without_the_padding_mask_the_width_of_a_batch_would_change_the_answer(monkeypatch):
    model, generator = small().eval(), torch.Generator().manual_seed(0)
    source, target, length = random_pairs(2, generator=generator)
    padded = F.pad(source, (0, 5), value=PAD)

    def change():
        with torch.no_grad():
            return (model(source, length, target, length) - model(padded, length, target, length)).abs().max()

    assert change() < 1e-5
    right = Attention.forward
    monkeypatch.setattr(
        Attention, "forward", lambda self, *args, mask=None, causal=False: right(self, *args, causal=causal)
    )
    assert change() > 0.05


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_in_separate_steps_is_that_of_the_fused_kernel(causal, masked):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 6, 8, requires_grad=True).unbind(0)
    mask = (torch.arange(6) < torch.tensor([6, 3])[:, None])[:, None, None] if masked else None
    expected_mask = mask if not causal else torch.ones(6, 6, dtype=torch.bool).tril() & (True if mask is None else mask)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=expected_mask)
    found = plain_attention(query, key, value, mask=mask, causal=causal, rate=0.0)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"norm": "post"}, {"positions": "rotary"}], ids=str)
def test_bfloat16_autocast_trains_like_float32(options):
    model = small(dropout=0.0, embedding_dropout=0.0, **options)
    batch = random_pairs(8, generator=torch.Generator().manual_seed(0))
    gradients = []
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss_of(model, *batch).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        model.zero_grad()
    assert F.cosine_similarity(*gradients, dim=0) > 0.999


def test_checkpointed_layers_give_the_same_loss_and_gradients_under_dropout():
    results = []
    for option in (False, True):
        model = small(activation_checkpointing=option)
        torch.manual_seed(1)
        loss = loss_of(model, *random_pairs(4, generator=torch.Generator().manual_seed(0)))
        loss.backward()
        results.append([loss, *(parameter.grad for parameter in model.parameters())])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_checkpointed_layers_keep_less_for_the_backward_pass():
    kept = {}
    for option in (False, True):
        model, numbers = small(activation_checkpointing=option), 0

        def pack(tensor):
            nonlocal numbers
            numbers += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss_of(model, *random_pairs(32, generator=torch.Generator().manual_seed(0)))
        kept[option] = numbers
    assert kept[True] < kept[False] / 2


def test_sines_are_those_of_the_paper():
    cosine, sine = SinusoidTable(8)(3, 2, torch.device("cpu"))
    for row, position in enumerate((3, 4)):
        for i in range(4):
            angle = position / 10_000 ** (2 * i / 8)
            assert sine[row, i] == pytest.approx(math.sin(angle), abs=1e-6)
            assert cosine[row, i] == pytest.approx(math.cos(angle), abs=1e-6)


def test_rotary_scores_depend_on_the_distance_alone():
    table, (query, key) = SinusoidTable(8), torch.randn(2, 1, 1, 1, 8)

    def score(one, other):
        cpu = torch.device("cpu")
        return (rotate(query, table(one, 1, cpu)) * rotate(key, table(other, 1, cpu))).sum()

    torch.testing.assert_close(score(5, 2), score(25, 22), rtol=0, atol=1e-5)
    assert (score(5, 2) - score(5, 3)).abs() > 1e-3


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "learned"])
def test_a_sentence_longer_than_the_table_of_positions_is_read(positions):
    model = small(positions=positions, max_positions=16).eval()
    length = torch.tensor([1_100])
    source = torch.randint(4, WORDS, (1, 1_100))
    with torch.inference_mode():
        expected = model.project(model(source, length, source, length))
        state = model.start(source, length)
        for step in range(3):
            logits, state = model.step(source[:, step], state)
            torch.testing.assert_close(logits, expected[:, step], rtol=0, atol=1e-4)
    loss = loss_of(model.train(), source, source, length)  # the table was made longer while translating
    loss.backward()
    assert torch.isfinite(loss)


def test_word_order_matters_with_every_kind_of_positions():
    for positions in ("sinusoidal", "rotary", "learned"):
        model, length = small(positions=positions).eval(), torch.tensor([4])
        target = torch.tensor([[BOS, 5]])
        with torch.no_grad():
            one, other = (
                model(torch.tensor([words]), length, target, torch.tensor([2]))
                for words in ([4, 5, 6, EOS], [6, 5, 4, EOS])
            )
        assert (one - other).abs().max() > 1e-3, positions
