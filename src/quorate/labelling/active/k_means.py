"""Ask one point for each cluster of the public pool, and let the cluster share its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.ambient import unwarned
from quorate.labelling.active.erm import seed_of
from quorate.labelling.active.strategy import History, Strategy
from quorate.stored_names import stored_as
from quorate.types import IntArray


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

    def _centres(self, pool: Any, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """The point nearest to each centre, among its cluster's own, ``(n_clusters,)``; the cluster of each point."""
        from sklearn.cluster import KMeans as Clusters

        with unwarned():  # fewer clusters than asked for, where points coincide
            found = Clusters(min(self.n, pool.shape[0]), n_init=1, random_state=seed_of(rng)).fit(pool)
        distances = found.transform(pool)
        names, clusters = np.unique(found.labels_, return_inverse=True)
        centres = []
        for name in names:
            members = np.flatnonzero(found.labels_ == name)
            centres.append(members[np.argmin(distances[members, name])])
        return np.array(centres, dtype=np.int64), clusters.astype(np.int64)
