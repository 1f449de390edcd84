"""Adult with few labels: four classes on its columns, and a rectangle on two of them beside the direct method.

*The columns* are those that a rule finds in 1,000 unlabelled rows that count as public
(:func:`~quorate.learners.telling_columns`), and two by which statistics of income are broken down, written down by
somebody who had seen errors of pairs. *The cuts* are those that ``Boxes`` finds, as part of ε, on a grid of 2^16 × 2^16
points; or public: quantiles and values of the 1,000 rows, or those that the data's documentation has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quorate.data import load_adult
from quorate.experiments.few_labels.draws import Size, drawn
from quorate.experiments.measurement import Measured, Scored, scored, summed, watched
from quorate.experiments.noisy_gradient_descent import public_coordinates
from quorate.experiments.sources import Split
from quorate.learners import UNLABELLED, Binning, ExponentialLearner, GenericLearner, PrivateLearner, telling_columns
from quorate.learners.concepts import Concept, ConceptClass, FiniteClass, Rectangles, Stump, Thresholds
from quorate.learners.concepts.protocol import Points
from quorate.learners.sanitizers import MWEM, Boxes, Tree
from quorate.stored_names import stored_as
from quorate.types import IntArray, Watch

AGE_BITS = 7  # 0 to 127 years, or hours a week
PRIVATE, SAME_LABELS, ALL_LABELS, MAJORITY = (
    "GenericLearner",
    "best concept of the same labels, no privacy",
    "best concept of all labels, no privacy",
    "larger class",
)

#: Public cuts of a coarse grid, in round numbers: column j is cut into four levels.
CUTS: Mapping[str, tuple[int, ...]] = {
    "age": (30, 40, 50),
    "fnlwgt": (100_000, 200_000, 300_000),
    "education-num": (9, 11, 13),
    "capital-gain": (1, 5_000, 10_000),
    "capital-loss": (1, 1_500, 2_000),
    "hours-per-week": (20, 35, 45),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One class on some columns of Adult, and what it is to tell: from Adult's table to points, and to 0 and 1."""

    name: str
    learner: GenericLearner
    points: Callable[[pl.DataFrame], Points] = field(repr=False)
    labels: Callable[[pl.DataFrame, NDArray[np.str_]], NDArray[np.uint8]] = field(repr=False)


def levels(table: pl.DataFrame, columns: Sequence[str]) -> IntArray:
    """Return the level, 0 to 3, of each row in each column: `(n_rows, n_columns)`."""
    by_column = [np.searchsorted(CUTS[name], table[name].to_numpy(), side="right") for name in columns]
    return np.column_stack(by_column).astype(np.int64)


@stored_as("quorate.experiments.few_labels_adult.Rule")
@dataclass(frozen=True, slots=True)
class Rule:
    """A stump as a classifier, for a list of them."""

    stump: Stump

    def predict(self, X: Points) -> NDArray[np.uint8]:
        """Label rows, 0 or 1 each."""
        return self.stump.labels(X)


def coarse_stumps() -> list[Rule]:
    """Return every stump on four levels of each column: the class itself would ask about more than a table holds."""
    constant = [Rule(Stump(0, 3.0, ">")), Rule(Stump(0, 3.0, "<="))]
    sides: tuple[Literal[">"], Literal["<="]] = (">", "<=")
    return constant + [
        Rule(Stump(j, level, side)) for j in range(len(CUTS)) for level in (0.0, 1.0, 2.0) for side in sides
    ]


def questions() -> list[Question]:
    """Return the questions of this part."""
    years = Thresholds(bits=AGE_BITS)
    stumps = FiniteClass(coarse_stumps(), n_features=len(CUTS))
    everything = tuple(product((0.0, 1.0, 2.0, 3.0), repeat=len(CUTS)))
    return [
        Question(
            name="threshold on age: never married",
            learner=_learner(years, Tree()),
            points=lambda table: table["age"].to_numpy()[:, np.newaxis],
            labels=lambda table, income: _is(table["marital-status"] == "Never-married"),
        ),
        Question(
            name="threshold on hours per week: no spouse",
            learner=_learner(years, Tree()),
            points=lambda table: table["hours-per-week"].to_numpy()[:, np.newaxis],
            labels=lambda table, income: _is(table["marital-status"] != "Married-civ-spouse"),
        ),
        Question(
            name="rectangle on age, schooling, spouse: income",
            learner=_learner(Rectangles((2, 2, 1), 3), MWEM()),
            points=lambda table: np.column_stack(
                [levels(table, ["age", "education-num"]), _is(table["marital-status"] == "Married-civ-spouse")]
            ).astype(np.int64),
            labels=lambda table, income: (income == ">50K").astype(np.uint8),
        ),
        Question(
            name="stump on six columns: income",
            learner=_learner(stumps, MWEM(domain=everything, n_synthetic=40_960)),
            points=lambda table: levels(table, list(CUTS)).astype(np.float64),
            labels=lambda table, income: (income == ">50K").astype(np.uint8),
        ),
    ]


def adult_with_few_labels(size: Size, *, repeats: int, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Measure test errors with few labels at ε = 1, and without privacy."""
    adult, rows, all_questions = load_adult(), [], questions()
    income, income_test = np.asarray(adult.train_labels), np.asarray(adult.test_labels)
    progress = iter(watched(watch, "Adult", range(len(all_questions) * repeats)))
    for place, question in enumerate(all_questions):
        X, y = question.points(adult.train), question.labels(adult.train, income)
        X_test, y_test = question.points(adult.test), question.labels(adult.test, income_test)
        by_name: dict[str, list[Scored]] = {PRIVATE: [], SAME_LABELS: []}
        for repeat in range(repeats):
            next(progress)
            order = np.random.default_rng([seed, place, repeat]).permutation(len(X))
            known = order[: size.at_labels]
            labels = np.full(len(X), UNLABELLED, dtype=np.int8)
            labels[known] = y[known]
            concepts = question.learner.concepts
            by_name[PRIVATE].append(_scored(drawn(question.learner, X, labels, seed + repeat), X_test, y_test))
            by_name[SAME_LABELS].append(_scored(concepts.erm(X[known], y[known]), X_test, y_test))
        by_name[ALL_LABELS] = [_scored(question.learner.concepts.erm(X, y), X_test, y_test)]
        by_name[MAJORITY] = [scored(np.full(len(y_test), round(float(y.mean()))), y_test)]
        for name, scores in by_name.items():
            n_labels = size.at_labels if name in {PRIVATE, SAME_LABELS} else len(X)
            budget = (1.0, 0.0) if name == PRIVATE else (None, None)
            rows.append(error_row(scores, f"Adult: {question.name}", name, n_labels, *budget))
    next(progress, None)
    return rows


def _is(column: pl.Series) -> NDArray[np.uint8]:
    return column.to_numpy().astype(np.uint8)


def _learner(concepts: ConceptClass, sanitizer: Tree | MWEM) -> GenericLearner:
    return GenericLearner(concepts=concepts, sanitizer=sanitizer, epsilon=1.0)


def _scored(concept: Concept, X: Points, y: NDArray[np.uint8]) -> Scored:
    return scored(concept.labels(X), y)


def error_row(
    scores: list[Scored], data: str, method: str, n_labels: int, epsilon: float | None, delta: float | None
) -> Measured:
    """Bring the repeats of one line together, with its errors on test rows and its number of labels."""
    with_errors = [
        replace(score, more={"error_mean": 1 - score.accuracy, "labels": float(n_labels)}) for score in scores
    ]
    return summed(with_errors, data=data, method=method, epsilon=epsilon, delta=delta)


DATA: Final = "Adult, income by two columns"
SANITIZED, LISTED = "GenericLearner, Boxes: 2^16 × 2^16 points", "ExponentialLearner: 16 × 2 points"
RULED, RULED_CUTS = "GenericLearner, Boxes: columns by the rule", "ExponentialLearner: columns and cuts by the rule"
DIRECT = "direct method, all columns, public coordinates"
GRID = Rectangles(16, 2)
DOCUMENTED = tuple((float(years), float(married)) for years, married in product(range(1, 17), (0, 1)))
N_POOL = 1_000  # unlabelled rows that play the public pool of the direct method


def columns(table: pl.DataFrame) -> IntArray:
    """Return years of schooling, and 1 for a married couple: ``(n_rows, 2)``, as the rule has them."""
    married = (table["marital-status"] == "Married-civ-spouse").to_numpy()
    return np.column_stack([table["education-num"].to_numpy(), married]).astype(np.int64)


def ruled(tables: Sequence[pl.DataFrame], pool: pl.DataFrame) -> tuple[Binning, list[IntArray]]:
    """Return the cuts of the two columns that say most about the others in a public pool, and each table's values.

    ``(n_rows, 2)``: numbers as they are, texts as the level of their cut.
    """
    binning = Binning.from_pool(pool, telling_columns(pool, 2))
    return binning, [
        np.column_stack(
            [
                table[name].cast(pl.Int64).to_numpy()
                if not isinstance(cuts[0], str)
                else Binning({name: cuts}).transform(table)[:, 0]
                for name, cuts in binning.cuts.items()
            ]
        )
        for table in tables
    ]


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
                parts = Split(
                    name="Adult", X_private=wide[known], y_private=y[known], X_public=wide[pool],
                    X_test=wide[len(X) :], y_test=y_test,
                )  # fmt: skip
                by_name.setdefault(DIRECT, []).append(public_coordinates(parts, 1.0, seed + repeat))
        by_name[MAJORITY] = [scored(np.full(len(y_test), round(float(y.mean()))), y_test)]
        for name, scores in by_name.items():
            budget = (None, None) if name == MAJORITY else (1.0, 1 / n_labels if name == DIRECT else 0.0)
            rows.append(error_row(scores, DATA, name, n_labels, *budget))
    next(progress, None)
    return rows
