r"""What a random part of the rows does to a price: exact functions of the parameters, rounded up."""

from __future__ import annotations

from math import exp, expm1, log1p

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.amplification.price import SLACK, Price, rounded_up_price


def without_replacement(price: Price, *, n_rows: int, n_kept: int) -> Price:
    r"""Return the price of running an algorithm on `n_kept` of the `n_rows` rows, every subset alike.

    With :math:`r = \mathtt{n\_kept}/\mathtt{n\_rows}`: :math:`(\log(1 + r(e^\varepsilon - 1)),\ r\delta)`.

    `price`: that of the algorithm on the sample. `n_rows`, `n_kept`: 0 <= `n_kept` <= `n_rows`, and `n_rows` >= 1.
    Raises InvalidParameter if a number is out of range. The sample must come in random order if the algorithm looks at
    it, as that of :func:`~quorate.learners.amplification.random_subsets.random_arrangement` does. Tight for every ε, δ
    and r.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), arXiv:1807.01647, Theorem 9. BNS15's Claim 4.3 is weaker.
    """
    n_rows, n_kept = count("n_rows", n_rows, at_least=1), count("n_kept", n_kept)
    if n_kept > n_rows:
        raise InvalidParameter(f"n_kept must be at most n_rows={n_rows}, got {n_kept}")
    if n_kept == n_rows:
        return price
    rate = n_kept / n_rows
    return rounded_up_price(log1p(rate * expm1(price.epsilon)), rate * price.delta)


def bns15_claim_4_3(price: Price, *, epsilon: float, n_rows: int) -> tuple[int, Price]:
    r"""Return how many rows BNS15's Claim 4.3 samples `n_rows` from to bring a price to ε <= 1, and that price.

    :math:`t = \frac{n}{\varepsilon}(3 + e^{\varepsilon^*})` rows give
    :math:`(\varepsilon, \frac{4\varepsilon}{3 + e^{\varepsilon^*}}\delta)`.

    Raises InvalidParameter if ε is not in (0, 1], or `n_rows` below 1.
    """
    epsilon = real("epsilon", epsilon, above=0, at_most=1)
    share = (3 + exp(price.epsilon)) / epsilon
    delta = min(1.0, 4 * price.delta / share * (1 + SLACK))
    return _ceil(count("n_rows", n_rows, at_least=1) * share), Price(epsilon, delta)


def _ceil(number: float) -> int:
    """Round up a count of rows that was computed in floats: never one too few."""
    whole = int(number)
    return whole + (number * (1 + SLACK) > whole)
