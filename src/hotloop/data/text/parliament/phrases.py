"""Draws words and builds noun phrases from them."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from hotloop.data.text.parliament.lexicon import Adjective, Lexicon, Name, Noun, Pair, Pool, lexicon
from hotloop.data.text.parliament.morphology import IL, ILS
from hotloop.data.text.parliament.phrase import ARTICLES, HIS, HIS_FR, WE, I, Phrase, definite

Item = TypeVar("Item")


NO_TOPIC = {
    "statute",
    "agenda",
    "budget",
    "draft budget",
    "amending budget",
    "armistice",
    "timetable",
    "code of conduct",
    "mandate",
    "speech",
    "list",
    "road map",
    "work programme",
    "framework decision",
    "map",
    "questionnaire",
    "brochure",
    "pact",
    "motion",
    "annex",
    "charter",
}


WITH_AIM = {"programme", "project", "strategy", "plan", "measure", "initiative", "policy", "campaign", "pilot project"}


ONLY_INDEFINITE = {"genuine", "good", "bad", "other", "far-reaching", "heavy"}  # adjectives before the noun


BODIES = {
    "company",
    "region",
    "island",
    "city",
    "university",
    "trade union",
    "minority",
    "hospital",
    "small business",
    "library",
    "family",
}  # groups that are no people: "that" in English, not "who"


REGIONS = (
    Pair("en Europe", "in Europe"),
    Pair("dans les régions rurales", "in rural areas"),
    Pair("dans les grandes villes", "in the big cities"),
    Pair("dans le monde", "in the world"),
    Pair("dans les pays en développement", "in developing countries"),
    Pair("dans la zone euro", "in the euro area"),
    Pair("en Afrique", "in Africa"),
    Pair("dans les États membres", "in the Member States"),
    Pair("dans les îles", "on the islands"),
    Pair("dans les Balkans", "in the Balkans"),
    Pair("en Méditerranée", "in the Mediterranean"),
    Pair("en Amérique latine", "in Latin America"),
    Pair("en Asie", "in Asia"),
    Pair("dans les régions de montagne", "in mountain areas"),
)


LIVES = (
    Pair("ont besoin de notre aide", "need our help"),
    Pair("vivent dans les régions rurales", "live in rural areas"),
    Pair("travaillent la nuit", "work at night"),
    Pair("ont tout perdu", "have lost everything"),
    Pair("attendent une réponse", "are waiting for an answer"),
    Pair("respectent les règles", "respect the rules"),
    Pair("ont quitté leur pays", "have left their country"),
    Pair("nous écoutent aujourd'hui", "are listening to us today"),
    Pair("souffrent de la crise", "are suffering from the crisis"),
    Pair("paient leurs impôts", "pay their taxes"),
    Pair("ne gagnent pas assez", "do not earn enough"),
    Pair("vivent à l'étranger", "live abroad"),
    Pair("nous ont écrit", "wrote to us"),
    Pair("n'ont pas le droit de vote", "do not have the right to vote"),
)


class Words:
    """Draws words and builds phrases from them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random
        self.lexicon: Lexicon = lexicon()

    # -- chance ---------------------------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def draw(self, pool: Pool[Item]) -> Item:
        return pool.entries[int(self.random() * pool.size)]

    def one_of(self, items: Sequence[Item]) -> Item:
        return items[int(self.random() * len(items))]

    # -- noun phrases ---------------------------------------------------------------------------------------------

    def noun(
        self,
        noun: Noun,
        determiner: str,
        *,
        plural: bool = False,
        before: Adjective | None = None,
        after: Adjective | None = None,
        owner: Phrase | None = None,
        topic: tuple[str, str] = ("", ""),
        article: bool = True,
    ) -> Phrase:
        """A noun phrase; `owner` makes son/his or, with the determiner "of", le … de la Commission.

        Without `article`, English has none for "the" (les agriculteurs: farmers).
        """
        agreement = noun.feminine + 2 * plural
        index = 2 if plural else noun.feminine
        fr, en = noun.forms[plural], noun.english[plural]
        if after:
            fr, en = f"{fr} {after.forms[agreement]}", f"{after.english} {en}"
        if before:
            fr, en = f"{before.forms[agreement]} {fr}", f"{before.english} {en}"
        fr_determiner = determiner
        en_determiner = {"the": "the " if article else "", "a": "" if plural else "a ", "our": "our "}.get(
            determiner, ""
        )
        if determiner == "this":
            en_determiner = "these " if plural else "this "
        elif determiner == "a" and not plural and before and before.english == "other":
            en_determiner = "an"  # another
        elif determiner == "of":
            assert owner is not None
            fr_determiner, en_determiner = "the", owner.genitive + " "
            fr = f"{fr} {owner.de}"
        elif determiner == "own":
            assert owner is not None
            possessive = HIS_FR[owner.person][index]
            en_determiner = HIS[owner.pronoun] + " "
            forms = (possessive, "de " + possessive, "à " + possessive)
        if determiner != "own":
            rows = ARTICLES[fr_determiner]
            plain = rows[0][index]
            forms = (plain, rows[1][index], rows[2][index]) if len(rows) == 3 else (plain, "de " + plain, "à " + plain)
            if determiner == "a" and plural and before:
                forms = ("de", "de", "à de")
        fr += topic[0]
        return Phrase(
            f"{forms[0]} {fr}",
            f"{forms[1]} {fr}",
            f"{forms[2]} {fr}",
            en_determiner + en + topic[1],
            agreement,
            "they" if plural else "it",
            ILS if plural else IL,
            determiner in ("the", "this") and article and not topic[0],
        )

    def document(
        self, letter: str, *, definite_only: bool = False, quality: bool = True, subject: Phrase | None = None
    ) -> Phrase:
        """A text, treaty, measure or norm: la nouvelle directive européenne sur la pêche."""
        lex = self.lexicon
        noun = self.draw(lex.nouns[letter])
        kind = "text" if letter in "TRC" else "body" if letter == "B" else "measure"
        plural = self.chance(0.2)
        before = self.draw(lex.before["norm" if letter == "N" else kind]) if self.chance(0.13) else None
        after = None
        owner = None
        topic = ("", "")
        draw = self.random()
        if draw < 0.24:
            relation = {"M": "measure", "N": "norm", "C": "treaty", "B": "body"}.get(letter, "text")
            after = self.draw(lex.relation[relation])
        elif draw < 0.36 and letter != "C" and quality and before is None:
            after = self.draw(lex.quality["norm" if letter == "N" else kind])
        if before and before.english == "first":
            after = None  # no first final position
        if after and (after.english in noun.english[0] or after.forms[noun.feminine] in noun.forms[0]):
            after = None  # no position commune commune
        if letter in "TRC" and self.chance(0.3) and noun.english[0] not in NO_TOPIC:
            theme = definite(self.draw(lex.generic["D"]))
            topic = (" sur " + theme.fr, " on " + theme.en)
        elif letter == "M" and noun.english[0] in WITH_AIM and self.chance(0.3):
            problem = self.chance(0.5)
            theme = definite(self.draw(lex.generic["P" if problem else "G"]))
            topic = (
                (" contre " + theme.fr, " against " + theme.en)
                if problem
                else (" pour " + theme.fr, " for " + theme.en)
            )
        draw = self.random()
        if before and before.english in ONLY_INDEFINITE and definite_only:
            before = None
        if before and before.english in ONLY_INDEFINITE:
            determiner = "a"
        elif (before and before.english == "first") or draw < 0.42 or (definite_only and draw < 0.6):
            determiner = "the"
        elif draw < 0.66 and not definite_only:
            determiner = "a"
        elif draw < 0.78:
            determiner = "this"
        elif draw < 0.84 and letter != "C":
            determiner = "our"
        elif draw < 0.9 and subject is not None and subject.pronoun not in ("I", "you") and letter not in "CNB":
            determiner, owner = "own", subject
        elif letter in "TRMB":
            determiner, owner = "of", self.owner(subject)
        else:
            determiner = "the"
        return self.noun(noun, determiner, plural=plural, before=before, after=after, owner=owner, topic=topic)

    def owner(self, subject: Phrase | None) -> Phrase:
        """An institution, country or person other than the subject."""
        while True:
            draw = self.random()
            lex = self.lexicon
            pool = lex.institutions if draw < 0.6 else lex.people if draw < 0.8 else lex.countries
            phrase = definite(self.draw(pool))
            if subject is None or phrase.fr not in subject.fr:
                return phrase

    def group(self, *, generic: bool = True) -> Phrase:
        """People in the plural: les jeunes agriculteurs, ces pêcheurs portugais."""
        lex = self.lexicon
        noun = self.draw(lex.nouns["X"])
        after = self.draw(lex.nationalities) if self.chance(0.25) else None
        before = self.draw(lex.before["people"]) if self.chance(0.1) else None
        if noun.english[0] in BODIES or noun.english[0] in ("child", "pensioner", "woman voter", "unemployed person"):
            before = None
        human = noun.english[0] not in BODIES
        if human and generic and self.chance(0.15):
            relative = self.one_of(LIVES)
            people = self.noun(noun, "the", plural=True, after=after)
            return people.extended(" qui " + relative.fr, " who " + relative.en)
        draw = self.random()
        if not generic or draw < 0.2:
            return self.noun(noun, "this" if draw < 0.5 else "our", plural=True, after=after, before=before)
        return self.noun(noun, "the", plural=True, article=False, after=after, before=before)

    def official(self, *, plain: bool = False) -> Phrase:
        """Somebody in office: le ministre polonais, la commissaire, les experts, la ministre de l'Énergie."""
        lex = self.lexicon
        noun = self.draw(lex.nouns["O"])
        plural = self.chance(0.2)
        after = None
        topic = ("", "")
        draw = self.random()
        title = noun.english[0]
        if not plain and title in ("minister", "State Secretary") and draw < 0.5:
            theme = definite(self.draw(lex.generic["D"]))
            topic = (" chargé{} de ".format(("", "e", "s", "es")[noun.feminine + 2 * plural]), " for " + theme.en)
            topic = (topic[0].removesuffix(" de ") + " " + theme.de, topic[1])
        elif not plain and draw < 0.3 and title not in ("rapporteur", "Commissioner", "Vice-President", "President"):
            after = self.draw(lex.nationalities)
        phrase = self.noun(noun, "the", plural=plural, after=after, topic=topic)
        if not plural:
            phrase.pronoun = "she" if noun.feminine else "he"
        return phrase

    def generic(self, letter: str) -> Phrase:
        """A problem, a goal or a field: le chômage, unemployment; sometimes with a place."""
        phrase = definite(self.draw(self.lexicon.generic[letter]))
        if letter in "PG" and self.chance(0.2):
            place = self.region()
            phrase = phrase.extended(" " + place.fr, " " + place.en)
        return phrase

    def event(self, *, definite_only: bool = False, quality: bool = True) -> Phrase:
        """A gathering: la prochaine conférence internationale sur l'énergie."""
        lex = self.lexicon
        noun = self.draw(lex.nouns["E"])
        after = None
        draw = self.random()
        if draw < 0.3 and noun.english[0] not in ("vote", "election", "referendum", "sitting"):
            after = self.draw(lex.relation["event"])
        elif draw < 0.4 and quality:
            after = self.draw(lex.quality["event"])
        topic = ("", "")
        if noun.english[0] not in (
            "sitting",
            "vote",
            "election",
            "ceremony",
            "visit",
            "fair",
            "festival",
        ) and self.chance(0.35):
            theme = definite(self.draw(lex.generic["D"]))
            topic = (" sur " + theme.fr, " on " + theme.en)
        determiner = "the" if definite_only or self.chance(0.6) else "this" if self.chance(0.4) else "a"
        return self.noun(noun, determiner, plural=self.chance(0.15), after=after, topic=topic)

    def region(self) -> Pair:
        """Where: en France, in France; à Vienne, in Vienna; dans les régions rurales."""
        draw = self.random()
        if draw < 0.55:
            return self.in_country(self.draw(self.lexicon.countries))
        if draw < 0.7:
            city = self.draw(self.lexicon.cities)
            return Pair("à " + city.fr, "in " + city.en)
        return self.one_of(REGIONS)

    @staticmethod
    def in_country(name: Name) -> Pair:
        """en France, au Portugal, aux Pays-Bas, à Malte; feminine names and those in a vowel take en."""
        if not name.article:
            return Pair("à " + name.rest, "in " + name.english)
        if name.article == "les":
            return Pair("aux " + name.rest, "in " + name.english)
        if name.article == "la" or name.rest[0] in "AEIOUÉ":
            return Pair("en " + name.rest, "in " + name.english)
        return Pair("au " + name.rest, "in " + name.english)

    @staticmethod
    def from_country(name: Name) -> str:
        """de France, du Portugal, des Pays-Bas, de Malte."""
        if name.article == "les":
            return "des " + name.rest
        if name.article == "le" and name.rest[0] not in "AEIOUÉ":
            return "du " + name.rest
        return "de " + name.rest

    def agent(self, *, plain: bool = False) -> Phrase:
        """Who acts in politics, in the third person: an institution, an official, a person, a country."""
        lex = self.lexicon
        draw = self.random()
        if draw < 0.36:
            return definite(self.draw(lex.institutions))
        if draw < 0.60:
            return self.official(plain=plain)
        if draw < 0.78:
            return definite(self.draw(lex.people))
        if draw < 0.88:
            return definite(self.draw(lex.countries))
        if draw < 0.94:
            nation = self.draw(lex.nationalities)
            if self.chance(0.4) or nation.english == "European":
                return definite(
                    Name("la", f"délégation {nation.forms[1]}", 1, f"the {nation.english} delegation", "it")
                )
            return definite(Name("le", f"gouvernement {nation.forms[0]}", 0, f"the {nation.english} Government", "it"))
        theme = definite(self.draw(lex.generic["D"]))
        return definite(Name("la", f"commission {theme.de}", 1, f"the committee on {theme.en}", "it"))

    def speaker(self) -> Phrase:
        """An agent, or nous or je."""
        draw = self.random()
        return WE if draw < 0.16 else I if draw < 0.22 else self.agent()
