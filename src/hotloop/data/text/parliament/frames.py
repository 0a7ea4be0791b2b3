"""What a clause may wear: times, connectives, addresses."""

from hotloop.data.text.parliament.clauses import Clauses
from hotloop.data.text.parliament.lexicon import Pair, pairs
from hotloop.data.text.parliament.morphology import FUTURE, PAST, PRESENT
from hotloop.data.text.parliament.phrase import Phrase
from hotloop.data.text.parliament.verb_groups import words

DAYS = pairs(
    "mardi = Tuesday; jeudi = Thursday; lundi = Monday; mercredi = Wednesday; vendredi = Friday; "
    "samedi = Saturday; dimanche = Sunday"
)
MONTHS = pairs("""mars = March; juin = June; mai = May; janvier = January; septembre = September;
    octobre = October; avril = April; novembre = November; décembre = December; juillet = July;
    février = February; août = August""")
NUMBERS = pairs("""deux = two; trois = three; quatre = four; cinq = five; six = six; dix = ten;
    sept = seven; huit = eight; douze = twelve; neuf = nine; quinze = fifteen; onze = eleven;
    vingt = twenty; treize = thirteen; trente = thirty; quatorze = fourteen; seize = sixteen;
    quarante = forty; dix-huit = eighteen; cinquante = fifty; cent = one hundred""")
MANY = pairs("""dix = ten; cinq = five; douze = twelve; vingt = twenty; six = six; quinze = fifteen;
    sept = seven; trente = thirty; huit = eight; cinquante = fifty; cent = one hundred""")
PAST_TIMES = pairs("""hier = yesterday; la semaine dernière = last week; l'année dernière = last year;
    le mois dernier = last month; ce matin = this morning; hier soir = yesterday evening;
    avant-hier = the day before yesterday; lors de la dernière séance = at the last sitting;
    au début de l'année = at the beginning of the year; l'été dernier = last summer;
    à l'époque = at the time; l'hiver dernier = last winter; il y a quelques jours = a few days ago;
    au printemps dernier = last spring; juste avant Noël = just before Christmas;
    à la fin de l'année = at the end of the year""")
FUTURE_TIMES = pairs("""demain = tomorrow; la semaine prochaine = next week;
    l'année prochaine = next year; le mois prochain = next month;
    avant la fin de l'année = before the end of the year; après-demain = the day after tomorrow;
    d'ici la fin du mois = by the end of the month; bientôt = soon; ce soir = this evening;
    tôt ou tard = sooner or later; lors de la prochaine séance = at the next sitting;
    l'été prochain = next summer; dans les prochains jours = in the coming days; à l'avenir = in future;
    dans le courant de l'été = in the course of the summer; au printemps prochain = next spring""")
PRESENT_TIMES = pairs("""aujourd'hui = today; actuellement = currently; en ce moment = at the moment;
    cette année = this year; à cet égard = in this respect; cette semaine = this week;
    dans ce domaine = in this area""")

CONNECTIVES = pairs("""toutefois, = however,; en effet, = indeed,; par ailleurs, = moreover,;
    cependant, = nevertheless,; par conséquent, = consequently,;
    en outre, = furthermore,; malheureusement, = unfortunately,; en réalité, = in reality,;
    heureusement, = fortunately,; enfin, = finally,; à mon avis, = in my opinion,;
    d'abord, = first of all,; bien entendu, = of course,; en d'autres termes, = in other words,;
    de toute évidence, = clearly,; néanmoins, = nonetheless,; en principe, = in principle,;
    à notre avis, = in our opinion,; en particulier, = in particular,; autrement dit, = put differently,;
    de plus, = in addition,; en fin de compte, = in the end,; paradoxalement, = paradoxically,;
    tout d'abord, = to begin with,""")
ADDRESSES = pairs("""Monsieur le Président, = Mr President,; Madame la Présidente, = Madam President,;
    chers collègues, = ladies and gentlemen,; Monsieur le Commissaire, = Commissioner,;
    Mesdames et Messieurs, = ladies and gentlemen,; Monsieur le Ministre, = Minister,""")


def join(*parts: Pair) -> Pair:
    return Pair(words(*(part.fr for part in parts)), words(*(part.en for part in parts)))


def lit(fr: str, en: str) -> Pair:
    return Pair(fr, en)


def said(phrase: Phrase) -> Pair:
    return Pair(phrase.fr, phrase.en)


def number(g: Clauses) -> Pair:
    return g.draw(NUMBERS)


def time(g: Clauses, tense: int) -> Pair:
    """An adverbial of time that suits the tense."""
    draw = g.words.random()
    if tense == PRESENT:
        return g.draw(PRESENT_TIMES)
    past = tense == PAST
    if draw < 0.45:
        return g.draw(PAST_TIMES if past else FUTURE_TIMES)
    if draw < 0.58:
        day = g.draw(DAYS)
        return Pair(f"{day.fr} dernier", f"last {day.en}") if past else Pair(f"{day.fr} prochain", f"next {day.en}")
    if draw < 0.68:
        count = number(g)
        unit = g.one_of((("jours", "days"), ("semaines", "weeks"), ("mois", "months"), ("ans", "years")))
        if past:
            return Pair(f"il y a {count.fr} {unit[0]}", f"{count.en} {unit[1]} ago")
        return Pair(f"dans {count.fr} {unit[0]}", f"in {count.en} {unit[1]}")
    year = (2010 - int(18 * g.words.random() ** 2)) if past else 2012 + int(14 * g.words.random() ** 2)
    if draw < 0.82:
        return Pair(f"en {year}", f"in {year}")
    return date(g, year)


def date(g: Clauses, year: int) -> Pair:
    """le 12 mars 2004, on 12 March 2004"""
    month = g.draw(MONTHS)
    day = 1 + int(28 * g.words.random())
    if g.chance(0.3):
        return Pair(f"en {month.fr} {year}", f"in {month.en} {year}")
    return Pair(f"le {'1er' if day == 1 else day} {month.fr} {year}", f"on {day} {month.en} {year}")


def dated(g: Clauses, tense: int, clause: Pair, probability: float = 0.4) -> Pair:
    """The clause with a time before or behind it, or as it is."""
    if tense not in (PAST, PRESENT, FUTURE) or not g.chance(probability):
        return clause
    when = time(g, tense)
    if tense == PRESENT or g.chance(0.5):
        return Pair(f"{when.fr}, {clause.fr}", f"{when.en}, {clause.en}")
    return Pair(f"{clause.fr} {when.fr}", f"{clause.en} {when.en}")


def timed_clause(g: Clauses, tense: int, probability: float) -> Pair:
    """Any clause; a time goes with events only, not with how things are."""
    draw = g.words.random()
    if draw < 0.2:
        return g.state(tense)
    clause = g.passive(tense) if draw < 0.3 else g.clause(tense, g.words.speaker())
    return dated(g, tense, clause, probability)


def framed(g: Clauses, clause: Pair, *, connective: bool) -> Pair:
    """The clause with a connective (if allowed) or an address before it, or as it is."""
    draw = g.words.random()
    if draw < 0.16 and connective:
        frame = g.draw(CONNECTIVES)
    elif 0.16 <= draw < 0.22:
        frame = g.draw(ADDRESSES)
    else:
        return clause
    return Pair(f"{frame.fr} {clause.fr}", f"{frame.en} {clause.en}")
