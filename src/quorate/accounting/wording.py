r"""What (ε, δ) says, in words that hold for every ε and δ.

*Except with probability δ* is meant exactly. Of two laws P and Q with :math:`P(S) \le e^\varepsilon Q(S) + \delta` and
:math:`Q(S) \le e^\varepsilon P(S) + \delta` for every set S of outcomes, cut off the part of P that lies above
:math:`e^\varepsilon Q`, and that of Q above :math:`e^\varepsilon P`. Each part has probability δ at most, and what is
left of the two differs by the factor :math:`e^\varepsilon` at most, outcome by outcome. Where that can be done, both
inequalities hold. It does not say that the privacy loss is at most ε with probability 1 − δ, which would be more.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from math import exp, floor
from typing import Final

from quorate.accounting.neighbouring import Neighbouring
from quorate.accounting.odds import PAIRS
from quorate.ambient import plain_decimals

ALMOST: Final = 1.1  #: the largest factor of which "almost as likely" is said
NEARLY: Final = 1.25  #: the largest factor of which "nearly as likely" is said
SMALL_DELTA: Final = 1e-3  #: neither is said of a larger δ
PUBLISHED: Final = "what was published"  #: what a promise covers where all noise was secret

_LARGEST_EXPONENT = 700  # the exponential of more is no float
_RAREST = 10**9  # beyond "1 in 1,000,000,000" a power of ten is easier to read


def closeness(neighbouring: Neighbouring, epsilon: float, delta: float, *, published: str = PUBLISHED) -> str:
    """Return how close the probabilities of what may be published are in two neighbouring worlds.

    `published` names what the promise covers.

    Examples
    --------
    >>> closeness(Neighbouring.of("add-remove-replace", "person"), 0.05, 0.0)
    'Whether or not any one person is in the data, what was published is almost as likely to come out the same: its probability differs by a factor of at most 1.052.'
    """  # noqa: E501  a doctest's result is one line
    if delta >= 1:
        return f"{neighbouring.whether}, nothing is promised: a δ of 1 allows everything to be published."
    if epsilon == 0 and delta == 0:
        return f"{neighbouring.whether}, {published} is exactly as likely to come out the same."
    ratio = exp(min(epsilon, _LARGEST_EXPONENT))
    if ratio <= NEARLY and delta <= SMALL_DELTA:
        likely = "almost" if ratio <= ALMOST else "nearly"
        return (
            f"{neighbouring.whether}, {published} is {likely} as likely to come out the same: its probability "
            f"differs by a factor of at most {factor(epsilon)}{_except_with(delta)}."
        )
    return (
        f"{neighbouring.whether}, {published} is at most {factor(epsilon)} times more or less likely to come "
        f"out the same{_except_with(delta)}."
    )


def guesses(neighbouring: Neighbouring, right: int, *, published: str = PUBLISHED) -> str:
    """Return the same as odds, where the best observer is right in `right` of 1,000 pairs of worlds on average."""
    return (
        f"Shown {PAIRS:,} pairs of equally likely worlds, {neighbouring.worlds}, the best possible observer of "
        f"{published} would name the real one on average at most {right:,} of {PAIRS:,} times. Tossing a coin would "
        f"name it {PAIRS // 2:,} times on average."
    )


def factor(epsilon: float) -> str:
    """Return e^ε, rounded up; as a power of e where it is no float."""
    if epsilon > _LARGEST_EXPONENT:
        return f"e^{rounded_up(epsilon)}"
    return rounded_up(exp(epsilon) * (1 + 2**-50)) if epsilon else "1"


@plain_decimals()
def rounded_up(number: float, digits: int = 4) -> str:
    """Return `number` with `digits` significant digits, rounded up: a printed ε is never below the charged one."""
    exact = Decimal(repr(number))  # the shortest decimal of the float: 3.12 stays 3.12
    if exact == 0:
        return "0"
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    written = f"{float((exact / step).to_integral_value(ROUND_CEILING) * step):.{digits + 2}g}"
    mantissa, e, power = written.partition("e")
    return f"{mantissa}e{int(power)}" if e else mantissa


def _except_with(delta: float) -> str:
    if delta == 0:
        return ""
    one_in = floor(1 / Fraction(repr(delta)))
    words = f" (1 in {one_in:,})" if 2 <= one_in <= _RAREST else ""
    return f", except with probability {rounded_up(delta)}{words}"
