"""How far one coin is from another: the rate in the bounds of Chernoff and Hoeffding (Hoeffding 1963, Theorem 1)."""

from __future__ import annotations

import math


def relative_entropy(b: float, e: float) -> float:
    """Return kl(b, e) of a coin of bias `b` from one of bias `e`, in nats; both in [0, 1].

    Examples
    --------
    >>> relative_entropy(0.5, 0.5), relative_entropy(0.5, 0.0), round(relative_entropy(0.0, 0.5), 4)
    (0.0, inf, 0.6931)
    """

    def part(x: float, y: float) -> float:
        return 0.0 if x == 0 else math.inf if y == 0 else x * math.log(x / y)

    return part(b, e) + part(1 - b, 1 - e)
