"""Shares of an ε and the noise they pay for, rounded so that their sum is never above it."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter

from quorate.noise.source import checked_scale


def share(epsilon: float, parts: int | Fraction) -> float:
    r"""Return ε divided by `parts`, rounded so that the parts together are never above it, in exact arithmetic."""
    part = float(Fraction(epsilon) / parts)
    while Fraction(part) * parts > Fraction(epsilon):
        part = nextafter(part, 0.0)
    return part


def least_scale(sensitivity: int, epsilon: float) -> float:
    r"""Return the least float λ with :math:`\Delta/\lambda \le \varepsilon`, in exact arithmetic."""
    scale = sensitivity / epsilon
    while Fraction(scale) * Fraction(epsilon) < sensitivity:
        scale = nextafter(scale, inf)
    return checked_scale("scale of the noise, sensitivity / epsilon,", scale)
