"""Lines of text in, translations out, in the same order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from hotloop.decoding import check_options, search
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
    *,
    batch_size: int = 64,
    beam_size: int = 1,
    n_best: int = 1,
    length_penalty: float = 1.0,
    max_length: int | None = None,
    allow_unknown: bool = True,
    device: torch.device | str | None = None,
) -> list[list[Translation]]:
    """Up to ``n_best`` translations of each line, best first, in the order of the lines.

    Lines of like length share a batch. A line without any token (empty, white space) gives one empty translation
    of score 0 and never meets the model. ``device`` says where the model is; None asks its parameters.

    Raises ValueError for options out of range.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"batch_size = {batch_size!r}: must be a whole number of at least 1")
    check_options(beam_size=beam_size, n_best=n_best, length_penalty=length_penalty, max_length=max_length)
    if device is None:
        device = next(cast(nn.Module, model).parameters()).device
    rows = source_tokenizer.encode([line.strip() for line in lines])
    translations = [[Translation("", 0.0)] for _ in rows]
    order = sorted((i for i, row in enumerate(rows) if row), key=lambda i: len(rows[i]))
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        source, source_length = _pad([rows[i] for i in chosen])
        found = search(
            model, source.to(device), source_length, beam_size=beam_size, n_best=n_best,
            length_penalty=length_penalty, max_length=max_length, allow_unknown=allow_unknown,
        )  # fmt: skip
        texts = iter(target_tokenizer.decode([hypothesis.tokens for group in found for hypothesis in group]))
        for i, group in zip(chosen, found, strict=True):
            translations[i] = [Translation(next(texts), hypothesis.score) for hypothesis in group]
    return translations


def translate_stream(
    model: Translator,
    source_tokenizer: Encoder,
    target_tokenizer: Decoder,
    lines: Iterable[str],
    *,
    chunk: int = 4096,
    batch_size: int = 64,
    beam_size: int = 1,
    n_best: int = 1,
    length_penalty: float = 1.0,
    max_length: int | None = None,
    allow_unknown: bool = True,
    device: torch.device | str | None = None,
) -> Iterator[list[Translation]]:
    """:func:`translate_lines` for an input without end: reads ``chunk`` lines at a time and yields line by line."""
    if isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1:
        raise ValueError(f"chunk = {chunk!r}: must be a whole number of at least 1")
    source = iter(lines)
    while part := list(islice(source, chunk)):
        yield from translate_lines(
            model, source_tokenizer, target_tokenizer, part, batch_size=batch_size, beam_size=beam_size,
            n_best=n_best, length_penalty=length_penalty, max_length=max_length, allow_unknown=allow_unknown,
            device=device,
        )  # fmt: skip


def _pad(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Token rows to source ids (B, S) with EOS behind each row, PAD behind that, and lengths (B,)."""
    length = torch.tensor([len(row) + 1 for row in rows])
    source = torch.full((len(rows), int(length.max())), PAD)
    for i, row in enumerate(rows):
        source[i, : len(row) + 1] = torch.tensor([*row, EOS])
    return source, length
