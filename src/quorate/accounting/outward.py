"""Arithmetic that rounds upwards, for the places where the float nearest to a bound may lie below it.

The error of a product and of a sum of two floats is a float itself (Dekker 1971; Knuth, TAOCP 4.2.2), so whether the
nearest float lies below the exact value is decided exactly, and what is exact stays what it is. From a curve δ(ε), the
least ε at a given δ is rounded up too.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import inf, isfinite, log, nextafter
from typing import Any

import numpy as np

from quorate.deferred import optimize
from quorate.types import FloatArray

_SPLITTER = 2.0**27 + 1
_TINY = 2.0**-900  # below, the error of a product may itself be rounded


def quotient_up(numerator: float, denominator: float) -> float:
    """Return the least float at or above `numerator` / `denominator`, both > 0."""
    nearest = numerator / denominator
    if isfinite(nearest) and Fraction(nearest) * Fraction(denominator) < Fraction(numerator):
        return nextafter(nearest, inf)
    return nearest


@np.errstate(all="ignore")
def product_up(whole: FloatArray, number: float) -> FloatArray:
    """Return the least floats at or above `whole` · `number`, for whole numbers below 2^53."""
    product = whole * number
    (a, b), (c, d) = _halves(whole), _halves(np.asarray(number))
    error = ((a * c - product) + a * d + b * c) + b * d
    inexact = (np.abs(product) < _TINY) & (product != 0)
    return np.where((error > 0) | inexact, np.nextafter(product, inf), product)


@np.errstate(all="ignore")
def sum_up(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the least floats at or above `first` + `second`."""
    total = first + second
    share = total - first
    error = (first - (total - share)) + (second - share)
    return np.where(error > 0, np.nextafter(total, inf), total)


def _halves(number: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split floats into a high and a low part of 26 bits each."""
    scaled = _SPLITTER * number
    high = scaled - (scaled - number)
    return high, number - high


_HIGHEST = 2.0**24  # an ε beyond 16 million is as good as none


def least_epsilon(log_delta: Callable[[float], float], delta: float, *, start: float = 1.0) -> float:
    """Return the least ε ≥ 0 with ``log_delta(ε) <= log(delta)``, rounded up and checked; infinite where there is none.
    `log_delta`: of ε ≥ 0, continuous, not increasing, an upper bound. `start`: a first guess of the answer's size.
    """
    target = log(delta) * (1 + 2.0**-52)  # a negative number: rounded down

    @cache  # the ends of an interval are asked for again, and so is the root
    def excess(epsilon: float) -> float:
        return min(max(log_delta(epsilon) - target, -1e3), 1e3)

    low, high, shrink = None, max(start, 1e-12), 0.75
    while excess(high) > 0:
        low, high = high, 2 * high
        if high > _HIGHEST:
            return inf
    while low is None:  # curves are cheapest to read near the answer, so walk there from above
        if high * shrink < 1e-13:
            if excess(0.0) <= 0:
                return 0.0
            low = 0.0
        elif excess(high * shrink) > 0:
            low = high * shrink
        else:
            high, shrink = high * shrink, shrink * shrink
    root: Any = optimize.brentq(excess, low, high, xtol=1e-300, rtol=1e-14, maxiter=3000)
    epsilon, step = float(root), 2.0**-50
    while excess(epsilon) > 0:  # brentq may stop on the near side of the root
        epsilon, step = min(epsilon * (1 + step), high), 2 * step
    return epsilon
