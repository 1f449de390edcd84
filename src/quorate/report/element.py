"""HTML and SVG built from elements, so that text is always escaped and every tag is closed."""

from __future__ import annotations

from html import escape
from typing import TypeAlias

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

    Examples
    --------
    >>> element("td", "<script>", class_="name", title='say "no"')
    '<td class="name" title="say &quot;no&quot;">&lt;script&gt;</td>'
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
    """Return children one after the other.

    Examples
    --------
    >>> join("a < b", element("b", 1))
    'a &lt; b<b>1</b>'
    """
    return Markup("".join(_text(child) for child in children if child is not None))


def _text(child: str | int) -> str:
    return child if isinstance(child, Markup) else escape(visible(str(child)), quote=True)


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
