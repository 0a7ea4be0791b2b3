"""The arithmetic of text statistics: arrays and counts in, plain numbers out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.data.text.describing.reading import PairFacts
from hotloop.data.text.describing.words import WordCounts
from hotloop.vocabulary import SPECIALS

COVERAGES = (0.90, 0.95, 0.99)
SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)  # ids of word vocabularies, the 4 special ones included
FREQUENT = 30  # words that are listed

Lengths = NDArray[np.int32]


def length_figures(lengths: Lengths) -> dict[str, float]:
    """Mean, median, 95th and 99th percentile (linear between ranks), maximum."""
    if len(lengths) == 0:
        return dict.fromkeys(("mean", "median", "p95", "p99", "max"), 0)
    median, p95, p99 = np.percentile(lengths, [50, 95, 99]).tolist()
    return {
        "mean": round(float(lengths.mean()), 2),
        "median": round(median, 1),
        "p95": round(p95, 1),
        "p99": round(p99, 1),
        "max": int(lengths.max()),
    }


def ratio_figures(source: Lengths, target: Lengths) -> dict[str, float]:
    """Target over source length: of all text, and the middle and the ends of the pairs with text on both sides."""
    whole = (source > 0) & (target > 0)
    if not whole.any():
        return dict.fromkeys(("overall", "p5", "median", "p95"), 0.0)
    source, target = source[whole].astype(np.int64), target[whole].astype(np.int64)
    p5, median, p95 = np.percentile(target / source, [5, 50, 95]).tolist()
    overall = float(target.sum() / source.sum())
    return {"overall": round(overall, 3), "p5": round(p5, 3), "median": round(median, 3), "p95": round(p95, 3)}


def both_sides(source: Lengths, target: Lengths) -> dict[str, dict[str, float]]:
    """Length figures of each side and of their ratio."""
    return {
        "source": length_figures(source),
        "target": length_figures(target),
        "ratio": ratio_figures(source, target),
    }


def duplicates(facts: PairFacts) -> dict[str, int]:
    """Pairs with text on both sides that are not the first with this pair, source or target; and those without text."""
    whole = facts.of(facts.whole)
    return {
        "pairs": _repeats(whole.pair_hash),
        "sources": _repeats(whole.source_hash),
        "targets": _repeats(whole.target_hash),
        "empty": len(facts) - len(whole),
    }


def _repeats(hashes: NDArray[np.uint64]) -> int:
    return len(hashes) - len(np.unique(hashes))


def leaks(held_out: PairFacts, training: PairFacts) -> dict[str, int]:
    """Pairs of a split whose source, target or both together are also among the training pairs; empty lines aside."""
    held_out, training = held_out.of(held_out.whole), training.of(training.whole)
    return {
        side: int(np.isin(getattr(held_out, f"{side}_hash"), getattr(training, f"{side}_hash")).sum())
        for side in ("source", "target", "pair")
    }


def heaps(growth: Sequence[tuple[int, int]]) -> dict[str, float] | None:
    """k and beta of V = k · N^beta (Heaps 1978) by least squares in logarithms; None with fewer than 3 points.

    The growth is thinned to points that are evenly spaced in log N, so that the end does not outvote the start.
    It is that from a hundredth of the text on: no power fits the first sentences, where most words are new, as well.
    """
    whole = max((running for running, _ in growth), default=0)
    points = thinned([(running, distinct) for running, distinct in growth if distinct > 0 and 100 * running >= whole])
    if len(points) < 3:
        return None
    logs = np.log(np.array(points, dtype=float))
    beta, log_k = np.polyfit(logs[:, 0], logs[:, 1], 1)
    return {"k": round(math.exp(log_k), 3), "beta": round(float(beta), 4)}


def thinned(points: Sequence[tuple[int, int]], count: int = 40) -> list[tuple[int, int]]:
    """At most `count` of the points, evenly spaced in the logarithm of the first number; first and last among them."""
    if len(points) <= count:
        return list(points)
    wanted = np.geomspace(points[0][0], points[-1][0], count)
    running = np.array([point[0] for point in points])
    chosen = sorted({0, len(points) - 1, *np.abs(running[:, None] - wanted).argmin(0).tolist()})
    return [points[number] for number in chosen]


def coverage(frequencies: NDArray[np.int64], running: int) -> dict[str, dict[str, float]]:
    """How many of the most frequent words, and what share of all different ones, make up each of COVERAGES.

    `frequencies`: (V,) falling; `running`: all words of the text. A share that is not reached is left out.
    """
    sums = np.cumsum(frequencies)
    found = {}
    for share in COVERAGES:
        words = int(np.searchsorted(sums, share * running - 1e-9)) + 1
        if words <= len(frequencies):
            found[f"{share:.2f}"] = {"words": words, "share": round(words / len(frequencies), 4)}
    return found


def unknown_by_size(
    training: Sequence[tuple[str, int]], split: Mapping[str, int], sizes: Sequence[int] = SIZES
) -> dict[str, float]:
    """Share of the running words of `split` that a vocabulary of so many ids, made of the most frequent training
    words, does not have. Sizes that the training words cannot fill are left out, but for the first of these."""
    running = sum(split.values())
    rank = {word: number for number, (word, _) in enumerate(training)}
    ranks = np.array([rank.get(word, len(training)) for word in split], dtype=np.int64)
    counts = np.fromiter(split.values(), dtype=np.int64, count=len(split))
    found: dict[str, float] = {}
    for size in sizes:
        words = min(size - len(SPECIALS), len(training))
        found[str(size)] = round(int(counts[ranks >= words].sum()) / max(running, 1), 5)
        if words == len(training):
            break
    return found


def vocabulary_figures(words: WordCounts) -> dict[str, Any]:
    """Size, growth, coverage and most frequent words (those with a letter) of one side."""
    ranked = words.by_frequency()
    frequencies = np.array([count for _, count in ranked], dtype=np.int64)
    spelt = ((word, count) for word, count in ranked if any(character.isalpha() for character in word))
    return {
        "running": words.running,
        "distinct": len(ranked),
        "at_least": words.capped,
        "once": int(np.count_nonzero(frequencies == 1)),
        "heaps": heaps(words.growth),
        "growth": [list(point) for point in thinned(words.growth)],
        "coverage": coverage(frequencies, words.running),
        "frequent": [
            [word.replace("\x1f", ""), count] for (word, count), _ in zip(spelt, range(FREQUENT), strict=False)
        ],
    }
