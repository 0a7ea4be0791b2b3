import weakref

import pytest
import torch

from hotloop.data.text.batch import Batch
from hotloop.models.seq2seq import Seq2Seq
from hotloop.tasks.translation import TranslationTask, real_tokens, token_losses


def a_batch(rows: int = 8, length: int = 9) -> Batch:
    torch.manual_seed(0)
    return Batch(
        source=torch.randint(4, 50, (rows, 5)),
        source_length=torch.full((rows,), 5),
        target=torch.randint(4, 500, (rows, length)),
        target_length=torch.full((rows,), length),
        ids=torch.arange(rows),
    )


def test_real_tokens_are_found_from_the_lengths_alone():
    rows, places = real_tokens(torch.tensor([2, 0, 3]), 4)
    assert rows.tolist() == [0, 0, 2, 2, 2]
    assert places.tolist() == [0, 1, 8, 9, 10]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_chunks_change_neither_loss_nor_gradient(chunk):
    model = Seq2Seq(source_vocabulary=50, target_vocabulary=500, embedding=8, hidden=8)
    found = []
    for size in (0, chunk):
        model.zero_grad()
        losses, plain, _ = token_losses(model, a_batch(), label_smoothing=0.1, chunk=size)
        losses.sum().backward()
        found.append((losses.detach(), plain, [p.grad.clone() for p in model.parameters()]))
    torch.testing.assert_close(found[1], found[0], atol=1e-5, rtol=1e-4)


def test_chunks_keep_no_logits_for_the_backward_pass():
    model = Seq2Seq(source_vocabulary=50, target_vocabulary=500, embedding=8, hidden=8)

    def kept(chunk: int) -> int:
        """Numbers kept for the backward pass in tensors as wide as the vocabulary."""
        wide: list[weakref.ref] = []

        def pack(tensor):
            if tensor.ndim == 2 and tensor.shape[1] == 500:
                wide.append(weakref.ref(tensor))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            losses, _, _ = token_losses(model, a_batch(), chunk=chunk)
        alive = [tensor.numel() for tensor in (reference() for reference in wide) if tensor is not None]
        assert losses.requires_grad
        return sum(alive)

    assert kept(0) >= 64 * 500
    assert kept(16) == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("label_smoothing", 1.0),
        ("label_smoothing", -0.1),
        ("beam_size", 0),
        ("decode_every", -1),
        ("projection_chunk", -1),
        ("max_length", 0),
        ("decode_sentences", 0),
    ],
)
def test_options_out_of_range_are_refused_with_their_value(option, value):
    with pytest.raises(ValueError, match=f"{option}.*{value}"):
        TranslationTask(model=None, source_tokenizer=None, target_tokenizer=None, **{option: value})
