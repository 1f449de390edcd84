r"""What share of the teachers votes for each class: boosted trees on noisy shares.

For each class, trees are boosted for the squared error of its noisy shares. Noise of mean zero averages out in a leaf,
of which none has fewer than 50 points. What comes out is projected to the simplex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.ambient import of_arrays
from quorate.data.feature_maps.pool_coordinates import PoolCoordinates, by_blocks
from quorate.data.rows import kind, take
from quorate.students.shares import check_shares
from quorate.students.simplex import onto_simplex
from quorate.students.whole_pool import once_per_class
from quorate.types import FloatArray

LEAF = 50  # points, over which the noise of a share averages out
TREES = 100
LEAVES = 8


@dataclass(frozen=True, slots=True, eq=False)
class TreeShares:
    """The fitted trees.

    Attributes
    ----------
    geometry : PoolCoordinates
        What the trees see: the points, or the leading directions of a wide pool.
    regressors : tuple of estimators
        One for each class.
    """

    geometry: PoolCoordinates
    regressors: tuple[Any, ...]

    def __call__(self, X: Any) -> FloatArray:
        """Return the estimated share of votes for each class, ``(n_points, n_classes)``, in [0, 1]."""
        return by_blocks(lambda rows: onto_simplex(self._mean(dense(self.geometry.project(rows)))), X)

    def classifier(self, rows: Any, classes: Any) -> Any:
        """Return a fitted scikit-learn Pipeline that ends in a forest, taught these shares on the whole pool.

        As of any forest, whoever loads it has to trust ``sklearn.tree._tree.Tree``, a part of scikit-learn.

        Parameters
        ----------
        rows : (n_public, n_features)
            The pool as the classifier is to see it: what the geometry was read off, or a frame of it.
        classes : sequence
            The declared classes.
        """
        from sklearn.compose import ColumnTransformer
        from sklearn.ensemble import ExtraTreesClassifier
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import StandardScaler

        steps = self.geometry.steps(rows)
        if kind(Pipeline(steps).transform(take(rows, np.array([0])))) == "sparse":
            every = [("dense", StandardScaler(with_mean=False, with_std=False), list(range(rows.shape[1])))]
            steps.append(("dense", ColumnTransformer(every, sparse_threshold=0.0).fit(rows)))
        points = Pipeline(steps).transform(rows)
        which, codes, weights = once_per_class(onto_simplex(self._mean(points)))
        last = ExtraTreesClassifier(random_state=0)  # of all trees, a forest asks skops to trust the least
        last.fit(points[which], np.asarray(list(classes))[codes], sample_weight=weights)
        return Pipeline([*of_arrays(steps), ("shares", last)])

    def _mean(self, points: FloatArray) -> FloatArray:
        return np.column_stack([each.predict(points) for each in self.regressors])


_SETTINGS: dict[str, Any] = {
    "max_iter": TREES, "min_samples_leaf": LEAF, "max_leaf_nodes": LEAVES, "early_stopping": False, "random_state": 0,
}  # fmt: skip


def dense(points: Any) -> FloatArray:
    """Return points as trees read them."""
    return np.asarray(points.toarray() if kind(points) == "sparse" else points, dtype=np.float64)


def fit_tree_shares(X: Any, shares: FloatArray, *, geometry: PoolCoordinates) -> TreeShares:
    """Fit the trees to noisy shares.

    Parameters
    ----------
    X : (n_queries, n_features) array or sparse matrix
        The public points that were answered.
    shares : FloatArray
        ``(n_queries, n_classes)``, unbiased, with noise; NaN never.
    geometry : PoolCoordinates
        Of all public points.

    Raises
    ------
    InvalidParameter
        If `shares` has not one finite row for each of X.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> inside = (np.abs(X) < 0.5).astype(float)
    >>> model = fit_tree_shares(X, np.hstack([1 - inside, inside]), geometry=PoolCoordinates.of(X))
    >>> model(np.array([[-0.9], [0.0], [0.9]])).round(1).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    check_shares(X, shares)
    points = dense(geometry.project(X))
    fitted = (HistGradientBoostingRegressor(**_SETTINGS).fit(points, each) for each in shares.T)
    return TreeShares(geometry, tuple(fitted))
