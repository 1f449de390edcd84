"""How a section, a table and a list of terms are laid out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorate.report.element import Child, Markup, element


def section(key: str, heading: str, *children: Child, stamp: str | None = None) -> Markup:
    """Return one section: its heading in the margin, its content beside it."""
    return element(
        "section",
        element("header", element("h2", heading, id=key), element("p", stamp, class_="stamp") if stamp else None),
        element("div", *children),
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
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *head)),
            element("tbody", *body),
            class_=class_ or None,
        ),
        class_="scroll",
    )


def pairs(rows: Iterable[tuple[str, Child]], *, class_: str = "pairs") -> Markup:
    """Return terms and their values."""
    return element("dl", *(element("div", element("dt", k), element("dd", v)) for k, v in rows), class_=class_)
