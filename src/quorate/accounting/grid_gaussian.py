r"""Discrete Gaussian noise on a fine grid, priced as the continuous Gaussian noise that it is next to.

Sums of real vectors are released on a grid: as integers, with discrete Gaussian noise of σ steps on each. The Rényi
price of discrete noise is exact at every order (Canonne, Kamath and Steinke 2020, Theorem 14) and loses a few per cent
when it is turned into (ε, δ). Continuous noise needs no such turn, and at large σ the two are all but the same.

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
from math import exp, inf

from quorate.accounting.events import GridGaussian

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
    r"""Return an ε with ``ideal(delta - lost_delta(distance, ε)) <= ε``, the least up to rounding; infinite for none.

    `ideal`: ε of the ideal noise as a function of δ; not increasing, never below the truth. `distance`: d ≥ 0. `delta`:
    δ in [0, 1). The iteration starts below the answer and climbs, since ``ideal`` grows as its δ shrinks. Whatever it
    ends on is checked, so that rounding cannot make it too small.
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
