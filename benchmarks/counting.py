"""Counting votes: linear teachers beside a loop over ``predict``, other teachers too, and votes given as classes."""

from __future__ import annotations

import numpy as np

from benchmarks.paired import Growth, Pair, Work


def _linear(n_voters: int, n_columns: int, n_classes: int):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    scores = 1 if n_classes == 2 else n_classes
    models = []
    for _ in range(n_voters):
        model = LogisticRegression()
        model.coef_, model.intercept_ = rng.normal(size=(scores, n_columns)), rng.normal(size=scores)
        model.classes_ = np.arange(n_classes)
        models.append(model)
    return models


def _ensemble(models, n_classes: int):
    from quorate.ensemble import ClassifierVoter, Ensemble
    from quorate.types import Secret

    voters = tuple(ClassifierVoter(model, np.arange(n_classes)) for model in models)
    return Ensemble(Secret(voters), n_classes=n_classes)


def _counted(models, X, n_classes: int):
    counts, every = np.zeros((len(X), n_classes), dtype=np.int64), np.arange(len(X))
    for model in models:
        counts[every, model.predict(X)] += 1
    return counts


def linear_votes(n_classes: int):
    """Count 250 linear teachers on 40,000 queries of 50 columns."""

    def prepare(quick: bool) -> Work:
        from quorate.ensemble import count_votes

        models = _linear(250, 50, n_classes)
        X = np.random.default_rng(1).normal(size=(2_000 if quick else 40_000, 50))
        ensemble = _ensemble(models, n_classes)
        return Work(
            ours=lambda: count_votes(ensemble, X).reveal(),
            theirs=lambda: _counted(models, X, n_classes),
            same=np.array_equal,
        )

    return prepare


def tree_votes(quick: bool) -> Work:
    """Count 60 decision trees, which vote in worker processes."""
    from sklearn.tree import DecisionTreeClassifier

    from quorate.ensemble import count_votes

    rng = np.random.default_rng(0)
    n_classes, n_voters = 5, 10 if quick else 60
    models = []
    for _ in range(n_voters):
        rows, labels = rng.normal(size=(300, 20)), np.arange(300) % n_classes
        models.append(DecisionTreeClassifier(random_state=0).fit(rows, labels))
    X = rng.normal(size=(5_000 if quick else 120_000, 20))
    ensemble = _ensemble(models, n_classes)
    return Work(
        ours=lambda: count_votes(ensemble, X).reveal(),
        theirs=lambda: _counted(models, X, n_classes),
        same=np.array_equal,
        processes=True,
    )


def _bincount_in_blocks(codes, n_classes: int, rows: int = 4_096):
    """What one would write: one bincount a block of queries, over a query's number times C plus the class."""
    counts = np.empty((codes.shape[1], n_classes), dtype=np.int64)
    for start in range(0, codes.shape[1], rows):
        block = codes[:, start : start + rows].astype(np.int64)
        width = block.shape[1]
        cells = block + n_classes * np.arange(width)
        counted = np.bincount(cells.ravel(), minlength=width * n_classes)
        counts[start : start + width] = counted.reshape(width, n_classes)
    return counts


def given_votes(n_classes: int):
    """Count 250 votes of each of 65,536 queries that are given as classes."""

    def prepare(quick: bool) -> Work:
        from quorate.ensemble.votes import add_votes, code_type

        n_queries = 4_096 if quick else 65_536
        codes = np.random.default_rng(0).integers(0, n_classes, size=(250, n_queries)).astype(code_type(n_classes))

        def ours():
            counts = np.zeros((n_queries, n_classes), dtype=np.int64)
            add_votes(codes, counts)
            return counts

        return Work(ours=ours, theirs=lambda: _bincount_in_blocks(codes, n_classes), same=np.array_equal)

    return prepare


def many_queries(size: int):
    """Count 50 linear teachers on more and more queries."""
    from quorate.ensemble import count_votes

    ensemble, X = _ensemble(_linear(50, 20, 2), 2), np.random.default_rng(0).normal(size=(size, 20))
    count_votes(ensemble, X[:10])
    return lambda: count_votes(ensemble, X)


def many_teachers(size: int):
    """Count more and more linear teachers on 500 queries."""
    from quorate.ensemble import count_votes

    ensemble, X = _ensemble(_linear(size, 20, 2), 2), np.random.default_rng(0).normal(size=(500, 20))
    count_votes(ensemble, X[:10])
    return lambda: count_votes(ensemble, X)


PAIRS = (
    Pair("votes of 250 linear teachers, 2 classes", "a loop over predict", 8, linear_votes(2)),
    Pair("votes of 250 linear teachers, 10 classes", "a loop over predict", 3, linear_votes(10)),
    Pair("votes of 250 linear teachers, 50 classes", "a loop over predict", 1.5, linear_votes(50), rounds=3),
    Pair("votes of 60 decision trees, isolation included", "a loop over predict", 0.8, tree_votes, rounds=3),
    Pair("250 given votes a query, 2 classes", "numpy bincount in blocks", 1, given_votes(2)),
    Pair("250 given votes a query, 10 classes", "numpy bincount in blocks", 1, given_votes(10)),
    Pair("250 given votes a query, 150 classes", "numpy bincount in blocks", 1, given_votes(150)),
)
CURVES = (
    Growth(
        "votes of 50 linear teachers",
        "queries",
        (10_000, 30_000, 100_000, 300_000, 1_000_000),
        (1_000, 4_000),
        many_queries,
    ),
    Growth(
        "votes of linear teachers on 500 queries",
        "teachers",
        (200, 600, 2_000, 6_000, 20_000),
        (50, 200),
        many_teachers,
    ),
)
