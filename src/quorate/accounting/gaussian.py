r"""The exact trade-off of Gaussian noise (Balle and Wang 2018, Thm 8; Dong, Roth, Su 2022: μ-GDP).

:math:`\ell` answers of sensitivity Δ and noise σ are together one Gaussian mechanism with
:math:`\mu = \Delta\sqrt{\ell}/\sigma`, whatever the order and however the queries were chosen, and

.. math:: \delta(\varepsilon; \mu) = \Phi(\mu/2 - \varepsilon/\mu) - e^{\varepsilon}\,\Phi(-\mu/2 - \varepsilon/\mu).
"""

from __future__ import annotations

from math import exp, inf, log, pi, sqrt
from typing import Any

import numpy as np

from quorate.accounting.inversion import least_epsilon
from quorate.deferred import optimize, special
from quorate.types import FloatArray

_ROUND_OFF = 2.0**-50  # of elementary functions and log_ndtr, relative
_ERFCX = 2.0**-47  # of erfcx, relative; measured up to 2^-50


def log_delta(epsilon: FloatArray | float, mu: float) -> FloatArray:
    r"""Return :math:`\log\delta(\varepsilon;\mu)`, rounded up, for ε of any sign.

    `epsilon`: ε in nats; negative values are the curve read in the other direction. `mu`: μ > 0. Returns: of the shape
    of `epsilon`; each at most 0. With Mills' ratio :math:`R(x) = \Phi(-x)/\varphi(x)` and :math:`e^\varepsilon\varphi(x
    + \mu) = \varphi(x)` for :math:`x = \varepsilon/\mu - \mu/2`, the curve is :math:`\varphi(x)\,(R(x) - R(x+\mu))`:
    the two large numbers of the formula above never meet.
    """
    eps = np.asarray(epsilon, dtype=np.float64)
    x = eps / mu - mu / 2
    near = np.maximum(x, -20.0)  # beyond, R would overflow
    ratio = sqrt(pi / 2) * special.erfcx(near / sqrt(2))
    difference = ratio - sqrt(pi / 2) * special.erfcx((near + mu) / sqrt(2))
    # the arguments of R are rounded too, and for x < 0 the slope of R is at most (|x| + x²) R
    left = np.maximum(-near, 0.0)
    error = (_ERFCX + _ROUND_OFF * left * (1 + left)) * ratio
    with np.errstate(divide="ignore"):
        tail = -near * near / 2 - log(2 * pi) / 2 + np.log(np.maximum(difference, 0.0) + error)
    if np.any(x < -20.0):
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            gap = np.minimum(eps + special.log_ndtr(-x - mu) - special.log_ndtr(-x), 0.0)
            direct = special.log_ndtr(-x) + np.log(-np.expm1(gap))
        tail = np.where(x < -20.0, direct, tail)
    # x is known to a few units in the last place of its two terms; the logarithm moves by at most |x| + 1.3 times that
    blur = _ROUND_OFF * (4 + np.maximum(np.abs(near), 1.0) * (np.abs(eps) / mu + mu))
    result: FloatArray = np.minimum(np.asarray(tail + blur), 0.0)
    return result


def delta_of_gaussian(epsilon: float, mu: float) -> float:
    """Return δ at ε for total sensitivity-to-noise ratio μ, rounded up."""
    return 0.0 if mu == 0 else exp(float(log_delta(epsilon, mu)))


def epsilon_of_gaussian(delta: float, mu: float) -> float:
    """Return the least ε at δ for total sensitivity-to-noise ratio μ, rounded up; infinite at δ = 0."""
    if mu == 0:
        return 0.0
    if delta <= 0:
        return inf
    return least_epsilon(lambda epsilon: float(log_delta(epsilon, mu)), delta, start=mu * mu / 2 + mu)


def mu_of_gaussian(epsilon: float, delta: float) -> float:
    """Return the largest μ that is (ε, δ)-DP, rounded down."""
    if delta >= 1:
        return inf
    target = log(delta) * (1 + 2.0**-52)  # a negative number: rounded down

    def excess(mu: float) -> float:
        return max(float(log_delta(epsilon, mu)) - target, -1e4)

    low, high = 1e-12, 1.0
    while excess(high) < 0:
        high *= 2
    if excess(low) > 0:
        return 0.0
    root: Any = optimize.brentq(excess, low, high, xtol=1e-15, rtol=1e-14)
    mu, step = float(root), 2.0**-50
    while excess(mu) > 0:
        mu, step = mu * (1 - step), 2 * step
    return mu
