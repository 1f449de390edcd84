r"""The exact audit of mechanisms with few outcomes: the hockey-stick divergence, summed on the lattice.

Where a mechanism gives outcome o with probability :math:`P(o)` on a data set and :math:`Q(o)` on its neighbour,
:math:`\delta(\varepsilon) = \sum_o [P(o) - e^\varepsilon Q(o)]_+`. Nothing is sampled, so a single pair with more than
the claimed δ disproves a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quorate.arguments import real
from quorate.audit.lattice import Law
from quorate.errors import InvalidParameter


def hockey_stick(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    r"""Return :math:`\sum_o [P(o) - e^\varepsilon Q(o)]_+` of two ``(n_outcomes,)`` distributions.

    Examples
    --------
    >>> round(hockey_stick([0.75, 0.25], [0.25, 0.75], 1.0), 6)  # 0.75 - 0.25 e
    0.07043
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if p.shape != q.shape:
        raise InvalidParameter(f"p and q must have one shape, got {p.shape} and {q.shape}")
    return float(np.maximum(p - exp(real("epsilon", epsilon)) * q, 0.0).sum())


def threshold_test_delta(noise: Law, epsilon: float) -> float:
    r"""Return the exact δ(ε) of the test :math:`v + Z > w`, the worst over all values and both directions.

    It is that of the threshold test of PATE18 (``max count + Z ≥ threshold``) and of the binary Gaussian
    (``lead + Z > 0``): a sensitivity-1 integer, one bit released.

    Examples
    --------
    >>> from quorate.audit import DiscreteLaplaceLaw
    >>> threshold_test_delta(DiscreteLaplaceLaw(2.0), 0.5) < 1e-15  # 1/b-DP
    True
    """
    at = noise.support()
    passes, passes_less = np.exp(noise.log_above(at - 1)), np.exp(noise.log_above(at))
    fails, fails_less = np.exp(noise.log_at_most(at - 1)), np.exp(noise.log_at_most(at))
    factor = exp(real("epsilon", epsilon))
    return float(
        max(
            np.max(passes - factor * passes_less, initial=0.0) , np.max(fails_less - factor * fails, initial=0.0),
        )
    )  # fmt: skip


def stability_test_delta(noise: Law, threshold: float, epsilon: float) -> float:
    r"""Return the exact δ(ε) of the stability test: ``dist + Z > threshold`` releases the class, else ⊥.

    Neighbours are a class with distances d and d ± 1, or two different classes that both have distance 0: a
    neighbour that changes the plurality class leaves it at 0 on both sides.

    Examples
    --------
    >>> from quorate.audit import DiscreteLaplaceLaw
    >>> 0 < stability_test_delta(DiscreteLaplaceLaw(2.0), 2 * np.log(1e5), 0.5) < 1e-5
    True
    """
    line = int(np.floor(real("threshold", threshold)))
    distances = np.arange(0, max(line, 0) + int(noise.support().max()) + 2)
    released = np.exp(noise.log_above(line - distances))
    declined = np.exp(noise.log_at_most(line - distances))
    factor = exp(real("epsilon", epsilon))

    def both(p: Any, q: Any, not_p: Any, not_q: Any) -> float:
        excess = np.maximum(p - factor * q, 0.0) + np.maximum(not_p - factor * not_q, 0.0)
        return float(np.max(excess, initial=0.0))

    same_class = max(
        both(released[1:], released[:-1], declined[1:], declined[:-1]),
        both(released[:-1], released[1:], declined[:-1], declined[1:]),
    )
    # P gives (class a, class b, ⊥) = (p, 0, 1 − p), Q gives (0, p, 1 − p): only class a exceeds.
    other_class = float(released[0])
    return max(same_class, other_class)


def exact_delta(outcomes: Iterable[tuple[Sequence[float], Sequence[float]]], epsilon: float) -> float:
    """Return the largest :func:`hockey_stick` over pairs of distributions, in both directions.

    Examples
    --------
    >>> round(exact_delta([([0.25, 0.75], [0.75, 0.25])], 1.0), 6)
    0.07043
    """
    return max(max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) for p, q in outcomes)
