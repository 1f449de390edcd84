"""Arithmetic that rounds upwards, for the places where the float nearest to a bound may lie below it.

The error of a product and of a sum of two floats is a float itself (Dekker 1971; Knuth, TAOCP 4.2.2), so whether the
nearest float lies below the exact value is decided exactly, and what is exact stays what it is.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite, nextafter

import numpy as np

from quorate.types import FloatArray

_SPLITTER = 2.0**27 + 1
_TINY = 2.0**-900  # below, the error of a product may itself be rounded


def quotient_up(numerator: float, denominator: float) -> float:
    """Return the least float at or above `numerator` / `denominator`, both > 0."""
    nearest = numerator / denominator
    if isfinite(nearest) and Fraction(nearest) * Fraction(denominator) < Fraction(numerator):
        return nextafter(nearest, inf)
    return nearest


def product_up(whole: FloatArray, number: float) -> FloatArray:
    """Return the least floats at or above `whole` · `number`, for whole numbers below 2^53."""
    product = whole * number
    (a, b), (c, d) = _halves(whole), _halves(np.asarray(number))
    error = ((a * c - product) + a * d + b * c) + b * d
    inexact = (np.abs(product) < _TINY) & (product != 0)
    return np.where((error > 0) | inexact, np.nextafter(product, inf), product)


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
