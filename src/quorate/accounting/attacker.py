r"""What (ε, δ) says: in odds, how often the best possible observer is right, and in words that hold for every ε and δ.

The words are the definition: :math:`P(S) \le e^\varepsilon Q(S) + \delta` and
:math:`Q(S) \le e^\varepsilon P(S) + \delta` for every set S of outcomes, whatever somebody may find. They do not say
that the factor holds *except with probability δ*, which would be more: it would bound the privacy loss.

A guarantee is one point (ε, δ). A release has a whole curve δ(ε), of which every point binds the attacker at once, and
what is left is the function of Dong, Roth and Su: the best rate of misses at each rate of false alarms
(:func:`trade_off`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from math import ceil, exp, floor, isfinite, nextafter
from typing import Final

from quorate.accounting.event import Event
from quorate.accounting.figures import at_most, plural, several
from quorate.accounting.neighbouring import Neighbouring
from quorate.accounting.spend import delta
from quorate.ambient import own_switches, plain_decimals
from quorate.errors import InvalidParameter
from quorate.findings import Finding, Outcome, Severity, caution

# What programs decide by.
DELTA_GIVES_AWAY_A_UNIT = "delta-gives-away-a-unit"
DELTA_NOT_COMPARED = "delta-was-not-compared"
EPSILON_PROMISES_LITTLE = "epsilon-promises-little"
#: What whoever reads the guarantee has to know; every other caution is for the owner of a run.
OF_BUDGETS = (DELTA_GIVES_AWAY_A_UNIT, DELTA_NOT_COMPARED, EPSILON_PROMISES_LITTLE)

LARGEST_EPSILON = 10.0  # beyond it an observer may be right in more than 999 of 1,000 cases


def delta_cautions(
    n: int | None, delta: float, unit: str, *, declared: str | None = "n_records"
) -> tuple[Finding, Finding]:
    """Look whether δ is above one in the number `n` of units; where that is not known, say that nobody looked. `unit`:
    the word for one of them. `declared`: what declares their number; None where nothing does.
    """
    units = plural(unit)
    too_large = caution(
        DELTA_GIVES_AWAY_A_UNIT,
        Severity.SERIOUS,
        f"delta = {at_most(delta)} is above 1 / {several(n, unit)}: with it the data of a whole {unit} could be "
        f"published. Choose delta well below 1 / {n:,}"
        if n is not None and delta > 1 / n
        else None,
    )
    if n is None:
        too_large = Finding(code=DELTA_GIVES_AWAY_A_UNIT, severity=Severity.SERIOUS, outcome=Outcome.NOT_RUN)
    unknown = (
        f"delta = {at_most(delta)} was not compared with 1 / n, since n, the number of {units}, is not known here. "
        + ("See" if declared is None else f"Declare it as {declared}, or see")
        + " yourself that delta is well below 1 / n"
    )
    return too_large, caution(DELTA_NOT_COMPARED, Severity.NOTE, unknown if n is None else None)


def epsilon_caution(epsilon: float, delta: float, unit: str) -> Finding:
    """Look whether ε is so large that next to nothing is promised."""
    right = worlds_told_apart(epsilon, delta)
    return caution(
        EPSILON_PROMISES_LITTLE,
        Severity.SERIOUS,
        f"epsilon = {at_most(epsilon)} is above {LARGEST_EPSILON:g}, and promises little: whoever sees the release may "
        f"tell in {right:,} of {PAIRS:,} cases whether the data of one {unit} are among the private rows; tossing a "
        f"coin is right in {PAIRS // 2:,}. Choose a smaller one, such as 1"
        if epsilon > LARGEST_EPSILON
        else None,
    )


def budget_cautions(n: int | None, epsilon: float, delta: float, unit: str) -> tuple[Finding, ...]:
    """Look for what is wrong with a budget: :func:`delta_cautions` and :func:`epsilon_caution`."""
    return (*delta_cautions(n, delta, unit), epsilon_caution(epsilon, delta, unit))


PAIRS = 1000  #: the number of pairs of worlds that sentences speak of
ALMOST: Final = 1.1  #: the largest factor of which "almost as likely" is said
NEARLY: Final = 1.25  #: the largest factor of which "nearly as likely" is said
SMALL_DELTA: Final = 1e-3  #: neither is said of a larger δ
PUBLISHED: Final = "what was published"  #: what a promise covers where all noise was secret
_LARGEST_EXPONENT = 700  # the exponential of more is no float
_RAREST = 10**9  # beyond "1 in 1,000,000,000" a power of ten is easier to read
#: False alarms at which a curve is drawn: closer together where it is steep.
FALSE_ALARMS = (0.0, 0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.07, *(round(0.1 + 0.05 * k, 2) for k in range(19)))
#: ε at which the price of a release is asked for its curve.
EPSILONS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)


def miss_rate(epsilon: float, delta: float, false_alarm: float) -> float:
    r"""Return the lowest rate of misses that an (ε, δ) guarantee leaves to any test with this false-alarm rate.

    `epsilon`, `delta`: the guarantee; ``epsilon >= 0`` and ``0 <= delta <= 1``. `false_alarm`: probability, in [0, 1],
    that the test says *in the data* of somebody who is not.

    Returns :math:`\max(0,\ 1 - δ - e^ε α,\ e^{-ε}(1 - δ - α))`.

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
        raise InvalidParameter(parameter="false_alarm", got=false_alarm, expected="in [0, 1]")
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

    Returns: rounded up, in ``[pairs / 2, pairs]``.

    Examples
    --------
    >>> worlds_told_apart(0.0, 0.0), worlds_told_apart(1.0, 1e-5), worlds_told_apart(800.0, 0.0)
    (500, 732, 1000)
    """
    _check(epsilon, delta)
    if isinstance(pairs, bool) or not isinstance(pairs, int) or pairs < 1:
        raise InvalidParameter(parameter="pairs", got=pairs, expected="an integer >= 1")
    shrunk = Fraction(nextafter(exp(-epsilon), 0.0)) if epsilon > 0 else Fraction(1)  # from below: the rest is exact
    right = (1 + Fraction(repr(delta)) * shrunk) / (1 + shrunk)  # = 1 - (1 - δ)/(1 + e^ε), falling in e^-ε
    return min(pairs, ceil(pairs * right))


def worlds_told_apart_by(delta_at_zero: float) -> int:
    """Return the same, of 1,000 pairs, by δ of the release at ε = 0, its total variation distance: the best observer is
    right with probability :math:`(1 + δ(0))/2` (Dong, Roth and Su 2022, Section 2.1).
    """
    _check(0.0, delta_at_zero)
    return min(PAIRS, ceil(PAIRS * (1 + Fraction(delta_at_zero)) / 2))


def _check(epsilon: float, delta: float) -> None:
    if not (epsilon >= 0 and isfinite(epsilon)):
        raise InvalidParameter(parameter="epsilon", got=epsilon, expected="finite and >= 0")
    if not 0 <= delta <= 1:
        raise InvalidParameter(parameter="delta", got=delta, expected="in [0, 1]")


def closeness(neighbouring: Neighbouring, epsilon: float, delta: float, *, published: str = PUBLISHED) -> str:
    """Return how close the probabilities of what may be `published` are in two neighbouring worlds."""
    if delta >= 1:
        return f"{neighbouring.whether}, nothing is promised: a δ of 1 allows everything to be published."
    if epsilon == 0 and delta == 0:
        return f"{neighbouring.whether}, {published} is exactly as likely to come out the same."
    ratio = exp(min(epsilon, _LARGEST_EXPONENT))
    if ratio <= NEARLY and delta <= SMALL_DELTA:
        likely = "almost" if ratio <= ALMOST else "nearly"
        return (
            f"{neighbouring.whether}, {published} is {likely} as likely to come out the same: whatever somebody may "
            f"find in it is at most {factor(epsilon)} times as likely in the one case as in the other{_plus(delta)}."
        )
    return (
        f"{neighbouring.whether}, whatever somebody may find in {published} is at most {factor(epsilon)} times as "
        f"likely in the one case as in the other{_plus(delta)}."
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
    exact = Decimal(repr(float(number)))  # the shortest decimal of the float: 3.12 stays 3.12
    if exact == 0:
        return "0"
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    written = f"{float((exact / step).to_integral_value(ROUND_CEILING) * step):.{digits + 2}g}"
    mantissa, e, power = written.partition("e")
    return f"{mantissa}e{int(power)}" if e else mantissa


def _plus(delta: float) -> str:
    if delta == 0:
        return ""
    one_in = floor(1 / Fraction(repr(delta)))
    words = f" (1 in {one_in:,})" if 2 <= one_in <= _RAREST else ""
    return f", plus a probability of {rounded_up(delta)}{words}"


@dataclass(frozen=True, slots=True)
class TradeOff:
    """What no test of one release can do better than, however it is made.

    `false_alarms`: rates, rising, in [0, 1], at which *in the data* is said of somebody who is not. `misses`: the least
    rate of misses at each of them, in [0, 1]. Without any release it is one minus the false alarms.
    """

    false_alarms: tuple[float, ...]
    misses: tuple[float, ...]

    @property
    def advantage(self) -> float:
        """The most by which an attacker is ahead of a coin: 1 - false alarms - misses, at the best rate drawn."""
        return max(1.0 - a - m for a, m in zip(self.false_alarms, self.misses, strict=True))


@own_switches()
def trade_off(event: Event, false_alarms: Sequence[float] = FALSE_ALARMS) -> TradeOff:
    r"""Return the trade-off curve of everything that an event releases.

    `event`: what is released, as a ledger has it. `false_alarms`: rates in [0, 1].

    Returns :math:`f(\alpha) = \max_\varepsilon \max(0,\ 1 - \delta(\varepsilon) - e^\varepsilon \alpha,\
    e^{-\varepsilon}(1 - \delta(\varepsilon) - \alpha))` over the ε of :data:`EPSILONS`.

    Notes
    -----
    Every δ(ε) is an upper bound, so each point of the curve is a lower bound on the misses, whichever ε are asked
    for; more of them draw it closer to the truth.

    References
    ----------
    Wasserman and Zhou (2010), arXiv:0811.2501, Theorem 2.4; Dong, Roth and Su (2022), arXiv:1905.02383,
    Proposition 2.12.

    Examples
    --------
    >>> from quorate.accounting import Gaussian
    >>> curve = trade_off(Gaussian(1.0, 1.0), (0.0, 0.05, 0.5, 1.0))
    >>> [round(each, 2) for each in curve.misses]  # of N(0, 1) against N(1, 1): Φ(Φ⁻¹(1 − α) − 1)
    [1.0, 0.74, 0.16, 0.0]
    """
    return trade_off_of([(epsilon, delta(event, epsilon)) for epsilon in EPSILONS], false_alarms)


@own_switches()
def trade_off_of(prices: Sequence[tuple[float, float]], false_alarms: Sequence[float] = FALSE_ALARMS) -> TradeOff:
    """Return the trade-off curve of a release of which some points (ε, δ), at least one, are known to hold.

    `false_alarms`: rates in [0, 1].
    """
    if not prices:
        raise InvalidParameter("prices must hold at least one (epsilon, delta)")
    misses = tuple(max(miss_rate(epsilon, d, alpha) for epsilon, d in prices) for alpha in false_alarms)
    return TradeOff(tuple(false_alarms), misses)
