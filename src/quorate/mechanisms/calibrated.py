"""The least noise that a budget allows: a mechanism is made with more and more of it until its schedule fits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from quorate.accounting import Event
from quorate.accounting import epsilon as price
from quorate.errors import InvalidParameter

LEDGER_STEP = 1e-9  # a ledger rounds ε up to this
_MOST_NOISE = 2.0**60  # votes; what does not fit with this much of it never will


class Scheduled(Protocol):
    """A mechanism, as far as the price of its answers goes."""

    def schedule(self, answers: int) -> Event:
        """Return the price of at most so many answers."""
        ...


Made = TypeVar("Made", bound=Scheduled)


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """What is to be answered, and what it may cost.

    Attributes
    ----------
    answers : int
        All answers together, ≥ 1.
    epsilon, delta : float
        What they may cost together.
    """

    answers: int
    epsilon: float
    delta: float

    def fits(self, mechanism: Scheduled) -> bool:
        """Whether all answers of `mechanism` cost no more, also in a ledger's units.

        Examples
        --------
        >>> from quorate.mechanisms import NoisyCounts
        >>> schedule = Schedule(answers=100, epsilon=1.0, delta=1e-5)
        >>> schedule.fits(NoisyCounts(sigma=60.0)), schedule.fits(NoisyCounts(sigma=40.0))
        (True, False)
        """
        return price(mechanism.schedule(self.answers), self.delta) <= self.epsilon - LEDGER_STEP


def least(family: Callable[[float], Made], start: float, schedule: Schedule) -> Made:
    """Return the first member at or above `start` that fits; `start` is right to within a rounding."""
    step = 1e-8
    noise = start
    while not schedule.fits(family(noise)):
        noise, step = start * (1 + step), 4 * step
    return family(noise)


def bisected(family: Callable[[float], Made], schedule: Schedule) -> Made:
    """Return the member with the least noise that fits, to six digits; its price falls as its noise grows.

    Raises InvalidParameter if it does not fit however much noise there is.
    """
    low, high = 1e-3, 1.0
    while not schedule.fits(family(high)):
        if high >= _MOST_NOISE:
            raise InvalidParameter(
                f"no amount of noise makes {type(family(high)).__name__} fit ε = {schedule.epsilon:.4g}, "
                f"δ = {schedule.delta:.4g}; give its noise, a larger budget or fewer queries"
            )
        low, high = high, 2 * high
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        if schedule.fits(family(middle)):
            high = middle
        else:
            low = middle
    return family(high)
