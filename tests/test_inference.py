"""Evaluating and predicting from a checkpoint alone, for corpora of every form."""

import json

import pytest

from hotloop.data.text.form import TextForm
from hotloop.errors import UserError
from hotloop.inference import evaluate, load_translation, predict
from tests.conftest import compose_config, made_pairs, write_bitext


def evaluated(tmp_path, checkpoint, *overrides: str) -> dict[str, float]:
    options = (f"ckpt_path='{checkpoint}'", f"run_dir={tmp_path / 'evaluation'}", "trainer.accelerator=cpu", *overrides)
    return evaluate(compose_config(*options, config_name="evaluate"))


@pytest.mark.parametrize(
    "form",
    [
        (),
        ("data.lowercase=true",),
        ("data.pretokenized=true",),
        ("data.tokenizer.kind=bpe", "data.tokenizer.vocabulary_size=90", "data.pretokenized=true"),
        ("data.tokenizer.kind=unigram", "data.tokenizer.vocabulary_size=90", "data.lowercase=true"),
        ("task.beam_size=3", "task.length_penalty=0.5"),
        ("model=seq2seq",),
    ],
    ids=lambda form: " ".join(form) or "plain",
)
def test_evaluate_finds_what_the_run_found(train_tiny, tmp_path, form):
    data = tmp_path / "punctuated"
    for number, (name, count) in enumerate((("train", 200), ("valid", 20), ("test", 20))):
        pairs = [(f"{fr} , {fr} .", f"The {en} , it 's {en} .") for fr, en in made_pairs(count, seed=number, longest=4)]
        write_bitext(data, name, pairs)
    run = train_tiny("test=true", "trainer.max_epochs=3", "optimizer.lr=1e-2", *form, data=data)
    expected = run.report["metrics"]
    found = evaluated(tmp_path, run.report["best_checkpoint"])
    for name in ("bleu", "chrf", "loss", "perplexity"):
        assert found[name] == pytest.approx(expected[f"test/{name}"], rel=1e-4, abs=1e-4), name
    assert expected["test/chrf"] > 1  # something was learnt, so the comparison means something
    written = json.loads((tmp_path / "evaluation" / "evaluation.json").read_text())
    assert written["metrics"] == found and written["sentences"] == 20

    valid = evaluated(tmp_path, run.last, "split=valid")
    assert valid["loss"] == pytest.approx(run.report["epochs"][-1]["val_loss"], rel=1e-4)


def test_predicted_text_is_natural_and_one_line_a_line(train_tiny, tmp_path):
    data = tmp_path / "punctuated"
    for number, name in enumerate(("train", "valid", "test")):
        pairs = [(f"{fr} .", f"it 's {en} .") for fr, en in made_pairs(100, seed=number, longest=4)]
        write_bitext(data, name, pairs)
    run = train_tiny("trainer.max_epochs=6", "optimizer.lr=1e-2", "data.pretokenized=true", data=data)
    source, output = tmp_path / "in.fr", tmp_path / "out.en"
    source.write_text("mot1 mot2 .\n\n   \nmot3 .", encoding="utf-8")
    predict(compose_config(f"ckpt_path='{run.last}'", f"input={source}", f"output={output}", config_name="predict"))
    lines = output.read_text(encoding="utf-8").split("\n")
    assert len(lines) == 5 and lines[1] == lines[2] == lines[4] == ""
    assert lines[0].startswith("it's ") and lines[0].endswith(".") and " ." not in lines[0]


@pytest.mark.parametrize(
    "form", [None, {}, {"src_lang": "fr"}, {"src_lang": "fr", "tgt_lang": "en", "unicode_form": "x"}]
)
def test_a_damaged_form_of_the_text_is_told(form):
    with pytest.raises(UserError, match="text form cannot be read"):
        TextForm.from_saved({"form": form})


def test_a_set_that_is_gone_is_told_with_what_to_do(train_tiny, tmp_path):
    run = train_tiny()
    for path in (tmp_path / "cache").rglob("test.*.txt"):
        path.unlink()
    with pytest.raises(UserError, match=r"is gone: give source=FILE reference=FILE"):
        evaluated(tmp_path, run.last)


def test_search_options_of_the_command_outrank_those_of_training(train_tiny):
    run = train_tiny("task.beam_size=2")
    assert load_translation(run.last).search_options["beam_size"] == 2
    assert load_translation(run.last, beam_size=4, length_penalty=None).search_options["beam_size"] == 4
