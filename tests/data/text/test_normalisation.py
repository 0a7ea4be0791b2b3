"""The one form of text."""

import random
import unicodedata

import pytest

from hotloop.data.text.normalisation import check_unicode_form, detokenize, normalise
from hotloop.errors import UserError


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("  le\u00a0 chat \t noir\u202f! ", "le chat noir !"),
        ("a\u2028b\u0085c\x0bd\x0ce", "a b c d e"),
        ("a\x00b\x1fc\x7fd\ufeff", "a b c d"),
        ("e\u0301te\u0301", "été"),
        ("\u3000", ""),
        ("", ""),
    ],
)
def test_white_space_controls_and_composition(raw: str, clean: str) -> None:
    assert normalise(raw) == clean


def test_options() -> None:
    assert normalise("ﬁn №1") == "ﬁn №1"
    assert normalise("ﬁn №1", unicode_form="nfkc") == "fin No1"
    assert normalise("e\u0301", unicode_form="none") == "e\u0301"
    assert normalise("ÉTÉ Straße", lowercase=True) == "été straße"
    with pytest.raises(UserError, match="nfd"):
        check_unicode_form("nfd")


@pytest.mark.parametrize("unicode_form", ["nfc", "nfkc", "none"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_twice_is_once(unicode_form: str, lowercase: bool) -> None:
    draw = random.Random(1)
    for _ in range(3_000):
        text = "".join(chr(draw.choice([draw.randrange(0x2FF), draw.randrange(0xD800), 0x130])) for _ in range(8))
        once = normalise(text, unicode_form=unicode_form, lowercase=lowercase)
        assert normalise(once, unicode_form=unicode_form, lowercase=lowercase) == once
        assert "  " not in once
        assert once == once.strip()
        if unicode_form == "nfc":
            assert unicodedata.is_normalized("NFC", once)


def test_tokenised_text_becomes_natural() -> None:
    tokenised = ["c&apos; est vrai , n&apos; est-ce pas ?", "", "Il dit : &quot; oui &quot; ."]
    assert detokenize(tokenised, "fr")[:2] == ["c'est vrai, n'est-ce pas ?", ""]
    assert detokenize(["It &apos;s fine , isn &apos;t it ?"], "en") == ["It's fine, isn't it?"]
