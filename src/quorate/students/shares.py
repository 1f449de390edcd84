r"""What share of the teachers votes for each class, as a function of the point.

The first model is a softmax of a linear function,

.. math:: s_c(x) = \mathrm{softmax}_c(b + Wz),

of the coordinates :math:`z` of :class:`~quorate.data.feature_maps.PoolCoordinates`, in which a typical public point has
length one. Every entry of :math:`W` and :math:`b` has a normal prior of variance :math:`v`, which so says the same on
every data set: a class score varies by :math:`\sqrt{2v}` over it. What is fitted is the most probable
:math:`(W, b)`, the least of

.. math:: L(s(x_1), \dots, s(x_n)) + \frac{1}{2v} \left(\|W\|^2 + \|b\|^2\right),

where L is minus the log likelihood of what was released. Noisy votes are seen through :math:`N(0, \tau^2)` noise of
known standard deviation on every share, so that

.. math:: L = \frac{1}{2\tau^2} \sum_{i,c} (s_c(x_i) - y_{ic})^2.

Shares sum to one in the model, so what the shares :math:`y_i` of a point lack of one (teachers that abstain) changes
nothing: it is as if each class had an equal part of it. Everything here is post-processing of released values and
public points.

Shares teach any classifier about every public point, by weights (:func:`fit_on_vote_shares`).

Two other models have no linear form; their predictions are projected to the simplex, and the noise of a share is known.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from quorate.ambient import of_arrays
from quorate.arguments import real
from quorate.data.feature_maps.pool_coordinates import PoolCoordinates, PoolStandardizer, by_blocks
from quorate.data.rows import kind, take
from quorate.deferred import linalg, optimize, sparse, special
from quorate.errors import InvalidParameter
from quorate.students.declared import fit_student, takes_weights
from quorate.students.student import StudentData
from quorate.types import FloatArray, IntArray

PRIOR_VARIANCE = 1.5  # of each weight; a class score then has standard deviation 1.7 at a typical point
MAX_ITERATIONS = 300
ENOUGH = 2_048  # points that say how the loss curves
WIDEST = 1_024  # columns, beyond which that is not worked out

#: From shares ``(n, n_classes)`` to minus their log likelihood, and its slope ``(n, n_classes)``.
Loss: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True, slots=True, eq=False)
class VoteShares:
    """The fitted model: how points are measured, weights ``(n_classes, n_coordinates)`` and intercepts."""

    geometry: PoolCoordinates
    weights: FloatArray
    intercepts: FloatArray

    def __call__(self, X: Any) -> FloatArray:
        """Return the estimated share of votes for each class, ``(n_points, n_classes)``, in [0, 1]."""
        return by_blocks(self._shares, X)

    def _shares(self, X: Any) -> FloatArray:
        rows = self.geometry.project(X)
        return special.softmax(self.geometry.standard.scores(rows, self.weights, self.intercepts), axis=1)

    def classifier(self, rows: Any, classes: Any) -> Any:
        """Return the same model as a fitted Pipeline that ends in a logistic regression; `rows`: the pool it sees."""
        from sklearn.pipeline import Pipeline

        standard = self.geometry.standard
        scaled = self.weights / standard.scale
        last = logistic_of(scaled, self.intercepts - scaled @ standard.mean, classes)
        return Pipeline([*of_arrays(self.geometry.steps(rows)), ("shares", last)])


def logistic_of(weights: FloatArray, intercepts: FloatArray, classes: Any) -> Any:
    """Return the logistic regression with these scores ``(n_classes, n_features)``, as if it had been fitted."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression()
    fitted.classes_ = np.asarray(list(classes))
    fitted.n_features_in_ = weights.shape[1]
    fitted.n_iter_ = np.zeros(1, dtype=np.int32)
    binary = len(fitted.classes_) == 2  # where one score, the difference, is kept
    fitted.coef_, fitted.intercept_ = (
        (np.diff(weights, axis=0), np.diff(intercepts)) if binary else (weights, intercepts)
    )
    return fitted


def fit_vote_shares(X: Any, shares: FloatArray, *, noise_sd: float, geometry: PoolCoordinates) -> VoteShares:
    r"""Fit the model to noisy shares.

    `X`: the public points that were answered. `shares`: ``(n_queries, n_classes)``, unbiased, with noise; outside [0,
    1] now and then, NaN never. `noise_sd`: τ > 0, the standard deviation of the noise of one share, which is
    independent of that of any other. `geometry`: of all public points. Raises InvalidParameter if `shares` has not one
    finite row for each of X, or `noise_sd` is not > 0. Two shares :math:`1/2 \mp v` that carry one noise of standard
    deviation τ with opposite signs have equal residuals, and are told as independent shares with noise
    :math:`\sqrt2\,\tau`.
    """
    check_shares(X, shares)
    precision = 1.0 / real("noise_sd", noise_sd, above=0) ** 2

    def squares(estimated: FloatArray) -> tuple[float, FloatArray]:
        residual = estimated - shares
        return 0.5 * precision * float(np.sum(residual**2)), precision * residual

    return most_probable(X, squares, n_classes=shares.shape[1], geometry=geometry)


def check_shares(X: Any, shares: FloatArray) -> None:
    """Refuse shares that are not one finite row for each point."""
    if shares.ndim != 2 or len(shares) != X.shape[0] or not np.isfinite(shares).all():
        raise InvalidParameter("shares must have one finite row for each point; leave out queries without an answer")


def most_probable(X: Any, loss: Loss, *, n_classes: int, geometry: PoolCoordinates) -> VoteShares:
    """Return the most probable model, given minus the log likelihood of the shares at the rows of `X`."""
    rows, standard = geometry.project(X), geometry.standard

    def in_scores(theta: FloatArray) -> tuple[float, FloatArray]:
        estimated = special.softmax(standard.scores(rows, theta[:, 1:], theta[:, 0]), axis=1)
        value, slope = loss(estimated)
        return value, estimated * (slope - (slope * estimated).sum(axis=1, keepdims=True))

    nothing = np.zeros((n_classes, rows.shape[1] + 1))
    slopes_there = in_scores(nothing)[1]
    units = _even_units(rows, standard, float(np.mean(slopes_there**2)) if slopes_there.size else 0.0)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(n_classes, -1) @ units
        value, slopes = in_scores(theta)
        gradient = np.column_stack([slopes.sum(axis=0), standard.pull_back(rows, slopes)]) + theta / PRIOR_VARIANCE
        return value + 0.5 * float(np.sum(theta**2)) / PRIOR_VARIANCE, (gradient @ units.T).ravel()

    solution = optimize.minimize(
        objective, nothing.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITERATIONS, "maxcor": 20}
    )
    theta = solution.x.reshape(n_classes, -1) @ units
    return VoteShares(geometry, theta[:, 1:], theta[:, 0])


def _even_units(rows: Any, standard: PoolStandardizer, curvature: float) -> Any:
    r"""Return a change of units ``(width, width)`` of intercept and weights after which all directions curve alike.

    Near equal shares the loss curves in the weights of each class as :math:`A = c \sum_i z_i z_i^\top + I/v` does, with
    c the mean square of its slope in a score. In the units :math:`\theta = \phi L^{-1}` with :math:`A = LL^\top` that
    is the identity, and the descent takes a fourth to a tenth of the steps. No optimum moves, so that a part of the
    points says it well enough.
    """
    width = rows.shape[1] + 1
    if width > WIDEST or not rows.shape[0]:
        return sparse.identity(width, format="csr")
    some = take(rows, np.arange(0, rows.shape[0], -(-rows.shape[0] // ENOUGH)))
    dense = some.toarray() if kind(some) == "sparse" else some
    z = np.column_stack([np.ones(len(dense)), (np.asarray(dense, dtype=np.float64) - standard.mean) / standard.scale])
    curve = curvature * rows.shape[0] / len(z) * (z.T @ z) + np.eye(width) / PRIOR_VARIANCE
    return linalg.solve_triangular(linalg.cholesky(curve, lower=True), np.eye(width), lower=True)


def onto_simplex(rows: FloatArray) -> FloatArray:
    r"""Project each row ``(n, n_classes)`` onto the shares: at least 0, of sum one, at the least Euclidean distance.

    The projection is :math:`\max(y_c - t, 0)` with the one t for which it sums to one. So what a row lacks of one is
    shared equally.

    Duchi, Shalev-Shwartz, Singer and Chandra (2008), Figure 1.
    """
    descending = -np.sort(-rows, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    kept = np.sum(descending > excess, axis=1)
    shift = np.take_along_axis(excess, kept[:, None] - 1, axis=1)
    projected: FloatArray = np.maximum(rows - shift, 0.0)
    return projected


NO_WEIGHT = 1e-6  # a row with less than this says nothing, and costs the student time


def fit_on_vote_shares(estimator: Any, data: StudentData, shares: FloatArray, *, weights: bool = True) -> Any:
    """Fit the classifier on the whole public pool, asked or not, each point once for each class.

    `shares` ``(n_public, n_classes)`` in [0, 1] are what is believed about each point; a row of zeros is left out. With
    `weights` False, or where a part of the classifier would learn from labels without their weights
    (:func:`~quorate.students.declared.takes_weights`), each point stands once, with its largest class.
    """
    if weights and takes_weights(estimator):
        which, codes, row_weights = once_per_class(shares)
        weighted = {"weights": row_weights}
    else:
        which = np.flatnonzero(shares.max(axis=1) > NO_WEIGHT)
        codes, weighted = shares[which].argmax(axis=1), {}
    rows = data.pool if len(which) == len(shares) and np.all(np.diff(which) == 1) else take(data.pool, which)
    return fit_student(estimator, rows, codes, data.classes, seed=data.estimator_seed, **weighted)


def once_per_class(shares: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Row numbers, class codes and weights of a training set in which each point stands once for each class."""
    which, codes = np.nonzero(shares > NO_WEIGHT)
    return which, codes, shares[which, codes]


SHARPEST = 100.0  # factor on shares, beyond which a softmax of them is a step


@dataclass(frozen=True, slots=True, eq=False)
class ProcessShares(VoteShares):
    """The posterior mean: the geometry of the kernel, weights ``(n_classes, n_kernel_features)`` and intercepts."""

    def _shares(self, X: Any) -> FloatArray:
        return onto_simplex(self.mean(X))

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
