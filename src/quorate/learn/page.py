"""The report of a learned rule: one page that needs nothing else, made from released and public values alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quorate.accounting import Guarantee
from quorate.findings import Finding
from quorate.report import sentences
from quorate.report.html import Markup, document, element, section
from quorate.report.stylesheet import STYLE


def render_learned(
    *,
    classes: Sequence[str],
    rule: str,
    cuts: Mapping[str, Any],
    guarantee: Guarantee,
    cautions: Sequence[Finding],
    seeded: bool,
) -> str:
    """Return the page.

    `classes`: two labels.
    `rule`: when a row is of the second one.
    `cuts`: of each column; public.
    `guarantee`: what was promised.
    `cautions`: what the owner should hear.
    `seeded`: whether the noise was.
    """
    stamp = sentences.SEEDED if seeded else None
    parts: list[Markup] = [
        section(
            "rule",
            "The rule",
            element("p", element("strong", f"{classes[1]} where {rule}"), f", otherwise {classes[0]}."),
            stamp=stamp,
        ),
        section(
            "guarantee",
            "Privacy guarantee",
            element("p", guarantee.for_reviewer()),
            element("ul", *(element("li", caveat) for caveat in guarantee.caveats)),
            stamp=stamp,
        ),
        section(
            "cuts",
            "Public cuts",
            element("ul", *(element("li", _cuts_line(name, values)) for name, values in cuts.items())),
            stamp=stamp,
        ),
    ]
    if cautions:
        lines = (element("li", f"{caution.words} ({caution.code})") for caution in cautions)
        parts.append(section("cautions", "Cautions", element("ul", *lines), stamp=stamp))
    body = element(
        "body",
        None if stamp is None else element("aside", stamp, class_="banner"),
        element("header", element("h1", "A rule learned from private rows"), class_="top"),
        element("main", *parts),
    )
    return document("A learned rule: privacy report", STYLE, body)


def _cuts_line(name: str, values: Sequence[Any]) -> str:
    return f"{name}: {', '.join(f'{value:g}' if isinstance(value, float) else str(value) for value in values)}"
