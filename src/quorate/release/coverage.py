"""Coverage: whether a reservation paid for what is about to be drawn. It is checked before anything is."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from quorate.accounting import Composed, Event, Repeated
from quorate.errors import InvalidParameter
from quorate.ledger import Reservation
from quorate.mechanisms import StreamMechanism
from quorate.release.purposes import STAGE


class Priced(Protocol):
    """A mechanism, as far as its price goes."""

    @property
    def event(self) -> Event:
        """Price of one answer; of a whole run, where the mechanism has a state (``init``)."""
        ...


def check_covered(reservation: Reservation, purpose: str, mechanism: Priced) -> int:
    r"""Return how many answers of `mechanism` a reservation holds for one purpose.

    The ledger knows what was charged, not what is drawn. Without this look, the answers of a noisier mechanism could
    pay for those of a less noisy one, or one charge for the answers of two purposes, and nothing would show it.

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
        If nothing was reserved for `purpose`, or what pays for it does not hold the mechanism's event once for *every*
        answer that it pays for, of whatever purpose (once, for a stream with its stages). What pays is the part of the charged event
        that the reservation names (``charged_to``), or else the whole event, for all purposes.

    Notes
    -----
    Let N answers be paid by a multiset E of single events, and let every mechanism M that answers have N M within E.
    Then of each single event l the answers take at most :math:`\sum_M n_M M_l \le \max_M N M_l \le E_l`, whichever
    mechanisms answer how many of them: what is drawn never passes what was charged. A stream has no such sum with
    others, so what has stages answers by streams alone. The look is at the reservation as it was made; it does not
    depend on what was drawn before.

    Examples
    --------
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> charged, other = GaussianNoisyMax(sigma=40.0), GaussianNoisyMax(sigma=10.0)
    >>> ledger = Ledger(budget=Budget(2.0, 1e-5))
    >>> schedule = Repeated(charged.event, 5)
    >>> reservation = ledger.reserve(schedule, delta=1e-6, purposes={"label": 5}, key="labels")
    >>> check_covered(reservation, "label", charged)
    5
    >>> check_covered(reservation, "label", other)
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: the reservation does not pay for 5 answers of GaussianNoisyMax for "label"; reserve the event of the mechanism that answers
    """  # noqa: E501  a doctest's message is one line
    reserved = reservation.purposes.get(purpose, 0)
    if reserved == 0:
        raise InvalidParameter(f'the reservation holds no answers for "{purpose}"; name it among the purposes')
    event, sharing = _paying(reservation, purpose)
    answers = sum(reservation.purposes[each] for each in sharing if each != STAGE)
    stream = isinstance(mechanism, StreamMechanism)
    told = " and ".join(f'"{each}"' for each in sharing if each != STAGE)
    if (STAGE in sharing) != stream:
        raise InvalidParameter(
            f"the reservation of {told} is for {'no stream' if stream else 'a stream with stages'}, got "
            f"{type(mechanism).__name__}; reserve the event of the mechanism that answers, a stream's with its stages"
        )
    paid, needed = single_events(event), single_events(Repeated(mechanism.event, 1 if stream else answers))
    if any(paid[one] < often for one, often in needed.items()) or answers > getattr(mechanism, "n_queries", answers):
        also = "" if stream or len(sharing) == 1 else ", and say with charged_to which part pays for which purpose"
        raise InvalidParameter(
            f"the reservation does not pay for {answers:,} answers of {type(mechanism).__name__} for {told}; "
            f"reserve the event of the mechanism that answers{also}"
        )
    return reserved


def single_events(event: Event) -> Counter[Event]:
    """Take an event apart: how often each single event stands in it."""
    if isinstance(event, Repeated):
        return Counter({one: event.times * often for one, often in single_events(event.event).items()})
    if isinstance(event, Composed):
        return sum((single_events(part) for part in event.events), Counter())
    return Counter({event: 1})


def _paying(reservation: Reservation, purpose: str) -> tuple[Event, list[str]]:
    """Return what pays for a purpose, and every purpose that it pays for."""
    charged_to, event = reservation.charged_to, reservation.event
    if charged_to is None:
        return event, list(reservation.purposes)
    if not isinstance(event, Composed):  # the ledger refuses to make such a reservation
        raise InvalidParameter("the reservation names parts of an event that has none; reserve their Composed")
    return event.events[charged_to[purpose]], [each for each, part in charged_to.items() if part == charged_to[purpose]]
