r"""What share of the teachers votes for each class, as a function of the point: learned from noisy votes.

A noisy count costs what its argmax costs, and says more: how far the teachers were apart. The noise is public, so
the right use of it is plain regression. The model is a softmax of a linear function,

.. math:: s_c(x) = \mathrm{softmax}_c(b + Wz), \qquad z = (x - \bar x)/r,

seen through :math:`N(0, \tau^2)` noise of known standard deviation :math:`\tau = \sigma/K` on every share, with a
normal prior of variance :math:`v = \pi^2/6` on every entry of :math:`W` and :math:`b`. What is fitted is the most
probable :math:`(W, b)`. Here :math:`\bar x` is the mean of the public pool and :math:`r` its root mean squared distance
from the mean, so that a typical public point has length one and the prior says the same on every data set: what
separates two classes there has variance :math:`2v = \pi^2/3`, that of the standard logistic law, whose sigmoid is
uniform. Everything here is post-processing of released values and public points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from quorate.data import kind
from quorate.types import FloatArray

PRIOR_VARIANCE = np.pi**2 / 6
MAX_ITERATIONS = 300


@dataclass(frozen=True, slots=True)
class Standard:
    """Affine change of public points to mean zero and typical length one.

    Columns of 0 and 1 keep their unit, since a rare indicator is rare and not small; other dense columns are put in
    units of their public standard deviation first. Sparse columns are neither scaled nor centred before the product
    with the weights.
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, pool: Any) -> Standard:
        """Read mean and scale off the public pool ``(n_public, n_features)``."""
        mean = np.asarray(pool.mean(axis=0), dtype=np.float64).ravel()
        if kind(pool) == "sparse":
            squares = np.asarray(pool.multiply(pool).mean(axis=0), dtype=np.float64).ravel()
            variance, scale = np.maximum(squares - mean**2, 0.0), np.ones_like(mean)
        else:
            variance = np.asarray(pool, dtype=np.float64).var(axis=0)
            indicator = ((pool == 0) | (pool == 1)).all(axis=0)
            scale = np.where(indicator | (variance == 0), 1.0, np.sqrt(variance))
        length = np.sqrt(np.sum(variance / scale**2))
        return cls(mean, scale * (length if length > 0 else 1.0))

    def scores(self, X: Any, weights: FloatArray, intercepts: FloatArray) -> FloatArray:
        """Return :math:`b + Wz` for every row, ``(n_rows, n_outputs)``, without centring a sparse matrix."""
        scaled = weights / self.scale
        return np.asarray(X @ scaled.T) - self.mean @ scaled.T + intercepts

    def pull_back(self, X: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient in the weights, given that in the scores, ``(n_outputs, n_features)``."""
        return (np.asarray((X.T @ slopes).T) - np.outer(slopes.sum(axis=0), self.mean)) / self.scale


@dataclass(frozen=True, slots=True)
class VoteShares:
    """The fitted model.

    Attributes
    ----------
    standard : Standard
        How points are measured.
    weights, intercepts : FloatArray
        ``(n_classes, n_features)`` and ``(n_classes,)``.
    """

    standard: Standard
    weights: FloatArray
    intercepts: FloatArray

    def __call__(self, X: Any) -> FloatArray:
        """Return the estimated share of votes for each class, ``(n_points, n_classes)``, in [0, 1]."""
        return np.exp(log_softmax(self.standard.scores(X, self.weights, self.intercepts), axis=1))


def fit_vote_shares(X: Any, shares: FloatArray, *, noise_sd: float, pool: Any) -> VoteShares:
    r"""Fit the model to noisy shares.

    Parameters
    ----------
    X : (n_queries, n_features) array or sparse matrix
        The public points that were answered.
    shares : FloatArray
        ``(n_queries, n_classes)``, unbiased, with noise; outside [0, 1] now and then.
    noise_sd : float
        :math:`\sigma/K`, the standard deviation of one share's noise, > 0.
    pool : (n_public, n_features) array or sparse matrix
        All public points; used for their mean and spread alone.

    Returns
    -------
    VoteShares

    Notes
    -----
    In the binary form one number :math:`v` is released and the two shares :math:`1/2 \mp v/K` carry the same noise
    with opposite signs. Their squared residuals are equal, so each counts half.
    """
    n_features, n_classes = X.shape[1], shares.shape[1]
    standard = Standard.of(pool)
    # Only differences of scores matter: the weights of two classes are kept opposite by the prior itself.
    precision = (0.5 if n_classes == 2 else 1.0) / noise_sd**2

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(n_classes, n_features + 1)
        estimated = np.exp(log_softmax(standard.scores(X, theta[:, 1:], theta[:, 0]), axis=1))
        residual = estimated - shares
        slope = precision * residual
        slopes = estimated * (slope - (slope * estimated).sum(axis=1, keepdims=True))
        gradient = np.column_stack([slopes.sum(axis=0), standard.pull_back(X, slopes)]) + theta / PRIOR_VARIANCE
        value = 0.5 * precision * np.sum(residual**2) + 0.5 * np.sum(theta**2) / PRIOR_VARIANCE
        return float(value), gradient.ravel()

    start = np.zeros(n_classes * (n_features + 1))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITERATIONS, "maxcor": 20})
    theta = found.x.reshape(n_classes, n_features + 1)
    return VoteShares(standard, theta[:, 1:], theta[:, 0])
