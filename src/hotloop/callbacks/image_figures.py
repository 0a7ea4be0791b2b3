"""Drawings of pictures and of the errors of a regression, as pixels for TensorBoard or a file."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL, LARGE = 128, 256  # pixels of a picture's longer side on a sheet: smaller ones are enlarged, larger reduced
CELL, WIDEST = 150, 260  # pixels of a cell: no narrower for any picture, no wider for any caption
LINE = 16  # pixels of a line of text
GAP = 8
TARGETS = 6  # panels a figure

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Fit:
    """True and predicted values of one target over a whole set, in the user's units."""

    name: str
    true: NDArray[np.float64]  # (N,)
    predicted: NDArray[np.float64]  # (N,)
    mean: float  # of the training set: what the mean predictor says

    @property
    def finite(self) -> NDArray[np.bool_]:
        """(N,): where there is something to draw."""
        return np.isfinite(self.true) & np.isfinite(self.predicted)


def as_bytes(pictures: Sequence[NDArray[Any]]) -> tuple[list[Pixels], float]:
    """Pictures (H, W, 3) for the screen, and by how much they were brightened, 1 = not at all.

    16-bit pictures are shown with their upper byte; where all stay below a quarter of the range (12-bit sensors,
    depth in millimetres) that would be near black, so the brightest value shown becomes white.

    Args:
        pictures: (H, W, C); uint8, or any other integer type for 16 bits; of 2 or more than 3 channels the first
            is shown.
    """
    factor, shown = 1.0, []
    if any(picture.dtype != np.uint8 for picture in pictures):
        brightest = max(int(picture.max(initial=0)) for picture in pictures)
        factor = 65535 / brightest if 0 < brightest < 65536 // 4 else 1.0
    for picture in pictures:
        if picture.dtype != np.uint8:
            picture = np.clip(np.rint(picture * (factor * 255 / 65535)), 0, 255).astype(np.uint8)
        shown.append(picture if picture.shape[2] == 3 else np.repeat(picture[..., :1], 3, axis=2))
    return shown, factor


def draw_sheet(pictures: Sequence[NDArray[Any]], captions: Sequence[Sequence[str]], *, title: str) -> Pixels:
    """Pictures in rows, each under its caption, as pixels (height, width, 3).

    Small pictures are enlarged by a whole factor without smoothing: their pixels stay visible.

    Args:
        pictures: at least one, (H, W, C); see `as_bytes`.
        captions: lines above each.
        title: above all; wraps.
    """
    from PIL import Image, ImageDraw

    shown, factor = as_bytes(pictures)
    tiles = [_resized(picture) for picture in shown]
    if factor != 1.0:
        title += f"; brightened × {factor:.3g}"
    font = _font()
    texts = [[one_line(line) for line in caption] for caption in captions]
    lines = max(map(len, texts))
    longest = max((math.ceil(font.getlength(line)) for text in texts for line in text), default=0)
    width = max(CELL, min(WIDEST, longest), *(tile.width for tile in tiles)) + GAP
    height = max(tile.height for tile in tiles) + lines * LINE + GAP
    columns = min(len(tiles), max(1, round(math.sqrt(len(tiles) * height / width))))
    rows = math.ceil(len(tiles) / columns)
    heading = _wrapped(one_line(title), columns * width - GAP, font)
    top = GAP + len(heading) * LINE
    sheet = Image.new("RGB", (GAP + columns * width, top + GAP + rows * height), "white")
    draw = ImageDraw.Draw(sheet)
    for number, line in enumerate(heading):
        draw.text((GAP, GAP // 2 + number * LINE), line, fill="black", font=font)
    for number, (tile, text) in enumerate(zip(tiles, texts, strict=True)):
        row, column = divmod(number, columns)
        left, above = GAP + column * width, top + GAP + row * height
        for place, line in enumerate(text):
            shown_line = _shortened(line, width - GAP, font)
            draw.text((left, above + place * LINE), shown_line, fill="black", font=font)
        sheet.paste(tile, (left, above + lines * LINE))
    return np.asarray(sheet)


def _resized(picture: Pixels) -> Any:
    """A picture as a Pillow image whose longer side is fit to be looked at."""
    from PIL import Image

    image, longer = Image.fromarray(np.ascontiguousarray(picture)), max(picture.shape[:2])
    if longer > LARGE:
        height, width = (max(1, round(side * LARGE / longer)) for side in picture.shape[:2])
        return image.resize((width, height), Image.Resampling.BOX)
    factor = max(1, math.ceil(SMALL / longer))
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)


def _font() -> Any:
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), 12)


def one_line(text: str) -> str:
    """`text` without line breaks, and with a mark for what no font can draw (undecodable file names)."""
    return " ".join(text.encode("utf-8", "replace").decode("utf-8").split())


def _shortened(text: str, width: int, font: Any) -> str:
    """`text` with its middle left out until it fits `width` pixels: the beginning and the end tell files apart."""
    kept = len(text)
    shown = text
    while font.getlength(shown) > width and kept > 1:
        kept -= 1
        head = kept // 3
        shown = f"{text[:head]}…{text[len(text) - (kept - head) :]}"
    return shown


def _wrapped(text: str, width: int, font: Any) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [_shortened(line, width, font) for line in lines]


def draw_scatter(fits: Sequence[Fit], *, title: str) -> Pixels:
    """Predicted against true values, a panel a target, as pixels (height, width, 3)."""
    return _draw_panels(fits, _scatter, title=title)


def draw_histogram(fits: Sequence[Fit], *, title: str) -> Pixels:
    """How the errors are distributed, a panel a target, as pixels (height, width, 3)."""
    return _draw_panels(fits, _histogram, title=title)


def _draw_panels(fits: Sequence[Fit], draw: Callable[[Any, Fit], None], *, title: str) -> Pixels:
    # The object interface: no figure is registered with pyplot, so none has to be closed.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if len(fits) > TARGETS:
        title += f" (first {TARGETS} of {len(fits)} targets)"
    fits = fits[:TARGETS]
    columns = 2 if len(fits) == 4 else min(3, len(fits))
    rows = math.ceil(len(fits) / columns)
    figure = Figure(figsize=(max(5.0, 4.2 * columns), 4.4 * rows + 0.3), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10, parse_math=False)
    for number, fit in enumerate(fits, 1):
        axes = figure.add_subplot(rows, columns, number)
        axes.tick_params(labelsize=8)
        axes.ticklabel_format(useOffset=False, scilimits=(-3, 4))
        axes.locator_params(nbins=6)
        draw(axes, fit)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box is drawn, which is enough
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _scatter(axes: Any, fit: Fit) -> None:
    true, predicted = fit.true[fit.finite], fit.predicted[fit.finite]
    error, baseline = np.abs(predicted - true), np.abs(fit.mean - true)
    figures = f"MAE {error.mean():.4g} · mean predictor {baseline.mean():.4g}" if len(true) else ""
    _label(axes, fit, figures, x=f"true {_brief(fit.name)}", y=f"predicted {_brief(fit.name)}")
    if not len(true):
        return
    low, high = min(true.min(), predicted.min()), max(true.max(), predicted.max())
    margin = 0.04 * (high - low) or 0.04 * abs(high) or 1.0
    limits = (low - margin, high + margin)
    axes.plot(limits, limits, color="0.6", linewidth=1, zorder=1)
    few = len(true) < 1000
    axes.plot(
        true,
        predicted,
        linestyle="none",
        marker="o" if few else ".",
        markersize=4 if few else 3,
        markeredgewidth=0,
        alpha=0.6 if few else 0.3,
        zorder=2,
    )
    axes.set(xlim=limits, ylim=limits, aspect="equal")


def _histogram(axes: Any, fit: Fit) -> None:
    errors = (fit.predicted - fit.true)[fit.finite]
    figures = f"MAE {np.abs(errors).mean():.4g} · mean error {errors.mean():+.3g}" if len(errors) else ""
    limit = float(np.abs(errors).max(initial=0.0)) or 1.0
    if len(errors):
        # One wild error would leave all others in a single bar.
        limit = min(limit, 1.5 * float(np.quantile(np.abs(errors), 0.99))) or limit
    beyond = int((np.abs(errors) > limit).sum())
    if beyond:
        figures += f"\n{beyond:,} beyond the axis, in the outermost bars"
    _label(axes, fit, figures, x=f"predicted − true {_brief(fit.name)}", y="pictures")
    if len(errors):
        counts, edges = np.histogram(np.clip(errors, -limit, limit), bins=40, range=(-limit, limit))
        axes.stairs(counts, edges, fill=True, color="tab:blue", alpha=0.7)
        axes.axvline(0.0, color="0.4", linewidth=1)
        axes.axvline(errors.mean(), color="tab:red", linewidth=1, linestyle="--")
    axes.set_xlim(-limit, limit)


def _label(axes: Any, fit: Fit, figures: str, *, x: str, y: str) -> None:
    lost = int((~fit.finite).sum())
    lines = [_brief(fit.name), figures, f"{lost:,} not finite, not shown" if lost else ""]
    axes.set_title("\n".join(filter(None, lines)), fontsize=10, parse_math=False)
    axes.set_xlabel(x, fontsize=9, parse_math=False)
    axes.set_ylabel(y, fontsize=9, parse_math=False)


def _brief(name: str) -> str:
    """A target's name short enough for an axis."""
    name = one_line(name)
    return name if len(name) <= 36 else f"{name[:20]}…{name[-15:]}"
