"""The checks every number of this room passes: one line for the user, and NaN is refused by construction."""

from __future__ import annotations

from math import inf, isfinite
from numbers import Integral, Real
from typing import Any

from quorate.errors import InvalidParameter


def _number(name: str, value: Any, expected: str) -> float:
    if isinstance(value, bool) or type(value).__name__ == "bool" or not isinstance(value, Real):
        raise InvalidParameter(f"{name} must be {expected}, got {value!r}; pass an int or a float")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the floats
        number = inf
    if not isfinite(number):
        raise InvalidParameter(f"{name} must be {expected}, got {value!r}; pass a finite number")
    return number


def positive(name: str, value: Any) -> float:
    """Return `value` as a finite float above 0, or raise.

    Examples
    --------
    >>> positive("sigma", 40)
    40.0
    """
    number = _number(name, value, "a number > 0")
    if not number > 0:
        raise InvalidParameter(f"{name} must be a number > 0, got {value!r}; pass a larger one")
    return number


def non_negative(name: str, value: Any) -> float:
    """Return `value` as a finite float of at least 0, or raise.

    Examples
    --------
    >>> non_negative("epsilon", 0)
    0.0
    """
    number = _number(name, value, "a number >= 0")
    if not number >= 0:
        raise InvalidParameter(f"{name} must be a number >= 0, got {value!r}; pass a larger one")
    return number + 0.0  # −0.0 becomes 0.0: equal values get equal JSON


def probability(name: str, value: Any, *, below_one: bool = False) -> float:
    """Return `value` as a float in [0, 1] (or [0, 1)), or raise.

    Examples
    --------
    >>> probability("delta", 1e-5)
    1e-05
    """
    expected = f"a probability in [0, 1{')' if below_one else ']'}"
    number = _number(name, value, expected)
    if not 0 <= number <= 1 or (below_one and number == 1):
        raise InvalidParameter(f"{name} must be {expected}, got {value!r}; pass a number in that range")
    return number + 0.0


def whole(name: str, value: Any, *, least: int = 0) -> int:
    """Return `value` as an int of at least `least`, or raise. A float is refused, whole or not.

    Examples
    --------
    >>> whole("times", 977)
    977
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not int(value) >= least:
        raise InvalidParameter(f"{name} must be an integer >= {least}, got {value!r}; pass a whole number")
    return int(value)
