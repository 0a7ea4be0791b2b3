"""Sample translations for TensorBoard and for the terminal."""

from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotloop.callbacks.tensorboard import escape_markdown
from hotloop.callbacks.translations import (
    SampleTranslations,
    markdown_table,
    plain_samples,
    sample_rows,
)
from hotloop.decoding import SearchOptions


def texts(folder: Path) -> list[tuple[int, str]]:
    read = EventAccumulator(str(folder / "tensorboard"))
    read.Reload()
    return [(e.step, e.tensor_proto.string_val[0].decode()) for e in read.Tensors("translations/valid/text_summary")]


def board(folder: Path) -> TensorBoardLogger:
    return TensorBoardLogger(folder, name="tensorboard", version="", default_hp_metric=False)


def test_each_validation_writes_a_table(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([SampleTranslations(sentences=3)], logger=board(tmp_path), max_epochs=2).fit(
        toy.Task(), datamodule=toy.Data(batches=6)
    )
    (first, table), (second, _) = texts(tmp_path)
    assert (first, second) == (6, 12)
    lines = table.splitlines()
    assert len(lines) == 2 + 3
    assert all(line.count("|") == 4 for line in lines), "no cell opens another column"
    assert "un chat &#124; noir" in lines[2]
    assert "w6 w8 w5 w8" in lines[2]


def test_every_nth_validation_only(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([SampleTranslations(every_n_validations=2)], logger=board(tmp_path), max_epochs=3).fit(
        toy.Task(), datamodule=toy.Data(batches=6)
    )
    assert [step for step, _ in texts(tmp_path)] == [6, 18]


def test_without_tensorboard_nothing_is_translated(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    class Mute(toy.Data):
        def texts(self, split: str) -> Any:
            raise AssertionError("translated for nobody")

    make_trainer([SampleTranslations()], logger=CSVLogger(tmp_path)).fit(toy.Task(), datamodule=Mute())


def test_rows_are_the_first_pairs_in_order(toy: Any) -> None:
    rows = sample_rows(toy.Task().eval(), toy.Data(), count=2)
    assert [(source, reference) for source, _, reference in rows] == [("un chat | noir", "a black cat"), ("", "")]
    assert rows[1][1] == "", "an empty sentence has an empty translation"


def test_the_rules_of_the_task_hold_and_its_beams_do_not(toy: Any) -> None:
    task = toy.Task().eval()
    task.search = SearchOptions(max_length=2, beam_size=3, n_best=2, coverage_penalty=0.1)
    (_, cut, _), *_ = sample_rows(task, toy.Data(), count=1)
    assert cut == "w6 w8"
    (_, whole, _), *_ = sample_rows(task, toy.Data(), count=1, max_length=None)
    assert whole == "w6 w8 w5 w8"


def test_fewer_sentences_than_asked_for_are_all_shown(toy: Any) -> None:
    assert len(sample_rows(toy.Task().eval(), toy.Data(), count=50)) == 3


@pytest.mark.parametrize("mark", list("&<>|*_`[]\\~#"))
def test_marks_of_markdown_are_shown_as_they_are(mark: str) -> None:
    assert escape_markdown(f"a{mark}b") == f"a&#{ord(mark)};b"


def test_a_cell_is_one_line() -> None:
    table = markdown_table([("a\nb\r\nc\u2028d", "", "x")])
    assert len(table.splitlines()) == 3
    assert "a b c d" in table


def test_accents_are_left_alone() -> None:
    assert escape_markdown("Où est l’œuvre ?") == "Où est l’œuvre ?"


def test_plain_samples_are_aligned_and_unescaped() -> None:
    text = plain_samples([("le | chat", "the cat", "a <cat>"), ("oui", "yes", "yes")])
    assert text.splitlines()[:3] == [
        "source       le | chat",
        "translation  the cat",
        "reference    a <cat>",
    ]
    assert text.count("\n\n") == 1


@pytest.mark.parametrize("options", [{"sentences": 0}, {"every_n_validations": 0}])
def test_impossible_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        SampleTranslations(**options)
