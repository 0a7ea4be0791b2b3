from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from hotloop import checkpoint
from hotloop.data.text.vectors import token_vectors
from hotloop.data.text.word_tokenizer import WordTokenizer
from hotloop.errors import UserError
from hotloop.tasks.pretrained import Pretrained, heads_advice, start_from_vectors
from tests.cases.test_e15_resume import LONG, assert_same_weights, stop_after
from tests.conftest import TINY_TRANSFORMER


@pytest.fixture
def vectors(tmp_path: Path, bitext: Path) -> Path:
    """Vectors of width 16 for every word of the tiny bitext but one, in both languages."""
    words = sorted(
        {w for f in bitext.glob("train*") for w in f.read_text(encoding="utf-8").split() if f.suffix != ".json"}
    )
    numbers = np.random.default_rng(0).normal(3.0, 5.0, (len(words), 16))
    rows = [f"{word} {' '.join(f'{x:.4f}' for x in row)}" for word, row in zip(words, numbers, strict=True)]
    file = tmp_path / "words.vec"
    file.write_text("\n".join(rows[1:]) + "\n", encoding="utf-8")
    return file


class Embeddings(nn.Module):
    def __init__(self, *, shared: bool = False, width: int = 2) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.source_embedding = nn.Embedding(8, width, padding_idx=0)
        self.target_embedding = self.source_embedding if shared else nn.Embedding(8, width, padding_idx=0)


def a_task(model: nn.Module, **options) -> SimpleNamespace:
    return SimpleNamespace(
        model=model,
        pretrained=Pretrained(**options),
        source_tokenizer=WordTokenizer(["le", "chat", "dort", "ici"]),
        target_tokenizer=WordTokenizer(["the", "cat", "le", "chat"]),
        saved={"model": {"options": {"hidden": 4}}},
    )


def some_data() -> SimpleNamespace:
    from hotloop.data.text.preparing.store import TokenRows

    rows = TokenRows.from_lists([[2, 4, 5, 3], [2, 7, 3]])
    return SimpleNamespace(dataset=lambda split: SimpleNamespace(source=rows, target=rows))


def test_found_rows_are_the_vectors_and_all_others_stay(tmp_path, caplog):
    file = tmp_path / "v.txt"
    file.write_text("chat 1 2\nle 3 4\nunk 9 9\n", encoding="utf-8")
    model = Embeddings()
    before = model.source_embedding.weight.detach().clone()
    with caplog.at_level("INFO"):
        start_from_vectors(a_task(model, source=str(file), rescale=False), some_data(), token_vectors)
    weight = model.source_embedding.weight.detach()
    assert weight[4].tolist() == [3, 4] and weight[5].tolist() == [1, 2]
    for row in (0, 1, 2, 3, 6, 7):
        assert torch.equal(weight[row], before[row])
    assert weight[0].eq(0).all()
    assert "source vectors: 2 of 4 words (50.0 %), 66.7 % of running tokens" in caplog.text


def test_rescaled_vectors_have_the_spread_of_the_beginning(tmp_path):
    file = tmp_path / "v.txt"
    file.write_text("chat 10 20\nle 30 -40\n", encoding="utf-8")
    model = Embeddings()
    spread = model.source_embedding.weight[4:6].std().item()
    start_from_vectors(a_task(model, source=str(file)), some_data(), token_vectors)
    weight = model.source_embedding.weight[4:6].detach()
    assert weight.std().item() == pytest.approx(spread, rel=1e-5)
    assert (weight[1] / weight[1, 0]).tolist() == pytest.approx([1, 2])


def test_in_a_shared_matrix_the_target_file_fills_what_the_source_file_left(tmp_path):
    for name, text in (("s.txt", "chat 1 1\n"), ("t.txt", "the 2 2\ncat 3 3\nle 4 4\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    model = Embeddings(shared=True)
    options = {"source": str(tmp_path / "s.txt"), "target": str(tmp_path / "t.txt"), "rescale": False}
    start_from_vectors(a_task(model, **options), some_data(), token_vectors)
    assert model.source_embedding.weight[4:7, 0].tolist() == [2, 1, 4]


def test_another_width_is_told_with_both_numbers_and_the_override(tmp_path):
    file = tmp_path / "v.txt"
    file.write_text("chat 1 2 3\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"vectors of 3 numbers, the embedding has 2: add model\.hidden=3"):
        start_from_vectors(a_task(Embeddings(), source=str(file)), some_data(), token_vectors)


def test_a_file_without_any_word_is_warned_of(tmp_path, caplog):
    file = tmp_path / "v.txt"
    file.write_text("xyz 1 2\n", encoding="utf-8")
    start_from_vectors(a_task(Embeddings(), source=str(file)), some_data(), token_vectors)
    assert "has no word of the source vocabulary" in caplog.text


def test_a_model_without_embeddings_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"Linear has no nn\.Embedding source_embedding"):
        start_from_vectors(a_task(nn.Linear(2, 2), source="v.txt"), some_data(), token_vectors)


@pytest.mark.parametrize(
    ("options", "message"), [({"freeze": 2}, "freeze=2 needs"), ({"source": "v", "freeze": -1}, "not -1")]
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Pretrained(**options)


def embedding(path: Path, side: str = "source") -> torch.Tensor:
    return checkpoint.read_checkpoint(path)["state_dict"][f"model.{side}_embedding.weight"]


def test_a_frozen_matrix_stays_bit_for_bit_and_the_other_is_trained(train_tiny, vectors):
    options = (f"task.pretrained.source={vectors}", "optimizer.weight_decay=0.5", "trainer.max_epochs=1")
    frozen = train_tiny(*options, "task.pretrained.freeze=true", folder="frozen")
    start = train_tiny(*options, "optimizer.lr=0.0", folder="start")
    assert torch.equal(embedding(frozen.last), embedding(start.last))
    assert not torch.equal(embedding(frozen.last, "target"), embedding(start.last, "target"))
    assert embedding(frozen.last)[0].eq(0).all()


def test_frozen_for_k_epochs_means_no_step_and_no_decay_until_then(train_tiny, vectors):
    options = (*LONG, f"task.pretrained.source={vectors}", "task.pretrained.freeze=2", "optimizer.weight_decay=0.5")
    start = train_tiny(*options, "optimizer.lr=0.0", "trainer.max_epochs=1", folder="start")
    two = train_tiny(*options, "trainer.max_epochs=2", folder="two")
    three = train_tiny(*options, "trainer.max_epochs=3", folder="three")
    assert torch.equal(embedding(start.last), embedding(two.last))
    assert not torch.equal(embedding(start.last), embedding(three.last))


@pytest.mark.parametrize("batches", [15, 27, 50], ids=["before", "at the end", "after"])
def test_e15_a_run_interrupted_around_the_thaw_continues_without_the_file(train_tiny, vectors, monkeypatch, batches):
    common = (
        *LONG,
        f"task.pretrained.source={vectors}",
        "task.pretrained.freeze=1",
        "trainer.accumulate_grad_batches=2",
    )
    whole = train_tiny(*common, folder="whole")
    with monkeypatch.context() as patch:
        stop_after(patch, batches)
        with pytest.raises((SystemExit, KeyboardInterrupt)):
            train_tiny(*common, folder="first")
    vectors.unlink()
    interrupted = whole.folder.parent / "first" / "checkpoints" / "interrupted.ckpt"
    second = train_tiny(*common, f"ckpt_path='{interrupted}'", folder="second")
    assert_same_weights(whole.last, second.last)


def test_a_frozen_matrix_that_is_shared_names_what_shares_it(train_tiny, vectors, caplog):
    with caplog.at_level("INFO"):
        train_tiny(
            f"task.pretrained.target={vectors}", "task.pretrained.freeze=true", "model.tie_embeddings=true",
            "model.embedding=16", "model.hidden=16",
        )  # fmt: skip
    assert "frozen: target_embedding.weight (and projection.weight, which share it)" in caplog.text


def test_a_file_that_is_not_there_is_told_before_anything_is_prepared(train_tiny, tmp_path):
    with pytest.raises(UserError, match=r"task\.pretrained\.source: there is no file"):
        train_tiny(f"task.pretrained.source={tmp_path / 'absent.vec'}")
    assert not (tmp_path / "cache").exists()


def test_a_checkpoint_is_evaluated_without_the_file(train_tiny, vectors):
    from hotloop.inference import load_translation

    run = train_tiny(f"task.pretrained.source={vectors}", "task.pretrained.freeze=true")
    vectors.unlink()
    assert load_translation(run.last).model.source_embedding.weight.shape[1] == 16


@pytest.mark.parametrize("nesterov", ["false", "true"])
def test_sgd_goes_on_after_the_thaw(train_tiny, vectors, nesterov):
    options = (f"task.pretrained.source={vectors}", "task.pretrained.freeze=1", "optimizer=sgd", "optimizer.lr=0.01")
    options = (*options, f"optimizer.nesterov={nesterov}", "trainer.max_epochs=2")
    fused = train_tiny(*options, "optimizer.fused=true", folder="fused")
    plain = train_tiny(*options, "optimizer.fused=false", folder="plain")
    torch.testing.assert_close(embedding(fused.last), embedding(plain.last))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [("true", "false", "True → False"), ("1", "true", "1 → True"), ("false", "1", "False → 1"), ("1", "2", "1 → 2")],
)
def test_a_run_continues_with_the_freeze_that_it_began_with(train_tiny, vectors, before, after, told):
    options = (*LONG, f"task.pretrained.source={vectors}")
    first = train_tiny(*options, "trainer.max_epochs=1", f"task.pretrained.freeze={before}", folder="first")
    with pytest.raises(UserError, match=rf"task\.pretrained\.freeze {told}\): repeat its overrides"):
        train_tiny(*options, f"task.pretrained.freeze={after}", f"ckpt_path='{first.last}'", folder="second")


def test_a_run_continues_with_the_frozen_sides_that_it_began_with(train_tiny, vectors):
    options = (*LONG, "task.pretrained.freeze=true")
    first = train_tiny(*options, "trainer.max_epochs=1", f"task.pretrained.source={vectors}", folder="first")
    with pytest.raises(UserError, match=r"other sides \(task\.pretrained: source → target\)"):
        train_tiny(*options, f"task.pretrained.target={vectors}", f"ckpt_path='{first.last}'", folder="second")


def test_vectors_that_a_run_that_continues_does_not_read_are_told(train_tiny, vectors, caplog):
    first = train_tiny(*LONG, "trainer.max_epochs=1", folder="first")
    with caplog.at_level("INFO"):
        train_tiny(*LONG, "task.pretrained.source=new.vec", f"ckpt_path='{first.last}'", folder="second")
    assert f"task.pretrained.source=new.vec is not read: the embeddings are those of {first.last}" in caplog.text


def test_the_advice_for_a_transformer_can_be_followed(train_tiny, vectors):
    options = (f"task.pretrained.source={vectors}", "model=transformer")
    tiny = (*TINY_TRANSFORMER, "model.hidden=24", "model.heads=6")
    with pytest.raises(UserError, match=r"has 24: add model\.hidden=16 model\.heads=8$"):
        train_tiny(*options, tiny=tiny)
    train_tiny(*options, "model.hidden=16", "model.heads=8", tiny=tiny)


def test_heads_are_as_near_as_the_width_allows():
    assert heads_advice(300, 4) == "add model.hidden=300 model.heads=5"
    assert heads_advice(300, 6) == "add model.hidden=300"
    assert "even" in heads_advice(25, 4)


def test_one_epoch_is_told_in_the_singular(train_tiny, vectors, caplog):
    with caplog.at_level("INFO"):
        train_tiny(f"task.pretrained.source={vectors}", "task.pretrained.freeze=1")
    assert "frozen for 1 epoch: " in caplog.text
