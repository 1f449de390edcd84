"""What the samplers accept: a positive scale, and a shape."""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from quorate.arguments import count, real
from quorate.errors import InvalidParameter

Size: TypeAlias = int | tuple[int, ...]

#: Largest scale of any noise, in votes. Every draw and every sum with counts stays far inside int64.
MAX_SCALE = 2.0**40


def checked_scale(name: str, value: object) -> float:
    """Return `value` as a float, or refuse it unless it is a number in ``(0, 2**40]``.

    Examples
    --------
    >>> checked_scale("sigma", 3)
    3.0
    """
    scale = real(name, value, above=0)
    if scale > MAX_SCALE:
        raise InvalidParameter(f"{name} must be at most 2^40 votes, got {value!r}; use a coarser unit")
    return scale


def checked_shape(size: Size) -> tuple[tuple[int, ...], int]:
    """Return `size` as a tuple of non-negative ints, and their product.

    Examples
    --------
    >>> checked_shape(3), checked_shape((2, 5)), checked_shape(())
    (((3,), 3), ((2, 5), 10), ((), 1))
    """
    shape = tuple(count("size", side) for side in (size if isinstance(size, tuple) else (size,)))
    return shape, prod(shape)
