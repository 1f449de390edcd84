"""What a guarantee means in odds: how often the best possible observer is right."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp, isfinite, nextafter

from quorate.errors import InvalidParameter

PAIRS = 1000  #: the number of pairs of worlds that sentences speak of


def miss_rate(epsilon: float, delta: float, false_alarm: float) -> float:
    r"""Return the lowest rate of misses that an (ε, δ) guarantee leaves to any test with this false-alarm rate.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee; ``epsilon >= 0`` and ``0 <= delta <= 1``.
    false_alarm : float
        Probability, in [0, 1], that the test says *in the data* of somebody who is not.

    Returns
    -------
    float
        Probability in [0, 1]: :math:`\max(0,\ 1 - δ - e^ε α,\ e^{-ε}(1 - δ - α))`.

    References
    ----------
    Wasserman and Zhou (2010), arXiv:0811.2501, Theorem 2.4; Dong, Roth and Su (2022), arXiv:1905.02383,
    Proposition 2.5: the trade-off function of (ε, δ)-differential privacy.

    Examples
    --------
    >>> miss_rate(0.0, 0.0, 0.25)
    0.75
    """
    _check(epsilon, delta)
    if not 0 <= false_alarm <= 1:
        raise InvalidParameter(f"false_alarm must be in [0, 1], got {false_alarm!r}")
    shrunk = exp(-epsilon)  # the first line is written with e^-ε too, so that a large ε does not overflow
    first = (1 - delta) - false_alarm / shrunk if shrunk > 0 and false_alarm <= shrunk else 0.0
    return max(0.0, first, shrunk * (1 - delta - false_alarm))


def worlds_told_apart(epsilon: float, delta: float, pairs: int = PAIRS) -> int:
    r"""Return in how many of `pairs` equally likely pairs of worlds the best observer is right on average, at most.

    Each pair is two worlds that differ in one unit, and a fair coin says which of them is real. An observer who
    sees the release alone, and tests as well as the guarantee permits, is right with probability
    :math:`1 - \min_α (α + f(α))/2` where :math:`f` is :func:`miss_rate`. The minimum is where the two lines of
    :math:`f` meet, :math:`α = f(α) = (1 - δ)/(1 + e^ε)`. A coin is right in half of them. The number of right answers
    is random, for observer and coin alike; this bounds its expectation.

    Returns
    -------
    int
        Rounded up, in ``[pairs / 2, pairs]``.

    Examples
    --------
    >>> worlds_told_apart(0.0, 0.0), worlds_told_apart(1.0, 1e-5), worlds_told_apart(800.0, 0.0)
    (500, 732, 1000)
    """
    _check(epsilon, delta)
    if isinstance(pairs, bool) or not isinstance(pairs, int) or pairs < 1:
        raise InvalidParameter(f"pairs must be an integer >= 1, got {pairs!r}")
    shrunk = Fraction(nextafter(exp(-epsilon), 0.0)) if epsilon > 0 else Fraction(1)  # from below: the rest is exact
    right = (1 + Fraction(repr(delta)) * shrunk) / (1 + shrunk)  # = 1 - (1 - δ)/(1 + e^ε), falling in e^-ε
    return min(pairs, ceil(pairs * right))


def worlds_told_apart_by(delta_at_zero: float, pairs: int = PAIRS) -> int:
    r"""Return the same by the exact price of a release, which is its δ at ε = 0.

    That is the total variation distance of the release between the two worlds, and the best observer is right with
    probability :math:`(1 + δ(0))/2` (Dong, Roth and Su 2022, Section 2.1): often much less than one (ε, δ) allows.

    `delta_at_zero`: δ of the release at ε = 0, rounded up, in [0, 1]. `pairs`: how many pairs. Returns: rounded up, in
    ``[pairs / 2, pairs]``.
    """
    _check(0.0, delta_at_zero)
    return min(pairs, ceil(pairs * (1 + Fraction(delta_at_zero)) / 2))


def _check(epsilon: float, delta: float) -> None:
    if not (epsilon >= 0 and isfinite(epsilon)):
        raise InvalidParameter(f"epsilon must be finite and >= 0, got {epsilon!r}")
    if not 0 <= delta <= 1:
        raise InvalidParameter(f"delta must be in [0, 1], got {delta!r}")
