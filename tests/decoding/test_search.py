"""Greedy and beam search on models small enough to know the answer."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from hotloop.decoding import Hypothesis, SearchOptions, length_cap
from hotloop.decoding import beam_search as beam_search_of
from hotloop.decoding import greedy_search as greedy_search_of
from hotloop.decoding import search as search_of
from hotloop.decoding.history import History, Ranking
from hotloop.models.seq2seq import Seq2Seq
from hotloop.vocabulary import BOS, EOS, PAD, UNK

VOCABULARY = 7  # four specials and the words 4, 5, 6
WORDS = [4, 5, 6]


def search(model, source, source_length, *, numbers=None, **options):
    return search_of(model, source, source_length, SearchOptions(**options), numbers=numbers)


def beam_search(model, source, source_length, **options):
    return beam_search_of(model, source, source_length, SearchOptions(**options))


def greedy_search(model, source, source_length, **options):
    return [group[0] for group in greedy_search_of(model, source, source_length, SearchOptions(**options))]


@dataclass
class Prefixes:
    rows: list[tuple[int, ...]]  # source id, then the tokens fed

    def select(self, rows, *, width=1):
        return Prefixes([self.rows[row] for row in rows.tolist()])


class TableModel(nn.Module):
    """Logits looked up by (first source id, tokens so far); counts its calls and the rows of each."""

    attends = False
    source_vocabulary = target_vocabulary = VOCABULARY

    def __init__(self, logits):
        super().__init__()
        self.logits = logits
        self.rows_per_step = []

    def start(self, source, source_length, *, keep_attention=False):
        return Prefixes([(row,) for row in source[:, 0].tolist()])

    def step(self, token, state):
        assert not self.training and torch.is_inference_mode_enabled()
        self.rows_per_step.append(len(token))
        rows = [(*row, word) for row, word in zip(state.rows, token.tolist(), strict=True)]
        return torch.stack([self.logits(row[0], row[2:]) for row in rows]), Prefixes(rows)


def random_logits(seed, spread=1.5):
    def logits(sentence, words):
        generator = torch.Generator().manual_seed(hash((seed, sentence, *words)) % 2**31)
        return torch.randn(VOCABULARY, generator=generator) * spread

    return logits


def prefer(choice):
    """A model that is nearly sure of choice(sentence, words)."""

    def logits(sentence, words):
        row = torch.zeros(VOCABULARY)
        row[choice(sentence, words)] = 8.0
        return row

    return logits


def sources(*first_ids, length=4):
    source = torch.full((len(first_ids), length), 5)
    source[:, 0] = torch.tensor(first_ids)
    return source, torch.full((len(first_ids),), length)


def all_hypotheses(logits, sentence, cap, alpha, words):
    """Every finished and every cut hypothesis of a sentence."""
    found, prefixes = [], [((), 0.0)]
    for step in range(1, cap + 1):
        longer = []
        for prefix, total in prefixes:
            log_probs = logits(sentence, prefix).log_softmax(-1).tolist()
            penalty = ((5 + step) / 6) ** alpha
            ended = total + log_probs[EOS]
            found.append(Hypothesis(list(prefix), ended / penalty, ended, True))
            longer += [((*prefix, word), total + log_probs[word]) for word in words]
        prefixes = longer
    found += [Hypothesis(list(prefix), total / penalty, total, False) for prefix, total in prefixes]
    return sorted(found, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("allow_unknown", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_the_tree_finds_the_best_of_all(alpha, allow_unknown, seed):
    logits, cap = random_logits(seed), 4
    words = [UNK, *WORDS] if allow_unknown else WORDS
    wide = len(words) ** cap * 2
    found = beam_search(
        TableModel(logits), *sources(4, 5), beam_size=wide, n_best=8, length_penalty=alpha, max_length=cap,
        allow_unknown=allow_unknown,
    )  # fmt: skip
    for sentence, group in zip((4, 5), found, strict=True):
        expected = all_hypotheses(logits, sentence, cap, alpha, words)[:8]
        assert [hypothesis.tokens for hypothesis in group] == [hypothesis.tokens for hypothesis in expected]
        for mine, right in zip(group, expected, strict=True):
            assert mine.score == pytest.approx(right.score, abs=1e-4)
            assert mine.log_probability == pytest.approx(right.log_probability, abs=1e-4)
            assert mine.finished == right.finished


@pytest.mark.parametrize("beam_size", [1, 2, 3, 5])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_beam_equals_a_plain_beam_search_of_one_sentence(beam_size, alpha, seed):
    logits = random_logits(seed, spread=1.0)
    found = beam_search(
        TableModel(logits), *sources(4, 5, 6), beam_size=beam_size, n_best=beam_size, length_penalty=alpha, max_length=6
    )
    for sentence, group in zip((4, 5, 6), found, strict=True):
        expected = plain_beam_search(logits, sentence, beam_size, alpha, cap=6)
        assert [(h.tokens, h.finished) for h in group] == [(tokens, finished) for tokens, _, finished in expected]
        assert [h.score for h in group] == pytest.approx([score for _, score, _ in expected], abs=1e-5)


def plain_beam_search(logits, sentence, beam_size, alpha, cap):
    """In lists; without the early stop that cannot change the best n = beam_size."""
    live, done = [((), 0.0)], []
    for step in range(1, cap + 1):
        penalty = ((5 + step) / 6) ** alpha
        extended = []
        for prefix, total in live:
            log_probs = logits(sentence, prefix).log_softmax(-1).tolist()
            extended += [((*prefix, word), total + log_probs[word]) for word in (UNK, EOS, *WORDS)]
        extended.sort(key=lambda item: -item[1])
        done += [(list(prefix[:-1]), s / penalty, True) for prefix, s in extended[:beam_size] if prefix[-1] == EOS]
        live = [item for item in extended if item[0][-1] != EOS][:beam_size]
        done = sorted(done, key=lambda item: -item[1])[:beam_size]
        if len(done) == beam_size and done[-1][1] >= live[0][1] / penalty:
            return done
    return (done + [(list(prefix), s / penalty, False) for prefix, s in live])[:beam_size]


@pytest.mark.parametrize("seed", range(5))
def test_beam_of_one_is_greedy(seed):
    logits = random_logits(seed)
    arguments = sources(4, 5, 6, UNK)
    greedy = greedy_search(TableModel(logits), *arguments, max_length=8)
    for beam_one in (
        [group[0] for group in beam_search(TableModel(logits), *arguments, beam_size=1, max_length=8)],
        [group[0] for group in search(TableModel(logits), *arguments, max_length=8)],
    ):
        assert [(h.tokens, h.finished) for h in beam_one] == [(h.tokens, h.finished) for h in greedy]
        assert [h.score for h in beam_one] == pytest.approx([h.score for h in greedy], abs=1e-6)


def test_score_is_log_probability_with_eos_over_the_length_penalty():
    model = TableModel(prefer(lambda sentence, words: 4 if len(words) < 2 else EOS))
    step = 8 - math.log(math.exp(8) + VOCABULARY - 1)
    [hypothesis] = greedy_search(model, *sources(4), length_penalty=0.6)
    assert hypothesis.tokens == [4, 4] and hypothesis.finished
    assert hypothesis.log_probability == pytest.approx(3 * step, abs=1e-5)
    assert hypothesis.score == pytest.approx(3 * step / ((5 + 3) / 6) ** 0.6, abs=1e-5)


def test_a_longer_hypothesis_overtakes_a_finished_one_when_its_normalised_score_is_better():
    """EOS at once has p = 0.5; "4 4 4" has p = 0.48 and wins under length penalty 1, loses under 0."""

    def logits(sentence, words):
        row = torch.full((VOCABULARY,), -30.0)
        if not words:
            row[EOS], row[4] = math.log(0.5), math.log(0.5)
        else:
            row[4 if len(words) < 3 else EOS] = math.log(0.99)
        return row

    tokens = {
        alpha: beam_search(TableModel(logits), *sources(4), beam_size=2, length_penalty=alpha)[0][0].tokens
        for alpha in (0.0, 1.0)
    }
    assert tokens == {0.0: [], 1.0: [4, 4, 4]}


def test_search_stops_early_when_no_live_beam_can_win():
    def logits(sentence, words):
        row = torch.full((VOCABULARY,), 0.0)
        row[EOS] = 20.0
        return row

    model = TableModel(logits)
    [group] = beam_search(model, *sources(4), beam_size=4, n_best=1, max_length=50)
    assert group[0].tokens == [] and len(model.rows_per_step) == 1


@pytest.mark.parametrize("beam_size", [1, 3])
def test_finished_sentences_leave_the_batch(beam_size):
    ends = {4: 1, 5: 3, 6: 5}
    model = TableModel(prefer(lambda sentence, words: 4 if len(words) < ends[sentence] - 1 else EOS))
    found = search(model, *sources(6, 4, 5), beam_size=beam_size)
    assert [len(group[0].tokens) for group in found] == [4, 0, 2]
    sentences = [3, 2, 2, 1, 1]  # the first step needs one beam a sentence only
    assert model.rows_per_step == [3] + [beam_size * alive for alive in sentences[1:]]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_each_row_has_its_own_cap_whatever_its_neighbours(beam_size):
    never = lambda sentence, words: torch.tensor([0.0, 0.0, 0.0, -1e4, 2.0, 1.0, 0.0])  # noqa: E731
    source, _ = sources(4, 5, 6, length=9)
    length = torch.tensor([2, 9, 4])
    together = search(TableModel(never), source, length, beam_size=beam_size)
    assert [len(group[0].tokens) for group in together] == [12, 26, 16]
    assert not any(group[0].finished for group in together)
    for row in range(3):
        alone = search(TableModel(never), source[row : row + 1], length[row : row + 1], beam_size=beam_size)
        assert alone[0] == together[row]


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("allow_unknown", [True, False])
def test_pad_and_bos_are_never_produced_and_unk_only_if_allowed(beam_size, allow_unknown):
    def logits(sentence, words):
        if len(words) == 3:
            return torch.tensor([9.0, 0.0, 9.0, 20.0, 0.0, 0.0, 0.0])
        return torch.tensor([9.0, 8.0, 9.0, -20.0, 0.0, 1.0, 2.0])  # PAD, UNK, BOS, EOS, words

    found = search(TableModel(logits), *sources(4, 5), beam_size=beam_size, max_length=9, allow_unknown=allow_unknown)
    assert all(not {PAD, BOS} & set(group[0].tokens) for group in found)
    assert [group[0].tokens for group in found] == [[UNK] * 3 if allow_unknown else [6] * 3] * 2


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_equal_scores_are_settled_by_token_id(beam_size):
    model = TableModel(lambda sentence, words: torch.zeros(VOCABULARY))
    one = search(model, *sources(4, 5), beam_size=beam_size, n_best=beam_size, max_length=3)
    assert one[0] == one[1]
    assert one == search(model, *sources(4, 5), beam_size=beam_size, n_best=beam_size, max_length=3)
    assert one[0][0].tokens[:1] in ([], [UNK])


def test_n_best_is_sorted_and_without_repeats():
    for group in beam_search(TableModel(random_logits(3)), *sources(4, 5, 6), beam_size=5, n_best=5, max_length=6):
        scores = [h.score for h in group if h.finished]
        assert scores == sorted(scores, reverse=True)
        assert len({(tuple(h.tokens), h.finished) for h in group}) == len(group) == 5


def test_a_tree_smaller_than_the_beam_gives_what_there_is():
    model = TableModel(random_logits(0))
    [group] = beam_search(model, *sources(4), beam_size=50, n_best=50, max_length=1)
    assert len(group) == 5  # EOS at once, or one of UNK, 4, 5, 6 cut by the cap
    assert [h.finished for h in group] == [True, False, False, False, False]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_half_precision_logits_are_normalised_in_float32(dtype, beam_size):
    table = random_logits(1)
    half = search(TableModel(lambda s, w: table(s, w).to(dtype)), *sources(4, 5), beam_size=beam_size, max_length=5)
    rounded = search(
        TableModel(lambda s, w: table(s, w).to(dtype).float()), *sources(4, 5), beam_size=beam_size, max_length=5
    )
    assert half == rounded


@pytest.mark.parametrize("beam_size", [1, 3])
def test_not_a_number_ends_at_the_cap_and_does_not_crash(beam_size):
    model = TableModel(lambda sentence, words: torch.full((VOCABULARY,), torch.nan))
    found = search(model, *sources(4, 5), beam_size=beam_size, max_length=4)
    assert len(found) == 2 and len(model.rows_per_step) <= 4


@pytest.mark.parametrize("beam_size", [1, 3])
def test_logits_that_share_memory_are_left_alone(beam_size):
    row = torch.zeros(VOCABULARY)

    class Constant(TableModel):
        def step(self, token, state):
            return row.expand(len(token), VOCABULARY), state

    assert len(search(Constant(None), *sources(4, 5), beam_size=beam_size, max_length=3)) == 2
    assert (row == 0).all()


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_model_is_left_in_the_mode_it_was_in(beam_size):
    model = Seq2Seq(source_vocabulary=9, target_vocabulary=9, embedding=4, hidden=4, decoder_dropout=0.5)
    model.encoder.eval()
    search(model, *sources(4, 5), beam_size=beam_size, max_length=3)
    assert model.training and model.decoder.training and not model.encoder.training
    assert search(model, *sources(4, 5), max_length=3) == search(model, *sources(4, 5), max_length=3)

    class Broken(TableModel):
        def step(self, token, state):
            raise RuntimeError("no")

    broken = Broken(None)
    with pytest.raises(RuntimeError):
        search(broken, *sources(4), beam_size=beam_size)
    assert broken.training


@pytest.mark.parametrize("beam_size", [1, 3])
def test_training_goes_on_after_a_search(beam_size):
    model = Seq2Seq(source_vocabulary=9, target_vocabulary=9, embedding=4, hidden=4)
    source, length = sources(4, 5)
    search(model, source, length, beam_size=beam_size, max_length=3)
    model.project(model(source, length, source, length)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("beam_size", [1, 3])
def test_no_sentence_gives_no_hypothesis(beam_size):
    source, length = torch.zeros(0, 4, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    assert search(TableModel(None), source, length, beam_size=beam_size) == []


def test_length_cap_depends_on_the_source_or_is_given():
    assert length_cap(7) == 24
    assert length_cap(0) == 10
    assert length_cap(7, 20) == 20
    assert length_cap(torch.tensor([0, 7])).tolist() == [10, 24]
    assert length_cap(torch.tensor([0, 7]), 5).tolist() == [5, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size = 0"),
        ({"beam_size": 2.0}, "beam_size = 2.0"),
        ({"n_best": 0}, "n_best = 0"),
        ({"beam_size": 3, "n_best": 4}, "n_best = 4 is more than beam_size = 3"),
        ({"n_best": 2}, "n_best = 2 is more than beam_size = 1"),
        ({"length_penalty": -0.1}, "length_penalty = -0.1"),
        ({"beam_size": 2, "length_penalty": math.inf}, "length_penalty = inf"),
        ({"length_penalty": math.nan}, "length_penalty = nan"),
        ({"max_length": 0}, "max_length = 0"),
        ({"beam_size": 2, "max_length": 2.5}, "max_length = 2.5"),
    ],
)
def test_options_out_of_range_are_named_with_their_value(options, message):
    with pytest.raises(ValueError, match=message):
        search(TableModel(random_logits(0)), *sources(4), **options)


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_sentence_without_any_hypothesis_gets_an_empty_one(looked_at):
    history = History(2)
    one = torch.zeros(2, 1, dtype=torch.int64)
    history.add(torch.arange(2), one, one, *([one] if looked_at else []))
    found = Ranking.empty(2, 3, torch.device("cpu")).hypotheses(history)
    assert found == [[Hypothesis([], -math.inf, -math.inf, False, [] if looked_at else None)]] * 2


@pytest.mark.parametrize(
    "options",
    [
        {"length_penalty": 5.0},
        {"length_penalty": 5.0, "beam_size": 3},
        {"length_penalty": 5.0, "min_length": 60, "max_length": 70, "beam_size": 3},
        {"sample": True, "temperature": 0.001},
        {"sample": True, "temperature": 1000.0},
    ],
    ids=str,
)
def test_options_at_their_bounds_give_finite_scores(options):
    for [hypothesis] in search(TableModel(random_logits(0)), *sources(4, 5), **options):
        assert math.isfinite(hypothesis.score)
