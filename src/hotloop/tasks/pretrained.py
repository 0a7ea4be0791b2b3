"""Word embeddings that begin as pretrained vectors, and for how long they are left as they are."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor, nn

from hotloop.errors import UserError

log = logging.getLogger(__name__)

SIDES = ("source", "target")
COUNTED = 50_000  # training pairs whose tokens are counted


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """What the embeddings begin as.

    Attributes:
        source, target: files of word vectors; None for the model's own beginning.
        freeze: True = never trained, k = not in the first k epochs, False = trained from the start.
        rescale: the vectors get the spread that the model's own beginning has.

    Raises:
        ValueError: `freeze` out of range, or without a file.
    """

    source: str | None = None
    target: str | None = None
    freeze: bool | int = False
    rescale: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.freeze, bool | int) and self.freeze >= 0:
            if self.freeze and not self.files():
                raise ValueError(f"pretrained.freeze={self.freeze} needs pretrained.source or pretrained.target")
            return
        raise ValueError(f"pretrained.freeze must be true, false or a number of epochs, not {self.freeze!r}")

    def files(self) -> dict[str, Path]:
        """Side → file, of the sides that have one."""
        found = {side: getattr(self, side) for side in SIDES}
        return {side: Path(file).expanduser() for side, file in found.items() if file is not None}

    def check_files(self) -> None:
        """Raises UserError where a file is not there: told before data is prepared."""
        for side, file in self.files().items():
            if not file.is_file():
                raise UserError(f"task.pretrained.{side}: there is no file {file}")

    def frozen(self, epoch: int) -> bool:
        """Whether the embeddings are left as they are in epoch `epoch` (from 0)."""
        return self.freeze is True or (self.freeze is not False and epoch < self.freeze)

    def parameters(self, model: nn.Module) -> list[nn.Parameter]:
        """The matrices that begin as vectors; a shared one once."""
        found = {id(weight): weight for weight in (embedding_of(model, side).weight for side in self.files())}
        return list(found.values())  # type: ignore[arg-type]


def embedding_of(model: nn.Module, side: str) -> nn.Embedding:
    """The embedding of "source" or "target". Raises UserError where the model has none of that name."""
    found = getattr(model, f"{side}_embedding", None)
    if not isinstance(found, nn.Embedding):
        raise UserError(f"task.pretrained.{side}: {type(model).__name__} has no nn.Embedding {side}_embedding")
    return found


def start_from_vectors(task: Any, data: Any, lookup: Callable[..., Any]) -> None:
    """Put the vectors of the files into the embeddings, and say how much of the text they cover.

    Of a matrix that both sides share, the target's file fills what the source's file left. Rows of PAD, UNK, BOS and
    EOS, and of words that no file has, keep what they hold.

    Args:
        task: with `pretrained`, `model` and tokenisers.
        data: the data module, set up.
        lookup: (file, tokeniser) → `TokenVectors`.

    Raises:
        UserError: the file cannot be read, or holds vectors of another width.
    """
    options: Pretrained = task.pretrained
    placed: dict[int, set[int]] = {}
    for side, file in options.files().items():
        weight = embedding_of(task.model, side).weight
        vectors = lookup(file, getattr(task, f"{side}_tokenizer"))
        if vectors.width != weight.shape[1]:
            raise UserError(width_message(task, side, file, vectors.width))
        done = placed.setdefault(id(weight), set())
        free = np.array([number not in done for number in vectors.ids.tolist()], dtype=bool)
        place(weight, vectors.ids[free], vectors.rows[free], rescale=options.rescale)
        done.update(vectors.ids.tolist())
        if first_process():
            log.info("%s vectors: %s; %s", side, coverage(vectors, data, side), file)
            if not len(vectors.ids):
                log.warning("%s has no word of the %s vocabulary: is it of another language?", file, side)
    if options.freeze and first_process():
        names = [names_of(task.model, weight) for weight in options.parameters(task.model)]
        epochs = int(options.freeze)
        period = "" if options.freeze is True else f" for {epochs} epoch{'' if epochs == 1 else 's'}"
        log.info("frozen%s: %s", period, "; ".join(names))


def check_continued(saved: Any, settings: Any, path: Path) -> None:
    """Refuse to continue with other frozen matrices than the checkpoint's; say so where a file is not read.

    Args:
        saved: options of the task in the checkpoint; it may be older than `pretrained`.
        settings: those of the command.
        path: the checkpoint, for messages.

    Raises:
        UserError: another `freeze`, or of other sides.
    """
    old, new = (options.get("pretrained") for options in (saved, settings))
    old, new = (options if isinstance(options, dict) else {} for options in (old, new))
    freeze = [repr(options.get("freeze") or False) for options in (old, new)]  # as text: 1 epoch is not `true`
    sides = [[side for side in SIDES if options.get(side) is not None] for options in (old, new)]
    if freeze[0] != freeze[1]:
        raise UserError(
            f"ckpt_path: {path} was trained with other options (task.pretrained.freeze {freeze[0]} → {freeze[1]}): "
            "repeat its overrides"
        )
    if freeze[0] != "False" and sides[0] != sides[1]:
        given = [" and ".join(names) or "none" for names in sides]
        raise UserError(
            f"ckpt_path: {path} was trained with frozen vectors of other sides (task.pretrained: {given[0]} → "
            f"{given[1]}): repeat its overrides"
        )
    for side in sides[1]:
        if old.get(side) != new[side] and first_process():
            log.info("task.pretrained.%s=%s is not read: the embeddings are those of %s", side, new[side], path)


def first_process() -> bool:
    """Whether this process speaks for all."""
    return getattr(rank_zero_only, "rank", 0) == 0


@torch.no_grad()
def place(weight: Tensor, ids: Any, rows: Any, *, rescale: bool) -> None:
    """Rows `ids` (N,) of `weight` (V, E) become `rows` (N, E), with the standard deviation they had if `rescale`."""
    if len(ids) == 0:
        return
    chosen, values = torch.from_numpy(ids), torch.from_numpy(rows)
    if rescale:
        spread = values.std()
        values = values * (weight[chosen].float().std() / spread if spread > 0 else 1.0)
    weight[chosen] = values.to(weight.dtype)


def coverage(vectors: Any, data: Any, side: str) -> str:
    """How many words of the vocabulary, and of the running text, have a vector."""
    words = f"{len(vectors.ids):,} of {vectors.words:,} words"
    share = f" ({100 * len(vectors.ids) / vectors.words:.1f} %)" if vectors.words else ""
    lower = f", {vectors.lowercased:,} of them as their lower case" if vectors.lowercased else ""
    rows = getattr(data.dataset("train"), side)
    counts = np.zeros(int(vectors.ids.max(initial=0)) + 1, dtype=np.int64)
    total = 0
    for numbers in np.array_split(np.arange(0, len(rows), max(1, len(rows) // COUNTED)), 50):
        tokens, _ = rows.gather(numbers)
        tokens = tokens[tokens > 3]  # PAD, UNK, BOS and EOS are no words
        total += len(tokens)
        counts += np.bincount(tokens[tokens < len(counts)], minlength=len(counts))
    running = f", {100 * counts[vectors.ids].sum() / total:.1f} % of running tokens" if total else ""
    return words + share + lower + running


def names_of(model: nn.Module, weight: Tensor) -> str:
    """A matrix by name, with what else is the same matrix and so shares its fate."""
    first, *others = [name for name, value in model.named_parameters(remove_duplicate=False) if value is weight]
    return first + (f" (and {', '.join(others)}, which share it)" if others else "")


def width_message(task: Any, side: str, file: Path, width: int) -> str:
    """One line with both widths and the override that makes them one."""
    options: Mapping[str, Any] = task.saved.get("model", {}).get("options", {})
    keys = [key for key in ("embedding", f"{side}_embedding") if key in options] or ["hidden"]
    advice = "add " + " or ".join(f"model.{key}={width}" for key in keys)
    if keys == ["hidden"] and "heads" in options:
        advice = heads_advice(width, int(options["heads"]))
    have = embedding_of(task.model, side).embedding_dim
    return f"task.pretrained.{side}: {file} holds vectors of {width} numbers, the embedding has {have}: {advice}"


def heads_advice(width: int, heads: int) -> str:
    """The override that gives a Transformer the width, with the number of heads nearest to `heads` that divides it."""
    fitting = [count for count in range(1, width // 2 + 1) if width % (2 * count) == 0]
    if not fitting:
        return "a Transformer's width is even: take other vectors, or a model with model.embedding"
    nearest = min(fitting, key=lambda count: (abs(count - heads), -count))
    return f"add model.hidden={width}" + (f" model.heads={nearest}" if nearest != heads else "")
