"""Shares of an ε and the noise they pay for, rounded so that their sum is never above it; and rows for an error."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, nextafter

from quorate.errors import InvalidParameter
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


_MOST_ROWS = 2**40


def least_rows(bound: Callable[[int], float], alpha: float, *, floor: float, remedy: str) -> int:
    """Return a number of rows n with ``bound(n) <= alpha``: the least, where the bound falls with n.

    `bound`: the error at n rows. `alpha`: the error asked for. `floor`: what the bound tends to with more rows.
    `remedy`: what to do where alpha is not above it. Raises InvalidParameter if no number of rows up to 2^40 is enough.

    Examples
    --------
    >>> least_rows(lambda n: 0.01 + 30 / n, 0.04, floor=0.01, remedy="give up")
    1000
    """
    if not alpha > floor:
        raise InvalidParameter(
            f"alpha must be > {floor:.4g}, which stays with any number of rows, got {alpha!r}; {remedy}"
        )
    enough = 1
    while bound(enough) > alpha:
        if enough >= _MOST_ROWS:
            raise InvalidParameter(f"alpha must be larger: {alpha!r} asks for more than 2^40 rows; {remedy}")
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if bound(middle) > alpha:
            too_few = middle
        else:
            enough = middle
    return enough
