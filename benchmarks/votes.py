"""Votes by default beside logistic teachers, from a strict budget to one at which noise hardly counts.

    python -m benchmarks.votes tune [table ...] [splits=N] [epsilons=0.5,1,2,4,8,64]     on tables that chose settings
    python -m benchmarks.votes report [table ...] [splits=N] [epsilons=...]              on others

A split of a table has a tenth as the pool, a quarter to score on, and the rest as private rows; of Mushroom and a9a a
fiftieth as the pool. "default" is the classifier that a user gets; "logistic" has the teachers and the student that
were the default before, and remain so where the pool has no coordinates. Printed are their mean accuracies, and the
paired difference with its standard error over the splits. Tables are those of :mod:`benchmarks.maps`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.maps import DELTA, MOST_ROWS, REPORTED, TUNED, Table
from quorate import PrivateClassifier, PublicPool
from quorate.data import take
from quorate.errors import PreconditionFailed
from quorate.experiments import sources
from quorate.students import VoteShareStudent
from quorate.voting.models import built_in

EPSILONS = "0.5,1,2,4,8,64"
TEACHERS: tuple[dict[str, Any], ...] = (
    {},
    {"teacher": built_in("logistic", "teacher"), "student": VoteShareStudent(shares="smooth")},
)


def of_paper(name: str) -> Table:
    """Return a table of indicators that the papers use: dense, and the classes."""
    table = getattr(sources, name)()
    return (table.X.toarray() if hasattr(table.X, "toarray") else table.X), table.codes


INDICATORS = ("mushroom", "a9a")
TUNED_HERE: dict[str, Callable[[], Table]] = {
    **{name: load for name, load in TUNED.items() if name not in ("letter", "satimage")},
    **{name: lambda name=name: of_paper(name) for name in INDICATORS},  # type: ignore[misc]
}


def splits(labels: Any, name: str, number: int) -> Iterator[tuple[Any, Any, Any]]:
    """Return private, public and scored rows of each split."""
    indicators = name in INDICATORS
    for seed in range(number):
        order = np.random.default_rng(100 + seed).permutation(len(labels))[: None if indicators else MOST_ROWS]
        pool = len(order) // (50 if indicators else 10)
        held = pool + len(order) // (6 if indicators else 4)
        yield order[held:], order[:pool], order[pool:held]


def measured(name: str, load: Callable[[], Table], epsilon: float, number: int) -> np.ndarray[Any, Any]:
    """Return accuracies ``(n_splits, 2)``."""
    X, labels = load()
    classes, right = np.unique(labels).tolist(), []
    for seed, (private, public, held) in enumerate(splits(labels, name, number)):
        of_split = []
        for models in TEACHERS:
            clf = PrivateClassifier(
                classes=classes, epsilon=epsilon, delta=DELTA, n_records=len(private),
                unsafe_noise_seed=seed, **models,
            )  # fmt: skip
            clf.fit(take(X, private), labels[private], public=PublicPool(take(X, public)))
            of_split.append(float(np.mean(clf.predict(take(X, held)) == labels[held])))
        right.append(of_split)
    return np.array(right)


def main(verb: str, words: list[str]) -> None:
    given = dict(word.split("=") for word in words if "=" in word)
    names = [word for word in words if "=" not in word]
    for name, load in (TUNED_HERE if verb == "tune" else REPORTED).items():
        if names and name not in names:
            continue
        for epsilon in map(float, given.get("epsilons", EPSILONS).split(",")):
            try:
                right = measured(name, load, epsilon, int(given.get("splits", 3)))
            except PreconditionFailed as missing:
                print(f"{name}: left out, {missing}")
                break
            ahead = right[:, 0] - right[:, 1]
            error = ahead.std(ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else np.nan
            default, logistic = right.mean(axis=0)
            print(f"{name:14} ε = {epsilon:<4g} default {default:.3f}  logistic {logistic:.3f}  ", end="")
            print(f"ahead {ahead.mean():+.3f} ± {error:.3f}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    if chosen not in ("tune", "report"):
        sys.exit(__doc__)
    main(chosen, sys.argv[2:])
