r"""What a random sample of the rows does to a price: exact functions of the parameters, rounded up.

An algorithm that is (ε, δ)-DP is run on a sample of the rows instead of on all of them. Neighbours are two tables with
one row replaced, and how many rows there are, and are sampled, is public. Every rule here holds for every algorithm;
the rules of this module that are not printed in BNS15 or LWY25 are also the best that hold for every pure one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, expm1, log1p

from quorate.accounting import ApproxDP, PureDP
from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.renamed import stored_as

_SLACK = 2.0**-40  # more than the rounding of any formula here; the longest has some thousand operations
LARGEST_EPSILON = 500.0  #: e^500 is a float; no larger ε is a promise


@stored_as("quorate.learners.amplification.Price")
@dataclass(frozen=True, slots=True)
class Price:
    """What an algorithm costs per replaced row: it is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon : float
        From 0 to 500.
    delta : float, default 0.0
        From 0 to 1.

    Raises
    ------
    InvalidParameter
        If a number is out of range.

    Examples
    --------
    >>> Price(1.0).event
    PureDP(epsilon=1.0)
    >>> Price(1.0, 1e-6).within(Price(1.0, 1e-5))
    True
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, at_least=0, at_most=LARGEST_EPSILON))
        object.__setattr__(self, "delta", real("delta", self.delta, at_least=0, at_most=1))

    @property
    def event(self) -> PureDP | ApproxDP:
        """The price as what a ledger is charged."""
        return ApproxDP(self.epsilon, self.delta) if self.delta > 0 else PureDP(self.epsilon)

    def within(self, target: Price) -> bool:
        """Whether neither figure is above that of `target`."""
        return self.epsilon <= target.epsilon and self.delta <= target.delta

    @classmethod
    def of_event(cls, event: PureDP | ApproxDP) -> Price:
        """Return the price that an event states."""
        return cls(event.epsilon, event.delta if isinstance(event, ApproxDP) else 0.0)


def rounded_up_price(epsilon: float, delta: float) -> Price:
    """Return a price from figures that were computed in floats: both a little larger, δ at most 1.

    Examples
    --------
    >>> rounded_up_price(1.0, 2.0).delta
    1.0
    """
    return Price(epsilon * (1 + _SLACK), min(1.0, delta * (1 + _SLACK)))


def worst_of(*prices: Price) -> Price:
    """Return what covers each of several cases: the larger ε and the larger δ.

    Examples
    --------
    >>> worst_of(Price(1.0, 1e-6), Price(0.5, 1e-5))
    Price(epsilon=1.0, delta=1e-05)
    """
    return Price(max(each.epsilon for each in prices), max(each.delta for each in prices))


def without_replacement(price: Price, *, n_rows: int, n_kept: int) -> Price:
    r"""Return the price of running an algorithm on `n_kept` of the `n_rows` rows, every subset alike.

    With :math:`r = \mathtt{n\_kept}/\mathtt{n\_rows}`: :math:`(\log(1 + r(e^\varepsilon - 1)),\ r\delta)`.

    Parameters
    ----------
    price : Price
        That of the algorithm on the sample.
    n_rows, n_kept : int
        0 <= `n_kept` <= `n_rows`, and `n_rows` >= 1.

    Raises
    ------
    InvalidParameter
        If a number is out of range.

    Notes
    -----
    The sample must come in random order if the algorithm looks at it, as that of
    :func:`~quorate.learners.amplification.random_subsets.random_arrangement` does. Tight for every ε, δ and r.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), arXiv:1807.01647, Theorem 9. BNS15's Claim 4.3 is weaker.

    Examples
    --------
    >>> without_replacement(Price(1.0, 1e-6), n_rows=100, n_kept=10)
    Price(epsilon=0.1585650787..., delta=1.0000000000009...e-07)
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

    Raises
    ------
    InvalidParameter
        If ε is not in (0, 1], or `n_rows` below 1.

    Examples
    --------
    >>> bns15_claim_4_3(Price(1.0), epsilon=1.0, n_rows=100)
    (572, Price(epsilon=1.0, delta=0.0))
    """
    epsilon = real("epsilon", epsilon, above=0, at_most=1)
    share = (3 + exp(price.epsilon)) / epsilon
    delta = min(1.0, 4 * price.delta / share * (1 + _SLACK))
    return _ceil(count("n_rows", n_rows, at_least=1) * share), Price(epsilon, delta)


def largest_count(fits: Callable[[int], bool], at_most: int) -> int:
    """Return the largest whole number up to `at_most` that `fits`, 0 if none does; it fits from there down to 1.

    Examples
    --------
    >>> largest_count(lambda kept: without_replacement(Price(2.0), n_rows=100, n_kept=kept).epsilon <= 1.0, 100)
    26
    """
    low, high = 0, at_most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def smallest_count(fits: Callable[[int], bool], at_least: int) -> int:
    """Return the smallest whole number from `at_least` on that `fits`, as all larger ones do.

    Raises
    ------
    InvalidParameter
        If none up to 2^60 does.

    Examples
    --------
    >>> smallest_count(lambda rows: without_replacement(Price(2.0), n_rows=rows, n_kept=26).epsilon <= 1.0, 26)
    97
    """
    high = max(at_least, 1)
    while not fits(high):
        high *= 2
        if high > 2**60:
            raise InvalidParameter("no number of rows up to 2^60 is enough for these parameters; ask for less")
    low = max(at_least, 0)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def _ceil(number: float) -> int:
    """Round up a count of rows that was computed in floats: never one too few."""
    whole = int(number)
    return whole + (number * (1 + _SLACK) > whole)
