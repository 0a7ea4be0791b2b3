"""E10, E11 in whole runs: validation figures do not depend on the size of the batches."""

import math

import pytest
import torch

from hotloop.data.text.batch import Batch
from hotloop.models.seq2seq import Seq2Seq
from hotloop.tasks.translation import token_losses


@pytest.fixture(scope="module")
def val_metrics():
    return ("val/loss", "val/perplexity", "val/bleu", "val/chrf")


def test_e10_e11_figures_are_the_same_for_every_evaluation_batch(train_tiny, val_metrics):
    found = []
    for size in (1, 3, 7, 64):
        run = train_tiny("optimizer.lr=1e-2", f"data.eval_batch_size={size}", folder=f"run{size}")
        found.append([run.report["metrics"][name] for name in val_metrics])
    for metrics in found[1:]:
        assert metrics == pytest.approx(found[0], rel=1e-5)


def test_e11_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary(train_tiny, monkeypatch, bitext):
    """All-zero projection: log V a token, whatever the batches; train loss in the same unit."""
    original = Seq2Seq.project
    monkeypatch.setattr(Seq2Seq, "project", lambda self, hidden: original(self, hidden) * 0)
    for size in (1, 7, 64):
        run = train_tiny(
            f"data.eval_batch_size={size}",
            "optimizer=sgd",
            "optimizer.lr=0.0",
            "task.label_smoothing=0",
            folder=f"r{size}",
        )
        vocabulary = run.report["data"]["target_vocabulary"]
        epoch = run.report["epochs"][0]
        assert epoch["val_loss"] == pytest.approx(math.log(vocabulary), abs=1e-5)
        assert epoch["train_loss"] == pytest.approx(math.log(vocabulary), abs=1e-5)
        assert run.report["metrics"]["val/perplexity"] == pytest.approx(vocabulary, rel=1e-4)


def test_e11_tokens_weigh_the_same_in_whichever_batch_they_are(train_tiny, monkeypatch):
    """Summed losses and tokens of (2, 1) and (90, 9): 9.2 a token, not the mean of 2 and 10."""
    from hotloop.tasks.translation import SentenceResult, TranslationTask

    results = {0: SentenceResult(2.0, 1, None), 1: SentenceResult(90.0, 9, None)}
    monkeypatch.setattr(TranslationTask, "_gather_results", lambda self: results)
    assert train_tiny().report["metrics"]["val/loss"] == pytest.approx(9.2)


def test_e11_eos_counts_and_padding_and_bos_do_not():
    torch.manual_seed(0)
    model = Seq2Seq(source_vocabulary=9, target_vocabulary=8, embedding=4, hidden=4)
    batch = Batch(
        source=torch.tensor([[5, 6, 3], [5, 3, 0]]),
        source_length=torch.tensor([3, 2]),
        target=torch.tensor([[2, 4, 5, 3], [2, 4, 3, 0]]),
        target_length=torch.tensor([4, 3]),
        ids=torch.arange(2),
    )
    losses, _, rows = token_losses(model, batch)
    assert len(losses) == 5 and rows.tolist() == [0, 0, 0, 1, 1]
    wider = Batch(
        source=torch.nn.functional.pad(batch.source, (0, 5)),
        source_length=batch.source_length,
        target=torch.nn.functional.pad(batch.target, (0, 5)),
        target_length=batch.target_length,
        ids=batch.ids,
    )
    torch.testing.assert_close(token_losses(model, wider)[0], losses, atol=1e-6, rtol=0)
    torch.testing.assert_close(token_losses(model, batch, chunk=2)[0], losses, atol=1e-6, rtol=0)


def test_e02_e10_an_empty_line_stays_in_its_place_and_counts(train_tiny, bitext):
    """A test file of five lines with the third empty: five hypotheses, the third empty."""
    for suffix in ("fr", "en"):
        lines = (bitext / f"test.{suffix}").read_text().splitlines()[:5]
        lines[2] = ""
        (bitext / f"test.{suffix}").write_text("".join(f"{line}\n" for line in lines))
    seen = []
    from hotloop.tasks import translation

    original = translation.score_translations

    def spy(hypotheses, references):
        seen.append((hypotheses, references))
        return original(hypotheses, references)

    translation.score_translations = spy
    try:
        train_tiny("test=true", "trainer.max_epochs=5", "optimizer.lr=1e-2")
    finally:
        translation.score_translations = original
    hypotheses, references = seen[-1]
    assert len(hypotheses) == len(references) == 5 and any(hypotheses)
    assert hypotheses[2] == references[2] == "" and all(references[i] for i in (0, 1, 3, 4))
