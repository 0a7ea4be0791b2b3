"""Questions: inversion in French, do-support in English."""

from hotloop.data.text.parliament.clauses import Clauses
from hotloop.data.text.parliament.frames import join, lit, said
from hotloop.data.text.parliament.lexicon import Pair, Verb, pairs
from hotloop.data.text.parliament.morphology import CONDITIONAL, FUTURE, IL, NOUS, PAST, PRESENT, VOUS
from hotloop.data.text.parliament.phrase import AVOIR, BE, ETRE, HE_FR, REFLEXIVE, WE, YOU, Phrase, definite
from hotloop.data.text.parliament.verb_groups import COMPOUND, object_of, words

INTERROGATIVES = pairs("pourquoi = why; quand = when; comment = how")


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
    subject, modal = g.one_of(
        (
            (WE, lit("pouvons-nous", "can we")),
            (WE, lit("devons-nous", "must we")),
            (YOU, lit("pouvez-vous", "can you")),
            (WE, lit("devrions-nous", "should we")),
            (YOU, lit("voulez-vous", "do you want to")),
        )
    )
    return join(modal, g.infinitive(subject))


def polite(g: Clauses) -> Pair:
    """pourriez-vous nous expliquer pourquoi la Commission a retiré la directive ?"""
    ask = g.one_of(
        (
            lit("pourriez-vous nous expliquer", "could you explain to us"),
            lit("pouvez-vous nous dire", "can you tell us"),
            lit("savez-vous", "do you know"),
            lit("pouvez-vous nous confirmer", "can you confirm to us"),
        )
    )
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
    french, english = (
        (("feront" if plural else "fera"), "will") if g.chance(0.6) else (("font" if plural else "fait"), "")
    )
    if english:
        head = lit(f"que {french} {agent.fr}", f"what will {agent.en} do")
    else:
        be = "is" if agent.english_person == IL else "are"
        head = lit(f"que {french} {agent.fr}", f"what {be} {agent.en} doing")
    return join(
        head,
        lit(f"pour {verb.french.infinitive} {target.fr}", f"to {words(verb.english[0], verb.particle)} {target.en}"),
    )


def objectives(g: Clauses) -> Pair:
    """quels sont les objectifs de cette directive ?"""
    target = g.words.document(g.one_of("TTCM"), definite_only=True)
    fr, en = g.one_of(
        (
            ("quels sont les objectifs", "what are the objectives of"),
            ("quel est le coût", "what is the cost of"),
            ("quelles seront les conséquences", "what will be the consequences of"),
            ("quel est le but", "what is the purpose of"),
            ("quels sont les avantages", "what are the advantages of"),
        )
    )
    return lit(f"{fr} {target.de}", f"{en} {target.en}")
