"""Reads the tables of nouns, adjectives and verbs into entries, and pools them so that frequent ones come often."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, NamedTuple, TypeVar

from hotloop.data.text.parliament import adjectives, nouns, verbs
from hotloop.data.text.parliament.morphology import (
    Conjugation,
    conjugate,
    english_plural,
    english_verb,
    french_feminine,
    french_plural,
)

Entry = TypeVar("Entry")


class Pair(NamedTuple):
    """A fixed piece of text in both languages."""

    fr: str
    en: str


@dataclass(frozen=True, slots=True)
class Noun:
    forms: tuple[str, str]  # singular, plural
    feminine: bool
    english: tuple[str, str]
    letter: str  # class, see nouns.py


@dataclass(frozen=True, slots=True)
class Adjective:
    forms: tuple[str, str, str, str]  # m., f., m. pl., f. pl.
    english: str


@dataclass(frozen=True, slots=True)
class Verb:
    french: Conjugation
    reflexive: bool
    with_etre: bool  # compound tenses take être
    middle: str  # what stands behind the verb: compte in tenir compte de
    preposition: str  # before the object, or empty
    aspect: str
    adverbs: str
    objects: str
    english: tuple[str, str, str, str, str]  # adopt, adopts, adopted, adopted, adopting
    particle: str  # for in vote for, or empty


@dataclass(frozen=True, slots=True)
class Name:
    """A definite name: institution, country or person."""

    article: str  # le, la, les or empty
    rest: str
    agreement: int  # m., f., m. pl., f. pl.
    english: str
    pronoun: str  # it, they, he, she


class Pool(Generic[Entry]):
    """Entries repeated in proportion to 1 / (rank + 2) ** exponent, after Zipf's law; none is left out."""

    __slots__ = ("entries", "size")

    def __init__(self, items: Sequence[Entry], *, exponent: float = 1.15) -> None:
        smallest = (len(items) + 1) ** exponent
        counts = [round(2 * smallest / (rank + 2) ** exponent) for rank in range(len(items))]
        self.entries = [item for item, count in zip(items, counts, strict=True) for _ in range(count)]
        self.size = len(self.entries)


def _rows(table: str) -> list[tuple[str, str]]:
    """(left, right) of each `left = right; …` with line breaks taken as spaces."""
    rows = (" ".join(row.split()) for row in table.split(";"))
    return [tuple(row.split(" = ")) for row in rows]  # type: ignore[misc]


def pairs(table: str) -> Pool[Pair]:
    """Fixed pieces of text, `French = English; …`."""
    return Pool([Pair(*row) for row in _rows(table)])


def _noun(left: str, right: str, letter: str) -> Noun:
    words, gender = left.rsplit(" ", 1)
    singular, _, plural = words.partition("/")
    english, _, english_many = right.partition("/")
    return Noun(
        (singular, plural or french_plural(singular)),
        gender == "f",
        (english, english_many or english_plural(english)),
        letter,
    )


def _adjective(left: str, right: str) -> Adjective:
    masculine, *others = left.split("/")
    feminine = others[0] if others else french_feminine(masculine)
    plural = others[1] if len(others) > 1 else french_plural(masculine)
    return Adjective((masculine, feminine, plural, feminine + "s"), right)


_WITH_ETRE = ("intervenir", "aller", "arriver", "partir", "venir", "revenir", "rentrer", "entrer")
_PREPOSITIONS = ("à", "de", "sur", "pour", "contre")


def _verb(line: str) -> Verb:
    """One line of verbs.py as an entry."""
    french, aspect, adverb_letter, objects, english = line.split("|")
    reflexive = french.startswith(("se ", "s'"))
    head, *middle = french.removeprefix("se ").removeprefix("s'").split(" ")
    preposition = middle.pop() if middle and middle[-1] in _PREPOSITIONS else ""
    base, _, particle = english.partition(" ")
    return Verb(
        conjugate(head),
        reflexive,
        reflexive or head in _WITH_ETRE,
        " ".join(middle),
        preposition,
        aspect,
        adverb_letter.strip("-"),
        objects.strip("-"),
        (base, *english_verb(base)),
        particle,
    )


def _name(french: str, gender: str, english: str, pronoun: str) -> Name:
    if french.startswith("l'"):
        article, rest = ("la" if gender == "f" else "le"), french[2:]
    else:
        article, _, rest = french.partition(" ")
    feminine = gender.startswith("f") or (not gender and article == "la")
    return Name(article, rest, feminine + 2 * (article == "les"), english, pronoun)


def _institution(left: str, right: str) -> Name:
    french, gender = left.rsplit(" ", 1)
    english, pronoun = right.rsplit(" ", 1)
    return _name(french, gender, english, pronoun)


def _country(left: str, right: str) -> Name:
    french, gender = left, ""
    if left.endswith((" f", " m", " mp", " fp")):
        french, gender = left.rsplit(" ", 1)
    if " " not in french and "'" not in french:
        return Name("", french, 0, right, "it")
    return _name(french, gender, right, "it")


def _generic(left: str, right: str) -> Name:
    words, gender = left.rsplit(" ", 1)
    article = "les" if gender.endswith("p") else "la" if gender == "f" else "le"
    plural = gender.endswith("p")
    return Name(article, words, gender.startswith("f") + 2 * plural, right, "it")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Every word, pooled by class."""

    nouns: dict[str, Pool[Noun]]  # by letter
    generic: dict[str, Pool[Name]]
    institutions: Pool[Name]
    countries: Pool[Name]
    people: Pool[Name]
    cities: Pool[Pair]
    before: dict[str, Pool[Adjective]]
    quality: dict[str, Pool[Adjective]]
    relation: dict[str, Pool[Adjective]]
    nationalities: Pool[Adjective]
    degrees: Pool[Pair]
    adverbs: dict[str, Pool[Pair]]
    transitive: Pool[Verb]
    common: Pool[Verb]  # the most frequent of these
    direct: dict[str, Pool[Verb]]  # transitive verbs without a preposition, by the letter of their object
    effects: Pool[Verb]
    help: Pool[Verb]
    afflictions: Pool[Verb]
    saying: Pool[Verb]
    control: Pool[Verb]
    giving: Pool[Verb]
    intransitive: Pool[Verb]
    motion_to: Pool[Verb]
    motion_from: Pool[Verb]

    def size(self) -> int:
        """Number of different lexical entries."""
        entries: set[object] = set()
        for field in self.__slots__:
            value = getattr(self, field)
            for pool in value.values() if isinstance(value, dict) else [value]:
                entries.update(str(entry) for entry in pool.entries)
        return len(entries)


def _adjectives(tables: dict[str, str]) -> dict[str, Pool[Adjective]]:
    return {key: Pool([_adjective(*row) for row in _rows(table)]) for key, table in tables.items()}


def verb_list(table: str) -> list[Verb]:
    """Verbs of a table, one a line, see verbs.py."""
    return [_verb(line) for line in table.splitlines()]


@cache
def lexicon() -> Lexicon:
    """The whole lexicon, read once."""
    transitive = verb_list(verbs.TRANSITIVE)
    people = []
    for surname in nouns.SURNAMES.split():
        people.append(Name("", f"M. {surname}", 0, f"Mr {surname}", "he"))
        people.append(Name("", f"Mme {surname}", 1, f"Mrs {surname}", "she"))
    direct = {
        letter: Pool([entry for entry in transitive if letter in entry.objects and not entry.preposition], exponent=1.2)
        for letter in "TRCMNBEXOP"
    }
    return Lexicon(
        nouns={key: Pool([_noun(*row, key) for row in _rows(table)]) for key, table in nouns.COUNTABLE.items()},
        generic={key: Pool([_generic(*row) for row in _rows(table)]) for key, table in nouns.GENERIC.items()},
        institutions=Pool([_institution(*row) for row in _rows(nouns.INSTITUTIONS)]),
        countries=Pool([_country(*row) for row in _rows(nouns.COUNTRIES)]),
        people=Pool(people, exponent=0.7),
        cities=pairs(nouns.CITIES),
        before=_adjectives(adjectives.BEFORE),
        quality=_adjectives(adjectives.QUALITY),
        relation=_adjectives(adjectives.RELATION),
        nationalities=Pool([_adjective(*row) for row in _rows(adjectives.NATIONALITIES)]),
        degrees=pairs(adjectives.DEGREES),
        adverbs={key: pairs(table) for key, table in verbs.ADVERBS.items()},
        transitive=Pool(transitive, exponent=1.2),
        common=Pool(transitive[:20]),
        direct=direct,
        effects=Pool(verb_list(verbs.EFFECTS)),
        help=Pool(verb_list(verbs.HELP)),
        afflictions=Pool(verb_list(verbs.AFFLICTIONS)),
        saying=Pool(verb_list(verbs.SAYING), exponent=1.2),
        control=Pool(verb_list(verbs.CONTROL), exponent=1.4),
        giving=Pool(verb_list(verbs.GIVING)),
        intransitive=Pool(verb_list(verbs.INTRANSITIVE)),
        motion_to=Pool(verb_list(verbs.MOTION_TO)),
        motion_from=Pool(verb_list(verbs.MOTION_FROM)),
    )
