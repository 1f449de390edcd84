"""How many dichotomies a class can realise, and the limit above which none are enumerated.

The bounds are functions of the class and of the *number* of points, which is public: whether an enumeration is refused
tells nothing of the points themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Final

from quorate.arguments import count
from quorate.errors import InvalidParameter

#: Dichotomies that are enumerated at most where nothing else is said: thresholds of four million points.
DICHOTOMY_LIMIT: Final = 1 << 22

#: Steps of a search, at most, where they grow faster than the points: about a minute.
WORK_LIMIT: Final = 1 << 33


def symmetric_difference_vc(growth: Callable[[int], int]) -> int:
    r"""Return the largest VC dimension that :math:`C^{\oplus} = \{h \oplus f : h, f \in C\}` can have.

    Two equal concepts give the constant 0, and each of the other pairs gives one dichotomy, so that
    :math:`1 + \binom{\Pi_C(n)}{2} \ge 2^n` wherever n points are shattered; and whoever shatters n points shatters
    every smaller number of them. So the bound is the last n before the inequality fails for the first time.

    Parameters
    ----------
    growth : callable
        An upper bound on :math:`\Pi_C(n)`, the largest number of dichotomies of C on n points, for every n.

    References
    ----------
    BNS15, the observation on VC(C⊕) in Section 3: the same count, rounded there to 10 VC(C).

    Examples
    --------
    >>> from quorate.theory import sauer
    >>> symmetric_difference_vc(lambda n: n + 1), symmetric_difference_vc(lambda n: sauer(n, 2))
    (2, 11)
    """
    n = 0
    while 1 + comb(growth(n + 1), 2) >= 2 ** (n + 1):
        n += 1
    return n


def refuse_beyond(limit: int, n_dichotomies: int, concepts: object) -> None:
    """Refuse an enumeration of more dichotomies than `limit`.

    Raises InvalidParameter with the number in the message.

    Examples
    --------
    >>> refuse_beyond(10, 11, "Thresholds(bits=8)")
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: limit: 'Thresholds(bits=8)' may realise up to 11 dichotomies on so many points, more than 10; take fewer points or a smaller class, or raise the limit
    """  # noqa: E501  a doctest's message is one line
    if n_dichotomies > count("limit", limit, at_least=1):
        raise InvalidParameter(
            f"limit: {concepts!r} may realise up to {n_dichotomies} dichotomies on so many points, more than {limit}; "
            "take fewer points or a smaller class, or raise the limit"
        )


def refuse_work(steps: int, concepts: object) -> None:
    """Refuse a search of more than :data:`WORK_LIMIT` steps.

    Raises InvalidParameter with the number in the message.

    Examples
    --------
    >>> refuse_work(2**34, "Stumps(n_features=20)")
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: points: a search among 'Stumps(n_features=20)' on so many points may take 17179869184 steps, more than 8589934592; use fewer points, fewer columns or a coarser grid
    """  # noqa: E501  a doctest's message is one line
    if steps > WORK_LIMIT:
        raise InvalidParameter(
            f"points: a search among {concepts!r} on so many points may take {steps} steps, more than {WORK_LIMIT}; "
            "use fewer points, fewer columns or a coarser grid"
        )
