"""Draw the figures of rates.md: ``python docs/theory/rates.py`` writes them into ``figures/``.

Every line is a statement of :mod:`quorate.theory`. They are shapes: constants are 1 and logarithms are left out, so
that slopes and crossings tell something, and heights do not.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from pathlib import Path

import numpy as np

from quorate.report.chart import Axis, Chart
from quorate.theory import (
    btt18_advanced_composition_shape,
    btt18_theorem_3_4_shape,
    btt18_theorem_3_5_shape,
    lzcw21_table_1_shape,
)

FOLDER = Path(__file__).parent / "figures"
DIMENSION, PUBLIC, TAU, THETA = 10, 10**5, 0.8, 4.0
ROWS = [round(n) for n in np.geomspace(10**3, 10**9, 49)]

#: The columns of the table, each with the style of its line.
COLUMNS = (
    ("gaussian", "Gaussian mechanism", 0),
    ("svt-btt18", "sparse vector, BTT18", 1),
    ("svt-lzcw21", "sparse vector, LZCW21", 2),
    ("active", f"active queries, θ = {THETA:g}", 3),
)


def table_1(setting: str, title: str, told: str) -> Chart:
    """One row of the table, against the private rows."""
    chart = Chart(
        title,
        Axis("private rows n (log scale)", ROWS[0], ROWS[-1], log=True),
        Axis("excess error, constants 1 (log scale)", 1e-5, 1, log=True),
        told,
        "top right",
    )
    sizes = {"n_public": PUBLIC, "vc_dimension": DIMENSION, "epsilon": 1.0, "tau": TAU, "theta": THETA}
    for algorithm, name, style in COLUMNS:
        rates = [lzcw21_table_1_shape(algorithm, setting, n_rows=n, **sizes).excess for n in ROWS]
        chart.line(ROWS, np.minimum(rates, 1.0), name, style, marks=7)
    chart.rule(y=DIMENSION / PUBLIC)
    chart.words(ROWS[-1], DIMENSION / PUBLIC, "d/m", anchor="end", move=(-6, -6))
    chart.rule(y=sqrt(DIMENSION / PUBLIC))
    chart.words(ROWS[-1], sqrt(DIMENSION / PUBLIC), "√(d/m)", anchor="end", move=(-6, -6))
    return chart


def realizable() -> Chart:
    """First row of Table 1."""
    return table_1(
        "realizable",
        f"Table 1 of LZCW21, realizable: d = {DIMENSION}, m = 10⁵, ε = 1",
        "Four falling lines. The sparse vector as analysed by LZCW21 falls steepest, active queries run above it by a "
        "factor of two, the Gaussian mechanism less steeply; all three end level at d/m. The older analysis of the "
        "sparse vector ends level at the square root of d/m, far above.",
    )


def noise_condition() -> Chart:
    """Second row of Table 1."""
    return table_1(
        "tnc",
        f"Table 1 of LZCW21, Tsybakov noise, τ = {TAU:g}: d = {DIMENSION}, m = 10⁵, ε = 1",
        "Four falling lines, less steep than in the realizable case. The sparse vector of LZCW21 falls steepest, "
        "active queries run slightly above it, the Gaussian mechanism falls less; the older analysis falls least, as "
        "in the agnostic case, and ends level at the square root of d/m.",
    )


def agnostic() -> Chart:
    """Third row of Table 1: the only entry with a rate."""
    chart = Chart(
        f"Table 1 of LZCW21, agnostic: d = {DIMENSION}, m = 10⁵, ε = 1",
        Axis("private rows n (log scale)", ROWS[0], ROWS[-1], log=True),
        Axis("bound on the error, constants 1 (log scale)", 1e-3, 1, log=True),
        "Three falling lines, one for each error of the best hypothesis: 0, 0.005 and 0.02. Where it is not 0, the "
        "bound ends a little above 13 times that error.",
        "bottom left",
    )
    sizes = {"n_public": PUBLIC, "vc_dimension": DIMENSION, "epsilon": 1.0}
    for style, best in enumerate((0.0, 0.005, 0.02)):
        bounds = [lzcw21_table_1_shape("svt-btt18", "agnostic", n_rows=n, **sizes).error(best) for n in ROWS]
        chart.line(ROWS, np.minimum(bounds, 1.0), f"Err(h*) = {best:g}", style, marks=7)
    for best in (0.005, 0.02):
        chart.rule(y=13 * best)
        chart.words(ROWS[-1], 13 * best, f"13 · {best:g}", anchor="end", move=(-6, 14))
    return chart


def against_composition() -> Chart:
    """Misclassified queries: the theorem, what its cut-off gives, and advanced composition."""
    n, free = 10**6, 10**5  # M = εn/V
    asked = [round(m) for m in np.geomspace(10, 10**10, 61)]
    chart = Chart(
        f"Misclassified queries, realizable: n = 10⁶, V = {DIMENSION}, ε = 1",
        Axis("queries m (log scale)", 10, 10**10, log=True),
        Axis("share misclassified, constants 1 (log scale)", 1e-6, 1, log=True),
        "Advanced composition rises with the square root of m over the whole picture. Theorem 3.4 is level up to "
        "100,000 queries, then rises with m, and meets it where both are 1. Below 100,000 queries the rate by the "
        "cut-off falls as 1/m to the level of the theorem.",
        "bottom right",
    )
    sizes = {"n_rows": n, "vc_dimension": DIMENSION, "epsilon": 1.0}
    shapes = [btt18_theorem_3_4_shape(n_queries=m, **sizes) for m in asked]
    composed = [btt18_advanced_composition_shape(n_queries=m, **sizes) for m in asked]
    chart.line(asked, [min(1.0, each.rate) for each in shapes], "BTT18, Theorem 3.4", 0, marks=8)
    chart.line(asked, [each.rate_by_cutoff for each in shapes], "T/m of the same cut-off", 4)
    chart.line(asked, np.minimum(composed, 1.0), "advanced composition", 1, marks=8)
    chart.rule(x=free)
    chart.words(free, 2e-6, "M = εn/V", move=(6, 0))
    return chart


def against_composition_agnostic() -> Chart:
    """The same where some labels are noise."""
    n = 10**6
    asked = [round(m) for m in np.geomspace(10, 10**10, 61)]
    chart = Chart(
        f"Misclassified queries, not realizable: n = 10⁶, V = {DIMENSION}, ε = 1",
        Axis("queries m (log scale)", 10, 10**10, log=True),
        Axis("share misclassified, constants 1 (log scale)", 1e-4, 1, log=True),
        "Three lines, for a best hypothesis of error 0, 0.01 and 0.1: level at first, then rising with the cube root "
        "of m. The larger the error, the later the rise is seen.",
        "bottom right",
    )
    sizes = {"n_rows": n, "vc_dimension": DIMENSION, "epsilon": 1.0}
    for style, gamma in enumerate((0.0, 0.01, 0.1)):
        rates = [btt18_theorem_3_5_shape(n_queries=m, gamma=gamma, **sizes).rate for m in asked]
        chart.line(asked, np.minimum(rates, 1.0), f"BTT18, Theorem 3.5, γ = {gamma:g}", style, marks=8)
    return chart


RATES: dict[str, Callable[[], Chart]] = {
    "table-1-realizable": realizable,
    "table-1-noise-condition": noise_condition,
    "table-1-agnostic": agnostic,
    "advanced-composition": against_composition,
    "advanced-composition-agnostic": against_composition_agnostic,
}


def draw() -> None:
    """Write the figures."""
    FOLDER.mkdir(exist_ok=True)
    for name, chart in RATES.items():
        (FOLDER / f"{name}.svg").write_text(chart().written(), encoding="utf-8")


if __name__ == "__main__":
    draw()
