"""The endless stream of sentence pairs."""

from collections.abc import Iterator

from hotloop.data.text.parliament import anaphora, questions, set_pieces, statements, subordination
from hotloop.data.text.parliament.clauses import Clauses
from hotloop.data.text.parliament.frames import framed
from hotloop.data.text.parliament.morphology import elide, indefinite

GRAMMAR_VERSION = 1  # in the name of the folder: a changed grammar never mixes with old files

# (share, pattern, final mark); statements may take a connective or an address
PATTERNS = (
    (190, statements.plain, "."),
    (90, statements.things, "."),
    (65, subordination.report, "."),
    (30, subordination.fact, "."),
    (25, subordination.wish, "."),
    (20, subordination.although, "."),
    (22, statements.task, "."),
    (35, anaphora.other_subject, "."),
    (35, anaphora.same_subject, "."),
    (28, anaphora.when_future, "."),
    (25, subordination.conditional, "."),
    (30, subordination.because, "."),
    (25, subordination.contrast, "."),
    (14, statements.two_predicates, "."),
    (12, statements.not_only, "."),
    (10, statements.only, "."),
    (12, anaphora.some_of_them, "."),
    (10, statements.none, "."),
    (20, anaphora.gave_him, "."),
    (14, anaphora.took_part, "."),
    (14, anaphora.took_account, "."),
    (14, anaphora.as_for, "."),
    (12, anaphora.must_it, "."),
    (14, subordination.whose, "."),
    (18, subordination.aside, "."),
    (12, subordination.cleft, "."),
    (16, subordination.by_doing, "."),
    (16, subordination.after_doing, "."),
    (18, subordination.without_doing, "."),
    (18, subordination.in_order_to, "."),
    (18, statements.for_years, "."),
    (14, statements.just_now, "."),
    (22, statements.call_on, "."),
    (10, statements.neither, "."),
    (14, statements.together, "."),
    (14, subordination.according_to, "."),
    (10, subordination.two_hands, "."),
    (10, statements.reasons, "."),
    (28, questions.yes_no, "?"),
    (18, questions.why, "?"),
    (10, questions.modal_question, "?"),
    (14, questions.polite, "?"),
    (8, questions.how_many, "?"),
    (8, questions.who, "?"),
    (8, questions.position, "?"),
    (8, questions.what_will, "?"),
    (8, questions.objectives, "?"),
    (12, set_pieces.let_us, "."),
    (10, set_pieces.please, "."),
    (14, set_pieces.thanks, "."),
    (12, set_pieces.vote_count, "."),
    (12, set_pieces.money, "."),
    (12, set_pieces.percentage, "."),
    (10, set_pieces.scheduled, "."),
    (10, set_pieces.compared, "."),
    (8, set_pieces.superlative, "."),
    (12, set_pieces.ratified, "."),
    (4, set_pieces.procedure, "."),
    (12, set_pieces.first_person, "."),
)
LONGEST = 24  # spaces and apostrophes, before a connective: at most 30 words and marks with it
APPEALS = {subordination.wish, statements.task, set_pieces.let_us}  # an address suits them, unfortunately does not
UNFRAMED = {set_pieces.procedure, subordination.two_hands, set_pieces.thanks, set_pieces.please}


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
            pair = framed(g, pair, connective=pattern not in APPEALS)
        french, english = elide(pair.fr), indefinite(pair.en)
        french = french[0].upper() + french[1:] + (" ?" if mark == "?" else mark)
        english = english[0].upper() + english[1:] + ("" if english.endswith(".") else mark)  # 4 p.m.
        yield french, english
