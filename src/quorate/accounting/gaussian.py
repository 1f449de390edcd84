r"""The exact trade-off of Gaussian noise (Balle and Wang 2018, Thm 8; Dong, Roth, Su 2022: μ-GDP).

:math:`\ell` answers of sensitivity Δ and noise σ are together one Gaussian mechanism with
:math:`\mu = \Delta\sqrt{\ell}/\sigma`, whatever the order and however the queries were chosen, and

.. math:: \delta(\varepsilon; \mu) = \Phi(\mu/2 - \varepsilon/\mu) - e^{\varepsilon}\,\Phi(-\mu/2 - \varepsilon/\mu).

**Discrete Gaussian noise on a fine grid** is priced as the continuous Gaussian noise that it is next to. Sums of real
vectors are released on a grid: as integers, with discrete Gaussian noise of σ steps on each. The Rényi price of
discrete noise is exact at every order (Canonne, Kamath and Steinke 2020, Theorem 14) and loses a few per cent when it
is turned into (ε, δ). Continuous noise needs no such turn, and at large σ the two are all but the same.

**One number.** For an integer s, ``s + round(N)`` with :math:`N \sim \mathcal N(0, \sigma^2)` equals ``round(s +
N)``: it is continuous noise followed by a function, hence as private as that. Let q be the law of ``round(N)`` and p
the discrete Gaussian's. With :math:`\varphi_\sigma` the density of N, Taylor's theorem gives on each cell

.. math:: q(x) = \varphi_\sigma(x) + \tfrac1{24}\varphi_\sigma''(x) + r(x), \qquad
          |r(x)| \le \tfrac1{1920} \max_{|y - x| \le 1/2} |\varphi_\sigma''''(y)|,

while :math:`p(x) = \varphi_\sigma(x)(1 + \eta)` with :math:`|\eta| < 3 e^{-2\pi^2\sigma^2}` by Poisson summation. So
their total variation distance is :math:`\frac1{48}\sum_x |\varphi_\sigma''(x)|` but for terms of order
:math:`\sigma^{-4}`, and

.. math:: \tfrac1{48}\,\mathrm E\,|u^2 - 1|\,\sigma^{-2} = \tfrac{4\varphi(1)}{48}\,\sigma^{-2}
          = \tfrac{\varphi(1)}{12}\,\sigma^{-2} \approx 0.020164\,\sigma^{-2}, \qquad u \sim \mathcal N(0, 1).

The midpoint rule turns the sum into the integral with an error below :math:`\frac18` of the variation of the summand's
derivative, which is at most :math:`10\,\sigma^{-4}`, and :math:`\frac1{1920}\sum \max |\varphi_\sigma''''|` is at most
:math:`0.01\,\sigma^{-4}`. For :math:`\sigma \ge 2^{10}` all of that together is below :math:`10^{-6}\,\sigma^{-2}`, so
:math:`\tau = 0.0202\,\sigma^{-2}` bounds the distance, and :math:`2^{-190}` beside it what the sampler cuts off.

**A run.** Whatever was released before, the laws of a round of N numbers differ by at most :math:`N\tau`, for either
data set; transcripts of all rounds differ by at most the sum of these, D. If the run with continuous noise is
:math:`(\varepsilon, \delta)`-DP, then for every event E

.. math:: P(E) \le P^*(E) + D \le e^\varepsilon P'^*(E) + \delta + D \le e^\varepsilon P'(E) + \delta + (1 +
e^\varepsilon) D.

So the price is that of the ideal noise, where :math:`\mu^2` adds up, with :math:`(1 + e^\varepsilon) D` added once to
δ.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log, pi, sqrt
from typing import Any

import numpy as np

from quorate.accounting.events import GridGaussian
from quorate.accounting.outward import least_epsilon
from quorate.deferred import optimize, special
from quorate.types import FloatArray

_ROUND_OFF = 2.0**-50  # of elementary functions and log_ndtr, relative
_ERFCX = 2.0**-47  # of erfcx, relative; measured up to 2^-50


def log_delta(epsilon: FloatArray | float, mu: float) -> FloatArray:
    r"""Return :math:`\log\delta(\varepsilon;\mu)`, rounded up, in the shape of `epsilon`; below 0 the curve is read in
    the other direction.

    With Mills' ratio :math:`R(x) = \Phi(-x)/\varphi(x)` and :math:`x = \varepsilon/\mu - \mu/2`, it is
    :math:`\varphi(x)\,(R(x) - R(x+\mu))`: the two large numbers of the formula above never meet.
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


DISTANCE = 0.0202  # times sigma^-2: total variation between the two kinds of noise, for one number
SAMPLER = 2.0**-190  # what the sampler may be off by, for one number
_STEPS = 50


def distance_of(event: GridGaussian) -> float:
    """Return the total variation between one release and the ideal one, rounded up."""
    return event.numbers * (DISTANCE / event.sigma / event.sigma + SAMPLER) * (1 + 2.0**-50)


def lost_delta(distance: float, epsilon: float) -> float:
    r"""Return :math:`(1 + e^\varepsilon) D`, rounded up: what δ loses to the grid."""
    return (1 + exp(min(epsilon, 700.0))) * distance * (1 + 2.0**-50) if distance else 0.0


def least_epsilon_with(ideal: Callable[[float], float], distance: float, delta: float) -> float:
    """Return the least ε, up to rounding, with ``ideal(delta - lost_delta(distance, ε)) <= ε``, checked; infinite for
    none. `ideal`: ε of the ideal noise by δ in [0, 1), never below the truth. It is not increasing, so the iteration
    climbs.
    """
    epsilon = ideal(delta)
    for _ in range(_STEPS):
        rest = (delta - lost_delta(distance, epsilon)) * (1 - 2.0**-50)
        if not rest > 0:
            return inf
        needed = ideal(rest)
        if needed <= epsilon:
            return epsilon
        epsilon = needed * (1 + 2.0**-45)
    return inf
