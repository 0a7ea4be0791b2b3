"""E03: sub-words know their training text; an unknown character is one UNK; sizes are told."""

import random

import pytest

from hotloop.data.text.normalisation import normalise
from hotloop.data.text.tokenizer import Tokenizer, TokenizerOptions, count_words, load_tokenizer, train_tokenizer
from hotloop.errors import UserError
from hotloop.vocabulary import BOS, EOS, PAD, SPECIALS, UNK

DRAW = random.Random(0)
SYLLABLES = [a + b for a in "bcdfglmnprst" for b in "aéiou"]
LEXICON = sorted({"".join(DRAW.choices(SYLLABLES, k=DRAW.randint(1, 3))) for _ in range(60)})[:40]
BT200 = ["  ".join(DRAW.choices(LEXICON, k=DRAW.randint(3, 12))) + " ." for _ in range(200)]


@pytest.fixture(scope="module", params=["bpe", "unigram", "word"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    lines = [normalise(line) for line in BT200]
    options = TokenizerOptions(kind=request.param, vocabulary_size=120, min_frequency=1)
    return train_tokenizer(count_words(lines), options)


def test_e03_the_training_text_has_no_unknown_and_survives(tokenizer: Tokenizer) -> None:
    lines = [normalise(line) for line in BT200]
    rows = tokenizer.encode(lines)
    assert not [row for row in rows if UNK in row]
    assert tokenizer.decode(rows) == lines


def test_e03_one_unknown_character_is_one_unk_and_never_written(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode(["Ω"]) == [[UNK]]
    everything = tokenizer.decode([list(range(tokenizer.size)), [PAD, UNK, BOS, EOS]])
    assert everything[1] == ""
    assert not [name for name in (*SPECIALS, "⁇", "hotloop:") if name in everything[0]]


def test_e03_a_size_other_than_the_tokenisers_is_told_with_both_numbers(tokenizer: Tokenizer) -> None:
    wrong = {**tokenizer.state(), "size": 7}
    with pytest.raises(UserError, match="7") as told:
        load_tokenizer(wrong)
    assert any(str(number) in str(told.value) for number in (tokenizer.size, tokenizer.size - len(SPECIALS)))


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_e03_a_vocabulary_larger_than_the_text_can_give(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    options = TokenizerOptions(kind=kind, vocabulary_size=4_000, min_frequency=1)
    tokenizer = train_tokenizer(count_words(["un chat noir"]), options)
    assert tokenizer.size < 4_000
    assert tokenizer.decode(tokenizer.encode(["noir chat un"])) == ["noir chat un"]
    assert kind == "word" or f"4000 lowered to {tokenizer.size}" in caplog.text
