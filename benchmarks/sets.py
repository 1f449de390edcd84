"""Prediction sets: of many calibrations of one published model, how many cover less than was promised.

    python -m benchmarks sets [--splits 200] [--only adult,mushroom,digits] [--in-run [--only age] | --temperature]

For each table one model is fitted by the direct method at ε = 1. The labelled rows that are left are split many times
into rows that calibrate and rows that test. A split misses where sets of coverage .90 hold the class of a share of test
rows below .90 less the stated slack; that may be so in 5 % of splits, and two standard errors more. "public" calibrates
by 500 labelled public rows (``calibrate``, half of them for the sets). "private" chooses the limit by a private
quantile at ε = .5 on a fifth of half of the rows, by the mechanism itself on counts of places made here at once. Digits
are of MNIST, in the folder that ``QUORATE_DATA`` names.

By ``--in-run`` each split is a fit of its own: all rows of the table are dealt out anew to 5,000 private rows, a pool
and a test, and ``calibration_share=0.2`` holds out a fifth of the private rows, in one charge of ε = 1 with what others
teach, in 16 rounds of linear features. The slack is what the fit promised. There "age" has intervals for the age of
Adult's persons, from 0 to 100, and in the place of the size of sets stands how long they are.

``--temperature`` judges probabilities where no public rows have labels: the log loss and the expected calibration error
on 5,000 of the rows that are left, of fits by default and of fits with ``private_temperature``; of these also the log
loss at the temperature that is best on the very rows. The table is dealt out anew each time.
"""

from __future__ import annotations

import argparse
import warnings
from copy import copy
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.metrics import log_loss

from quorate import Budget, Ledger, PrivateLogisticRegression, PrivateRegressor, PublicPool
from quorate.data import load_adult, load_mushroom, take
from quorate.errors import QuorateWarning
from quorate.labelling import private_slack
from quorate.labelling.private_sets import PLACES
from quorate.mechanisms import PrivateQuantile
from quorate.noise import OSNoise
from quorate.students.prediction_sets import COVERAGE, FAILURE, calibrated, promised, sets_of

CALIBRATION, SHARE, EPSILON = 500, 0.2, 0.5
SCORED = 5_000  # rows on which a temperature is judged
IN_RUN = 5_000  # private rows of a fit that holds units out


@dataclass(frozen=True)
class Labelled:
    """A table: its rows, their labels, the classes, and how many of the rows are private and public by default."""

    X: Any
    labels: Any
    classes: list[Any]
    n_private: int
    n_public: int

    def fitted(self, n: int | None = None, **how: Any) -> PrivateLogisticRegression:
        """Fit on the first `n` private rows, by default all of them, with the public pool."""
        n = self.n_private if n is None else n
        clf = PrivateLogisticRegression(
            **{"classes": self.classes, "epsilon": 1.0, "delta": 1e-5, "n_records": n, **how}
        )
        pool = PublicPool(self.X[self.n_private : self.n_private + self.n_public])
        return clf.fit(self.X[:n], self.labels[:n], public=pool)

    def dealt(self, rng: Any, n_private: int = IN_RUN) -> Labelled:
        """Return the same rows in another order."""
        order = rng.permutation(len(self.labels))
        return Labelled(self.X[order], np.asarray(self.labels)[order], self.classes, n_private, self.n_public)

    @property
    def left(self) -> tuple[Any, Any]:
        """Rows that are neither private nor in the pool, and the codes of their labels."""
        known = self.n_private + self.n_public
        labels = np.asarray(self.labels)[known:].tolist()
        return self.X[known:], np.array([self.classes.index(label) for label in labels])


@dataclass(frozen=True)
class Judged:
    """The last step of a published model, and scores of labelled rows that it learned nothing from; their codes."""

    model: Any
    rows: Any
    codes: Any
    classes: list[Any]

    @classmethod
    def of(cls, table: Labelled) -> Judged:
        """Fit one model."""
        clf, (rows, codes) = table.fitted(ledger=Ledger(budget=Budget(1.0, 1e-5))), table.left
        scores = np.asarray(clf.decision_function(rows)).reshape(len(codes), -1)
        last, width = copy(clf.model_[-1]), scores.shape[1]  # a split costs no features; probabilities are the same
        last.coef_, last.intercept_, last.n_features_in_ = np.eye(width), np.zeros(width), width
        return cls(last, scores, codes, table.classes)


def adult() -> Labelled:
    """Return Adult: 10,000 private rows, 1,000 public ones, 37,800 left."""
    table = load_adult()
    import polars as pl

    X = pl.concat([table.train, table.test], how="vertical_relaxed")
    return Labelled(X, np.concatenate([table.train_labels, table.test_labels]), list(table.classes), 10_000, 1_000)


def mushroom() -> Labelled:
    """Return Mushroom in an order of its own: 2,000 private rows, 162 public ones, 6,000 left."""
    table = load_mushroom()
    order = np.random.default_rng(0).permutation(table.X.height)
    return Labelled(table.X[order], np.asarray(table.labels)[order], list(table.classes), 2_000, 162)


def digits() -> Labelled:
    """Return 16,000 digits of MNIST: 5,000 private, 1,000 public, 10,000 left."""
    from quorate.experiments.sources import folder_of_files, mnist

    train, _ = mnist(folder_of_files())
    return Labelled(np.asarray(train.X)[:16_000], train.codes[:16_000], list(range(10)), 5_000, 1_000)


AGE = "age"  # a table whose target is a number


def ages() -> Labelled:
    """Return Adult with the age as the target, and no classes."""
    table = adult()
    return Labelled(table.X.drop(AGE), table.X[AGE].to_numpy(), [], IN_RUN, table.n_public)


TABLES = {"adult": adult, "mushroom": mushroom, "digits": digits}


def by_public_rows(table: Judged, rng: Any) -> tuple[float, float, float]:
    """Return coverage on the rows that are left, the size of sets, and the slack of one calibration."""
    order = rng.permutation(len(table.codes))
    chosen, test = order[:CALIBRATION], order[CALIBRATION:]
    model, calibration = calibrated(table.model, take(table.rows, chosen), table.codes[chosen], table.classes)
    sets = sets_of(model.predict_proba(take(table.rows, test)), calibration.limits.limit(COVERAGE))
    slack = promised(calibration.limits.n_rows).slack
    return float(sets[np.arange(len(test)), table.codes[test]].mean()), float(sets.sum(axis=1).mean()), slack


def by_private_units(probabilities: Any, codes: Any, slack: float, rng: Any) -> tuple[float, float, float]:
    """Return the same of a limit that private units make; the number that is held out is drawn as a key draws it."""
    order, n_units = rng.permutation(len(codes)), len(codes) // 2
    n_held = int(rng.binomial(n_units, SHARE))
    held, test = order[:n_held], order[n_held:]
    scores = 1 - probabilities[held, codes[held]]
    places = np.clip(np.ceil(scores * PLACES) - 1, 0, PLACES - 1).astype(np.int64)
    mechanism = PrivateQuantile(epsilon=EPSILON, share=COVERAGE)
    place = mechanism.release(np.bincount(places, minlength=PLACES), OSNoise())
    sets = sets_of(probabilities[test], (place + 1) / PLACES + 1e-9)
    return float(sets[np.arange(len(test)), codes[test]].mean()), float(sets.sum(axis=1).mean()), slack


def by_a_run(table: Labelled, rng: Any) -> tuple[float, float, float]:
    """Return the same of a fit that holds private units out, on rows that are dealt out anew."""
    dealt = table.dealt(rng)
    clf, (rows, codes) = dealt.fitted(calibration_share=SHARE, feature_map="linear", rounds=16), dealt.left
    sets = clf.predict_set(rows)
    covered = float(sets[np.arange(len(codes)), codes].mean())
    return covered, float(sets.sum(axis=1).mean()), clf.coverage_promise().slack


def by_a_run_of_numbers(table: Labelled, rng: Any) -> tuple[float, float, float]:
    """Return the coverage of intervals, how long they are, and the slack, of a fit on rows that are dealt out anew."""
    dealt = table.dealt(rng)
    model = PrivateRegressor(
        target_range=(0, 100), epsilon=1.0, delta=1e-5, n_records=IN_RUN, calibration_share=SHARE,
        feature_map="linear", rounds=16,
    )  # fmt: skip
    known = IN_RUN + dealt.n_public
    model.fit(dealt.X[:IN_RUN], dealt.labels[:IN_RUN], public=PublicPool(dealt.X[IN_RUN:known]))
    low, high = model.predict_interval(dealt.X[known:]).T
    truth = np.asarray(dealt.labels[known:])
    return float(np.mean((low <= truth) & (truth <= high))), float(high[0] - low[0]), model.coverage_promise().slack


def ways_of(table: Labelled, n_splits: int, *, in_run: bool) -> dict[str, list[tuple[float, float, float]]]:
    """Return the coverage, the size of sets and the slack of each split, by what calibrates."""
    rng = np.random.default_rng(1)
    if in_run:
        one = by_a_run if table.classes else by_a_run_of_numbers
        return {"units held out": [one(table, rng) for _ in range(n_splits)]}
    judged = Judged.of(table)
    probabilities = np.asarray(judged.model.predict_proba(judged.rows))
    mechanism = PrivateQuantile(epsilon=EPSILON, share=COVERAGE)
    slack = private_slack(mechanism, len(judged.codes) // 2, share=SHARE, failure=FAILURE)
    return {
        "public": [by_public_rows(judged, rng) for _ in range(n_splits)],
        "private": [by_private_units(probabilities, judged.codes, slack, rng) for _ in range(n_splits)],
    }


def probabilities(table: Labelled, epsilon: float, rng: Any) -> list[float]:
    """Return log loss and calibration error of a fit by default and one with a temperature; it, and the best loss."""
    dealt, figures = table.dealt(rng, table.n_private), []
    rows, codes = take(dealt.left[0], np.arange(SCORED)), dealt.left[1][:SCORED]
    for paid in (False, True):
        clf = dealt.fitted(epsilon=epsilon, private_temperature=paid)
        scored = clf.facts(evaluation=(rows, np.array(dealt.classes)[codes])).utility.student
        figures += [log_loss(codes, clf.predict_proba(rows)), scored.reliability.error]
    scores = clf.decision_function(rows)
    scores = np.column_stack([np.zeros(len(codes)), scores]) if scores.ndim == 1 else scores
    best = min(log_loss(codes, softmax(scores * at, axis=1)) for at in np.geomspace(1 / 5, 5, 161))
    return [*figures, clf.temperature_, best]


def temperatures(names: list[str], splits: int) -> None:
    """Print a line for each table and ε."""
    print(
        "| table | ε | log loss | with private_temperature | at the best one | calibration error | with | temperature |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        table = TABLES[name]()
        for epsilon in (0.5, 1.0, 3.0):
            rng = np.random.default_rng(2)
            means = np.mean([probabilities(table, epsilon, rng) for _ in range(splits)], axis=0)
            plain, error, paid, paid_error, which, best = means
            line = f"{plain:.3f} | {paid:.3f} | {best:.3f} | {error:.3f} | {paid_error:.3f} | {which:.2f}"
            print(f"| {name} | {epsilon:g} | {line} |", flush=True)


def main(arguments: list[str]) -> None:
    """Print a line for each table and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--in-run", action="store_true", help="of fits that hold private units out")
    parser.add_argument("--temperature", action="store_true", help="of fits with private_temperature")
    given = parser.parse_args(arguments)
    if AGE in (tables := given.only.split(",")) and not given.in_run:
        parser.error("the intervals of age are those of a fit that holds units out; add --in-run")
    warnings.simplefilter("ignore", QuorateWarning)
    if given.temperature:
        temperatures(tables, given.splits)
        return
    allowed = FAILURE + 2 * sqrt(FAILURE * (1 - FAILURE) / given.splits)
    print("| table | by | slack | coverage, mean | classes a set | splits below promise | at most |")
    print("|---|---|---|---|---|---|---|")
    for name in tables:
        for way, splits in ways_of({**TABLES, AGE: ages}[name](), given.splits, in_run=given.in_run).items():
            covered, sizes, slacks = map(np.array, zip(*splits, strict=True))
            missed = 100 * float(np.mean(covered < COVERAGE - slacks))
            figures = f"{slacks[0]:.3f} | {covered.mean():.3f} | {sizes.mean():.2f} | {missed:.1f} %"
            print(f"| {name} | {way} | {figures} | {100 * allowed:.1f} % |", flush=True)
