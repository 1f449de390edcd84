r"""The exact audit of mechanisms with few outcomes: the hockey-stick divergence, summed on the lattice.

:math:`\delta(\varepsilon) = \sum_o [P(o) - e^\varepsilon Q(o)]_+` on two neighbours. Nothing is sampled, so a single
pair with more than the claimed δ disproves a claim. The laws of integer noise stand here in closed form, with their
tails in log space, written from the definitions and not from the samplers or the accountant: each can be checked by the
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.types import FloatArray, IntArray

_LOG_SMALLEST = -690.0  # e^-690: about the smallest normal float


class Law(Protocol):
    """The law of an integer noise X."""

    def log_pmf(self, x: ArrayLike) -> FloatArray:
        """Return log P(X = x)."""
        ...

    def log_above(self, x: ArrayLike) -> FloatArray:
        """Return log P(X > x)."""
        ...

    def log_at_most(self, x: ArrayLike) -> FloatArray:
        """Return log P(X ≤ x)."""
        ...

    def support(self) -> IntArray:
        """Return the integers that matter: all of them, but for a mass below e⁻⁶⁹⁰."""
        ...

    @property
    def width(self) -> float:
        """How wide the law is, in votes: its scale or σ."""
        ...


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
