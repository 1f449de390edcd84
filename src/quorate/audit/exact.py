r"""The exact audit of mechanisms with few outcomes: the hockey-stick divergence, summed on the lattice.

:math:`\delta(\varepsilon) = \sum_o [P(o) - e^\varepsilon Q(o)]_+` on two neighbours. Nothing is sampled, so a single
pair with more than the claimed δ disproves a claim. The laws of integer noise stand here in closed form, with their
tails in log space, written from the definitions and not from the samplers or the accountant: each can be checked by the
other.

So is the price of an event, every rule of it, and the rules against each other: from the probabilities of the worst
neighbours all that an event may claim can be summed, δ(ε) and the Rényi divergence, of one release and of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from quorate.accounting import Event, Repeated, rdp, zcdp
from quorate.accounting import delta as priced_delta
from quorate.accounting import epsilon as priced_epsilon
from quorate.arguments import real
from quorate.errors import InvalidParameter, UnsupportedEvent
from quorate.types import FloatArray, IntArray

_LOG_SMALLEST = -690.0  # e^-690: about the smallest normal float


class Law(Protocol):
    """The law of an integer noise X."""

    def log_pmf(self, x: ArrayLike) -> FloatArray:
        """Return log P(X = x)."""

    def log_above(self, x: ArrayLike) -> FloatArray:
        """Return log P(X > x)."""

    def log_at_most(self, x: ArrayLike) -> FloatArray:
        """Return log P(X ≤ x)."""

    def support(self) -> IntArray:
        """Return the integers that matter: all of them, but for a mass below e⁻⁶⁹⁰."""

    @property
    def width(self) -> float:
        """How wide the law is, in votes: its scale or σ."""


@dataclass(frozen=True)
class _Scaled:
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", real("scale", self.scale, above=0))

    @property
    def width(self) -> float:
        """The scale."""
        return self.scale


@dataclass(frozen=True)
class DiscreteLaplaceLaw(_Scaled):
    r""":math:`P(x) = \frac{1-r}{1+r} r^{|x|}`, :math:`r = e^{-1/scale}`."""

    @np.errstate(all="ignore")
    def log_pmf(self, x: ArrayLike) -> FloatArray:
        """Return log P(X = x)."""
        ratio = np.exp(-1 / self.scale)
        return np.asarray(np.log1p(-ratio) - np.log1p(ratio) - np.abs(x) / self.scale)

    @np.errstate(all="ignore")
    def log_above(self, x: ArrayLike) -> FloatArray:
        """Return log P(X > x)."""
        x = np.asarray(x, dtype=np.float64)
        norm = np.log1p(np.exp(-1 / self.scale))
        right = -(np.maximum(x, -1) + 1) / self.scale - norm  # P(X > x), x ≥ −1
        left = np.log1p(-np.exp(np.minimum(x, -1) / self.scale - norm))  # 1 − P(X ≤ x), x ≤ −1
        return np.asarray(np.where(x >= 0, right, left))

    @np.errstate(all="ignore")
    def log_at_most(self, x: ArrayLike) -> FloatArray:
        """Return log P(X ≤ x)."""
        return self.log_above(-np.asarray(x) - 1)

    def support(self) -> IntArray:
        """Return the integers that matter."""
        reach = int(np.ceil(-_LOG_SMALLEST * self.scale))
        return np.arange(-reach, reach + 1)


@dataclass(frozen=True)
class GeometricLaw(_Scaled):
    r""":math:`P(k) = (1-r) r^k` on 0, 1, 2, …, :math:`r = e^{-1/scale}`."""

    @np.errstate(all="ignore")
    def log_pmf(self, x: ArrayLike) -> FloatArray:
        """Return log P(X = x)."""
        x = np.asarray(x, dtype=np.float64)
        return np.where(x >= 0, np.log(-np.expm1(-1 / self.scale)) - x / self.scale, -np.inf)

    @np.errstate(all="ignore")
    def log_above(self, x: ArrayLike) -> FloatArray:
        """Return log P(X > x)."""
        return -(np.maximum(np.asarray(x, dtype=np.float64), -1) + 1) / self.scale

    @np.errstate(all="ignore")
    def log_at_most(self, x: ArrayLike) -> FloatArray:
        """Return log P(X ≤ x)."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(np.log(-np.expm1(-(np.maximum(x, -1) + 1) / self.scale)))

    def support(self) -> IntArray:
        """Return the integers that matter."""
        return np.arange(int(np.ceil(-_LOG_SMALLEST * self.scale)) + 1)


@dataclass(frozen=True)
class DiscreteGaussianLaw:
    r""":math:`P(x) \propto e^{-x^2/(2\sigma^2)}`."""

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", real("sigma", self.sigma, above=0))

    @property
    def width(self) -> float:
        """The σ."""
        return self.sigma

    @cached_property
    def _reach(self) -> int:
        return int(np.ceil(self.sigma * np.sqrt(-2 * _LOG_SMALLEST))) + 1

    @cached_property
    @np.errstate(all="ignore")
    def _weights(self) -> FloatArray:
        """Log weights of −reach, …, reach, normalised."""
        weights = -(self.support().astype(np.float64) ** 2) / (2 * self.sigma**2)
        return np.asarray(weights - np.logaddexp.reduce(weights))

    @cached_property
    @np.errstate(all="ignore")
    def _tails(self) -> FloatArray:
        """Log P(X ≥ x) for x = −reach, …, reach + 1."""
        return np.append(np.logaddexp.accumulate(self._weights[::-1])[::-1], -np.inf)

    @np.errstate(all="ignore")
    def log_pmf(self, x: ArrayLike) -> FloatArray:
        """Return log P(X = x)."""
        x = np.asarray(x, dtype=np.int64)
        inside = np.abs(x) <= self._reach
        return np.where(inside, self._weights[np.clip(x, -self._reach, self._reach) + self._reach], -np.inf)

    @np.errstate(all="ignore")
    def log_above(self, x: ArrayLike) -> FloatArray:
        """Return log P(X > x)."""
        x = np.asarray(x, dtype=np.int64)
        tail = self._tails[np.clip(x + 1, -self._reach, self._reach + 1) + self._reach]
        return np.asarray(np.minimum(tail, 0.0))

    @np.errstate(all="ignore")
    def log_at_most(self, x: ArrayLike) -> FloatArray:
        """Return log P(X ≤ x)."""
        return self.log_above(-np.asarray(x, dtype=np.int64) - 1)

    def support(self) -> IntArray:
        """Return the integers that matter."""
        return np.arange(-self._reach, self._reach + 1)


@dataclass(frozen=True)
class NoNoise:
    """The constant 0: what a broken mechanism adds."""

    @property
    def width(self) -> float:
        """One vote."""
        return 1.0

    def log_pmf(self, x: ArrayLike) -> FloatArray:
        """Return log P(X = x)."""
        return np.where(np.asarray(x) == 0, 0.0, -np.inf)

    def log_above(self, x: ArrayLike) -> FloatArray:
        """Return log P(X > x)."""
        return np.where(np.asarray(x) < 0, 0.0, -np.inf)

    def log_at_most(self, x: ArrayLike) -> FloatArray:
        """Return log P(X ≤ x)."""
        return np.where(np.asarray(x) >= 0, 0.0, -np.inf)

    def support(self) -> IntArray:
        """Return 0."""
        return np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class Negated:
    """The law of −X, for noise that is subtracted."""

    law: Law

    @property
    def width(self) -> float:
        """That of the law."""
        return self.law.width

    @np.errstate(all="ignore")
    def log_pmf(self, x: ArrayLike) -> FloatArray:
        """Return log P(−X = x)."""
        return self.law.log_pmf(-np.asarray(x))

    @np.errstate(all="ignore")
    def log_above(self, x: ArrayLike) -> FloatArray:
        """Return log P(−X > x)."""
        return self.law.log_at_most(-np.asarray(x) - 1)

    @np.errstate(all="ignore")
    def log_at_most(self, x: ArrayLike) -> FloatArray:
        """Return log P(−X ≤ x)."""
        return self.law.log_above(-np.asarray(x) - 1)

    def support(self) -> IntArray:
        """Return the integers that matter."""
        return -self.law.support()[::-1]


def hockey_stick(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    r"""Return :math:`\sum_o [P(o) - e^\varepsilon Q(o)]_+` of two ``(n_outcomes,)`` distributions."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if p.shape != q.shape:
        raise InvalidParameter(f"p and q must have one shape, got {p.shape} and {q.shape}")
    return float(np.maximum(p - exp(real("epsilon", epsilon)) * q, 0.0).sum())


def threshold_test_delta(noise: Law, epsilon: float) -> float:
    r"""Return the exact δ(ε) of the test :math:`v + Z > w`, the worst over all values and both directions.

    It is that of the threshold test of PATE18 (``max count + Z ≥ threshold``) and of the binary Gaussian
    (``lead + Z > 0``): a sensitivity-1 integer, one bit released.
    """
    at = noise.support()
    passes, passes_less = np.exp(noise.log_above(at - 1)), np.exp(noise.log_above(at))
    fails, fails_less = np.exp(noise.log_at_most(at - 1)), np.exp(noise.log_at_most(at))
    factor = exp(real("epsilon", epsilon))
    return float(
        max(
            np.max(passes - factor * passes_less, initial=0.0) , np.max(fails_less - factor * fails, initial=0.0),
        )
    )  # fmt: skip


def stability_test_delta(noise: Law, threshold: float, epsilon: float) -> float:
    r"""Return the exact δ(ε) of the stability test: ``dist + Z > threshold`` releases the class, else ⊥.

    Neighbours are a class with distances d and d ± 1, or two different classes that both have distance 0: a
    neighbour that changes the plurality class leaves it at 0 on both sides.
    """
    line = int(np.floor(real("threshold", threshold)))
    distances = np.arange(0, max(line, 0) + int(noise.support().max()) + 2)
    released = np.exp(noise.log_above(line - distances))
    declined = np.exp(noise.log_at_most(line - distances))
    factor = exp(real("epsilon", epsilon))

    def both(p: Any, q: Any, not_p: Any, not_q: Any) -> float:
        excess = np.maximum(p - factor * q, 0.0) + np.maximum(not_p - factor * not_q, 0.0)
        return float(np.max(excess, initial=0.0))

    same_class = max(
        both(released[1:], released[:-1], declined[1:], declined[:-1]),
        both(released[:-1], released[1:], declined[:-1], declined[1:]),
    )
    # P gives (class a, class b, ⊥) = (p, 0, 1 − p), Q gives (0, p, 1 − p): only class a exceeds.
    other_class = float(released[0])
    return max(same_class, other_class)


def exact_delta(outcomes: Iterable[tuple[Sequence[float], Sequence[float]]], epsilon: float) -> float:
    """Return the largest :func:`hockey_stick` over pairs of distributions, in both directions."""
    return max(max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) for p, q in outcomes)


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
