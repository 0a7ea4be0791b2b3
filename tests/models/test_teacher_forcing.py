"""The schedules of Bengio et al. 2015, section 2.4, by their ends, their middle and their shape."""

import pytest

from hotloop.models.teacher_forcing import TeacherForcing

DOWN = {"start": 0.9, "end": 0.1, "steps": 100}


def test_one_number_holds_for_the_whole_run():
    constant = TeacherForcing.from_option(0.7)
    assert [constant.ratio(step) for step in (0, 1, 10**9)] == [0.7] * 3
    assert not constant.always
    assert TeacherForcing.from_option(1).always and TeacherForcing.from_option(1).ratio(5) == 1.0


def test_an_option_that_is_one_already_stays_as_it_is():
    made = TeacherForcing.from_option(0.5)
    assert TeacherForcing.from_option(made) is made


@pytest.mark.parametrize("shape", ["linear", "exponential", "inverse_sigmoid"])
@pytest.mark.parametrize("ends", [(0.9, 0.1), (0.2, 0.6)], ids=["down", "up"])
def test_each_shape_goes_from_start_to_end_and_stays_there(shape, ends):
    start, end = ends
    schedule = TeacherForcing.from_option({"start": start, "end": end, "steps": 100, "shape": shape})
    shares = [schedule.ratio(step) for step in range(150)]
    assert shares[0] == pytest.approx(start, abs=1e-12) and shares[100:] == [end] * 50
    assert shares[:101] == sorted(shares[:101], reverse=start > end)
    assert len(set(shares[:101])) == 101


def test_the_shapes_differ_as_their_formulas_do():
    shapes = ("linear", "exponential", "inverse_sigmoid")
    linear, exponential, sigmoid = (TeacherForcing.from_option({**DOWN, "shape": shape}).ratio for shape in shapes)
    assert linear(25) == pytest.approx(0.7)
    assert exponential(50) == pytest.approx(0.3)  # the geometric mean of the ends
    assert exponential(26) / exponential(25) == pytest.approx(exponential(76) / exponential(75))
    assert sigmoid(50) == pytest.approx(0.5)
    assert sigmoid(10) > linear(10) and sigmoid(90) < linear(90)


def test_a_schedule_that_ends_at_one_is_not_always_the_reference():
    assert not TeacherForcing.from_option({"start": 0.5, "end": 1.0, "steps": 10}).always
    assert TeacherForcing.from_option({"end": 1.0, "steps": 10}).always


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (1.2, "teacher_forcing = 1.2"),
        (-0.1, "teacher_forcing = -0.1"),
        (True, "teacher_forcing = True"),
        (None, "teacher_forcing = None"),
        ("0.5", "teacher_forcing = '0.5'"),
        (float("nan"), "teacher_forcing = nan"),
        ({}, "teacher_forcing.end is missing"),
        ({"end": 0.5}, "teacher_forcing.steps is missing"),
        ({"end": 0.5, "steps": 0}, "teacher_forcing.steps = 0"),
        ({"end": 0.5, "steps": 2.5}, r"teacher_forcing.steps = 2\.5"),
        ({"end": 2, "steps": 5}, "teacher_forcing.end = 2"),
        ({"start": -1, "end": 0.5, "steps": 5}, "teacher_forcing.start = -1"),
        ({"end": 0.5, "steps": 5, "shape": "cosine"}, "teacher_forcing.shape = 'cosine'.*linear, exponential"),
        ({"end": 0.5, "step": 5}, "'step'.*start, end, shape, steps"),
        ({"end": 0, "steps": 5, "shape": "exponential"}, "start = 1.0 and end = 0.0.*never reaches 0"),
    ],
    ids=str,
)
def test_what_makes_no_schedule_is_refused_with_key_and_value(option, message):
    with pytest.raises(ValueError, match=message):
        TeacherForcing.from_option(option)
