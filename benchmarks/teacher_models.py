"""Votes of linear teachers beside votes of trees on tables of numbers and categories, and what a plan expects of each.

    python -m benchmarks.teacher_models [table ...] [splits=N]

Adult comes with the package; *diamonds* (plotnine) is left out where plotnine is not installed. Each split divides a
table into private rows, 2,000 public ones, 2,000 labelled public ones that the planner alone sees, and the rest, which
is scored on. Teachers and student are the defaults, or decision trees by their name. Everything is public and seeded.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
import polars as pl

import quorate
from benchmarks.recipe import packaged
from quorate import PrivateClassifier, PublicPool
from quorate.data import load_adult
from quorate.errors import PreconditionFailed
from quorate.voting.models import built_in

EPSILONS = (0.5, 1.0, 2.0)
DELTA = 1e-5
PUBLIC = LABELLED = 2_000
PRIVATE = {"adult": 32_000, "diamonds": 40_000}


def adult() -> tuple[pl.DataFrame, np.ndarray]:
    loaded = load_adult()
    labels = [np.asarray(each, dtype=str) for each in (loaded.train_labels, loaded.test_labels)]
    return pl.concat([loaded.train, loaded.test]), np.concatenate(labels)


def diamonds() -> tuple[pl.DataFrame, np.ndarray]:
    table = packaged("plotnine", "data/diamonds.csv")
    return table.drop("cut"), table["cut"].to_numpy().astype(str)


TABLES = {"adult": adult, "diamonds": diamonds}


def lines(name: str, splits: int) -> Iterator[str]:
    """Yield a line for each ε: what was measured of each model, and what was expected of it."""
    X, y = TABLES[name]()
    classes = sorted(set(y.tolist()))
    for epsilon in EPSILONS:
        measured: dict[str, list[float]] = {"": [], "tree": []}
        expected: dict[str, list[float]] = {"": [], "tree": []}
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(y))
            cuts = np.cumsum([PRIVATE[name], PUBLIC, LABELLED])
            private, pool, labelled, test = np.split(order, cuts)
            how = {"classes": classes, "epsilon": epsilon, "delta": DELTA, "n_records": len(private)}
            made = quorate.plan(X[pool], evaluation=(X[labelled], y[labelled]), mechanisms=["NoisyCounts"], **how)
            n_teachers = sorted({row.n_teachers or 0 for row in made.rows if row.way == "votes"})[1]  # the recipe's
            for model in measured:
                teacher = built_in(model, "teacher") if model else None
                clf = PrivateClassifier(teacher=teacher, n_teachers=n_teachers, unsafe_noise_seed=split, **how)
                clf.fit(X[private], y[private], public=PublicPool(X[pool]))
                measured[model].append(float((clf.predict(X[test]) == y[test]).mean()))
                (row,) = [row for row in made.rows if (row.n_teachers, row.model) == (n_teachers, model)]
                expected[model].append(float("nan") if row.expected is None else row.expected.accuracy)
        told = " · ".join(
            f"{model or 'linear'} {np.mean(measured[model]):.3f} (expected {np.mean(expected[model]):.3f})"
            for model in measured
        )
        yield f"{name}, ε = {epsilon:g}: {told}"


def main(arguments: list[str]) -> None:
    splits = next((int(each.removeprefix("splits=")) for each in arguments if each.startswith("splits=")), 2)
    for name in [each for each in arguments if "=" not in each] or list(TABLES):
        try:
            for line in lines(name, splits):
                print(line, flush=True)
        except PreconditionFailed as missing:
            print(f"{name}: left out, {missing}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
