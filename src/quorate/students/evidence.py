r"""The student of public coordinates: a vote share linear in them, shrunk by the known noise, in closed form.

With u the coordinates of a point, of length one, and :math:`e_j` the effect of a direction (its mean square over the
pool, in (0, 1]), the share of class c is :math:`1/C + \gamma_c^T u` with :math:`\gamma_{cj} \sim N(0, v e_j)`. Noisy
shares are seen through :math:`N(0, \tau^2)` noise of known standard deviation. With :math:`u_i \sqrt e = U S V^T` over
the points that were answered, the data enter by :math:`q_c = U^T (y_c - 1/C)` alone, v is the most likely one,

.. math:: v = \arg\max \sum_{c, j} \log N(q_{cj};\, 0,\, v s_j^2 + \tau^2),

one for all classes, and :math:`\gamma_c = \sqrt e\, V\, \frac{v s}{v s^2 + \tau^2}\, q_c`. One decomposition, and
nothing to tune: with much noise v is small, and the share is everywhere about 1/C.

Where teachers of two classes are sure, shares bend: :math:`\mathrm{logistic}(4 \gamma^T u)`, which has the same slope
at a half, with half of that variance and the most likely :math:`\gamma`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.arguments import real
from quorate.deferred import optimize, special
from quorate.students.shares import check_shares, logistic_of
from quorate.students.student import LinearPrior
from quorate.types import FloatArray

_LOG_VARIANCES = (-14.0, 10.0)  # of γ along a direction of effect 1


def fit_linear_shares(
    u: FloatArray, shares: FloatArray, *, noise_sd: float, effects: FloatArray, bends: bool = False
) -> FloatArray:
    r"""Return γ, ``(n_classes, n_directions)``.

    `u`: the public points that were answered, ``(n_queries, n_directions)``. `shares`: ``(n_queries, n_classes)``,
    unbiased, with noise; NaN never. `noise_sd`: τ > 0. `effects`: e, ``(n_directions,)``. `bends`: whether shares of
    two classes are logistic functions. Raises InvalidParameter if `shares` has not one finite row for each point, or
    `noise_sd` is not > 0.
    """
    check_shares(u, shares)
    noise = real("noise_sd", noise_sd, above=0) ** 2
    scaled = u * np.sqrt(effects)
    weights, v = _most_likely(scaled, shares - 1 / shares.shape[1], noise)
    if bends:
        weights = _bent(scaled, shares[:, 1], weights[:, 1], variance=v / 2, noise=noise)
    return np.asarray(weights.T * np.sqrt(effects))


def fit_linear_numbers(seen: FloatArray, means: FloatArray, *, noise_sd: float, effects: FloatArray) -> FloatArray:
    r"""Return γ, ``(n_directions,)``, of a number that is linear in coordinates: least squares that knows its noise.

    `seen`: how a teacher's number follows from γ at each point that was asked, ``(n_queries, n_directions)``. `means`:
    the noisy means of the teachers' numbers, ``(n_queries,)``, where 0 is the middle of the range. `noise_sd`: τ > 0,
    the standard deviation of their noise. `effects`: e, so that :math:`\gamma_j \sim N(0, v e_j)`.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(400, 2))
    >>> gamma = fit_linear_numbers(points, points @ [0.5, 0.0], noise_sd=0.01, effects=np.ones(2))
    >>> np.round(gamma, 2).tolist()
    [0.5, 0.0]
    """
    scaled = seen * np.sqrt(effects)
    weights, _ = _most_likely(scaled, means[:, None], real("noise_sd", noise_sd, above=0) ** 2)
    return np.asarray(weights[:, 0] * np.sqrt(effects))


def _most_likely(scaled: FloatArray, values: FloatArray, noise: float) -> tuple[FloatArray, float]:
    """Return weights ``(n_directions, n_outputs)`` by the most likely variance, and that variance.

    `values`: ``(n_queries, n_outputs)``, less what is expected without weights. `noise`: the variance of each.
    """
    left, lengths, right = np.linalg.svd(scaled, full_matrices=False)
    q = left.T @ values
    squares, of_outputs = lengths**2, np.sum(q**2, axis=1)

    def cost(log_variance: float) -> float:
        spread = np.exp(log_variance) * squares + noise
        return float(np.sum(values.shape[1] * np.log(spread) + of_outputs / spread))

    v = float(np.exp(optimize.minimize_scalar(cost, bounds=_LOG_VARIANCES, method="bounded").x))
    gain = v * lengths / (v * squares + noise)
    return np.asarray((right.T * gain) @ q), v


def _bent(scaled: FloatArray, share: FloatArray, start: FloatArray, *, variance: float, noise: float) -> FloatArray:
    """Return the most likely weights of both classes, ``(n_directions, 2)``, of shares that are logistic functions."""

    def cost(weights: FloatArray) -> tuple[float, FloatArray]:
        expected = special.expit(4 * scaled @ weights)
        residual = expected - share
        slope = 4 * scaled.T @ (residual * expected * (1 - expected)) / noise + weights / variance
        return 0.5 * float(residual @ residual / noise + weights @ weights / variance), slope

    weights = optimize.minimize(cost, start, jac=True, method="L-BFGS-B").x
    return np.column_stack([-weights, weights])


def linear_share_student(
    u: FloatArray, shares: FloatArray, prior: LinearPrior, *, noise_sd: float, classes: Any
) -> Any:
    """Return the student as a fitted logistic regression of coordinates."""
    linear = fit_linear_shares(u, shares, noise_sd=noise_sd, effects=prior.effects, bends=prior.bends)
    weights = prior.sharpness * linear
    return logistic_of(weights, np.zeros(len(weights)), classes)
