"""What a gauge looks like: scale, face, case and needle, chosen from one key.

Lengths are in radii of the dial, x to the right and y down from its centre. Angles are degrees clockwise from straight
up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hotloop.data.images.gauges.chance import Chance

Colour = tuple[int, int, int]
Point = tuple[float, float]

# Low end, high end, step between numerals, unit.
_SCALES = (
    *((0, high, step, "bar") for high, step in ((1, 0.2), (1.6, 0.4), (2.5, 0.5), (4, 1), (6, 1), (10, 2), (16, 4))),
    *((0, high, step, "bar") for high, step in ((25, 5), (40, 10), (60, 10), (100, 20), (160, 40), (250, 50))),
    *((0, high, step, "psi") for high, step in ((15, 3), (30, 5), (60, 10), (100, 20), (160, 20), (200, 40))),
    *((0, high, step, "kPa") for high, step in ((100, 20), (250, 50), (600, 100), (1000, 200))),
    *((0, high, step, "MPa") for high, step in ((1, 0.2), (2.5, 0.5), (10, 2), (25, 5))),
    *((-1, high, step, "bar") for high, step in ((0, 0.2), (3, 1), (5, 1), (9, 2))),
    *((low, high, step, "°C") for low, high, step in ((-20, 50, 10), (-30, 50, 10), (0, 60, 10), (0, 100, 20))),
    *((low, high, step, "°C") for low, high, step in ((0, 120, 20), (0, 160, 20), (0, 250, 50), (50, 300, 50))),
    *((low, high, step, "°F") for low, high, step in ((40, 240, 40), (0, 200, 40), (50, 550, 100))),
    *((0, high, step, "km/h") for high, step in ((120, 20), (160, 20), (180, 20), (220, 20), (240, 40))),
    *((0, high, step, "mph") for high, step in ((80, 10), (100, 20), (120, 20), (140, 20))),
    *((0, high, step, "rpm") for high, step in ((6, 1), (7, 1), (8, 1), (10, 2))),
    *((0, high, step, "V") for high, step in ((15, 3), (30, 5), (250, 50), (300, 50), (500, 100))),
    *((0, high, step, "A") for high, step in ((5, 1), (10, 2), (30, 5), (60, 10), (100, 20))),
    *((0, high, step, "%") for high, step in ((100, 10), (100, 20))),
    *((0, high, step, "l/min") for high, step in ((10, 2), (25, 5), (60, 10))),
)
_NAMES = ("ALPHA", "MANOTEX", "Weller", "NORDIK", "Precis", "TECHNO", "KELBRA", "Ostra", "DIN 16", "VULCAN", "Halden")
_SMALL = ("CL 1.6", "CL 2.5", "kl. 1.0", "EN 837-1", "SS 316", "No 4471", "MADE IN EU", "±1.5 %", "2019")
_LIGHT_FACES: tuple[Colour, ...] = (
    *((250, 250, 248),) * 4,
    (240, 240, 236),
    (246, 240, 218),
    (228, 230, 232),
    (238, 226, 190),
    (216, 230, 222),
)
_DARK_FACES: tuple[Colour, ...] = ((22, 22, 24), (30, 32, 36), (16, 24, 46), (44, 46, 50), (18, 40, 34), (60, 18, 20))
_DARK_INKS: tuple[Colour, ...] = (*((20, 20, 22),) * 3, (24, 32, 70), (60, 44, 30))
_LIGHT_INKS: tuple[Colour, ...] = (*((244, 244, 240),) * 3, (240, 222, 150), (190, 240, 210))
_NEEDLES_ON_LIGHT: tuple[Colour, ...] = (*((18, 18, 20),) * 4, (190, 24, 24), (206, 60, 16), (24, 40, 110))
_NEEDLES_ON_DARK: tuple[Colour, ...] = (*((246, 246, 244),) * 2, (230, 50, 34), (246, 130, 24), (246, 214, 60))
_CASES: tuple[Colour, ...] = (
    *((188, 190, 194),) * 2,
    (150, 152, 156),
    *((34, 34, 38),) * 2,
    (188, 152, 84),
    (120, 84, 52),
    (60, 78, 110),
    (150, 40, 34),
    (226, 226, 222),
)
_ZONES: tuple[Colour, ...] = ((46, 150, 70), (232, 190, 40), (206, 48, 40))
_FIGURE = 0.8  # width of a figure in its heights
_SHAPES = ("taper", "taper", "bar", "lance", "arrow", "pencil")


@dataclass(frozen=True)
class Scale:
    """What the dial is marked with."""

    low: float
    high: float
    step: float  # between numerals
    unit: str

    def numerals(self) -> list[tuple[float, str]]:
        """Share of full scale (0 to 1) and text of each numeral, from the low end to the high one."""
        count = round((self.high - self.low) / self.step)
        decimals = 0 if float(self.step).is_integer() else 1
        return [(place / count, f"{self.low + place * self.step:.{decimals}f}") for place in range(count + 1)]


@dataclass(frozen=True)
class Needle:
    shape: str  # taper | bar | lance | arrow | pencil
    length: float  # pivot to tip
    tail: float  # pivot to the other end
    width: float  # at its widest
    hub: float  # radius
    colour: Colour
    hub_colour: Colour


@dataclass(frozen=True)
class Gauge:
    """One gauge, all but its reading.

    `start` and `sweep` are the angle of the low end and the angle from there to the high end.
    """

    scale: Scale
    start: float
    sweep: float
    pivot: Point
    reach: float  # pivot to the outer end of the marks
    case: str  # round | square
    case_colour: Colour
    rim: float  # width of the case's ring
    light: float  # angle that the light on the case comes from
    face: Colour
    ink: Colour
    divisions: int  # marks from numeral to numeral
    mark: float  # length of a numeral's mark
    weight: float  # its width
    arc: bool  # a line along the marks
    zones: tuple[tuple[float, float, Colour], ...]  # from, to (shares of full scale), colour
    letters: float  # height of numerals
    every: int  # a numeral at every so manieth of the scale's steps
    texts: tuple[tuple[str, float, float], ...]  # text, height, y
    screw: bool  # in the hub
    limit: float | None  # share of full scale of the limit mark on the rim
    needle: Needle

    def angle(self, share: float) -> float:
        """Degrees clockwise from straight up of a reading of `share` (0 to 1) of full scale."""
        return self.start + self.sweep * share

    def place(self, share: float, radius: float) -> Point:
        """The point at `radius` from the pivot on the ray of a reading."""
        return polar(self.pivot, self.angle(share), radius)

    def needle_outline(self, share: float) -> list[Point]:
        """Corners of the needle at a reading; the first one is its tip."""
        turn = math.radians(self.angle(share))
        x, y = self.pivot
        return [
            (x + along * math.sin(turn) + across * math.cos(turn), y - along * math.cos(turn) + across * math.sin(turn))
            for along, across in _outline(self.needle)
        ]


def polar(centre: Point, angle: float, radius: float) -> Point:
    """The point at `radius` from `centre`, `angle` degrees clockwise from straight up."""
    turn = math.radians(angle)
    return centre[0] + radius * math.sin(turn), centre[1] - radius * math.cos(turn)


def _outline(needle: Needle) -> list[Point]:
    """(along, across) of the corners, tip first."""
    length, tail, half = needle.length, needle.tail, needle.width / 2
    shapes: dict[str, list[Point]] = {  # one side, from the tip to the tail
        "taper": [(length, 0.004), (0, half), (-tail, half * 0.7)],
        "bar": [(length, 0.006), (length * 0.9, half * 0.6), (-tail, half * 0.6)],
        "lance": [(length, 0.004), (length * 0.62, half), (length * 0.3, half * 0.35), (-tail, half * 0.8)],
        "arrow": [(length, 0.004), (length * 0.76, half), (length * 0.78, half * 0.3), (-tail, half * 0.5)],
        "pencil": [(length, 0.006), (length * 0.55, half * 0.3), (length * 0.5, half), (-tail, half)],
    }
    side = shapes[needle.shape]
    return [*side, *((along, -across) for along, across in reversed(side))]


def design(chance: Chance) -> Gauge:
    """A gauge by chance: six in seven with a scale most of the way round, the others with half a circle."""
    kind = chance.between(0, 1)
    scale = Scale(*chance.pick(_SCALES))
    pivot, reach = (0.0, 0.0), chance.between(0.8, 0.94)
    if kind < 0.86:
        sweep = chance.pick((270, 270, 270, 260, 250, 240, 280, 300)) + chance.about(4)
        start = -sweep / 2 + (chance.about(20) if chance.often(0.25) else 0)
    else:
        sweep = chance.pick((180, 180, 160, 200)) + chance.about(4)
        start, pivot = -sweep / 2, (0.0, chance.between(0.1, 0.3))
        reach = chance.between(0.82, 0.9)
    dark = chance.often(0.3)
    mark = chance.between(0.1, 0.18)
    letters, every, inner = _numerals(scale, sweep, reach - mark, chance.between(0.13, 0.2))
    return Gauge(
        scale=scale,
        start=start,
        sweep=sweep,
        pivot=pivot,
        reach=reach,
        case="square" if chance.often(0.15) else "round",
        case_colour=chance.pick(_CASES),
        rim=chance.between(0.05, 0.16),
        light=chance.between(-70, 70),
        face=chance.pick(_DARK_FACES if dark else _LIGHT_FACES),
        ink=chance.pick(_LIGHT_INKS if dark else _DARK_INKS),
        divisions=chance.pick((2, 4, 5, 5, 10) if len(scale.numerals()) <= 7 else (2, 2, 4, 5)),
        mark=mark,
        weight=chance.between(0.02, 0.045),
        arc=chance.often(0.35),
        zones=_zones(chance),
        letters=letters,
        every=every,
        texts=_texts(chance, scale.unit, inner, pivot[1]),
        screw=chance.often(0.25),
        limit=chance.between(0.3, 1.0) if chance.often(0.12) else None,
        needle=_needle(chance, reach, dark),
    )


def _numerals(scale: Scale, sweep: float, radius: float, letters: float) -> tuple[float, int, float]:
    """Height of the numerals, every how many marks one stands, and the radius inside them, so that none touch."""
    texts = [text for _, text in scale.numerals()]
    longest = max(len(text) for text in texts)
    steps = len(texts) - 1

    def room(every: int, height: float) -> float:
        """Share of the arc from numeral to numeral that the widest one fills."""
        return _FIGURE * height * longest * steps / (math.radians(sweep) * (radius - height) * every)

    every = 2 if steps % 2 == 0 and room(1, letters) > 0.8 else 1
    while room(every, letters) > 0.8:
        letters *= 0.9
    return letters, every, radius - letters * (1 + _FIGURE * (longest - 1))


def _zones(chance: Chance) -> tuple[tuple[float, float, Colour], ...]:
    """None, one at the high end, or three that cover the scale."""
    what = chance.between(0, 1)
    upper = chance.between(0.65, 0.9)
    if what < 0.6:
        return ()
    if what < 0.75:
        return ((upper, 1.0, _ZONES[2]),)
    lower = chance.between(0.25, 0.6)
    order = _ZONES if chance.often(0.7) else (_ZONES[1], _ZONES[0], _ZONES[2])
    return ((0.0, lower, order[0]), (lower, upper, order[1]), (upper, 1.0, order[2]))


def _texts(chance: Chance, unit: str, room: float, pivot: float) -> tuple[tuple[str, float, float], ...]:
    """Unit, maker's name and small print, within the numerals (`room` from the pivot) or below the pivot."""
    texts = [(unit, 0.3)]
    if chance.often(0.7):
        texts.append((chance.pick(_NAMES), 0.24))
    if chance.often(0.5):
        texts.reverse()
    if chance.often(0.6):
        texts.append((chance.pick(_SMALL), 0.16))
    if pivot:
        room = min(room, 0.5)  # there is no more below it
    places = (0.45, 0.83, 1.18) if pivot else (-0.5, 0.5, 0.85)
    scale = room * chance.between(0.85, 1.15)
    return tuple(
        (text, min(height * scale, 1.3 * room / (_FIGURE * len(text))), pivot + place * room)
        for (text, height), place in zip(texts, places, strict=False)
    )


def _needle(chance: Chance, reach: float, dark: bool) -> Needle:
    colour = chance.pick(_NEEDLES_ON_DARK if dark else _NEEDLES_ON_LIGHT)
    return Needle(
        shape=chance.pick(_SHAPES),
        length=reach * chance.between(0.74, 0.98),
        tail=chance.pick((0.0, 0.15, 0.2, 0.25, 0.3)),
        width=chance.between(0.06, 0.13),
        hub=chance.between(0.06, 0.14),
        colour=colour,
        hub_colour=colour if chance.often(0.5) else chance.pick(((30, 30, 32), (150, 150, 152), (196, 164, 96))),
    )
