"""Evaluating and predicting from a checkpoint alone, for corpora of every form."""

import json
import math

import pytest
import torch

from hotloop.data.text.form import TextForm
from hotloop.decoding import SearchOptions
from hotloop.errors import UserError
from hotloop.inference import evaluate, load_translation, predict
from hotloop.vocabulary import UNK
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


def test_what_training_used_is_left_out_where_it_would_do_nothing(train_tiny):
    run = train_tiny("task.beam_size=3", "task.coverage_penalty=0.2", "task.min_length=2", "task.replace_unknown=true")
    assert load_translation(run.last).search == SearchOptions(
        beam_size=3, coverage_penalty=0.2, min_length=2, replace_unknown=True
    )
    assert load_translation(run.last, beam_size=1).search.coverage_penalty == 0
    drawn = load_translation(run.last, sample=True, seed=3).search
    assert (drawn.beam_size, drawn.coverage_penalty, drawn.min_length) == (1, 0, 2)
    assert not load_translation(run.last, allow_unknown=False).search.replace_unknown


def predicted(tmp_path, checkpoint, *overrides: str) -> list[str]:
    output = tmp_path / "predicted.txt"
    predict(
        compose_config(f"ckpt_path={checkpoint}", f"output={output}", "device=cpu", *overrides, config_name="predict")
    )
    return output.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("coverage_penalty=0.2",), "coverage_penalty = 0.2 does nothing with beam_size = 1"),
        (("top_p=0.9",), "top_p = 0.9 does nothing without sample"),
        (("sample=true", "beam_size=4"), "beam_size = 4 does nothing with sample"),
        (("sample=perhaps",), "sample = 'perhaps': must be true or false"),
        (("no_repeat_ngram=-1",), "no_repeat_ngram = -1"),
        (("min_length=5", "max_length=4"), "min_length = 5 is more than max_length = 4"),
        (("replace_unknown=true",), "replace_unknown = True needs a model with attention"),
        (("n_best=3",), "n_best=3 needs beam_size=3"),
        (("score=nowhere.en",), r"no such file: nowhere\.en"),
        (("score=nowhere.en", "beam_size=3"), "beam_size=3 does nothing here: score=FILE"),
        (("score=nowhere.en", "input='-'"), "score=FILE needs input=FILE"),
        (("length_penalty=50",), "length_penalty = 50: must be a number from 0 to 5"),
        (("sample=true", "temperature=1e-9"), "temperature = 1e-09: must be a number from 0.001"),
        (("ckpt_path=[]",), "ckpt_path is empty"),
        (("ckpt_path=[1]",), "expected a file name, or a list"),
    ],
    ids=str,
)
def test_mistakes_in_the_search_are_told_in_one_line(train_tiny, tmp_path, overrides, message):
    run = train_tiny("model=seq2seq", "trainer.limit_train_batches=1")
    (tmp_path / "in.fr").write_text("mot1\n", encoding="utf-8")
    with pytest.raises(UserError, match=message) as caught:
        predicted(tmp_path, run.last, f"input={tmp_path / 'in.fr'}", *overrides)
    assert "\n" not in str(caught.value)


def test_scores_of_given_translations_add_up_to_the_loss(train_tiny, tmp_path, bitext):
    run = train_tiny("trainer.max_epochs=2")
    files = (f"input={bitext / 'test.fr'}", f"score={bitext / 'test.en'}")
    rows = [line.split("\t") for line in predicted(tmp_path, run.last, *files, "batch_size=7")]
    total, tokens = sum(float(row[0]) for row in rows), sum(int(row[1]) for row in rows)
    assert len(rows) == 20 and -total / tokens == pytest.approx(evaluated(tmp_path, run.last)["loss"], abs=1e-4)
    assert float(rows[0][2]) == pytest.approx(math.exp(-float(rows[0][0]) / int(rows[0][1])), rel=1e-3)

    (tmp_path / "short.en").write_text("word1\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"test\.fr has 20 lines, .*short\.en has 1"):
        predicted(tmp_path, run.last, files[0], f"score={tmp_path / 'short.en'}")
    (tmp_path / "empty").write_text("\n\nmot1\n", encoding="utf-8")
    (tmp_path / "other").write_text("\nword1\n\n", encoding="utf-8")
    rows = predicted(tmp_path, run.last, f"input={tmp_path / 'empty'}", f"score={tmp_path / 'other'}")
    assert [row.split("\t")[1] for row in rows] == ["1", "2", "1"]


def test_models_work_together_and_each_changes_the_result(train_tiny, tmp_path, bitext):
    one = train_tiny("optimizer.lr=1e-2", folder="one")
    two = train_tiny("optimizer.lr=1e-2", "seed=2", folder="two")
    losses = [evaluated(tmp_path, run.last)["loss"] for run in (one, two)]
    options = (f"run_dir={tmp_path / 'both'}", "trainer.accelerator=cpu")
    found = evaluate(compose_config(f"ckpt_path=['{one.last}','{two.last}']", *options, config_name="evaluate"))
    assert found["loss"] < sum(losses) / 2  # the mean of probabilities is better than the mean of their logarithms
    written = json.loads((tmp_path / "both" / "evaluation.json").read_text())
    assert written["checkpoint"] == [str(one.last), str(two.last)]

    source = f"input={bitext / 'test.fr'}"
    together = predicted(tmp_path, f"['{one.last}','{two.last}']", source, "beam_size=3", "replace_unknown=true")
    assert len(together) == 20 and any(together)
    with pytest.raises(UserError, match=r"is there twice \(.*one/checkpoints/last\.ckpt\)"):
        predicted(tmp_path, f"['{one.last}','{one.last}']", source)
    (tmp_path / "link.ckpt").symlink_to(one.last)
    for other in (tmp_path / "two" / ".." / "one" / "checkpoints" / "last.ckpt", tmp_path / "link.ckpt"):
        with pytest.raises(UserError, match=rf"is there twice \({one.last} and {other}\)"):
            predicted(tmp_path, f"['{one.last}','{other}']", source)


def test_the_member_of_an_ensemble_that_cannot_do_what_is_asked_is_named(train_tiny, tmp_path, bitext):
    attends = train_tiny("trainer.limit_train_batches=1", folder="attends")
    does_not = train_tiny("trainer.limit_train_batches=1", "model=seq2seq", folder="does_not")
    for pair in ((attends, does_not), (does_not, attends)):
        paths = ",".join(f"'{run.last}'" for run in pair)
        with pytest.raises(UserError, match=rf"^{does_not.last}: replace_unknown = True needs a model with attention"):
            predicted(tmp_path, f"[{paths}]", f"input={bitext / 'test.fr'}", "replace_unknown=true")


def test_models_of_other_vocabularies_do_not_work_together(train_tiny, tmp_path, bitext):
    one = train_tiny("trainer.limit_train_batches=1", folder="one")
    two = train_tiny("trainer.limit_train_batches=1", "data.tokenizer.vocabulary_size=20", folder="two")
    with pytest.raises(UserError, match=r"one/.*two/.* have different target tokenisers"):
        predicted(tmp_path, f"['{one.last}','{two.last}']", f"input={bitext / 'test.fr'}")
    three = train_tiny("trainer.limit_train_batches=1", "data.lowercase=true", folder="three")
    with pytest.raises(UserError, match=r"one/.*three/.* have different forms of text"):
        predicted(tmp_path, f"['{one.last}','{three.last}']", f"input={bitext / 'test.fr'}")


def test_draws_and_unknown_words_at_the_door(train_tiny, tmp_path):
    run = train_tiny("trainer.limit_train_batches=2")
    (tmp_path / "in.fr").write_text("mot1 mot2\nmot1 mot2\n\n", encoding="utf-8")
    draw = (f"input={tmp_path / 'in.fr'}", "sample=true", "n_best=2", "top_k=30", "max_length=8")
    rows = [row.split("\t") for row in predicted(tmp_path, run.last, *draw)]
    assert [row[0] for row in rows] == ["1", "1", "2", "2", "3"]
    assert [row.split("\t") for row in predicted(tmp_path, run.last, *draw, "batch_size=1")] == rows
    assert [row.split("\t") for row in predicted(tmp_path, run.last, *draw, "seed=1")] != rows


def test_the_score_of_an_n_best_row_is_the_log_probability_over_the_length_penalty(train_tiny, tmp_path):
    run = train_tiny("trainer.limit_train_batches=2")
    (tmp_path / "in.fr").write_text("mot1 mot2\n\n", encoding="utf-8")
    for how in (("beam_size=2",), ("sample=true", "temperature=0.5", "top_k=5")):
        options = (f"input={tmp_path / 'in.fr'}", "n_best=2", "max_length=8", *how)
        plain, divided = (
            [row.split("\t") for row in predicted(tmp_path, run.last, *options, f"length_penalty={alpha}")]
            for alpha in (0, 1)
        )
        assert plain[-1] == divided[-1] == ["2", "0.0000", ""]
        scored = {row[2]: float(row[1]) for row in plain[:-1]}
        for _, score, text in divided[:-1]:
            if text in scored:
                length = min(len(text.split()) + 1, 8)
                assert float(score) == pytest.approx(scored[text] / ((5 + length) / 6), abs=1e-3)
        if how[0] == "sample=true":
            assert {row[2] for row in divided} == {row[2] for row in plain}


def test_the_folder_of_the_output_is_made(train_tiny, tmp_path):
    run = train_tiny("trainer.limit_train_batches=1")
    (tmp_path / "in.fr").write_text("mot1\n", encoding="utf-8")
    output, blocked = tmp_path / "new" / "folder" / "out.en", tmp_path / "in.fr" / "out.en"
    predict(
        compose_config(
            f"ckpt_path={run.last}", f"input={tmp_path / 'in.fr'}", f"output={output}", config_name="predict"
        )
    )
    assert len(output.read_text().splitlines()) == 1
    options = (f"ckpt_path={run.last}", f"input={tmp_path / 'in.fr'}", f"output={blocked}")
    with pytest.raises(UserError, match=f"output: cannot write {blocked}"):
        predict(compose_config(*options, config_name="predict"))


def test_a_folder_is_answered_with_the_file_in_it_to_use(train_tiny, tmp_path):
    run = train_tiny("trainer.limit_train_batches=1")
    checkpoints = run.last.parent
    for name in ("recent0000050.ckpt", "averaged.ckpt", "zz.ckpt"):
        (checkpoints / name).write_bytes(b"")
    best = next(checkpoints.glob("epoch*.ckpt"))
    for folder in (checkpoints, run.folder):
        with pytest.raises(UserError, match=f"is a folder, not a checkpoint file; it holds {best}$"):
            load_translation(folder)
    best.unlink()
    with pytest.raises(UserError, match=f"it holds {run.last}$"):
        load_translation(checkpoints)


@pytest.mark.parametrize("precision", ["bf16-true", "16-true", "64-true"])
def test_runs_and_evaluations_in_one_precision_throughout(train_tiny, tmp_path, precision):
    options = ("task.beam_size=2", "task.coverage_penalty=0.2", "task.no_repeat_ngram=3", "task.max_length=8")
    run = train_tiny(f"precision={precision}", "trainer.limit_train_batches=3", "test=true", *options)
    assert math.isfinite(run.report["metrics"]["test/bleu"])
    ways: tuple[tuple[str, ...], ...] = ((), ("beam_size=1",), ("sample=true", "top_k=5"))
    for way in ways:
        assert math.isfinite(evaluated(tmp_path, run.last, f"precision={precision}", *way)["bleu"])


def test_validation_replaces_unknown_words_by_source_words(train_tiny, tmp_path):
    data = tmp_path / "names"
    for number, (name, count) in enumerate((("train", 200), ("valid", 20), ("test", 20))):
        pairs = [
            (f"{fr} nom{name}{i}", f"{en} nom{name}{i}") for i, (fr, en) in enumerate(made_pairs(count, seed=number))
        ]
        write_bitext(data, name, pairs)
    run = train_tiny("trainer.limit_train_batches=30", data=data)
    task = load_translation(run.last, replace_unknown=True, min_length=3, max_length=3)
    with torch.no_grad():
        task.model.projection.bias[UNK] = 100.0  # nothing else is ever said
    content = torch.load(run.last, weights_only=True)
    content["state_dict"] = task.state_dict()
    torch.save(content, tmp_path / "unknown.ckpt")
    output = tmp_path / "hypotheses"
    options = (f"output={output}", "replace_unknown=true", "min_length=3", "max_length=3")
    evaluated(tmp_path, tmp_path / "unknown.ckpt", *options)
    sources = (data / "test.fr").read_text().splitlines()
    for source, line in zip(sources, output.read_text().splitlines(), strict=True):
        assert len(line.split()) == 3 and set(line.split()) <= set(source.split())
