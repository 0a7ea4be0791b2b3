"""Corpus BLEU and chrF by sacreBLEU on whole, detokenised sets; never averages of batches."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TranslationScores:
    """Scores on a scale of 0 to 100, with the signatures that make them comparable (Post 2018)."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def score_translations(hypotheses: Sequence[str], references: Sequence[str]) -> TranslationScores:
    """Score detokenised lines against one reference each.

    Args:
        hypotheses: N translated lines.
        references: N reference lines, in the same order.

    Raises:
        ValueError: the counts differ, there is no line, or `references` is not a flat list of strings.
    """
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError("hypotheses and references are lists of lines, not one string")
    if any(not isinstance(line, str) for line in (*hypotheses, *references)):
        raise ValueError("hypotheses and references are flat lists: one string a sentence")
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses but {len(references)} references")
    if not hypotheses:
        raise ValueError("no line to score")
    bleu, chrf = BLEU(), CHRF()
    found = bleu.corpus_score(list(hypotheses), [list(references)])
    if found.totals[-1] == 0:
        log.info("BLEU is %.1f: there is no 4-gram in the corpus (every hypothesis is shorter)", found.score)
    return TranslationScores(
        bleu=found.score,
        chrf=chrf.corpus_score(list(hypotheses), [list(references)]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )
