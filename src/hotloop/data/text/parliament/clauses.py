"""Draws predicates and whole clauses, in both languages at once."""

from typing import NamedTuple

from hotloop.data.text.parliament.lexicon import Pair, Verb, verb_list
from hotloop.data.text.parliament.morphology import (
    CONDITIONAL,
    FUTURE,
    IL,
    ILS,
    JE,
    NOUS,
    PAST,
    PERFECT,
    PLUPERFECT,
    PRESENT,
    conjugate,
)
from hotloop.data.text.parliament.phrase import AVOIR, BE, ETRE, WE, Phrase
from hotloop.data.text.parliament.phrases import Words
from hotloop.data.text.parliament.verb_groups import COMPOUND, Action, english_verb_group, french_verb, object_of, words

(AVOIR_LIEU,) = verb_list("avoir lieu|e|-|-|take place")
(ARRIVER,) = verb_list("arriver|e|-|-|arrive in")


DEVOIR, POUVOIR = conjugate("devoir"), conjugate("pouvoir")


# (French verb, tense) -> English, denied English
MODALS = {
    ("devoir", PRESENT): ("must", "must not"),
    ("devoir", CONDITIONAL): ("should", "should not"),
    ("devoir", FUTURE): ("will have to", "will not have to"),
    ("devoir", PAST): ("had to", ""),
    ("pouvoir", PRESENT): ("can", "cannot"),
    ("pouvoir", CONDITIONAL): ("could", "could not"),
    ("pouvoir", FUTURE): ("will be able to", "will not be able to"),
    ("pouvoir", PAST): ("was able to", "was not able to"),
}


class Negation(NamedTuple):
    fr: str  # pas, plus, jamais, pas encore or empty
    en: str


AFFIRMED = Negation("", "")
NOT = Negation("pas", "not")
# Neither very nor more.
NOT_GRADED = {"unacceptable", "indispensable", "obsolete", "unanimous", "inadequate", "useless", "necessary"}
NOT_GRADED |= {"historic", "urgent", "decisive"}


class Clauses:
    """Draws clauses; `words` draws what they are made of."""

    def __init__(self, seed: int) -> None:
        self.words = Words(seed)
        self.lexicon = self.words.lexicon
        self.chance, self.draw, self.one_of = self.words.chance, self.words.draw, self.words.one_of

    def tense(self) -> int:
        draw = self.words.random()
        return PAST if draw < 0.45 else PRESENT if draw < 0.7 else FUTURE if draw < 0.92 else PERFECT

    def negation(self, tense: int, probability: float = 0.16) -> Negation:
        """None most of the time; plus only where English has "no longer"."""
        if not self.chance(probability):
            return AFFIRMED
        draw = self.words.random()
        if tense == PERFECT:
            return Negation("pas encore", "not yet")
        if draw < 0.2:
            return Negation("jamais", "never")
        if draw < 0.4 and tense in (PRESENT, FUTURE):
            return Negation("plus", "no longer")
        return Negation("pas", "not")

    def verb(self, tense: int, subject: Phrase, *, direct: bool = False) -> Verb:
        """A transitive verb that the tense suits; a frequent one for je, nous, vous and the conditional."""
        rare = subject.person in (IL, ILS) or tense in COMPOUND
        pool = self.lexicon.transitive if rare and tense != CONDITIONAL else self.lexicon.common
        while True:
            verb = self.draw(pool)
            if (tense != PRESENT or verb.aspect != "e") and not (direct and (verb.preposition or verb.middle)):
                return verb

    def object(self, letter: str, *, denied: bool = False, subject: Phrase | None = None) -> Phrase:
        """An object of the given class; under negation a definite one."""
        draw = self.words
        if letter == "X":
            return draw.group()
        if letter == "O":
            return draw.official() if self.chance(0.6) else self.other(subject)
        if letter == "E":
            return draw.event(definite_only=denied)
        if letter in "PGD":
            return draw.generic(letter)
        return draw.document(letter, definite_only=denied, subject=subject)

    def other(self, subject: Phrase | None) -> Phrase:
        """Somebody by name, but not the subject."""
        while True:
            phrase = self.words.agent(plain=True)
            if phrase.human and (subject is None or phrase.fr != subject.fr):
                return phrase

    def adverb(self, verb: Verb, probability: float = 0.14) -> Pair:
        if verb.adverbs and self.chance(probability):
            return self.draw(self.lexicon.adverbs[verb.adverbs])
        return Pair("", "")

    def conjugated(self, verb: Verb, tense: int, subject: Phrase, negation: Negation = AFFIRMED) -> Pair:
        """Finite verb in both languages, now and then with an adverb."""
        adverb = Pair("", "") if negation.fr else self.adverb(verb)
        french_adverb = "déjà" if tense == PERFECT and not negation.fr else adverb.fr
        if tense == PERFECT:
            adverb = Pair("", "")
        return Pair(
            french_verb(verb, tense, subject, negation=negation.fr, adverb=french_adverb),
            english_verb_group(verb, tense, subject, negation=negation.en, adverb=adverb.en),
        )

    # -- predicates: everything but the subject ---------------------------------------------------------------------

    def transitive(self, tense: int, subject: Phrase, verb: Verb | None = None, *, affirmed: bool = False) -> Pair:
        """a clairement soutenu la proposition de la Commission"""
        verb = verb or self.verb(tense, subject)
        negation = AFFIRMED if affirmed else self.negation(tense)
        letter = self.one_of(verb.objects)
        target = self.object(letter, denied=bool(negation.fr), subject=subject)
        if target.specific and letter in "TRCMNB" and self.chance(0.12):
            target = self.with_relative(target, letter, subject, unlike=verb)
        group = self.conjugated(verb, tense, subject, negation)
        return Pair(f"{group.fr} {object_of(verb, target)}", f"{group.en} {target.en}")

    def deed(self, subject: Phrase, tense: int = PAST, *, unlike: Verb | None = None) -> Pair:
        """Something that is done at a time, not a state, and not what `unlike` says."""
        while True:
            verb = self.verb(tense, subject)
            if verb.aspect != "i" and verb is not unlike:
                return self.transitive(tense, subject, verb, affirmed=True)

    def with_relative(
        self, target: Phrase, letter: str, subject: Phrase | None = None, *, unlike: Verb | None = None
    ) -> Phrase:
        """le rapport que le Conseil a adopté: the participle agrees with what stands before."""
        while True:
            verb = self.draw(self.lexicon.direct[letter])
            if unlike is None or verb.french.infinitive != unlike.french.infinitive:
                break
        agent = self.receiver(subject or target)
        french = french_verb(verb, PAST, agent, agreement=target.agreement)
        english = english_verb_group(verb, PAST, agent)
        return target.extended(f" que {agent.fr} {french}", f" that {agent.en} {english}")

    def action(self, subject: Phrase, *, denied: bool = False, event: bool = False) -> Action:
        """A verb and its object; `event` asks for something that can be done once."""
        while True:
            verb = self.draw(self.lexicon.transitive)
            if not event or verb.aspect != "s":
                break
        return Action(verb, self.object(self.one_of(verb.objects), denied=denied, subject=subject), subject)

    def infinitive(self, subject: Phrase, *, denied: bool = False) -> Pair:
        """adopter le rapport, adopt the report"""
        return self.action(subject, denied=denied).infinitive()

    def modal(self, tense: int, subject: Phrase) -> Pair:
        """doit adopter le rapport"""
        modal = DEVOIR if self.chance(0.6) else POUVOIR
        tense = {PERFECT: CONDITIONAL, PLUPERFECT: CONDITIONAL}.get(tense, tense)
        if tense == PRESENT and self.chance(0.4):
            tense = CONDITIONAL
        negation = self.negation(tense, 0.12)
        english, denied = MODALS[modal.infinitive, tense]
        if negation.fr and not denied:
            negation = AFFIRMED
        elif negation.fr:
            negation = Negation("pas", "not")
        if subject.pronoun in ("we", "you", "they"):
            english, denied = english.replace("was", "were"), denied.replace("was", "were")
        action = self.infinitive(subject, denied=bool(negation.fr))
        if tense == PAST:
            finite = words(
                "ne" if negation.fr else "", AVOIR[PRESENT][subject.person], negation.fr, modal.participles[0]
            )
        else:
            finite = words("ne" if negation.fr else "", modal.simple[tense][subject.person], negation.fr)
        return Pair(f"{finite} {action.fr}", f"{denied if negation.fr else english} {action.en}")

    def control(self, tense: int, subject: Phrase) -> Pair:
        """a décidé de ne pas adopter le rapport"""
        if tense == CONDITIONAL or (tense == FUTURE and subject.person in (JE, NOUS)):
            return self.transitive(tense, subject)
        while True:
            verb = self.draw(self.lexicon.control)
            if (tense != PRESENT or verb.aspect != "e") and (tense != PERFECT or verb.aspect != "i"):
                break
        group = self.conjugated(verb, tense, subject, self.negation(tense, 0.1))
        denied = verb.english[0] in ("decide", "choose", "promise", "undertake") and self.chance(0.15)
        action = self.infinitive(subject, denied=denied)
        deny = Pair("ne pas ", "not ") if denied else Pair("", "")
        english = group.en.removesuffix(" to")
        return Pair(f"{words(group.fr, verb.preposition)} {deny.fr}{action.fr}", f"{english} {deny.en}to {action.en}")

    def giving(self, tense: int, subject: Phrase) -> Pair:
        """a transmis le rapport à la présidente"""
        verb = self.draw(self.lexicon.giving)
        negation = self.negation(tense, 0.1)
        gift = self.object(self.one_of(verb.objects), denied=bool(negation.fr), subject=subject)
        receiver = self.receiver(subject)
        group = self.conjugated(verb, tense, subject, negation)
        return Pair(f"{group.fr} {gift.fr} {receiver.to}", f"{group.en} {gift.en} to {receiver.en}")

    def other_than(self, first: Phrase) -> Phrase:
        """Another subject: nous or an agent."""
        return WE if first is not WE and self.chance(0.3) else self.receiver(first)

    def receiver(self, subject: Phrase) -> Phrase:
        while True:
            phrase = self.words.agent(plain=True)
            if phrase.fr != subject.fr:
                return phrase

    def being(self, tense: int, subject: Phrase, kind: str, *, affirmed: bool = False) -> Pair:
        """est très ambitieuse; `kind` is a class of qualities."""
        tense = {PERFECT: PRESENT, PLUPERFECT: PAST}.get(tense, tense)
        quality = self.draw(self.lexicon.quality[kind])
        degree = self.draw(self.lexicon.degrees) if self.chance(0.4) else Pair("", "")
        negation = AFFIRMED if affirmed else self.negation(tense, 0.15)
        if negation.fr == "jamais":
            negation = NOT
        if negation.fr or quality.english in NOT_GRADED:
            degree = Pair("", "")
        will, _, be = BE[tense][subject.english_person].rpartition(" ")
        be = words(will, negation.en, be) if will else words(be, negation.en)
        return Pair(
            words(
                "ne" if negation.fr else "",
                ETRE[tense][subject.person],
                negation.fr,
                degree.fr,
                quality.forms[subject.agreement],
            ),
            words(be, degree.en, quality.english),
        )

    def moving(self, tense: int, subject: Phrase) -> Pair:
        """s'est rendue aux Pays-Bas, est revenue de Vienne"""
        lex = self.lexicon
        to = self.chance(0.7)
        verb = self.draw(lex.motion_to if to else lex.motion_from)
        if self.chance(0.5):
            city = self.draw(lex.cities)
            place = Pair(("à " if to else "de ") + city.fr, city.en)
        else:
            name = self.draw(lex.countries)
            place = Pair(self.words.in_country(name).fr if to else self.words.from_country(name), name.english)
        group = self.conjugated(verb, tense, subject, self.negation(tense, 0.1))
        return Pair(f"{group.fr} {place.fr}", f"{group.en} {place.en}")

    def arriving(self, subject: Phrase) -> Pair:
        """est arrivée à Vienne"""
        city = self.draw(self.lexicon.cities)
        return Pair(f"{french_verb(ARRIVER, PAST, subject)} à {city.fr}", f"arrived in {city.en}")

    def intransitive(self, tense: int, subject: Phrase) -> Pair:
        """s'est abstenu"""
        verb = self.draw(self.lexicon.intransitive)
        return self.conjugated(verb, tense, subject, self.negation(tense))

    def predicate(self, tense: int, subject: Phrase) -> Pair:
        """What an agent does."""
        draw = self.words.random()
        if draw < 0.55:
            return self.transitive(tense, subject)
        if draw < 0.68:
            return self.modal(tense, subject)
        if draw < 0.80:
            return self.control(tense, subject)
        if draw < 0.85:
            return self.being(tense, subject, "people")
        if tense in (PRESENT, CONDITIONAL) or (tense == FUTURE and subject.person in (JE, NOUS)):
            return self.transitive(tense, subject)
        if draw < 0.93:
            return self.giving(tense, subject)
        if draw < 0.97 and subject.human:
            return self.moving(tense, subject)
        return self.intransitive(tense, subject)

    # -- whole clauses ----------------------------------------------------------------------------------------------

    def clause(self, tense: int, subject: Phrase | None = None) -> Pair:
        """A statement without capital and full stop."""
        draw = self.words.random()
        if subject is None and draw < 0.36:
            if draw < 0.12:
                return self.passive(tense)
            if draw < 0.15 and tense != PRESENT:
                return self.gathering(tense)
            return self.state(tense)
        subject = subject or self.words.speaker()
        predicate = self.predicate(tense, subject)
        return Pair(f"{subject.fr} {predicate.fr}", f"{subject.en} {predicate.en}")

    def state(self, tense: int) -> Pair:
        """How things are: cette réforme est coûteuse, le chômage menace les jeunes."""
        draw = self.words.random()
        if draw < 0.4 or tense in (CONDITIONAL, PLUPERFECT):
            return self.described(tense)
        return self.effect(tense) if draw < 0.75 else self.affliction(tense)

    def passive(self, tense: int) -> Pair:
        """la proposition a été adoptée par le Parlement"""
        letter = self.one_of("TTTRCMMNB")
        target = self.words.document(letter, definite_only=True)
        verb = self.draw(self.lexicon.direct[letter])
        negation = self.negation(tense, 0.12)
        if negation.fr not in ("", "pas encore"):
            negation = Negation("pas", "not")
        participle = verb.french.participles[target.agreement]
        ne, person, be = "ne" if negation.fr else "", target.person, BE[PAST][target.english_person]
        if tense == FUTURE:
            french = words(ne, ETRE[FUTURE][person], negation.fr, participle)
            english = words("will", negation.en, "be")
        elif tense == PRESENT:
            french = words(ne, DEVOIR.simple[PRESENT][person], negation.fr, "être", participle)
            english = words("must", negation.en, "be")
        elif tense == PERFECT:
            french = words(ne, AVOIR[PRESENT][person], negation.fr or "déjà", "été", participle)
            english = words("has" if person == IL else "have", negation.en or "already", "been")
        elif tense == CONDITIONAL:
            french = words(ne, ETRE[CONDITIONAL][person], negation.fr, participle)
            english = words("would", negation.en, "be")
        elif tense == PLUPERFECT:
            french = words(ne, AVOIR[PAST][person], negation.fr, "été", participle)
            english = words("had", negation.en, "been")
        else:
            french = words(ne, AVOIR[PRESENT][person], negation.fr, "été", participle)
            english = words(be, negation.en)
        french = words(french, verb.middle)
        by = Pair("", "")
        if self.chance(0.6):
            agent = self.words.agent(plain=True)
            by = Pair(" par " + agent.fr, " by " + agent.en)
        return Pair(f"{target.fr} {french}{by.fr}", f"{target.en} {english} {verb.english[3]}{by.en}")

    def described(self, tense: int) -> Pair:
        """cette réforme est très coûteuse"""
        letter = self.one_of("TTRMMBE")
        if letter == "E":
            subject, kind = self.words.event(definite_only=True, quality=False), "event"
        else:
            subject = self.words.document(letter, definite_only=True, quality=False)
            kind = {"M": "measure", "B": "body"}.get(letter, "text")
            if subject.specific and self.chance(0.35):
                subject = self.with_relative(subject, letter)
        predicate = self.being(tense, subject, kind)
        return Pair(f"{subject.fr} {predicate.fr}", f"{subject.en} {predicate.en}")

    def effect(self, tense: int) -> Pair:
        """cette directive protège les consommateurs"""
        letter = self.one_of("TMMNB")
        subject = self.words.document(letter, definite_only=True)
        verb = self.draw(self.lexicon.effects)
        if subject.specific and self.chance(0.35):
            subject = self.with_relative(subject, letter, unlike=verb)
        return self.acting(subject, verb, tense)

    def affliction(self, tense: int) -> Pair:
        """le chômage menace les jeunes"""
        return self.acting(self.words.generic("P"), self.draw(self.lexicon.afflictions), tense)

    def acting(self, subject: Phrase, verb: Verb, tense: int) -> Pair:
        negation = self.negation(tense)
        target = self.object(self.one_of(verb.objects))
        group = self.conjugated(verb, tense, subject, negation)
        return Pair(f"{subject.fr} {group.fr} {target.fr}", f"{subject.en} {group.en} {target.en}")

    def gathering(self, tense: int) -> Pair:
        """la conférence sur l'énergie a eu lieu à Vienne"""
        subject = self.words.event(definite_only=True)
        place = self.draw(self.lexicon.cities)
        group = self.conjugated(AVOIR_LIEU, tense, subject, self.negation(tense, 0.1))
        return Pair(f"{subject.fr} {group.fr} à {place.fr}", f"{subject.en} {group.en} in {place.en}")
