"""Statements of two clauses: que, si, lorsque, bien que, relative clauses, gerunds and infinitives."""

from hotloop.data.text.parliament.clauses import Clauses
from hotloop.data.text.parliament.frames import join, lit, said, timed_clause
from hotloop.data.text.parliament.lexicon import Pair, pairs
from hotloop.data.text.parliament.morphology import CONDITIONAL, FUTURE, IL, PAST, PLUPERFECT, PRESENT, SUBJUNCTIVE
from hotloop.data.text.parliament.phrase import WE, Phrase, definite
from hotloop.data.text.parliament.verb_groups import english_verb_group, french_verb, object_of, words

CAUSES = pairs("parce que = because; car = because; puisque = since")


CONTRASTS = pairs("mais = but; alors que = whereas; tandis que = while")


FACTS = pairs("""il est clair que = it is clear that; nous savons tous que = we all know that;
    tout le monde sait que = everyone knows that; il est vrai que = it is true that;
    le fait est que = the fact is that; il va de soi que = it goes without saying that;
    rien ne prouve que = nothing proves that; on dit que = it is said that;
    l'histoire montre que = history shows that""")


WISHES = pairs("""il faut que = it is necessary that; il est essentiel que = it is essential that;
    il est important que = it is important that; il est urgent que = it is a matter of urgency that;
    nous demandons que = we ask that; je propose que = I propose that;
    il est souhaitable que = it is desirable that""")


def report(g: Clauses) -> Pair:
    """le ministre a déclaré que la Commission présenterait la proposition"""
    verb = g.draw(g.lexicon.saying)
    subject = g.words.speaker()
    if verb.aspect == "e" or g.chance(0.25):
        inner = g.clause(CONDITIONAL if g.chance(0.3) else PLUPERFECT)
        head = g.conjugated(verb, PAST, subject)
    else:
        tense = g.tense()
        inner = timed_clause(g, tense, 0.25)
        head = g.conjugated(verb, PRESENT, subject)
    return join(said(subject), head, lit("que", "that"), inner)


def fact(g: Clauses) -> Pair:
    tense = g.tense()
    return join(g.draw(FACTS), timed_clause(g, tense, 0.3))


def wish(g: Clauses) -> Pair:
    """il faut que le Conseil adopte le rapport: it is necessary that the Council adopt it, with should"""
    subject = g.words.agent()
    action = g.action(subject)
    french = french_verb(action.verb, SUBJUNCTIVE, subject)
    english = words("should", action.verb.english[0], action.verb.particle, action.target.en)
    return join(g.draw(WISHES), said(subject), lit(f"{french} {object_of(action.verb, action.target)}", english))


def although(g: Clauses) -> Pair:
    """bien que la Commission soutienne le rapport, …"""
    subject = g.words.agent()
    while True:
        action = g.action(subject)
        if action.verb.aspect == "s":
            break
    french = french_verb(action.verb, SUBJUNCTIVE, subject)
    english = english_verb_group(action.verb, PRESENT, subject)
    first = lit(
        f"bien que {subject.fr} {french} {object_of(action.verb, action.target)},",
        f"although {subject.en} {english} {action.target.en},",
    )
    tense = g.tense()
    return join(first, g.clause(tense, g.other_than(subject)))


def conditional(g: Clauses) -> Pair:
    """si le Conseil retire la proposition, nous ne pourrons pas …"""
    subject = g.receiver(WE)
    action = g.action(subject)
    denied = g.chance(0.35)
    finite = french_verb(action.verb, PRESENT, subject, negation="pas" if denied else "")
    base, third = action.verb.english[:2]
    single = subject.english_person == IL
    english = words("does not" if single else "do not", base) if denied else third if single else base
    if denied:
        action = action._replace(target=g.object(g.one_of(action.verb.objects), denied=True, subject=subject))
    first = lit(
        f"si {subject.fr} {finite} {object_of(action.verb, action.target)},",
        f"if {subject.en} {words(english, action.verb.particle)} {action.target.en},",
    )
    return join(first, g.clause(FUTURE, g.other_than(subject)))


def because(g: Clauses) -> Pair:
    tense = PAST if g.chance(0.6) else PRESENT
    return join(g.clause(tense, g.words.speaker()), g.draw(CAUSES), g.clause(g.tense()))


def contrast(g: Clauses) -> Pair:
    tense = g.tense()
    subject = g.words.agent()
    first, second = g.clause(tense, subject), g.clause(tense, g.other_than(subject))
    link = g.draw(CONTRASTS)
    return Pair(f"{first.fr}, {link.fr} {second.fr}", f"{first.en}, {link.en} {second.en}")


def whose(g: Clauses) -> Pair:
    """la Suède, dont le gouvernement a rejeté l'accord, …"""
    country = definite(g.draw(g.lexicon.countries))
    part = g.one_of(
        (lit("le gouvernement", "government"), lit("le parlement", "parliament"), lit("le président", "president"))
    )
    owner = Phrase(part.fr, "", "", part.en, 0, "it")
    inner = g.transitive(PAST, owner)
    outer = g.predicate(PAST if g.chance(0.6) else FUTURE, country)
    return Pair(
        f"{country.fr}, dont {part.fr} {inner.fr}, {outer.fr}", f"{country.en}, whose {part.en} {inner.en}, {outer.en}"
    )


def aside(g: Clauses) -> Pair:
    """M. Rossi, qui a rédigé l'étude, …: who for people, which for the rest"""
    subject = g.words.agent(plain=True)
    inner = g.transitive(PAST, subject)
    tense = g.tense()
    outer = g.predicate(tense, subject)
    who = "who" if subject.human else "which"
    return Pair(f"{subject.fr}, qui {inner.fr}, {outer.fr}", f"{subject.en}, {who} {inner.en}, {outer.en}")


def cleft(g: Clauses) -> Pair:
    """c'est la Commission qui a retiré la proposition"""
    subject = g.words.agent(plain=True)
    inner = g.transitive(PAST, subject)
    it_is = "ce sont" if subject.agreement > 1 else "c'est"
    who = "who" if subject.human else "that"
    return Pair(f"{it_is} {subject.fr} qui {inner.fr}", f"it is {subject.en} {who} {inner.en}")


def by_doing(g: Clauses) -> Pair:
    """en adoptant ce rapport, le Parlement a défendu les consommateurs"""
    subject = g.words.agent() if g.chance(0.8) else WE
    action = g.action(subject, event=True)
    means = action.gerund()
    deed = g.deed(subject, PAST if g.chance(0.6) else FUTURE, unlike=action.verb)
    return join(lit(f"en {means.fr},", f"by {means.en},"), said(subject), deed)


def after_doing(g: Clauses) -> Pair:
    """après avoir consulté les agriculteurs, la Commission a modifié la proposition"""
    subject = g.words.agent() if g.chance(0.8) else WE
    action = g.action(subject, event=True)
    before = action.perfect_infinitive()
    return join(lit(f"après {before.fr},", f"after {before.en},"), said(subject), g.deed(subject, unlike=action.verb))


def without_doing(g: Clauses) -> Pair:
    """… sans consulter le Parlement, au lieu de, avant de"""
    subject = g.words.speaker()
    link = g.one_of((lit("sans", "without"), lit("au lieu de", "instead of"), lit("avant de", "before")))
    action = g.action(subject, denied=True, event=True)
    deed = g.deed(subject, PAST if g.chance(0.7) else FUTURE, unlike=action.verb)
    return join(said(subject), deed, lit(f"{link.fr} {action.infinitive().fr}", f"{link.en} {action.ing()}"))


def in_order_to(g: Clauses) -> Pair:
    """… afin de protéger les consommateurs"""
    subject = g.words.speaker()
    deed = g.deed(subject, PAST if g.chance(0.5) else FUTURE)
    verb = g.draw(g.lexicon.help)
    target = g.object(g.one_of(verb.objects))
    link = g.one_of((lit("afin de", "in order to"), lit("pour", "to")))
    help_them = words(verb.english[0], verb.particle, target.en)
    return join(said(subject), deed, lit(f"{link.fr} {verb.french.infinitive} {target.fr}", f"{link.en} {help_them}"))


def according_to(g: Clauses) -> Pair:
    tense = g.tense()
    source = g.words.agent(plain=True)
    return join(lit(f"selon {source.fr},", f"according to {source.en},"), g.clause(tense, g.receiver(source)))


def two_hands(g: Clauses) -> Pair:
    tense = g.tense()
    subject = g.words.agent()
    first, second = g.clause(tense, subject), g.clause(tense, g.other_than(subject))
    return Pair(
        f"d'une part, {first.fr} ; d'autre part, {second.fr}",
        f"on the one hand, {first.en}; on the other hand, {second.en}",
    )
