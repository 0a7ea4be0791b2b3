from collections import Counter

import pytest

from hotloop.data.text.subword_tokenizer import SubwordTokenizer
from hotloop.data.text.tokenizer import count_words
from hotloop.data.text.word_tokenizer import WordTokenizer
from hotloop.decoding.hypothesis import Hypothesis
from hotloop.decoding.lines import texts_of
from hotloop.decoding.unknown import replace_unknown, surface_words
from hotloop.vocabulary import UNK

TEXT = [
    "le chat de l'homme, mange la souris. « Il dort. » «Oui»",
    "the cat, sees the man, and eats. (a) 's don't <unk>",
]
WORDS = WordTokenizer.train(count_words(TEXT), size=100)
PIECES = SubwordTokenizer.train(count_words(TEXT * 20), kind="bpe", size=60)


def at(tokenizer, line, word):
    """The first place of the token that holds `word` as it is written."""
    return surface_words(tokenizer, line).index(word)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("le chat", ["le", "chat"]),
        ("le Ravachol", ["le", "Ravachol"]),
        ("l'Homonculus, mange.", ["l'", "Homonculus", ",", "mange", "."]),
        ("«Ravachol»", ["«", "Ravachol", "»"]),
        ("1.234,5 chats", ["1.234,5", "chats"]),
        ("Ravachol;Zola", ["Ravachol", ";", "Zola"]),  # nothing of it is known
        ("", []),
    ],
)
def test_words_of_the_source_are_found_as_they_are_written(line, expected):
    assert surface_words(WORDS, line) == expected
    assert len(expected) == len(WORDS.encode([line])[0])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("le souriscat dort", {"le", "souriscat", "dort"}),
        ("l'homme, 東京.", {"l", "homme", "東京", ",", ".", "'"}),
        ("Jean-Łukasz mange 3,14", {"Jean-Łukasz", "mange", "3,14"}),
        ("😀😀 !", {"😀😀", "!"}),
    ],
)
def test_of_a_word_in_pieces_the_whole_word_is_taken(line, expected):
    found = surface_words(PIECES, line)
    assert len(found) == len(PIECES.encode([line])[0])
    assert set(found) <= expected and set(found) - {",", ".", "'"} == expected - {",", ".", "'"}


def test_an_unknown_word_becomes_the_word_looked_at():
    line = "le chat Ravachol mange"
    tokens = WORDS.encode(["the cat, Zzyzx, eats"])[0]
    assert tokens.count(UNK) == 1
    looked_at = [at(WORDS, line, "Ravachol")] * len(tokens)
    assert replace_unknown(WORDS, WORDS, line, tokens, looked_at) == "the cat, Ravachol, eats"
    assert replace_unknown(WORDS, WORDS, line, tokens[:2], looked_at[:2]) == "the cat"


def test_several_unknown_words_each_have_their_own():
    line = "Aaa Bbb Ccc"
    assert replace_unknown(WORDS, WORDS, line, [UNK, *WORDS.encode(["sees"])[0], UNK, UNK], [2, 0, 0, 1]) == (
        "Ccc sees Aaa Bbb"
    )


def test_letters_that_look_like_the_mark_of_an_unknown_word_stay():
    [literal] = WORDS.encode(["<unk>"])
    assert UNK not in literal and WORDS.decode([literal]) == ["<unk>"]
    line = "Aaa <unk>"
    for tokens, expected in (
        ([*literal, UNK], "<unk> Aaa"),
        ([UNK, *literal], "Aaa <unk>"),
        ([*literal, UNK, *literal], "<unk> Aaa <unk>"),
    ):
        assert replace_unknown(WORDS, WORDS, line, tokens, [0] * len(tokens)) == expected
    assert replace_unknown(WORDS, WORDS, "<unk> Aaa", [UNK, UNK], [3, 3]) == "Aaa Aaa"


def test_sub_words_around_an_unknown_character_stay():
    [cat] = PIECES.encode(["the cat"])
    assert replace_unknown(
        PIECES, PIECES, "le 東京", [*cat, UNK], [at(PIECES, "le 東京", "東京")] * (len(cat) + 1)
    ) == ("the cat 東京")


def test_only_what_the_search_looked_for_is_replaced():
    tokens = [*WORDS.encode(["cat"])[0], UNK]
    plain, filled = (Hypothesis(tokens, 0.0, 0.0, True, looked_at) for looked_at in (None, [0, 1]))
    assert texts_of(WORDS, WORDS, ["le Ravachol"] * 2, [plain, filled]) == ["cat", "cat Ravachol"]


def test_text_that_came_tokenised_is_filled_before_it_is_made_natural():
    tokenizer = WordTokenizer.train(Counter({"it": 1, "'s": 1, ".": 1}), size=50, language="en")
    tokens = [*tokenizer.encode(["it 's"])[0], UNK, *tokenizer.encode(["."])[0]]
    assert replace_unknown(WORDS, tokenizer, "Ravachol .", tokens, [0] * 4) == "it's Ravachol."
