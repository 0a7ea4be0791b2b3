"""The embedded corpus: right sentences, one translation each, the same files for the same numbers."""

import hashlib
import itertools
import multiprocessing
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hotloop.data.text.parliament import Parliament, generate
from hotloop.data.text.parliament.clauses import AFFIRMED, NOT, Clauses, Negation
from hotloop.data.text.parliament.generator import GRAMMAR_VERSION, PATTERNS
from hotloop.data.text.parliament.lexicon import lexicon, verb_list
from hotloop.data.text.parliament.morphology import (
    CONDITIONAL,
    FUTURE,
    PAST,
    PERFECT,
    PLUPERFECT,
    PRESENT,
    SUBJUNCTIVE,
    conjugate,
    elide,
    english_plural,
    english_verb,
    french_feminine,
    french_plural,
    indefinite,
)
from hotloop.data.text.parliament.phrase import WE, I, Phrase, definite
from hotloop.data.text.parliament.phrases import Words
from hotloop.data.text.parliament.questions import english_inverted, french_inverted
from hotloop.data.text.parliament.verb_groups import Action, english_verb_group, french_verb
from hotloop.errors import UserError

WORD = re.compile(r"\w+'|\w+|[^\w\s]")  # l' and a full stop count as words


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    """100,000 pairs."""
    return list(itertools.islice(generate(1), 100_000))


def read(files: object) -> list[tuple[str, str]]:
    source, target = files.source.read_text("utf-8"), files.target.read_text("utf-8")  # type: ignore[attr-defined]
    assert source.endswith("\n") and target.endswith("\n")
    return list(zip(source.splitlines(), target.splitlines(), strict=True))


# -- the whole stream -------------------------------------------------------------------------------------------------


def test_a_french_sentence_has_one_translation(pairs: list[tuple[str, str]]) -> None:
    translations: dict[str, str] = {}
    for french, english in pairs:
        assert translations.setdefault(french, english) == english, french
    assert len(translations) > 95_000  # few repeats


@pytest.mark.parametrize(
    "wrong",
    [
        r"\b(?:le|la|de|ne|que|se|je|me|ce|lorsque|puisque) (?!onz)[aeiouàâéèêîôûAEIOUÉÈÊÀ]",  # not elided
        r"\b[ldnsjmLDNSJM]'(?![aeiouyhàâéèêîôûAEIOUÉÈÊÀHÎ])",  # elided without reason
        r"\b[ldLD]'(?:haut|hausse|huit|Hongrie|hongrois|héros|onz|oui\b)",
        r"\b[Dd]e les?\b(?! \w+er\b| \w+ir\b| \w+re\b| mettre)",  # de le rapport; de le rejeter is right
        r"\bà les?\b(?! \w+er\b| \w+ir\b| \w+re\b)",
        r"\b(?:du|au) [aeiouéèêàâîôAEIOUÉÈ]",
        r"\b(?:nouveau|sa|ma) [aeiouéèêàâîôAEIOUÉÈ]",
        r"\bcet [^aeiouéèêàâîôh]|\bnouvel [^aeiouéèêàâîôh]",
        r"\bdes [a-zé]+ (?:de|d') les\b",
        r"\bsi ils?\b",
        r"\bne (?:pas|plus|jamais) ne\b",
        r"  |^\s|\s$| [,.;]$",
        r"\b(\w+) \1\b(?<!nous nous)(?<!vous vous)",  # a word twice
    ],
)
def test_no_french_sentence_breaks_a_spelling_rule(wrong: str, pairs: list[tuple[str, str]]) -> None:
    pattern = re.compile(wrong)
    found = [french for french, _ in pairs if pattern.search(french)]
    assert not found, found[:5]


@pytest.mark.parametrize(
    "wrong",
    [
        r"\b[Aa] (?:[aio]|e(?!uro)|A|I|O|E(?!uro)|hour|honest)",  # a agreement
        r"\b[Aa] u(?!ni[^nm]|se|su|nan)",
        r"\b[Aa]n (?:[bcdfgjklmnpqrstvwxyz]|Europ|unit|univ|useful)",
        r"\b(?:He|She|It|he|she|it) (?:have|are|do|were)\b",
        r"\b(?:we|they|We|They) (?:has|is|does|was)\b",
        r"\b(?:did|does|do|will|would|must|can|cannot|should|could)(?: not)? \w+ed\b(?<!need)(?<!heed)(?<!proceed)",
        r"\bto (?:adopts|adopted|adopting|supports|supported)\b",
        r"  |^\s|\s$| [,.;?]|\.\.",
        r"\bthe the\b|\ba the\b|\bthe (?:his|her|its|their|our|this|these)\b",
        r"s's\b",
        r"\b(\w+) \1\b",
    ],
)
def test_no_english_sentence_breaks_a_spelling_rule(wrong: str, pairs: list[tuple[str, str]]) -> None:
    pattern = re.compile(wrong)
    found = [english for _, english in pairs if pattern.search(english)]
    assert not found, found[:5]


def test_sentences_begin_with_a_capital_and_end_with_a_mark(pairs: list[tuple[str, str]]) -> None:
    for french, english in pairs:
        assert french[0].isupper() and english[0].isupper()
        assert french.endswith((".", " ?")) and english.endswith((".", "?"))
        assert french.endswith("?") == english.endswith("?")
        assert "?" not in french[:-1] and "\n" not in french and "\t" not in french


def test_numbers_and_surnames_are_the_same_on_both_sides(pairs: list[tuple[str, str]]) -> None:
    for french, english in pairs:
        surnames = re.findall(r"\bM(?:me|\.) (\w+)", french)
        assert Counter(surnames) == Counter(re.findall(r"\bMrs? (?!President)(\w+)", english)), (french, english)
        years = re.findall(r"\b(?:19|20)\d\d\b", french)
        assert Counter(years) == Counter(re.findall(r"\b(?:19|20)\d\d\b", english)), (french, english)


def test_lengths_run_from_short_to_long(pairs: list[tuple[str, str]]) -> None:
    lengths = sorted(len(WORD.findall(french)) for french, _ in pairs)
    assert lengths[0] >= 4
    assert lengths[-1] <= 34 and sum(length > 30 for length in lengths) < len(lengths) / 500
    assert sum(12 <= length <= 30 for length in lengths) > 0.4 * len(lengths)
    assert sum(length <= 8 for length in lengths) > 0.08 * len(lengths)


def test_vocabulary_is_neither_tiny_nor_huge_and_has_rare_words(pairs: list[tuple[str, str]]) -> None:
    for side, low, high in ((0, 1_800, 2_800), (1, 1_200, 2_200)):
        counts = Counter(word for pair in pairs[:20_000] for word in WORD.findall(pair[side]))
        assert low < len(counts) < high
        assert sum(count < 5 for count in counts.values()) > 0.03 * len(counts)


def test_there_are_many_patterns_and_words() -> None:
    assert len(PATTERNS) >= 50 and len({pattern for _, pattern, _ in PATTERNS}) == len(PATTERNS)
    assert lexicon().size() >= 700


@pytest.mark.parametrize("pattern", [pattern for _, pattern, _ in PATTERNS], ids=lambda pattern: pattern.__name__)
def test_every_pattern_varies(pattern: object) -> None:
    g = Clauses(3)
    drawn = {pattern(g) for _ in range(60)}  # type: ignore[operator]
    assert len(drawn) > 12
    assert all(pair.fr and pair.en for pair in drawn)


def test_the_same_seed_gives_the_same_pairs_whatever_the_hash_seed() -> None:
    code = "import itertools; from hotloop.data.text.parliament import generate; "
    code += "print(hash('x')); print(*itertools.islice(generate(7), 500), sep='\\n')"
    runs = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        runs.append(done.stdout.decode().split("\n", 1))
    assert runs[0][0] != runs[1][0]
    assert runs[0][1] == runs[1][1]
    here = "\n".join(str(pair) for pair in itertools.islice(generate(7), 500))
    assert runs[0][1].strip() == here


def test_another_seed_gives_other_pairs() -> None:
    first, second = (set(itertools.islice(generate(seed), 500)) for seed in (1, 2))
    assert len(first & second) < 25


# -- words and spelling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("infinitive", "tense", "forms"),
    [
        ("adopter", PRESENT, "adopte adopte adoptons adoptez adoptent"),
        ("protéger", PRESENT, "protège protège protégeons protégez protègent"),
        ("renforcer", PRESENT, "renforce renforce renforçons renforcez renforcent"),
        ("rejeter", FUTURE, "rejetterai rejettera rejetterons rejetterez rejetteront"),
        ("espérer", FUTURE, "espérerai espérera espérerons espérerez espéreront"),
        ("envoyer", FUTURE, "enverrai enverra enverrons enverrez enverront"),
        ("soutenir", PRESENT, "soutiens soutient soutenons soutenez soutiennent"),
        ("garantir", PRESENT, "garantis garantit garantissons garantissez garantissent"),
        ("défendre", CONDITIONAL, "défendrais défendrait défendrions défendriez défendraient"),
        ("dire", PRESENT, "dis dit disons dites disent"),
        ("faire", SUBJUNCTIVE, "fasse fasse fassions fassiez fassent"),
        ("réduire", SUBJUNCTIVE, "réduise réduise réduisions réduisiez réduisent"),
        ("recevoir", SUBJUNCTIVE, "reçoive reçoive recevions receviez reçoivent"),
        ("combattre", PRESENT, "combats combat combattons combattez combattent"),
        ("vouloir", PRESENT, "veux veut voulons voulez veulent"),
        ("convaincre", PRESENT, "convaincs convainc convainquons convainquez convainquent"),
        ("reconnaître", PRESENT, "reconnais reconnaît reconnaissons reconnaissez reconnaissent"),
    ],
)
def test_french_verbs_are_conjugated(infinitive: str, tense: int, forms: str) -> None:
    assert conjugate(infinitive).simple[tense] == tuple(forms.split())


@pytest.mark.parametrize(
    ("infinitive", "participles", "gerund", "imperfect"),
    [
        ("mettre", "mis mise mis mises", "mettant", "mettait"),
        ("lire", "lu lue lus lues", "lisant", "lisait"),
        ("créer", "créé créée créés créées", "créant", "créait"),
        ("protéger", "protégé protégée protégés protégées", "protégeant", "protégeait"),
        ("annoncer", "annoncé annoncée annoncés annoncées", "annonçant", "annonçait"),
        ("savoir", "su sue sus sues", "sachant", "savait"),
    ],
)
def test_french_participles(infinitive: str, participles: str, gerund: str, imperfect: str) -> None:
    verb = conjugate(infinitive)
    assert verb.participles == tuple(participles.split())
    assert (verb.gerund, verb.imperfect[1]) == (gerund, imperfect)


def test_a_verb_without_a_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="bouillir"):
        conjugate("bouillir")


def test_plurals_and_feminines() -> None:
    assert [french_plural(word) for word in ("journal", "bureau", "pays", "rapport")] == [
        "journaux", "bureaux", "pays", "rapports"
    ]  # fmt: skip
    assert [french_feminine(word) for word in ("européen", "ambitieux", "financier", "utile", "public")] == [
        "européenne", "ambitieuse", "financière", "utile", "publique"
    ]  # fmt: skip
    assert [english_plural(word) for word in ("policy", "tax", "survey", "ministry", "speech")] == [
        "policies", "taxes", "surveys", "ministries", "speeches"
    ]  # fmt: skip
    assert english_verb("ban") == ("bans", "banned", "banned", "banning")
    assert english_verb("study") == ("studies", "studied", "studied", "studying")
    assert english_verb("withdraw") == ("withdraws", "withdrew", "withdrawn", "withdrawing")


@pytest.mark.parametrize(
    ("written", "spelt"),
    [
        ("le accord de la Italie", "l'accord de l'Italie"),
        ("ce accord ne est que un début", "cet accord n'est qu'un début"),
        ("de le rejeter", "de le rejeter"),
        ("la Hongrie et la hausse de la inflation", "la Hongrie et la hausse de l'inflation"),
        ("du hôpital au habitant", "de l'hôpital à l'habitant"),
        ("sa excellente étude, un nouveau accord", "son excellente étude, un nouvel accord"),
        ("je y participe lorsque il vote que hier", "j'y participe lorsqu'il vote qu'hier"),
        ("le onze mars, le huit mai", "le onze mars, le huit mai"),
    ],
)
def test_elision(written: str, spelt: str) -> None:
    assert elide(written) == spelt


@pytest.mark.parametrize(
    ("written", "spelt"),
    [
        ("a agreement", "an agreement"),
        ("a European law", "a European law"),
        ("a useful annex", "a useful annex"),
        ("a unfair tax", "an unfair tax"),
        ("a unanimous vote", "a unanimous vote"),
        ("a hour", "an hour"),
        ("a Austrian minister", "an Austrian minister"),
        ("a historic vote", "a historic vote"),
    ],
)
def test_the_english_article(written: str, spelt: str) -> None:
    assert indefinite(written) == spelt


# -- constructions, against hand-written pairs ------------------------------------------------------------------------

COMMISSION = Phrase("la Commission", "de la Commission", "à la Commission", "the Commission", 1, "it")
NETHERLANDS = Phrase("les Pays-Bas", "des Pays-Bas", "aux Pays-Bas", "the Netherlands", 2, "it", 4)
MINISTERS = Phrase("les ministres", "des ministres", "aux ministres", "the ministers", 2, "they", 4)
DIRECTIVE = Phrase("la directive", "de la directive", "à la directive", "the directive", 1, "it")
SUPPORT, EXAMINE, WELCOME, HEED, WANT = verb_list(
    "soutenir|s|S|T|support\nexaminer|a|C|T|examine\nse féliciter de|s|-|T|welcome\n"
    "tenir compte de|s|-|T|take account of\nvouloir|i|-|-|want to"
)
NO_LONGER, NOT_YET = Negation("plus", "no longer"), Negation("pas encore", "not yet")


@pytest.mark.parametrize(
    ("verb", "tense", "subject", "negation", "french", "english"),
    [
        (SUPPORT, PRESENT, COMMISSION, AFFIRMED, "la Commission soutient", "the Commission supports"),
        (SUPPORT, PRESENT, COMMISSION, NOT, "la Commission ne soutient pas", "the Commission does not support"),
        (
            SUPPORT, PRESENT, NETHERLANDS, NO_LONGER,
            "les Pays-Bas ne soutiennent plus", "the Netherlands no longer supports",
        ),
        (EXAMINE, PRESENT, MINISTERS, NOT, "les ministres n'examinent pas", "the ministers are not examining"),
        (SUPPORT, PAST, WE, NOT, "nous n'avons pas soutenu", "we did not support"),
        (
            SUPPORT, PERFECT, COMMISSION, NOT_YET,
            "la Commission n'a pas encore soutenu", "the Commission has not yet supported",
        ),
        (SUPPORT, PLUPERFECT, MINISTERS, AFFIRMED, "les ministres avaient soutenu", "the ministers had supported"),
        (EXAMINE, FUTURE, I, AFFIRMED, "j'examinerai", "I will examine"),
        (WELCOME, PAST, COMMISSION, AFFIRMED, "la Commission s'est félicitée", "the Commission welcomed"),
        (WELCOME, PAST, MINISTERS, NOT, "les ministres ne se sont pas félicités", "the ministers did not welcome"),
        (HEED, PAST, WE, NOT, "nous n'avons pas tenu compte", "we did not take account of"),
        (WANT, PAST, COMMISSION, NOT, "la Commission ne voulait pas", "the Commission did not want to"),
        (EXAMINE, CONDITIONAL, MINISTERS, NOT, "les ministres n'examineraient pas", "the ministers would not examine"),
    ],
)  # fmt: skip
def test_finite_verbs(verb, tense, subject, negation, french, english) -> None:  # type: ignore[no-untyped-def]
    assert elide(f"{subject.fr} {french_verb(verb, tense, subject, negation=negation.fr)}") == french
    assert f"{subject.en} {english_verb_group(verb, tense, subject, negation=negation.en)}" == english


def test_a_participle_agrees_with_the_clitic_before_it() -> None:
    french = french_verb(SUPPORT, PAST, WE, negation="pas", clitic="la", agreement=DIRECTIVE.agreement)
    assert elide(french) == "ne l'avons pas soutenue"


@pytest.mark.parametrize(
    ("verb", "tense", "subject", "negation", "french", "english"),
    [
        (SUPPORT, PAST, COMMISSION, AFFIRMED, "a-t-elle soutenu", "did the Commission support"),
        (SUPPORT, PAST, MINISTERS, NOT, "n'ont-ils pas soutenu", "did the ministers not support"),
        (EXAMINE, PRESENT, COMMISSION, AFFIRMED, "examine-t-elle", "is the Commission examining"),
        (SUPPORT, PRESENT, NETHERLANDS, AFFIRMED, "soutiennent-ils", "does the Netherlands support"),
        (WELCOME, FUTURE, COMMISSION, AFFIRMED, "se félicitera-t-elle", "will the Commission welcome"),
        (HEED, PAST, COMMISSION, AFFIRMED, "a-t-elle tenu compte", "did the Commission take account of"),
    ],
)
def test_questions(verb, tense, subject, negation, french, english) -> None:  # type: ignore[no-untyped-def]
    assert elide(french_inverted(verb, tense, subject, negation=negation.fr)) == french
    assert english_inverted(verb, tense, subject, negation=negation.en) == english


def test_actions_take_the_reflexive_pronoun_and_the_preposition() -> None:
    action = Action(WELCOME, DIRECTIVE, WE)
    assert elide(action.infinitive().fr) == "nous féliciter de la directive"
    assert elide(action.gerund().fr) == "nous félicitant de la directive"
    assert elide(action.perfect_infinitive().fr) == "nous être félicités de la directive"
    assert action.infinitive().en == "welcome the directive" and action.ing() == "welcoming the directive"


def test_countries_take_their_prepositions() -> None:
    country = {name.english: name for name in lexicon().countries.entries}
    places = {"France": "en France", "Portugal": "au Portugal", "Cyprus": "à Chypre", "Italy": "en Italie",
              "the Netherlands": "aux Pays-Bas", "Hungary": "en Hongrie"}  # fmt: skip
    assert {key: Words.in_country(country[key]).fr for key in places} == places
    assert [elide(definite(country[key]).de) for key in ("Italy", "Hungary", "the United Kingdom", "Malta")] == [
        "de l'Italie", "de la Hongrie", "du Royaume-Uni", "de Malte"
    ]  # fmt: skip
    assert [elide(Words.from_country(country[key])) for key in ("Italy", "Portugal", "the United States")] == [
        "d'Italie", "du Portugal", "des États-Unis"
    ]  # fmt: skip


def test_noun_phrases_agree_and_reorder() -> None:
    g = Words(1)
    noun = next(entry for entry in g.lexicon.nouns["T"].entries if entry.english[0] == "directive")
    european = next(entry for entry in g.lexicon.relation["text"].entries if entry.english == "European")
    new = next(entry for entry in g.lexicon.before["text"].entries if entry.english == "new")
    phrase = g.noun(noun, "a", plural=True, before=new, after=european)
    assert (phrase.fr, phrase.en) == ("de nouvelles directives européennes", "new European directives")
    phrase = g.noun(noun, "of", owner=COMMISSION, after=european)
    assert phrase.de == "de la directive européenne de la Commission"
    assert phrase.en == "the Commission's European directive"
    phrase = g.noun(noun, "own", plural=True, owner=MINISTERS)
    assert (phrase.to, phrase.en) == ("à leurs directives", "their directives")


@pytest.mark.parametrize(
    ("french", "english"),
    [
        (r"nous ne l'avons pas \w+\.$", r"we did not \w+(?: \w+)? it\.$"),
        (r"depuis (?:deux|trois) ans\.$", r"\bha(?:s|ve) (?:been \w+ing|\w+) .* for (?:two|three) years\.$"),
        (r"\bil y a (?:deux|trois) ans\b", r"\b(?:two|three) years ago\b"),
        (r"\bvien(?:t|nent) (?:de |d')", r"\bha(?:s|ve) just\b"),
        (r"\bn'a jamais (?:adopté|rejeté)", r"\bnever (?:adopted|rejected)\b"),
        (r"\bmillions d'euros\b", r"\bEUR \d+ million\b"),
        (r", mais elle ne l'a pas adopté", r", but (?:it|she) did not adopt it"),
        (r"lui a remis", r"handed .* to (?:him|her)\b"),
        (r"n'y avons pas participé", r"we did not take part in (?:it|them)\b"),
        (r"\b[Aa]près avoir adopté", r"\b[Aa]fter adopting"),
        (r"\ba demandé aux États membres (?:de |d')", r"\basked the Member States to"),
    ],
)  # fmt: skip
def test_the_french_construction_brings_the_english_one(
    french: str, english: str, pairs: list[tuple[str, str]]
) -> None:
    found = [pair for pair in pairs if re.search(french, pair[0])]
    wrong = [pair for pair in found if not re.search(english, pair[1])]
    assert not wrong, wrong[:3]
    assert found, "never drawn"


# -- the corpus on disk -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [100, 5_000])
def test_files_hold_the_asked_number_of_different_pairs(size: int, tmp_path: Path) -> None:
    corpus = Parliament(pairs=size, valid=60, test=40, dir=str(tmp_path))
    assert (corpus.src_lang, corpus.tgt_lang) == ("fr", "en")
    splits = {name: read(files) for name, files in corpus.files().items()}
    assert {name: len(rows) for name, rows in splits.items()} == {"train": size, "valid": 60, "test": 40}
    everything = [row for rows in splits.values() for row in rows]
    assert len({french for french, _ in everything}) == len({english for _, english in everything}) == len(everything)


def test_valid_and_test_do_not_depend_on_the_number_of_training_pairs(tmp_path: Path) -> None:
    few, many = (Parliament(pairs=size, valid=100, test=100, dir=str(tmp_path)).files() for size in (100, 6_000))
    for split in ("valid", "test"):
        assert read(few[split]) == read(many[split])
    assert read(many["train"])[:100] == read(few["train"])


def test_files_are_written_once_and_again_the_same(tmp_path: Path) -> None:
    options = {"pairs": 150, "valid": 10, "test": 10, "seed": 5}
    first = Parliament(**options, dir=str(tmp_path / "a")).files()["train"]
    before = first.source.stat().st_mtime_ns
    assert Parliament(**options, dir=str(tmp_path / "a")).files()["train"] == first
    assert first.source.stat().st_mtime_ns == before
    again = Parliament(**options, dir=str(tmp_path / "b")).files()["train"]
    assert again.source.read_bytes() == first.source.read_bytes()
    other = Parliament(**{**options, "seed": 6}, dir=str(tmp_path / "a")).files()["train"]
    assert other.source != first.source and other.source.read_bytes() != first.source.read_bytes()


def test_an_interrupted_writer_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seed: int):  # type: ignore[no-untyped-def]
        yield from itertools.islice(generate(seed), 50)
        raise KeyboardInterrupt

    corpus = Parliament(pairs=150, valid=10, test=10, dir=str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("hotloop.data.text.parliament.corpus.generate", broken)
        with pytest.raises(KeyboardInterrupt):
            corpus.files()
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []
    assert len(read(corpus.files()["train"])) == 150


def _write(directory: str) -> str:
    return str(Parliament(pairs=2_000, valid=10, test=10, dir=directory).files()["train"].source)


def test_two_processes_share_one_corpus(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.map(_write, [str(tmp_path)] * 2)
    assert first == second
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pairs", 99), ("pairs", 2_000_001), ("pairs", -5), ("pairs", 1e4), ("pairs", True), ("pairs", "20000"),
        ("valid", 0), ("valid", 20_001), ("test", -1), ("seed", -1), ("seed", None),
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused_by_name(key: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"data\.corpus\.{key}=.*from [\d,]+ to [\d,]+") as caught:
        Parliament(**{key: value}, dir=str(tmp_path))  # type: ignore[arg-type]
    assert repr(value) in str(caught.value) and "\n" not in str(caught.value)


def test_a_changed_grammar_has_a_new_version() -> None:
    """Files written by an older grammar must not be taken for today's."""
    text = "\n".join("\t".join(pair) for pair in itertools.islice(generate(1), 5_000))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert (GRAMMAR_VERSION, digest) == (1, "ec9f072cc2dca8f1"), "raise GRAMMAR_VERSION and write the new digest here"
