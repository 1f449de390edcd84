"""LZCW21 Appendix E: how far 250 logistic teachers agree on Adult, with each other and with one model of all rows.

The rows are public, so the votes may be looked at; on private rows every figure here is secret.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count
from quorate.data import load_adult
from quorate.ensemble import (
    Agreement,
    ClassifierTeacher,
    agreement,
    count_votes,
    expected_margins,
    hash_shards,
    high_margin_curve,
    train_teachers,
)
from quorate.experiments.measurement import Experiment, Measured, standard_error, watched
from quorate.report import Axis, Chart
from quorate.types import FloatArray, IntArray, Secret

N_PRIVATE, N_TEACHERS, N_QUERIES = 36_631, 250, 2_000  # LZCW21 Appendix E
SHOWN_SUMS = 200  # queries in the running sums of Figure 4
BINS = 20

#: What is told of the queries. The paper prints pictures alone, so there is no figure of its own to stand beside.
MEASURES = (
    "share of queries with a margin of .4 or more",
    "share of queries on which all teachers agree",
    "share of queries with the plurality of h*",
    "correlation of the margins for the plurality and for h*",
    "accuracy of the plurality",
    "accuracy of h*",
)


def reproduce_margins(
    *,
    repeats: int = 5,
    seed: int = 0,
    command: str = "quorate reproduce margins",
    watch: Callable[[str, int, int], None] | None = None,
) -> Experiment:
    """Measure margins and agreement.

    `repeats`: divisions of Adult into 36,631 rows that play the private ones, and the rest, 2,000 of which are asked.
    `seed`: of the divisions and shards. `command`: for the record. `watch`: ``watch(stage, done, total)``.
    """
    repeats, seed, begun = count("repeats", repeats, at_least=1), count("seed", seed), time.monotonic()
    adult = load_adult()
    X = adult.a9a()
    codes = (np.concatenate([adult.train_labels, adult.test_labels]) == ">50K").astype(np.int64)
    divisions = [_measure(X, codes, seed + repeat) for repeat in watched(watch, "margins", range(repeats))]
    curve = high_margin_curve(divisions[-1].counts, N_TEACHERS).reveal()
    ours, theirs = divisions[-1].agreement.cumulated
    return Experiment(
        name="margins",
        title="LZCW21 Appendix E: 250 logistic teachers on Adult, 2,000 queries",
        rows=tuple(_rows(np.array([division.measures for division in divisions]))),
        notes=(
            "the expected margin lies in [0, .5]: half the gap between the two counts, in shares of the teachers",
            "the paper prints pictures alone, so there is no figure of its own to compare with",
            "h* is one logistic regression of all private rows",
        ),
        command=command,
        seed=seed,
        seconds=time.monotonic() - begun,
        figures={
            "margins-histogram": _histogram(np.concatenate([division.margin for division in divisions])).written(),
            "margins-curve": _curve(curve.xi, curve.nu).written(),
            "margins-sums": _sums(ours[:SHOWN_SUMS], theirs[:SHOWN_SUMS]).written(),
        },
    )


@dataclass(frozen=True, slots=True)
class _Division:
    """One division of Adult: the votes, what they agree on, and the figures of MEASURES in their order."""

    counts: Secret[IntArray]
    agreement: Agreement
    margin: FloatArray
    measures: tuple[float, ...]


def _measure(X: Any, codes: IntArray, seed: int) -> _Division:
    """Divide the rows, train an ensemble and h* on the private part, and compare them on the rows asked."""
    from sklearn.linear_model import LogisticRegression

    order = np.random.default_rng(seed).permutation(len(codes))
    private, queries = order[:N_PRIVATE], order[N_PRIVATE : N_PRIVATE + N_QUERIES]
    key = Secret(seed.to_bytes(32, "big"))
    shards = hash_shards([row.to_bytes(8, "big") for row in range(N_PRIVATE)], N_TEACHERS, key)
    ensemble = train_teachers(
        ClassifierTeacher(LogisticRegression(max_iter=1_000)),
        X[private],
        codes[private],
        shards,
        n_teachers=N_TEACHERS,
        n_classes=2,
        key=key,
    )
    counts = count_votes(ensemble, X[queries])
    star = LogisticRegression(max_iter=1_000).fit(X[private], codes[private]).predict(X[queries])
    agreed = agreement(counts, star, N_TEACHERS).reveal()
    margin = expected_margins(counts, N_TEACHERS).reveal()
    plurality = counts.reveal().argmax(axis=1)
    measures = (
        float(np.mean(margin >= 0.4 - 1e-9)),
        float(np.mean(counts.reveal().max(axis=1) == N_TEACHERS)),
        agreed.plurality,
        agreed.correlation,
        float(np.mean(plurality == codes[queries])),
        float(np.mean(star == codes[queries])),
    )
    return _Division(counts, agreed, margin, measures)


def _rows(measures: NDArray[np.float64]) -> list[Measured]:
    return [
        Measured(
            data="Adult",
            method=name,
            epsilon=None,
            delta=None,
            n_queries=float(N_QUERIES),
            repeats=len(measures),
            accuracy_mean=float(values.mean()),
            accuracy_se=standard_error(values),
        )
        for name, values in zip(MEASURES, measures.T, strict=True)
    ]


def _histogram(margin: FloatArray) -> Chart:
    heights, edges = np.histogram(margin, bins=BINS, range=(0, 0.5))
    shares = heights / len(margin)
    chart = Chart(
        "Margins of 250 teachers on Adult",
        Axis("expected margin", 0, 0.5),
        Axis("share of the queries", 0, float(np.ceil(20 * shares.max()) / 20)),
        "Columns that grow to the right: on most queries nearly all teachers agree.",
    )
    chart.bars(edges.tolist(), shares.tolist())
    return chart


def _curve(xi: FloatArray, nu: FloatArray) -> Chart:
    chart = Chart(
        "The high-margin condition on Adult",
        Axis("expected margin ξ", 0, 0.5),
        Axis("share ν of queries with a margin of at most ξ", 0, 1),
        "A line that stays low up to a margin of 0.4 and then rises to 1.",
        "top left",
    )
    chart.line(xi, nu, "queries", 0)
    return chart


def _sums(ours: FloatArray, theirs: FloatArray) -> Chart:
    chart = Chart(
        "Running sums of two margins over 200 queries",
        Axis("of the expected margin", 0, float(ours[-1])),
        Axis("of the margin for h*", 0, float(max(theirs[-1], ours[-1]))),
        "A nearly straight line just under the diagonal: the plurality is h*'s class almost everywhere.",
        "top left",
    )
    chart.line(ours, theirs, "queries in their order", 1)
    chart.line([0, ours[-1]], [0, ours[-1]], "the same class everywhere", 4, marks=0)
    return chart
