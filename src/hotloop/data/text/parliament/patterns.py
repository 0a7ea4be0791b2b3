"""Statements of more than one clause, and the special constructions of debate.

A pattern takes the drawing machine and returns a statement in both languages, unelided, without capital and full stop.
"""

from hotloop.data.text.parliament.clauses import (
    AFFIRMED, DEVOIR, Clauses, Negation, english_verb_group, french_verb, object_of, words,
)  # fmt: skip
from hotloop.data.text.parliament.frames import MANY, dated, number, timed_clause
from hotloop.data.text.parliament.lexicon import Pair, Pool, Verb, pairs
from hotloop.data.text.parliament.lexicon import verb as read_verb
from hotloop.data.text.parliament.morphology import CONDITIONAL, FUTURE, IL, PAST, PLUPERFECT, PRESENT, SUBJUNCTIVE
from hotloop.data.text.parliament.phrases import HE_FR, HIM, HIM_FR, WE, Phrase, definite

NOT = Negation("pas", "not")
CAUSES = pairs("parce que = because; car = because; puisque = since")
CONTRASTS = pairs("mais = but; alors que = whereas; tandis que = while")
FACTS = pairs("""il est clair que = it is clear that; nous savons tous que = we all know that;
    tout le monde sait que = everyone knows that; il est vrai que = it is true that;
    le fait est que = the fact is that; il va de soi que = it goes without saying that;
    rien ne prouve que = nothing proves that; on dit que = it is said that; l'histoire montre que = history shows that""")
WISHES = pairs("""il faut que = it is necessary that; il est essentiel que = it is essential that;
    il est important que = it is important that; il est urgent que = it is a matter of urgency that;
    nous demandons que = we ask that; je propose que = I propose that; il est souhaitable que = it is desirable that""")
TASKS = pairs("""il est important de = it is important to; il est possible de = it is possible to;
    il est difficile de = it is difficult to; il est temps de = it is time to; il est grand temps de = it is high time to;
    notre devoir est de = our duty is to; il est inutile de = it is pointless to; il suffit de = it is enough to;
    nous avons le droit de = we have the right to; nous avons l'intention de = we intend to;
    nous avons besoin de temps pour = we need time to; je suis prêt à = I am ready to; nous sommes tenus de =
    we are obliged to; l'objectif est de = the aim is to; il est impossible de = it is impossible to;
    il est interdit de = it is forbidden to; il est facile de = it is easy to""")
CALLS = [read_verb(line) for line in """inviter|e|-|à|invite to
encourager|s|-|à|encourage to
aider|a|-|à|help to
forcer|e|-|à|force to
autoriser|e|-|à|authorise to
exhorter|s|-|à|urge to""".splitlines()]  # fmt: skip
GIVING = Pool([read_verb(line) for line in """remettre|e|-|R|hand
envoyer|e|-|R|send
montrer|e|-|R|show
transmettre|e|-|R|forward
expliquer|e|-|M|explain
proposer|e|-|M|propose""".splitlines()])  # fmt: skip
ATTENDING = [read_verb(line) for line in ("participer à|e|-|E|take part in", "assister à|e|-|E|attend")]
HEEDING = [read_verb(line) for line in ("tenir compte de|s|-|R|take account of", "parler de|e|-|R|speak about",
                                         "discuter de|e|-|R|discuss", "prendre note de|e|-|R|take note of")]  # fmt: skip
MAKING = [read_verb(line) for line in ("préparer|a|-|T|prepare", "étudier|a|-|T|study", "examiner|a|-|T|examine",
                                        "négocier|a|-|C|negotiate", "bloquer|s|-|T|block", "soutenir|s|-|T|support",
                                        "défendre|s|-|G|defend", "combattre|a|-|P|fight", "attendre|a|-|T|await")]  # fmt: skip
VENIR, ARRIVER = read_verb("venir|e|-|-|come"), read_verb("arriver|e|-|-|arrive in")
DEMANDER = read_verb("demander|s|-|-|ask")
ORGANISER, PREPARER = read_verb("organiser|e|-|E|organise"), read_verb("préparer|e|-|E|prepare")


def join(*parts: Pair) -> Pair:
    return Pair(words(*(part.fr for part in parts)), words(*(part.en for part in parts)))


def lit(fr: str, en: str) -> Pair:
    return Pair(fr, en)


def said(phrase: Phrase) -> Pair:
    return Pair(phrase.fr, phrase.en)


def object_pronoun(phrase: Phrase) -> Pair:
    return Pair(HIM_FR[phrase.agreement], HIM[phrase.pronoun])


def again(g: Clauses, first: Phrase) -> Phrase:
    """Another subject than the first: nous, an agent."""
    return WE if g.chance(0.3) and first is not WE else g.receiver(first)


def about_it(verb: Verb, tense: int, subject: Phrase, target: Phrase, negation: Negation) -> Pair:
    """ne l'a pas soutenue, did not support it"""
    him = object_pronoun(target)
    french = french_verb(verb, tense, subject, negation=negation.fr, clitic=him.fr, agreement=target.agreement)
    return Pair(french, f"{english_verb_group(verb, tense, subject, negation=negation.en)} {him.en}")


OPENING = {letter: Pool([read_verb(line + "|e|A|-|" + english) for line, english in rows]) for letter, rows in {
    "T": (("présenter", "present"), ("proposer", "propose"), ("modifier", "amend"), ("publier", "publish"),
          ("réviser", "revise"), ("rédiger", "draft")),
    "R": (("publier", "publish"), ("présenter", "present"), ("rédiger", "draft"), 
          ("commander", "commission")),
    "C": (("négocier", "negotiate"), ("proposer", "propose"), ("préparer", "prepare"), ("signer", "sign")),
    "M": (("proposer", "propose"), ("annoncer", "announce"), ("présenter", "present"), ("préparer", "prepare")),
    "N": (("proposer", "propose"), ("annoncer", "announce"), ("introduire", "introduce"), ("recommander", "recommend")),
    "B": (("créer", "set up"), ("construire", "build"), ("moderniser", "modernise"), ("agrandir", "enlarge")),
}.items()}  # fmt: skip


def plain(g: Clauses) -> Pair:
    """Somebody does something, perhaps at a time."""
    tense = g.tense()
    return dated(g, tense, g.clause(tense, g.words.speaker()))


def things(g: Clauses) -> Pair:
    """Something is done, holds or takes place."""
    tense = g.tense()
    if g.chance(0.5) or tense == PRESENT:
        return g.state(tense)
    return dated(g, tense, g.passive(tense) if g.chance(0.75) else g.gathering(tense))


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
    first = lit(f"bien que {subject.fr} {french} {object_of(action.verb, action.target)},", f"although {subject.en} {english} {action.target.en},")
    tense = g.tense()
    return join(first, g.clause(tense, again(g, subject)))


def task(g: Clauses) -> Pair:
    head = g.draw(TASKS)
    return join(head, g.infinitive(WE))


def opened_and_done(g: Clauses, letter: str) -> tuple[Verb, Verb]:
    """What brings a thing up, and something else that is done with it."""
    first = g.draw(OPENING[letter])
    while True:
        second = g.draw(g.lexicon.direct[letter])
        if second.french.infinitive != first.french.infinitive:
            return first, second


def pronoun_contrast(g: Clauses) -> Pair:
    """la Commission a présenté la proposition, mais le Conseil ne l'a pas adoptée"""
    letter = g.one_of("TTTRRCCMMNB")
    first, second = opened_and_done(g, letter)
    subject = g.words.agent()
    target = g.object(letter, subject=subject, denied=True)
    other = again(g, subject)
    tense = PAST if g.chance(0.75) else FUTURE
    negation = NOT if g.chance(0.6) else AFFIRMED
    link = lit(", mais", ", but") if negation.fr else lit(" et", " and")
    group = g.conjugated(first, tense, subject)
    reply = about_it(second, tense, other, target, negation)
    return Pair(
        f"{subject.fr} {group.fr} {target.fr}{link.fr} {other.fr} {reply.fr}",
        f"{subject.en} {group.en} {target.en}{link.en} {other.en} {reply.en}",
    )


def same_subject(g: Clauses) -> Pair:
    """Mme Lambert a lu le rapport, mais elle ne l'a pas soutenu"""
    letter = g.one_of("TTTRRCCMMNB")
    first, second = opened_and_done(g, letter)
    subject = g.words.agent()
    target = g.object(letter, subject=subject, denied=True)
    negation = NOT if g.chance(0.6) else AFFIRMED
    link = lit(", mais", ", but") if negation.fr else lit(" et", " and")
    group, reply = g.conjugated(first, PAST, subject), about_it(second, PAST, subject, target, negation)
    return Pair(
        f"{subject.fr} {group.fr} {target.fr}{link.fr} {HE_FR[subject.agreement]} {reply.fr}",
        f"{subject.en} {group.en} {target.en}{link.en} {subject.pronoun} {reply.en}",
    )


def when_future(g: Clauses) -> Pair:
    """lorsque la Commission présentera son rapport, nous l'examinerons: English present after when"""
    subject = g.words.agent()
    letter = g.one_of("TTRRMNB")
    first, second = opened_and_done(g, letter)
    target = g.object(letter, subject=subject, denied=True)
    third = first.english[0] if subject.english_person != IL else first.english[1]
    other = again(g, subject)
    reply = about_it(second, FUTURE, other, target, g.negation(FUTURE, 0.25))
    link = g.one_of((lit("lorsque", "when"), lit("quand", "when"), lit("dès que", "as soon as")))
    french = french_verb(first, FUTURE, subject)
    return Pair(
        f"{link.fr} {subject.fr} {french} {target.fr}, {other.fr} {reply.fr}",
        f"{link.en} {subject.en} {words(third, first.particle)} {target.en}, {other.en} {reply.en}",
    )


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
    first = lit(f"si {subject.fr} {finite} {object_of(action.verb, action.target)},",
                f"if {subject.en} {words(english, action.verb.particle)} {action.target.en},")  # fmt: skip
    return join(first, g.clause(FUTURE, again(g, subject)))


def because(g: Clauses) -> Pair:
    tense = PAST if g.chance(0.6) else PRESENT
    return join(g.clause(tense, g.words.speaker()), g.draw(CAUSES), g.clause(g.tense()))


def contrast(g: Clauses) -> Pair:
    tense = g.tense()
    subject = g.words.agent()
    first, second = g.clause(tense, subject), g.clause(tense, again(g, subject))
    link = g.draw(CONTRASTS)
    return Pair(f"{first.fr}, {link.fr} {second.fr}", f"{first.en}, {link.en} {second.en}")


def two_predicates(g: Clauses) -> Pair:
    """la Commission a retiré la directive et a annoncé un programme"""
    subject = g.words.speaker()
    first, second = g.transitive(PAST, subject), g.transitive(PAST, subject)
    return join(said(subject), first, lit("et", "and"), second)


def not_only(g: Clauses) -> Pair:
    subject = g.words.agent()
    first, second = g.action(subject), g.action(subject)
    if first.verb.with_etre or second.verb.with_etre:
        return two_predicates(g)
    french = french_verb(first.verb, PAST, subject, adverb="non seulement")
    english = english_verb_group(first.verb, PAST, subject, adverb="not only")
    also = words(second.verb.french.participles[0], second.verb.middle, object_of(second.verb, second.target))
    return Pair(
        f"{subject.fr} {french} {object_of(first.verb, first.target)}, mais aussi {also}",
        f"{subject.en} {english} {first.target.en}, but also {words(second.verb.english[2], second.verb.particle)} {second.target.en}",
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


def some_of_them(g: Clauses) -> Pair:
    """la Commission a présenté douze amendements, mais nous n'en avons adopté que trois"""
    letter = g.one_of("TTTRMNB")
    subject = g.words.agent()
    first, verb = opened_and_done(g, letter)
    noun = g.draw(g.lexicon.nouns[letter])
    many = g.draw(MANY)
    few = g.one_of((lit("deux", "two"), lit("trois", "three"), lit("quatre", "four"), lit("un{} seul{}", "one")))
    few = Pair(few.fr.format(*(("e",) * 2 if noun.feminine else ("",) * 2)), few.en)
    other = again(g, subject)
    fr = french_verb(verb, PAST, other, clitic="en")
    return Pair(
        f"{subject.fr} {french_verb(first, PAST, subject)} {many.fr} {noun.forms[1]}, mais {other.fr} ne {fr} que {few.fr}",
        f"{subject.en} {english_verb_group(first, PAST, subject)} {many.en} {noun.english[1]}, but {other.en} {english_verb_group(verb, PAST, other)} only {few.en} of them",
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


def gave_him(g: Clauses) -> Pair:
    """lorsque Mme Novak est arrivée à Vienne, nous lui avons remis le rapport: gave her"""
    guest = g.words.official(plain=True) if g.chance(0.5) else definite(g.draw(g.lexicon.people))
    moving = g.moving(PAST, guest) if g.chance(0.3) else None
    if moving is None:
        city = g.draw(g.lexicon.cities)
        moving = lit(f"{french_verb(ARRIVER, PAST, guest)} à {city.fr}", f"arrived in {city.en}")
    verb = g.draw(GIVING)
    gift = g.object(verb.objects, denied=True)
    host = g.receiver(guest) if g.chance(0.6) else WE
    clitic = "leur" if guest.agreement > 1 else "lui"
    return Pair(
        f"lorsque {guest.fr} {moving.fr}, {host.fr} {french_verb(verb, PAST, host, clitic=clitic)} {gift.fr}",
        f"when {guest.en} {moving.en}, {host.en} {english_verb_group(verb, PAST, host)} {gift.en} to {HIM[guest.pronoun]}",
    )


def took_part(g: Clauses) -> Pair:
    """la Grèce a organisé la conférence, mais nous n'y avons pas participé"""
    host = g.words.agent()
    event = g.words.event(definite_only=True)
    other = again(g, host)
    verb = g.one_of(ATTENDING)
    prepared = g.one_of((ORGANISER, PREPARER))
    negation = NOT if g.chance(0.6) else AFFIRMED
    link = lit(", mais", ", but") if negation.fr else lit(" et", " and")
    it = HIM[event.pronoun]
    return Pair(
        f"{host.fr} {french_verb(prepared, PAST, host)} {event.fr}{link.fr} {other.fr} {french_verb(verb, PAST, other, negation=negation.fr, clitic='y')}",
        f"{host.en} {english_verb_group(prepared, PAST, host)} {event.en}{link.en} {other.en} {english_verb_group(verb, PAST, other, negation=negation.en)} {it}",
    )


def took_account(g: Clauses) -> Pair:
    """l'expert a publié une étude, mais la Commission n'en a pas tenu compte"""
    author = g.words.agent()
    letter = g.one_of("TRR")
    text = g.object(letter, denied=True, subject=author)
    verb, other = g.one_of(HEEDING), again(g, author)
    first = g.draw(OPENING[letter])
    negation = NOT if g.chance(0.7) else AFFIRMED
    link = lit(", mais", ", but") if negation.fr else lit(" et", " and")
    return Pair(
        f"{author.fr} {french_verb(first, PAST, author)} {text.fr}{link.fr} {other.fr} {french_verb(verb, PAST, other, negation=negation.fr, clitic='en')}",
        f"{author.en} {english_verb_group(first, PAST, author)} {text.en}{link.en} {other.en} {english_verb_group(verb, PAST, other, negation=negation.en)} {HIM[text.pronoun]}",
    )


def as_for(g: Clauses) -> Pair:
    """quant à cette proposition, nous la soutenons"""
    letter = g.one_of("TTRCMMN")
    target = g.object(letter, denied=True)
    subject = g.words.speaker()
    while True:
        tense = g.tense()
        verb = g.draw(g.lexicon.direct[letter])
        if tense in (PAST, FUTURE) or (tense == PRESENT and verb.aspect != "e"):
            break
    reply = about_it(verb, tense, subject, target, g.negation(tense, 0.35))
    return Pair(f"quant {target.to}, {subject.fr} {reply.fr}", f"as for {target.en}, {subject.en} {reply.en}")


def must_it(g: Clauses) -> Pair:
    """ce rapport est important et nous devons le soutenir"""
    letter = g.one_of("TTMM")
    target = g.object(letter, denied=True)
    state = g.being(PRESENT, target, "measure" if letter == "M" else "text")
    verb = g.draw(g.lexicon.direct[letter])
    him = object_pronoun(target)
    subject = WE if g.chance(0.5) else g.words.agent()
    doit = DEVOIR.simple[PRESENT][subject.person]
    return Pair(
        f"{target.fr} {state.fr} et {subject.fr} {doit} {him.fr} {verb.french.infinitive}",
        f"{target.en} {state.en} and {subject.en} must {words(verb.english[0], verb.particle)} {him.en}",
    )


def whose(g: Clauses) -> Pair:
    """la Suède, dont le gouvernement a rejeté l'accord, …"""
    country = definite(g.draw(g.lexicon.countries))
    part = g.one_of((lit("le gouvernement", "government"), lit("le parlement", "parliament"), lit("le président", "president")))
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
    action = g.action(subject, event=True).gerund()
    tense = PAST if g.chance(0.6) else FUTURE
    return join(lit(f"en {action.fr},", f"by {action.en},"), said(subject), g.transitive(tense, subject))


def after_doing(g: Clauses) -> Pair:
    """après avoir consulté les agriculteurs, la Commission a modifié la proposition"""
    subject = g.words.agent() if g.chance(0.8) else WE
    action = g.action(subject, event=True).perfect_infinitive()
    return join(lit(f"après {action.fr},", f"after {action.en},"), said(subject), g.transitive(PAST, subject))


def without_doing(g: Clauses) -> Pair:
    """… sans consulter le Parlement, au lieu de, avant de"""
    subject = g.words.speaker()
    main = g.transitive(PAST if g.chance(0.7) else FUTURE, subject)
    link = g.one_of((lit("sans", "without"), lit("au lieu de", "instead of"), lit("avant de", "before")))
    action = g.action(subject, denied=True, event=True)
    return join(said(subject), main, Pair(f"{link.fr} {action.infinitive().fr}", f"{link.en} {action.ing()}"))


def in_order_to(g: Clauses) -> Pair:
    """… afin de protéger les consommateurs"""
    subject = g.words.speaker()
    main = g.transitive(PAST if g.chance(0.5) else FUTURE, subject)
    verb = g.draw(g.lexicon.help)
    target = g.object(g.one_of(verb.objects))
    link = g.one_of((lit("afin de", "in order to"), lit("pour", "to")))
    return join(said(subject), main, lit(f"{link.fr} {verb.french.infinitive} {target.fr}", f"{link.en} {words(verb.english[0], verb.particle)} {target.en}"))


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
        return join(said(subject), lit(french, words(have, "just", action.verb.english[3], action.verb.particle, action.target.en)))
    est = "sont" if subject.agreement > 1 else "est"
    be = "is" if person == IL else "are"
    return join(said(subject), lit(f"{est} sur le point de {action.infinitive().fr}", f"{be} about to {action.infinitive().en}"))


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
    english = english_verb_group(verb, tense, subject).removesuffix(" to")
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


def according_to(g: Clauses) -> Pair:
    tense = g.tense()
    source = g.words.agent(plain=True)
    return join(lit(f"selon {source.fr},", f"according to {source.en},"), g.clause(tense))


def two_hands(g: Clauses) -> Pair:
    tense = g.tense()
    subject = g.words.agent()
    first, second = g.clause(tense, subject), g.clause(tense, again(g, subject))
    return Pair(
        f"d'une part, {first.fr}; d'autre part, {second.fr}".replace(";", " ;"),
        f"on the one hand, {first.en}; on the other hand, {second.en}",
    )


def reasons(g: Clauses) -> Pair:
    """il y a trois raisons de soutenir ce rapport"""
    count = number(g)
    what = g.one_of((lit("raisons de", "reasons to"), lit("façons de", "ways to"), lit("moyens de", "means to"), lit("occasions de", "opportunities to")))
    return join(lit(f"il y a {count.fr} {what.fr}", f"there are {count.en} {what.en}"), g.infinitive(WE))

