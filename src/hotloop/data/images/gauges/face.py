"""A gauge drawn flat, as seen from straight before it."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from hotloop.data.images.gauges.design import Colour, Gauge, Point, polar

HALF = 1.24  # half the side of the drawing, in radii of the dial: the widest case and a little more


@lru_cache(maxsize=128)
def _font(height: int) -> Any:
    """Pillow's own scalable font: the same on every machine."""
    return ImageFont.load_default(height)


def case_outline(gauge: Gauge) -> list[Point]:
    """Corners of the case, in radii of the dial."""
    outer = 1 + gauge.rim
    if gauge.case == "round":
        return [polar((0, 0), 5 * step, outer) for step in range(72)]
    corner = 0.16  # rounded
    inner = outer - corner
    return [
        (x * inner + corner * math.sin(math.radians(turn)), y * inner - corner * math.cos(math.radians(turn)))
        for x, y, first in ((1, -1, 0), (1, 1, 90), (-1, 1, 180), (-1, -1, 270))
        for turn in range(first, first + 91, 15)
    ]


@lru_cache(maxsize=4)
def _directions(side: int) -> Image.Image:
    """For each pixel the direction from the centre: 0 = up, 64 = right, 128 = down, 192 = left."""
    along = np.arange(side) - (side - 1) / 2
    turn = np.arctan2(along[None, :], -along[:, None]) * (128 / math.pi)
    return Image.fromarray((np.round(turn) % 256).astype(np.uint8), "L")


def shade(colour: Colour, factor: float) -> Colour:
    """The colour, darker (factor below 1) or lighter."""
    red, green, blue = (min(255, int(part * factor)) for part in colour)
    return red, green, blue


class _Pen:
    """Draws in radii of the dial."""

    def __init__(self, side: int) -> None:
        self.scale = side / (2 * HALF)
        self.image = Image.new("RGB", (side, side))
        self.draw = ImageDraw.Draw(self.image)

    def pixels(self, points: list[Point]) -> list[Point]:
        # Pillow's coordinates name the centres of pixels.
        return [((x + HALF) * self.scale - 0.5, (y + HALF) * self.scale - 0.5) for x, y in points]

    def shape(self, points: list[Point], colour: Colour) -> None:
        self.draw.polygon(self.pixels(points), fill=colour)

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        x, y = centre
        (left, top), (right, bottom) = self.pixels([(x - radius, y - radius), (x + radius, y + radius)])
        self.draw.ellipse((left, top, right, bottom), fill=colour)

    def ring(self, radius: float, colours: NDArray[np.uint8]) -> None:
        """A disc about the centre, of one colour a direction: (256, 3), see `_directions`."""
        turned = _directions(self.image.width).copy()
        turned.putpalette(colours.tobytes())
        mask = Image.new("L", self.image.size)
        (left, top), (right, bottom) = self.pixels([(-radius, -radius), (radius, radius)])
        ImageDraw.Draw(mask).ellipse((left, top, right, bottom), fill=255)
        self.image.paste(turned.convert("RGB"), (0, 0), mask)

    def text(self, centre: Point, text: str, height: float, colour: Colour) -> None:
        font = _font(max(4, round(height * self.scale * 1.25)))  # figures are 0.7 of a font's size
        self.draw.text(self.pixels([centre])[0], text, font=font, fill=colour, anchor="mm")

    def shadow(self, points: list[Point], radius: float, strength: float) -> None:
        """Darkens a soft copy of a shape."""
        pixels = self.pixels(points)
        margin = 3 * radius * self.scale + 2
        left, top = (int(max(0, min(p[axis] for p in pixels) - margin)) for axis in (0, 1))
        right, bottom = (int(min(self.image.width, max(p[axis] for p in pixels) + margin)) for axis in (0, 1))
        mask = Image.new("L", (max(1, right - left), max(1, bottom - top)))
        ImageDraw.Draw(mask).polygon([(x - left, y - top) for x, y in pixels], fill=int(255 * strength))
        mask = mask.filter(ImageFilter.BoxBlur(radius * self.scale))
        self.image.paste((0, 0, 0), (left, top), mask)


def draw_face(gauge: Gauge, share: float, side: int, *, shadow: Point = (0.0, 0.0)) -> Image.Image:
    """The gauge at a reading, `side` pixels square.

    Args:
        gauge: what to draw.
        share: reading as a share of full scale, 0 to 1.
        side: pixels; the dial's radius is side / (2 HALF).
        shadow: how far the needle's shadow falls from it, in radii; (0, 0) = none.
    """
    pen = _Pen(side)
    _case(pen, gauge)
    _marks(pen, gauge)
    for text, height, y in gauge.texts:
        pen.text((0, y), text, height, gauge.ink)
    if gauge.limit is not None:
        pen.shape(
            [
                gauge.place(gauge.limit + turn, gauge.reach + out)
                for turn, out in ((0, -0.1), (0.012, 0.07), (-0.012, 0.07))
            ],
            (214, 40, 32),
        )
    _needle(pen, gauge, share, shadow)
    return pen.image


def _case(pen: _Pen, gauge: Gauge) -> None:
    """Case and face; a ring that shines towards the light, and the edge of the hole that lies in shade there."""
    pen.shape(case_outline(gauge), shade(gauge.case_colour, 0.9))
    turn = np.arange(256) * (math.pi / 128) - math.radians(gauge.light)
    for radius, facing in ((1 + gauge.rim, 0.3), (1 + gauge.rim * 0.45, -0.3)):
        sheen = 0.86 + facing * np.cos(turn) + 0.12 * np.cos(3 * turn)  # turned metal has more than one highlight
        pen.ring(radius, np.clip(np.outer(sheen, gauge.case_colour), 0, 255).astype(np.uint8))
    pen.disc((0, 0), 1.0, shade(gauge.face, 0.8))
    pen.disc(polar((0, 0), gauge.light + 180, 0.02), 0.975, gauge.face)
    if gauge.case == "square":
        for x, y in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
            pen.disc((x * 0.88 * (1 + gauge.rim), y * 0.88 * (1 + gauge.rim)), 0.05, shade(gauge.case_colour, 0.5))


def _marks(pen: _Pen, gauge: Gauge) -> None:
    for low, high, colour in gauge.zones:
        steps = [low + (high - low) * step / 14 for step in range(15)]
        outer = [gauge.place(step, gauge.reach) for step in steps]
        inner = [gauge.place(step, gauge.reach - 0.45 * gauge.mark) for step in reversed(steps)]
        pen.shape(outer + inner, colour)
    if gauge.arc:
        steps = [step / 40 for step in range(41)]
        outer = [gauge.place(step, gauge.reach) for step in steps]
        pen.shape(outer + [gauge.place(step, gauge.reach - 0.022) for step in reversed(steps)], gauge.ink)
    numerals = gauge.scale.numerals()
    count = (len(numerals) - 1) * gauge.divisions
    for number in range(count + 1):
        major = number % gauge.divisions == 0
        middle = not major and gauge.divisions % 2 == 0 and number % (gauge.divisions // 2) == 0
        length = gauge.mark * (1 if major else 0.75 if middle else 0.55)
        _mark(pen, gauge, number / count, length, gauge.weight * (1 if major else 0.5))
    for share, text in numerals[:: gauge.every]:
        radius = gauge.reach - gauge.mark - gauge.letters * (0.7 + 0.25 * len(text))
        pen.text(gauge.place(share, radius), text, gauge.letters, gauge.ink)


def _mark(pen: _Pen, gauge: Gauge, share: float, length: float, width: float) -> None:
    turn = math.radians(gauge.angle(share))
    across = (math.cos(turn) * width / 2, math.sin(turn) * width / 2)
    ends = (gauge.place(share, gauge.reach), gauge.place(share, gauge.reach - length))
    (ax, ay), (bx, by), (dx, dy) = *ends, across
    pen.shape([(ax - dx, ay - dy), (ax + dx, ay + dy), (bx + dx, by + dy), (bx - dx, by - dy)], gauge.ink)


def _needle(pen: _Pen, gauge: Gauge, share: float, shadow: Point) -> None:
    outline = gauge.needle_outline(share)
    if shadow != (0.0, 0.0):
        pen.shadow([(x + shadow[0], y + shadow[1]) for x, y in outline], 0.02, 0.4)
    pen.shape(outline, gauge.needle.colour)
    hub = gauge.needle.hub
    pen.disc(gauge.pivot, hub, shade(gauge.needle.hub_colour, 0.75))
    pen.disc(polar(gauge.pivot, gauge.light, 0.1 * hub), 0.85 * hub, gauge.needle.hub_colour)
    if gauge.screw:
        pen.disc(gauge.pivot, 0.35 * hub, shade(gauge.needle.hub_colour, 0.6))
