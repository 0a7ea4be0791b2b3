"""E04: padding must not change the answer."""

import pytest
import torch
from torch.nn import functional as F

from hotloop.models.attention import SCORES
from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer
from hotloop.vocabulary import BOS, EOS, PAD

VOCABULARY = 31
GENERATOR = torch.Generator().manual_seed(0)
SHORT = [*torch.randint(4, VOCABULARY, (2,), generator=GENERATOR).tolist(), EOS]
LONG = [*torch.randint(4, VOCABULARY, (10,), generator=GENERATOR).tolist(), EOS]
TARGET_SHORT, TARGET_LONG = [BOS, *SHORT[:-1], EOS], [BOS, *LONG[:-1], EOS]


@pytest.fixture(params=[None, *SCORES, "transformer"], ids=str)
def model(request):
    torch.manual_seed(0)
    sizes = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "hidden": 32}
    if request.param == "transformer":
        return Transformer(shared_vocabulary=False, feed_forward=48, **sizes).eval()
    return Seq2Seq(embedding=16, attention=request.param, **sizes).eval()


def rows(*lists, width=None, fill=None):
    """Rows of ids, PAD (or random ids) behind each."""
    width = width or max(map(len, lists))
    filled = torch.full((len(lists), width), PAD) if fill is None else torch.randint(4, VOCABULARY, (len(lists), width))
    for row, ids in enumerate(lists):
        filled[row, : len(ids)] = torch.tensor(ids)
    return filled, torch.tensor([len(ids) for ids in lists])


def logits(model, sources, targets, **padding):
    source, source_length = rows(*sources, **padding)
    target, target_length = rows(*targets, **padding)
    with torch.no_grad():
        return model.project(model(source, source_length, target[:, :-1], target_length - 1)), target, target_length


def test_e04_padding_does_not_change_logits(model):
    torch.manual_seed(1)
    alone = logits(model, [SHORT], [TARGET_SHORT])[0][0]
    for padding in ({}, {"fill": "random"}, {"width": 20}, {"width": 20, "fill": "random"}):
        for position, sources, targets in (
            (0, [SHORT, LONG], [TARGET_SHORT, TARGET_LONG]),
            (1, [LONG, SHORT], [TARGET_LONG, TARGET_SHORT]),
        ):
            together = logits(model, sources, targets, **padding)[0][position, : len(SHORT)]
            torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


def test_e04_pad_columns_get_no_attention(model):
    source, source_length = rows(LONG[-5:], LONG[-3:])
    if not model.attends:
        with pytest.raises(ValueError, match="built without attention"):
            model.attention_weights(source, source_length, torch.full((2, 4), BOS))
        return
    with torch.no_grad():
        weights = model.attention_weights(source, source_length, torch.full((2, 4), BOS))
    assert (weights[1, ..., 3:] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), rtol=0, atol=1e-6)


def test_e04_padding_further_leaves_the_loss_as_it_is(model):
    losses = []
    for width in (None, 16):
        predicted, target, target_length = logits(model, [SHORT, LONG], [TARGET_SHORT, TARGET_LONG], width=width)
        real = torch.arange(target.shape[1] - 1) < (target_length - 1)[:, None]
        losses.append(F.cross_entropy(predicted[real], target[:, 1:][real]))
    torch.testing.assert_close(losses[0], losses[1], rtol=0, atol=1e-6)
