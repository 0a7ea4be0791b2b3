"""French and English word forms, and the spelling rules that hold across word borders.

Conjugation follows the classes of the usual school grammars (Bescherelle, *La conjugaison pour tous*): regular
verbs in -er, -ir and -re by rule, all others by the ending of their infinitive.
"""

import re
from dataclasses import dataclass

JE, IL, NOUS, VOUS, ILS = range(5)  # grammatical persons; the English ones are I, he/she/it, we, you, they
PRESENT, PAST, PERFECT, PLUPERFECT, FUTURE, CONDITIONAL, SUBJUNCTIVE = range(7)

_DOUBLING = {"appeler", "rappeler", "rejeter", "renouveler"}  # rejette, not rejète
_FINIR = (
    "agir agrandir réagir établir choisir garantir définir fournir investir réunir élargir réussir ralentir "
    "approfondir assouplir durcir affaiblir saisir franchir punir unir trahir"
)

# ending of the infinitive: je, il, nous, ils, future stem, past participle, subjunctive stem (where irregular)
_IRREGULAR = {
    "être": "suis est sommes sont ser été soi",
    "avoir": "ai a avons ont aur eu ai",
    "aller": "vais va allons vont ir allé aill",
    "faire": "fais fait faisons font fer fait fass",
    "pouvoir": "peux peut pouvons peuvent pourr pu puiss",
    "vouloir": "veux veut voulons veulent voudr voulu veuill",
    "savoir": "sais sait savons savent saur su sach",
    "devoir": "dois doit devons doivent devr dû",
    "prévoir": "prévois prévoit prévoyons prévoient prévoir prévu",
    "promouvoir": "promeus promeut promouvons promeuvent promouvr promu",
    "envoyer": "envoie envoie envoyons envoient enverr envoyé",
    "accueillir": "accueille accueille accueillons accueillent accueiller accueilli",
    "cevoir": "çois çoit cevons çoivent cevr çu",
    "voir": "vois voit voyons voient verr vu",
    "enir": "iens ient enons iennent iendr enu",
    "prendre": "prends prend prenons prennent prendr pris",
    "mettre": "mets met mettons mettent mettr mis",
    "battre": "bats bat battons battent battr battu",
    "aindre": "ains aint aignons aignent aindr aint",
    "eindre": "eins eint eignons eignent eindr eint",
    "uire": "uis uit uisons uisent uir uit",
    "crire": "cris crit crivons crivent crir crit",
    "dire": "dis dit disons disent dir dit",
    "lire": "lis lit lisons lisent lir lu",
    "naître": "nais naît naissons naissent naîtr nu",
    "croire": "crois croit croyons croient croir cru",
    "suivre": "suis suit suivons suivent suivr suivi",
    "vaincre": "vaincs vainc vainquons vainquent vaincr vaincu",
    "clure": "clus clut cluons cluent clur clu",
    "rompre": "romps rompt rompons rompent rompr rompu",
    "frir": "fre fre frons frent frir fert",
    "vrir": "vre vre vrons vrent vrir vert",
    "partir": "pars part partons partent partir parti",
    "servir": "sers sert servons servent servir servi",
}
_WHOLE = ("être", "avoir", "aller")  # savoir and installer go another way
_NO_RULE = {"être": "étant", "avoir": "ayant", "savoir": "sachant"}  # present participles
_VOUS = {"êtes": "être", "faites": "faire", "dites": "dire"}

_ENGLISH_IRREGULAR = {
    "be": "was been",
    "begin": "began begun",
    "bring": "brought brought",
    "cut": "cut cut",
    "draw": "drew drawn",
    "fall": "fell fallen",
    "fight": "fought fought",
    "find": "found found",
    "forget": "forgot forgotten",
    "get": "got got",
    "give": "gave given",
    "go": "went gone",
    "grow": "grew grown",
    "have": "had had",
    "hold": "held held",
    "keep": "kept kept",
    "know": "knew known",
    "leave": "left left",
    "lose": "lost lost",
    "make": "made made",
    "meet": "met met",
    "overcome": "overcame overcome",
    "put": "put put",
    "read": "read read",
    "rise": "rose risen",
    "say": "said said",
    "see": "saw seen",
    "send": "sent sent",
    "set": "set set",
    "show": "showed shown",
    "speak": "spoke spoken",
    "spend": "spent spent",
    "take": "took taken",
    "tell": "told told",
    "think": "thought thought",
    "understand": "understood understood",
    "undertake": "undertook undertaken",
    "withdraw": "withdrew withdrawn",
    "write": "wrote written",
    "win": "won won",
    "uphold": "upheld upheld",
    "choose": "chose chosen",
    "build": "built built",
    "come": "came come",
    "draft": "drafted drafted",
    "mean": "meant meant",
    "hear": "heard heard",
    "hit": "hit hit",
    "swear": "swore sworn",
}
_ENGLISH_DOUBLING = {
    "commit",
    "submit",
    "admit",
    "regret",
    "ban",
    "plan",
    "permit",
    "refer",
    "cancel",
    "travel",
    "transfer",
    "stop",
    "begin",
    "cut",
    "forget",
    "get",
    "put",
    "set",
    "win",
    "hit",
}


@dataclass(frozen=True, slots=True)
class Conjugation:
    """Forms of a French verb: five persons a tense, four past participles (m., f., m. pl., f. pl.)."""

    infinitive: str
    simple: dict[int, tuple[str, ...]]  # tense -> je, il, nous, vous, ils
    imperfect: tuple[str, ...]
    participles: tuple[str, ...]
    gerund: str  # adoptant


def conjugate(infinitive: str) -> Conjugation:
    """All forms of a French verb that the grammar uses."""
    je, il, nous, ils, future, participle, subjunctive = _principal_parts(infinitive)
    vous = next((form for form, verb in _VOUS.items() if infinitive == verb), nous[:-3] + "ez")
    stem = "ét" if infinitive == "être" else nous[:-3]
    hard = stem[:-1] if stem.endswith("ge") else stem[:-1] + "c" if stem.endswith("ç") else stem  # before i
    if infinitive.endswith("er") and infinitive != "aller":
        vous = hard + "ez"
    present = (je, il, nous, vous, ils)
    imperfect = (stem + "ais", stem + "ait", hard + "ions", hard + "iez", stem + "aient")
    strong = subjunctive or ils[:-3]
    if infinitive == "être":
        subjunctives = ("sois", "soit", "soyons", "soyez", "soient")
    elif infinitive == "avoir":
        subjunctives = ("aie", "ait", "ayons", "ayez", "aient")
    else:
        regular = infinitive in ("faire", "pouvoir", "savoir")
        weak = strong if regular else hard
        subjunctives = (strong + "e", strong + "e", weak + "ions", weak + "iez", strong + "ent")
    simple = {
        PRESENT: present,
        FUTURE: tuple(future + ending for ending in ("ai", "a", "ons", "ez", "ont")),
        CONDITIONAL: tuple(future + ending for ending in ("ais", "ait", "ions", "iez", "aient")),
        SUBJUNCTIVE: subjunctives,
    }
    masculine = participle if participle.endswith("s") else participle + "s"
    bare = participle.replace("û", "u")
    forms = (participle, bare + "e", masculine.replace("û", "u"), bare + "es")
    return Conjugation(infinitive, simple, imperfect, forms, _NO_RULE.get(infinitive, stem + "ant"))


def _principal_parts(infinitive: str) -> tuple[str, str, str, str, str, str, str]:
    for ending, row in _IRREGULAR.items():
        if infinitive == ending or (infinitive.endswith(ending) and ending not in _WHOLE):
            prefix = infinitive[: -len(ending)]
            parts = [prefix + part for part in row.split()]
            parts += [""] * (7 - len(parts))
            return tuple(parts)  # type: ignore[return-value]
    if infinitive in _FINIR.split():
        stem = infinitive[:-1]
        return stem + "s", stem + "t", stem + "ssons", stem + "ssent", infinitive, stem, ""
    if infinitive.endswith("dre"):
        stem = infinitive[:-2]
        return stem + "s", stem, stem + "ons", stem + "ent", infinitive[:-1], stem + "u", ""
    if not infinitive.endswith("er"):
        raise ValueError(f"no conjugation known for the French verb {infinitive!r}")
    stem = infinitive[:-2]
    future = infinitive
    strong = stem  # before a silent e
    if infinitive in _DOUBLING:
        strong = stem + stem[-1]
        future = strong + "er"
    elif re.search(r"e[^aeiouéè]$", stem):
        strong = stem[:-2] + "è" + stem[-1]
        future = strong + "er"
    elif match := re.search(r"é([^aeiouéè]+)$", stem):
        strong = stem[: match.start()] + "è" + match.group(1)
    elif re.search(r"[ou]y$", stem):
        strong = stem[:-1] + "i"
        future = strong + "er"
    soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
    return strong + "e", strong + "e", soft + "ons", strong + "ent", future, stem + "é", ""


def french_plural(word: str) -> str:
    """Plural of a French noun or masculine adjective of one word."""
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + ("x" if word.endswith(("eau", "eu")) else "s")


def french_feminine(word: str) -> str:
    """Feminine singular of a French adjective given in the masculine singular."""
    if word.endswith("e"):
        return word
    for ending, feminine in (
        ("eux", "euse"),
        ("f", "ve"),
        ("er", "ère"),
        ("el", "elle"),
        ("en", "enne"),
        ("on", "onne"),
        ("et", "ète"),
        ("lic", "lique"),
        ("eau", "elle"),
        ("ong", "ongue"),
        ("rec", "recque"),
        ("urc", "urque"),
    ):
        if word.endswith(ending):
            return word[: -len(ending)] + feminine
    return word + "e"


def english_plural(noun: str) -> str:
    """Plural of an English noun; of the last word where there are several."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeo":
        return noun[:-1] + "ies"
    return noun + "s"


def english_verb(base: str) -> tuple[str, str, str, str]:
    """Third person, past, past participle and -ing form of an English verb."""
    if base == "be":
        return "is", "was", "been", "being"
    third = "has" if base == "have" else base + "es" if base == "go" else english_plural(base)
    double = base + base[-1] if base in _ENGLISH_DOUBLING else base
    ing = (base[:-1] if base.endswith("e") and not base.endswith("ee") else double) + "ing"
    if base in _ENGLISH_IRREGULAR:
        past, participle = _ENGLISH_IRREGULAR[base].split()
        return third, past, participle, ing
    if base.endswith("e"):
        past = base + "d"
    elif base.endswith("y") and base[-2] not in "aeo":
        past = base[:-1] + "ied"
    else:
        past = double + "ed"
    return third, past, past, ing


_ELIDED = {
    "le": "l'",
    "la": "l'",
    "du": "de l'",
    "au": "à l'",
    "de": "d'",
    "que": "qu'",
    "ne": "n'",
    "je": "j'",
    "se": "s'",
    "me": "m'",
    "ce": "cet ",
    "sa": "son ",
    "ma": "mon ",
    "lorsque": "lorsqu'",
    "puisque": "puisqu'",
    "nouveau": "nouvel ",
}
# The h of hausse, haut, huit and Hongrie is not silent.
_SILENT_H = r"abit|ier\b|armon|érit|eur|ist|iver|omm|onn|ôpit|ôt|um|yg|yp|ésit"
_BEFORE_VOWEL = re.compile(
    rf"\b({'|'.join(_ELIDED)}) (?=[aeiouàâéèêîôûœAEIOUÀÂÉÈÊÎÔŒ]|y |h(?:{_SILENT_H})|Helsinki)(?!onz|oui\b)"
)
_BEFORE_VOWEL_SOUND = re.compile(
    r"\b([Aa]) (?=(?:(?!eu|uni[^nm]|unan|us[aeu]|one\b|once\b)[aeiou]|hour|hon(?:est|our))|[AIO]|E(?!u))"
)


def elide(sentence: str) -> str:
    """Apply French elision and its kin: `le accord` -> `l'accord`, `ce accord` -> `cet accord`."""
    return _BEFORE_VOWEL.sub(lambda match: _ELIDED[match.group(1)], sentence)


def indefinite(sentence: str) -> str:
    """Turn the English article `a` into `an` where a vowel sound follows."""
    return _BEFORE_VOWEL_SOUND.sub(r"\1n ", sentence)
