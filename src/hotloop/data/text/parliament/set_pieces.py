"""Appeals, thanks, figures and the set phrases of a sitting."""

from hotloop.data.text.parliament.clauses import AVOIR_LIEU, NOT_GRADED, Clauses
from hotloop.data.text.parliament.frames import DAYS, join, lit, number, said
from hotloop.data.text.parliament.lexicon import Adjective, Name, Pair, Pool, pairs, verb_list
from hotloop.data.text.parliament.morphology import FUTURE, NOUS, PAST, PERFECT, PRESENT
from hotloop.data.text.parliament.phrase import WE, YOU, I, Phrase, definite
from hotloop.data.text.parliament.verb_groups import Action, english_verb_group, french_verb, object_of, words

MOVEMENTS = verb_list("augmenter|e|-|-|increase\ndiminuer|e|-|-|decrease\nreculer|e|-|-|fall\nprogresser|e|-|-|rise")


MEASURED = Pool(
    [
        Name(*row, "it")
        for row in (
            ("le", "chômage", 0, "unemployment"),
            ("la", "pauvreté", 1, "poverty"),
            ("la", "criminalité", 1, "crime"),
            ("la", "pollution", 1, "pollution"),
            ("la", "dette publique", 1, "public debt"),
            ("la", "fraude", 1, "fraud"),
            ("le", "déficit budgétaire", 0, "the budget deficit"),
            ("la", "consommation", 1, "consumption"),
            ("la", "production", 1, "production"),
            ("le", "prix du pain", 0, "the price of bread"),
            ("la", "population", 1, "the population"),
        )
    ]
)


PROCEDURE = pairs("""le débat est clos = the debate is closed;
    la séance est ouverte = the sitting is open; la séance est levée = the sitting is closed;
    le point suivant est le vote = the next item is the vote;
    il n'y a pas d'objections = there are no objections;
    nous passons au vote = we now proceed to the vote;
    le procès-verbal a été approuvé = the minutes were approved;
    la discussion commune est close = the joint debate is closed;
    je vous remercie de votre attention = thank you for your attention;
    merci beaucoup de votre aide = thank you very much for your help;
    vous avez la parole = you have the floor; je vous souhaite la bienvenue = I welcome you;
    je partage votre avis = I share your view; je ne suis pas d'accord = I do not agree;
    nous en prenons note = we take note of it; la séance est suspendue = the sitting is suspended;
    la question est close = the matter is closed;
    votre temps de parole est écoulé = your speaking time is over; je vous en prie = you are welcome""")


UNWANTED = verb_list(
    "oublier|e|-|XXG|forget\n"
    "négliger|s|-|XG|neglect\n"
    "bloquer|s|-|TMC|block\n"
    "sous-estimer|s|-|P|underestimate\n"
    "abandonner|e|-|MCX|abandon\n"
    "rejeter|e|-|TM|reject\n"
    "décevoir|e|-|X|disappoint"
)


WANTED = verb_list(
    "soutenir|s|-|TTMX|support\n"
    "défendre|s|-|GMX|defend\n"
    "adopter|e|-|TTM|adopt\n"
    "examiner|a|-|TRC|examine\n"
    "rejeter|e|-|TMN|reject\n"
    "protéger|s|-|XG|protect\n"
    "combattre|a|-|P|fight\n"
    "aider|a|-|X|help\n"
    "voter pour|e|-|T|vote for\n"
    "consulter|a|-|XO|consult\n"
    "tenir compte de|s|-|TR|take account of\n"
    "mettre fin à|e|-|P|put an end to\n"
    "parler de|a|-|TPE|speak about"
)


def let_us(g: Clauses) -> Pair:
    """examinons ce rapport: let us examine this report; n'oublions pas les pêcheurs"""
    denied = g.chance(0.25)
    verb = g.one_of(UNWANTED if denied else WANTED)
    action = Action(verb, g.object(g.one_of(verb.objects), denied=denied), WE)
    form = action.verb.french.simple[PRESENT][NOUS]
    french = words(
        "ne" if denied else "", form, "pas" if denied else "", action.verb.middle, object_of(action.verb, action.target)
    )
    return lit(french, f"let us {'not ' if denied else ''}{action.infinitive().en}")


def please(g: Clauses) -> Pair:
    """je vous invite à soutenir ce rapport"""
    head = g.one_of(
        (
            lit("je vous invite à", "I invite you to"),
            lit("je vous demande de", "I ask you to"),
            lit("nous vous prions de", "we beg you to"),
            lit("je vous encourage à", "I encourage you to"),
            lit("je vous exhorte à", "I urge you to"),
        )
    )
    return join(head, g.infinitive(YOU))


def thanks(g: Clauses) -> Pair:
    """je remercie Mme Novak de son excellent rapport"""
    who = definite(g.draw(g.lexicon.people)) if g.chance(0.7) else g.words.official(plain=True)
    owner = who
    letter = g.one_of("TRR")
    noun = g.draw(g.lexicon.nouns[letter])
    drawn = g.draw(g.lexicon.before["text"])
    before = drawn if drawn.english in ("excellent", "new", "long", "first") else None
    gift = g.words.noun(noun, "own", owner=owner, before=before)
    fr, en, form = g.one_of(
        (
            ("je remercie {} de", "I thank {} for", "fr"),
            ("permettez-moi de féliciter {} pour", "allow me to congratulate {} on", "fr"),
            ("je tiens à remercier {} pour", "I would like to thank {} for", "fr"),
            ("nous félicitons {} pour", "we congratulate {} on", "fr"),
        )
    )
    return lit(f"{fr.format(getattr(who, form))} {gift.fr}", f"{en.format(who.en)} {gift.en}")


def vote_count(g: Clauses) -> Pair:
    """le rapport a été adopté par 250 voix contre 120"""
    target = g.words.document("T", definite_only=True)
    adopted = g.one_of(
        (
            (("adopté", "adoptée", "adoptés", "adoptées"), "adopted"),
            (("rejeté", "rejetée", "rejetés", "rejetées"), "rejected"),
        )
    )
    many, few = 240 + 20 * int(15 * g.words.random()), 20 * int(1 + 11 * g.words.random())
    avoir = "ont" if target.agreement > 1 else "a"
    be = "were" if target.agreement > 1 else "was"
    return lit(
        f"{target.fr} {avoir} été {adopted[0][target.agreement]} par {many} voix contre {few}",
        f"{target.en} {be} {adopted[1]} by {many} votes to {few}",
    )


def money(g: Clauses) -> Pair:
    """la Commission consacrera 120 millions d'euros à la recherche: will spend EUR 120 million on research"""
    agent = definite(g.draw(g.lexicon.countries))
    theme = definite(g.draw(g.lexicon.generic["D"]))
    amount = 10 * int(1 + 20 * g.words.random() ** 2)
    unit = g.one_of((("millions", "million"), ("milliards", "billion")))
    plural = agent.agreement > 1
    how = g.one_of(
        (
            (("ont consacré" if plural else "a consacré"), "spent"),
            (("consacreront" if plural else "consacrera"), "will spend"),
            (("devraient consacrer" if plural else "devrait consacrer"), "should spend"),
        )
    )
    return lit(
        f"{agent.fr} {how[0]} {amount} {unit[0]} d'euros {theme.to}",
        f"{agent.en} {how[1]} EUR {amount} {unit[1]} on {theme.en}",
    )


def percentage(g: Clauses) -> Pair:
    """en 2004, le chômage a reculé de 15 % en Espagne"""
    what = definite(g.draw(MEASURED))
    verb = g.one_of(MOVEMENTS)
    share = int(2 + 28 * g.words.random() ** 2)
    place = g.words.region()
    if g.chance(0.7):
        tense, year = PAST, 2010 - int(18 * g.words.random() ** 2)
        when = g.one_of(
            (
                lit(f"en {year}", f"in {year}"),
                lit("l'année dernière", "last year"),
                lit(f"depuis {year}", f"since {year}"),
            )
        )
        if when.fr.startswith("depuis"):
            tense = PERFECT
    else:
        tense, year = FUTURE, 2012 + int(14 * g.words.random() ** 2)
        when = g.one_of((lit(f"d'ici à {year}", f"by {year}"), lit("l'année prochaine", "next year")))
    french = french_verb(verb, tense, what)
    english = f"has {verb.english[3]}" if tense == PERFECT else english_verb_group(verb, tense, what)
    return lit(
        f"{when.fr}, {what.fr} {french} de {share} % {place.fr}",
        f"{when.en}, {what.en} {english} by {share}% {place.en}",
    )


def scheduled(g: Clauses) -> Pair:
    """le vote aura lieu mardi à 11 heures: will take place on Tuesday at 11 a.m."""
    event = g.words.event(definite_only=True)
    day = g.draw(DAYS)
    hour = 8 + int(12 * g.words.random())
    clock = f"{hour} a.m." if hour < 12 else "noon" if hour == 12 else f"{hour - 12} p.m."
    heure = "midi" if hour == 12 else f"{hour} heures"
    fr = AVOIR_LIEU.french.simple[FUTURE][event.person] + " lieu"
    return lit(f"{event.fr} {fr} {day.fr} à {heure}", f"{event.en} will take place on {day.en} at {clock}")


def graded(g: Clauses, kind: str) -> Adjective:
    """A quality that there may be more or less of."""
    while True:
        quality = g.draw(g.lexicon.quality[kind])
        if quality.english not in NOT_GRADED:
            return quality


def compared(g: Clauses) -> Pair:
    """cette directive est plus ambitieuse que le programme du Conseil"""
    letter = g.one_of("TM")
    kind = "measure" if letter == "M" else "text"
    first = g.words.document(letter, definite_only=True)
    second = g.words.document(letter, definite_only=True)
    quality = graded(g, kind)
    plural = first.agreement > 1
    more = g.one_of((("plus", "more {} than"), ("moins", "less {} than"), ("aussi", "as {} as")))
    comparison = more[1].format(quality.english)
    return lit(
        f"{first.fr} {'sont' if plural else 'est'} {more[0]} {quality.forms[first.agreement]} que {second.fr}",
        f"{first.en} {'are' if plural else 'is'} {SHORT.get(comparison, comparison)} {second.en}",
    )


SHORT = {"more clear than": "clearer than", "more fair than": "fairer than"}


def superlative(g: Clauses) -> Pair:
    """c'est la réforme la plus ambitieuse de l'année"""
    letter = g.one_of("TMC")
    noun = g.draw(g.lexicon.nouns[letter])
    quality = graded(g, "measure" if letter == "M" else "text")
    le = "la" if noun.feminine else "le"
    when = g.one_of(
        (
            lit("de l'année", "of the year"),
            lit("de la décennie", "of the decade"),
            lit("de notre histoire", "in our history"),
            lit("de ces dernières années", "of recent years"),
        )
    )
    more = g.one_of((("plus", "most"), ("moins", "least")))
    superlative = {"most clear": "clearest", "most fair": "fairest"}.get(
        f"{more[1]} {quality.english}", f"{more[1]} {quality.english}"
    )
    return lit(
        f"c'est {le} {noun.forms[0]} {le} {more[0]} {quality.forms[noun.feminine]} {when.fr}",
        f"it is the {superlative} {noun.english[0]} {when.en}",
    )


def ratified(g: Clauses) -> Pair:
    """douze pays ont ratifié la convention"""
    count = number(g)
    who = g.one_of(
        (
            lit("pays", "countries"),
            lit("députés", "Members"),
            lit("régions", "regions"),
            lit("ministres", "ministers"),
            lit("organisations", "organisations"),
            lit("délégations", "delegations"),
            lit("États membres", "Member States"),
        )
    )
    feminine = who.en in ("regions", "organisations", "delegations")
    subject = Phrase(f"{count.fr} {who.fr}", "", "", f"{count.en} {who.en}", 2 + feminine, "they", 4)
    return join(said(subject), g.transitive(PAST, subject))


def procedure(g: Clauses) -> Pair:
    return g.draw(PROCEDURE)


def first_person(g: Clauses) -> Pair:
    """j'ai voté contre cette résolution"""
    subject = I if g.chance(0.5) else WE
    tense = g.tense()
    return join(said(subject), g.transitive(tense, subject))
