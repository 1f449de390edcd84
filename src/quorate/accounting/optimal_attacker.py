"""The trade-off curve of an optimal attacker: how often it misses at each rate of false alarms, from the exact price.

A guarantee is one point (ε, δ). A release has a whole curve δ(ε), of which every point binds the attacker at once, and
what is left is the function of Dong, Roth and Su: the best rate of misses at each rate of false alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.accounting.event import Event
from quorate.accounting.odds import miss_rate
from quorate.accounting.spend import delta
from quorate.errors import InvalidParameter

#: False alarms at which a curve is drawn: closer together where it is steep.
FALSE_ALARMS = (0.0, 0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.07, *(round(0.1 + 0.05 * k, 2) for k in range(19)))
#: ε at which the price of a release is asked for its curve.
EPSILONS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True)
class TradeOff:
    """What no test of one release can do better than, however it is made.

    Attributes
    ----------
    false_alarms : tuple of float
        Rates, rising, in [0, 1]: *in the data* is said of somebody who is not.
    misses : tuple of float
        The least rate of misses at each of them, in [0, 1]. Without any release it is one minus the false alarms.

    Examples
    --------
    >>> TradeOff((0.0, 1.0), (1.0, 0.0)).advantage
    0.0
    """

    false_alarms: tuple[float, ...]
    misses: tuple[float, ...]

    @property
    def advantage(self) -> float:
        """The most by which an attacker is ahead of a coin: 1 - false alarms - misses, at the best of the rates drawn.

        Examples
        --------
        >>> TradeOff((0.0, 0.25, 1.0), (1.0, 0.25, 0.0)).advantage
        0.5
        """
        return max(1.0 - a - m for a, m in zip(self.false_alarms, self.misses, strict=True))


def trade_off(event: Event, false_alarms: Sequence[float] = FALSE_ALARMS) -> TradeOff:
    r"""Return the trade-off curve of everything that an event releases.

    Parameters
    ----------
    event : Event
        What is released, as a ledger has it.
    false_alarms : sequence of float
        Rates in [0, 1].

    Returns
    -------
    TradeOff
        :math:`f(\alpha) = \max_\varepsilon \max(0,\ 1 - \delta(\varepsilon) - e^\varepsilon \alpha,\
        e^{-\varepsilon}(1 - \delta(\varepsilon) - \alpha))` over the ε of :data:`EPSILONS`.

    Notes
    -----
    Every δ(ε) is an upper bound, so each point of the curve is a lower bound on the misses, whichever ε are asked
    for; more of them draw it closer to the truth.

    References
    ----------
    Wasserman and Zhou (2010), arXiv:0811.2501, Theorem 2.4; Dong, Roth and Su (2022), arXiv:1905.02383,
    Proposition 2.12.

    Examples
    --------
    >>> from quorate.accounting import Gaussian
    >>> curve = trade_off(Gaussian(1.0, 1.0), (0.0, 0.05, 0.5, 1.0))
    >>> [round(each, 2) for each in curve.misses]  # of N(0, 1) against N(1, 1): Φ(Φ⁻¹(1 − α) − 1)
    [1.0, 0.74, 0.16, 0.0]
    """
    return trade_off_of([(epsilon, delta(event, epsilon)) for epsilon in EPSILONS], false_alarms)


def trade_off_of(prices: Sequence[tuple[float, float]], false_alarms: Sequence[float] = FALSE_ALARMS) -> TradeOff:
    """Return the trade-off curve of a release of which some points (ε, δ) are known; one guarantee is one point.

    Parameters
    ----------
    prices : sequence of (epsilon, delta)
        All of which hold, at least one.
    false_alarms : sequence of float
        Rates in [0, 1].

    Examples
    --------
    >>> trade_off_of([(0.0, 0.1)], (0.0, 0.5, 1.0)).misses
    (0.9, 0.4, 0.0)
    """
    if not prices:
        raise InvalidParameter("prices must hold at least one (epsilon, delta)")
    misses = tuple(max(miss_rate(epsilon, d, alpha) for epsilon, d in prices) for alpha in false_alarms)
    return TradeOff(tuple(false_alarms), misses)
