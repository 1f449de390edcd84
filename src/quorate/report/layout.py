"""How a section, a table and a list of terms are laid out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorate.report.element import Child, Markup, element


def document(title: str, style: Markup, body: Markup) -> str:
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
    return "<!doctype html>\n" + element("html", head, body, lang="en") + "\n"


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
    return scrolling(
        caption,
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *head)),
            element("tbody", *body),
            class_=class_ or None,
        ),
    )


def scrolling(name: str, wide: Markup) -> Markup:
    """Let something wide be moved to and fro on a narrow screen, with the keyboard too."""
    return element("div", wide, class_="scroll", tabindex="0", role="group", aria_label=name)


def pairs(rows: Iterable[tuple[str, Child]], *, class_: str = "pairs") -> Markup:
    """Return terms and their values."""
    return element("dl", *(element("div", element("dt", k), element("dd", v)) for k, v in rows), class_=class_)
