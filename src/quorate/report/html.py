"""HTML and SVG built from elements: text is always escaped, and every tag is closed.

Elements make sections, tables, lists of terms and the pictures of a report: inline SVG that reads without colour, and
says in words what it shows. Colours are classes of the style sheet (they follow the light or dark scheme); what differs
differs in lightness or texture too. Widths are in units of a view box: a picture stretches to its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import cycle
from typing import TypeAlias

from quorate.report.chart import Chart
from quorate.report.findings import AttackCurve
from quorate.report.notation import visible


class Markup(str):
    """Text that is already HTML. Only this module, constants and charts, which escape their words, make it."""

    __slots__ = ()


Child: TypeAlias = str | int | None
"""What an element holds: Markup as it is, other text escaped, None left out."""

_VOID = frozenset({"meta", "br", "hr"})


def element(name: str, *children: Child, **attributes: str | float | None) -> Markup:
    """Return one element.

    `name`: tag name. `*children`: :class:`Markup` is taken as it is; any other text is escaped, with what is invisible
    written out. `**attributes`: ``class_`` is written ``class`` and ``stroke_width`` ``stroke-width``; None leaves an
    attribute out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(_number(value)), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Return children one after the other."""
    return Markup("".join(_text(child) for child in children if child is not None))


def _text(child: str | int) -> str:
    return child if isinstance(child, Markup) else escape(visible(str(child)), quote=True)


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def document(title: str, style: Markup, body: Markup, *, language: str = "en") -> str:
    """Return a whole HTML page: one file that loads nothing from elsewhere."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("meta", name_="referrer", content="no-referrer"),
        element("title", title),
        element("style", style),
    )
    return "<!doctype html>\n" + element("html", head, body, lang=language) + "\n"


def section(key: str, heading: str, *children: Child, stamp: str | None = None, language: str | None = None) -> Markup:
    """Return one section: its heading in the margin, its content beside it; `language`: of that, if it is another."""
    return element(
        "section",
        element("header", element("h2", heading, id=key), element("p", stamp, class_="stamp") if stamp else None),
        element("div", *children, lang=language),
        class_=key,
        aria_labelledby=key,
    )


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Child]], *, class_: str = "") -> Markup:
    """Return a table; the first cell of a row is its header, and columns whose head starts with '#' hold numbers."""
    numeric = [head.startswith("#") for head in heads]
    head = (
        element("th", text.lstrip("#"), scope="col", class_="n" if is_n else None)
        for text, is_n in zip(heads, numeric, strict=True)
    )
    body = (
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell, class_="n" if n else None) for cell, n in zip(row[1:], numeric[1:], strict=True)),
        )
        for row in rows
    )
    wide = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *body),
        class_=class_ or None,
    )
    # On a narrow screen it is moved to and fro, with the keyboard too.
    return element("div", wide, class_="scroll", tabindex="0", role="group", aria_label=caption)


def pairs(rows: Iterable[tuple[str, Child]], *, class_: str = "pairs") -> Markup:
    """Return terms and their values."""
    return element("dl", *(element("div", element("dt", k), element("dd", v)) for k, v in rows), class_=class_)


def big(name: str, figure: str, note: str) -> Markup:
    """Return a large figure between its name and a note."""
    parts = {"name": name, "figure": figure, "note": note}
    return element("div", *(element("p", text, class_=class_) for class_, text in parts.items()))


FILLS = ("ink-1", "ink-2", "ink-3", "ink-4", "ink-5", "ink-6")  #: in the order in which parts take them

_GRID, _CELL = 50, 10.0  # dots in a row; width of one dot's cell
_DOTS = {  # layers of a dot, and their diameters: the sizes differ, so that they are told apart without colour
    "chance": (("chance", 6.6),),
    "gain": (("gain", 8.0),),
    "rest": (("rest", 6.6), ("hollow", 4.4)),
}


def _picture(title: str, *shapes: Markup, width: float, height: float, class_: str, stretch: bool = False) -> Markup:
    return element(
        "svg",
        element("title", title),
        *shapes,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        class_=class_,
        aria_label=title,
        preserveAspectRatio="none" if stretch else None,
    )


def dots(title: str, *, chance: int, right: int, total: int) -> Markup:
    """Return `total` dots: those that a coin gets right, then up to `right`, and the rest."""
    ends = {"chance": chance, "gain": right, "rest": total}
    shapes = [
        shape
        for start, (kind, stop) in zip((0, *ends.values()), ends.items(), strict=False)
        for shape in _dots(start, stop, kind)
    ]
    return _picture(title, *shapes, width=_GRID * _CELL, height=-(-total // _GRID) * _CELL, class_="dots")


def dot(kind: str) -> Markup:
    """Return one dot, the key to :func:`dots`. Words stand beside it: screen readers skip it."""
    return element("svg", *_dots(0, 1, kind), viewBox=f"0 0 {_CELL:g} {_CELL:g}", class_="key", aria_hidden="true")


def _dots(start: int, stop: int, kind: str) -> tuple[Markup, ...]:
    """Draw the dots `start` to `stop` - 1 of a grid that is filled row by row.

    A row is one line of zero-length dashes with round ends: real circles on paper too, in a few bytes.
    """
    path, half = [], _CELL / 2
    while start < stop:
        row, column = divmod(start, _GRID)
        n = min(_GRID - column, stop - start)
        # half a dash beyond the last dot, so that rounding does not swallow it
        path.append(f"M{column * _CELL + half:g} {row * _CELL + half:g}h{(n - 1) * _CELL + 1:g}")
        start += n
    return tuple(
        element("path", d="".join(path), class_=f"row {layer}", stroke_width=width) for layer, width in _DOTS[kind]
    )


def textures() -> Markup:
    """Return the textures that the style sheet fills shapes with; once in a page, and invisible."""
    return element(
        "svg",
        element(
            "defs",
            _texture("hatch", element("path", d="M-2 2L2 -2M0 8L8 0M6 10L10 6", class_="thread")),
            _texture("grain", element("circle", cx=4, cy=4, r=1.7, class_="thread-dot")),
            _texture("weave", element("path", d="M0 4H8M4 0V8", class_="thread")),
        ),
        class_="textures",
        aria_hidden="true",
    )


def _texture(name: str, thread: Markup) -> Markup:
    ground = element("rect", x=0, y=0, width=8, height=8, class_="ground")
    return element("pattern", ground, thread, id=name, width=8, height=8, patternUnits="userSpaceOnUse")


def gauge(title: str, *, spent: float, budget: float) -> Markup:
    """Return a bar that is full up to `spent`, on a track as long as `budget`, with a tick at each quarter."""
    full = 100 * min(1.0, spent / budget) if budget > 0 else 100.0
    ticks = (element("rect", x=at - 0.1, y=13, width=0.2, height=3, class_="tick") for at in (0.1, 25, 50, 75, 99.9))
    return _picture(
        title,
        element("rect", x=0, y=0, width=100, height=11, class_="track"),
        element("rect", x=0, y=0, width=full, height=11, class_="ink-1"),
        *ticks,
        width=100,
        height=16,
        class_="gauge",
        stretch=True,
    )


def stacked(title: str, shares: Sequence[float]) -> Markup:
    """Return one bar cut into `shares` (they sum to at most 1), each with a texture of its own."""
    pieces, start = [], 0.0
    for share, fill in zip(shares, cycle(FILLS), strict=False):
        pieces.append(element("rect", x=start, y=0, width=max(0.0, 1000 * share - 1.5), height=26, class_=fill))
        start += 1000 * share
    track = element("rect", x=0, y=0, width=1000, height=26, class_="track")
    return _picture(title, track, *pieces, width=1000, height=26, class_="stacked")


def swatch(place: int) -> Markup:
    """Return the key to the part at `place` of a stacked bar. Words stand beside it: screen readers skip it."""
    rect = element("rect", x=0, y=0, width=12, height=12, class_=FILLS[place % len(FILLS)])
    return element("svg", rect, viewBox="0 0 12 12", class_="swatch", aria_hidden="true")


def bar(share: float, *, fill: str = "ink-1") -> Markup:
    """Return a small bar in a table, `share` of its track long. The figure stands beside it: screen readers skip it."""
    return element(
        "svg",
        element("rect", x=0, y=0, width=100, height=8, class_="track"),
        element("rect", x=0, y=0, width=100 * max(0.0, min(1.0, share)), height=8, class_=fill),
        viewBox="0 0 100 8",
        class_="bar",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def against(title: str, *, measured: float, claimed: float, longest: float) -> Markup:
    """Return a bar of `measured` with a mark at `claimed`, on a track of `longest`."""
    scale = 96 / longest if longest > 0 else 0.0
    return _picture(
        title,
        element("rect", x=0, y=4, width=100, height=8, class_="track"),
        element("rect", x=0, y=4, width=scale * measured, height=8, class_="ink-1"),
        element("rect", x=scale * claimed - 0.4, y=0, width=0.8, height=16, class_="mark"),
        width=100,
        height=16,
        class_="bar against",
        stretch=True,
    )


def columns(title: str, heights: Sequence[int]) -> Markup:
    """Return a histogram: one column per height."""
    tallest = max((*heights, 1))
    wide = 600 / max(1, len(heights))
    bars = (
        element(
            "rect", x=i * wide, y=100 - 100 * h / tallest, width=0.86 * wide, height=100 * h / tallest, class_="ink-1"
        )
        for i, h in enumerate(heights)
    )
    return _picture(title, join(*bars), width=600, height=101, class_="columns")


def trade_off(title: str, curve: AttackCurve) -> Markup:
    """Return the misses of the best attacker at each rate of false alarms, under the line of one who guesses."""
    points = list(zip(curve.false_alarms, curve.misses, strict=True))
    best = _on_square(points, digits=4)
    return _between_axes(
        title,
        element("path", d=_on_square([(0, 1), (1, 0), (0, 0)]) + "Z", class_="track"),
        element("path", d=best + _on_square([(1, 0), (0, 1)]).replace("M", "L") + "Z", class_="ink-3"),
        element("path", d=_on_square([(0, 1), (1, 0)]), class_="guess"),
        element("path", d=best, class_="best"),
    )


_SIDE, _LEFT, _TOP = 150.0, 24.0, 6.0  # of the square in which two shares are drawn


def _on_square(points: Sequence[tuple[float, float]], *, digits: int = 2) -> str:
    """Return the path through points of [0, 1]²."""
    places = (f"{_LEFT + _SIDE * x:.{digits}f} {_TOP + _SIDE * (1 - y):.{digits}f}" for x, y in points)
    return "M" + "L".join(places)


def _between_axes(title: str, *shapes: Markup) -> Markup:
    """Return shapes between two axes from 0 to 1."""
    ticks = (("0", 0.0), ("½", 0.5), ("1", 1.0))
    return _picture(
        title,
        *shapes,
        element("path", d=_on_square([(0, 1), (0, 0), (1, 0)]), class_="axis"),
        *(element("text", word, x=_LEFT - 5, y=_TOP + _SIDE * (1 - y) + 4, class_="end") for word, y in ticks),
        *(element("text", word, x=_LEFT + _SIDE * x, y=_TOP + _SIDE + 14, class_="middle") for word, x in ticks),
        width=_LEFT + _SIDE + 8,
        height=_TOP + _SIDE + 18,
        class_="trade-off",
    )


def unit_square(
    title: str,
    points: Sequence[tuple[float, float]],
    *,
    chance: tuple[tuple[float, float], tuple[float, float]],
    dots: bool = False,
) -> Markup:
    """Return a curve of two shares, in the frame of :func:`trade_off`, beside a dashed line; `dots`: at its points."""
    marks = ((_LEFT + _SIDE * x, _TOP + _SIDE * (1 - y)) for x, y in (points if dots else ()))
    return _between_axes(
        title,
        element("rect", x=_LEFT, y=_TOP, width=_SIDE, height=_SIDE, class_="track"),
        element("path", d=_on_square(chance), class_="guess"),
        element("path", d=_on_square(points), class_="best"),
        *(element("circle", cx=x, cy=y, r=2.5, class_="ink-1") for x, y in marks),
    )


def residual_plot(title: str, parts: Sequence[tuple[float, float, float, float]]) -> Markup:
    """Return lines from the low to the high residual of each part of the rows, with a dot at the median.

    `parts`: what is predicted, and three residuals, at least one.
    """
    left, top, width, height = 64.0, 8.0, 320.0, 150.0
    least, most = parts[0][0], parts[-1][0]
    reach = max(max(abs(low), abs(high)) for _, low, _, high in parts) or 1.0

    def across(predicted: float) -> float:
        return left + width * ((predicted - least) / (most - least) if most > least else 0.5)

    def up(residual: float) -> float:
        return top + height * (0.5 - residual / (2 * reach))

    return _picture(
        title,
        element("path", d=f"M{left:g} {up(0):g}H{left + width:g}", class_="guess"),
        *(
            element("path", d=f"M{across(predicted):.2f} {up(low):.2f}V{up(high):.2f}", class_="best")
            for predicted, low, _, high in parts
        ),
        *(element("circle", cx=f"{across(at):.2f}", cy=f"{up(median):.2f}", r=3) for at, _, median, _ in parts),
        *(
            element("text", f"{residual:.3g}".replace("-", "−"), x=left - 6, y=up(residual) + 4, class_="end")
            for residual in (-reach, 0.0, reach)
        ),
        *(
            element(
                "text", f"{predicted:.4g}".replace("-", "−"), x=across(predicted), y=top + height + 14, class_=where
            )
            for predicted, where in ((least, "start"), (most, "end"))
        ),
        width=left + width + 8,
        height=top + height + 18,
        class_="trade-off",
    )


def chart(drawn: Chart) -> Markup:
    """Return a line chart; its words were escaped where it was written."""
    return Markup(drawn.written(inline=True))
