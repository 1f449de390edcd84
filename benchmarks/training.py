"""Training many teachers of few rows, isolation included, beside plain loops over scikit-learn.

    python -m benchmarks training      the rows, as of every file of this folder
    python benchmarks/training.py      the same, and how far the votes of both ways differ; ``--json``, ``--quick``

Linear teachers are trained to the optimum on both sides; coefficients that differ by 1e-6 or more fail the row. Ours is
`train_teachers` with one worker that is there already, as it is from the second stage of a run on: shards are sent to
it, a process is forked for each chunk of them, and the trained teachers are sent back. The loops have no isolation.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.paired import Pair, Work, measure

ROWS = 100


def with_worker() -> float:
    """CPU seconds of this process, of the worker that is kept, and of all that either forked and that ended."""
    from quorate.ensemble.workers.workers import isolated_map

    ((_, used),) = isolated_map(_used, lambda number: number, [0], n_jobs=1, batch=1)
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + own.ru_utime + own.ru_stime + (pickle.loads(used) if used else 0.0)


def _used(_items):
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return [pickle.dumps(sum(each.ru_utime + each.ru_stime for each in both))]


def shards_of(n_teachers: int, n_columns: int, *, is_sparse: bool):
    """Shards of 100 rows each: dense normal numbers, or about fourteen ones a row as a9a has them."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_teachers * ROWS, n_columns))
    if is_sparse:
        X = (rng.random(X.shape) < 14 / 123).astype(np.float64)
    y = (X @ rng.normal(size=n_columns) + rng.normal(size=len(X)) > 0).astype(np.int64)
    return (sparse.csr_matrix(X) if is_sparse else X), y


def _trained(model, X, y, *, batched: bool = True):
    from quorate.ensemble import ClassifierTeacher, train_teachers
    from quorate.types import Secret

    n_teachers = len(y) // ROWS
    return train_teachers(
        ClassifierTeacher(model, batched=batched), X, y, Secret(np.repeat(np.arange(n_teachers), ROWS)),
        n_teachers=n_teachers, n_classes=2, key=Secret(bytes(32)),
    )  # fmt: skip


def _parts(X, y):
    return [(X[start : start + ROWS], y[start : start + ROWS]) for start in range(0, len(y), ROWS)]


def _loop(X, y):
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at 1e-10 a line search says that it can do no more
        return [LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(*part) for part in _parts(X, y)]


def _alike(mine, theirs) -> bool:
    return all(
        np.abs(a.coef_ - b.coef_).max() < 1e-6 and np.abs(a.intercept_ - b.intercept_).max() < 1e-6
        for a, b in zip(mine, theirs, strict=True)
    )


def logistic(n_teachers: int, n_columns: int, *, is_sparse: bool):
    """Train logistic teachers to the optimum, isolated, beside a loop."""

    def prepare(quick: bool) -> Work:
        from sklearn.linear_model import LogisticRegression

        X, y = shards_of(20 if quick else n_teachers, n_columns, is_sparse=is_sparse)
        return Work(
            ours=lambda: [voter.estimator for voter in _trained(LogisticRegression(), X, y).voters.reveal()],
            theirs=lambda: _loop(X, y),
            same=_alike,
            clock=with_worker,
        )

    return prepare


def solver_alone(n_teachers: int, n_columns: int, *, is_sparse: bool):
    """Solve the same shards in this process, one after another."""

    def prepare(quick: bool) -> Work:
        from sklearn.linear_model import LogisticRegression

        from quorate.ensemble.linear.equivalent import fit_to_optimum

        X, y = shards_of(20 if quick else n_teachers, n_columns, is_sparse=is_sparse)

        def ours():
            models = [LogisticRegression() for _ in range(len(y) // ROWS)]
            for model, part in zip(models, _parts(X, y), strict=True):
                fit_to_optimum(model, *part)
            return models

        return Work(ours=ours, theirs=lambda: _loop(X, y), same=_alike)

    return prepare


def trees(quick: bool) -> Work:
    """Train decision trees, isolated, beside a loop of joblib; the same trees from the same seeds."""
    from joblib import Parallel, delayed
    from sklearn.tree import DecisionTreeClassifier

    from quorate.ensemble import ClassifierTeacher, teacher_seed
    from quorate.types import Secret

    X, y = shards_of(20 if quick else 250, 50, is_sparse=False)
    teacher = ClassifierTeacher(DecisionTreeClassifier())
    states = [teacher.fresh(teacher_seed(Secret(bytes(32)), i)).random_state for i in range(len(y) // ROWS)]

    def theirs():
        return Parallel(n_jobs=1)(
            delayed(DecisionTreeClassifier(random_state=state).fit)(*part)
            for state, part in zip(states, _parts(X, y), strict=True)
        )

    def same(mine, fitted) -> bool:
        return all((a.predict(X[:500]) == b.predict(X[:500])).all() for a, b in zip(mine, fitted, strict=True))

    return Work(
        ours=lambda: [voter.estimator for voter in _trained(DecisionTreeClassifier(), X, y).voters.reveal()],
        theirs=theirs,
        same=same,
        clock=with_worker,
    )


PEER = "a loop of LogisticRegression(newton-cholesky, tol=1e-10)"
DENSE, SPARSE = (250, 50), (390, 123)
PAIRS = (
    Pair("250 logistic teachers, 100 rows × 50, isolated", PEER, 2, logistic(*DENSE, is_sparse=False), 7),
    Pair("390 logistic teachers, 100 rows × 123 sparse, isolated", PEER, 2, logistic(*SPARSE, is_sparse=True), 7),
    Pair("the solver alone, 100 rows × 50", PEER, 5, solver_alone(*DENSE, is_sparse=False), 7),
    Pair("the solver alone, 100 rows × 123 sparse", PEER, 5, solver_alone(*SPARSE, is_sparse=True), 7),
    Pair("250 decision trees of 100 rows, isolated", "a loop of joblib, one job", 0.8, trees, 7),
)


def difference(*, quick: bool) -> dict[str, float]:
    """How votes differ between teachers at the optimum and those of lbfgs at its own tolerance (batched=False)."""
    from sklearn.linear_model import LogisticRegression

    from quorate.ensemble import count_votes

    X, y = shards_of(20 if quick else 250, 50, is_sparse=False)
    points = np.random.default_rng(1).normal(size=(2_000, 50))
    both = [_trained(LogisticRegression(), X, y, batched=each) for each in (True, False)]
    counts = [count_votes(ensemble, points).reveal() for ensemble in both]
    coefficients = [np.stack([voter.estimator.coef_ for voter in each.voters.reveal()]) for each in both]
    return {
        "largest_difference_of_a_coefficient": float(np.abs(coefficients[0] - coefficients[1]).max()),
        "share_of_votes_that_differ": float(np.abs(counts[0] - counts[1]).sum() / 2 / counts[0].sum()),
        "share_of_points_with_another_winner": float(np.mean(counts[0].argmax(axis=1) != counts[1].argmax(axis=1))),
    }


def main() -> None:
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with threadpool_limits(limits=1):
        found = {"rows": [measure(pair, quick=given.quick) for pair in PAIRS], "batched": difference(quick=given.quick)}
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for row in found["rows"]:
        each = f"{row['least']:.2f} to {row['most']:.2f}"
        print(f"{row['name']:<56} {row['ratio']:5.2f} × {row['peer']} ({each}; hoped for: {row['at_least']:g})")
    for name, value in found["batched"].items():
        print(f"batched=True and False: {name.replace('_', ' ')}: {value:.2g}")


if __name__ == "__main__":
    main()
