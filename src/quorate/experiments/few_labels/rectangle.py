"""Adult with few labels: a rectangle on two columns beside the direct method in public coordinates.

*The columns* are those that a rule finds in 1,000 unlabelled rows (:func:`~quorate.learners.telling_columns`): no label
is looked at. These rows count as public: ε does not cover what is read off them. Beside them stand two columns by which
statistics of income are generally broken down, years of schooling and whether the household is a married couple's,
which somebody wrote down who had seen errors of pairs of columns.

*The cuts* are either those that ``Boxes`` finds in the unlabelled rows, as part of ε, on a grid of 2^16 × 2^16 points;
or public ones: quantiles and values of the 1,000 rows, or the values that the data's documentation has.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import polars as pl

from quorate.data import load_adult
from quorate.experiments.few_labels.adult import error_row
from quorate.experiments.few_labels.draws import Size, drawn
from quorate.experiments.measurement import Measured, Scored, scored, watched
from quorate.experiments.noisy_gradient_descent import public_coordinates
from quorate.experiments.sources import Split
from quorate.learners import (
    UNLABELLED,
    Binning,
    ExponentialLearner,
    GenericLearner,
    PrivateLearner,
    telling_columns,
)
from quorate.learners.concepts import Rectangles
from quorate.learners.sanitizers import Boxes
from quorate.types import IntArray, Watch

DATA: Final = "Adult, income by two columns"
SANITIZED, LISTED = "GenericLearner, Boxes: 2^16 × 2^16 points", "ExponentialLearner: 16 × 2 points"
RULED, RULED_CUTS = "GenericLearner, Boxes: columns by the rule", "ExponentialLearner: columns and cuts by the rule"
DIRECT, MAJORITY = "direct method, all columns, public coordinates", "larger class"
GRID = Rectangles(16, 2)
DOCUMENTED = tuple((float(years), float(married)) for years, married in product(range(1, 17), (0, 1)))
N_POOL = 1_000  # unlabelled rows that play the public pool of the direct method
LEAST_DRAWS = 30


def columns(table: pl.DataFrame) -> IntArray:
    """Return years of schooling, and 1 for a married couple: ``(n_rows, 2)``, as the rule has them."""
    married = (table["marital-status"] == "Married-civ-spouse").to_numpy()
    return np.column_stack([table["education-num"].to_numpy(), married]).astype(np.int64)


def ruled(tables: Sequence[pl.DataFrame], pool: pl.DataFrame) -> tuple[Binning, list[IntArray]]:
    """Return the cuts of the two columns that say most about the others in a pool, and what both tables hold of them.

    `tables`: whose columns are wanted. `pool`: public rows without labels. Returns: the cuts; and of each table its
    values ``(n_rows, 2)``: numbers as they are, texts as the level of their cut.
    """
    binning = Binning.from_pool(pool, telling_columns(pool, 2))
    return binning, [
        np.column_stack(
            [
                table[name].cast(pl.Int64).to_numpy()
                if not isinstance(cuts[0], str)
                else _levels(table[name], [str(cut) for cut in cuts])
                for name, cuts in binning.cuts.items()
            ]
        )
        for table in tables
    ]


def _levels(column: pl.Series, cuts: Sequence[str]) -> IntArray:
    places = {text: place + 1 for place, text in enumerate(cuts)}
    return np.array([places.get(text, 0) for text in column.to_list()], dtype=np.int64)


def learners() -> dict[str, PrivateLearner]:
    """Return the learners of this part, at ε = 1."""
    return {
        SANITIZED: GenericLearner(concepts=GRID, sanitizer=Boxes(), epsilon=1.0),
        LISTED: ExponentialLearner(concepts=GRID, domain=DOCUMENTED, epsilon=1.0),
    }


def rectangle_beside_direct(size: Size, *, repeats: int, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Measure test errors at each number of labels; 30 draws at least."""
    adult, repeats = load_adult(), max(repeats, size.rectangle_draws)
    X, X_test = columns(adult.train), columns(adult.test)
    pool_rows = np.random.default_rng([seed]).permutation(len(X))[:N_POOL]
    binning, (own, own_test) = ruled((adult.train, adult.test), adult.train[pool_rows])
    levels, levels_test = binning.transform(adult.train), binning.transform(adult.test)
    grid = Rectangles(binning.bits, len(binning.bits))
    by_rule = ExponentialLearner(concepts=grid, domain=binning.domain, epsilon=1.0)
    y, y_test = (
        (np.asarray(incomes) == ">50K").astype(np.int64) for incomes in (adult.train_labels, adult.test_labels)
    )
    wide = adult.a9a()
    rows = []
    progress = iter(watched(watch, "a rectangle on Adult", range(len(size.rectangle_labels) * repeats)))
    for n_labels in size.rectangle_labels:
        by_name: dict[str, list[Scored]] = {}
        for repeat in range(repeats):
            next(progress)
            order = np.random.default_rng([seed, n_labels, repeat]).permutation(len(X))
            known, pool = order[:n_labels], order[-N_POOL:]
            labels = np.full(len(X), UNLABELLED, dtype=np.int8)
            labels[known] = y[known]
            for name, learner, points, test in (
                (RULED, learners()[SANITIZED], own, own_test),
                (RULED_CUTS, by_rule, levels, levels_test),
                *((name, learner, X, X_test) for name, learner in learners().items()),
            ):
                concept = drawn(learner, points, labels, seed + repeat)
                by_name.setdefault(name, []).append(scored(concept.labels(test), y_test))
            if repeat < size.direct_draws:
                parts = _split(wide, y, known, pool, len(X), y_test)
                by_name.setdefault(DIRECT, []).append(public_coordinates(parts, 1.0, seed + repeat))
        by_name[MAJORITY] = [scored(np.full(len(y_test), round(float(y.mean()))), y_test)]
        for name, scores in by_name.items():
            budget = (None, None) if name == MAJORITY else (1.0, 1 / n_labels if name == DIRECT else 0.0)
            rows.append(error_row(scores, DATA, name, n_labels, *budget))
    next(progress, None)
    return rows


def _split(wide: Any, y: IntArray, known: IntArray, pool: IntArray, n_train: int, y_test: IntArray) -> Split:
    return Split(
        name="Adult",
        X_private=wide[known],
        y_private=y[known],
        X_public=wide[pool],
        X_test=wide[n_train:],
        y_test=y_test,
    )
