"""Lessons of made-up tasks, whose true votes the tests know and the students do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from quorate.labelling import Released
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts
from quorate.noise import SeededNoise
from quorate.students import StudentData

K = 100


class Memorises(DecisionTreeClassifier):
    def fit(self, X, y, sample_weight=None):
        self.seen_ = (X, np.asarray(y), sample_weight)
        return super().fit(X, y, sample_weight=sample_weight)


def cast(X, seed, *, n_classes=2, steep=2.0, n_teachers=K):
    """Teachers' votes on points: a multinomial draw around a softmax; and the class with the largest share."""
    draw = np.random.default_rng(seed)
    weights = steep * draw.normal(size=(X.shape[1], n_classes)) / np.sqrt(X.shape[1])
    scores = X @ weights
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    votes = np.array([draw.multinomial(n_teachers, row) for row in shares], dtype=np.int64)
    return votes, shares.argmax(axis=1)


def release(votes, mechanism, seed=0, *, lost=(), declined=(), never_asked=()):
    """What leaves the ensemble; the queries in `lost`, `declined` and `never_asked` have no answer."""
    answers = mechanism.release_many(votes, SeededNoise(seed))
    gone = [np.zeros(len(votes), dtype=bool) for _ in range(3)]
    for which, queries in zip(gone, (declined, lost, never_asked), strict=True):
        which[list(queries)] = True
    answers[np.any(gone, axis=0)] = 0
    return Released(answers, gone[0], gone[1], mechanism, gone[2])


def values(n_classes=2, sigma=40.0):
    return NoisyCounts(sigma=sigma, form="binary" if n_classes == 2 else "histogram")


def labels(n_classes=2, sigma=40.0):
    return GaussianNoisyMax(sigma=sigma, form="binary" if n_classes == 2 else "histogram")


def student_data_of(X, released, *, queries=None, pool=None, points=None, classes=None, **changes: Any):
    """A data on the rows of `X`, which are the whole pool unless another is given."""
    pool = X if pool is None else pool
    fixed = {"n_teachers": K, "seed": 0, **changes}
    return StudentData(
        pool=pool,
        points=pool if points is None else points,
        queries=np.arange(len(released.declined)) if queries is None else np.asarray(queries, dtype=np.int64),
        released=released,
        classes=["no", "yes"] if classes is None else list(classes),
        **fixed,
    )


def task(
    seed=0, *, m=200, width=5, mechanism=None, n_classes=2, lost=(), declined=(), never_asked=(), asked=None,
    **changes: Any,
):  # fmt: skip
    """A data, and the class that most teachers favour at each public point. `asked` are the queries, all if None."""
    X = np.random.default_rng(seed).normal(size=(m, width))
    votes, truth = cast(X, seed, n_classes=n_classes)
    queries = np.arange(m) if asked is None else np.asarray(asked)
    mechanism = values(n_classes) if mechanism is None else mechanism
    released = release(votes[queries], mechanism, seed, lost=lost, declined=declined, never_asked=never_asked)
    return student_data_of(X, released, queries=queries, classes=range(n_classes), **changes), truth


def right(student, data, truth):
    """Share of public points at which the student says what most teachers would."""
    names = np.asarray(list(data.classes))
    return float(np.mean(student.fit(data).predict(data.pool) == names[truth]))
