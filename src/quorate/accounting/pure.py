r"""Rounds of pure differential privacy: randomized response is the worst case, and its compositions are exact.

Every ε₀-DP mechanism is dominated by randomized response, which tells the truth with probability
:math:`p = 1/(1+e^{-\varepsilon_0})`: its privacy loss is :math:`\varepsilon_0` with probability p and
:math:`-\varepsilon_0` otherwise. T rounds therefore cost exactly (Kairouz, Oh, Viswanath 2015, Thm 3.3; Murtagh
and Vadhan 2016)

.. math::
    \delta(\varepsilon) = \sum_i \tbinom{T}{i} p^i (1-p)^{T-i} \left[1 - e^{\varepsilon-(2i-T)\varepsilon_0}\right]_+.

Discrete Laplace noise of scale b on an integer of sensitivity 1 *is* randomized response with ε₀ = 1/b.
"""

from __future__ import annotations

from math import inf, log, sqrt, tanh, ulp

import numpy as np

from quorate.accounting.outward import product_up
from quorate.deferred import special
from quorate.types import FloatArray

_LARGEST = 1e290  # beyond, products with Rényi orders are no floats


@np.errstate(all="ignore")
def randomized_response_law(epsilon: float, times: int, tilt: float = 0.0) -> tuple[FloatArray, FloatArray, float]:
    """Return the law of the summed privacy loss of `times` ≥ 1 rounds of randomized response with ε₀ = `epsilon`.

    `tilt`: θ ≥ 0. Of many rounds only those sums are listed that carry weight, in the law or in it times
    :math:`e^{θ·loss}`. Returns: `losses, log_weights, beyond`, as :func:`quorate.accounting.discrete_gaussian.sum_law`.
    """
    low, high = 0, times
    if times > 20_000:  # 15 standard deviations of a binomial leave less than 2e-49 (Hoeffding: exp(−2·15²/4))
        reach = 15 * sqrt(times) / 2
        low = max(0, int(times / (1 + np.exp(-epsilon)) - reach))
        high = min(times, int(np.ceil(times / (1 + np.exp(-min((1 + 2 * tilt) * epsilon, 700))) + reach)))
    i = np.arange(low, high + 1, dtype=np.float64)
    log_truth, log_lie = -np.log1p(np.exp(-epsilon)), -epsilon - np.log1p(np.exp(-epsilon))
    log_weights = (
        special.gammaln(times + 1)
        - special.gammaln(i + 1)
        - special.gammaln(times - i + 1)
        + i * log_truth
        + (times - i) * log_lie
    )
    # gammaln and the products are good to a few units in the last place of their size
    log_weights += 2.0**-50 * (times * log(times + 2) + times * epsilon)
    beyond = 0.0 if high == times else 2e-49
    if low > 0:
        log_weights[0] = np.logaddexp(log_weights[0], log(2e-49))
    return product_up(2 * i - times, epsilon), log_weights, beyond


def renyi_of_rounds(epsilon: float, orders: FloatArray) -> FloatArray:
    r"""Return :math:`D_a = \frac{1}{a-1}\log\frac{\cosh((a-\frac12)\varepsilon)}{\cosh(\varepsilon/2)}` at each order a
    > 1; the cosines' difference is a product of sines, so that small ε keep all their digits.
    """
    a = np.asarray(orders, dtype=np.float64)
    if epsilon > _LARGEST:
        return np.full(a.shape, inf)
    large = a * epsilon > 40
    b, e = np.where(large, 1.5, a), min(epsilon, 41.0)  # keeps the branch that is not taken finite
    small = np.log1p(2 * np.sinh(b * e / 2) * np.sinh((b - 1) * e / 2) / np.cosh(e / 2))
    # log cosh(x) = x − log 2 + log1p(e^(−2x)), and the last term is below 2^-100 at the larger argument
    far = (a - 1) * epsilon + np.log1p(np.exp(-np.minimum((2 * a - 1) * epsilon, 700))) - np.log1p(np.exp(-epsilon))
    result: FloatArray = np.minimum(np.where(large, far / (a - 1), small / (b - 1)), epsilon) * (1 + 2.0**-48)
    return np.maximum(result, ulp(0.0)) if epsilon > 0 else result


def zcdp_of_rounds(epsilon: float) -> float:
    r"""Return the least ρ for which every ε-DP mechanism is ρ-zCDP: :math:`\varepsilon\tanh(\varepsilon/2)`.

    At most :math:`\varepsilon^2/2` (Bun and Steinke 2016, Prop. 3.3). Proof: with :math:`w = (a-\frac12)^2`,
    :math:`(a-1)(a\rho - D_a) = (w - \frac14)\rho - \log\cosh(\varepsilon\sqrt w) + \log\cosh(\varepsilon/2)` is convex
    in w, because :math:`\tanh(x)/x` falls, and at w = 1/4 (order 1) it is 0 with derivative :math:`\rho -
    \varepsilon\tanh(\varepsilon/2) = 0`. It is the least, being the Kullback-Leibler divergence.
    """
    return max(epsilon * tanh(epsilon / 2) * (1 + 2.0**-48), ulp(0.0)) if epsilon > 0 else 0.0


def relative_entropy(b: float, e: float) -> float:
    """Return kl(b, e) of a coin of bias `b` from one of bias `e`, in nats; both in [0, 1].

    It is the rate in the bounds of Chernoff and Hoeffding (Hoeffding 1963, Theorem 1).

    Examples
    --------
    >>> relative_entropy(0.5, 0.5), relative_entropy(0.5, 0.0), round(relative_entropy(0.0, 0.5), 4)
    (0.0, inf, 0.6931)
    """

    def part(x: float, y: float) -> float:
        return 0.0 if x == 0 else inf if y == 0 else x * log(x / y)

    return part(b, e) + part(1 - b, 1 - e)
