"""Whether a reservation paid for what is about to be drawn: looked at before anything is."""

from __future__ import annotations

from typing import Protocol

from quorate.accounting import Composed, Event, Repeated
from quorate.errors import InvalidParameter
from quorate.ledger import Reservation

SHARED = ("label", "online answer")


class Priced(Protocol):
    """A mechanism, as far as its price goes."""

    @property
    def event(self) -> Event:
        """Price of one answer; of a whole run, where the mechanism has a state (``init``)."""
        ...


def check_paid(reservation: Reservation, purpose: str, mechanism: Priced) -> int:
    """Return how many answers of `mechanism` a reservation holds for one purpose.

    The ledger knows what was charged, not what is drawn. Without this look, the answers of a noisier mechanism could
    pay for those of a less noisy one, and nothing would show it.

    Parameters
    ----------
    reservation : Reservation
        What was charged.
    purpose : str
        What the answers are for.
    mechanism : Priced
        What is going to answer: for its event each time, or for one event in a whole run.

    Returns
    -------
    int
        Answers reserved for `purpose`, drawn ones included.

    Raises
    ------
    InvalidParameter
        If nothing was reserved for `purpose`, or the event that was charged does not hold the mechanism's event once
        for each of those answers (once, for an interactive mechanism).

    Examples
    --------
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> charged, other = GaussianNoisyMax(sigma=40.0), GaussianNoisyMax(sigma=10.0)
    >>> ledger = Ledger(budget=Budget(2.0, 1e-5))
    >>> schedule = Repeated(charged.event, 5)
    >>> reservation = ledger.reserve(schedule, delta=1e-6, purposes={"label": 5}, key="labels")
    >>> check_paid(reservation, "label", charged)
    5
    >>> check_paid(reservation, "label", other)
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: the reservation does not pay for 5 answers of GaussianNoisyMax for "label"; reserve the event of the mechanism that answers
    """  # noqa: E501  a doctest's message is one line
    reserved = reservation.purposes.get(purpose, 0)
    if reserved == 0:
        raise InvalidParameter(f'the reservation holds no answers for "{purpose}"; name it among the purposes')
    # Labels and online answers draw from one event, so they are paid together or not at all.
    alike = sum(reservation.purposes.get(each, 0) for each in SHARED) if purpose in SHARED else reserved
    needed = 1 if hasattr(mechanism, "init") else alike
    if occurrences(mechanism.event, within=reservation.event) < needed:
        raise InvalidParameter(
            f'the reservation does not pay for {alike:,} answers of {type(mechanism).__name__} for "{purpose}"; '
            "reserve the event of the mechanism that answers"
        )
    return reserved


def occurrences(event: Event, *, within: Event) -> int:
    """Count how often an event stands in another.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> occurrences(PureDP(0.5), within=Composed((Repeated(PureDP(0.5), 3), PureDP(0.1), PureDP(0.5))))
    4
    """
    if within == event:
        return 1
    if isinstance(within, Repeated):
        return within.times * occurrences(event, within=within.event)
    if isinstance(within, Composed):
        return sum(occurrences(event, within=each) for each in within.events)
    return 0
