"""Sheets of pictures, scatter plots and histograms."""

import sys
import warnings
from typing import Any

import numpy as np
import pytest

from hotloop.callbacks.image_figures import Fit, as_bytes, draw_histogram, draw_scatter, draw_sheet, one_line

RED = [255, 0, 0]


def flat(height: int, width: int, value: Any, dtype: Any = np.uint8) -> np.ndarray:
    return np.broadcast_to(np.array(value, dtype), (height, width, len(value))).copy()


def fit(error: Any = 0.0, *, name: str = "reading", count: int = 50) -> Fit:
    true = np.linspace(0.0, 100.0, count)
    return Fit(name, true, true + error, 50.0)


def test_8_bit_pictures_are_shown_as_they_are() -> None:
    picture = flat(2, 2, [0, 128, 255])
    shown, factor = as_bytes([picture])
    assert factor == 1.0
    assert np.array_equal(shown[0], picture)


def test_grey_becomes_three_equal_channels() -> None:
    (shown,), _ = as_bytes([flat(2, 3, [77])])
    assert np.array_equal(shown, flat(2, 3, [77, 77, 77]))


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_16_bit_pictures_show_the_upper_byte(dtype: Any) -> None:
    levels = np.arange(256)
    (shown,), factor = as_bytes([(levels * 257).astype(dtype).reshape(16, 16, 1)])
    assert factor == 1.0
    assert np.array_equal(shown[..., 0].ravel(), levels)


def test_16_bit_pictures_of_common_brightness_are_left_alone() -> None:
    (shown,), factor = as_bytes([flat(1, 1, [20000], np.uint16)])
    assert (shown[0, 0, 0], factor) == (78, 1.0)


def test_dark_16_bit_pictures_are_brightened_together() -> None:
    shown, factor = as_bytes([flat(1, 1, [4095], np.int32), flat(1, 1, [819], np.int32)])
    assert factor == pytest.approx(65535 / 4095)
    assert [picture[0, 0, 0] for picture in shown] == [255, 51]


def test_a_black_16_bit_picture_stays_black() -> None:
    (shown,), factor = as_bytes([flat(1, 1, [0], np.uint16)])
    assert (shown.max(), factor) == (0, 1.0)


def red(sheet: np.ndarray) -> int:
    return int((sheet == RED).all(-1).sum())


@pytest.mark.parametrize(("side", "shown"), [(8, 128), (96, 192), (128, 128), (200, 200), (512, 256)])
def test_small_pictures_are_enlarged_and_large_ones_reduced(side: int, shown: int) -> None:
    sheet = draw_sheet([flat(side, side, RED)], [["a"]], title="t")
    assert sheet.dtype == np.uint8
    assert red(sheet) == shown * shown


def test_enlarged_pixels_stay_what_they_are() -> None:
    picture = np.zeros((2, 2, 3), np.uint8)
    picture[0, 1] = RED
    assert red(draw_sheet([picture], [["a"]], title="t")) == 64 * 64


@pytest.mark.parametrize("count", [1, 2, 7, 16, 64])
@pytest.mark.parametrize(("height", "width"), [(40, 40), (20, 200), (200, 20), (1, 900)])
def test_every_picture_is_on_the_sheet_whole(count: int, height: int, width: int) -> None:
    one = red(draw_sheet([flat(height, width, RED)], [["a"]], title="t"))
    assert red(draw_sheet([flat(height, width, RED)] * count, [["a"]] * count, title="t")) == count * one


def test_many_pictures_make_a_sheet_of_a_screen_s_shape() -> None:
    height, width = draw_sheet([flat(66, 200, RED)] * 16, [["a"]] * 16, title="t").shape[:2]
    assert 0.5 < width / height < 2


def test_a_long_name_stays_in_its_cell() -> None:
    def inked(caption: str) -> int:
        sheet = draw_sheet([flat(8, 8, [255, 255, 255])] * 4, [[caption], [""], [""], [""]], title="t")
        assert sheet.shape[1] > 2 * 158, "two columns"
        return int(np.flatnonzero((sheet[24:] < 128).any((0, 2))).max())

    assert inked("folder/" * 50 + "name.png") < 8 + 268
    assert inked("n") < inked("name.png")


def test_a_long_title_wraps_and_is_not_cut() -> None:
    def height(title: str) -> int:
        return draw_sheet([flat(8, 8, RED)], [["a"]], title=title).shape[0]

    assert height("word " * 40) > height("word " * 10) > height("word")
    assert height("w" * 500) == height("w")


@pytest.mark.parametrize("name", ["$x_1$", "$\\frac{$", "déjà", "日本語", "a\nb", "\udcff.png", "", "🙂", "%s"])
def test_any_name_can_be_drawn(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for draw in (draw_scatter, draw_histogram):
            assert draw([fit(1.0, name=name)], title=one_line(name)).std() > 0
        assert draw_sheet([flat(8, 8, RED)], [[name]], title=name).std() > 0


def blue(picture: np.ndarray) -> np.ndarray:
    """Where the points or bars are."""
    values = picture.astype(int)
    return values[..., 2] - values[..., 0] > 40


def test_points_lie_on_the_line_of_equality_where_predictions_are_right() -> None:
    def spread(error: Any) -> float:
        rows, columns = np.nonzero(blue(draw_scatter([fit(error)], title="t")))
        return float(np.std(rows + columns))  # constant along the rising diagonal

    assert spread(0.0) < 6
    assert spread(np.random.default_rng(0).normal(0, 20, 50)) > 20


def test_bars_lie_where_the_errors_are() -> None:
    def centre(error: Any) -> float:
        return float(np.nonzero(blue(draw_histogram([fit(error)], title="t")))[1].mean())

    alternating = np.where(np.arange(50) % 2, 1.0, -1.0)
    assert centre(5.0 + alternating) - centre(-5.0 + alternating) > 100
    assert abs(centre(alternating) - centre(0.0)) < 12


def test_one_wild_error_does_not_squeeze_the_others() -> None:
    errors = np.random.default_rng(0).normal(0, 1, 1000)
    wild = errors.copy()
    wild[0] = 1e6

    def width(error: Any) -> int:
        return int(blue(draw_histogram([fit(error, count=1000)], title="t")).any(0).sum())

    assert width(wild) > 0.5 * width(errors)


@pytest.mark.parametrize("draw", [draw_scatter, draw_histogram])
@pytest.mark.parametrize(
    "values",
    [
        Fit("all nan", np.arange(3.0), np.full(3, np.nan), 1.0),
        Fit("one nan", np.arange(3.0), np.array([0.0, np.nan, np.inf]), 1.0),
        Fit("constant", np.full(3, 7.0), np.full(3, 7.0), 7.0),
        Fit("zero", np.zeros(3), np.zeros(3), 0.0),
        Fit("one", np.ones(1), np.full(1, 1e30), 0.0),
        Fit("tiny", np.arange(3) * 1e-30, np.arange(3) * 2e-30, 0.0),
    ],
    ids=lambda values: values.name if isinstance(values, Fit) else None,
)
def test_degenerate_values_are_drawn_without_a_warning(draw: Any, values: Fit) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw([values], title="t").std() > 0


def test_each_target_has_a_panel_up_to_six() -> None:
    shapes = {count: draw_scatter([fit()] * count, title="t").shape for count in (1, 3, 4, 6, 7)}
    assert shapes[1][1] < shapes[3][1]
    assert shapes[3][0] < shapes[4][0]
    assert shapes[6] == shapes[7]


def test_figures_do_not_pile_up() -> None:
    draw_scatter([fit()], title="t")
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()
