"""Lines of text in, translations out, in the same order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from hotloop.decoding import Hypothesis, SearchOptions, search
from hotloop.decoding.unknown import replace_unknown
from hotloop.models.interface import Translator
from hotloop.vocabulary import EOS, PAD


class Encoder(Protocol):
    def encode(self, lines: Sequence[str]) -> list[list[int]]: ...


class Decoder(Protocol):
    def decode(self, rows: Iterable[Sequence[int]]) -> list[str]: ...


@dataclass(frozen=True)
class Translation:
    """One translation of one line; ``score`` as in :class:`hotloop.decoding.Hypothesis`."""

    text: str
    score: float


def translate_lines(
    model: Translator,
    source_tokenizer: Encoder,
    target_tokenizer: Decoder,
    lines: Sequence[str],
    options: SearchOptions | None = None,
    *,
    batch_size: int = 64,
    first_line: int = 0,
    device: torch.device | str | None = None,
) -> list[list[Translation]]:
    """Up to ``n_best`` translations of each line, best first, in the order of the lines; ``options`` None: greedy.

    Lines of like length share a batch. A line without any token (empty, white space) gives one empty translation
    of score 0 and never meets the model. ``first_line`` is the number of the first line, by which tokens are drawn
    where they are. ``device`` says where the model is; None asks its parameters.

    Raises ValueError for options that need attention where ``model`` has none.
    """
    check_batch_size(batch_size)
    options = options or SearchOptions()
    if device is None:
        device = next(cast(nn.Module, model).parameters()).device
    rows = source_tokenizer.encode([line.strip() for line in lines])
    translations = [[Translation("", 0.0)] for _ in rows]
    order = sorted((i for i, row in enumerate(rows) if row), key=lambda i: len(rows[i]))
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        source, source_length = padded([[*rows[i], EOS] for i in chosen])
        numbers = torch.tensor(chosen) + first_line
        found = search(model, source.to(device), source_length, options, numbers=numbers)
        sentences = [lines[i] for i, group in zip(chosen, found, strict=True) for _ in group]
        texts = iter(texts_of(source_tokenizer, target_tokenizer, sentences, [one for group in found for one in group]))
        for i, group in zip(chosen, found, strict=True):
            translations[i] = [Translation(next(texts), hypothesis.score) for hypothesis in group]
    return translations


def translate_stream(
    model: Translator,
    source_tokenizer: Encoder,
    target_tokenizer: Decoder,
    lines: Iterable[str],
    options: SearchOptions | None = None,
    *,
    chunk: int = 4096,
    batch_size: int = 64,
    device: torch.device | str | None = None,
) -> Iterator[list[Translation]]:
    """:func:`translate_lines` for an input without end: reads ``chunk`` lines at a time and yields line by line."""
    if isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1:
        raise ValueError(f"chunk = {chunk!r}: must be a whole number of at least 1")
    source, first_line = iter(lines), 0
    while part := list(islice(source, chunk)):
        yield from translate_lines(
            model, source_tokenizer, target_tokenizer, part, options,
            batch_size=batch_size, first_line=first_line, device=device,
        )  # fmt: skip
        first_line += len(part)


def texts_of(
    source_tokenizer: Any, target_tokenizer: Any, sources: Sequence[str], hypotheses: Sequence[Hypothesis]
) -> list[str]:
    """The text of each hypothesis, of the source line beside it; unknown words replaced where the search says how."""
    texts = target_tokenizer.decode([hypothesis.tokens for hypothesis in hypotheses])
    return [
        text
        if found.looked_at is None
        else replace_unknown(source_tokenizer, target_tokenizer, line, found.tokens, found.looked_at)
        for text, line, found in zip(texts, sources, hypotheses, strict=True)
    ]


def check_batch_size(batch_size: int) -> None:
    """ValueError unless it is a whole number of at least 1."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"batch_size = {batch_size!r}: must be a whole number of at least 1")


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Rows of ids to (B, longest), PAD behind each, and lengths (B,)."""
    length = torch.tensor([len(row) for row in rows])
    ids = torch.full((len(rows), int(length.max())), PAD)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
    return ids, length
