"""Statements of one clause, and special constructions of it.

A pattern takes the drawing machine and returns a statement in both languages, unelided, without capital and full stop.
"""

from hotloop.data.text.parliament.clauses import Clauses
from hotloop.data.text.parliament.frames import dated, join, lit, number, said
from hotloop.data.text.parliament.lexicon import Pair, pairs, verb_list
from hotloop.data.text.parliament.morphology import FUTURE, IL, PAST, PRESENT
from hotloop.data.text.parliament.phrase import WE, Phrase
from hotloop.data.text.parliament.verb_groups import english_verb_group, french_verb, object_of, words

CALLS = verb_list("""inviter|e|-|-|invite
encourager|s|-|-|encourage
aider|a|-|-|help
forcer|e|-|-|force
autoriser|e|-|-|authorise
exhorter|s|-|-|urge""")
MAKING = verb_list("""préparer|a|-|T|prepare
étudier|a|-|T|study
examiner|a|-|T|examine
négocier|a|-|C|negotiate
bloquer|s|-|T|block
soutenir|s|-|T|support
défendre|s|-|G|defend
combattre|a|-|P|fight
attendre|a|-|T|await""")
VENIR, DEMANDER = verb_list("venir|e|-|-|come\ndemander|s|-|-|ask")


TASKS = pairs("""il est important de = it is important to; il est possible de = it is possible to;
    il est difficile de = it is difficult to; il est temps de = it is time to;
    il est grand temps de = it is high time to; notre devoir est de = our duty is to;
    il est inutile de = it is pointless to; il suffit de = it is enough to;
    nous avons le droit de = we have the right to; nous avons l'intention de = we intend to;
    nous avons besoin de temps pour = we need time to; je suis prêt à = I am ready to;
    nous sommes tenus de = we are obliged to; l'objectif est de = the aim is to;
    il est impossible de = it is impossible to; il est interdit de = it is forbidden to;
    il est facile de = it is easy to""")


def plain(g: Clauses) -> Pair:
    """Somebody does something, perhaps at a time."""
    tense = g.tense()
    clause = g.clause(tense, g.words.speaker())
    if g.chance(0.05):
        return join(lit("c'est pourquoi", "that is why"), clause)
    return dated(g, tense, clause)


def things(g: Clauses) -> Pair:
    """Something is done, holds or takes place."""
    tense = g.tense()
    if g.chance(0.5) or tense == PRESENT:
        return g.state(tense)
    return dated(g, tense, g.passive(tense) if g.chance(0.75) else g.gathering(tense))


def task(g: Clauses) -> Pair:
    head = g.draw(TASKS)
    return join(head, g.infinitive(WE))


def two_predicates(g: Clauses) -> Pair:
    """la Commission a retiré la directive et a annoncé un programme"""
    subject = g.words.speaker()
    first, second = g.deed(subject), g.deed(subject)
    return join(said(subject), first, lit("et", "and"), second)


def not_only(g: Clauses) -> Pair:
    subject = g.words.agent()
    first, second = g.action(subject), g.action(subject)
    if first.verb.with_etre or second.verb.with_etre:
        return two_predicates(g)
    french = french_verb(first.verb, PAST, subject, adverb="non seulement")
    english = english_verb_group(first.verb, PAST, subject, adverb="not only")
    also = words(second.verb.french.participles[0], second.verb.middle, object_of(second.verb, second.target))
    also_en = words(second.verb.english[2], second.verb.particle, second.target.en)
    return Pair(
        f"{subject.fr} {french} {object_of(first.verb, first.target)}, mais aussi {also}",
        f"{subject.en} {english} {first.target.en}, but also {also_en}",
    )


def only(g: Clauses) -> Pair:
    """nous n'avons adopté que trois amendements"""
    letter = g.one_of("TTTRCMN")
    verb, subject = g.draw(g.lexicon.direct[letter]), g.words.speaker()
    noun, count = g.draw(g.lexicon.nouns[letter]), number(g)
    return Pair(
        f"{subject.fr} ne {french_verb(verb, PAST, subject)} que {count.fr} {noun.forms[1]}",
        f"{subject.en} {english_verb_group(verb, PAST, subject)} only {count.en} {noun.english[1]}",
    )


def none(g: Clauses) -> Pair:
    """le Conseil n'a présenté aucune proposition"""
    letter = g.one_of("TTTRCMN")
    verb, subject = g.draw(g.lexicon.direct[letter]), g.words.speaker()
    noun = g.draw(g.lexicon.nouns[letter])
    tense = PAST if g.chance(0.6) else FUTURE
    aucun = "aucune" if noun.feminine else "aucun"
    return Pair(
        f"{subject.fr} ne {french_verb(verb, tense, subject)} {aucun} {noun.forms[0]}",
        f"{subject.en} {english_verb_group(verb, tense, subject, negation='not')} any {noun.english[0]}",
    )


def for_years(g: Clauses) -> Pair:
    """la Commission prépare ce rapport depuis trois ans: has been preparing it for three years"""
    verb, subject = g.one_of(MAKING), g.words.agent()
    target = g.object(verb.objects, denied=True, subject=subject)
    person = subject.english_person
    have = "has" if person == IL else "have"
    english = words(have, "been", verb.english[4]) if verb.aspect == "a" else words(have, verb.english[3])
    if g.chance(0.5):
        count = number(g)
        unit = g.one_of((("ans", "years"), ("mois", "months"), ("semaines", "weeks")))
        since = Pair(f"depuis {count.fr} {unit[0]}", f"for {count.en} {unit[1]}")
    else:
        year = 2010 - int(25 * g.words.random() ** 2)
        since = Pair(f"depuis {year}", f"since {year}")
    return Pair(
        f"{subject.fr} {french_verb(verb, PRESENT, subject)} {target.fr} {since.fr}",
        f"{subject.en} {english} {target.en} {since.en}",
    )


def just_now(g: Clauses) -> Pair:
    """le Conseil vient d'adopter le budget: has just adopted; est sur le point de: is about to"""
    subject = g.words.agent()
    action = g.action(subject, event=True)
    person = subject.english_person
    if g.chance(0.6):
        have = "has" if person == IL else "have"
        french = VENIR.french.simple[PRESENT][subject.person] + " de " + action.infinitive().fr
        return join(
            said(subject),
            lit(french, words(have, "just", action.verb.english[3], action.verb.particle, action.target.en)),
        )
    est = "sont" if subject.agreement > 1 else "est"
    be = "is" if person == IL else "are"
    return join(
        said(subject), lit(f"{est} sur le point de {action.infinitive().fr}", f"{be} about to {action.infinitive().en}")
    )


def call_on(g: Clauses) -> Pair:
    """nous avons demandé à la Commission de retirer la proposition"""
    subject = g.words.speaker()
    receiver = g.receiver(subject)
    action = g.action(receiver).infinitive()
    tense = g.one_of((PAST, PAST, PRESENT, FUTURE))
    if g.chance(0.5):
        return Pair(
            f"{subject.fr} {french_verb(DEMANDER, tense, subject)} {receiver.to} de {action.fr}",
            f"{subject.en} {english_verb_group(DEMANDER, tense, subject)} {receiver.en} to {action.en}",
        )
    verb = g.one_of(CALLS)
    if tense == PRESENT and verb.aspect == "e":
        tense = PAST
    english = english_verb_group(verb, tense, subject)
    return Pair(
        f"{subject.fr} {french_verb(verb, tense, subject)} {receiver.fr} à {action.fr}",
        f"{subject.en} {english} {receiver.en} to {action.en}",
    )


def neither(g: Clauses) -> Pair:
    """ni la Commission ni le Conseil n'ont adopté le rapport"""
    first = g.words.agent(plain=True)
    second = g.receiver(first)
    both = Phrase("", "", "", "", 2, "they", 4)
    verb = g.verb(PAST, both)
    while verb.with_etre:
        verb = g.verb(PAST, both)
    target = g.object(g.one_of(verb.objects), denied=True)
    french = french_verb(verb, PAST, both)
    return Pair(
        f"ni {first.fr} ni {second.fr} ne {french} {object_of(verb, target)}",
        f"neither {first.en} nor {second.en} {words(verb.english[2], verb.particle)} {target.en}",
    )


def together(g: Clauses) -> Pair:
    """la France et l'Espagne se sont opposées à cet accord"""
    first = g.words.agent(plain=True)
    second = g.receiver(first)
    agreement = 3 if first.agreement % 2 and second.agreement % 2 else 2
    both = Phrase(f"{first.fr} et {second.fr}", "", "", f"{first.en} and {second.en}", agreement, "they", 4)
    tense = g.tense()
    return dated(g, tense, join(said(both), g.predicate(tense, both)), 0.3)


def reasons(g: Clauses) -> Pair:
    """il y a trois raisons de soutenir ce rapport"""
    count = number(g)
    what = g.one_of(
        (lit("raisons de", "reasons to"), lit("façons de", "ways to"), lit("occasions de", "opportunities to"))
    )
    return join(lit(f"il y a {count.fr} {what.fr}", f"there are {count.en} {what.en}"), g.infinitive(WE))
