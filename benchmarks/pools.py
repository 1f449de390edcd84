"""Without public rows: pools drawn from noisy counts beside real ones, for both methods and bounds that are too wide.

    python -m benchmarks.pools [table ...] [splits=N] [epsilons=0.5,1,3] [methods=votes,direct] [bounds=1,20,1000]

A split of a table has a tenth as the real pool, a quarter to score on, and the rest as private rows. "drawn" declares
the columns instead: numbers between the bounds of the whole table, times each of `bounds`; categories by their lists.
Votes are for replacing a record too, the direct method for adding or removing one. What is printed are mean accuracies
and their standard errors over the splits, as rows of a table: real pool, then drawn ones by how wide bounds are.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from benchmarks.maps import DELTA, MOST_ROWS, REPORTED, TUNED
from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool, Schema
from quorate.errors import PreconditionFailed

METHODS = {"votes": partial(PrivateClassifier, method="votes"), "direct": PrivateLogisticRegression}


def declared(table: pl.DataFrame, times: float) -> Schema:
    """Return what the columns hold, with bounds so many times as wide as the numbers are."""
    columns: dict[str, Any] = {}
    for name in table.columns:
        if table[name].dtype.is_numeric():
            low, high = float(table[name].min()), float(table[name].max())  # type: ignore[arg-type]
            more = (times - 1) * (high - low or 1.0) / 2
            columns[name] = (low - more, (high if high > low else low + 1) + more)
        else:
            columns[name] = sorted(str(value) for value in table[name].drop_nulls().unique())
    return Schema(columns)


def measured(X: Any, labels: Any, method: str, epsilon: float, times: int, number: int) -> list[float]:
    """Return accuracies of the splits; `times`: how wide bounds are, 0 for a real pool."""
    frame, classes, right = pl.DataFrame(X), np.unique(labels).tolist(), []
    schema = declared(frame, times) if times else None
    for seed in range(number):
        order = np.random.default_rng(100 + seed).permutation(len(labels))[:MOST_ROWS]
        pool, held = len(order) // 10, len(order) * 35 // 100
        private, scored = order[held:], order[pool:held]
        clf = METHODS[method](
            classes=classes, epsilon=epsilon, delta=DELTA, n_records=len(private), unsafe_noise_seed=seed
        )
        rest = {"public": PublicPool(frame[order[:pool]])} if schema is None else {"schema": schema}
        clf.fit(frame[private], labels[private], **rest)
        right.append(float(np.mean(clf.predict(frame[scored]) == labels[scored])))
    return right


def main(words: list[str]) -> None:
    given = dict(word.split("=") for word in words if "=" in word)
    names, number = [word for word in words if "=" not in word], int(given.get("splits", 3))
    epsilons = [float(word) for word in given.get("epsilons", "0.5,1,3").split(",")]
    bounds = [int(word) for word in given.get("bounds", "1,20,1000").split(",")]
    for name, load in (TUNED | REPORTED).items():
        if names and name not in names:
            continue
        try:
            X, labels = load()
        except PreconditionFailed as missing:
            print(f"{name}: left out, {missing}")
            continue
        for method in given.get("methods", "votes,direct").split(","):
            row = []
            for times in (0, *bounds):
                means = []
                for epsilon in epsilons:
                    right = measured(X, np.asarray(labels), method, epsilon, times, number)
                    error = np.std(right, ddof=1) / number**0.5 if number > 1 else np.nan
                    means.append(f"{np.mean(right):.3f} ± {error:.3f}")
                row.append(" · ".join(means))
            print(f"| {name} | {method} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
