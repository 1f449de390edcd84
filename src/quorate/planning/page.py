"""A plan as one self-contained page: its table and three pictures, without a script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from quorate.accounting import trade_off, trade_off_of
from quorate.planning.margins import MATTERS
from quorate.planning.plan import Plan
from quorate.planning.plan_row import PlanRow
from quorate.planning.text import (
    ROUGHLY,
    always,
    at_epsilon,
    epsilons_in_words,
    epsilons_of,
    method_of,
    name_of,
    odds,
    task,
)
from quorate.report import html
from quorate.report.chart import Axis, Chart
from quorate.report.html import Child, Markup, document, element, join, pairs, section, table
from quorate.report.notation import percent, visible
from quorate.report.stylesheet import STYLE
from quorate.run.expectation import Expected
from quorate.students.scores import SCORE_WORDS

SHOWN = (0.2, 0.6, 1.0)  # margins in the table
LINES = 5  # ways in a picture
ONE_LINE = 18  # letters of a noise that stand on one line of the table


def plan_page(plan: Plan, *, paid: str = "") -> str:
    """Return the plan as one HTML page; `paid`: what a private estimate that it rests on found, and cost."""
    parts: tuple[tuple[str, str, tuple[Child, ...]], ...] = (
        ("rows", "What the budget can buy", _rows(plan)),
        ("labels", "One released label", _labels(plan)),
        ("epsilon", "Choosing ε", _epsilon(plan)),
        ("best-attack", "What an attacker can tell", _attacker(plan)),
        ("limits", "What cannot answer, and what the figures rest on", _limits(plan)),
    )
    sources = "Made of declared facts and public rows. Nothing was spent."
    if paid:
        sources = f"Made of declared facts, public rows and a private estimate, which was charged. {paid}"
    body = element(
        "body",
        html.textures(),
        element(
            "header",
            element("p", "quorate · plan", class_="eyebrow"),
            element("h1", "What the budget would buy"),
            element("p", visible(task(plan))),
            class_="top",
        ),
        element("main", *(section(key, heading, *children) for key, heading, children in parts)),
        element("footer", element("p", sources)),
    )
    return document("quorate: what the budget would buy", STYLE, body)


# --- the table -------------------------------------------------------------------------------------------------------


def _rows(plan: Plan) -> tuple[Child, ...]:
    by_accuracy = plan.scoring == "accuracy"
    heads = (
        "Way",
        "#Expected" if by_accuracy else f"#Expected {SCORE_WORDS[plan.scoring]}",
        "#Teachers",
        "#Queries",
        "Noise",
        "#Answered",
        *(f"#Right at\N{NO-BREAK SPACE}{m:g}" for m in SHOWN),
    )
    rows = [_row(row, "~ " if plan.is_brief(row) else "") for row in plan.answering]
    roughly = f" ~: {ROUGHLY}." if any(plan.is_brief(row) for row in plan.answering) else ""
    beside = None if plan.commonest is None else always(plan)
    share = "unknown" if beside is None else percent(beside) if by_accuracy else f"{beside:.3f}"
    bar = None if beside is None else html.bar(beside, fill="ink-3")
    rows.append(("Always the commonest class", join(share, bar), "", "", "", "", *("" for _ in SHOWN)))
    first = f"{name_of(plan.first)}: {plan.first.why}."
    return (
        element("p", element("strong", "First: "), visible(first)),
        element(
            "p",
            "“Right at” is the probability that one released label is the truth, where teachers prefer the truth to "
            "any other class by this share; it is exact. A student averages over all labels." + roughly,
        ),
        table("Ways to spend the budget, best first.", heads, rows, class_="wide names ways"),
    )


def _row(row: PlanRow, mark: str) -> tuple[Child, ...]:
    chances, expected = row.probabilities, row.expected
    right = ["" if chances is None else f"{chances.truth[chances.margins.index(m)]:.2f}" for m in SHOWN]
    return (
        visible(method_of(row)),
        "—" if expected is None else _expected(expected, mark),
        "" if row.n_teachers is None else f"{row.n_teachers:,}",
        "" if row.n_queries is None or row.way != "votes" else f"{row.n_queries:,}",
        visible(row.noise if len(row.noise) > ONE_LINE else row.noise.replace(" ", "\N{NO-BREAK SPACE}")),
        "" if row.answered is None else percent(row.answered),
        *right,
    )


def _expected(expected: Expected, mark: str) -> Markup:
    if (scored := expected.scored) is not None:
        ends = f"{scored.low:.3f} to {scored.high:.3f}"
        return join(f"{mark}{scored.value:.3f}", element("small", ends), html.bar(scored.value))
    range_ = f"{100 * expected.low:.1f} to {100 * expected.high:.1f} %".replace(" ", "\N{NO-BREAK SPACE}")
    return join(f"{mark}{percent(expected.accuracy)}", element("small", range_), html.bar(expected.accuracy))


# --- the pictures ----------------------------------------------------------------------------------------------------


def _chart(
    title: str,
    x: Axis,
    y: Axis,
    description: str,
    *,
    prefix: str,
    legend: Literal["top right", "bottom right"] = "top right",
) -> Chart:
    """Return an empty chart of this page, whose letters are the reader's and may be wide."""
    return Chart(title, x, y, description, legend=legend, letter=8.0, prefix=prefix)


def _ways(plan: Plan) -> Iterator[PlanRow]:
    """The best row of each mechanism, for a picture."""
    names: set[str] = set()
    for row in plan.answering:
        if row.probabilities is not None and not row.model and row.name not in names and len(names) < LINES:
            names.add(row.name)
            yield row


def _labels(plan: Plan) -> tuple[Child, ...]:
    chart = _chart(
        "How often one label is the truth",
        Axis("margin: how far teachers prefer the truth to any other class", 0, 1),
        Axis("probability", 0, 1),
        "Rising curves, one for each mechanism.",
        legend="bottom right",
        prefix="labels-",
    )
    for style, row in enumerate(_ways(plan)):
        if row.probabilities is not None:
            name = method_of(row) if row.n_teachers is None else f"{row.name}, {row.n_teachers:,} teachers"
            chart.line(row.probabilities.margins, row.probabilities.truth, name, style, marks=None)
    return (html.chart(chart), element("p", "Exact, from the discrete noise that each mechanism draws."))


def _epsilon(plan: Plan) -> tuple[Child, ...]:
    known = plan.known
    voting = any(at.n_teachers is not None for at in plan.by_epsilon)
    rows = [
        (
            f"{at.epsilon:g}",
            *(("" if at.n_teachers is None else f"{at.n_teachers:,}",) if voting else ()),
            f"{at.worlds:,}",
            at_epsilon(at),
        )
        for at in plan.by_epsilon
    ]
    way = visible(epsilons_of(plan))
    rows_by_epsilon = table(
        f"{way[:1].upper()}{way[1:]}. Told apart: of 1,000 equally likely pairs of worlds that differ in one "
        f"{plan.facts.unit}, the number that the best observer names rightly, at most on average, by ε and δ alone; a "
        "coin names 500.",
        ("ε", *(("#Teachers",) if voting else ()), "#Told apart", f"#Expected {SCORE_WORDS[plan.scoring]}"),
        rows,
    )
    said = tuple(element("p", f"{words[:1].upper()}{words[1:]}.") for words in epsilons_in_words(plan))
    if len(known) < 2:
        return (*said, rows_by_epsilon)
    epsilons, ends = [epsilon for epsilon, _ in known], [expected.ends for _, expected in known]
    beside, word = None if plan.commonest is None else always(plan), SCORE_WORDS[plan.scoring]
    least = min((*(low for _, low, _ in ends), 1.0 if beside is None else beside))
    most = max((*(high for _, _, high in ends), 1.0, beside or 0.0))
    chart = _chart(
        f"Expected {word} by ε",
        Axis("ε", epsilons[0], epsilons[-1], log=True, ticks=tuple(epsilons)),
        Axis(word, max(0.0, least - 0.03), most),
        "A curve that rises with ε, with a range, and a line for the commonest class.",
        legend="bottom right",
        prefix="epsilon-",
    )
    chart.line(epsilons, [value for value, _, _ in ends], "expected", 0, marks=None)
    chart.line(epsilons, [high for _, _, high in ends], "range, above", 4, marks=0)
    chart.line(epsilons, [low for _, low, _ in ends], "range, below", 5, marks=0)
    if beside is not None:
        chart.rule(y=beside)
        chart.words(epsilons[0], beside, "the commonest class", move=(6, -6))
    return (html.chart(chart), *said, rows_by_epsilon)


def _attacker(plan: Plan) -> tuple[Child, ...]:
    chart = _chart(
        "The best attacker",
        Axis("false alarms: said to be in the data, and is not", 0, 1),
        Axis("misses: said not to be in the data, and is", 0, 1),
        "A curve below the diagonal of a coin; the closer to it, the less an attacker can tell.",
        prefix="attacker-",
    )
    chart.line([0, 1], [1, 0], "a coin", 4, marks=0)
    alone = trade_off_of([(plan.facts.epsilon, plan.facts.delta)])
    chart.line(alone.false_alarms, alone.misses, "what the guarantee alone leaves", 1, marks=0)
    if (event := plan.first.released(plan.facts.online_answers)) is not None:
        curve = trade_off(event)
        chart.line(curve.false_alarms, curve.misses, "what the first row's release leaves", 0, marks=0)
    words = f"{odds(plan)[:1].upper()}{odds(plan)[1:]}."
    return (html.chart(chart), element("p", visible(words)))


def _limits(plan: Plan) -> tuple[Child, ...]:
    unable = [(name_of(row), visible(row.cannot)) for row in plan.rows if row.cannot]
    crossings = []
    for crossing in plan.crossings:
        start = "no difference that matters" if crossing.difference == "does not matter" else "never"
        start = start if crossing.n_queries is None else f"{crossing.n_queries:,}"
        crossings.append((f"{crossing.n_teachers:,}", f"{crossing.margin:g}", start, percent(crossing.answered)))
    notes: tuple[Markup, ...] = tuple(element("li", visible(note)) for note in plan.notes)
    return (
        pairs(unable) if unable else element("p", "Every row of the plan can answer."),
        table(
            "From how many queries on a sparse vector answers a vote of this margin more often than Gaussian noise "
            f"gets it right, and Gaussian noise fails on at least one in {1 / MATTERS:,.0f}.",
            ("#Teachers", "#Margin", "#Queries", "#Answered"),
            crossings,
        ),
        element("ul", *notes) if notes else None,
    )
