"""E07: a translation must not depend on the batch it is made in. E02 (b): empty lines."""

import pytest
import torch
from torch.nn import functional as F

from hotloop.decoding import SearchOptions, beam_search, greedy_search, search
from hotloop.decoding.lines import Translation, translate_lines
from hotloop.models.attention import SCORES
from hotloop.models.seq2seq import Seq2Seq
from hotloop.models.transformer import Transformer
from hotloop.vocabulary import BOS, EOS, PAD

VOCABULARY = 24


class Words:
    def encode(self, lines):
        return [[int(word) for word in line.split()] for line in lines]

    def decode(self, rows):
        return [" ".join(map(str, row)) for row in rows]


def pad(rows):
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows]), torch.tensor([len(row) for row in rows])


def trained(kind):
    """Briefly taught to turn a sentence round; far from perfect, which gives the beam something to choose."""
    torch.manual_seed(0)
    sizes = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "hidden": 32}
    if kind == "transformer":
        model, rate, steps = Transformer(shared_vocabulary=False, heads=2, feed_forward=64, **sizes), 3e-3, 200
    else:
        model, rate, steps = Seq2Seq(embedding=16, attention=kind, **sizes), 1e-2, 45
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        sentences = [
            torch.randint(4, VOCABULARY, (length,), generator=generator).tolist()
            for length in torch.randint(1, 9, (24,), generator=generator).tolist()
        ]
        source, source_length = pad([[*words, EOS] for words in sentences])
        target, target_length = pad([[BOS, *reversed(words), EOS] for words in sentences])
        logits = model.project(model(source, source_length, target[:, :-1], target_length - 1))
        F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD).backward()
        optimiser.step()
        optimiser.zero_grad()
    return model


MODELS = [(kind, torch.float32) for kind in (None, *SCORES, "transformer")]
MODELS += [("transformer", dtype) for dtype in (torch.bfloat16, torch.float16)]


@pytest.fixture(scope="module", params=MODELS, ids=lambda param: f"{param[0]}-{param[1]}")
def model(request):
    kind, dtype = request.param
    return trained(kind).to(dtype)


def tolerance(model):
    """Of scores, which are sums of some ten log-probabilities."""
    return 1e-4 if model.projection.weight.dtype == torch.float32 else 0.1


LINES = """\
5 6 7
9
20 21 22 23 4 5 6
8 8
10 11 12 13
14 15 16 17 18
19 4 19 4 19 4 19 4
7 9 11 13 15
""".splitlines()


@pytest.mark.parametrize("beam_size", [1, 4])
def test_e07_translations_do_not_depend_on_the_batch(model, beam_size):
    def translate(lines, batch_size):
        return translate_lines(
            model, Words(), Words(), lines, SearchOptions(beam_size=beam_size, n_best=beam_size), batch_size=batch_size
        )

    expected = translate(LINES, 1)
    assert len({group[0].text for group in expected}) == len(LINES)
    for batch_size in (1, 3, 8):
        for turned in (False, True):
            found = translate(LINES[::-1] if turned else LINES, batch_size)
            found = found[::-1] if turned else found
            for mine, right in zip(found, expected, strict=True):
                assert [translation.text for translation in mine] == [translation.text for translation in right]
                assert [t.score for t in mine] == pytest.approx([t.score for t in right], abs=tolerance(model))


def test_e07_beam_of_one_equals_greedy(model):
    source, length = pad([[*row, EOS] for row in Words().encode(LINES)])
    greedy = [group[0] for group in greedy_search(model, source, length)]
    beam = [group[0] for group in beam_search(model, source, length)]
    assert [hypothesis.tokens for hypothesis in beam] == [hypothesis.tokens for hypothesis in greedy]
    assert [h.score for h in beam] == pytest.approx([h.score for h in greedy], abs=tolerance(model))
    assert sum(hypothesis.finished for hypothesis in greedy) >= 6  # it has learned to stop


def test_e07_scores_are_those_of_the_teacher_forced_model(model):
    """Search and training see the same model: score what the beam found in one parallel pass."""
    source, length = pad([[*row, EOS] for row in Words().encode(LINES)])
    options = SearchOptions(beam_size=4, n_best=4, length_penalty=0.7)
    for row, group in enumerate(search(model, source, length, options)):
        for hypothesis in group:
            target = torch.tensor([[BOS, *hypothesis.tokens, *([EOS] if hypothesis.finished else [])]])
            steps = torch.tensor([target.shape[1] - 1])
            alone, its_length = source[row : row + 1, : length[row]], length[row : row + 1]
            with torch.no_grad():
                hidden = model.eval()(alone, its_length, target[:, :-1], steps)
            log_probs = model.project(hidden)[0].float().log_softmax(-1)
            total = log_probs.gather(1, target[0, 1:, None]).sum().item()
            assert hypothesis.log_probability == pytest.approx(total, abs=tolerance(model))
            assert hypothesis.score == pytest.approx(total / ((5 + steps.item()) / 6) ** 0.7, abs=tolerance(model))


def test_e02_empty_line_gives_an_empty_translation_and_changes_no_other(model):
    for empty in ("", "   ", "\t"):
        found = translate_lines(model, Words(), Words(), [empty, "5 6 7"])
        assert found[0] == [Translation("", 0.0)]
        assert found[1] == translate_lines(model, Words(), Words(), ["5 6 7"])[0]
    five = translate_lines(model, Words(), Words(), [*LINES[:2], "", *LINES[2:4]], SearchOptions(beam_size=3))
    assert [len(group) for group in five] == [1] * 5 and five[2][0].text == ""
