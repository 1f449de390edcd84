"""Line charts as plain SVG: a frame, two axes, lines that differ in dash and marker as well as in colour.

Coordinates are rounded to a tenth of a pixel, so that a figure is the same file wherever it is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, isfinite, log10
from typing import Literal
from xml.sax.saxutils import escape

from quorate.report.notation import SUPERSCRIPT

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 34, 44, 62
INK, GRID, PAPER = "#1a1a1a", "#d9d9d9", "#ffffff"

# Colour, dash and marker together: any one of the three tells the lines apart.
STYLES = (
    ("#0b3d91", "", "circle"),
    ("#b3440e", "9 4", "square"),
    ("#2f6f3e", "2 4", "triangle"),
    ("#6b3fa0", "12 4 2 4", "diamond"),
    ("#444444", "5 2", "none"),
    ("#8a6d00", "1 3", "cross"),
    ("#00707a", "8 2 2 2", "plus"),
)


@dataclass(frozen=True)
class Axis:
    """One axis: its ends, what it measures and in which unit.

    Examples
    --------
    >>> Axis("rows", 1, 1000, log=True).marks()
    (1.0, 10.0, 100.0, 1000.0)
    """

    label: str
    low: float
    high: float
    log: bool = False
    ticks: tuple[float, ...] = ()

    def share(self, value: float) -> float:
        """How far along the axis a value is, from 0 to 1."""
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def marks(self) -> tuple[float, ...]:
        """Where the ticks are."""
        if self.ticks:
            return self.ticks
        if self.log:
            powers = range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1)
            return tuple(10.0**power for power in powers)
        rough = (self.high - self.low) / 6
        size = 10.0 ** floor(log10(rough))
        step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
        return tuple(step * k for k in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1))

    def written(self, value: float) -> str:
        """A tick's text."""
        wide = self.log and not self.ticks and (self.low < 1e-3 or self.high >= 1e6)
        if wide and value not in (1.0, 10.0):
            return "10" + str(round(log10(value))).translate(SUPERSCRIPT)
        return f"{value:,.10g}".replace("-", "−")


@dataclass
class Chart:
    """A chart that is filled with lines and words, and written out once.

    `title`: stands above the frame. `x`, `y`: what the axes measure. `told`: what the picture shows, for who cannot see
    it. `legend` ("top left", "top right", "bottom left", "bottom right"): the corner of the legend. `letter`: how wide
    a letter of the legend is, in units of the picture: wider where a page leaves the font to the reader. `prefix`: of
    the picture's ids, where a page holds several.

    Examples
    --------
    >>> chart = Chart("Squares", Axis("x", 0, 2), Axis("x squared", 0, 4), "A rising curve.")
    >>> chart.line([0, 1, 2], [0, 1, 4], "squares", 0)
    >>> chart.written()[:4], "squares" in chart.written()
    ('<svg', True)
    """

    title: str
    x: Axis
    y: Axis
    description: str  # what the picture shows, for who cannot see it
    legend: Literal["top left", "top right", "bottom left", "bottom right"] = "top right"
    letter: float = 7.0
    prefix: str = ""
    _shapes: list[str] = field(default_factory=list)
    _markers: list[str] = field(default_factory=list)  # over the frame, which would cut those on its edge
    _keys: list[tuple[int, str, bool]] = field(default_factory=list)

    def line(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        name: str,
        style: int,
        *,
        marks: int | None = 6,
        stairs: bool = False,
    ) -> None:
        """Draw a line, with `marks` markers on it (None: one at every point); as stairs between whole numbers."""
        colour, dash, marker = STYLES[style]
        points = [(x, y) for x, y in zip(map(float, xs), map(float, ys), strict=True) if isfinite(y)]
        path = "M" + " ".join(self._at(x, y) for x, y in points)
        if stairs:
            (x, y), path = points[0], "M" + self._at(*points[0])
            for x, y in points[1:]:
                path += f"H{_number(self._x(x))}V{_number(self._y(y))}"
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self._shapes.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.2"{dashed}/>')
        inside = [point for point in points if self._holds(*point)]
        places = (
            range(len(inside))
            if marks is None
            else (round((k + (0.3 + 0.2 * style)) * (len(inside) - 1) / marks) % len(inside) for k in range(marks))
        )
        for place in places:
            x, y = inside[place]
            self._markers.append(_marker(marker, self._x(x), self._y(y), colour))
        self._keys.append((style, name, marks != 0))

    def points(self, xs: Iterable[float], ys: Iterable[float], name: str, style: int) -> None:
        """Draw markers alone, of the points in the frame."""
        colour, _, marker = STYLES[style]
        for x, y in zip(xs, ys, strict=True):
            if self._holds(x, y):
                self._markers.append(_marker(marker, self._x(x), self._y(y), colour))
        self._keys.append((-1 - style, name, True))

    def bars(self, edges: Sequence[float], heights: Sequence[float], *, hatched: bool = False) -> None:
        """Draw columns from 0."""
        fill = f"url(#{self.prefix}hatch)" if hatched else "#c9d3e6"
        for left, right, height in zip(edges, edges[1:], heights, strict=False):
            x, y = self._x(left), self._y(height)
            size = f'width="{_number(self._x(right) - x)}" height="{_number(self._y(self.y.low) - y)}"'
            self._shapes.append(
                f'<rect x="{_number(x)}" y="{_number(y)}" {size} fill="{fill}" stroke="{INK}" stroke-width="0.8"/>'
            )

    def rule(self, *, x: float | None = None, y: float | None = None, dash: str = "3 3") -> None:
        """Draw a thin line across."""
        if x is not None:
            path = f"M{self._at(x, self.y.low)} {self._at(x, self.y.high)}"
        elif y is not None:
            path = f"M{self._at(self.x.low, y)} {self._at(self.x.high, y)}"
        self._shapes.append(f'<path d="{path}" stroke="{INK}" stroke-width="1" stroke-dasharray="{dash}"/>')

    def words(
        self, x: float, y: float, text: str, *, anchor: str = "start", move: tuple[float, float] = (0, 0)
    ) -> None:
        """Write at a point."""
        place = f'x="{_number(self._x(x) + move[0])}" y="{_number(self._y(y) + move[1])}"'
        halo = f'stroke="{PAPER}" stroke-width="4" paint-order="stroke"'
        self._shapes.append(f'<text {place} text-anchor="{anchor}" {halo}>{escape(text)}</text>')

    def written(self, *, inline: bool = False) -> str:
        """Return the SVG: a file of its own, or an element of a page."""
        named = (
            f'class="line-chart" aria-label="{escape(self.title)}"' if inline else 'xmlns="http://www.w3.org/2000/svg"'
        )
        head = (
            f'<svg {named} viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'font-family="Helvetica, Arial, sans-serif" font-size="14" fill="{INK}">'
            f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
            f'<defs><clipPath id="{self.prefix}inside"><rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
            f'height="{HEIGHT - TOP - BOTTOM}"/></clipPath><pattern id="{self.prefix}hatch" width="6" height="6" '
            f'patternUnits="userSpaceOnUse"><rect width="6" height="6" fill="#f3dccf"/>'
            f'<path d="M0 6L6 0" stroke="#b3440e"/></pattern></defs>'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>'
        )
        inside = f'<g clip-path="url(#{self.prefix}inside)">{"".join(self._shapes)}</g>'
        parts = (head, self._frame(), inside, "".join(self._markers), self._legend(), "</svg>")
        return "\n".join(part for part in parts if part) + "\n"

    def _frame(self) -> str:
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        middle_x, middle_y = (LEFT + right) / 2, (TOP + bottom) / 2
        shapes = [f'<text x="{LEFT}" y="26" font-size="16" font-weight="bold">{escape(self.title)}</text>']
        for value in self.x.marks():
            at = _number(self._x(value))
            shapes.append(f'<path d="M{at} {TOP}V{bottom}" stroke="{GRID}"/>')
            shapes.append(f'<text x="{at}" y="{bottom + 20}" text-anchor="middle">{self.x.written(value)}</text>')
        for value in self.y.marks():
            height = self._y(value)
            shapes.append(f'<path d="M{LEFT} {_number(height)}H{right}" stroke="{GRID}"/>')
            shapes.append(
                f'<text x="{LEFT - 8}" y="{_number(height + 5)}" text-anchor="end">{self.y.written(value)}</text>'
            )
        shapes.append(f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="{INK}" stroke-width="1.4"/>')
        shapes.append(
            f'<text x="{_number(middle_x)}" y="{HEIGHT - 16}" text-anchor="middle">{escape(self.x.label)}</text>'
        )
        turned = f'transform="rotate(-90 18 {_number(middle_y)})"'
        shapes.append(
            f'<text x="18" y="{_number(middle_y)}" text-anchor="middle" {turned}>{escape(self.y.label)}</text>'
        )
        return "".join(shapes)

    def _legend(self) -> str:
        if not self._keys:
            return ""
        wide = 62 + self.letter * max(len(name) for _, name, _ in self._keys)
        tall = 14 + 21 * len(self._keys)
        left = LEFT + 12 if "left" in self.legend else WIDTH - RIGHT - 10 - wide
        top = TOP + 10 if "top" in self.legend else HEIGHT - BOTTOM - 12 - tall
        box = f'x="{_number(left)}" y="{_number(top)}" width="{_number(wide)}" height="{tall}"'
        shapes = [f'<rect {box} fill="{PAPER}" stroke="{GRID}"/>']
        for row, (style, name, marked) in enumerate(self._keys):
            colour, dash, marker = STYLES[style if style >= 0 else -1 - style]
            y = top + 18.0 + 21 * row
            dashed = f' stroke-dasharray="{dash}"' if dash else ""
            if style >= 0:
                shapes.append(
                    f'<path d="M{_number(left + 8)} {_number(y)}h38" stroke="{colour}" stroke-width="2.2"{dashed}/>'
                )
            if marked:
                shapes.append(_marker(marker, left + 27, y, colour))
            shapes.append(f'<text x="{_number(left + 54)}" y="{_number(y + 5)}">{escape(name)}</text>')
        return "".join(shapes)

    def _holds(self, x: float, y: float) -> bool:
        """Whether a point is in the frame, its edge included."""
        return (not self.y.log or y > 0) and 0 <= self.x.share(x) <= 1 and 0 <= self.y.share(y) <= 1

    def _x(self, value: float) -> float:
        return LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)

    def _y(self, value: float) -> float:
        if self.y.log and value <= 0:
            return 10.0 * HEIGHT  # far below
        return HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - TOP - BOTTOM)

    def _at(self, x: float, y: float) -> str:
        return f"{_number(self._x(x))} {_number(self._y(y))}"


def _number(value: float) -> str:
    return (
        f"{value + 0.0:.1f}".removesuffix(".0").replace("-0", "0", 1)
        if abs(value) < 0.05
        else (f"{value:.1f}".removesuffix(".0"))
    )


def _marker(kind: str, x: float, y: float, colour: str) -> str:
    style = f'fill="{PAPER}" stroke="{colour}" stroke-width="1.8"'
    a, b = _number(x), _number(y)
    if kind == "circle":
        return f'<circle cx="{a}" cy="{b}" r="4.2" {style}/>'
    if kind == "square":
        return f'<rect x="{_number(x - 3.9)}" y="{_number(y - 3.9)}" width="7.8" height="7.8" {style}/>'
    if kind == "triangle":
        return f'<path d="M{a} {_number(y - 5)}l4.8 8.6h-9.6z" {style}/>'
    if kind == "diamond":
        return f'<path d="M{a} {_number(y - 5.6)}l4.6 5.6l-4.6 5.6l-4.6 -5.6z" {style}/>'
    if kind == "cross":
        return f'<path d="M{_number(x - 4)} {_number(y - 4)}l8 8m0 -8l-8 8" {style}/>'
    if kind == "plus":
        return f'<path d="M{_number(x - 5)} {b}h10m-5 -5v10" {style}/>'
    return ""
