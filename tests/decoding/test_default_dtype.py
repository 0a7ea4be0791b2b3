"""Lightning's "-true" precisions change the default dtype during a step: a search counts in float32 all the same."""

import pytest
import torch

from hotloop.decoding import SearchOptions, search
from hotloop.decoding.ensemble import Ensemble
from hotloop.decoding.forced import summed_log_probability
from hotloop.decoding.hypothesis import penalty
from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer

VOCABULARY = 30
SEARCHES = [
    {},
    {"no_repeat_ngram": 2, "min_length": 3, "replace_unknown": True},
    {"sample": True, "n_best": 3, "top_k": 9, "top_p": 0.9, "temperature": 0.7},
    {"beam_size": 3, "n_best": 3},
    {
        "beam_size": 3,
        "n_best": 3,
        "coverage_penalty": 0.2,
        "no_repeat_ngram": 2,
        "min_length": 2,
        "length_penalty": 0.6,
    },
]


@pytest.fixture(params=[torch.bfloat16, torch.float16, torch.float64], ids=str)
def dtype(request):
    """The default dtype of the test."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


@pytest.fixture(scope="module")
def models():
    torch.manual_seed(0)
    sizes = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY}
    lstm = Seq2Seq(**sizes, embedding=8, hidden=8, attention="dot")
    transformer = Transformer(
        **sizes, shared_vocabulary=False, hidden=16, heads=2, feed_forward=16, encoder_layers=1, decoder_layers=2
    )
    return {"lstm": lstm, "transformer": transformer, "both": Ensemble([lstm, transformer])}


def batch():
    generator = torch.Generator().manual_seed(0)
    return torch.randint(4, VOCABULARY, (4, 6), generator=generator), torch.tensor([6, 3, 5, 6])


@pytest.mark.parametrize("options", SEARCHES, ids=str)
@pytest.mark.parametrize("name", ["lstm", "transformer", "both"])
def test_a_search_of_a_model_in_the_default_dtype_runs(models, name, dtype, options):
    model = models[name].to(dtype)
    found = search(model, *batch(), SearchOptions(max_length=8, **options))
    assert [len(group) for group in found] == [options.get("n_best", 1)] * 4
    assert all(len(one.tokens) <= 8 and one.score > -torch.inf for group in found for one in group)


@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_the_default_dtype_changes_no_result(models, options):
    before, chosen = torch.get_default_dtype(), SearchOptions(max_length=8, **options)
    model = models["lstm"].float()
    expected = search(model, *batch(), chosen)
    steps = Steps(model)  # what the model gives stays float32: what differs is the search
    try:
        for other in (torch.bfloat16, torch.float16, torch.float64):
            torch.set_default_dtype(other)
            assert search(steps, *batch(), chosen) == expected
    finally:
        torch.set_default_dtype(before)


class Steps(torch.nn.Module):
    """A model that runs under float32 as the default, whatever it is around it."""

    attends = True

    def __init__(self, model):
        super().__init__()
        self.model = model

    def _in_float32(self, method, *args, **options):
        around = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            return method(*args, **options)
        finally:
            torch.set_default_dtype(around)

    def start(self, *args, **options):
        return self._in_float32(self.model.start, *args, **options)

    def step(self, *args):
        return self._in_float32(self.model.step, *args)


def test_the_penalty_of_many_lengths_is_that_of_each(dtype):
    lengths = torch.tensor([1, 7, 50, 333])
    assert penalty(lengths, 0.6).tolist() == pytest.approx([penalty(n, 0.6) for n in lengths.tolist()], rel=1e-6)


def test_given_translations_are_scored(models, dtype):
    source, length = batch()
    for model in models.values():
        found = summed_log_probability(model.to(dtype).eval(), source, length, source, length)
        assert found.dtype == torch.float64 and bool(found.isfinite().all())
