"""Own words among those of the reference: which places, which words, and what stays as it was."""

from collections import Counter

import pytest
import torch

from hotloop.data.text.batch import Batch
from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer
from hotloop.tasks.scheduled_sampling import decoder_inputs, own_places, slow_paths
from hotloop.tasks.translation import TranslationTask
from hotloop.vocabulary import BOS, EOS, PAD

SIZES = {"source_vocabulary": 20, "target_vocabulary": 20, "hidden": 16}
SMALL = {"heads": 2, "feed_forward": 24, "shared_vocabulary": False, "embedding_dropout": 0, "dropout": 0, **SIZES}
MODELS = {
    "lstm": lambda **more: Seq2Seq(embedding=8, **SIZES, **more),
    "gru, feeding": lambda **more: Seq2Seq(embedding=8, cell="gru", input_feeding=True, **SIZES, **more),
    "transformer": lambda **more: Transformer(**SMALL, **more),
}
PATHS = pytest.mark.parametrize("path", ["two_pass", "stepwise"])


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(3)
    model = MODELS[request.param]()
    with torch.no_grad():  # as it begins a model says much the same everywhere
        for parameter in model.parameters():
            parameter.mul_(8)
    return model


def a_batch() -> Batch:
    """Four pairs of unlike length."""
    generator = torch.Generator().manual_seed(0)
    lengths = [7, 3, 9, 1]
    target = torch.full((4, max(lengths) + 1), PAD)
    for row, length in enumerate(lengths):
        target[row, :length] = torch.randint(4, 20, (length,), generator=generator)
        target[row, 0], target[row, length] = BOS, EOS
    source = torch.randint(4, 20, (4, 5), generator=generator)
    return Batch(source, torch.tensor([5, 5, 5, 5]), target, torch.tensor(lengths) + 1, torch.arange(4))


def fed(model, batch, **options):
    torch.manual_seed(11)
    return decoder_inputs(model, batch, **options)


def calls_of(model, monkeypatch) -> Counter:
    """How often the model is run over a target, or a step further, from here on."""
    counted: Counter = Counter()
    model.register_forward_hook(lambda *_: counted.update(["forward"]))
    step = model.step
    monkeypatch.setattr(model, "step", lambda *given: counted.update(["step"]) or step(*given))
    return counted


def task_of(model, **options) -> TranslationTask:
    return TranslationTask(model=model, source_tokenizer=None, target_tokenizer=None, **options)


@PATHS
def test_words_behind_the_end_and_bos_stay_the_reference(model, path):
    batch = a_batch()
    inputs, reference = fed(model, batch, share=0.0, path=path), batch.target[:, :-1]
    assert inputs.shape == reference.shape and inputs.dtype == reference.dtype
    assert (inputs[:, 0] == BOS).all()
    behind = torch.arange(9) >= (batch.target_length - 1)[:, None]
    assert (inputs[behind] == reference[behind]).all()
    assert (inputs[~behind][1:] != reference[~behind][1:]).any()


def test_two_passes_feed_what_the_model_says_after_the_reference(model):
    batch, model = a_batch(), model.eval()
    reference, length = batch.target[:, :-1], batch.target_length - 1
    with torch.no_grad():
        said = model.project(model(batch.source, batch.source_length, reference, length)).argmax(-1)
    torch.manual_seed(11)
    own = own_places(length, 9, 0.5)
    expected = reference.clone()
    for row in range(4):
        for place in range(1, 9):
            if own[row, place]:
                expected[row, place] = said[row, place - 1]
    assert own.any()
    torch.testing.assert_close(fed(model, batch, share=0.5), expected)
    torch.testing.assert_close(fed(model, batch, share=0.5, chunk=2), expected)


def test_stepwise_feeds_what_the_model_says_after_what_it_was_fed(model):
    """Each own word is the likeliest after the mixed words before it, asked for anew with each prefix."""
    batch, model = a_batch(), model.eval()
    reference, length = batch.target[:, :-1], batch.target_length - 1
    torch.manual_seed(11)
    own = own_places(length, 9, 0.3)
    expected = reference.clone()
    with torch.no_grad():
        for place in range(1, 9):
            hidden = model(batch.source, batch.source_length, expected[:, :place], length.clamp(max=place))
            said = model.project(hidden[:, -1]).argmax(-1)
            expected[:, place] = torch.where(own[:, place], said, reference[:, place])
    torch.testing.assert_close(fed(model, batch, share=0.3, path="stepwise"), expected)
    assert (expected != fed(model, batch, share=0.3)).any()  # two passes know the words before from the reference


def test_places_are_own_as_often_as_asked():
    torch.manual_seed(0)
    length = torch.full((400,), 51)
    own = own_places(length, 60, 0.8)
    assert 0.18 < own[:, 1:51].float().mean() < 0.22
    assert not own[:, 0].any() and not own[:, 51:].any()
    assert own_places(length, 60, 0.0)[:, 1:51].all() and not own_places(length, 60, 1.0).any()


@PATHS
def test_always_the_reference_asks_the_model_once_and_gives_the_same_bits(model, path, monkeypatch):
    batch = a_batch()
    plain = task_of(model).training_losses(batch)
    model.teacher_forcing = 1.0
    counted = calls_of(model, monkeypatch)
    torch.manual_seed(5)
    found = task_of(model, scheduled_sampling=path).training_losses(batch)
    assert torch.equal(found, plain) and counted == {"forward": 1}
    after = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(3))  # no coin was drawn


def test_each_path_asks_the_model_as_it_says(model, monkeypatch):
    counted = calls_of(model, monkeypatch)
    model.teacher_forcing = 0.5
    task_of(model).training_losses(a_batch())
    assert counted == {"forward": 2}
    counted.clear()
    task_of(model, scheduled_sampling="stepwise").training_losses(a_batch())
    assert counted == {"forward": 1, "step": 8}


@PATHS
def test_labels_stay_the_reference_s(model, path):
    """The losses are those of an ordinary pass over the mixed words against the labels of the batch."""
    batch = a_batch()
    model.teacher_forcing = 0.4
    inputs = fed(model, batch, share=0.4, path=path)
    torch.manual_seed(11)
    found = task_of(model, scheduled_sampling=path).training_losses(batch)
    logits = model.project(model(batch.source, batch.source_length, inputs, batch.target_length - 1))
    losses = torch.nn.functional.cross_entropy(logits.mT, batch.target[:, 1:], reduction="none")
    real = torch.arange(9) < (batch.target_length - 1)[:, None]
    torch.testing.assert_close(found, losses[real])


@PATHS
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=str)
def test_every_parameter_has_the_gradient_of_the_second_pass_alone(model, path, precision):
    """Under autocast too, which keeps cast weights and would hand on those of the pass without gradient."""
    batch = a_batch()
    model.teacher_forcing = 0.4
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
        torch.manual_seed(11)
        task_of(model, scheduled_sampling=path).training_losses(batch).sum().backward()
        found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
        model.zero_grad()
        inputs = fed(model, batch, share=0.4, path=path)
        losses = torch.nn.functional.cross_entropy(
            model.project(model(batch.source, batch.source_length, inputs, batch.target_length - 1)).mT.float(),
            batch.target[:, 1:],
            reduction="none",
        )
        losses[torch.arange(9) < (batch.target_length - 1)[:, None]].sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            found[name], parameter.grad, rtol=0.02, atol=0.02 * float(parameter.grad.abs().max())
        )
        assert found[name].abs().sum() > 0, name


@PATHS
def test_coins_follow_the_seed_and_nothing_else(model, path):
    batch = a_batch()
    assert torch.equal(fed(model, batch, share=0.5, path=path), fed(model, batch, share=0.5, path=path))
    torch.manual_seed(12)
    assert not torch.equal(decoder_inputs(model, batch, share=0.5, path=path), fed(model, batch, share=0.5, path=path))


def test_an_evaluation_feeds_the_reference(model, monkeypatch):
    model.teacher_forcing = 0.0
    task = task_of(model.eval(), decode_every=0)
    counted = calls_of(model, monkeypatch)
    task.on_validation_epoch_start()
    with torch.no_grad():
        task.validation_step(a_batch(), 0)
    assert counted == {"forward": 1}


def test_the_share_follows_the_optimiser_steps(model, monkeypatch):
    model.teacher_forcing = {"start": 1.0, "end": 0.0, "steps": 10}
    task = task_of(model)
    counted = calls_of(model, monkeypatch)
    task.training_losses(a_batch())
    assert counted == {"forward": 1}  # step 0
    monkeypatch.setattr(TranslationTask, "global_step", 10)
    seen = []
    model.register_forward_pre_hook(lambda module, given: seen.append(given[2]))
    task.training_losses(a_batch())
    assert counted == {"forward": 3} and (seen[1][:, 1:7] != seen[0][:, 1:7]).any()


def test_slow_paths_are_named_with_the_option_that_asks_for_them():
    assert slow_paths(MODELS["lstm"](), "two_pass") == slow_paths(torch.nn.Linear(1, 1), "two_pass") == {}
    assert "model.decoding=stepwise" in slow_paths(MODELS["lstm"](decoding="stepwise"), "two_pass")["decoder"]
    feeding = slow_paths(MODELS["gru, feeding"](teacher_forcing=0.5), "stepwise")
    assert "model.input_feeding=true" in feeding["decoder"]
    assert "model.teacher_forcing=0.5" in feeding["own words"]
    assert "task.scheduled_sampling=stepwise" in feeding["own words"]


def test_an_unknown_path_is_refused():
    with pytest.raises(ValueError, match=r"scheduled_sampling = 'three_pass'.*two_pass, stepwise"):
        task_of(MODELS["lstm"](), scheduled_sampling="three_pass")
