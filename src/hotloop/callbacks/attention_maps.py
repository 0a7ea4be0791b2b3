"""Pictures of where a model looks while it translates."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import lightning.pytorch as pl
import numpy as np
import torch

from hotloop.callbacks.tensorboard import show_picture, tensorboard_loggers
from hotloop.errors import UserError
from hotloop.vocabulary import BOS, EOS, SPECIALS

logger = logging.getLogger(__name__)

LONGEST = 80  # tokens an axis: beyond that the words cannot be read
WORD_START = "▁"  # of sub-word tokenisers
JOINER = "￭"  # of word tokenisers: no space on this side


class AttentionMaps(pl.Callback):
    """Draws the attention of the first validation sentences at each validation, for TensorBoard.

    Each map has the source on the x axis and the model's own greedy translation on the y axis, within the task's
    limits (length, repeats); a row shows where the model looked to produce that word. The sentences stay the same,
    so that epochs compare. A model that does not attend is left in peace.

    Args:
        sentences: how many, from the start of the validation set; empty ones are passed over.
        layers: "alignment" (the model's `alignment_layer`), "mean", "all", or numbers of decoder layers from 0.
        heads: "mean", "all", or numbers of heads from 0; an LSTM has one layer and one head.
        every_n_validations: at each n-th validation.
        directory: folder for the same pictures as PNG files; None writes none.
    """

    kind = "text"

    def __init__(
        self,
        *,
        sentences: int = 4,
        layers: Literal["alignment", "mean", "all"] | Sequence[int] = "alignment",
        heads: Literal["mean", "all"] | Sequence[int] = "mean",
        every_n_validations: int = 1,
        directory: str | None = None,
    ) -> None:
        if sentences < 1 or every_n_validations < 1:
            raise ValueError(
                f"sentences ({sentences}) and every_n_validations ({every_n_validations}) must be at least 1"
            )
        for name, asked, words in (("layers", layers, ("alignment", "mean", "all")), ("heads", heads, ("mean", "all"))):
            numbers = not isinstance(asked, str) and all(isinstance(n, int) and n >= 0 for n in asked) and len(asked)
            if asked not in words and not numbers:
                raise ValueError(f"{name} = {asked!r}: give {', '.join(words)} or a list of numbers from 0")
        self.sentences = sentences
        self.layers, self.heads = layers, heads
        self.every_n_validations = every_n_validations
        self.directory = None if directory is None else Path(directory)
        self._validations = 0

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit":
            self._validations = 0

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if _attends(pl_module):
            self._check_numbers(trainer, pl_module)
        elif trainer.is_global_zero:
            logger.info("no attention maps: this model does not attend")

    def _check_numbers(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Raise UserError now, not after an epoch, for layers or heads that the model does not have."""
        if isinstance(self.layers, str) and isinstance(self.heads, str):
            return
        model: Any = pl_module.model
        device = next(model.parameters()).device
        row = torch.tensor([[EOS]], device=device)
        drawn_from = [device] if device.type == "cuda" else []  # dropout draws; training then begins as without us
        with torch.random.fork_rng(drawn_from), trainer.precision_plugin.forward_context(), torch.no_grad():
            weights = model.attention_weights(row, torch.tensor([1]), torch.full_like(row, BOS))[0]
        self.chosen(weights.float().cpu().numpy(), model.alignment_layer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or not _attends(pl_module):
            return
        self._validations += 1
        boards = tensorboard_loggers(trainer)
        wanted = bool(boards) or (self.directory is not None and trainer.is_global_zero)
        if not wanted or (self._validations - 1) % self.every_n_validations:
            return
        sources, _ = trainer.datamodule.texts("valid")  # type: ignore[attr-defined]
        chosen = [(i, line) for i, line in enumerate(sources) if line.strip()][: self.sentences]
        with trainer.precision_plugin.forward_context(), torch.no_grad():
            found = attention_of(pl_module, [line for _, line in chosen])
        model: Any = pl_module.model
        for (sentence, _), (source, target, weights) in zip(chosen, found, strict=True):
            for name, part in self.chosen(weights, model.alignment_layer).items():
                show_picture(
                    draw_map(source, target, part, title=f"validation sentence {sentence}{name}"),
                    tag=f"attention/sentence_{sentence}" + name.replace(", ", "_").replace(" ", "_"),
                    step=trainer.global_step,
                    boards=boards,
                    directory=self.directory,
                )

    def chosen(self, weights: np.ndarray, alignment_layer: int) -> dict[str, np.ndarray]:
        """The maps (T, S) to draw of weights (layers, heads, T, S), by name, such as ", layer 0, head 3".

        Raises UserError for a layer or head that the model does not have.
        """
        aligned = self.layers == "alignment"
        maps = {"": weights[alignment_layer, None] if aligned else weights}
        for axis, asked in (("layer", "mean" if aligned else self.layers), ("head", self.heads)):
            maps = {
                name + end: found for name, array in maps.items() for end, found in _along_first(array, axis, asked)
            }
        return maps


def _along_first(weights: np.ndarray, axis: str, asked: str | Sequence[int]) -> Iterator[tuple[str, np.ndarray]]:
    """Parts of weights (n, ...) by name: their mean, all, or those asked for."""
    if asked == "mean":
        yield "", weights.mean(0)
        return
    for number in range(len(weights)) if asked == "all" else asked:
        assert isinstance(number, int)
        if number >= len(weights):
            raise UserError(
                f"callbacks.attention_maps.{axis}s={list(asked)}: the model has {len(weights)} {axis}s, 0 is the first"
            )
        yield f", {axis} {number}", weights[number]


def _attends(pl_module: pl.LightningModule) -> bool:
    return bool(getattr(getattr(pl_module, "model", None), "attends", False))


def attention_of(task: Any, lines: Sequence[str]) -> list[tuple[list[str], list[str], np.ndarray]]:
    """Source pieces (S), greedily translated pieces (T) and weights (layers, heads, T, S) of each line, with EOS."""
    from hotloop.decoding import search

    device = next(task.model.parameters()).device
    drawn = []
    for tokens in task.source_tokenizer.encode(list(lines)):
        row = [*tokens, EOS]
        source, length = torch.tensor([row], device=device), torch.tensor([len(row)])
        target = search(task.model, source, length, task.search.greedy)[0][0].tokens
        target_in = torch.tensor([[BOS, *target]], device=device)
        weights = task.model.attention_weights(source, length, target_in)[0].float().cpu().numpy()
        drawn.append(
            (
                [*readable(task.source_tokenizer.pieces(tokens)), SPECIALS[EOS]],
                [*readable(task.target_tokenizer.pieces(target)), SPECIALS[EOS]],
                weights,
            )
        )
    return drawn


def readable(pieces: Sequence[str]) -> list[str]:
    """Pieces for an axis: plain words; where words are in pieces, `·` marks those that continue one."""
    in_pieces = any(piece.startswith(WORD_START) for piece in pieces)
    shown = []
    for piece in pieces:
        plain = piece.replace(JOINER, "").lstrip(WORD_START) or "␣"
        continues = in_pieces and not piece.startswith(WORD_START) and piece not in SPECIALS
        shown.append(f"·{plain}" if continues else plain)
    return shown


def draw_map(source: Sequence[str], target: Sequence[str], weights: np.ndarray, *, title: str) -> np.ndarray:
    """A heat map as pixels (height, width, 3) uint8.

    Args:
        source: words of the x axis (S).
        target: words of the y axis (T).
        weights: (T, S), rows summing to 1.
        title: shown above.
    """
    # The object interface: no figure is registered with pyplot, so none has to be closed.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if weights.shape != (len(target), len(source)):
        raise ValueError(f"weights {weights.shape} do not fit {len(target)} target and {len(source)} source words")
    if len(source) > LONGEST or len(target) > LONGEST:
        title += f" (first {LONGEST} of {len(source)} × {len(target)} tokens)"
        source, target, weights = source[:LONGEST], target[:LONGEST], weights[:LONGEST, :LONGEST]
    label_inches = 0.09
    left = 0.3 + label_inches * max(map(len, target), default=1)
    below = 0.3 + label_inches * max(map(len, source), default=1)
    across, down = max(2.0, 0.25 * len(source)), max(1.5, 0.25 * len(target))
    width, height = left + across + 1.0, 0.5 + down + below
    figure = Figure(figsize=(width, height), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((left / width, below / height, across / width, down / height))
    image = axes.imshow(weights, cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    axes.set_xticks(range(len(source)), source, rotation=90, parse_math=False)
    axes.set_yticks(range(len(target)), target, parse_math=False)
    axes.tick_params(labelsize=9, length=2)
    figure.text(0.5, 1 - 0.25 / height, title, ha="center", va="center", fontsize=10, parse_math=False)
    bar_axes = figure.add_axes(((left + across + 0.15) / width, below / height, 0.15 / width, down / height))
    figure.colorbar(image, cax=bar_axes).ax.tick_params(labelsize=8)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box is drawn, which is enough
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
