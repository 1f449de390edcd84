"""What the fields of a mechanism are for, said where each field stands, and the least noise that a budget allows.

A field is a number of noise, which a budget may fill in; follows from the task; or is the user's, and then it must be
given where it has no default. The first two are marked in the field's metadata, and so is an example of the third::

    sigma: float = field(metadata=NOISE)
    form: Form = field(default="histogram", metadata=FROM_TASK)
    threshold: float = field(metadata=example(200.0, "how many teachers must agree, in votes"))

Noise that a budget fills in is the least: a mechanism is made with more and more of it until its schedule fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from quorate.accounting import Event
from quorate.accounting import epsilon as price
from quorate.errors import InvalidParameter

_ROLE, _EXAMPLE = "quorate.role", "quorate.example"

#: A number that the price falls with: a scale of noise.
NOISE: Final[Mapping[str, Any]] = MappingProxyType({_ROLE: "noise"})

#: A number that the price grows with: an ε, or a δ, of the mechanism's own.
PRICE: Final[Mapping[str, Any]] = MappingProxyType({_ROLE: "price"})

#: What follows from the task: ``form``, ``n_teachers``, ``n_queries`` or ``sensitivity``.
FROM_TASK: Final[Mapping[str, Any]] = MappingProxyType({_ROLE: "task"})


def example(value: Any, meaning: str) -> Mapping[str, Any]:
    """Return the metadata of a field that the user must give: a value it may have, and what it means."""
    return MappingProxyType({_EXAMPLE: (value, meaning)})


def noise_fields(mechanism: type) -> tuple[str, ...]:
    """Return the fields that a budget may fill in, all or none of them."""
    return tuple(part.name for part in fields(mechanism) if part.metadata.get(_ROLE) in ("noise", "price"))


def falls_with(mechanism: type, field: str) -> bool:
    """Whether the price falls as this field of noise grows."""
    return any(part.name == field and part.metadata.get(_ROLE) == "noise" for part in fields(mechanism))


def task_fields(mechanism: type) -> tuple[str, ...]:
    """Return the fields that follow from the task."""
    return tuple(part.name for part in fields(mechanism) if part.metadata.get(_ROLE) == "task")


def user_fields(mechanism: type) -> tuple[str, ...]:
    """Return every field that a user may give: all but those that follow from the task."""
    return tuple(part.name for part in fields(mechanism) if part.metadata.get(_ROLE) != "task")


def required_fields(mechanism: type) -> dict[str, tuple[Any, str]]:
    """Return the fields that a user must give, each with a value it may have, and what that means."""
    filled = (*noise_fields(mechanism), *task_fields(mechanism))
    return {
        part.name: part.metadata.get(_EXAMPLE, (..., f"a value of its own; see {mechanism.__name__}"))
        for part in fields(mechanism)
        if part.name not in filled and part.default is MISSING and part.default_factory is MISSING
    }


LEDGER_STEP = 1e-9  # a ledger rounds ε up to this
_MOST_NOISE = 2.0**60  # votes; what does not fit with this much of it never will


class Scheduled(Protocol):
    """A mechanism, as far as the price of its answers goes."""

    def schedule(self, answers: int) -> Event:
        """Return the price of at most so many answers."""


Made = TypeVar("Made", bound=Scheduled)


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """What is to be answered, and what it may cost: `answers` ≥ 1 in all, and ε and δ of them together."""

    answers: int
    epsilon: float
    delta: float

    def fits(self, mechanism: Scheduled) -> bool:
        """Whether all answers of `mechanism` cost no more, also in a ledger's units."""
        return price(mechanism.schedule(self.answers), self.delta) <= self.epsilon - LEDGER_STEP


def least(family: Callable[[float], Made], start: float, schedule: Schedule) -> Made:
    """Return the first member at or above `start` that fits; `start` is right to within a rounding."""
    step = 1e-8
    noise = start
    while not schedule.fits(family(noise)):
        noise, step = start * (1 + step), 4 * step
    return family(noise)


def bisected(family: Callable[[float], Made], schedule: Schedule) -> Made:
    """Return the member with the least noise that fits, to six digits; its price falls as its noise grows. Refuse where
    none does.
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
