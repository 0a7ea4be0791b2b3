"""The statistics of a corpus as text for the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WIDTH = 24  # of the first column
COVERED = ("0.90", "0.95", "0.99")  # shares of the text, as `figures.coverage` names them


def report(values: dict[str, Any]) -> str:
    """What `describe` found, one fact a line."""
    return "\n".join(_lines(values))


def _lines(values: dict[str, Any]) -> Iterator[str]:
    source, target = values["languages"]
    splits = list(values["pairs"])
    yield f"{source} to {target}: " + ", ".join(f"{values['pairs'][split]:,} pairs {split}" for split in splits)
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in values["dropped"].items() if count)
    yield f"training files hold {values['read']['train']:,} pairs; left out: {dropped or 'none'}"
    for unit in ("words", "tokens"):
        yield ""
        yield _row(f"{unit} a sentence", ["mean", "median", "95 %", "99 %", "max"])
        for split in splits:
            found = values[unit][split]
            for side, language in (("source", source), ("target", target)):
                yield _row(f"  {split} {language}", [_number(number) for number in found[side].values()])
            ratio = found["ratio"]
            yield _row(
                f"  {split} {target}/{source}",
                [f"{ratio['overall']:.2f}", f"{ratio['median']:.2f}", f"{ratio['p95']:.2f}"],
            )
    yield ""
    yield _row("vocabulary (words)", ["running", "different", "once", "90 %", "95 %", "99 %", "Heaps"])
    for side, language in (("source", source), ("target", target)):
        yield _vocabulary(language, values["vocabulary"][side])
    vocabularies = values["vocabulary"].values()
    if any(found["heaps"] is None for found in vocabularies):
        yield "  Heaps –: no law of growth from fewer than 3 stretches of text"
    if any(len(found["coverage"]) < len(COVERED) for found in vocabularies):
        yield "  % –: the words that are told apart do not make up so much of the text"
    yield ""
    yield _row(
        "unknown", ["tokens", *(f"{int(size):,}" for size in _sizes(values)), "(word vocabularies of so many ids)"]
    )
    for split in splits:
        for side, language in (("source", source), ("target", target)):
            words = values["unknown"]["words"][side][split]
            shares = [values["unknown"]["tokenizer"][split][side], *words.values()]
            yield _row(f"  {split} {language}", [f"{100 * share:.2f} %" for share in shares])
    yield ""
    yield _row("repeated in the files", ["pairs", "sources", "targets", "one side empty"])
    for split, found in values["duplicates"].items():
        yield _row(f"  {split}", [f"{count:,}" for count in found.values()])
    for split, found in values["leaks"].items():
        yield ""
        yield _row(f"{split} also in training", ["source", "target", "pair"])
        if found["files"] is not None:
            yield _row("  as the files are", [f"{count:,}" for count in found["files"].values()])
        yield _row("  after the filters", [f"{count:,}" for count in found["training"].values()])
    yield ""
    yield _batching(values["batching"])
    for side, language in (("source", source), ("target", target)):
        words = " ".join(word for word, _ in values["vocabulary"][side]["frequent"])
        yield f"most frequent, {language}: {words}"


def _row(name: str, cells: list[str]) -> str:
    return f"{name:<{WIDTH}}" + "".join(f"{cell:>12}" if len(cell) < 12 else f"  {cell}" for cell in cells)


def _vocabulary(language: str, found: dict[str, Any]) -> str:
    covering = [f"{found['coverage'][share]['words']:,}" if share in found["coverage"] else "–"
                for share in COVERED]  # fmt: skip
    law = found["heaps"]
    return _row(
        f"  {language}",
        [
            f"{found['running']:,}",
            (">" if found["at_least"] else "") + f"{found['distinct']:,}",
            f"{found['once']:,}",
            *covering,
            f"{law['k']:.3g} N^{law['beta']:.2f}" if law else "–",
        ],
    )


def _sizes(values: dict[str, Any]) -> list[str]:
    """The sizes of word vocabularies that either side has figures for."""
    found = {size for side in values["unknown"]["words"].values() for split in side.values() for size in split}
    return sorted(found, key=int)


def _batching(found: dict[str, Any]) -> str:
    what = f"{found['max_tokens']:,} tokens" if found["max_tokens"] else f"{found['batch_size']:,} pairs"
    shares = found["padding"]
    padding, at_random = (
        f"{100 * shares[name]['source']:.1f} % source, {100 * shares[name]['target']:.1f} % target"
        for name in ("configured", "at_random")
    )
    return (
        f"batches of {what}: {found['batches']:,} an epoch, {found['pairs_a_batch']} pairs each; padding {padding} "
        f"(in random batches {at_random})"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
