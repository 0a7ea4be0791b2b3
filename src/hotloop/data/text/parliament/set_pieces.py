"""Questions, appeals, figures and the set phrases of a sitting."""

from hotloop.data.text.parliament.clauses import (
    AVOIR_LIEU, COMPOUND, Action, Clauses, english_verb_group, french_verb, object_of, words,
)  # fmt: skip
from hotloop.data.text.parliament.frames import DAYS, number
from hotloop.data.text.parliament.lexicon import Name, Pair, Pool, Verb, pairs
from hotloop.data.text.parliament.lexicon import verb as read_verb
from hotloop.data.text.parliament.morphology import CONDITIONAL, FUTURE, IL, NOUS, PAST, PERFECT, PRESENT, VOUS
from hotloop.data.text.parliament.patterns import join, lit, said
from hotloop.data.text.parliament.phrases import AVOIR, BE, ETRE, HE_FR, REFLEXIVE, WE, YOU, I, Phrase, definite

INTERROGATIVES = pairs("pourquoi = why; quand = when; comment = how")
MOVEMENTS = [read_verb(line) for line in ("augmenter|e|-|-|increase", "diminuer|e|-|-|decrease",
                                           "reculer|e|-|-|fall", "progresser|e|-|-|rise")]  # fmt: skip
MEASURED = Pool([Name(*row, "it") for row in (
    ("le", "chômage", 0, "unemployment"), ("la", "pauvreté", 1, "poverty"), ("la", "criminalité", 1, "crime"),
    ("la", "pollution", 1, "pollution"), ("la", "dette publique", 1, "public debt"), ("la", "fraude", 1, "fraud"),
    ("le", "déficit budgétaire", 0, "the budget deficit"), ("la", "consommation", 1, "consumption"),
    ("la", "production", 1, "production"), ("le", "prix du pain", 0, "the price of bread"),
    ("la", "population", 1, "the population"))])  # fmt: skip
PROCEDURE = pairs("""le débat est clos = the debate is closed; la séance est ouverte = the sitting is open;
    la séance est levée = the sitting is closed; le point suivant est le vote = the next item is the vote;
    il n'y a pas d'objections = there are no objections; nous passons au vote = we now proceed to the vote;
    le procès-verbal a été approuvé = the minutes were approved; la discussion commune est close =
    the joint debate is closed; je vous remercie de votre attention = thank you for your attention;
    merci beaucoup de votre aide = thank you very much for your help; vous avez la parole = you have the floor;
    je vous souhaite la bienvenue = I welcome you; je partage votre avis = I share your view;
    je ne suis pas d'accord = I do not agree; nous en prenons note = we take note of it;
    la séance est suspendue = the sitting is suspended; la question est close = the matter is closed;
    votre temps de parole est écoulé = your speaking time is over; je vous en prie = you are welcome""")


UNWANTED = [read_verb(line) for line in ("oublier|e|-|XXG|forget", "négliger|s|-|XG|neglect", "bloquer|s|-|TMC|block",
                                          "sous-estimer|s|-|P|underestimate", "abandonner|e|-|MCX|abandon",
                                          "rejeter|e|-|TM|reject", "décevoir|e|-|X|disappoint")]  # fmt: skip

WANTED = [read_verb(line) for line in ("soutenir|s|-|TTMX|support", "défendre|s|-|GMX|defend", "adopter|e|-|TTM|adopt",
                                        "examiner|a|-|TRC|examine", "rejeter|e|-|TMN|reject", "protéger|s|-|XG|protect",
                                        "combattre|a|-|P|fight", "aider|a|-|X|help", "voter pour|e|-|T|vote for",
                                        "consulter|a|-|XO|consult", "tenir compte de|s|-|TR|take account of",
                                        "mettre fin à|e|-|P|put an end to", "parler de|a|-|TPE|speak about")]  # fmt: skip


def french_inverted(verb: Verb, tense: int, subject: Phrase, *, negation: str = "") -> str:
    """n'a-t-elle pas adopté; with avez-vous the subject is in the verb already"""
    he = subject.fr if subject.person in (NOUS, VOUS) else HE_FR[subject.agreement]
    if tense in COMPOUND:
        finite = (ETRE if verb.with_etre else AVOIR)[COMPOUND[tense]][subject.person]
        participle = verb.french.participles[subject.agreement if verb.with_etre else 0]
    else:
        finite, participle = verb.french.simple[tense][subject.person], ""
    glide = "-t-" if finite[-1] in "ae" and he[0] in "ie" else "-"
    reflexive = REFLEXIVE[subject.person] if verb.reflexive else ""
    return words("ne" if negation else "", reflexive, finite + glide + he, negation, participle, verb.middle)


def english_inverted(verb: Verb, tense: int, subject: Phrase, *, negation: str = "") -> str:
    """did the Council not adopt"""
    base, _, _, _, ing = verb.english
    person = subject.english_person
    if tense == PAST:
        auxiliary, rest = "did", base
    elif tense in (FUTURE, CONDITIONAL):
        auxiliary, rest = ("will" if tense == FUTURE else "would"), base
    elif verb.aspect == "a":
        auxiliary, rest = BE[PRESENT][person], ing
    else:
        auxiliary, rest = ("does" if person == IL else "do"), base
    return words(auxiliary, subject.en, negation, rest, verb.particle)


def _asked(g: Clauses, subject: Phrase, tense: int, *, negation_chance: float = 0.2) -> Pair:
    verb = g.verb(tense, subject)
    denied = g.chance(negation_chance)
    target = g.object(g.one_of(verb.objects), denied=denied, subject=subject)
    french = french_inverted(verb, tense, subject, negation="pas" if denied else "")
    english = english_inverted(verb, tense, subject, negation="not" if denied else "")
    name = "" if subject.person in (NOUS, VOUS) else subject.fr
    return Pair(words(name, french, object_of(verb, target)), f"{english} {target.en}")


def _question_tense(g: Clauses) -> int:
    return g.one_of((PAST, PAST, FUTURE, PRESENT))


def yes_no(g: Clauses) -> Pair:
    """la Commission a-t-elle adopté le rapport ?"""
    subject = YOU if g.chance(0.25) else g.words.agent()
    return _asked(g, subject, _question_tense(g))


def why(g: Clauses) -> Pair:
    """pourquoi le Conseil n'a-t-il pas rejeté cette proposition ?"""
    subject = YOU if g.chance(0.25) else g.words.agent()
    word = g.draw(INTERROGATIVES)
    return join(word, _asked(g, subject, g.one_of((PAST, FUTURE)), negation_chance=0.3 if word.en == "why" else 0))


def modal_question(g: Clauses) -> Pair:
    """pouvons-nous accepter ce compromis ?"""
    subject, modal = g.one_of(((WE, lit("pouvons-nous", "can we")), (WE, lit("devons-nous", "must we")),
                               (YOU, lit("pouvez-vous", "can you")), (WE, lit("devrions-nous", "should we")),
                               (YOU, lit("voulez-vous", "do you want to"))))  # fmt: skip
    return join(modal, g.infinitive(subject))


def polite(g: Clauses) -> Pair:
    """pourriez-vous nous expliquer pourquoi la Commission a retiré la directive ?"""
    ask = g.one_of((lit("pourriez-vous nous expliquer", "could you explain to us"),
                    lit("pouvez-vous nous dire", "can you tell us"), lit("savez-vous", "do you know"),
                    lit("pouvez-vous nous confirmer", "can you confirm to us")))  # fmt: skip
    word = g.draw(INTERROGATIVES)
    if "confirm" in ask.en:
        word = lit("que", "that")
    subject = g.words.agent()
    return join(ask, word, said(subject), g.transitive(PAST if g.chance(0.7) else FUTURE, subject, affirmed=True))


def how_many(g: Clauses) -> Pair:
    """combien de députés ont voté pour ce rapport ?"""
    noun = g.draw(g.lexicon.nouns["O"] if g.chance(0.5) else g.lexicon.nouns["X"])
    who = Phrase(noun.forms[1], "", "", noun.english[1], noun.feminine + 2, "they", 4)
    return join(lit(f"combien de {who.fr}", f"how many {who.en}"), g.transitive(PAST, who, _direct(g)))


def _direct(g: Clauses) -> Verb:
    return g.verb(PAST, WE, direct=True)


def who(g: Clauses) -> Pair:
    """qui a rédigé cette directive ?"""
    subject = Phrase("qui", "", "", "who", 0, "he")
    tense = g.one_of((PAST, PAST, FUTURE))
    return join(lit("qui", "who"), g.transitive(tense, subject))


def position(g: Clauses) -> Pair:
    """quelle est la position de la Commission sur l'énergie ?"""
    agent = g.words.owner(None)
    theme = definite(g.draw(g.lexicon.generic["D"]))
    what = g.one_of((lit("la position", "position"), lit("l'opinion", "opinion"), lit("la politique", "policy")))
    return lit(f"quelle est {what.fr} {agent.de} sur {theme.fr}", f"what is {agent.genitive} {what.en} on {theme.en}")


def what_will(g: Clauses) -> Pair:
    """que fera le Conseil pour protéger les consommateurs ?"""
    agent = g.words.agent(plain=True)
    verb = g.draw(g.lexicon.help)
    target = g.object(g.one_of(verb.objects))
    plural = agent.agreement > 1
    french, english = (("feront" if plural else "fera"), "will") if g.chance(0.6) else (("font" if plural else "fait"), "")
    if english:
        head = lit(f"que {french} {agent.fr}", f"what will {agent.en} do")
    else:
        be = "is" if agent.english_person == IL else "are"
        head = lit(f"que {french} {agent.fr}", f"what {be} {agent.en} doing")
    return join(head, lit(f"pour {verb.french.infinitive} {target.fr}", f"to {words(verb.english[0], verb.particle)} {target.en}"))


def objectives(g: Clauses) -> Pair:
    """quels sont les objectifs de cette directive ?"""
    target = g.words.document(g.one_of("TTCM"), definite_only=True)
    fr, en = g.one_of((("quels sont les objectifs", "what are the objectives of"), ("quel est le coût", "what is the cost of"),
                       ("quelles seront les conséquences", "what will be the consequences of"),
                       ("quel est le but", "what is the purpose of"), ("quels sont les avantages", "what are the advantages of")))  # fmt: skip
    return lit(f"{fr} {target.de}", f"{en} {target.en}")


def let_us(g: Clauses) -> Pair:
    """examinons ce rapport: let us examine this report; n'oublions pas les pêcheurs"""
    denied = g.chance(0.25)
    verb = g.one_of(UNWANTED if denied else WANTED)
    action = Action(verb, g.object(g.one_of(verb.objects), denied=denied), WE)
    form = action.verb.french.simple[PRESENT][NOUS]
    french = words("ne" if denied else "", form, "pas" if denied else "", action.verb.middle, object_of(action.verb, action.target))
    return lit(french, f"let us {'not ' if denied else ''}{action.infinitive().en}")


def please(g: Clauses) -> Pair:
    """je vous invite à soutenir ce rapport"""
    head = g.one_of((lit("je vous invite à", "I invite you to"), lit("je vous demande de", "I ask you to"),
                     lit("nous vous prions de", "we beg you to"), lit("je vous encourage à", "I encourage you to"),
                     lit("je vous exhorte à", "I urge you to")))  # fmt: skip
    return join(head, g.infinitive(YOU))


def thanks(g: Clauses) -> Pair:
    """je remercie Mme Novak de son excellent rapport"""
    who = definite(g.draw(g.lexicon.people)) if g.chance(0.7) else g.words.official(plain=True)
    owner = who
    letter = g.one_of("TRR")
    noun = g.draw(g.lexicon.nouns[letter])
    before = g.draw(g.lexicon.before["text"])
    if before.english not in ("excellent", "new", "long", "first"):
        before = None
    gift = g.words.noun(noun, "own", owner=owner, before=before)
    fr, en, form = g.one_of((("je remercie {} de", "I thank {} for", "fr"), ("permettez-moi de féliciter {} pour", "allow me to congratulate {} on", "fr"),
                             ("je tiens à remercier {} pour", "I would like to thank {} for", "fr"),
                             ("nous félicitons {} pour", "we congratulate {} on", "fr")))  # fmt: skip
    return lit(f"{fr.format(getattr(who, form))} {gift.fr}", f"{en.format(who.en)} {gift.en}")


def vote_count(g: Clauses) -> Pair:
    """le rapport a été adopté par 250 voix contre 120"""
    target = g.words.document("T", definite_only=True)
    adopted = g.one_of(((("adopté", "adoptée", "adoptés", "adoptées"), "adopted"), (("rejeté", "rejetée", "rejetés", "rejetées"), "rejected")))
    many, few = 240 + 20 * int(15 * g.words.random()), 20 * int(1 + 11 * g.words.random())
    avoir = "ont" if target.agreement > 1 else "a"
    be = "were" if target.agreement > 1 else "was"
    return lit(
        f"{target.fr} {avoir} été {adopted[0][target.agreement]} par {many} voix contre {few}",
        f"{target.en} {be} {adopted[1]} by {many} votes to {few}",
    )


def money(g: Clauses) -> Pair:
    """la Commission consacrera 120 millions d'euros à la recherche: will spend EUR 120 million on research"""
    agent = definite(g.draw(g.lexicon.institutions if g.chance(0.5) else g.lexicon.countries))
    theme = definite(g.draw(g.lexicon.generic["D"]))
    amount = 10 * int(1 + 20 * g.words.random() ** 2)
    unit = g.one_of((("millions", "million"), ("milliards", "billion")))
    plural = agent.agreement > 1
    how = g.one_of(((("ont consacré" if plural else "a consacré"), "spent"), (("consacreront" if plural else "consacrera"), "will spend"),
                    (("devraient consacrer" if plural else "devrait consacrer"), "should spend")))  # fmt: skip
    return lit(f"{agent.fr} {how[0]} {amount} {unit[0]} d'euros {theme.to}", f"{agent.en} {how[1]} EUR {amount} {unit[1]} on {theme.en}")


def percentage(g: Clauses) -> Pair:
    """en 2004, le chômage a reculé de 15 % en Espagne"""
    what = definite(g.draw(MEASURED))
    verb = g.one_of(MOVEMENTS)
    share = int(2 + 28 * g.words.random() ** 2)
    place = g.words.region()
    if g.chance(0.7):
        tense, year = PAST, 2010 - int(18 * g.words.random() ** 2)
        when = g.one_of((lit(f"en {year}", f"in {year}"), lit("l'année dernière", "last year"), lit(f"depuis {year}", f"since {year}")))
        if when.fr.startswith("depuis"):
            tense = PERFECT
    else:
        tense, year = FUTURE, 2012 + int(14 * g.words.random() ** 2)
        when = g.one_of((lit(f"d'ici à {year}", f"by {year}"), lit("l'année prochaine", "next year")))
    french = french_verb(verb, tense, what)
    english = f"has {verb.english[3]}" if tense == PERFECT else english_verb_group(verb, tense, what)
    return lit(f"{when.fr}, {what.fr} {french} de {share} % {place.fr}", f"{when.en}, {what.en} {english} by {share}% {place.en}")


def scheduled(g: Clauses) -> Pair:
    """le vote aura lieu mardi à 11 heures: will take place on Tuesday at 11 a.m."""
    event = g.words.event(definite_only=True)
    day = g.draw(DAYS)
    hour = 8 + int(12 * g.words.random())
    clock = f"{hour} a.m." if hour < 12 else "noon" if hour == 12 else f"{hour - 12} p.m."
    heure = "midi" if hour == 12 else f"{hour} heures"
    fr = AVOIR_LIEU.french.simple[FUTURE][event.person] + " lieu"
    return lit(f"{event.fr} {fr} {day.fr} à {heure}", f"{event.en} will take place on {day.en} at {clock}")


def compared(g: Clauses) -> Pair:
    """cette directive est plus ambitieuse que le programme du Conseil"""
    letter = g.one_of("TM")
    kind = "measure" if letter == "M" else "text"
    first = g.words.document(letter, definite_only=True)
    second = g.words.document(letter, definite_only=True)
    quality = g.draw(g.lexicon.quality[kind])
    plural = first.agreement > 1
    more = g.one_of(((("plus"), "more {} than"), ("moins", "less {} than"), ("aussi", "as {} as")))
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
    quality = g.draw(g.lexicon.quality["measure" if letter == "M" else "text"])
    le = "la" if noun.feminine else "le"
    when = g.one_of((lit("de l'année", "of the year"), lit("de la décennie", "of the decade"), lit("de notre histoire", "in our history"),
                     lit("de ces dernières années", "of recent years")))  # fmt: skip
    more = g.one_of((("plus", "most"), ("moins", "least")))
    superlative = {"most clear": "clearest", "most fair": "fairest"}.get(f"{more[1]} {quality.english}", f"{more[1]} {quality.english}")
    return lit(
        f"c'est {le} {noun.forms[0]} {le} {more[0]} {quality.forms[noun.feminine]} {when.fr}",
        f"it is the {superlative} {noun.english[0]} {when.en}",
    )


def ratified(g: Clauses) -> Pair:
    """douze pays ont ratifié la convention"""
    count = number(g)
    who = g.one_of((lit("pays", "countries"), lit("députés", "Members"), lit("régions", "regions"), lit("ministres", "ministers"),
                    lit("organisations", "organisations"), lit("délégations", "delegations"), lit("États membres", "Member States")))  # fmt: skip
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
