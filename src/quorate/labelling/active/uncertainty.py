"""Strategies without a bound: ask where a model is least sure, once a cluster, or so that every point has one near by.

Any scikit-learn classifier serves as the model (:class:`Erm`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.ambient import own_switches, unwarned
from quorate.arguments import count
from quorate.data import take
from quorate.data.canonical import row_digests
from quorate.ensemble.teachers.unfitted import may_have
from quorate.errors import InvalidParameter
from quorate.labelling.active.strategy import History, Strategy
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

BATCHES = 10


@stored_as("quorate.labelling.active.margin.Margin")
@dataclass(frozen=True)
class Margin(Strategy):
    """Ask, in batches, the points whose two likeliest classes are nearest to each other.

    Parameters
    ----------
    n : int
        How many points are asked. The first batch is random.
    learner : estimator, default LogisticRegression()
        Any scikit-learn classifier with ``predict_proba``, unfitted; fitted on the released labels before each batch.
    batch : int, optional
        Points a batch; by default a tenth of n, and at least 10.

    Raises
    ------
    InvalidParameter
        If the learner has no ``predict_proba``, or a number is out of range.

    Examples
    --------
    >>> pool = np.linspace(-1, 1, 9)[:, None]
    >>> past = History(np.array([0, 8]), np.array([0, 1]), 2)
    >>> Margin(4, batch=1).next_batch(pool, past, np.random.default_rng(0))
    array([4])
    """

    learner: Any = field(default=None, kw_only=True)
    batch: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch is not None:
            object.__setattr__(self, "batch", count("batch", self.batch, at_least=1))
        if self.learner is not None and not may_have(self.learner, "predict_proba"):
            raise InvalidParameter(
                f"learner must have predict_proba, got {type(self.learner).__name__}; it says how sure it is"
            )

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose the least sure points; the next ones of the stream where no two classes were released yet."""
        size = max(10, self.n // BATCHES) if self.batch is None else self.batch
        size = min(size, self.n - len(history.rows))
        open_ = history.not_asked(pool.shape[0])
        rows, codes = history.labelled
        if len(np.unique(codes)) < 2:
            return open_[:size]
        erm = Erm(_linear() if self.learner is None else self.learner, seed_of(rng))
        sure = np.sort(np.asarray(erm.fit(take(pool, rows), codes).predict_proba(take(pool, open_))), axis=1)
        return open_[np.argsort(sure[:, -1] - sure[:, -2], kind="stable")[:size]]


@stored_as("quorate.labelling.active.k_means.KMeans")
@dataclass(frozen=True)
class KMeans(Strategy):
    """Cut the pool into n clusters, and ask the point nearest to the centre of each.

    Parameters
    ----------
    n : int
        Number of clusters, and the most points that are asked.

    Notes
    -----
    Only public points have a say, so all questions are known at once. Where classes are released, every point of a
    cluster takes over the answer of its centre for the student. Noisy votes are not taken over: a student of votes
    reckons with noise that is independent from point to point, and spreads what it learns over the pool by itself.

    Examples
    --------
    >>> pool = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.3]])
    >>> strategy, past = KMeans(2), History(np.empty(0, dtype=int), np.empty(0, dtype=int), 2)
    >>> asked = np.sort(strategy.next_batch(pool, past, np.random.default_rng(0)))
    >>> asked, strategy.spread(pool, asked, np.random.default_rng(0))
    (array([1, 4]), array([0, 0, 0, 1, 1, 1]))
    """

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose every centre's nearest point at once, in the order of the stream."""
        if len(history.rows):
            return np.empty(0, dtype=np.int64)
        return np.sort(self._centres(pool, rng)[0])

    def spread(self, pool: Any, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Give every point the answer of its cluster's centre."""
        centres, clusters = self._centres(pool, rng)
        place = {row: at for at, row in enumerate(rows.tolist())}
        return np.array([place.get(centres[cluster], -1) for cluster in clusters], dtype=np.int64)

    @own_switches()
    def _centres(self, pool: Any, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """The point nearest to each centre, among its cluster's own, ``(n_clusters,)``; the cluster of each point."""
        from sklearn.cluster import KMeans as Clusters

        with unwarned():  # fewer clusters than asked for, where points coincide
            means = Clusters(min(self.n, pool.shape[0]), n_init=1, random_state=seed_of(rng)).fit(pool)
        distances = means.transform(pool)
        names, clusters = np.unique(means.labels_, return_inverse=True)
        centres = []
        for name in names:
            members = np.flatnonzero(means.labels_ == name)
            centres.append(members[np.argmin(distances[members, name])])
        return np.array(centres, dtype=np.int64), clusters.astype(np.int64)


@stored_as("quorate.labelling.active.core_set.CoreSet")
@dataclass(frozen=True)
class CoreSet(Strategy):
    """Ask the point that is farthest from all asked ones, again and again: greedy k-centre.

    Parameters
    ----------
    n : int
        The most points that are asked; fewer only where all others coincide with them.

    Notes
    -----
    Only public points have a say, so all questions are known at once. The farthest point is at most twice as far away
    as with the best n points (Gonzalez 1985).

    References
    ----------
    O. Sener, S. Savarese, "Active learning for convolutional neural networks: a core-set approach" (2018).

    Examples
    --------
    >>> pool = np.array([[0.0], [0.1], [9.0], [4.0]])
    >>> past = History(np.empty(0, dtype=int), np.empty(0, dtype=int), 2)
    >>> CoreSet(3).next_batch(pool, past, np.random.default_rng(0))
    array([0, 2, 3])
    """

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose all points at once, the first of the stream first."""
        from sklearn.metrics import pairwise_distances

        if len(history.rows):
            return np.empty(0, dtype=np.int64)
        chosen, same = [0], np.unique(row_digests(pool), return_inverse=True)[1]
        nearest = pairwise_distances(pool, pool[:1]).ravel()
        nearest[same == same[0]] = 0.0
        while len(chosen) < self.n:
            farthest = int(np.argmax(nearest))
            if not nearest[farthest] > 0:
                break
            chosen.append(farthest)
            nearest = np.minimum(nearest, pairwise_distances(pool, pool[farthest : farthest + 1]).ravel())
            nearest[same == same[farthest]] = 0.0  # exactly: rounding must not have a point asked twice
        return np.array(chosen, dtype=np.int64)


@stored_as("quorate.labelling.active.erm.Erm")
@dataclass(frozen=True, slots=True, eq=False)
class Erm:
    """A learner, of which a clone is fitted each time, and the seed of each ``random_state`` that is None."""

    learner: Any
    seed: int

    def fit(self, X: Any, codes: IntArray, weights: FloatArray | None = None) -> Any:
        """Fit on at least two classes; where the learner takes no weights, a row stands as often as it weighs."""
        from sklearn.base import clone
        from sklearn.utils.validation import has_fit_parameter

        learner = clone(self.learner)
        unset = {
            name: self.seed
            for name, value in learner.get_params().items()
            if name.endswith("random_state") and value is None
        }
        learner.set_params(**unset)
        prefix, step = "", learner
        while steps := getattr(step, "steps", None):
            name, step = steps[-1]
            prefix += f"{name}__"
        arguments = {}
        if weights is not None:
            if has_fit_parameter(step, "sample_weight"):
                arguments[f"{prefix}sample_weight"] = weights
            else:
                often = np.repeat(np.arange(len(codes)), np.ceil(weights).astype(np.int64))
                X, codes = take(X, often), codes[often]
        with unwarned():  # that it has not converged is no news to anybody, a thousand times a run
            return learner.fit(X, codes, **arguments)

    def predict(self, model: Any, X: Any) -> IntArray:
        """Classes ``(n_points,)`` by a fitted model."""
        with unwarned():
            return np.asarray(model.predict(X), dtype=np.int64)


def seed_of(rng: np.random.Generator) -> int:
    """Draw a seed for a learner."""
    return int(rng.integers(2**31))


def _linear() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=300)
