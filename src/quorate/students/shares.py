r"""What share of the teachers votes for each class, as a function of the point: learned from noisy votes.

A noisy count costs what its argmax costs, and says more: how far the teachers were apart. The noise is public, so
the right use of it is plain regression. The model is a softmax of a linear function,

.. math:: s_c(x) = \mathrm{softmax}_c(b + Wz), \qquad z = (x - \bar x)/r,

seen through :math:`N(0, \tau^2)` noise of known standard deviation :math:`\tau` on every share, with a normal prior
of variance :math:`v` on every entry of :math:`W` and :math:`b`. What is fitted is the most probable :math:`(W, b)`,
the least of

.. math:: \frac{1}{2\tau^2} \sum_{i,c} (s_c(x_i) - y_{ic})^2 + \frac{1}{2v} \left(\|W\|^2 + \|b\|^2\right).

:class:`Standard` makes :math:`z` of length one at a typical public point, so that the prior says the same on every
data set: a class score varies by :math:`\sqrt{2v}` over it. Shares sum to one in the model, so what the shares
:math:`y_i` of a point lack of one (teachers that abstain) changes nothing: it is as if each class had an equal part
of it. Everything here is post-processing of released values and public points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.students.standard import Standard
from quorate.types import FloatArray

PRIOR_VARIANCE = 1.5  # of each weight; a class score then has standard deviation 1.7 at a typical point
MAX_ITERATIONS = 300


@dataclass(frozen=True, slots=True, eq=False)
class VoteShares:
    """The fitted model.

    Attributes
    ----------
    standard : Standard
        How points are measured.
    weights, intercepts : FloatArray
        ``(n_classes, n_features)`` and ``(n_classes,)``.

    Examples
    --------
    >>> model = VoteShares(Standard.of(np.array([[-1.0], [1.0]])), np.array([[-1.0], [1.0]]), np.zeros(2))
    >>> model(np.array([[0.0], [9.0]])).round(2).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """

    standard: Standard
    weights: FloatArray
    intercepts: FloatArray

    def __call__(self, X: Any) -> FloatArray:
        """Return the estimated share of votes for each class, ``(n_points, n_classes)``, in [0, 1]."""
        return softmax(self.standard.scores(X, self.weights, self.intercepts), axis=1)


def fit_vote_shares(X: Any, shares: FloatArray, *, noise_sd: float, pool: Any) -> VoteShares:
    r"""Fit the model to noisy shares.

    Parameters
    ----------
    X : (n_queries, n_features) array or sparse matrix
        The public points that were answered.
    shares : FloatArray
        ``(n_queries, n_classes)``, unbiased, with noise; outside [0, 1] now and then, NaN never.
    noise_sd : float
        τ > 0, the standard deviation of the noise of one share, which is independent of that of any other.
    pool : (n_public, n_features) array or sparse matrix
        All public points; used for their mean and spread alone.

    Returns
    -------
    VoteShares

    Raises
    ------
    InvalidParameter
        If `shares` has not one finite row for each of X, or `noise_sd` is not > 0.

    Notes
    -----
    Two shares :math:`1/2 \mp v` that carry one noise of standard deviation τ with opposite signs have equal
    residuals, and are told as independent shares with noise :math:`\sqrt2\,\tau`.

    Examples
    --------
    >>> X = np.array([[-1.0], [0.0], [1.0]])
    >>> noisy = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    >>> fit_vote_shares(X, noisy, noise_sd=0.1, pool=X)(X).round(1).tolist()
    [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    """
    if shares.ndim != 2 or len(shares) != X.shape[0] or not np.isfinite(shares).all():
        raise InvalidParameter("shares must have one finite row for each point; leave out queries without an answer")
    precision = 1.0 / real("noise_sd", noise_sd, above=0) ** 2
    n_features, n_classes = X.shape[1], shares.shape[1]
    standard = Standard.of(pool)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(n_classes, n_features + 1)
        estimated = softmax(standard.scores(X, theta[:, 1:], theta[:, 0]), axis=1)
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
