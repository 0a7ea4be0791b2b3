"""Drawn gauges: the same picture for the same number, the needle where the target says, any size."""

import dataclasses
import hashlib
import math
import os
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageFont

from hotloop.data.images.gauges import Gauges
from hotloop.data.images.gauges.chance import Chance, keys, uniform
from hotloop.data.images.gauges.design import Gauge, design
from hotloop.data.images.gauges.face import HALF, draw_face
from hotloop.data.images.gauges.photograph import Shot, photograph, shot
from hotloop.data.images.source import SPLITS
from hotloop.errors import UserError

MAGENTA = (255, 0, 255)  # on no gauge


def designs(count: int, seed: int = 7) -> list[Gauge]:
    return [design(Chance(int(key))) for key in keys(seed, 0, count)]


def digest(pictures: list[NDArray[np.uint8]]) -> str:
    return hashlib.sha256(b"".join(picture.tobytes() for picture in pictures)).hexdigest()


def with_magenta_needle(gauge: Gauge) -> Gauge:
    needle = dataclasses.replace(gauge.needle, colour=MAGENTA, hub_colour=MAGENTA)
    return dataclasses.replace(gauge, needle=needle)


def magenta(picture: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x and y of the needle's pixels."""
    red, green, blue = picture.astype(int).transpose(2, 0, 1)
    y, x = np.nonzero((red - green > 60) & (blue - green > 60) & (abs(red - blue) < 40))
    return x.astype(float), y.astype(float)


# -- the same for the same number -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_draws_the_same_pictures(hash_seed: str) -> None:
    script = (
        "import hashlib; from hotloop.data.images.gauges import Gauges\n"
        "table, reader = Gauges(count=6, valid=1, test=1, size=64).open()\n"
        "pictures = b''.join(reader.read(n).tobytes() for n in range(8)) + table.targets.tobytes()\n"
        "print(hashlib.sha256(pictures).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    there = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    table, reader = Gauges(count=6, valid=1, test=1, size=64).open()
    here = b"".join(reader.read(number).tobytes() for number in range(8)) + table.targets.tobytes()
    assert there.stdout.strip() == hashlib.sha256(here).hexdigest()


def test_order_of_reading_and_pickling_change_nothing() -> None:
    _, reader = Gauges(count=9, valid=0, test=0, size=48).open()
    forwards = [reader.read(number) for number in range(9)]
    copy = pickle.loads(pickle.dumps(reader))
    backwards = [copy.read(number) for number in reversed(range(9))][::-1]
    assert digest(forwards) == digest(backwards)


def test_more_training_pictures_leave_the_others_as_they_were() -> None:
    small, large = Gauges(count=5, valid=3, test=2, size=32), Gauges(count=50, valid=4, test=2, size=32)
    (small_table, small_reader), (large_table, large_reader) = small.open(), large.open()
    for here, there in ((0, 0), (4, 4), (5, 50), (7, 52), (8, 54), (9, 55)):
        assert np.array_equal(small_reader.read(here), large_reader.read(there))
        assert small_table.targets[here] == large_table.targets[there]
        assert small_reader.name(here) == large_reader.name(there)


def test_a_gauge_is_the_same_at_every_size() -> None:
    (table, small), (large_table, large) = (Gauges(count=6, size=size, difficulty="easy").open() for size in (64, 128))
    assert np.array_equal(table.targets, large_table.targets)
    reduced = [np.asarray(Image.fromarray(large.read(number)).reduce(2)).astype(float) for number in range(6)]
    for number in range(6):
        distances = [np.abs(small.read(number) - picture).mean() for picture in reduced]
        assert np.argmin(distances) == number
        assert distances[number] < 10 < sorted(distances)[1]


def test_splits_and_seeds_have_no_picture_in_common() -> None:
    seen = set()
    for seed in (1, 2):
        table, reader = Gauges(count=20, valid=20, test=20, size=16, seed=seed).open()
        assert np.bincount(table.split).tolist() == [20, 20, 20]
        seen |= {reader.read(number).tobytes() for number in range(60)}
    assert len(seen) == 120


def test_the_fingerprint_tells_every_option() -> None:
    options = [{}, {"count": 7}, {"valid": 7}, {"test": 7}, {"size": 97}, {"seed": 7}, {"difficulty": "hard"}]
    marks = {Gauges(**option).open()[1].fingerprint() for option in options}  # type: ignore[arg-type]
    assert len(marks) == len(options)
    assert Gauges().open()[1].fingerprint() in marks


# -- the target is what the needle shows ------------------------------------------------------------------------------


def test_readings_are_uniform_over_the_scale() -> None:
    table, _ = Gauges(count=20_000, valid=300, test=300).open()
    assert table.names == ("reading",) and table.targets.shape == (20_600, 1)
    for place in range(len(SPLITS)):
        readings = np.sort(table.targets[table.split == place, 0])
        assert readings[0] >= 0 and readings[-1] < 100
        expected = 100 * (np.arange(len(readings)) + 0.5) / len(readings)
        assert np.abs(readings - expected).max() < 100 * 1.63 / math.sqrt(len(readings))  # Kolmogorov–Smirnov, 1 %


def test_a_picture_shows_the_reading_of_its_row() -> None:
    table, reader = Gauges(count=3, valid=3, test=3, size=64).open()
    for number in (0, 4, 8):
        chance = Chance(int(reader.keys[number]))
        gauge = design(chance)
        drawn = photograph(gauge, table.targets[number, 0] / 100, shot(chance), 64)
        assert np.array_equal(reader.read(number), drawn)
        elsewhere = photograph(gauge, 1 - table.targets[number, 0] / 100, shot(Chance(1)), 64)
        assert not np.array_equal(reader.read(number), elsewhere)


@pytest.mark.parametrize("number", range(12))
def test_the_needle_points_at_the_reading(number: int) -> None:
    gauge, side = with_magenta_needle(designs(12)[number]), 512
    for share in (0.0, 0.21, 0.5, 0.83, 1.0):
        x, y = magenta(np.asarray(draw_face(gauge, share, side)))
        x, y = (
            (axis + 0.5) / side * 2 * HALF - HALF - origin for axis, origin in zip((x, y), gauge.pivot, strict=True)
        )
        radius = np.hypot(x, y)
        far = radius > radius.max() - 0.1
        pointed = math.degrees(math.atan2(x[far].mean(), -y[far].mean()))
        wrong = (pointed - (gauge.start + share * gauge.sweep) + 180) % 360 - 180
        assert abs(wrong) < 1
        assert radius.max() == pytest.approx(gauge.needle.length, abs=0.02)


@pytest.mark.parametrize("number", range(6))
def test_the_camera_moves_the_needle_as_it_moves_the_dial(number: int) -> None:
    gauge, size, share = with_magenta_needle(designs(6, seed=9)[number]), 256, 0.15 + 0.14 * number
    turned = Shot(roll=9, yaw=-22 + 9 * number, pitch=20 - 7 * number, distance=3.5, centre=(0.52, 0.47))
    x, y = magenta(photograph(gauge, share, turned, size))
    tip = turned.plane() @ (*gauge.needle_outline(share)[0], 1.0)
    assert np.hypot(x + 0.5 - size * tip[0] / tip[2], y + 0.5 - size * tip[1] / tip[2]).min() < 3  # it is thin there
    pivot = turned.plane() @ (*gauge.pivot, 1.0)
    away = np.array([x + 0.5 - size * pivot[0] / pivot[2], y + 0.5 - size * pivot[1] / pivot[2]])
    along = size * (tip[:2] / tip[2] - pivot[:2] / pivot[2])
    assert (along @ away / np.hypot(*along)).max() == pytest.approx(np.hypot(*along), abs=3)


def test_the_camera_turns_as_its_angles_say() -> None:
    def seen(camera: Shot, *point: float) -> tuple[float, float]:
        x, y, z = camera.plane() @ (*point, 1.0)
        return x / z - 0.5, y / z - 0.5

    far = 1e6  # no perspective
    assert seen(Shot(radius=0.4), 0, -1) == pytest.approx((0, -0.4))
    assert seen(Shot(radius=0.4, roll=90), 0, -1) == pytest.approx((0.4, 0))
    assert seen(Shot(radius=0.4, yaw=60, distance=far), 1, 1) == pytest.approx((0.2, 0.4), abs=1e-5)
    assert seen(Shot(radius=0.4, pitch=60, distance=far), 1, 1) == pytest.approx((0.4, 0.2), abs=1e-5)
    left, right = (seen(Shot(yaw=30, distance=4), x, 0)[0] for x in (-1, 1))
    assert abs(right) > abs(left) + 0.05  # the right side comes nearer
    assert seen(Shot(centre=(0.6, 0.3), yaw=20, pitch=9, roll=5), 0, 0) == pytest.approx((0.1, -0.2))


def test_both_ends_of_the_scale_are_marked() -> None:
    side = 400
    for gauge in designs(60):
        clean = dataclasses.replace(gauge, limit=None)
        picture = np.asarray(draw_face(clean, 0.5, side)).astype(int)
        for share in (0.0, 1.0):
            x, y = gauge.place(share, gauge.reach - gauge.mark / 2)
            assert math.hypot(*gauge.place(share, gauge.reach)) <= 1
            assert picture[int((y + HALF) / 2 / HALF * side), int((x + HALF) / 2 / HALF * side)].tolist() == [
                *gauge.ink
            ]


def test_numerals_run_from_end_to_end_and_stand_apart() -> None:
    for gauge in designs(400):
        numerals = gauge.scale.numerals()
        assert float(numerals[0][1]) == gauge.scale.low and float(numerals[-1][1]) == gauge.scale.high
        assert numerals[0][0] == 0 and numerals[-1][0] == 1
        assert gauge.letters > 0.07
        shown = numerals[:: gauge.every]
        assert shown[-1] == numerals[-1]
        font = ImageFont.load_default(round(gauge.letters * 125))  # hundredths of a radius
        boxes = []
        for share, text in shown:
            x, y = gauge.place(share, gauge.reach - gauge.mark - gauge.letters * (0.7 + 0.25 * len(text)))
            left, top, right, bottom = font.getbbox(text, anchor="mm")
            boxes.append((100 * x + left, 100 * y + top, 100 * x + right, 100 * y + bottom))
        for (left, top, right, bottom), (left_2, top_2, right_2, bottom_2) in pairwise(boxes):
            assert left_2 > right or right_2 < left or top_2 > bottom or bottom_2 < top, gauge.scale


def test_needles_stand_out_from_the_face() -> None:
    for gauge in designs(400):
        assert np.abs(np.subtract(gauge.needle.colour, gauge.face)).max() > 100
        assert np.abs(np.subtract(gauge.ink, gauge.face)).max() > 100


def test_gauges_differ() -> None:
    many = designs(300)
    assert {gauge.case for gauge in many} == {"round", "square"}
    assert len({gauge.needle.shape for gauge in many}) == 5
    assert len({gauge.scale for gauge in many}) > 40
    assert len({round(gauge.sweep, -1) for gauge in many}) > 8
    assert max(gauge.start for gauge in many) - min(gauge.start for gauge in many) > 60


def test_difficulty_is_what_the_camera_adds() -> None:
    chosen = [int(key) for key in keys(3, 0, 200)]
    tilt = {strength: max(abs(shot(Chance(k), strength=strength).yaw) for k in chosen) for strength in (0, 0.4, 1, 1.5)}
    assert tilt[0] == 0 and tilt[0.4] < 10 < tilt[1] < 24 < tilt[1.5] < 36
    straight = shot(Chance(chosen[0]), strength=0)
    assert straight.noise == straight.blur == straight.haze == 0 and not straight.glass


# -- any size, any number ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [16, 33, 96, 512])
@pytest.mark.parametrize("difficulty", ["easy", "normal", "hard"])
def test_any_size(size: int, difficulty: str) -> None:
    _, reader = Gauges(count=8, valid=0, test=0, size=size, difficulty=difficulty).open()
    for number in range(8 if size < 100 else 2):
        picture = reader.read(number, at_least=(8, 8))
        assert picture.shape == (size, size, 3) and picture.dtype == np.uint8 and picture.flags.c_contiguous
        assert picture.std() > 8


def test_a_split_may_be_empty() -> None:
    table, reader = Gauges(count=2, valid=0, test=1).open()
    assert len(table) == len(reader) == 3
    assert table.split is not None and table.split.tolist() == [0, 0, 2]
    assert [reader.name(number) for number in range(3)] == [
        "train gauge 0 (seed 1)",
        "train gauge 1 (seed 1)",
        "test gauge 0 (seed 1)",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "data.source.count=0: must be a whole number from 1 to 10,000,000"),
        ({"count": True}, "data.source.count=True"),
        ({"valid": -1}, "data.source.valid=-1"),
        ({"size": 15}, "data.source.size=15: must be a whole number from 16 to 2,048"),
        ({"size": [96, 96]}, r"data.source.size=\[96, 96\]"),
        ({"seed": 1.5}, "data.source.seed=1.5"),
        ({"difficulty": "nightmare"}, "data.source.difficulty='nightmare': must be one of easy, normal, hard"),
    ],
)
def test_options_out_of_range_are_told_in_one_line(options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        Gauges(**options)
    assert "\n" not in str(caught.value)


def test_keys_are_fixed_and_spread() -> None:
    made = keys(1, 0, 4)
    assert made.tolist() == keys(1, 0, 2).tolist() + keys(1, 0, 4)[2:].tolist()
    everything = np.concatenate([keys(seed, stream, 1000) for seed in range(20) for stream in range(3)])
    assert len(set(everything.tolist())) == 60_000
    assert uniform(everything).mean() == pytest.approx(0.5, abs=0.005)
