"""From a curve δ(ε) to the least ε at a given δ, rounded up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf, log
from typing import Any

from quorate.deferred import optimize

_HIGHEST = 2.0**24  # an ε beyond 16 million is as good as none


def least_epsilon(log_delta: Callable[[float], float], delta: float, *, start: float = 1.0) -> float:
    """Return the least ε ≥ 0 with ``log_delta(ε) <= log(delta)``, rounded up; infinite where there is none.

    It is found in floats: what it returns was checked to satisfy the inequality, `delta` rounded down.

    `log_delta`: log δ as a function of ε ≥ 0: continuous, not increasing, an upper bound of the truth. `delta`: δ > 0.
    `start`: a first guess of the size of the answer.

    Examples
    --------
    >>> least_epsilon(lambda epsilon: -2 * epsilon, 1e-4) >= 4.605170185988091
    True
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
