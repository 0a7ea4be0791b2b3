"""The fast ways to the best tokens against sorting everything."""

import pytest
import torch

from hotloop.decoding import SearchOptions
from hotloop.decoding.scoring import LogProbabilities, best_extensions, first_places, forbid_repeats, likeliest
from hotloop.vocabulary import BOS, EOS, PAD, UNK

VOCABULARIES = [5, 64, 65, 127, 128, 1000]


def made(rows, vocabulary, dtype=torch.bfloat16, seed=0):
    """Random log-probabilities; in bfloat16 many are equal."""
    numbers = torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 2 - 8
    return numbers.to(dtype).float()


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("width", "count"), [(1, 1), (1, 10), (5, 10), (3, 40)])
def test_the_best_extensions_are_those_of_a_stable_sort(vocabulary, dtype, width, count):
    numbers = made(4 * width, vocabulary, dtype)
    numbers[:, 2] = -torch.inf
    live = made(4, width, dtype, seed=1)
    live[0, -1] = -torch.inf
    every = (numbers.view(4, width, vocabulary) + live[:, :, None]).flatten(1)
    expected, key = every.sort(dim=1, descending=True, stable=True)
    score, beam, token = best_extensions(numbers, live, count)
    kept = min(count, every.shape[1])
    assert torch.equal(score[:, :kept], expected[:, :kept]) and (score[:, kept:] == -torch.inf).all()
    real = score[:, :kept] > -torch.inf
    assert torch.equal((beam * vocabulary + token)[:, :kept][real], key[:, :kept][real])
    assert score.shape == (4, count) and int(token.max()) < vocabulary


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_likeliest_token_is_the_first_of_the_best(vocabulary, dtype):
    numbers = made(50, vocabulary, dtype)
    best, token = likeliest(numbers)
    expected, place = numbers.sort(dim=1, descending=True, stable=True)
    assert torch.equal(best, expected[:, 0]) and torch.equal(token, place[:, 0])


def test_first_places_order_signs_infinities_and_equals():
    numbers = torch.tensor([[-1.0, 3.0, -torch.inf, 3.0, 0.0, -2.5, torch.inf, 1e-40]])
    assert first_places(numbers, 8).tolist() == [[6, 1, 3, 7, 4, 0, 5, 2]]
    assert first_places(numbers, 3).tolist() == [[6, 1, 3]]
    assert first_places(numbers, 99).shape == (1, 8)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_what_would_repeat_is_found_like_in_a_list(size):
    tokens = torch.randint(4, 8, (30, 12), generator=torch.Generator().manual_seed(size))
    numbers = torch.zeros(30, 9)
    forbid_repeats(numbers, tokens, size)
    for row, said in enumerate(tokens.tolist()):
        seen = {tuple(said[i : i + size]) for i in range(len(said) - size + 1)}
        last = said[len(said) - size + 1 :]
        assert (numbers[row] == -torch.inf).tolist() == [(*last, token) in seen for token in range(9)]
    assert (numbers == -torch.inf).any() and (numbers == 0).any()


def test_forbidden_tokens_keep_their_share_of_the_probability():
    logits = torch.randn(3, 9)
    plain = logits.log_softmax(-1)
    scores = LogProbabilities(SearchOptions(min_length=2, allow_unknown=False), torch.device("cpu"))
    for step, forbidden in ((0, [PAD, UNK, BOS, EOS]), (1, [PAD, UNK, BOS, EOS]), (2, [PAD, UNK, BOS])):
        found = scores(logits, step, None)
        rest = [token for token in range(9) if token not in forbidden]
        assert (found[:, forbidden] == -torch.inf).all() and torch.equal(found[:, rest], plain[:, rest])
