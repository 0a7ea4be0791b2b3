"""Statements with a pronoun whose translation hangs on what stands before it: it, him, her, them, of them."""

from hotloop.data.text.parliament.clauses import AFFIRMED, DEVOIR, NOT, Clauses, Negation
from hotloop.data.text.parliament.frames import MANY
from hotloop.data.text.parliament.lexicon import Pair, Pool, Verb, verb_list
from hotloop.data.text.parliament.morphology import FUTURE, IL, PAST, PRESENT
from hotloop.data.text.parliament.phrase import HE_FR, HIM, HIM_FR, WE, Phrase, definite
from hotloop.data.text.parliament.verb_groups import english_verb_group, french_verb, words

# What brings a thing up, by the class of the thing.
OPENING = {
    letter: Pool(verb_list("\n".join(f"{row.replace(' = ', '|e|-|-|')}" for row in table.split("; "))))
    for letter, table in {
        "T": "présenter = present; déposer = table; modifier = amend; publier = publish; rédiger = draft",
        "R": "publier = publish; présenter = present; rédiger = draft; commander = commission",
        "C": "négocier = negotiate; proposer = propose; préparer = prepare; signer = sign",
        "M": "proposer = propose; annoncer = announce; présenter = present; préparer = prepare",
        "N": "proposer = propose; annoncer = announce; introduire = introduce; recommander = recommend",
        "B": "créer = set up; moderniser = modernise; financer = finance",
    }.items()
}
GIVING = Pool(
    verb_list("""remettre|e|-|R|hand
envoyer|e|-|R|send
montrer|e|-|R|show
transmettre|e|-|R|forward
expliquer|e|-|M|explain
proposer|e|-|M|propose""")
)
ATTENDING = verb_list("participer à|e|-|E|take part in\nassister à|e|-|E|attend")
HEEDING = verb_list("""tenir compte de|s|-|R|take account of
parler de|e|-|R|speak about
discuter de|e|-|R|discuss
prendre note de|e|-|R|take note of""")
ORGANISING = verb_list("organiser|e|-|E|organise\npréparer|e|-|E|prepare")
FEW = (("deux", "deux", "two"), ("trois", "trois", "three"), ("quatre", "quatre", "four"),
       ("un seul", "une seule", "one"))  # masculine, feminine, English  # fmt: skip
# What may have to be done with a text or measure, good or bad.
NEUTRAL = verb_list("""soutenir|s|-|TM|support
examiner|a|-|TM|examine
adopter|e|-|TM|adopt
modifier|e|-|TM|amend
améliorer|a|-|TM|improve
mettre en œuvre|a|-|TM|implement
rejeter|e|-|TM|reject
étudier|a|-|TM|study""")
NOTHING = Pair("", "")


def did(
    subject: Phrase,
    verb: Verb,
    tense: int,
    behind: Pair,
    *,
    negation: Negation = AFFIRMED,
    clitic: str = "",
    agreement: int = 0,
) -> Pair:
    """Subject, verb and what stands behind it; `agreement` is that of a direct object as clitic."""
    french = french_verb(verb, tense, subject, negation=negation.fr, clitic=clitic, agreement=agreement)
    english = english_verb_group(verb, tense, subject, negation=negation.en)
    return Pair(words(subject.fr, french, behind.fr), words(subject.en, english, behind.en))


def did_it(subject: Phrase, verb: Verb, tense: int, target: Phrase, negation: Negation) -> Pair:
    """nous ne l'avons pas soutenue, we did not support it"""
    clitic, him = HIM_FR[target.agreement], HIM[target.pronoun]
    return did(
        subject, verb, tense, Pair("", him), negation=negation, clitic=clitic, agreement=target.agreement
    )  # fmt: skip


def linked(first: Pair, second: Pair, negation: Negation) -> Pair:
    """With mais before a denied clause, et before an affirmed one."""
    mais, but = (", mais", ", but") if negation.fr else (" et", " and")
    return Pair(f"{first.fr}{mais} {second.fr}", f"{first.en}{but} {second.en}")


def text_of(phrase: Phrase) -> Pair:
    return Pair(phrase.fr, phrase.en)


def opened_and_done(g: Clauses, letter: str) -> tuple[Verb, Verb]:
    """What brings a thing up, and something else that is done with it."""
    first = g.draw(OPENING[letter])
    while True:
        second = g.draw(g.lexicon.direct[letter])
        if second.french.infinitive not in (first.french.infinitive, "créer"):
            return first, second


def other_subject(g: Clauses) -> Pair:
    """la Commission a présenté la proposition, mais le Conseil ne l'a pas adoptée"""
    letter = g.one_of("TTTRRCCMMNB")
    first, second = opened_and_done(g, letter)
    subject = g.words.agent()
    target = g.object(letter, subject=subject, denied=True)
    tense = PAST if g.chance(0.75) else FUTURE
    negation = NOT if g.chance(0.6) else AFFIRMED
    reply = did_it(g.other_than(subject), second, tense, target, negation)
    return linked(did(subject, first, tense, text_of(target)), reply, negation)


def same_subject(g: Clauses) -> Pair:
    """Mme Lambert a publié le rapport, mais elle ne l'a pas soutenu"""
    letter = g.one_of("TTTRRCCMMNB")
    first, second = opened_and_done(g, letter)
    subject = g.words.agent()
    target = g.object(letter, subject=subject, denied=True)
    negation = NOT if g.chance(0.6) else AFFIRMED
    she = Phrase(HE_FR[subject.agreement], "", "", subject.pronoun, subject.agreement, subject.pronoun, subject.person)
    reply = did_it(she, second, PAST, target, negation)
    return linked(did(subject, first, PAST, text_of(target)), reply, negation)


def when_future(g: Clauses) -> Pair:
    """lorsque la Commission présentera son rapport, nous l'examinerons: English present after when"""
    subject = g.words.agent()
    letter = g.one_of("TTRRMNB")
    first, second = opened_and_done(g, letter)
    target = g.object(letter, subject=subject, denied=True)
    reply = did_it(g.other_than(subject), second, FUTURE, target, g.negation(FUTURE, 0.25))
    when = g.one_of((Pair("lorsque", "when"), Pair("quand", "when"), Pair("dès que", "as soon as")))
    presents = first.english[1] if subject.english_person == IL else first.english[0]
    return Pair(
        f"{when.fr} {did(subject, first, FUTURE, text_of(target)).fr}, {reply.fr}",
        f"{when.en} {words(subject.en, presents, first.particle, target.en)}, {reply.en}",
    )


def some_of_them(g: Clauses) -> Pair:
    """la Commission a présenté douze amendements, mais nous n'en avons adopté que trois"""
    letter = g.one_of("TTTRMN")
    subject = g.words.agent()
    first, second = opened_and_done(g, letter)
    noun = g.draw(g.lexicon.nouns[letter])
    many, few, other = g.draw(MANY), g.one_of(FEW), g.other_than(subject)
    brought = did(subject, first, PAST, Pair(f"{many.fr} {noun.forms[1]}", f"{many.en} {noun.english[1]}"))
    return Pair(
        f"{brought.fr}, mais {other.fr} ne {french_verb(second, PAST, other, clitic='en')} que {few[noun.feminine]}",
        f"{brought.en}, but {did(other, second, PAST, NOTHING).en} only {few[2]} of them",
    )


def gave_him(g: Clauses) -> Pair:
    """lorsque Mme Novak est arrivée à Vienne, nous lui avons remis le rapport: to her"""
    guest = g.words.official(plain=True) if g.chance(0.5) else definite(g.draw(g.lexicon.people))
    arrived = g.arriving(guest)
    verb = g.draw(GIVING)
    gift = g.object(verb.objects, denied=True)
    host = g.receiver(guest) if g.chance(0.6) else WE
    behind = Pair(gift.fr, f"{gift.en} to {HIM[guest.pronoun]}")
    gave = did(host, verb, PAST, behind, clitic="leur" if guest.agreement > 1 else "lui")
    return Pair(f"lorsque {guest.fr} {arrived.fr}, {gave.fr}", f"when {guest.en} {arrived.en}, {gave.en}")


def took_part(g: Clauses) -> Pair:
    """la Grèce a organisé la conférence, mais nous n'y avons pas participé"""
    host = g.words.agent()
    event = g.words.event(definite_only=True)
    negation = NOT if g.chance(0.6) else AFFIRMED
    reply = did(
        g.other_than(host), g.one_of(ATTENDING), PAST, Pair("", HIM[event.pronoun]), negation=negation, clitic="y"
    )  # fmt: skip
    return linked(did(host, g.one_of(ORGANISING), PAST, text_of(event)), reply, negation)


def took_account(g: Clauses) -> Pair:
    """l'expert a publié une étude, mais la Commission n'en a pas tenu compte"""
    author = g.words.agent()
    letter = g.one_of("TRR")
    text = g.object(letter, denied=True, subject=author)
    negation = NOT if g.chance(0.7) else AFFIRMED
    reply = did(
        g.other_than(author), g.one_of(HEEDING), PAST, Pair("", HIM[text.pronoun]), negation=negation, clitic="en"
    )  # fmt: skip
    return linked(did(author, g.draw(OPENING[letter]), PAST, text_of(text)), reply, negation)


def as_for(g: Clauses) -> Pair:
    """quant à cette proposition, nous la soutenons"""
    letter = g.one_of("TTRCMMN")
    target = g.object(letter, denied=True)
    while True:
        tense = g.one_of((PAST, PAST, PRESENT, FUTURE))
        verb = g.draw(g.lexicon.direct[letter])
        if tense != PRESENT or verb.aspect != "e":
            break
    reply = did_it(g.words.speaker(), verb, tense, target, g.negation(tense, 0.35))
    return Pair(f"quant {target.to}, {reply.fr}", f"as for {target.en}, {reply.en}")


def must_it(g: Clauses) -> Pair:
    """ce rapport est important et nous devons le soutenir"""
    letter = g.one_of("TTMM")
    target = g.object(letter, denied=True)
    state = g.being(PRESENT, target, "measure" if letter == "M" else "text", affirmed=True)
    verb = g.one_of(NEUTRAL)
    subject = WE if g.chance(0.5) else g.words.agent()
    must = DEVOIR.simple[PRESENT][subject.person]
    infinitive = words(HIM_FR[target.agreement], verb.french.infinitive, verb.middle)
    return Pair(
        f"{target.fr} {state.fr} et {subject.fr} {must} {infinitive}",
        f"{target.en} {state.en} and {subject.en} must {words(verb.english[0], verb.particle, HIM[target.pronoun])}",
    )
