"""The (ε, δ) that a release aims at, in the units that a ledger counts in."""

from __future__ import annotations

from typing import Any

from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.ledger.budget_units import DELTA_DIGITS, EPSILON_DIGITS, float_down, units_down


def floor_epsilon(epsilon: Any) -> float:
    """Check ε > 0, and round it down to the units that a ledger counts in.

    Examples
    --------
    >>> floor_epsilon(1.0986122886681098)
    1.098612288
    """
    return _floored("epsilon", real("epsilon", epsilon, above=0, hint="Example: epsilon=1.0"), EPSILON_DIGITS)


def floor_budget(epsilon: Any, delta: Any) -> tuple[float, float]:
    """Check ε > 0 and 0 < δ < 1, and round them down to the units that a ledger counts in."""
    epsilon = real("epsilon", epsilon, above=0, hint="Example: epsilon=1.0")
    delta = real("delta", delta, above=0, below=1, hint="Choose it below 1 / number of units, for example delta=1e-6")
    return _floored("epsilon", epsilon, EPSILON_DIGITS), _floored("delta", delta, DELTA_DIGITS)


def _floored(name: str, given: float, digits: int) -> float:
    units = units_down(given, digits)
    if not units:
        raise InvalidParameter(f"{name} must be at least 1e-{digits}, the unit that ledgers count in, got {given}")
    return float_down(units, digits)
