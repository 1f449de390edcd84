"""What an algorithm costs for each replaced row, as a value that rules turn into another one.

The most and the fewest rows that fit a condition which holds from there on are found by bisections over whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.accounting import ApproxDP, PureDP
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

SLACK = 2.0**-40  #: more than the rounding of any formula here; the longest has some thousand operations
LARGEST_EPSILON = 500.0  #: e^500 is a float; no larger ε is a promise


@stored_as("quorate.learners.amplification.Price")
@dataclass(frozen=True, slots=True)
class Price:
    """What an algorithm costs per replaced row: it is (ε, δ)-differentially private.

    `epsilon`: from 0 to 500. `delta`: from 0 to 1. Raises InvalidParameter if a number is out of range.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, at_least=0, at_most=LARGEST_EPSILON))
        object.__setattr__(self, "delta", real("delta", self.delta, at_least=0, at_most=1))

    @property
    def event(self) -> PureDP | ApproxDP:
        """The price as what a ledger is charged."""
        return ApproxDP(self.epsilon, self.delta) if self.delta > 0 else PureDP(self.epsilon)

    def within(self, target: Price) -> bool:
        """Whether neither figure is above that of `target`."""
        return self.epsilon <= target.epsilon and self.delta <= target.delta

    @classmethod
    def of_event(cls, event: PureDP | ApproxDP) -> Price:
        """Return the price that an event states."""
        return cls(event.epsilon, event.delta if isinstance(event, ApproxDP) else 0.0)


def rounded_up_price(epsilon: float, delta: float) -> Price:
    """Return a price from figures that were computed in floats: both a little larger, δ at most 1.

    Examples
    --------
    >>> rounded_up_price(1.0, 2.0).delta
    1.0
    """
    return Price(epsilon * (1 + SLACK), min(1.0, delta * (1 + SLACK)))


def worst_of(*prices: Price) -> Price:
    """Return what covers each of several cases: the larger ε and the larger δ."""
    return Price(max(each.epsilon for each in prices), max(each.delta for each in prices))


def largest_count(fits: Callable[[int], bool], at_most: int) -> int:
    """Return the largest whole number up to `at_most` that `fits`, 0 if none does; it fits from there down to 1."""
    low, high = 0, at_most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def smallest_count(fits: Callable[[int], bool], at_least: int) -> int:
    """Return the smallest whole number from `at_least` on that `fits`, as all larger ones do.

    Raises InvalidParameter if none up to 2^60 does.
    """
    high = max(at_least, 1)
    while not fits(high):
        high *= 2
        if high > 2**60:
            raise InvalidParameter(
                "no number of rows up to 2^60 is enough; raise epsilon, lower base.epsilon, or ask for a larger error"
            )
    low = max(at_least, 0)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low
