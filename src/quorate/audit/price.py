"""The price of an event, held against the law of what is released: every rule of it, and the rules against each other.

From the probabilities of the worst neighbours all that an event may claim can be summed, δ(ε) and the Rényi divergence,
of one release and of two. Nothing is sampled, so a single pair on which a rule is below the sum disproves the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from quorate.accounting import Event, Repeated, rdp, zcdp
from quorate.accounting import delta as priced_delta
from quorate.accounting import epsilon as priced_epsilon
from quorate.audit.exact import hockey_stick
from quorate.errors import InvalidParameter, UnsupportedEvent
from quorate.types import FloatArray

EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0)
ORDERS = (1.5, 2.0, 4.0, 16.0, 64.0)
_ROUNDING = 1e-12  # of sums of floats
_MOST = 3_000  # outcomes of one release whose pairs are still summed


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceFault:
    """A rule that claims less than what the release does.

    `rule`: "delta", "epsilon", "rdp" or "zcdp": the function of :mod:`quorate.accounting`. `times`: of how many
    releases. `at`: the ε, the δ or the order.
    `claimed`, `exact`: what the rule gives there, and the sum.
    """

    rule: str
    times: int
    at: float
    claimed: float
    exact: float


def price_faults(
    event: Event,
    outcomes: Iterable[tuple[ArrayLike, ArrayLike]],
    *,
    epsilons: Sequence[float] = EPSILONS,
    orders: Sequence[float] = ORDERS,
) -> tuple[PriceFault, ...]:
    """Return every place at which the price of an event is below the exact loss of what it is said to price.

    `event`: of one release. `outcomes`: the distributions ``(n_outcomes,)`` of one release on two neighbouring data
    sets, for each pair that may be the worst; both directions are looked at. `epsilons`, `orders`: where the curves are
    compared.
    Returns: empty where no rule is below the truth there. That is a proof for these pairs, and for no other. Raises
    InvalidParameter if the pairs are no distributions of one shape.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> coin = [([0.75, 0.25], [0.25, 0.75])]  # ε = log 3
    >>> price_faults(PureDP(1.0986122886681098), coin)
    ()
    >>> sorted({fault.rule for fault in price_faults(PureDP(0.55), coin)})
    ['delta', 'epsilon', 'rdp', 'zcdp']
    """
    faults = []
    for one in outcomes:
        p, q = _checked(one)
        for times in (1, 2) if p.size <= _MOST else (1,):
            whole = event if times == 1 else Repeated(event, 2)
            pair = (p, q) if times == 1 else (np.outer(p, p).ravel(), np.outer(q, q).ravel())
            for here, beside in (pair, pair[::-1]):
                faults += _of_loss(whole, times, here, beside, epsilons)
                faults += _of_curve(whole, times, here, beside, orders)
    return tuple(faults)


def _of_loss(event: Event, times: int, p: FloatArray, q: FloatArray, epsilons: Sequence[float]) -> list[PriceFault]:
    faults = []
    for epsilon in epsilons:
        exact = hockey_stick(p, q, epsilon)
        if exact <= _ROUNDING:
            continue
        claimed = priced_delta(event, epsilon)
        if exact > claimed + _ROUNDING:
            faults.append(PriceFault(rule="delta", times=times, at=epsilon, claimed=claimed, exact=exact))
        claimed = priced_epsilon(event, min(exact * (1 - 1e-9), 1 - 1e-9))
        if epsilon > claimed + 1e-6:
            faults.append(PriceFault(rule="epsilon", times=times, at=exact, claimed=claimed, exact=epsilon))
    return faults


def _of_curve(event: Event, times: int, p: FloatArray, q: FloatArray, orders: Sequence[float]) -> list[PriceFault]:
    exact = np.array([_renyi(p, q, order) for order in orders])
    curves = {"rdp": rdp(event, list(orders))}
    with suppress(UnsupportedEvent):  # it has no ρ, and a ledger that counts in ρ refuses it
        curves["zcdp"] = zcdp(event) * np.array(orders)
    return [
        PriceFault(rule=rule, times=times, at=order, claimed=float(claimed), exact=float(truth))
        for rule, curve in curves.items()
        for order, claimed, truth in zip(orders, curve, exact, strict=True)
        if truth > claimed * (1 + 1e-9) + _ROUNDING
    ]


def _renyi(p: FloatArray, q: FloatArray, order: float) -> float:
    positive = p > 0
    if (q[positive] == 0).any():
        return float("inf")
    terms = order * np.log(p[positive]) + (1 - order) * np.log(q[positive])
    return float(np.logaddexp.reduce(terms) / (order - 1))


def _checked(pair: tuple[ArrayLike, ArrayLike]) -> tuple[FloatArray, FloatArray]:
    p, q = (np.asarray(law, dtype=np.float64) for law in pair)
    if p.shape != q.shape or p.ndim != 1 or p.size < 2:
        raise InvalidParameter(f"outcomes must be pairs of distributions of one length, got {p.shape} and {q.shape}")
    for law in (p, q):
        if not (law >= 0).all() or abs(law.sum() - 1) > 1e-9:
            raise InvalidParameter("outcomes must be probabilities that add up to 1; divide by their sum")
    return p, q
