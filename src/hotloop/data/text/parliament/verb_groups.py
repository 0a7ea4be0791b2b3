"""Finite verbs with their particles, and verbs with their objects, in both languages at once.

How French tenses are translated (one rule each, so that the same French always gives the same English):
passé composé -> simple past; with déjà or pas encore -> present perfect; present -> simple present for states,
progressive for activities; future, conditional and pluperfect -> will, would, had.
"""

from typing import NamedTuple

from hotloop.data.text.parliament.lexicon import Pair, Verb
from hotloop.data.text.parliament.morphology import CONDITIONAL, FUTURE, IL, PAST, PERFECT, PLUPERFECT, PRESENT
from hotloop.data.text.parliament.phrase import AVOIR, BE, ETRE, REFLEXIVE, Phrase

COMPOUND = {PAST: PRESENT, PERFECT: PRESENT, PLUPERFECT: PAST}  # tense -> tense of the auxiliary


def words(*parts: str) -> str:
    """The parts that are not empty, with spaces between."""
    return " ".join([part for part in parts if part])


def object_of(verb: Verb, phrase: Phrase) -> str:
    """French object with the preposition the verb asks for."""
    if not verb.preposition:
        return phrase.fr
    if verb.preposition == "de":
        return phrase.de
    if verb.preposition == "à":
        return phrase.to
    return f"{verb.preposition} {phrase.fr}"


def french_verb(
    verb: Verb,
    tense: int,
    subject: Phrase,
    *,
    negation: str = "",
    adverb: str = "",
    clitic: str = "",
    agreement: int = 0,
) -> str:
    """French finite verb without subject and object: ne l'ont pas clairement soutenue.

    `agreement` is that of a direct object that stands before the verb.
    """
    reflexive = REFLEXIVE[subject.person] if verb.reflexive else ""
    if tense == PAST and verb.aspect == "i":
        finite, participle = verb.french.imperfect[subject.person], ""
    elif tense in COMPOUND:
        auxiliary = (ETRE if verb.with_etre else AVOIR)[COMPOUND[tense]][subject.person]
        if verb.with_etre:
            agreement = subject.agreement
        finite, participle = auxiliary, verb.french.participles[agreement]
    else:
        finite, participle = verb.french.simple[tense][subject.person], ""
    return words("ne" if negation else "", reflexive, clitic, finite, negation, adverb, participle, verb.middle)


def english_verb_group(verb: Verb, tense: int, subject: Phrase, *, negation: str = "", adverb: str = "") -> str:
    """English finite verb without subject and object: has not yet clearly supported."""
    base, third, past, participle, ing = verb.english
    person = subject.english_person
    if tense == PERFECT:
        have = "has" if person == IL else "have"
        middle = "not yet" if negation else "already"
        return words(have, middle, adverb, participle, verb.particle)
    if tense == PLUPERFECT:
        return words("had", negation, adverb, participle, verb.particle)
    if tense in (FUTURE, CONDITIONAL):
        return words("will" if tense == FUTURE else "would", negation, adverb, base, verb.particle)
    if tense == PAST:
        if negation == "not":
            return words("did not", adverb, base, verb.particle)
        return words(negation, adverb, past, verb.particle)
    if verb.aspect == "a" and negation != "never" and adverb not in ("often", "always"):
        return words(BE[PRESENT][person], negation, adverb, ing, verb.particle)
    if negation == "not":
        return words("does not" if person == IL else "do not", adverb, base, verb.particle)
    return words(negation, adverb, third if person == IL else base, verb.particle)


class Action(NamedTuple):
    """A verb with its object, for somebody to do."""

    verb: Verb
    target: Phrase
    subject: Phrase  # whom the reflexive pronoun of the French verb follows

    def _french(self, form: str, participle: str = "") -> str:
        reflexive = REFLEXIVE[self.subject.person] if self.verb.reflexive else ""
        return words(reflexive, form, participle, self.verb.middle, object_of(self.verb, self.target))

    def infinitive(self) -> Pair:
        """adopter le rapport, adopt the report"""
        english = words(self.verb.english[0], self.verb.particle, self.target.en)
        return Pair(self._french(self.verb.french.infinitive), english)

    def gerund(self) -> Pair:
        """adoptant le rapport, adopting the report"""
        return Pair(self._french(self.verb.french.gerund), self.ing())

    def perfect_infinitive(self) -> Pair:
        """avoir adopté le rapport, adopting the report"""
        etre = self.verb.with_etre
        participle = self.verb.french.participles[self.subject.agreement if etre else 0]
        return Pair(self._french("être" if etre else "avoir", participle), self.ing())

    def ing(self) -> str:
        return words(self.verb.english[4], self.verb.particle, self.target.en)
