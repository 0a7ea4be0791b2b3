"""Tokenisers: lossless, deterministic, deaf to control words in text, and careful with strangers' files."""

import base64
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hotloop.data.text.normalisation import normalise
from hotloop.data.text.tokenizer import (
    KINDS,
    Tokenizer,
    TokenizerOptions,
    count_words,
    load_tokenizer,
    train_tokenizer,
)
from hotloop.data.text.word_tokenizer import split_word
from hotloop.errors import UserError
from hotloop.vocabulary import BOS, EOS, PAD, SPECIALS, UNK

TEXT = [
    "L'Union européenne, c'est 27 pays : n'est-ce pas ?",
    "Aujourd'hui, l'article 3,14 coûte 1.000.000€ (environ).",
    "Parliament's members don't know; it's \"over\"...",
    "<pad> </s> <unk> <bos> [UNK] &apos; a_b x\u2019y",
    "A a b",
] * 3


def train(kind: str, lines: list[str] = TEXT, size: int = 400, **options: object) -> Tokenizer:
    return train_tokenizer(
        count_words(lines),
        TokenizerOptions(kind=kind, vocabulary_size=size, min_frequency=1, **options),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_known_text_survives_the_round_trip_without_unknowns(kind: str) -> None:
    tokenizer = train(kind)
    rows = tokenizer.encode(TEXT)
    assert tokenizer.decode(rows) == TEXT
    assert not {PAD, UNK, BOS, EOS} & {i for row in rows for i in row}
    assert max(i for row in rows for i in row) < tokenizer.size <= 400


@pytest.mark.parametrize("kind", KINDS)
def test_any_normalised_text_survives_when_it_was_learnt(kind: str) -> None:
    draw = random.Random(3)
    alphabet = "abcéœß0123.,'’-()\"!?«»…/&;:%_<> \u0301ñ中￭ " + "nt'sdlqu"
    lines = [normalise("".join(draw.choice(alphabet) for _ in range(draw.randrange(30)))) for _ in range(400)]
    tokenizer = train(kind, lines, size=8_000)
    assert tokenizer.decode(tokenizer.encode(lines)) == lines


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_character_is_exactly_one_unknown(kind: str) -> None:
    tokenizer = train(kind)
    (only,), around, many = tokenizer.encode(["Ω"]), tokenizer.encode(["a Ω b"])[0], tokenizer.encode(["ΩΨ"])[0]
    assert only == [UNK]
    assert around.count(UNK) == 1
    assert set(many) == {UNK}
    assert tokenizer.decode([around]) == ["a b"]
    assert tokenizer.decode([around, [UNK]], show_unknown=True) == ["a <unk> b", "<unk>"]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_encodes_to_nothing(kind: str) -> None:
    tokenizer = train(kind)
    assert tokenizer.encode([]) == []
    assert tokenizer.encode(["", "  "]) == [[], []]
    assert tokenizer.decode([[], [PAD, BOS, EOS, UNK]]) == ["", ""]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [*SPECIALS, "<s>", "</s>", "<|hotloop:eos|>", "<|hotloop:unk|>", "▁", "\u2585"])
def test_no_text_makes_a_control_id(kind: str, text: str) -> None:
    for tokenizer in (train(kind), train(kind, [*TEXT, *[f"{text} x{text}y"] * 9])):
        for row in tokenizer.encode([text, f"a {text} b", f"a{text}b"]):
            assert not {PAD, BOS, EOS} & set(row)
    # learnt, it is ordinary text, but for sentencepiece's own signs: that for a space is read as an underscore
    if kind == "word" or not ("hotloop" in text or text == "\u2585"):
        assert tokenizer.decode(tokenizer.encode([text])) == [text if kind == "word" else text.replace("▁", "_")]


@pytest.mark.parametrize("kind", KINDS)
def test_specials_in_a_row_are_left_out_of_the_text(kind: str) -> None:
    tokenizer = train(kind)
    row = tokenizer.encode(["A a b"])[0]
    assert tokenizer.decode([[BOS, *row[:1], PAD, *row[1:], EOS, PAD, PAD]]) == ["A a b"]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_readable(kind: str) -> None:
    tokenizer = train(kind)
    row = [BOS, *tokenizer.encode(["l'article, Ω"])[0], EOS]
    labels = tokenizer.pieces(row)
    assert len(labels) == len(row)
    assert (labels[0], labels[-1]) == ("<bos>", "<eos>")
    assert "<unk>" in labels
    assert all(label.isprintable() for label in labels)


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_is_plain_and_makes_the_same_tokeniser(kind: str) -> None:
    tokenizer = train(kind)
    state = tokenizer.state()
    assert all(type(value) in (str, int, bool) for value in state.values())
    again = load_tokenizer(json.loads(json.dumps(state)))
    assert again.state() == state
    assert again.size == tokenizer.size == state["size"]
    assert again.encode([*TEXT, "Ω"]) == tokenizer.encode([*TEXT, "Ω"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_tells_nothing_of_the_machine(kind: str) -> None:
    state = train(kind).state()
    content = base64.b64decode(str(state["model"])) if "model" in state else str(state).encode()
    assert b"/tmp" not in content
    assert b".tsv" not in content


@pytest.mark.parametrize("kind", KINDS)
def test_training_does_not_depend_on_the_hash_seed_or_on_word_order(kind: str) -> None:
    counts = count_words(TEXT)
    backwards = Counter(dict(reversed(counts.items())))
    options = TokenizerOptions(kind=kind, vocabulary_size=60, min_frequency=1)
    here = train_tokenizer(counts, options).state()
    assert train_tokenizer(backwards, options).state() == here
    program = (
        "import sys, json; from hotloop.data.text.tokenizer import *;"
        "counts = Counter({word: n for word, n in set(map(tuple, json.loads(sys.argv[1])))});"
        f"print(json.dumps(train_tokenizer(counts, {options!r}).state()))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        told = subprocess.run(
            [sys.executable, "-c", program, json.dumps(list(counts.items()))],
            env=environment, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert json.loads(told.stdout) == here


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_size_that_the_text_cannot_fill_is_lowered_and_logged(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = train(kind, ["un chat noir"], size=4_000)
    assert tokenizer.size < 60
    assert f"vocabulary_size 4000 lowered to {tokenizer.size}" in caplog.text
    assert tokenizer.decode(tokenizer.encode(["un chat noir"])) == ["un chat noir"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_size_too_small_to_spell_the_text_is_refused_with_the_least(kind: str) -> None:
    with pytest.raises(UserError, match=r"vocabulary_size 12 is too small.*at least (\d+)") as told:
        train(kind, size=12)
    least = int(str(told.value).split("at least ")[1].split()[0])
    assert train(kind, size=least).size <= least
    with pytest.raises(UserError, match=f"at least {least}"):
        train(kind, size=least - 1)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_rare_characters_do_not_fill_the_vocabulary(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    common, rare = ["le chat noir dort sur la table"] * 40_000, ["".join(map(chr, range(0x4E00, 0x4E00 + 300)))]
    tokenizer = train(kind, common + rare, size=100)
    assert "rare characters" in caplog.text
    assert tokenizer.size <= 100
    assert UNK not in tokenizer.encode(common[:1])[0]
    assert UNK in tokenizer.encode(rare)[0]
    roomy = train(kind, common + rare, size=1_000)
    assert UNK not in roomy.encode(rare)[0]


def test_words_are_sorted_by_frequency_then_alphabet_and_cut() -> None:
    counts = Counter({"b": 5, "a": 5, "d": 9, "rare": 1, "c": 2})
    tokenizer = train_tokenizer(counts, TokenizerOptions(kind="word", vocabulary_size=8, min_frequency=2))
    assert tokenizer.pieces(range(tokenizer.size)) == [*SPECIALS, "d", "a", "b", "c"]
    smaller = train_tokenizer(counts, TokenizerOptions(kind="word", vocabulary_size=100, min_frequency=5))
    assert smaller.size == 7
    with pytest.raises(UserError, match="min_frequency"):
        train_tokenizer(counts, TokenizerOptions(kind="word", min_frequency=10))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("l'homme,", "l'￭ homme ￭,"),
        ("Qu’est-ce", "Qu’￭ est ￭-￭ ce"),
        ("lorsqu'il", "lorsqu'￭ il"),
        ("aujourd'hui", "aujourd'hui"),
        ("Aujourd’hui.", "Aujourd’hui ￭."),
        ("quelqu'un", "quelqu'un"),
        ("don't", "do ￭n't"),
        ("it's", "it ￭'s"),
        ("parents'", "parents ￭'"),
        ("O'Brien", "O ￭'￭ Brien"),
        ("3,14%", "3,14 ￭%"),
        ("1.000.000", "1.000.000"),
        ("3.14abc", "3 ￭.￭ 14abc"),
        ("21st", "21st"),
        ("(a)...", "(￭ a ￭) ￭..."),
        ("e\u0301te\u0301", "e\u0301te\u0301"),
        ("<pad>", "<￭ pad ￭>"),
        ("--", "--"),
    ],
)
def test_how_words_are_split(text: str, tokens: str) -> None:
    assert " ".join(split_word(text)).replace("\x1f", "￭") == tokens


def test_words_carry_no_marks_so_that_one_word_has_one_id() -> None:
    tokenizer = train("word", ["homme l'homme (homme) homme, a-homme"])
    counted = Counter(i for row in tokenizer.encode(["homme l'homme (homme) homme, a-homme"]) for i in row)
    assert counted.most_common(1)[0][1] == 5


@pytest.mark.parametrize("kind", KINDS)
def test_text_that_came_tokenised_is_decoded_to_natural_text(kind: str) -> None:
    lines = ["c&apos; est vrai , oui !", "il dit : non ."]
    tokenizer = train_tokenizer(
        count_words(lines), TokenizerOptions(kind=kind, vocabulary_size=200, min_frequency=1), language="fr"
    )
    assert tokenizer.decode(tokenizer.encode(lines)) == ["c'est vrai, oui !", "il dit : non."]
    assert load_tokenizer(tokenizer.state()).decode(tokenizer.encode(lines)) == ["c'est vrai, oui !", "il dit : non."]
    if kind == "word":
        assert tokenizer.pieces(tokenizer.encode(lines)[0]) == lines[0].split()


def test_strangers_states_are_refused() -> None:
    bpe, word = train("bpe").state(), train("word").state()
    other_ids = base64.b64encode(base64.b64decode(str(bpe["model"]))[:-20]).decode()
    states: tuple[Any, ...] = (
        {},
        [],
        {"kind": "pickle"},
        {**bpe, "model": "not base64!"},
        {**bpe, "model": base64.b64encode(b"garbage").decode()},
        {**bpe, "model": other_ids},
        {**bpe, "model": ""},
        {**bpe, "model": 7},
        {**bpe, "size": 7},
        {**bpe, "language": None},
        {**word, "vocabulary": ["a"]},
        {**word, "vocabulary": "a\n\nb", "size": 7},
        {**word, "vocabulary": "a b\nc", "size": 6},
        {**word, "vocabulary": "a\na", "size": 6},
        {**word, "size": 3},
    )
    for wrong in states:
        with pytest.raises(UserError):
            load_tokenizer(wrong)


@pytest.mark.parametrize(
    "options",
    [{"kind": "char"}, {"vocabulary_size": 3}, {"vocabulary_size": 8000.0}, {"min_frequency": 0}, {"sample": 0}],
)
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(UserError, match=f"data.tokenizer.{next(iter(options))}"):
        TokenizerOptions(**options)  # type: ignore[arg-type]


def test_real_text_survives(shared_data: Path) -> None:
    path = shared_data / "europarl-fr-en" / "len15-25" / "valid.fr"
    lines = [normalise(line) for line in path.read_text(encoding="utf-8").split("\n") if line][:500]
    for kind in KINDS:
        tokenizer = train(kind, lines, size=20_000 if kind == "word" else 1_000)
        assert tokenizer.decode(tokenizer.encode(lines)) == lines
