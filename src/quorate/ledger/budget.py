"""The budget of a release in whole units rounded the private way, and what is spent and left of it for people.

A unit is a billionth of ε or ρ, or 10⁻¹⁸ of δ. A float that a user writes, or that an event is stored with, stands for
the decimal that its shortest representation spells: ``0.1`` is one tenth, from which its binary value differs by less
than one part in 10¹⁵. So ten charges of 0.1 fill a budget of 1 exactly, and a budget can be spent to its last unit,
while every figure between two units is rounded up where it is charged and down where it is a limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from quorate.accounting import delta_of_zcdp, epsilon_of_zcdp
from quorate.arguments import one_of, real
from quorate.errors import BudgetExhausted, InvalidParameter, named

EPSILON_DIGITS: Final = 9  # one unit is 10⁻⁹ of ε, and of ρ
DELTA_DIGITS: Final = 18  # one unit is 10⁻¹⁸ of δ


def units_up(value: float, digits: int) -> int:
    """Return ``value`` in units of ``10**-digits``, rounded up."""
    return math.ceil(Fraction(repr(value)) * _scale(digits))


def units_down(value: float, digits: int) -> int:
    """Return ``value`` in units of ``10**-digits``, rounded down."""
    return math.floor(Fraction(repr(value)) * _scale(digits))


def float_up(units: int, digits: int) -> float:
    """Return a float, as near as floats allow, that spells a decimal not below ``units * 10**-digits``."""
    value = units / _scale(digits)
    while Fraction(repr(value)) * _scale(digits) < units:
        value = math.nextafter(value, math.inf)
    return value


def float_down(units: int, digits: int) -> float:
    """Return a float, as near as floats allow, that spells a decimal not above ``units * 10**-digits``."""
    value = units / _scale(digits)
    while Fraction(repr(value)) * _scale(digits) > units:
        value = math.nextafter(value, -math.inf)
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetUnits:
    """What was charged, or may be: whole numbers, so that sums are exact and the same on every machine.

    Units of 10⁻⁹ of ε, of 10⁻¹⁸ of δ, and of 10⁻⁹ of the ρ of zCDP.
    """

    epsilon_e9: int = 0
    delta_e18: int = 0
    rho_e9: int = 0

    def __post_init__(self) -> None:
        for name in ("epsilon_e9", "delta_e18", "rho_e9"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise InvalidParameter(parameter=name, got=value, expected="an integer >= 0")

    def __add__(self, other: BudgetUnits) -> BudgetUnits:
        return BudgetUnits(
            epsilon_e9=self.epsilon_e9 + other.epsilon_e9,
            delta_e18=self.delta_e18 + other.delta_e18,
            rho_e9=self.rho_e9 + other.rho_e9,
        )

    def within(self, limit: BudgetUnits) -> bool:
        """Whether no amount passes its limit."""
        return self.epsilon_e9 <= limit.epsilon_e9 and self.delta_e18 <= limit.delta_e18 and self.rho_e9 <= limit.rho_e9


def check_fits(requested: BudgetUnits, *, spent: BudgetUnits, limit: BudgetUnits) -> None:
    """Raise :class:`~quorate.errors.BudgetExhausted` where ``requested`` on top of ``spent`` passes ``limit``.

    Every amount that passes its own limit is named at once.
    """
    refusal, passed = None, list[str]()
    for unit, name, digits in (
        ("ρ", "rho_e9", EPSILON_DIGITS),
        ("δ", "delta_e18", DELTA_DIGITS),
        ("ε", "epsilon_e9", EPSILON_DIGITS),  # the last one that is passed is named first
    ):
        already, wanted, most = getattr(spent, name), getattr(requested, name), getattr(limit, name)
        if already + wanted > most:
            figures = float_up(already, digits), float_up(wanted, digits), float_down(most, digits)
            excess = (
                f"{unit}={figures[1]:.10g} on top of {unit}={figures[0]:.10g} would pass the limit "
                f"{unit}={figures[2]:.10g}"
            )
            passed.insert(0, excess)
            refusal = BudgetExhausted(
                f"charging {', and '.join(passed)}",
                advice=f"ask fewer queries, raise {named('sigma')}, or raise the budget with a reason",
                spent=figures[0],
                requested=figures[1],
                limit=figures[2],
                unit=unit,
                also=refusal,
            )
    if refusal is not None:
        raise refusal


def _scale(digits: int) -> int:
    return int(10**digits)


Composition: TypeAlias = Literal["sum", "zcdp"]


@dataclass(frozen=True, slots=True)
class Budget:
    r"""The lifetime budget of one release: one private data set under one name.

    It is a cap on all that is ever spent. It comes back with no time and no new run; it is raised by an entry of the
    ledger alone, with a reason, which every later report shows.

    Parameters
    ----------
    epsilon : float
        Largest ε of everything that is ever released. Finite and positive, at least 10⁻⁹.
    delta : float
        Largest δ, in [0, 1). Positive under ``"zcdp"``.
    composition : {"sum", "zcdp"}, default "sum"
        How reservations add up: sums of :math:`(\varepsilon_j, \delta_j)`, or of :math:`\rho_j` up to the largest
        ρ that is worth no more than :math:`(\varepsilon, \delta)`. Fixed when the ledger is opened: taking the
        better of two rules afterwards is not covered by a theorem.

    Notes
    -----
    Privacy: both rules hold when later reservations are chosen after looking at earlier answers
    (Rogers, Roth, Ullman and Vadhan 2016, Theorem 5.1 for sums; Feldman and Zrnic 2021, Theorem 1 for ρ).

    Examples
    --------
    >>> Budget(1.0, 1e-5).limit
    BudgetUnits(epsilon_e9=1000000000, delta_e18=10000000000000, rho_e9=0)
    >>> Budget(1.0, 1e-5, composition="zcdp").limit
    BudgetUnits(epsilon_e9=0, delta_e18=0, rho_e9=30556595)
    """

    epsilon: float
    delta: float
    composition: Composition = "sum"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, at_least=10**-EPSILON_DIGITS))
        object.__setattr__(self, "delta", real("delta", self.delta, at_least=0, below=1))
        one_of("composition", self.composition, ("sum", "zcdp"))
        if self.composition == "zcdp" and units_down(self.delta, DELTA_DIGITS) < 2:
            raise InvalidParameter(
                parameter="delta", got=self.delta, expected="at least 2e-18 under zCDP", advice='or compose by "sum"'
            )

    @property
    def limit(self) -> BudgetUnits:
        """The largest sum of amounts, rounded down: of ε and δ, or of ρ."""
        if self.composition == "sum":
            return BudgetUnits(
                epsilon_e9=units_down(self.epsilon, EPSILON_DIGITS), delta_e18=units_down(self.delta, DELTA_DIGITS)
            )
        return BudgetUnits(rho_e9=largest_rho(self.epsilon, self.delta))

    def same_as(self, other: Budget) -> bool:
        """Whether both allow the same, to the unit, by the same rule."""
        return self.composition == other.composition and all(
            units_down(mine, digits) == units_down(theirs, digits)
            for mine, theirs, digits in (
                (self.epsilon, other.epsilon, EPSILON_DIGITS),
                (self.delta, other.delta, DELTA_DIGITS),
            )
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """BudgetUnits as floats, for people: rounded up where they were spent, down where they are left.

    `epsilon`, `delta`: under ``"zcdp"`` the ε that the spent ρ is worth at the budget's δ, and that δ; None for what is
    left. `rho`: None under ``"sum"``.
    """

    epsilon: float | None
    delta: float | None
    rho: float | None


def spent_totals(spent: BudgetUnits, budget: Budget) -> Totals:
    """Return what was spent, rounded up."""
    if budget.composition == "sum":
        return Totals(
            epsilon=float_up(spent.epsilon_e9, EPSILON_DIGITS), delta=float_up(spent.delta_e18, DELTA_DIGITS), rho=None
        )
    if not spent.rho_e9:
        return Totals(epsilon=0.0, delta=0.0, rho=0.0)
    epsilon = epsilon_of_zcdp(float_up(spent.rho_e9, EPSILON_DIGITS), _kept_delta(budget.delta))
    return Totals(
        epsilon=float_up(units_up(epsilon, EPSILON_DIGITS), EPSILON_DIGITS),
        delta=budget.delta,
        rho=float_up(spent.rho_e9, EPSILON_DIGITS),
    )


def left_totals(spent: BudgetUnits, limit: BudgetUnits, budget: Budget) -> Totals:
    """Return what is left, rounded down: a reservation of exactly that much is accepted."""
    if budget.composition == "sum":
        return Totals(
            epsilon=float_down(limit.epsilon_e9 - spent.epsilon_e9, EPSILON_DIGITS),
            delta=float_down(limit.delta_e18 - spent.delta_e18, DELTA_DIGITS),
            rho=None,
        )
    return Totals(epsilon=None, delta=None, rho=float_down(limit.rho_e9 - spent.rho_e9, EPSILON_DIGITS))


def comes_to(budget: Budget, limit: BudgetUnits) -> bool:
    """Whether ``limit`` is what ``budget`` comes to: a ρ may be lower, or one unit of rounding above."""
    expected = budget.limit
    return limit.rho_e9 <= expected.rho_e9 + bool(expected.rho_e9) and (limit.epsilon_e9, limit.delta_e18) == (
        expected.epsilon_e9,
        expected.delta_e18,
    )


def largest_rho(epsilon: float, delta: float) -> int:
    r"""Return the largest ρ, in units of 10⁻⁹ rounded down, for which ρ-zCDP implies (``epsilon``, ``delta``)-DP.

    One unit (10⁻¹⁸) of δ is kept back for the distance of the integer samplers from their laws; it covers
    :math:`2^{130} / (1 + e^\varepsilon)` draws.

    Canonne, Kamath and Steinke (2020), arXiv:2004.00010, Corollary 13, with the order chosen continuously.
    """
    kept = _kept_delta(delta)

    def affords(units: int) -> bool:
        return delta_of_zcdp(float_up(units, EPSILON_DIGITS), epsilon) <= kept

    low, high = 0, units_up(epsilon, EPSILON_DIGITS)
    while affords(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affords(middle) else (low, middle)
    return low


def _kept_delta(delta: float) -> float:
    return float_down(units_down(delta, DELTA_DIGITS) - 1, DELTA_DIGITS)
