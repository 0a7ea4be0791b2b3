"""Validation sentences with their translations, where one can watch them get better."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import lightning.pytorch as pl

from hotloop.callbacks.tensorboard import escape_markdown, tensorboard_loggers


class SampleTranslations(pl.Callback):
    """Writes the first validation sentences, their translations and references to TensorBoard's text tab.

    The sentences are the same at each validation, and the search is greedy, within the task's own limits (length,
    repeats, unknown words): the table shows the model, not the beams. Without a TensorBoardLogger nothing is done.

    Args:
        sentences: how many.
        every_n_validations: at each n-th validation.
    """

    kind = "text"

    def __init__(self, *, sentences: int = 8, every_n_validations: int = 1) -> None:
        if sentences < 1 or every_n_validations < 1:
            raise ValueError(
                f"sentences ({sentences}) and every_n_validations ({every_n_validations}) must be at least 1"
            )
        self.sentences = sentences
        self.every_n_validations = every_n_validations
        self._validations = 0

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit":
            self._validations = 0

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking:
            return
        self._validations += 1
        boards = tensorboard_loggers(trainer)
        if not boards or (self._validations - 1) % self.every_n_validations:
            return
        with trainer.precision_plugin.forward_context():
            rows = sample_rows(pl_module, trainer.datamodule, count=self.sentences)  # type: ignore[attr-defined]
        text = markdown_table(rows)
        for board in boards:
            board.experiment.add_text("translations/valid", text, trainer.global_step)


def sample_rows(
    task: Any, datamodule: Any, *, count: int, split: str = "valid", **search_options: Any
) -> list[tuple[str, str, str]]:
    """The first `count` pairs of a split as (source, translation, reference).

    Args:
        task: has `model`, `source_tokenizer`, `target_tokenizer`, `search`.
        datamodule: has `texts(split)`.
        count: rows; fewer if the split has fewer.
        split: valid or test.
        search_options: of `hotloop.decoding.SearchOptions`; the others are those of the task, but greedy.
    """
    from hotloop.decoding.lines import translate_lines

    sources, references = (lines[:count] for lines in datamodule.texts(split))
    options = replace(task.search.greedy, **search_options)
    found = translate_lines(task.model, task.source_tokenizer, task.target_tokenizer, sources, options)
    return [
        (source, translations[0].text, reference)
        for source, translations, reference in zip(sources, found, references, strict=True)
    ]


def markdown_table(rows: Sequence[tuple[str, str, str]]) -> str:
    """Rows as a Markdown table; whatever the sentences hold is shown as it is."""
    lines = ["| source | translation | reference |", "| --- | --- | --- |"]
    lines += ["| " + " | ".join(escape_markdown(cell) or "&nbsp;" for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def plain_samples(rows: Sequence[tuple[str, str, str]]) -> str:
    """Rows for a terminal, three lines each."""
    blocks = [
        f"source       {source}\ntranslation  {translation}\nreference    {reference}"
        for source, translation, reference in rows
    ]
    return "\n\n".join(blocks)
