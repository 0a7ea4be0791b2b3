"""Whole runs of the tiny model in this process: what lands in the folder, and mistakes told before training."""

import csv

import pytest
import yaml

from hotloop.errors import UserError
from tests.conftest import ROOT, TINY, TINY_TRANSFORMER, compose_config, made_pairs, write_bitext


def test_a_run_leaves_report_checkpoints_and_the_value_that_was_monitored(train_tiny):
    run = train_tiny("trainer.max_epochs=2", "test=true")
    report = run.report
    assert report["status"] == "finished" and report["seed"] == 1
    assert [epoch["steps"] for epoch in report["epochs"]] == [50, 50]
    assert {"test/bleu", "test/chrf", "test/loss", "test/perplexity"} <= set(report["metrics"])
    assert report["data"]["pairs"] == {"train": 200, "valid": 20, "test": 20}
    assert run.last.is_file() and report["best_checkpoint"]
    assert run.value == pytest.approx(min(epoch["val_loss"] for epoch in report["epochs"]))


def test_the_model_learns(train_tiny):
    losses = train_tiny("trainer.max_epochs=6", "optimizer.lr=1e-2").losses
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize(
    "overrides",
    [
        ("model=seq2seq",),
        ("model.attention=concat",),
        ("model.decoding=stepwise",),
        ("optimizer=rmsprop",),
        ("optimizer=sgd", "scheduler=linear"),
        ("optimizer=adam", "scheduler=inverse_sqrt"),
        ("optimizer=adagrad", "scheduler=cosine"),
        ("precision=bf16-mixed",),
        ("precision=bf16-true",),
        ("precision=64-true",),
        ("data.max_tokens=64",),
        ("data.bucketing=false",),
        ("data.tokenizer.kind=bpe", "data.tokenizer.shared=true", "data.tokenizer.vocabulary_size=120"),
        ("data.tokenizer.kind=unigram", "data.tokenizer.vocabulary_size=120"),
        ("task.projection_chunk=7", "task.label_smoothing=0"),
        ("task.beam_size=3", "task.decode_sentences=5"),
        ("task.decode_every=0",),
        ("trainer.gradient_clip_val=null",),
        ("trainer.gradient_clip_val=0.1", "trainer.gradient_clip_algorithm=value"),
        ("callbacks=early_stopping", "callbacks.progress=null"),
        ("logger=csv",),
        ("debug=quick", "data.batch_size=4"),
        ("debug=anomaly",),
    ],
    ids=lambda overrides: " ".join(overrides),
)
def test_each_option_trains(train_tiny, overrides):
    run = train_tiny(*overrides, "trainer.limit_train_batches=5")
    assert run.report["status"] == "finished"
    assert run.losses[0] == pytest.approx(3.8, abs=1.5)


SHARED = ("data.tokenizer.kind=bpe", "data.tokenizer.shared=true", "data.tokenizer.vocabulary_size=120")


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("precision=bf16-mixed", "model.norm=post", "scheduler=inverse_sqrt"),
        ("precision=bf16-true", "model.positions=rotary", "model.activation=swiglu"),
        ("model.positions=learned", "model.max_positions=6", "model.attention_dropout=0.1"),
        ("model.tie=[source,target,output]", *SHARED, "task.projection_chunk=7"),
        ("model.activation_checkpointing=true", "trainer.accumulate_grad_batches=2"),
        ("model.teacher_forcing=0.5", "task.scheduled_sampling=stepwise", "scheduler=one_cycle"),
        ("callbacks.averaging={_target_:hotloop.callbacks.averaging.Averaging,ema:0.9}", "task.beam_size=3"),
        ("task.beam_size=2", "task.coverage_penalty=0.2", "task.replace_unknown=true", "task.no_repeat_ngram=3"),
    ],
    ids=lambda overrides: " ".join(overrides) or "defaults",
)
def test_each_option_of_the_transformer_trains(train_tiny, overrides):
    run = train_tiny("model=transformer", *overrides, "trainer.limit_train_batches=5", tiny=TINY_TRANSFORMER)
    assert run.report["status"] == "finished"
    assert run.losses[0] == pytest.approx(3.8, abs=1.5)
    assert "val/bleu" in run.report["metrics"]


@pytest.mark.parametrize("size", ["tiny", "base", "big"])
def test_each_size_of_the_transformer_composes_and_fits_its_data(train_tiny, size):
    message = refused(train_tiny, f"model=transformer_{size}", "model.heads=7", tiny=())
    assert "heads = 7: hidden must be a multiple of twice the heads" in message


def test_a_tied_source_without_a_common_vocabulary_is_told_before_data_is_read(train_tiny, tmp_path):
    message = refused(train_tiny, "model=transformer", "model.tie=[source,target]", tiny=(), data=tmp_path / "nowhere")
    assert "data.tokenizer.shared=true" in message


def refused(train_tiny, *overrides: str, **options) -> str:
    with pytest.raises(UserError) as caught:
        train_tiny(*overrides, **options)
    message = str(caught.value)
    assert "\n" not in message.strip()
    return message


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("model.hidden=0", "hidden"),
        ("model.hidden=big", "model.hidden='big': expected a whole number"),
        ("model.hidden=1.5", "model.hidden=1.5: expected a whole number"),
        ("model.decoder_dropout=1.5", "decoder_dropout"),
        ("model.attention=dott", "model.attention='dott': expected"),
        ("optimizer.lr=-1", "optimizer: Invalid learning rate: -1"),
        ("optimizer.lr=fast", "optimizer.lr='fast'"),
        ("optimizer.fused=maybe", "optimizer: fused must be true, false or auto"),
        ("scheduler.warmup_steps=-1", "scheduler: warmup_steps"),
        ("scheduler.minimum=5", "scheduler: minimum 5"),
        ("task.label_smoothing=1", "label_smoothing"),
        ("task.beam_size=0", "beam_size"),
        ("trainer.max_epochs=many", "trainer.max_epochs='many'"),
        ("trainer.accelerator=gpuu", "trainer: "),
        ("trainer.precision=16-mixt", "trainer.precision='16-mixt'"),
        ("data.batch_size=0", "data.batch_size"),
        ("data.filters.min_length=200", "min_length"),
        ("data.tokenizer.kind=words", "data.tokenizer.kind"),
        ("mode=lowest", "mode='lowest': expected min or max"),
        ("seed=-1", "seed=-1: expected a whole number"),
        ("seed=one", "seed='one'"),
        ("compile=maybe", "compile='maybe'"),
        ("ckpt_path=/nowhere/x.ckpt", "there is no file /nowhere/x.ckpt"),
        ("ckpt_path=last", "no run below"),
        ("trainer.gradient_clip_val=0", "trainer.gradient_clip_val=0: expected a number above 0"),
        ("trainer.gradient_clip_val=-1", "trainer.gradient_clip_val=-1"),
        ("trainer.accumulate_grad_batches=0", "trainer.accumulate_grad_batches=0"),
        ("trainer.check_val_every_n_epoch=0", "trainer.check_val_every_n_epoch=0"),
        ("trainer.val_check_interval=1000", "val_check_interval"),
        ("trainer.limit_train_batches=0.0001", "limit_train_batches"),
        ("trainer.limit_val_batches=0", "monitor=val/loss needs validation"),
        ("trainer.devices=0", "trainer: "),
        ("strategy=fsdp", "trainer: "),
        ("precision=transformer-engine", "trainer: "),
        ("optimizer.lr=inf", "optimizer.lr=inf"),
        ("optimizer.lr=null", "optimizer.lr=None: expected"),
        ("optimizer.betas=[0.9]", "optimizer: "),
        ("task.length_penalty=-1", "length_penalty = -1"),
        ("task.length_penalty=inf", "length_penalty = inf"),
        ("task.max_length=1000000000", "max_length = 1000000000"),
        ("mode=max", "mode=max: the best val/loss is the min"),
        ("+callbacks.foo=1", "callbacks.foo=1: expected a group of options"),
        ("+foo=1", "foo: no such key"),
        ("~compile", "compile was taken out"),
        ("~matmul_precision", "matmul_precision was taken out"),
        ("~trainer.max_steps", "trainer.max_steps was taken out"),
        ("~model._target_", "model._target_: None is refused"),
        ("run_dir=null", "run_dir=None: expected a text"),
        ("test=1", "test=1: expected true or false"),
        ("model._target_=hotloop.errors.UserError", "is not a Module"),
        ("model._target_=hotloop.models.seq2seq.Encoder", "cannot import"),
        ("callbacks.report._target_=torch.optim.SGD", "is not a Callback"),
        ("allow_targets=x", "allow_targets='x': expected a list"),
        ("callbacks.report._target_=os.system", "refused"),
        ("model._target_=torch.load", "refused"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_it(train_tiny, override, expected):
    assert expected in refused(train_tiny, override)


def test_sizes_beyond_the_memory_are_told(train_tiny):
    assert "too large for the memory" in refused(train_tiny, "model.hidden=1000000")


@pytest.mark.parametrize("monitor", ["val/bleu", "val/chrf"])
def test_a_metric_that_should_rise_is_best_when_high(train_tiny, monitor):
    run = train_tiny(f"monitor={monitor}", "trainer.max_epochs=4", "optimizer.lr=1e-2", "logger=csv")
    rows = list(csv.DictReader((run.folder / "csv" / "metrics.csv").open()))
    values = [float(row[monitor]) for row in rows if row[monitor]]
    assert len(set(values)) > 1 and run.value == pytest.approx(max(values), rel=1e-5)


def test_a_metric_that_is_not_measured_each_time_cannot_be_monitored(train_tiny):
    assert "needs task.decode_every=1" in refused(train_tiny, "monitor=val/bleu", "task.decode_every=0")


@pytest.mark.parametrize(
    "override",
    [
        "callbacks=none",
        "callbacks.report=null",
        "callbacks.checkpoint=null",
        "callbacks.last=null",
        "callbacks.random_state=null",
    ],
)
def test_what_watches_can_be_left_out(train_tiny, override, tmp_path):
    options = tuple(o for o in TINY if not (override == "callbacks=none" and o.startswith("callbacks")))
    train_tiny(*options, override, "trainer.limit_train_batches=2", "test=true", tiny=())
    assert not any("=" in path.name for path in (tmp_path / "run").rglob("*.ckpt"))


def test_a_run_that_diverges_stops_and_says_so(train_tiny):
    message = refused(
        train_tiny, "optimizer=sgd", "optimizer.lr=1e30", "trainer.gradient_clip_val=null", "trainer.max_epochs=5"
    )
    assert "the run has diverged" in message and "optimizer.lr" in message


@pytest.mark.parametrize(
    "override",
    ["trainer.enable_progress_bar=false", "trainer.enable_checkpointing=false", "trainer.fast_dev_run=true"],
)
def test_switches_of_the_trainer_get_along_with_the_callbacks(train_tiny, override):
    train_tiny(override, "trainer.limit_train_batches=2", "test=true")


def test_without_a_test_set_the_test_is_left_out(train_tiny):
    run = train_tiny("data.corpus.test=null", "data.test_size=0", "test=true")
    assert not any(name.startswith("test/") for name in run.report["metrics"])


def test_without_a_validation_set_another_monitor_is_asked_for(train_tiny):
    without = ("data.corpus.valid=null", "data.valid_size=0")
    assert "needs a validation set" in refused(train_tiny, *without)
    run = train_tiny(*without, "monitor=train/loss_epoch", folder="second")
    assert run.report["best_checkpoint"]


def test_an_endless_run_needs_a_schedule_without_an_end(train_tiny):
    assert "set trainer.max_epochs" in refused(train_tiny, "scheduler=cosine", "trainer.max_epochs=-1")


def test_a_wrong_model_size_is_told_before_data_is_read(train_tiny, tmp_path):
    refused(train_tiny, "model.hidden=0")
    assert not (tmp_path / "cache").exists()


def test_model_and_data_of_different_kinds_are_refused(train_tiny, monkeypatch):
    from hotloop.data.text.bitext import BitextDataModule

    monkeypatch.setattr(BitextDataModule, "kind", "images")
    assert "works on text but data=" in refused(train_tiny)


def test_a_monitor_that_does_not_exist_is_told_with_those_that_do(train_tiny):
    assert "val/loss" in refused(train_tiny, "monitor=val/blue")
    options = ("callbacks=early_stopping", "callbacks.progress=null")
    message = refused(train_tiny, *options, "callbacks.early_stopping.monitor=val/acc")
    assert "callbacks.early_stopping.monitor=val/acc: no such metric" in message


EXPERIMENTS = [path.stem for path in sorted((ROOT / "conf" / "experiment").glob("*.yaml"))]
ON_TEXT = [name for name in EXPERIMENTS if "translation" in compose_config(f"experiment={name}").task._target_]


@pytest.mark.parametrize("experiment", ON_TEXT)
def test_every_experiment_trains_on_small_data(train_tiny, tmp_path, experiment):
    folder = tmp_path / "data"
    names = ("train", "valid", "val", "test", "test_2016_flickr")
    for number, name in enumerate(names):
        pairs = made_pairs(120 if name == "train" else 10, seed=number, longest=24)
        write_bitext(folder, name, [(f"{fr} " * 6, f"{en} " * 6) for fr, en in pairs])
    defaults = yaml.safe_load((ROOT / "conf" / "experiment" / f"{experiment}.yaml").read_text(encoding="utf-8"))[
        "defaults"
    ]
    (model,) = (entry["override /model"] for entry in defaults if "override /model" in entry)
    run = train_tiny(
        f"experiment={experiment}",
        f"model={model}",  # the fixture's own choice would win
        "model.hidden=8",
        "model.heads=2" if model == "transformer" else "model.embedding=8",
        "data.filters.max_length=500",
        "trainer.max_epochs=1",
        "trainer.limit_train_batches=2",
        "trainer.accelerator=cpu",
        "logger=none",
        "callbacks.progress=null",
        data=folder,
        tiny=(),
    )
    assert run.report["status"] == "finished"


@pytest.mark.parametrize(
    "group", ["model", "data", "optimizer", "scheduler", "precision", "strategy", "callbacks", "logger", "debug"]
)
def test_every_option_of_every_group_composes(group):
    for path in sorted((ROOT / "conf" / group).glob("[!_]*.yaml")):
        assert compose_config(f"{group}={path.stem}") is not None


def test_experiments_and_debug_options_outrank_the_defaults():
    assert compose_config("debug=overfit", "name=x", "run_dir=x").test is False
    assert compose_config("experiment=europarl_seq2seq").trainer.max_epochs == 15


@pytest.mark.parametrize(
    ("old", "new", "told"), [(2, 4, "longer"), (4, 2, "shorter"), (4, -1, "longer"), (4, 4, None), ("x", None, None)]
)
def test_another_number_of_epochs_is_told_as_a_longer_or_shorter_curve(caplog, old, new, told):
    from hotloop.run import say_if_other_length

    content = {"hotloop": {"config": {"trainer": {"max_epochs": old}}}}
    with caplog.at_level("INFO"):
        say_if_other_length(content, {"trainer": {"max_epochs": new}, "scheduler": {"shape": "cosine"}})
    assert (f"on the {told} curve" in caplog.text) if told else not caplog.text
