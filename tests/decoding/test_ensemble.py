import pytest
import torch

from hotloop.decoding import SearchOptions, search
from hotloop.decoding.ensemble import Ensemble
from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer
from tests.decoding.toys import TableModel, random_logits, random_weights, sources

VOCABULARY = 30


def lstm(seed, **options):
    torch.manual_seed(seed)
    return Seq2Seq(source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, embedding=8, hidden=8, **options)


def transformer(seed):
    torch.manual_seed(seed)
    return Transformer(
        source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, shared_vocabulary=False, hidden=16, heads=2,
        feed_forward=16, encoder_layers=1, decoder_layers=2,
    )  # fmt: skip


def batch():
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(4, VOCABULARY, (3, 6), generator=generator)
    target = torch.randint(4, VOCABULARY, (3, 5), generator=generator)
    return source, torch.tensor([6, 3, 5]), target, torch.tensor([5, 5, 2])


@pytest.fixture(params=["one kind", "two kinds"])
def models(request):
    return [lstm(0), lstm(1)] if request.param == "one kind" else [lstm(0), transformer(1), lstm(2)]


@torch.no_grad()
def test_probabilities_are_the_mean_of_those_of_the_models(models):
    source, length, target, target_length = batch()
    ensemble = Ensemble(models).eval()
    found = ensemble.project(ensemble(source, length, target, target_length)).exp()
    expected = torch.stack(
        [model.project(model(source, length, target, target_length)).softmax(-1) for model in models]
    )
    torch.testing.assert_close(found, expected.mean(0))
    torch.testing.assert_close(found.sum(-1), torch.ones(3, 5))


@torch.no_grad()
def test_step_by_step_equals_the_parallel_pass_with_rows_reordered(models):
    source, length, target, target_length = batch()
    ensemble = Ensemble(models).eval()
    expected = ensemble.project(ensemble(source, length, target, target_length))
    rows, state = torch.tensor([0, 0, 1, 1, 2, 2]), ensemble.start(source, length, keep_attention=True)
    state = state.select(rows, width=2)
    for step in range(3):
        logits, state = ensemble.step(target[rows, step], state)
        torch.testing.assert_close(logits, expected[rows, step], atol=1e-5, rtol=1e-4)
        weights = ensemble.attention_weights(source, length, target)[rows, 0, 0, step]
        torch.testing.assert_close(state.attention, weights, atol=1e-5, rtol=1e-4)
        if step == 1:
            state = state.select(torch.tensor([1, 0, 5, 4]), width=2)
            rows = torch.tensor([0, 0, 2, 2])


@pytest.mark.parametrize("beam_size", [1, 4])
def test_an_ensemble_of_the_same_model_twice_is_that_model(beam_size):
    model = lstm(4)
    options = SearchOptions(beam_size=beam_size, replace_unknown=True)
    source, length, *_ = batch()
    one, two = (search(found, source, length, options) for found in (model, Ensemble([model, model])))
    for mine, others in zip(one, two, strict=True):
        assert (mine[0].tokens, mine[0].looked_at) == (others[0].tokens, others[0].looked_at)
        assert mine[0].score == pytest.approx(others[0].score, abs=1e-4)


def test_improbable_tokens_keep_their_order():
    """Probabilities that are 0 in float32 are added by their logarithms."""
    model = TableModel(lambda sentence, words: torch.tensor([0.0, -200.0, 0.0, 200.0, -150.0, -180.0, 0.0]))
    logits, _ = Ensemble([model, model]).step(torch.tensor([2]), Ensemble([model, model]).start(*sources(4)))
    assert logits[0, 4] - logits[0, 5] == pytest.approx(30.0, abs=1e-3) and torch.isfinite(logits).all()


def test_it_attends_where_all_its_models_do():
    assert Ensemble([lstm(0), transformer(1)]).attends
    with pytest.raises(ValueError, match="needs a model with attention"):
        search(Ensemble([lstm(0), lstm(1, attention=None)]), *sources(4), SearchOptions(replace_unknown=True))
    both = [TableModel(random_logits(0), random_weights(seed, 4)) for seed in (1, 2)]
    state = Ensemble(both).start(*sources(4), keep_attention=True)
    _, state = Ensemble(both).step(torch.tensor([2]), state)
    expected = (random_weights(1, 4)(4, ()) + random_weights(2, 4)(4, ())) / 2
    torch.testing.assert_close(state.attention[0], expected)


def test_models_of_other_vocabularies_are_refused():
    other = Seq2Seq(source_vocabulary=VOCABULARY, target_vocabulary=31, embedding=8, hidden=8)
    with pytest.raises(ValueError, match=r"\(30, 30\), \(30, 31\)"):
        Ensemble([lstm(0), other])
    with pytest.raises(ValueError, match="no ensemble"):
        Ensemble([])
