"""BudgetUnits: whole numbers of a billionth of ε or ρ and of 10⁻¹⁸ of δ, rounded the private way.

A float that a user writes, or that an event is stored with, stands for the decimal that its shortest
representation spells: ``0.1`` is one tenth, from which its binary value differs by less than one part in 10¹⁵. So
ten charges of 0.1 fill a budget of 1 exactly, and a budget can be spent to its last unit, while every figure between
two units is rounded up where it is charged and down where it is a limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from quorate.errors import BudgetExhausted, InvalidParameter

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

    Parameters
    ----------
    epsilon_e9 : int, default 0
        Units of 10⁻⁹ of ε.
    delta_e18 : int, default 0
        Units of 10⁻¹⁸ of δ.
    rho_e9 : int, default 0
        Units of 10⁻⁹ of the ρ of zCDP.

    Examples
    --------
    >>> BudgetUnits(epsilon_e9=3) + BudgetUnits(epsilon_e9=4, delta_e18=1)
    BudgetUnits(epsilon_e9=7, delta_e18=1, rho_e9=0)
    """

    epsilon_e9: int = 0
    delta_e18: int = 0
    rho_e9: int = 0

    def __post_init__(self) -> None:
        for name in ("epsilon_e9", "delta_e18", "rho_e9"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise InvalidParameter(f"{name} must be an integer >= 0, got {value!r}")

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
    refusal = None
    for unit, name, digits in (
        ("ρ", "rho_e9", EPSILON_DIGITS),
        ("δ", "delta_e18", DELTA_DIGITS),
        ("ε", "epsilon_e9", EPSILON_DIGITS),  # the last one that is passed is named first
    ):
        already, asked, most = getattr(spent, name), getattr(requested, name), getattr(limit, name)
        if already + asked > most:
            figures = float_up(already, digits), float_up(asked, digits), float_down(most, digits)
            told = (
                f"{unit}={figures[1]:.10g} on top of {unit}={figures[0]:.10g} would pass the limit "
                f"{unit}={figures[2]:.10g}" + ("" if refusal is None else f", and {_without_remedy(refusal)}")
            )
            refusal = BudgetExhausted(
                f"charging {told}; ask fewer queries, raise sigma, or raise the budget with a reason",
                spent=figures[0],
                requested=figures[1],
                limit=figures[2],
                unit=unit,
                also=refusal,
            )
    if refusal is not None:
        raise refusal


def _without_remedy(refusal: BudgetExhausted) -> str:
    return str(refusal).partition(";")[0].removeprefix("charging ")


def _scale(digits: int) -> int:
    return int(10**digits)
