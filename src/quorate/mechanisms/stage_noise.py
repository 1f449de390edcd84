r"""The noise of one sparse-vector stage: what it costs, what it lets slip, and how it is calibrated.

A stage has a noisy threshold; it answers for free every query whose noisy distance to instability is above
it, and ends at the first that is not. T stages make a run. Three calibrations:

``"tight"``
    One-sided geometric noise, in the direction that suits "above is free, below costs":
    :math:`\rho \sim \mathrm{Geom}(\lambda_t)` a stage, :math:`\nu \sim \mathrm{Geom}(\lambda_q)` a query, both on 0, 1,
    2, …; a query passes iff :math:`dist - \nu > w - \rho`.
``"btt18"``, ``"lzcw21"``
    The papers' two-sided noise on the integers: a query passes iff
    :math:`dist + \mathrm{Lap}_Z(2\lambda) > w + \mathrm{Lap}_Z(\lambda)`.

**A stage is ε₀-DP** in its pattern of passes, with :math:`\varepsilon_0 = 1/\lambda_t + 2/\lambda_q` (papers:
:math:`2/\lambda`). Compare D at threshold noise ρ with a neighbour D′ at ρ + 1 (papers: the threshold one lower), whose
density is smaller by a factor :math:`e^{-1/\lambda_t}` at most. Distances move by at most 1, so each query that passed
on D is no less likely to pass on D′; the one that failed had :math:`\nu \ge dist - w + \rho` and now needs
:math:`\nu \ge dist' - w + \rho + 1`, at most 2 more, at a factor :math:`e^{-2/\lambda_q}` at most. A stage that is
broken off without a failure costs no more.

**The labels** of passing queries are the same on D and D′ wherever the distance on D is at least 1. What remains is the
bad event that a query of distance 0 passes. Such a query either passes, which is bad, or ends its stage: only the first
one of a stage matters. Its ν is independent of ρ and of the past, so, whatever the past and however the
query was chosen, the bad event has probability at most :math:`P(\nu < \rho - w)` a stage, and

.. math:: \delta_{tail} = T\, P(\nu < \rho - w) = T e^{-(w+1)/\lambda_t}
          \frac{1 - e^{-1/\lambda_q}}{1 - e^{-1/\lambda_q - 1/\lambda_t}}

is added once, without a factor :math:`e^\varepsilon`. It does not depend on the number of queries. (Papers:
:math:`P(\mathrm{Lap}_Z(2\lambda) - \mathrm{Lap}_Z(\lambda) > w)`.) Summing over queries as if each met a fresh
threshold would be wrong: a stage with a low threshold lives longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, nextafter, sqrt, ulp

import numpy as np

from quorate.accounting import ApproxDP, Composed, PureDP, Repeated, delta
from quorate.accounting.pure import randomized_response_law
from quorate.arguments import count, real
from quorate.deferred import special
from quorate.errors import InvalidParameter, named
from quorate.noise import NoiseSource, discrete_laplace, geometric
from quorate.noise.source import MAX_SCALE
from quorate.types import FloatArray, IntArray

#: The tight calibration makes the distance that passes with this probability as small as it can.
PASSING_PROBABILITY = 0.95

_UP = 1 + 2.0**-40  # covers the rounding of a few float operations
_TAIL_UP = 1 + 1e-9  # covers that of exp(log(δ)) as well


@dataclass(frozen=True, slots=True, kw_only=True)
class StageNoise:
    """Noise of one stage, in votes: w, λ_t and λ_q. `one_sided`: geometric (tight); else discrete Laplace."""

    threshold: float
    threshold_scale: float
    query_scale: float
    one_sided: bool

    @property
    def epsilon(self) -> float:
        """ε₀ of a stage's pattern of passes, rounded up."""
        return (1 / self.threshold_scale + 2 / self.query_scale) * _UP

    def tail(self, cutoff: int) -> float:
        """δ_tail: probability that one of `cutoff` stages answers a query of distance 0, rounded up."""
        return min(1.0, cutoff * self._above(floor(self.threshold) + 1) * _TAIL_UP)

    def event(self, cutoff: int) -> Composed:
        """Return the price of `cutoff` stages."""
        return Composed((Repeated(PureDP(self.epsilon), cutoff), ApproxDP(0.0, self.tail(cutoff))))

    def draw_bar(self, noise: NoiseSource) -> int:
        """Draw a stage's noisy threshold: a query passes iff its noisy distance is above it. Secret."""
        if self.one_sided:
            return floor(self.threshold) - int(geometric(self.threshold_scale, (), noise))
        return floor(self.threshold) + int(discrete_laplace(self.threshold_scale, (), noise))

    def draw_noisy(self, distances: IntArray, noise: NoiseSource) -> IntArray:
        """Return the noisy distances, ``(n_queries,)``. Secret."""
        if self.one_sided:
            return distances - geometric(self.query_scale, distances.shape, noise)
        return distances + discrete_laplace(self.query_scale, distances.shape, noise)

    def pass_probability(self, distance: int) -> float:
        """Return the probability that a query of this distance passes in a fresh stage."""
        excess = distance - floor(self.threshold)
        if excess <= 0:
            return self._above(1 - excess)
        if not self.one_sided:  # the law is symmetric
            return 1 - self._above(excess)
        t, q = 1 / self.threshold_scale, 1 / self.query_scale
        return 1 - exp(-excess * q) * expm1(-t) / expm1(-t - q)

    def log_decline(self, distance: int) -> float:
        """Return the log probability that a query of this distance does not pass a fresh stage, exact where nearly all
        pass.
        """
        excess = distance - floor(self.threshold)
        if excess <= 0:
            return log1p(-self._above(1 - excess))
        if not self.one_sided:
            declined = self._above(excess)
            return log(declined) if declined > 0 else -inf  # below the least float
        t, q = 1 / self.threshold_scale, 1 / self.query_scale
        return -excess * q + log(expm1(-t) / expm1(-t - q))

    def passing_dist(self, probability: float) -> int:
        """Return the least distance that passes in a fresh stage with at least this probability."""
        low, high, most = -1, 1, log1p(-probability)
        while self.log_decline(high) > most:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.log_decline(middle) > most else (low, middle)
        return high

    def _above(self, k: int) -> float:
        """P(query noise − threshold noise ≥ k) in the direction of passing, for k ≥ 1."""
        t, q = 1 / self.threshold_scale, 1 / self.query_scale
        if self.one_sided:  # P(ρ − ν ≥ k)
            return exp(-k * t) * expm1(-q) / expm1(-t - q)
        # Two discrete Laplaces of ratios a = e^(-q), b = e^(-t) = a²: partial fractions of their convolution.
        a, b = exp(-q), exp(-t)
        norm = expm1(-q) * expm1(-t) / ((1 + a) * (1 + b))
        split = -a * expm1(q - t) * -expm1(-q - t)
        # a float's k-th power is k roundings off; k is that large only where the noise is some 10⁵ votes wide
        power_a, power_b = (a**k, b**k) if k < 2**20 else (exp(-k * q), exp(-k * t))
        return norm * (a * expm1(-2 * t) * power_a / expm1(-q) - b * expm1(-2 * q) * power_b / expm1(-t)) / split


def btt18(epsilon: float, delta: float, cutoff: int, n_queries: int) -> StageNoise:
    r"""BTT18, Algorithm 2: :math:`\lambda = \sqrt{32\, T \log(2/\delta)}/\varepsilon`, :math:`w = 2\lambda
    \log(2m/\delta)`.
    """
    scale, threshold = btt18_algorithm_2_noise(epsilon, delta, cutoff, n_queries)
    return _two_sided(threshold, scale)


def lzcw21(epsilon: float, delta: float, cutoff: int, n_queries: int) -> StageNoise:
    r"""LZCW21, Algorithm 2: :math:`\lambda = (\sqrt{2T(\varepsilon + \log(2/\delta))} + \sqrt{2T
    \log(2/\delta)})/\varepsilon`, :math:`w = 3\lambda \log(2(\ell + T)/\delta)`.
    """
    scale, threshold = lzcw21_algorithm_2_noise(epsilon, delta, cutoff, n_queries)
    return _two_sided(threshold, scale)


def _two_sided(threshold: float, scale: float) -> StageNoise:
    _check_width(2 * scale)
    return StageNoise(threshold=threshold, threshold_scale=scale, query_scale=2 * scale, one_sided=False)


def _check_width(scale: float) -> None:
    if not scale <= MAX_SCALE:
        raise InvalidParameter(
            f"{named('epsilon')} must be larger for this {named('cutoff')}: the noise would be wider than 2^40 votes"
        )


@lru_cache(maxsize=1024)
def tight(epsilon: float, delta_: float, cutoff: int) -> StageNoise:
    r"""Return the one-sided noise for which the distance that passes with probability 0.95 is least.

    ε₀ is at most what optimal composition of T pure rounds allows at :math:`(\varepsilon, \delta - \delta_{tail})`;
    :math:`\lambda_t = 1/(s \varepsilon_0)`, :math:`\lambda_q = 2/((1-s)\varepsilon_0)`; w is the smallest integer for
    which :math:`\delta_{tail}` holds; s and :math:`\delta_{tail}` are searched for on a grid that is refined around its
    best point. A poor point of the grid would be a larger distance, never a larger loss: the price of the result is
    checked as a whole.
    """
    least, most = epsilon / cutoff, _most_stage_epsilon(epsilon, delta_, cutoff)
    _check_width(4 / least)
    shares = np.linspace(0.02, 0.98, 97)
    stages = np.linspace(least, most, 65)
    for _ in range(4):
        left = np.array([delta_ - _searched_delta(e, cutoff, epsilon) for e in stages.tolist()])
        stages, left = stages[left > 0], left[left > 0]
        goal = _passing_dists(stages[:, None], left[:, None], shares[None, :], cutoff)
        i, j = np.unravel_index(int(goal.argmin()), goal.shape)
        best_stage, best_share, best_left = float(stages[i]), float(shares[j]), float(left[i])
        stages = _refined(stages, int(i), least, most)
        shares = _refined(shares, int(j), 0.001, 0.999)
    stage = best_stage / _UP**2  # what is reported is rounded up again
    t, q = best_share * stage, (1 - best_share) * stage / 2
    threshold = max(0, ceil(log(cutoff * expm1(-q) / expm1(-t - q) * _TAIL_UP**2 / best_left) / t) - 1)
    smallest = StageNoise(threshold=threshold, threshold_scale=1 / t, query_scale=1 / q, one_sided=True)
    if not delta(smallest.event(cutoff), epsilon) <= delta_:  # cannot happen; refused rather than released
        raise InvalidParameter(
            f"{named('epsilon', epsilon)} and {named('delta', delta_)} leave no room for {cutoff} stages; lower "
            f"{named('cutoff')}"
        )
    return smallest


def _most_stage_epsilon(epsilon: float, delta_: float, cutoff: int) -> float:
    """Return an ε₀ within 1e-9 of the largest that fits T rounds into (ε, δ)."""

    def fits(stage: float) -> bool:
        return _searched_delta(stage, cutoff, epsilon) < delta_

    low = epsilon / cutoff / _UP
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1e-9 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _searched_delta(stage: float, cutoff: int, epsilon: float) -> float:
    """Return δ at ε of `cutoff` pure rounds, to nearest. Kept apart from the price: what a search found is charged as
    an event, and must be found again in every version.
    """
    if (stage if cutoff == 1 else nextafter(stage * cutoff * (1 + 2.0**-52), inf)) <= epsilon:
        return 0.0
    losses, log_weights, beyond = randomized_response_law(stage, cutoff)
    gap = epsilon - np.rint(losses / stage) * stage
    above = gap < 0
    with np.errstate(divide="ignore"):
        total = float(special.logsumexp(log_weights[above] + np.log(-np.expm1(gap[above])))) if np.any(above) else -inf
        total = float(np.logaddexp(total + 2.0**-46, np.log(beyond)))
    return max(exp(min(total, 0.0)), ulp(0.0))


def _passing_dists(stages: FloatArray, left: FloatArray, shares: FloatArray, cutoff: int) -> FloatArray:
    """Return the distance that passes with probability 0.95, plus a hint of its continuous version to break ties."""
    t, q = shares * stages, (1 - shares) * stages / 2
    threshold = np.log(cutoff * np.expm1(-q) / np.expm1(-t - q) / left) / t - 1
    excess = np.log(np.expm1(-t) / np.expm1(-t - q) / (1 - PASSING_PROBABILITY)) / q
    whole = np.maximum(0, np.ceil(threshold)) + np.maximum(0, np.ceil(excess))
    result: FloatArray = whole + 1e-6 * (threshold + excess)
    return result


def _refined(grid: FloatArray, best: int, low: float, high: float) -> FloatArray:
    """Return a grid of as many points over the two cells around the best one."""
    step = (grid[-1] - grid[0]) / max(1, grid.size - 1)
    result: FloatArray = np.linspace(max(low, grid[best] - step), min(high, grid[best] + step), 65)
    return result


def btt18_algorithm_2_noise(epsilon: float, delta: float, cutoff: int, n_queries: int) -> tuple[float, float]:
    r"""Return the scale λ and the threshold w of Algorithm 2.

    :math:`\lambda = \sqrt{32\,T\log(2/\delta)}/\varepsilon` and :math:`w = 2\lambda\log(2m/\delta)`.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1).
    cutoff : int
        T ≥ 1.
    n_queries : int
        m ≥ 1.

    Returns
    -------
    tuple of float
        λ and w, in teachers. The threshold's noise is Lap(λ), a query's Lap(2λ).

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Algorithm 2, steps 1 and 2.

    Examples
    --------
    >>> scale, threshold = btt18_algorithm_2_noise(1.0, 1e-5, 10, 1447)
    >>> round(scale, 1), round(threshold)
    (62.5, 2435)
    """
    epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, above=0, below=1)
    cutoff, n_queries = count("cutoff", cutoff, at_least=1), count("n_queries", n_queries, at_least=1)
    scale = sqrt(32 * cutoff * log(2 / delta)) / epsilon
    return scale, 2 * scale * log(2 * n_queries / delta)


def lzcw21_algorithm_2_noise(epsilon: float, delta: float, cutoff: int, n_queries: int) -> tuple[float, float]:
    r"""Return the scale λ and the threshold w of Algorithm 2.

    :math:`\lambda = (\sqrt{2T(\varepsilon + \log(2/\delta))} + \sqrt{2T\log(2/\delta)})/\varepsilon`,
    :math:`w = 3\lambda\log(2(\ell + T)/\delta)`.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1).
    cutoff, n_queries : int
        T ≥ 1 and ℓ ≥ 1.

    Returns
    -------
    tuple of float
        λ and w, in teachers. The threshold's noise is Lap(λ), a query's Lap(2λ).

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Algorithm 2, lines 2 and 3.

    Examples
    --------
    >>> scale, threshold = lzcw21_algorithm_2_noise(1.0, 1e-5, 10, 1447)
    >>> round(scale, 1), round(threshold)
    (31.9, 1864)
    """
    epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, above=0, below=1)
    cutoff, n_queries = count("cutoff", cutoff, at_least=1), count("n_queries", n_queries, at_least=1)
    room = log(2 / delta)
    scale = (sqrt(2 * cutoff * (epsilon + room)) + sqrt(2 * cutoff * room)) / epsilon
    return scale, 3 * scale * log(2 * (n_queries + cutoff) / delta)
