"""E17: compiled and uncompiled runs share their checkpoints, and lengths do not make it compile again and again."""

import pytest
import torch

from hotloop import checkpoint
from hotloop.data.text.batch import Batch
from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer
from hotloop.tasks.translation import token_losses


def small(kind):
    sizes = {"source_vocabulary": 40, "target_vocabulary": 40, "hidden": 8}
    if kind == "transformer":
        return Transformer(
            shared_vocabulary=False,
            heads=2,
            encoder_layers=1,
            decoder_layers=1,
            embedding_dropout=0.0,
            dropout=0.0,
            **sizes,
        )
    return Seq2Seq(embedding=8, attention="general", **sizes)


KINDS = pytest.mark.parametrize("kind", ["lstm", "transformer"])


@KINDS
def test_e17_compiling_in_place_leaves_the_names_of_the_weights(kind):
    model = small(kind)
    names = list(model.state_dict())
    model.compile(dynamic=True)
    assert list(model.state_dict()) == names


def batches(count: int):
    torch.manual_seed(0)
    for number in range(count):
        length = 15 + number % 11
        yield Batch(
            source=torch.randint(4, 40, (4, length)),
            source_length=torch.full((4,), length),
            target=torch.randint(4, 40, (4, length + number % 3)),
            target_length=torch.full((4,), length + number % 3),
            ids=torch.arange(4),
        )


@KINDS
@pytest.mark.slow
def test_e17_lengths_from_15_to_25_compile_a_few_times_only_and_give_the_same(kind):
    import torch._dynamo

    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    model = small(kind).train()
    with torch.no_grad():
        expected = [token_losses(model, batch)[0] for batch in batches(22)]
    model.compile(dynamic=True)
    for batch, right in zip(batches(22), expected, strict=True):
        losses, _, _ = token_losses(model, batch)
        losses.sum().backward()
        torch.testing.assert_close(losses.detach(), right, atol=1e-5, rtol=0)
    assert 1 <= counters["stats"]["unique_graphs"] <= 5  # the first and four more


@pytest.mark.slow
def test_e17_a_compiled_run_can_be_continued_uncompiled_and_the_reverse(train_tiny):
    # Compiled dropout draws other numbers, and Adam turns a rounding error into a step: neither is in question here.
    common = (
        *(f"model.{n}_dropout=0" for n in ("encoder_embedding", "encoder", "decoder_embedding", "decoder")),
        "optimizer=sgd",
        "trainer.limit_train_batches=4",
    )
    compiled = train_tiny(*common, "compile=true", folder="compiled")
    plain = train_tiny(*common, folder="plain")
    one, other = (checkpoint.read_checkpoint(run.last)["state_dict"] for run in (compiled, plain))
    assert list(one) == list(other) and not any("_orig_mod" in name for name in one)
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], atol=1e-5, rtol=1e-4)
    longer = (*common, "trainer.max_epochs=2")
    first = train_tiny(*longer, f"ckpt_path='{compiled.last}'", folder="uncompiled after compiled")
    second = train_tiny(*longer, "compile=true", f"ckpt_path='{plain.last}'", folder="compiled after uncompiled")
    assert first.losses == pytest.approx(second.losses, abs=1e-4)
