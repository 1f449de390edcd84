"""Figures per class, as small multiples: a table while it can be read, a grid of cells beyond that."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.report import drawing
from quorate.report.element import Child, Markup, element, join
from quorate.report.facts import Facts
from quorate.report.layout import scrolling
from quorate.report.method import words_of
from quorate.report.notation import percent, shortened
from quorate.report.utility import Utility

TABLE_CLASSES = 12  #: up to so many classes are shown as the rows of a table
GRID_CLASSES = 120  #: up to so many as cells of a grid; the rest are in the JSON
RELEASED = "Released answers, noise included: not prevalence"
NAME_COLUMNS = 80  #: what is shown of a class name


def per_class(facts: Facts) -> Iterable[Child]:
    """Return released answers and recalls for each class; nothing where there is neither."""
    n_classes = len(facts.setup.classes)
    if facts.utility == Utility() and not words_of(facts).COUNTS_ANSWERS:
        return ()
    if n_classes <= TABLE_CLASSES:
        return (_rows(facts),)
    more, counts = n_classes - GRID_CLASSES, words_of(facts).COUNTS_ANSWERS
    return (
        element("p", f"Per class: recall of the student.{f' {RELEASED}.' if counts else ''}", class_="note"),
        element("ul", *(_cell(facts, c) for c in range(min(n_classes, GRID_CLASSES))), class_="grid"),
        element("p", f"and {more:,} more classes, in the JSON edition.", class_="note") if more > 0 else None,
    )


def _rows(facts: Facts) -> Markup:
    columns = [
        (head, score.recall)
        for head, score in (
            ("Recall of the student", facts.utility.student),
            ("of released answers", facts.utility.ensemble),
            ("without privacy", facts.utility.non_private),
        )
        if score is not None and score.recall
    ]
    counts = facts.answers.per_class
    total = max(1, facts.answers.answered)
    shown = words_of(facts).COUNTS_ANSWERS
    heads = ("Class", *((RELEASED,) if shown else ()), *(head for head, _ in columns))
    body = (
        element(
            "tr",
            element("th", shortened(name, NAME_COLUMNS), scope="row"),
            _measured(counts[c] / total, f"{counts[c]:,}", "ink-3") if shown else None,
            *(_recall(recall[c]) for _, recall in columns),
        )
        for c, name in enumerate(facts.setup.classes)
    )
    caption = "Per class. A recall is the share of a class that is labelled right."
    return scrolling(
        caption,
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
            element("tbody", *body),
            class_="multiples",
        ),
    )


def _measured(share: float, figure: str, fill: str) -> Markup:
    return element("td", join(drawing.bar(share, fill=fill), element("span", figure, class_="at")))


def _recall(recall: float | None) -> Markup:
    return element("td", "no rows") if recall is None else _measured(recall, percent(recall), "ink-1")


def _cell(facts: Facts, c: int) -> Markup:
    student = facts.utility.student
    measured = student is not None and bool(student.recall)
    recall = student.recall[c] if student is not None and measured else None
    figures = (percent(recall) if recall is not None else "no rows",) if measured else ()
    released = (f"{facts.answers.per_class[c]:,}",) if words_of(facts).COUNTS_ANSWERS else ()
    return element(
        "li",
        element("span", shortened(facts.setup.classes[c], 24), class_="name"),
        drawing.bar(recall or 0.0) if measured else None,
        element("span", " · ".join((*figures, *released)), class_="at"),
    )
