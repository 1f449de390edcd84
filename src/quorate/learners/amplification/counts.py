"""The most and the fewest rows that fit a condition which holds from there on: bisections over whole numbers."""

from __future__ import annotations

from collections.abc import Callable

from quorate.errors import InvalidParameter


def largest_count(fits: Callable[[int], bool], at_most: int) -> int:
    """Return the largest whole number up to `at_most` that `fits`, 0 if none does; it fits from there down to 1."""
    low, high = 0, at_most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def smallest_count(fits: Callable[[int], bool], at_least: int) -> int:
    """Return the smallest whole number from `at_least` on that `fits`, as all larger ones do.

    Raises InvalidParameter if none up to 2^60 does.
    """
    high = max(at_least, 1)
    while not fits(high):
        high *= 2
        if high > 2**60:
            raise InvalidParameter(
                "no number of rows up to 2^60 is enough; raise epsilon, lower base.epsilon, or ask for a larger error"
            )
    low = max(at_least, 0)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low
