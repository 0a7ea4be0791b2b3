"""The endless stream of sentence pairs."""

from collections.abc import Iterator

from hotloop.data.text.parliament import patterns as p
from hotloop.data.text.parliament import set_pieces as q
from hotloop.data.text.parliament.clauses import Clauses
from hotloop.data.text.parliament.frames import framed
from hotloop.data.text.parliament.morphology import elide, indefinite

GRAMMAR_VERSION = 1  # in the name of the folder: a changed grammar never mixes with old files

# (share in per mille, pattern, final mark); statements may take a connective or an address
PATTERNS = (
    (190, p.plain, "."), (90, p.things, "."), (65, p.report, "."), (30, p.fact, "."), (25, p.wish, "."), (20, p.although, "."),
    (22, p.task, "."), (35, p.pronoun_contrast, "."), (35, p.same_subject, "."), (28, p.when_future, "."),
    (25, p.conditional, "."), (30, p.because, "."), (25, p.contrast, "."), (14, p.two_predicates, "."),
    (12, p.not_only, "."), (10, p.only, "."), (12, p.some_of_them, "."), (10, p.none, "."), (20, p.gave_him, "."),
    (14, p.took_part, "."), (14, p.took_account, "."), (14, p.as_for, "."), (12, p.must_it, "."), (14, p.whose, "."),
    (18, p.aside, "."), (12, p.cleft, "."), (16, p.by_doing, "."), (16, p.after_doing, "."), (18, p.without_doing, "."),
    (18, p.in_order_to, "."), (18, p.for_years, "."), (14, p.just_now, "."), (22, p.call_on, "."), (10, p.neither, "."),
    (14, p.together, "."), (14, p.according_to, "."), (10, p.two_hands, "."), (10, p.reasons, "."),
    (28, q.yes_no, "?"), (18, q.why, "?"), (10, q.modal_question, "?"), (14, q.polite, "?"), (8, q.how_many, "?"),
    (8, q.who, "?"), (8, q.position, "?"), (8, q.what_will, "?"), (8, q.objectives, "?"), (12, q.let_us, "."),
    (10, q.please, "."), (14, q.thanks, "."), (12, q.vote_count, "."), (12, q.money, "."), (12, q.percentage, "."),
    (10, q.scheduled, "."), (10, q.compared, "."), (8, q.superlative, "."), (12, q.ratified, "."), (4, q.procedure, "."),
    (12, q.first_person, "."),
)  # fmt: skip
LONGEST = 25  # spaces and apostrophes, before a connective: at most 30 words and marks with it
UNFRAMED = {q.procedure, p.two_hands, q.thanks, q.please}


def generate(seed: int) -> Iterator[tuple[str, str]]:
    """Endless (French, English) sentences, the same for the same seed; short ones repeat now and then."""
    g = Clauses(seed)
    wheel = [(pattern, mark) for share, pattern, mark in PATTERNS for _ in range(share)]
    while True:
        pattern, mark = g.one_of(wheel)
        pair = pattern(g)
        if pair.fr.count(" ") + pair.fr.count("'") > LONGEST:
            continue
        if mark == "." and pattern not in UNFRAMED:
            pair = framed(g, pair)
        french, english = elide(pair.fr), indefinite(pair.en)
        french = french[0].upper() + french[1:] + (" ?" if mark == "?" else mark)
        english = english[0].upper() + english[1:] + ("" if english.endswith(".") else mark)  # 4 p.m.
        yield french, english
