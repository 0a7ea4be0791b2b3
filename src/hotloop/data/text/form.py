"""The form of text that a model was trained on, as its checkpoint stores it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hotloop.data.text.normalisation import check_unicode_form, detokenize, normalise
from hotloop.errors import UserError


@dataclass(frozen=True)
class TextForm:
    """How text has to look for a model, and how its output becomes natural text again.

    Attributes:
        src_lang, tgt_lang: language codes.
        unicode_form: nfc, nfkc or none.
        lowercase: the model knows lower case only.
        pretokenized: the corpus came already tokenised; outputs and references are
            detokenised for scoring.
    """

    src_lang: str
    tgt_lang: str
    unicode_form: str = "nfc"
    lowercase: bool = False
    pretokenized: bool = False

    @classmethod
    def from_saved(cls, data: Mapping[str, Any]) -> "TextForm":
        """The form stored in a checkpoint. Raises UserError when it is damaged."""
        saved = data.get("form")
        try:
            form = cls(**saved)  # type: ignore[arg-type]
            check_unicode_form(form.unicode_form)
        except (TypeError, UserError) as error:
            raise UserError(f"the checkpoint's text form cannot be read: {saved!r}") from error
        return form

    def saved(self) -> dict[str, Any]:
        return asdict(self)

    def normalise(self, line: str) -> str:
        return normalise(line, unicode_form=self.unicode_form, lowercase=self.lowercase)

    def natural(self, lines: Sequence[str]) -> list[str]:
        """Target lines as natural text: detokenised if the corpus came tokenised."""
        return detokenize(lines, self.tgt_lang) if self.pretokenized else list(lines)
