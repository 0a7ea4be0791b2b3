"""A noun phrase in both languages, and the closed classes: auxiliaries, pronouns, articles.

French is put together with unelided words (`le accord`, `ne a pas`); `morphology.elide` mends the whole sentence.
"""

from dataclasses import dataclass, replace

from hotloop.data.text.parliament.lexicon import Name
from hotloop.data.text.parliament.morphology import CONDITIONAL, FUTURE, IL, ILS, JE, NOUS, PAST, PRESENT, VOUS

ETRE = {
    PRESENT: ("suis", "est", "sommes", "êtes", "sont"),
    PAST: ("étais", "était", "étions", "étiez", "étaient"),
    FUTURE: ("serai", "sera", "serons", "serez", "seront"),
    CONDITIONAL: ("serais", "serait", "serions", "seriez", "seraient"),
}


AVOIR = {PRESENT: ("ai", "a", "avons", "avez", "ont"), PAST: ("avais", "avait", "avions", "aviez", "avaient")}


BE = {
    PRESENT: ("am", "is", "are", "are", "are"),
    PAST: ("was", "was", "were", "were", "were"),
    FUTURE: ("will be",) * 5,
    CONDITIONAL: ("would be",) * 5,
}


REFLEXIVE = ("me", "se", "nous", "vous", "se")


HE_FR = ("il", "elle", "ils", "elles")  # by agreement: m., f., m. pl., f. pl.


HIM_FR = ("le", "la", "les", "les")


HIM = {"it": "it", "he": "him", "she": "her", "they": "them", "I": "me", "we": "us", "you": "you"}


HIS = {"it": "its", "he": "his", "she": "her", "they": "their", "I": "my", "we": "our", "you": "your"}


HIS_FR = (
    ("mon", "ma", "mes"),
    ("son", "sa", "ses"),
    ("notre", "notre", "nos"),
    ("votre", "votre", "vos"),
    ("leur", "leur", "leurs"),
)


ARTICLES = {
    "the": (("le", "la", "les"), ("du", "de la", "des"), ("au", "à la", "aux")),
    "a": (("un", "une", "des"), ("de un", "de une", "de"), ("à un", "à une", "à des")),
    "this": (("ce", "cette", "ces"),),
    "our": (("notre", "notre", "nos"),),
}


ENGLISH_PERSON = {"I": JE, "we": NOUS, "you": VOUS, "they": ILS}


@dataclass(slots=True)
class Phrase:
    """A noun phrase."""

    fr: str
    de: str  # with de: du rapport
    to: str  # with à: au rapport
    en: str
    agreement: int  # m., f., m. pl., f. pl.
    pronoun: str  # it, they, he, she, I, we, you
    person: int = IL  # French grammatical person
    specific: bool = True  # may take a relative clause or the genitive

    @property
    def english_person(self) -> int:
        return ENGLISH_PERSON.get(self.pronoun, IL)

    @property
    def genitive(self) -> str:
        return self.en + ("'" if self.en.endswith("s") else "'s")

    @property
    def human(self) -> bool:
        return self.pronoun in ("he", "she")

    def extended(self, fr: str, en: str) -> "Phrase":
        """The phrase with something behind it."""
        return replace(self, fr=self.fr + fr, de=self.de + fr, to=self.to + fr, en=self.en + en, specific=False)


def definite(name: Name) -> Phrase:
    """A name or generic noun with the article it always has."""
    plural = name.agreement > 1
    index = 2 if plural else name.agreement
    person = ILS if plural else IL
    if not name.article:
        return Phrase(name.rest, "de " + name.rest, "à " + name.rest, name.english, name.agreement, name.pronoun)
    (plain, of, to), rest = (forms[index] for forms in ARTICLES["the"]), name.rest
    return Phrase(f"{plain} {rest}", f"{of} {rest}", f"{to} {rest}", name.english, name.agreement, name.pronoun, person)


WE = Phrase("nous", "de nous", "à nous", "we", 2, "we", NOUS)


I = Phrase("je", "de moi", "à moi", "I", 0, "I", JE)  # noqa: E741 - the English word


YOU = Phrase("vous", "de vous", "à vous", "you", 2, "you", VOUS)
