# SPDX-License-Identifier: Apache-2.0
"""Small charts as inline SVG. Colours are the page's: every mark has a class, none a colour.

Everything a chart says stands in its title and description as well, for those who listen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import Markup, escape

WIDTH, HEIGHT = 440, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 46, 14, 44
BEYOND = 1.04
"""Where on an axis what has no end is drawn."""
Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """A range of values, its name, and where it is labelled."""

    name: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a value lies, 0 to 1 within its range."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(max(value, 1e-12))
        share = (at - low) / (high - low)
        return share if math.isfinite(share) else BEYOND

    @classmethod
    def upwards(cls, name: str, most: float, unit: float = 1.0, digits: int = 0) -> Axis:
        """From zero to a round number above `most`, labelled in multiples of `unit`."""
        most = most if math.isfinite(most) else unit
        step = _round_step(most / unit / 4)
        count = max(1, math.ceil(most / unit / step - 1e-9))
        places = max(digits, -math.floor(math.log10(step) + 1e-9))
        ticks = tuple((k * step * unit, f"{k * step:.{places}f}") for k in range(count + 1))
        return cls(name, 0.0, count * step * unit, ticks)


def _round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, at least `rough`."""
    power = 10.0 ** math.floor(math.log10(max(rough, 1e-9)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


@dataclass
class Chart:
    """A drawing area with two axes; marks are drawn in the order they are added."""

    x: Axis
    y: Axis
    right: Axis | None = None
    """A second name for the y axis, in another unit."""
    height: int = HEIGHT
    parts: list[Markup] = field(default_factory=list)

    def at(self, point: Point) -> Point:
        """Where values lie in the drawing."""
        across, down = self.x.share(point[0]), self.y.share(point[1])
        inner = WIDTH - LEFT - RIGHT, self.height - TOP - BOTTOM
        return LEFT + across * inner[0], TOP + (1 - down) * inner[1]

    def line(self, points: Sequence[Point], kind: str) -> None:
        """A line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self.at, points))
        self.parts.append(Markup('<polyline class="{}" points="{}"/>').format(kind, path))

    def steps(self, points: Sequence[Point], kind: str) -> None:
        """A line that goes across first, then up or down."""
        corners = [points[0]]
        for before, after in pairwise(points):
            corners += [(after[0], before[1]), after]
        self.line(corners, kind)

    def dots(self, points: Iterable[tuple[Point, str]], kind: str, radius: float = 3.5) -> None:
        """Dots that say what they are when pointed at."""
        for point, words in points:
            self.parts.append(circle(self.at(point), radius, kind, words))

    def crosses(self, points: Iterable[tuple[Point, str]], kind: str, size: float = 4) -> None:
        """Diagonal crosses, told from dots without colour."""
        for point, words in points:
            x, y = self.at(point)
            s = size
            path = f"M{x - s:.1f} {y - s:.1f}l{2 * s} {2 * s}m0 {-2 * s}l{-2 * s} {2 * s}"
            self.parts.append(
                Markup('<path class="{}" d="{}"><title>{}</title></path>').format(kind, path, words)
            )

    def note(self, point: Point, words: str, anchor: str = "start", shift: Point = (6, -6)) -> None:
        """Words beside a point."""
        x, y = self.at(point)
        self.parts.append(text((x + shift[0], y + shift[1]), words, anchor, "note"))

    def svg(self, title: str, description: str) -> Markup:
        """The finished drawing."""
        return drawing([*self._frame(), *self.parts], title, description, (WIDTH, self.height))

    def _frame(self) -> list[Markup]:
        left, bottom, right, top = LEFT, self.height - BOTTOM, WIDTH - RIGHT, TOP
        parts = []
        for value, label in self.x.ticks:
            x = self.at((value, self.y.low))[0]
            parts.append(_rule((x, top), (x, bottom)))
            parts.append(text((x, bottom + 16), label, "middle", "tick"))
        for value, label in self.y.ticks:
            y = self.at((self.x.low, value))[1]
            parts.append(_rule((left, y), (right, y)))
            parts.append(text((left - 7, y + 4), label, "end", "tick"))
        for value, label in self.right.ticks if self.right else ():
            y = TOP + (1 - self.right.share(value)) * (bottom - top) if self.right else 0
            parts.append(text((right + 7, y + 4), label, "start", "tick"))
        middle = (left + right) / 2, (top + bottom) / 2
        parts.append(text((middle[0], self.height - 8), self.x.name, "middle", "name"))
        parts.append(_upright((13, middle[1]), self.y.name))
        if self.right:
            parts.append(_upright((WIDTH - 5, middle[1]), self.right.name))
        return parts


def drawing(
    parts: Iterable[Markup], title: str, description: str, size: tuple[float, float]
) -> Markup:
    """An SVG element that is read out as one picture."""
    mark = '<svg class="chart" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}. {}">'
    head = Markup(mark).format(*size, title, description)
    return Markup("").join([head, *parts, Markup("</svg>")])


def circle(
    place: Sequence[float], radius: float, kind: str, words: str = "", **more: str
) -> Markup:
    """A circle that says what it is when pointed at."""
    inside = Markup("<title>{}</title>").format(words) if words else ""
    further = Markup("").join(Markup(' {}="{}"').format(name, more[name]) for name in more)
    mark = '<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"{}>{}</circle>'
    return Markup(mark).format(kind, *place, radius, further, inside)


def _rule(start: Point, end: Point) -> Markup:
    mark = '<line class="grid" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'
    return Markup(mark).format(*start, *end)


def text(place: Point, words: str, anchor: str, kind: str) -> Markup:
    """Words at a place."""
    mark = '<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'
    return Markup(mark).format(kind, *place, anchor, words)


def _upright(place: Point, words: str) -> Markup:
    mark = '<text class="name" transform="translate({:.1f} {:.1f}) rotate(-90)" {}>{}</text>'
    return Markup(mark).format(*place, Markup('text-anchor="middle"'), escape(words))
