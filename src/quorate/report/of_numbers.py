"""How a run is told that predicts a number: its range, R², the mean absolute error and the residuals."""

from __future__ import annotations

from typing import Any

from quorate.accounting.figures import several
from quorate.report import html
from quorate.report.facts import Facts
from quorate.report.html import Markup, element, table
from quorate.report.notation import percent
from quorate.report.utility import NumberScore


def target(facts: Facts) -> str | None:
    """Return what is predicted, in words; None where that is a class.

    The ends of the range are public: its owner declared them.
    """
    ends = facts.setup.target_range
    return None if ends is None else f"a number from {ends[0]:.15g} to {ends[1]:.15g}"


def error(facts: Facts, score: NumberScore) -> str:
    """Return the mean absolute error, and its share of the range."""
    low, high = facts.setup.target_range or (0.0, 1.0)
    value = score.mean_absolute_error
    return f"{value:.4g}, {percent(value / (high - low))} of the range"


def r_squared(score: NumberScore) -> str:
    """Return R²; rows whose numbers are all equal have none."""
    return "—" if score.r_squared is None else f"{score.r_squared:.3f}".replace("-", "−")


def scored(facts: Facts) -> str | None:
    """Return how good the model is, in one line; None where it was not scored."""
    score = facts.utility.number
    if score is None:
        return None
    rows = several(score.n_rows, "public row")
    return f"R² {r_squared(score)}, mean absolute error {error(facts, score)}, on {rows}"


def metrics(score: NumberScore) -> list[dict[str, Any]]:
    """Return the figures in the words of model hubs."""
    errors = [{"type": "mae", "value": score.mean_absolute_error}]
    return errors if score.r_squared is None else [{"type": "r_squared", "value": score.r_squared}, *errors]


def section(facts: Facts, stated: str) -> Markup | None:
    """Return the table of figures and the residual plot; None where classes are predicted.

    `stated`: whose word it is that the rows are public.
    """
    score = facts.utility.number
    if facts.setup.target_range is None:
        return None
    if score is None:
        return element("p", "There are no public rows with numbers to measure against.")
    figures = table(
        f"Against public rows with numbers. R² is 0 for always predicting their mean, and 1 where every prediction is "
        f"right. {stated}",
        ("#R²", "#Mean absolute error", "#Rows"),
        ((r_squared(score), error(facts, score), f"{score.n_rows:,}"),),
    )
    if not score.residuals:
        return element("div", figures)
    words = (
        "Residuals: the number less the predicted one (upwards), by what is predicted (to the right). Each line is "
        "a part of the public rows, from the tenth to the ninetieth percentile; the dot is the median. Lines that all "
        "lie on one side of zero show where the model is off."
    )
    picture = html.residual_plot(words, [(b.predicted, b.low, b.median, b.high) for b in score.residuals])
    return element("div", figures, element("figure", picture, element("figcaption", words, class_="note")))
