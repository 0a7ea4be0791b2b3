"""What a user should know of a prepared corpus at every run, and what to do about it."""

from __future__ import annotations

from hotloop.data.text.preparing.recipe import Recipe

LONG = 1_000  # tokens; such lines take seconds and gigabytes where others take milliseconds
UNKNOWN = 0.05  # of the training tokens; a model can neither read nor write what is unknown to its vocabulary


def describe_long(recipe: Recipe, split: str, side: str, long: dict[int, int]) -> str:
    """Lines with so many tokens (by their number from 0)."""
    worst = max(long, key=lambda number: long[number])
    lines = f"{len(long):,} {side} line(s) of more than {LONG:,} tokens, the longest {long[worst]:,}"
    limit = "data.filters.max_length=… leaves out pairs with more words"
    if split == "train":
        return f"training set: {lines}; they make batches large and slow; {limit}"
    if split not in recipe.files:
        place = f"{split} set, split off the training pairs"
    else:
        files, limit = recipe.files[split], ""
        path = files.target if side == "target" and files.target is not None else files.source
        header = files.format == "tsv" and files.columns is not None and isinstance(files.columns[0], str)
        numbers = [f"{number + 1 + header:,}" for number in list(long)[:5]]
        place = f"{path.name}, line {', '.join(numbers)}{', …' if len(long) > 5 else ''}"
    slow = "translating" if side == "source" else "scoring"
    cap = "task.max_length=… limits the tokens of a translation (else 2 × source + 10)" if side == "source" else ""
    hints = "; ".join(hint for hint in (cap, limit) if hint)
    return f"{place}: {lines}; kept, but {slow} them takes long" + (f"; {hints}" if hints else "")


def describe_unknown(recipe: Recipe, side: str, share: float, size: int) -> str:
    """A high share of unknown ids in one side of the training set, whose vocabulary has `size` ids."""
    key = "data.tokenizer."
    key += "target_vocabulary_size" if side == "target" and not recipe.tokenizer.shared else "vocabulary_size"
    if recipe.tokenizer.kind != "word":
        advice = f"these are rare characters (another script?); {key}=… makes room for more"
    else:
        # min_frequency may be what keeps the vocabulary small
        more = f"{key}=… (it has {size:,} ids)"
        if size < recipe.tokenizer.of_side(side).vocabulary_size:
            more = f"data.tokenizer.min_frequency=1 (the words seen that often give {size:,} ids)"
        advice = f"data.tokenizer.kind=bpe spells every word in pieces, or give the words more room: {more}"
    return (
        f"training set: {100 * share:.1f} % of the {side} tokens are unknown to the vocabulary, and the model can "
        f"neither read nor write them; {advice}"
    )
