"""From a bound on the error at n rows to the rows that an error asks for."""

from __future__ import annotations

from collections.abc import Callable

from quorate.errors import InvalidParameter

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
