"""Which overrides apply, and what the times of two settings say of one."""

import pytest

from hotloop.diagnose.advice import advise, joined
from hotloop.diagnose.diagnosis import training_settings, without
from hotloop.diagnose.levers import SAME, Gain, Lever, gain_of, levers_for, sum_of
from hotloop.diagnose.trial import StepTime
from hotloop.errors import UserError
from tests.conftest import compose_config


def names(*overrides, device="cpu", kind="text", **more):
    settings = training_settings(compose_config(*overrides, "name=test", "run_dir=here", config_name="diagnose"))
    return [lever.name for lever in levers_for(settings, device=device, kind=kind, **more)]


@pytest.mark.parametrize(
    ("overrides", "lever"),
    [
        (("model.decoding=stepwise",), "model.decoding=parallel"),
        (("model.input_feeding=true",), "model.input_feeding=false"),
        (("data.bucketing=false",), "data.bucketing=true"),
        (("model.teacher_forcing=0.5", "task.scheduled_sampling=stepwise"), "task.scheduled_sampling=two_pass"),
        (("task.projection_chunk=0",), "task.projection_chunk=1024"),
        (("optimizer.fused=false",), "optimizer.fused=auto"),
        (("precision=bf16-mixed",), "precision=32-true"),
        (("precision=64-true",), "precision=32-true"),
        (("data.num_workers=2",), "data.num_workers=0"),
        (("data.batch_size=48",), "data.batch_size=96"),
        (("model=transformer", "model.activation_checkpointing=true"), "model.activation_checkpointing=false"),
        (("model=transformer", "model.attention_dropout=0.1"), "model.attention_dropout=0"),
    ],
)
def test_a_slow_setting_brings_its_lever_and_the_default_does_not(overrides, lever):
    assert lever in names(*overrides)
    assert lever not in names(*(o for o in overrides if o.startswith("model=")))


def test_the_published_inception_model_brings_cache_layout_head_stem_and_resolution():
    found = names("experiment=inception_published", kind="images")
    assert found[:6] == [
        "data.cache=auto", "precision=bf16-mixed", "model.stem=[16,32]", "data.size=112", "task.channels_last=true",
        "model.head=gap",
    ]  # fmt: skip


def test_compiling_is_tried_on_a_gpu_only_and_larger_batches_on_whole_ones_only():
    assert "compile=true" in names(device="cuda")
    assert "compile=true" not in names()
    assert "data.batch_size=64" in names()
    assert not [name for name in names(whole=False) if name.startswith("data.batch_size")]


def test_every_lever_goes_with_the_settings_it_is_for():
    for overrides, kind in (
        (("model=seq2seq_attn", "model.decoding=stepwise", "data.bucketing=false"), "text"),
        (("model=transformer",), "text"),
        (("experiment=inception_published",), "images"),
    ):
        for name in names(*overrides, kind=kind, device="cuda"):
            given = (*overrides, name, "name=test", "run_dir=here")
            training_settings(compose_config(*given, config_name="diagnose"))


def test_with_augmentation_a_cache_is_named_but_not_tried():
    given = ("experiment=inception_published", "data.augment={horizontal_flip: 0.5}", "name=test", "run_dir=here")
    settings = training_settings(compose_config(*given, config_name="diagnose"))
    assert "augmentation" in levers_for(settings, device="cpu", kind="images")[0].obstacle


def steps(*seconds, units=100, loss=2.0):
    return [StepTime(s, samples=10, units=units, loss=loss) for s in seconds]


def test_the_gain_is_the_median_of_the_pairs_with_its_quartiles():
    gain = gain_of(Lever(("a=1",)), steps(1.0, 1.0, 1.0, 1.0, 9.0), steps(0.5, 0.5, 0.4, 0.625, 0.5))
    assert gain.speed_up == pytest.approx(2.0)
    assert (gain.low, gain.high) == pytest.approx((2.0, 2.5))
    assert gain.verdict == "faster"
    assert gain.step_s == 0.5
    assert gain.units_per_s == pytest.approx(500 / 2.525)
    assert gain.samples_per_s == pytest.approx(50 / 2.525)
    assert gain.loss_difference == 0.0


def test_a_turn_of_several_steps_counts_as_one_round():
    turn = sum_of(steps(1.0, 3.0))
    assert (turn.seconds, turn.samples, turn.units, turn.loss, turn.steps) == (4.0, 20, 200, 2.0, 2)
    gain = gain_of(Lever(("a=1",)), [turn, turn], [sum_of(steps(0.5, 1.5))] * 2)
    assert (gain.speed_up, gain.step_s, gain.units_per_s) == (2.0, 1.0, 100.0)


def test_other_batches_are_compared_by_their_totals():
    lever = Lever(("data.batch_size=20",), same_batches=False)
    gain = gain_of(lever, steps(1.0, 1.0, 1.0), steps(1.0, 1.0, 1.0, units=150))
    assert gain.speed_up == pytest.approx(1.5)
    assert gain.loss_difference is None


@pytest.mark.parametrize(
    ("after", "verdict"),
    [((1.0, 0.9, 1.1), "noise"), ((0.98, 0.98, 0.98), "noise"), ((1.2, 1.2, 1.3), "slower"), ((0.9,) * 3, "faster")],
)
def test_small_or_uncertain_gains_are_noise(after, verdict):
    assert gain_of(Lever(("a=1",)), steps(1.0, 1.0, 1.0), steps(*after)).verdict == verdict


def test_the_losses_of_equal_steps_are_compared():
    before, after = steps(1.0, 1.0, 1.0), steps(1.0, 1.0, 1.0, loss=2.2)
    assert gain_of(Lever(("a=1",)), before, after).loss_difference == pytest.approx(0.1)


def gain(name, speed_up, *, same_model=True, changes=SAME, spread=0.01):
    lever = Lever((name,), changes, same_model)
    return Gain(lever, speed_up, speed_up - spread, speed_up + spread, 1.0, 100.0, 10.0, 5, None)


def product(gains):
    value = 1.0
    for each in gains:
        value *= each.speed_up
    return Gain(joined(gains), value, value, value, 1.0, 100.0, 10.0, 5, None)


def test_winners_are_joined_and_the_joint_gain_is_measured():
    gains = [gain("a=1", 1.5), gain("b=1", 2.0, changes="rounding"), gain("c=1", 1.01), gain("d=1", 0.5)]
    advice = advise(gains, product)
    assert advice.same_model.lever.overrides == ("a=1", "b=1")
    assert advice.same_model.lever.changes == "rounding"
    assert advice.same_model.speed_up == 3.0
    assert advice.any_model is None


def test_what_changes_the_model_is_told_apart():
    advice = advise([gain("a=1", 1.5), gain("head=gap", 4.0, same_model=False, changes="the model")], product)
    assert advice.same_model.lever.overrides == ("a=1",)
    assert advice.any_model.lever.overrides == ("a=1", "head=gap")
    assert advice.any_model.speed_up == 6.0


def test_levers_that_hinder_each_other_leave_the_best_one_measured_anew():
    def measure(gains):
        return gain("both", 1.1) if len(gains) == 2 else gain(gains[0].lever.name, 1.9)

    best = advise([gain("a=1", 1.5), gain("b=1", 2.0)], measure).same_model
    assert (best.lever.name, best.speed_up) == ("b=1", 1.9)

    def refuse(gains):
        if len(gains) > 1:
            raise UserError("they do not go together")
        return gains[0]

    assert advise([gain("a=1", 1.5), gain("b=1", 2.0)], refuse).same_model.lever.name == "b=1"


def test_what_is_not_faster_the_second_time_is_never_advised():
    second = {"a=1": 1.4, "b=1": 0.65}

    def measure(gains):
        return gain("both", 0.9) if len(gains) == 2 else gain(gains[0].lever.name, second[gains[0].lever.name])

    assert advise([gain("a=1", 1.5), gain("b=1", 2.0)], measure).same_model.lever.name == "a=1"
    assert advise([gain("b=1", 2.0)], measure).same_model is None


def test_nothing_faster_is_no_advice():
    advice = advise([gain("a=1", 1.0), gain("b=1", 0.5)], product)
    assert advice.same_model is advice.any_model is None


def test_an_override_replaces_what_was_typed_for_the_same_key():
    typed = ["model=seq2seq", "trainer.precision=32-true", "precision=32-true", "+data.size=224"]
    assert without(typed, ("precision=bf16-mixed", "data.size=112")) == ["model=seq2seq"]
