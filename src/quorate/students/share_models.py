r"""What share of the teachers votes for each class, without a linear form: a Gaussian process, and boosted trees.

Both predictions are projected to the simplex, and in both the noise of a share is known.

**Gaussian process.** Each class's share is :math:`s_c(x) = 1/C + f_c(x)`, where :math:`f_c` has a Gaussian process
prior of covariance

.. math:: V(x, x') = v\,(1 + k(x, x')), \qquad v = \tfrac1C (1 - \tfrac1C),

with the kernel k of :meth:`~quorate.data.feature_maps.PoolCoordinates.kernel`; v is the variance of a share
where every vote is unanimous, and 1 stands for the class's share overall. The noise of a share is :math:`N(0, \tau^2)`
with τ known, so nothing is left to be tuned, and the posterior mean is

.. math:: \tfrac1C + V_{xq} (V_{qq} + \tau^2 I)^{-1} (y_c - \tfrac1C).

This is kernel ridge regression with the ridge :math:`\tau^2/v`.

**Trees.** For each class, trees are boosted for the squared error of its noisy shares. Noise of mean zero averages out
in a leaf, of which none has fewer than 50 points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.ambient import of_arrays
from quorate.arguments import real
from quorate.data.feature_maps.pool_coordinates import PoolCoordinates, by_blocks
from quorate.data.rows import kind, take
from quorate.deferred import optimize, special
from quorate.students.shares import check_shares, logistic_of, once_per_class, onto_simplex
from quorate.types import FloatArray

SHARPEST = 100.0  # factor on shares, beyond which a softmax of them is a step


@dataclass(frozen=True, slots=True, eq=False)
class ProcessShares:
    """The posterior mean.

    `geometry`: of the kernel. `weights`, `intercepts`: ``(n_classes, n_kernel_features)`` and ``(n_classes,)``.
    """

    geometry: PoolCoordinates
    weights: FloatArray
    intercepts: FloatArray

    def __call__(self, X: Any) -> FloatArray:
        """Return the estimated share of votes for each class, ``(n_points, n_classes)``, in [0, 1]."""
        return by_blocks(lambda rows: onto_simplex(self.mean(rows)), X)

    def mean(self, X: Any) -> FloatArray:
        """Return the posterior mean, ``(n_points, n_classes)``, which may lie outside of [0, 1]."""
        mean: FloatArray = self.geometry.project(X) @ self.weights.T + self.intercepts
        return mean

    def classifier(self, rows: Any, classes: Any) -> Any:
        """Return a fitted scikit-learn Pipeline with the same predictions; its probabilities are close to the shares.

        They are a softmax of the posterior mean, times the factor that brings them nearest to the shares on the pool.

        `rows`: the pool as the classifier is to see it: what the geometry was read off, or a frame of it. `classes`:
        the declared classes.
        """
        from sklearn.pipeline import Pipeline

        steps = self.geometry.steps(rows)
        means = Pipeline(steps).transform(rows) @ self.weights.T + self.intercepts
        shares = onto_simplex(means)

        def distance(factor: float) -> float:
            return float(np.sum((special.softmax(factor * means, axis=1) - shares) ** 2))

        factor = float(optimize.minimize_scalar(distance, bounds=(0, SHARPEST), method="bounded").x)
        last = logistic_of(factor * self.weights, factor * self.intercepts, classes)
        return Pipeline([*of_arrays(steps), ("shares", last)])


def fit_process_shares(X: Any, shares: FloatArray, *, noise_sd: float, geometry: PoolCoordinates) -> ProcessShares:
    r"""Return the posterior mean given noisy shares.

    `X`: the public points that were answered. `shares`: ``(n_queries, n_classes)``, unbiased, with noise; NaN never.
    `noise_sd`: τ > 0, the standard deviation of the noise of each share. `geometry`: of the kernel. Raises
    InvalidParameter if `shares` has not one finite row for each of X, or `noise_sd` is not > 0. Each class is a
    regression of its own. Two shares :math:`1/2 \mp v` with one noise between them are two regressions whose answers
    are each other's mirror image, so here τ is the noise of one share in either form.
    """
    check_shares(X, shares)
    fair = 1 / shares.shape[1]
    ridge = real("noise_sd", noise_sd, above=0) ** 2 / (fair * (1 - fair))
    features = geometry.project(X)
    rows = np.column_stack([np.ones(len(features)), features])
    weights = np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T @ (shares - fair))
    return ProcessShares(geometry, weights[1:].T, fair + weights[0])


LEAF = 50  # points, over which the noise of a share averages out
TREES = 100
LEAVES = 8


@dataclass(frozen=True, slots=True, eq=False)
class TreeShares:
    """The fitted trees.

    `geometry`: what the trees see: the points, or the leading directions of a wide pool. `regressors`: one for each
    class.
    """

    geometry: PoolCoordinates
    regressors: tuple[Any, ...]

    def __call__(self, X: Any) -> FloatArray:
        """Return the estimated share of votes for each class, ``(n_points, n_classes)``, in [0, 1]."""
        return by_blocks(lambda rows: onto_simplex(self._mean(dense(self.geometry.project(rows)))), X)

    def classifier(self, rows: Any, classes: Any) -> Any:
        """Return a fitted scikit-learn Pipeline that ends in a forest, taught these shares on the whole pool.

        As of any forest, whoever loads it has to trust ``sklearn.tree._tree.Tree``, a part of scikit-learn.

        `rows`: the pool as the classifier is to see it: what the geometry was read off, or a frame of it. `classes`:
        the declared classes.
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
        return np.column_stack([regressor.predict(points) for regressor in self.regressors])


_SETTINGS: dict[str, Any] = {
    "max_iter": TREES, "min_samples_leaf": LEAF, "max_leaf_nodes": LEAVES, "early_stopping": False, "random_state": 0,
}  # fmt: skip


def dense(points: Any) -> FloatArray:
    """Return points as trees read them."""
    return np.asarray(points.toarray() if kind(points) == "sparse" else points, dtype=np.float64)


def fit_tree_shares(X: Any, shares: FloatArray, *, geometry: PoolCoordinates) -> TreeShares:
    """Fit the trees to noisy shares.

    `X`: the public points that were answered. `shares`: ``(n_queries, n_classes)``, unbiased, with noise; NaN never.
    `geometry`: of all public points. Raises InvalidParameter if `shares` has not one finite row for each of X.

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
    fitted = (HistGradientBoostingRegressor(**_SETTINGS).fit(points, of_class) for of_class in shares.T)
    return TreeShares(geometry, tuple(fitted))
