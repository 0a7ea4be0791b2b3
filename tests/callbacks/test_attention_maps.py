"""Heat maps of attention."""

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hotloop.callbacks import attention_maps
from hotloop.callbacks.attention_maps import AttentionMaps, attention_of, draw_map, readable
from hotloop.decoding import SearchOptions
from hotloop.errors import UserError


def board(folder: Path) -> TensorBoardLogger:
    return TensorBoardLogger(folder, name="tensorboard", version="", default_hp_metric=False)


def events(folder: Path) -> EventAccumulator:
    read = EventAccumulator(str(folder / "tensorboard"), size_guidance={"images": 0})
    read.Reload()
    return read


def test_the_same_sentences_are_drawn_at_each_validation(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([AttentionMaps(sentences=2)], logger=board(tmp_path), max_epochs=3).fit(
        toy.Task(), datamodule=toy.Data(batches=6)
    )
    read = events(tmp_path)
    # the second validation sentence is empty and has nothing to draw
    assert read.Tags()["images"] == ["attention/sentence_0", "attention/sentence_2"]
    assert [image.step for image in read.Images("attention/sentence_0")] == [6, 12, 18]


def test_maps_are_drawn_every_nth_validation(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([AttentionMaps(sentences=1, every_n_validations=2)], logger=board(tmp_path), max_epochs=4).fit(
        toy.Task(), datamodule=toy.Data(batches=6)
    )
    assert [image.step for image in events(tmp_path).Images("attention/sentence_0")] == [6, 18]


def test_files_are_written_only_where_asked(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([AttentionMaps(sentences=1, directory=str(tmp_path / "attention"))]).fit(
        toy.Task(), datamodule=toy.Data(batches=6)
    )
    files = sorted(path.name for path in (tmp_path / "attention").iterdir())
    assert files == ["sentence_0_step_0000006.png", "sentence_0_step_0000012.png"]
    assert (tmp_path / "attention" / files[0]).read_bytes().startswith(b"\x89PNG")


def test_no_folder_is_made_unasked(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    make_trainer([AttentionMaps()], logger=board(tmp_path)).fit(toy.Task(), datamodule=toy.Data())
    assert not list(tmp_path.rglob("*.png"))


def test_a_model_that_does_not_attend_is_left_in_peace(
    toy: Any, make_trainer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="hotloop.callbacks.attention_maps"):
        make_trainer([AttentionMaps()], logger=board(tmp_path), max_epochs=3).fit(
            toy.Task(attends=False), datamodule=toy.Data()
        )
    told = [r for r in caplog.records if r.name == "hotloop.callbacks.attention_maps"]
    assert len(told) == 1
    assert not events(tmp_path).Tags()["images"]


def test_without_a_logger_or_folder_nothing_is_computed(
    toy: Any, make_trainer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise AssertionError("computed for nobody")

    monkeypatch.setattr(attention_maps, "attention_of", fail)
    make_trainer([AttentionMaps()], logger=CSVLogger(tmp_path)).fit(toy.Task(), datamodule=toy.Data())


def test_training_is_not_disturbed(toy: Any, make_trainer: Any, tmp_path: Path) -> None:
    import torch

    def losses(callbacks: list[Any]) -> list[float]:
        torch.manual_seed(0)
        task = toy.Task()
        make_trainer(callbacks, logger=board(tmp_path)).fit(task, datamodule=toy.Data())
        assert task.model.training
        return task.losses

    assert losses([AttentionMaps()]) == losses([])


def test_a_map_keeps_to_the_rules_of_the_task(toy: Any) -> None:
    task = toy.Task().eval()
    task.search = SearchOptions(max_length=2, beam_size=3)
    ((_, target, weights),) = attention_of(task, ["un chat noir"])
    assert target[:2] == ["w6", "w8"] and len(target) == weights.shape[2] == 3


def test_rows_are_target_words_and_columns_source_words(toy: Any) -> None:
    (drawn,) = attention_of(toy.Task().eval(), ["un chat noir"])
    source, target, weights = drawn
    assert source == ["w6", "w8", "w8", "<eos>"]
    assert target == ["w6", "w8", "w8", "<eos>"]
    assert weights.shape == (1, 1, 4, 4)
    assert np.array_equal(weights[0, 0], np.eye(4, dtype=np.float32))


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["▁the", "▁trans", "lation", "."], ["the", "trans", "·lation", "·."]),
        (["▁", "é", "▁a"], ["␣", "·é", "a"]),
        (["▁the", "<unk>"], ["the", "<unk>"]),
        (["l'", "été", "."], ["l'", "été", "."]),
        (["l'￭", "été", "￭."], ["l'", "été", "."]),
        ([], []),
    ],
)
def test_pieces_are_shown_cleanly(pieces: list[str], shown: list[str]) -> None:
    assert readable(pieces) == shown


def cells(picture: np.ndarray) -> int:
    """Pixels in the colour of the largest weight."""
    return int((np.abs(picture.astype(int) - [253, 231, 36]).sum(-1) < 6).sum())


def test_a_weight_of_one_is_drawn_bright() -> None:
    words = ["a", "b", "c"]
    dark = draw_map(words, words, np.zeros((3, 3)), title="t")
    bright = draw_map(words, words, np.eye(3), title="t")
    assert bright.dtype == np.uint8
    assert bright.shape == dark.shape
    assert bright.shape[2] == 3
    assert cells(bright) - cells(dark) > 3 * 20 * 20


def test_pictures_grow_with_the_sentence_and_stop_growing() -> None:
    def size(words: int) -> tuple[int, int]:
        names = [f"w{i % 10}" for i in range(words)]
        return draw_map(names, names, np.zeros((words, words)), title="t").shape[:2]

    assert size(40) > size(20)
    assert size(120) == size(200) == size(80)


@pytest.mark.parametrize(
    "word", ["$x_1$", "$", "déjà", "œuvre", "日本語", "\\frac{", "&<>|", "", "a" * 60, "🙂", "١٢", "_^", "%s"]
)
def test_any_word_can_stand_on_an_axis(word: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = draw_map([word, "b"], [word, "b"], np.eye(2), title=word)
    assert picture.std() > 0


def test_weights_must_fit_the_words() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\).*2 source"):
        draw_map(["a", "b"], ["c", "d"], np.zeros((2, 3)), title="t")


def test_figures_do_not_pile_up() -> None:
    for _ in range(3):
        draw_map(["a"], ["b"], np.ones((1, 1)), title="t")
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_the_module_does_not_import_matplotlib_itself() -> None:
    source = Path(attention_maps.__file__).read_text(encoding="utf-8")
    assert not [line for line in source.splitlines() if line.startswith(("import matplotlib", "from matplotlib"))]


WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 2, 1, 2)  # 3 layers, 2 heads


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"": WEIGHTS[1].mean(0)}),
        ({"layers": "mean"}, {"": WEIGHTS.mean((0, 1))}),
        ({"heads": "all"}, {", head 0": WEIGHTS[1, 0], ", head 1": WEIGHTS[1, 1]}),
        ({"layers": [2, 0]}, {", layer 2": WEIGHTS[2].mean(0), ", layer 0": WEIGHTS[0].mean(0)}),
        (
            {"layers": "all", "heads": "all"},
            {f", layer {i}, head {j}": WEIGHTS[i, j] for i in range(3) for j in range(2)},
        ),
    ],
    ids=str,
)
def test_layers_and_heads_are_chosen_by_option(options: Any, expected: dict[str, np.ndarray]) -> None:
    found = AttentionMaps(**options).chosen(WEIGHTS, alignment_layer=1)
    assert list(found) == list(expected)
    for name, weights in expected.items():
        assert np.array_equal(found[name], weights)


def test_a_head_that_the_model_does_not_have_is_named() -> None:
    with pytest.raises(UserError, match=r"heads=\[2\].*2 heads"):
        AttentionMaps(heads=[2]).chosen(WEIGHTS, alignment_layer=0)


@pytest.mark.parametrize(
    "options", [{"layers": []}, {"layers": [-1]}, {"heads": "every"}, {"heads": "alignment"}], ids=str
)
def test_layers_and_heads_that_mean_nothing_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="a list of numbers from 0"):
        AttentionMaps(**options)


@pytest.mark.parametrize("options", [{"sentences": 0}, {"every_n_validations": 0}])
def test_impossible_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        AttentionMaps(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", [{"heads": [1]}, {"layers": [0, 3]}])
def test_numbers_that_the_model_lacks_are_told_before_training(
    toy: Any, make_trainer: Any, asked: dict[str, list[int]]
) -> None:
    task = toy.Task()
    with pytest.raises(UserError, match=r"the model has 1 (heads|layers), 0 is the first"):
        make_trainer([AttentionMaps(**asked)], num_sanity_val_steps=0).fit(task, datamodule=toy.Data())
    assert not task.seen


def test_the_numbers_are_checked_without_drawing_from_the_generator(toy: Any, make_trainer: Any) -> None:
    import torch

    task = toy.Task()
    plain = task.model.attention_weights
    task.model.attention_weights = lambda *batch: (torch.rand(3), plain(*batch))[1]
    trainer = make_trainer([])
    before = torch.get_rng_state()
    AttentionMaps(heads=[0])._check_numbers(trainer, task)
    assert torch.equal(torch.get_rng_state(), before)
