r"""What drawing rows with replacement does to a price: a row may be drawn more than once, or never.

The base learner of LabelBoost (BNS15, Algorithm 3, step 4) and that of an empirical learner (LWY25, Lemma 2.12) are
run on draws from the rows they are given. BNS15's Claim 4.5 and LWY25's Lemma 2.13 price that;
:func:`with_replacement` is exact, and never above them. Neighbours are two tables with one row replaced.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, exp, expm1, log, log1p

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.amplification.price import LARGEST_EPSILON, Price, rounded_up_price
from quorate.types import FloatArray

_MOST_DRAWS_A_ROW = 100  # of the sum over binomial weights


def with_replacement(price: Price, *, n_rows: int, n_draws: int) -> Price:
    r"""Return the price of running an algorithm on `n_draws` rows, each drawn from all `n_rows` with replacement.

    With n rows and m draws :math:`(\varepsilon', \delta')`, where

    .. math::
        \varepsilon' = m \log\left(1 + \frac{e^\varepsilon - 1}{n}\right), \qquad
        \delta' = \delta\, \frac{e^{\varepsilon'} - 1}{e^\varepsilon - 1}.

    `price`: that of the algorithm on the draws. `n_rows`, `n_draws`: n >= 1 and m >= 0. Raises InvalidParameter if a
    number is out of range, or ε' above 500. Proof. Let :math:`A_t` take its first t draws from one table and the others
    from its neighbour. Given all draws but the t-th, that one is a sample of 1 of n rows, so :math:`A_{t-1}` and
    :math:`A_t` are within :math:`(\varepsilon_1, \delta/n)`, :math:`\varepsilon_1 = \log(1 + (e^\varepsilon - 1)/n)`.
    The two tables are m such steps apart: :math:`\varepsilon' = m\varepsilon_1` and :math:`\delta' = \frac{\delta}{n}
    \sum_{t<m} e^{t\varepsilon_1}`, a geometric sum. For δ = 0 nothing smaller holds for every algorithm: an event whose
    probability is proportional to :math:`e^{\varepsilon k}`, k the number of draws with one certain value, is worth
    :math:`\sum_k \tbinom{m}{k} n^{-k} (1 - 1/n)^{m-k} e^{\varepsilon k} = e^{\varepsilon'}`. For ε <= 1 and every m and
    n it is below both LWY25's Lemma 2.13 and BNS15's Claim 4.5; at m = n and ε = 1 it is (1.72, 2.67δ) where Claim 4.5
    has (5.50, 2467δ).
    """
    n_rows, n_draws = count("n_rows", n_rows, at_least=1), count("n_draws", n_draws)
    if n_draws == 0:
        return Price(0.0)
    gain = expm1(price.epsilon)
    epsilon = n_draws * log1p(gain / n_rows)
    if not epsilon < LARGEST_EPSILON:
        raise InvalidParameter(f"n_draws must be smaller at ε={price.epsilon:.4g} and n_rows={n_rows}, got {n_draws}")
    # As ε → 0 the ratio goes to m/n.
    ratio = expm1(epsilon) / gain if gain > 0 else n_draws / n_rows
    return rounded_up_price(epsilon, price.delta * ratio)


def with_replacement_by_profile(price: Price, *, n_rows: int, n_draws: int, at: float) -> Price:
    r"""Return the price of drawing with replacement that counts how often the changed row is drawn.

    With :math:`q = 1 - (1 - 1/n)^m`, for any :math:`s > 0`,

    .. math::
        \varepsilon' = \log(1 + q(e^s - 1)), \qquad
        \delta' = \sum_{k=1}^m \binom{m}{k} \left(\frac1n\right)^k \left(1 - \frac1n\right)^{m-k} \delta_k(s),

    where :math:`\delta_k` is the privacy profile of the algorithm for groups of k rows. Of an (ε, δ)-DP algorithm it
    is at most :math:`d_k = \delta (e^{k\varepsilon} - 1)/(e^\varepsilon - 1)` from :math:`s = k\varepsilon` on, and
    below that :math:`d_k + (1 - d_k)(e^{k\varepsilon} - e^s)/(e^{k\varepsilon} + 1)`.

    `price`: that of the algorithm on the draws. `n_rows`, `n_draws`: n >= 1 and 0 <= m <= 100n. `at`: s > 0: where the
    profiles are read. Raises InvalidParameter if a number is out of range. It buys a smaller ε' with a δ' that does not
    go to 0 with δ, so it is of use for a δ that is not small. :func:`with_replacement` is better for all others.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), arXiv:1807.01647, Theorem 10.
    """
    n_rows, n_draws = count("n_rows", n_rows, at_least=1), count("n_draws", n_draws)
    at = real("at", at, above=0, at_most=LARGEST_EPSILON)
    if n_draws > _MOST_DRAWS_A_ROW * n_rows:
        raise InvalidParameter(f"n_draws must be at most {_MOST_DRAWS_A_ROW} times n_rows={n_rows}, got {n_draws}")
    if n_draws == 0:
        return Price(0.0)
    weights, beyond = _binomial(n_draws, n_rows)
    drawn = -expm1(n_draws * log1p(-1 / n_rows)) if n_rows > 1 else 1.0
    delta = float(weights[1:] @ _group_profiles(price, len(weights) - 1, at)) + beyond
    return rounded_up_price(log1p(drawn * expm1(at)), delta)


def cheapest_with_replacement(price: Price, *, n_rows: int, n_draws: int, delta: float) -> Price:
    """Return the smallest ε' that the rules for draws with replacement prove at a δ' of at most `delta`.

    Of :func:`with_replacement`, :func:`lwy25_lemma_2_13` where its conditions hold, and
    :func:`with_replacement_by_profile` at its best s.

    Raises InvalidParameter if a number is out of range, or no rule gets down to `delta`.
    """
    delta = real("delta", delta, at_least=0, at_most=1)
    found = [with_replacement(price, n_rows=n_rows, n_draws=n_draws)]
    if _lemma_2_13_applies(price, n_rows, n_draws):
        found.append(lwy25_lemma_2_13(price, n_rows=n_rows, n_draws=n_draws))
    if delta > price.delta and 0 < n_draws <= _MOST_DRAWS_A_ROW * n_rows:
        low, high = 0.0, n_draws * price.epsilon  # from there on the profiles of a pure algorithm are 0
        if 0 < high <= LARGEST_EPSILON:
            for _ in range(40):
                middle = (low + high) / 2
                fits = with_replacement_by_profile(price, n_rows=n_rows, n_draws=n_draws, at=middle).delta <= delta
                low, high = (low, middle) if fits else (middle, high)
            found.append(with_replacement_by_profile(price, n_rows=n_rows, n_draws=n_draws, at=high))
    within = [each for each in found if each.delta <= delta]
    if not within:
        raise InvalidParameter(
            f"delta={delta:g} cannot be met by {n_draws} draws from {n_rows} rows with δ={price.delta:g} each; "
            "give a smaller δ to the learner that is resampled"
        )
    return min(within, key=lambda each: each.epsilon)


def bns15_claim_4_5(price: Price) -> Price:
    """Return the price of n draws with replacement from n rows as BNS15's Claim 4.5 has it: (log 244, 2467 δ).

    Raises InvalidParameter if ε is above 1.
    """
    real("epsilon", price.epsilon, at_most=1, hint="Claim 4.5 is for ε <= 1")
    return rounded_up_price(log(244), 2467 * price.delta)


def lwy25_lemma_2_13(price: Price, *, n_rows: int, n_draws: int) -> Price:
    r"""Return the price of m draws with replacement from n rows as LWY25's Lemma 2.13 has it.

    :math:`(6\varepsilon m/n,\ e^{6\varepsilon m/n} \frac{4m}{n} \delta)`, for ε <= 1, n >= 2 and
    :math:`6\varepsilon m/n \le 1`.

    Raises InvalidParameter if one of the conditions does not hold.
    """
    n_rows, n_draws = count("n_rows", n_rows, at_least=1), count("n_draws", n_draws)
    if not _lemma_2_13_applies(price, n_rows, n_draws):
        raise InvalidParameter(
            f"Lemma 2.13 needs ε <= 1, n >= 2 and 6εm/n <= 1, got ε={price.epsilon:g}, n={n_rows}, m={n_draws}; "
            "with_replacement has no such conditions"
        )
    epsilon = 6 * price.epsilon * n_draws / n_rows
    return rounded_up_price(epsilon, exp(epsilon) * 4 * n_draws / n_rows * price.delta)


def _lemma_2_13_applies(price: Price, n_rows: int, n_draws: int) -> bool:
    return price.epsilon <= 1 and n_rows >= 2 and 6 * price.epsilon * n_draws <= n_rows


@lru_cache(maxsize=32)
def _binomial(n_draws: int, n_rows: int) -> tuple[FloatArray, float]:
    """Return the probabilities that a certain row is drawn 0, 1, 2, … times, and of all larger numbers, at most."""
    if n_rows == 1:
        return np.eye(1, n_draws + 1, n_draws)[0], 0.0
    k = np.arange(min(n_draws, 10 * ceil(n_draws / n_rows) + 200), dtype=np.float64)
    ratios = (n_draws - k) / ((k + 1) * (n_rows - 1))
    first = exp(n_draws * log1p(-1 / n_rows))
    weights = first * np.concatenate([[1.0], np.cumprod(ratios)])
    # From there on each weight is below half of the one before.
    return weights, 0.0 if len(k) == n_draws else float(weights[-1])


def _group_profiles(price: Price, largest: int, at: float) -> FloatArray:
    """Return the δ at ε = `at` for groups of 1, …, `largest` rows, at most."""
    together = np.arange(1, largest + 1) * price.epsilon
    within = np.minimum(together, LARGEST_EPSILON)
    delta = np.zeros(largest)
    if price.delta > 0:
        steps = np.expm1(within) / expm1(price.epsilon) if price.epsilon > 0 else np.arange(1.0, largest + 1)
        delta = np.where(together <= LARGEST_EPSILON, np.minimum(1.0, price.delta * steps), 1.0)
    # (e^{kε} − e^s)/(e^{kε} + 1), with nothing that overflows
    apart = -np.expm1(np.minimum(at - together, 0.0)) / (1 + np.exp(-together))
    profiles: FloatArray = delta + (1 - delta) * apart
    return profiles
