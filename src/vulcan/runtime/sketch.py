"""Small plots as SVG, for the cells of notebooks: points, lines, steps and bars over two axes.

They need no library, and have the colour of the page around them; see `vulcan.runtime.markup`.
Figures for reports are in `vulcan.plotting`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from vulcan.runtime.markup import BLUE

__all__ = ["Sketch"]

WIDTH, HEIGHT = 330, 190
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 38

TICKS: Final = 4
"""About how many there are on an axis."""

Point = tuple[float, float]


@dataclass
class Sketch:
    """A plot that is drawn piece by piece, and scaled to what is in it in the end.

    Attributes
    ----------
    x, y
        What the axes are called.
    base
        A height that is always in the picture; None for none.
    """

    x: str
    y: str
    base: float | None = 0.0
    _points: list[Point] = field(default_factory=list)
    _pieces: list[tuple[str, Sequence[Point], str, str]] = field(default_factory=list)

    def add_line(
        self, points: Iterable[Point], colour: str = "currentColor", *, dashed: bool = False
    ) -> None:
        """Add straight lines between points; what is not finite leaves a gap at its side."""
        finite = [point for point in points if all(map(math.isfinite, point))]
        self._add("line", finite, colour, "4 3" if dashed else "")

    def add_point(self, x: float, y: float, colour: str = BLUE, title: str = "") -> None:
        """Add a point, with a text for whoever points at it."""
        if math.isfinite(x) and math.isfinite(y):
            self._add("point", [(x, y)], colour, title)

    def add_upright(self, x: float, title: str = "") -> None:
        """Add an upright dashed line over all of the height, if there is room for it."""
        if math.isfinite(x):
            self._pieces.append(("upright", [(x, 0.0)], "currentColor", title))
            self._points.append((x, math.nan))

    @property
    def uprights(self) -> int:
        """How many upright lines there are."""
        return sum(kind == "upright" for kind, *_ in self._pieces)

    def add_bars(self, heights: Sequence[float], colour: str = BLUE) -> None:
        """Add a bar for each of 1, 2, 3, ..."""
        bars = [(k + 1.0, height) for k, height in enumerate(heights)]
        self._add("bars", bars, colour, "")
        self._points += [(0.5, 0.0), (len(bars) + 0.5, 0.0)]

    def _add(self, kind: str, points: Sequence[Point], colour: str, text: str) -> None:
        self._pieces.append((kind, points, colour, text))
        self._points += points

    def build(self) -> str:
        """Return the plot as an SVG element; nothing if there is nothing in it."""
        if not self._points:
            return ""
        bars = any(kind == "bars" for kind, *_ in self._pieces)
        across = _Axis([x for x, _ in self._points], LEFT, WIDTH - RIGHT, room=0 if bars else 0.06)
        heights = [y for _, y in self._points if math.isfinite(y)]
        heights += [] if self.base is None else [self.base]
        up = _Axis(heights or [0.0], HEIGHT - BOTTOM, TOP, room=0.08, floor=self.base)
        drawn = [self._write_frame(across, up, whole=bars)]
        drawn += [_write(*piece, across, up) for piece in self._pieces]
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
            f'aria-label="{escape(self.y)} over {escape(self.x)}" fill="none" '
            f'stroke="currentColor">{"".join(drawn)}</svg>'
        )

    def _write_frame(self, across: _Axis, up: _Axis, whole: bool) -> str:
        low, high = HEIGHT - BOTTOM, TOP
        parts = [f'<path d="M{LEFT} {high}V{low}H{WIDTH - RIGHT}" opacity=".55"/>']
        text = '<text stroke="none" fill="currentColor"'
        for tick in across.ticks():
            if whole and tick != round(tick):
                continue
            x = across(tick)
            parts.append(f'<path d="M{x:.1f} {low}v4" opacity=".55"/>')
            parts.append(
                f'{text} opacity=".75" text-anchor="middle" x="{x:.1f}" y="{low + 15}">'
                f"{_show(tick)}</text>"
            )
        for tick in up.ticks():
            y = up(tick)
            parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" opacity=".13"/>')
            parts.append(
                f'{text} opacity=".75" text-anchor="end" x="{LEFT - 6}" y="{y + 3.5:.1f}">'
                f"{_show(tick)}</text>"
            )
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            f'{text} text-anchor="middle" x="{middle}" y="{HEIGHT - 6}">{escape(self.x)}</text>'
        )
        parts.append(
            f'{text} text-anchor="middle" transform="translate(11 {(low + high) / 2}) '
            f'rotate(-90)">{escape(self.y)}</text>'
        )
        return "".join(parts)


class _Axis:
    """Where numbers are, from one edge to another, with some room beyond them."""

    def __init__(
        self,
        values: Sequence[float],
        start: float,
        end: float,
        *,
        room: float,
        floor: float | None = None,
    ) -> None:
        low, high = min(values), max(values)
        wide = high - low or abs(high) or 1.0
        if high == low and floor is None:
            low -= wide / 2
        on_floor = floor is not None and low >= floor
        self.low = low if on_floor else low - room * wide
        self.high = max(high, low) + room * wide
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[float]:
        """Return round numbers on the axis."""
        raw = (self.high - self.low) / TICKS
        power = 10.0 ** math.floor(math.log10(raw))
        step = power * min((1, 2, 5, 10), key=lambda factor: abs(factor - raw / power))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def _write(
    kind: str, points: Sequence[Point], colour: str, text: str, across: _Axis, up: _Axis
) -> str:
    """Return one piece of a plot."""
    places = [(across(x), up(y)) for x, y in points]
    title = f"<title>{escape(text)}</title>" if text and kind != "line" else ""
    if kind == "bars":
        half = 0.38 * (across(1.0) - across(0.0))
        zero = up(0.0)
        return "".join(
            f'<rect x="{x - half:.1f}" y="{min(y, zero):.1f}" width="{2 * half:.1f}" '
            f'height="{abs(zero - y):.1f}" stroke="none" fill="{colour}">'
            f"<title>{k + 1}: {_show(points[k][1])}</title></rect>"
            for k, (x, y) in enumerate(places)
        )
    if kind == "line":
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        dashes = f' stroke-dasharray="{text}"' if text else ""
        return f'<path d="M{path}" stroke="{colour}" stroke-width="1.6"{dashes}/>' if path else ""
    x, y = places[0]
    if kind == "point":
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" stroke="none" fill="{colour}">'
        return f"{circle}{title}</circle>"
    return (
        f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke-dasharray="2 3" opacity=".8">'
        f"{title}</path>"
    )


def _show(number: float) -> str:
    """Return a number of an axis in a few characters."""
    return f"{number:.4g}".replace("e-0", "e-").replace("-", "−") if number else "0"
