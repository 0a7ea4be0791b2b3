"""A picture of a gauge on a wall: where the camera stands, the light, the glass and what the sensor adds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from hotloop.data.images.gauges.chance import Chance
from hotloop.data.images.gauges.design import Colour, Gauge, Point
from hotloop.data.images.gauges.face import HALF, case_outline, draw_face, shade

_GRIDS = ((2, 2), (2, 2), (3, 3), (5, 5), (9, 9), (1, 7), (7, 1), (1, 24), (24, 1))  # rows and columns of the wall


@dataclass(frozen=True)
class Shot:
    """One photograph. Lengths are shares of the picture's side, angles degrees; the neutral one changes nothing."""

    roll: float = 0.0  # the camera's turn about its axis, clockwise
    yaw: float = 0.0  # tilt of the dial to the side
    pitch: float = 0.0  # and backwards
    distance: float = 5.0  # camera to dial, in radii of the dial: how much nearer parts look larger
    radius: float = 0.38  # of the dial
    centre: Point = (0.5, 0.5)
    wall: tuple[int, int, tuple[Colour, ...]] = (1, 1, ((150, 150, 150),))  # rows, columns, colours row by row
    pipe: Colour | None = None  # a stem below the case
    drop: float = 0.0  # strength of the case's shadow on the wall, 0 to 1
    shadow: Point = (0.0, 0.0)  # the needle's on the dial, in radii of the dial
    glass: tuple[tuple[float, float, float], ...] = ()  # bright bands: across, width, strength 0 to 1
    glass_turn: float = 0.0
    brightness: float = 1.0
    slope: Point = (0.0, 0.0)  # change of brightness across the picture, to the right and down
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)
    haze: float = 0.0  # share of grey light
    blur: float = 0.0  # standard deviation
    noise: float = 0.0  # standard deviation at full brightness, 0 to 1
    noise_key: int = 0

    def plane(self) -> NDArray[np.float64]:
        """(3, 3) homography from the dial's plane to the picture: pinhole camera, dial turned about its centre."""
        roll, yaw, pitch = (math.radians(turn) for turn in (self.roll, self.yaw, self.pitch))
        about_y = np.array([[math.cos(yaw), 0, math.sin(yaw)], [0, 1, 0], [-math.sin(yaw), 0, math.cos(yaw)]])
        about_x = np.array([[1, 0, 0], [0, math.cos(pitch), -math.sin(pitch)], [0, math.sin(pitch), math.cos(pitch)]])
        about_z = np.array([[math.cos(roll), -math.sin(roll), 0], [math.sin(roll), math.cos(roll), 0], [0, 0, 1]])
        turned = about_z @ about_x @ about_y
        turned[:, 2] = (0, 0, self.distance)
        focal = self.radius * self.distance
        return np.array([[focal, 0, self.centre[0]], [0, focal, self.centre[1]], [0, 0, 1]]) @ turned


def shot(chance: Chance, *, strength: float = 1.0) -> Shot:
    """A photograph by chance; `strength` 0 = straight, sharp and evenly lit, 1 = as a telephone takes it."""
    rows, columns = chance.pick(_GRIDS)
    wall = tuple(_wall_colour(chance, strength, rows * columns)) if strength else ((150, 150, 150),) * (rows * columns)
    fall = chance.between(0, 2 * math.pi)
    length = chance.between(0.03, 0.09)
    warm = chance.about(0.12) * strength
    return Shot(
        roll=chance.about(10) * strength,
        yaw=chance.about(24) * strength,
        pitch=chance.about(24) * strength,
        distance=chance.between(3.5, 7),
        radius=chance.between(0.34, 0.4),
        centre=(0.5 + chance.about(0.05) * strength, 0.5 + chance.about(0.05) * strength),
        wall=(rows, columns, wall),
        pipe=shade((196, 160, 96), chance.between(0.5, 1.1)) if chance.often(0.4 * strength) else None,
        drop=min(1.0, chance.between(0.2, 0.7) * strength),
        shadow=(length * math.cos(fall), length * math.sin(fall)) if chance.often(0.7 * strength) else (0.0, 0.0),
        glass=_bands(chance, strength),
        glass_turn=chance.between(0, 180),
        brightness=1 + chance.about(0.35) * strength,
        slope=(chance.about(0.5) * strength, chance.about(0.5) * strength),
        tint=(1 + warm, 1.0, 1 - warm),
        haze=chance.between(0, 0.15) * strength,
        blur=chance.between(0, 0.009) * strength,
        noise=chance.between(0, 0.06) * strength,
        noise_key=chance.whole(2**32),
    )


def _wall_colour(chance: Chance, strength: float, count: int) -> list[Colour]:
    base = [chance.between(40, 220)] * 3
    base = [part + chance.about(60) for part in base]
    spread = chance.between(5, 50) * strength
    colours = []
    for _ in range(count):
        light = chance.about(spread)
        red, green, blue = (int(min(255, max(0, part + light + chance.about(spread / 3)))) for part in base)
        colours.append((red, green, blue))
    return colours


def _bands(chance: Chance, strength: float) -> tuple[tuple[float, float, float], ...]:
    """Windows and lamps that the glass mirrors, in two photographs of five."""
    if not chance.often(0.4 * strength):
        return ()
    across = chance.about(0.8)
    first = (across, chance.between(0.1, 0.5), chance.between(0.08, 0.35))
    if chance.often(0.5):
        return (first,)
    return (first, (across + first[1] + chance.between(0.05, 0.2), chance.between(0.04, 0.2), first[2]))


def photograph(gauge: Gauge, share: float, shot: Shot, size: int) -> NDArray[np.uint8]:
    """(size, size, 3) picture of the gauge at a reading of `share` (0 to 1) of full scale."""
    work = size * 2  # halved in the end, which smooths edges
    to_picture = np.diag([work, work, 1]) @ shot.plane()
    outline = _seen(to_picture, case_outline(gauge))
    picture = _wall(shot, work)
    _stand(picture, gauge, shot, to_picture, outline)
    _hang(picture, draw_face(gauge, share, work, shadow=shot.shadow), to_picture, outline)
    if shot.glass:
        _reflect(picture, shot, to_picture)
    picture = picture.reduce(2)
    if shot.blur * size > 0.2:  # pixels
        picture = picture.filter(ImageFilter.GaussianBlur(shot.blur * size))
    return _exposed(picture, shot)


def _seen(homography: NDArray[np.float64], points: list[Point]) -> list[Point]:
    """Where points of the dial's plane fall, in pixels."""
    x, y, z = homography @ np.array([(*point, 1.0) for point in points]).T
    return list(zip((x / z - 0.5).tolist(), (y / z - 0.5).tolist(), strict=True))


def _polygon(points: list[Point], side: int, value: int = 255) -> Image.Image:
    mask = Image.new("L", (side, side))
    ImageDraw.Draw(mask).polygon(points, fill=value)
    return mask


def _wall(shot: Shot, side: int) -> Image.Image:
    rows, columns, colours = shot.wall
    small = Image.fromarray(np.array(colours, dtype=np.uint8).reshape(rows, columns, 3))
    return small.resize((side, side), Image.Resampling.BICUBIC)


def _stand(
    picture: Image.Image, gauge: Gauge, shot: Shot, to_picture: NDArray[np.float64], outline: list[Point]
) -> None:
    """The pipe below the case and the case's shadow, on the wall behind it."""
    side = picture.width
    if shot.pipe is not None:
        draw = ImageDraw.Draw(picture)
        for left, right, light in ((-0.2, 0.2, 0.5), (-0.16, 0.1, 0.85), (-0.1, 0.0, 1.15)):
            corners: list[Point] = [(left, 0.9), (right, 0.9), (right, 2.2), (left, 2.2)]
            draw.polygon(_seen(to_picture, corners), fill=shade(shot.pipe, light))
    if shot.drop:
        fall = 0.05 * side
        small = _polygon([((x + 0.6 * fall) / 4, (y + fall) / 4) for x, y in outline], side // 4, int(255 * shot.drop))
        soft = small.filter(ImageFilter.BoxBlur(fall / 5)).resize((side, side), Image.Resampling.BILINEAR)
        picture.paste((0, 0, 0), (0, 0), soft)


def _hang(picture: Image.Image, flat: Image.Image, to_picture: NDArray[np.float64], outline: list[Point]) -> None:
    """Paste the flat drawing as the camera sees it, within the outline of the case."""
    left, top = (max(0, int(min(point[axis] for point in outline))) for axis in (0, 1))
    right, bottom = (min(picture.width, int(max(point[axis] for point in outline)) + 2) for axis in (0, 1))
    scale = flat.width / (2 * HALF)
    to_flat = np.array([[scale, 0, HALF * scale], [0, scale, HALF * scale], [0, 0, 1]])
    back = to_flat @ np.linalg.inv(to_picture) @ np.array([[1, 0, left], [0, 1, top], [0, 0, 1]])
    numbers = (back / back[2, 2]).ravel()[:8].tolist()
    box = (right - left, bottom - top)
    seen = flat.transform(box, Image.Transform.PERSPECTIVE, numbers, Image.Resampling.BILINEAR)
    mask = Image.new("L", box)
    ImageDraw.Draw(mask).polygon([(x - left, y - top) for x, y in outline], fill=255)
    picture.paste(seen, (left, top), mask)


def _reflect(picture: Image.Image, shot: Shot, to_picture: NDArray[np.float64]) -> None:
    """Soft bright bands over the glass."""
    side = picture.width
    turn = math.radians(shot.glass_turn)
    glow = Image.new("L", (side // 2, side // 2))
    draw = ImageDraw.Draw(glow)
    for across, width, strength in shot.glass:
        corners = [(across, -1.5), (across + width, -1.5), (across + width, 1.5), (across, 1.5)]
        turned = [
            (x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)) for x, y in corners
        ]
        draw.polygon([(x / 2, y / 2) for x, y in _seen(to_picture, turned)], fill=int(255 * strength))
    circle = [(math.cos(math.radians(angle)), math.sin(math.radians(angle))) for angle in range(0, 360, 10)]
    glass = _polygon([(x / 2, y / 2) for x, y in _seen(to_picture, circle)], side // 2)
    soft = ImageChops.multiply(glow.filter(ImageFilter.BoxBlur(side / 100)), glass)
    picture.paste((255, 255, 255), (0, 0), soft.resize((side, side), Image.Resampling.BILINEAR))


def _exposed(picture: Image.Image, shot: Shot) -> NDArray[np.uint8]:
    """Light, tint, haze and noise."""
    pixels = np.asarray(picture).astype(np.float32)
    along = np.linspace(-0.5, 0.5, len(pixels), dtype=np.float32)
    light = shot.brightness + shot.slope[0] * along[None, :, None] + shot.slope[1] * along[:, None, None]
    pixels *= light * (np.array(shot.tint, dtype=np.float32) * (1 - shot.haze))
    pixels += 170 * shot.haze
    if shot.noise:
        random = np.random.Generator(np.random.PCG64(shot.noise_key))
        noise = random.standard_normal(pixels.shape, dtype=np.float32)
        noise *= pixels * np.float32(0.7 * shot.noise) + np.float32(0.3 * 255 * shot.noise)  # bright parts have more
        pixels += noise
    return (np.clip(pixels, 0, 255, out=pixels) + 0.5).astype(np.uint8)
