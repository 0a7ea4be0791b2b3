"""The one form of text that everything works on: training, validation, test and inference alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Literal

from hotloop.errors import UserError

UNICODE_FORMS = ("nfc", "nfkc", "none")

# C0 control characters, DEL and the byte-order mark inside a line (left by joined files) carry no meaning.
_BLANKED = {code: " " for code in (*range(0x20), 0x7F, 0xFEFF)}


def check_unicode_form(unicode_form: str) -> None:
    """Raise UserError unless `unicode_form` is one of UNICODE_FORMS."""
    if unicode_form not in UNICODE_FORMS:
        raise UserError(f"unicode_form must be one of {', '.join(UNICODE_FORMS)}, got {unicode_form!r}")


def normalise(line: str, *, unicode_form: str = "nfc", lowercase: bool = False) -> str:
    """`line` in Unicode form NFC (or NFKC, or as it is), white space collapsed and stripped.

    White space is what Unicode calls so (no-break spaces, U+2028 and U+0085 too) and every control character.
    Normalising twice gives the same as normalising once.
    """
    if not line.isprintable():
        line = line.translate(_BLANKED)
    form: Literal["NFC", "NFKC"] | None = None
    if unicode_form != "none" and not line.isascii():
        form = "NFC" if unicode_form == "nfc" else "NFKC"
        line = unicodedata.normalize(form, line)
    if lowercase:
        line = line.lower()
        if form is not None:  # a lower-case letter may compose where the capital did not
            line = unicodedata.normalize(form, line).lower()
    return " ".join(line.split())


def detokenize(lines: Iterable[str], language: str) -> list[str]:
    """Natural text from lines tokenised in the Moses way; &apos; and its kin become characters again."""
    from sacremoses import MosesDetokenizer

    join = MosesDetokenizer(lang=language).detokenize
    return [join(line.split()) for line in lines]
