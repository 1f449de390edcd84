"""One release of one number, table or choice: marked as drawn, then drawn, then stored, then told.

Labels come in blocks and by the thousand; an evaluation or a choice comes once. The order is the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

import numpy as np

from quorate.accounting import Composed, Event, Repeated
from quorate.errors import InvalidParameter
from quorate.ledger import Reservation
from quorate.mechanisms import Mechanism
from quorate.noise import NoiseSource
from quorate.types import IntArray, Secret

EVALUATION = "evaluation"
TUNING = "tuning"


class Priced(Protocol):
    """Whatever says what one release of it costs."""

    @property
    def event(self) -> Event:
        """Price of one release."""
        ...


def check_pays(reservation: Reservation, mechanism: Priced, *, purpose: str) -> None:
    """Refuse a reservation that does not pay for `mechanism` as often as it may be drawn for `purpose`.

    Raises
    ------
    InvalidParameter
        If nothing was reserved for the purpose, or the event reserved does not hold the mechanism's. Nothing is drawn.

    Notes
    -----
    An event holds another where, taken apart into single events, it has each of them at least as often.
    """
    times = reservation.purposes.get(purpose, 0)
    if not times:
        raise InvalidParameter(
            f'reservation must be made for the purpose "{purpose}"; reserve it with purposes={{"{purpose}": 1}}'
        )
    reserved, needed = _leaves(reservation.event), _leaves(Repeated(mechanism.event, times))
    if any(reserved[event] < often for event, often in needed.items()):
        raise InvalidParameter(
            f"reservation must pay for {type(mechanism).__name__} {times} time(s); it was made for another event. "
            "Reserve mechanism.event"
        )


def release_once(
    sums: Secret[IntArray], mechanism: Mechanism, reservation: Reservation, noise: NoiseSource, *, purpose: str
) -> Any:
    """Release one answer to secret sums or scores, charged to a reservation.

    Parameters
    ----------
    sums : Secret[IntArray], (n_sums,)
        What `mechanism` takes.
    mechanism : Mechanism
        What may cross the boundary.
    reservation : Reservation
        With at least one answer left for `purpose`.
    noise : NoiseSource
        Addressed by purpose and by the number of the answer.
    purpose : str
        ``"evaluation"`` or ``"tuning"``.

    Returns
    -------
    int or list of int
        The answer, as it stands in the ledger.

    Raises
    ------
    InvalidParameter
        See :func:`check_pays`.
    BudgetExhausted
        If no answer is left; nothing is drawn then.

    Notes
    -----
    A release that was marked as drawn when its process ended is lost: it was paid for, and is never drawn again.
    """
    check_pays(reservation, mechanism, purpose=purpose)
    block = reservation.draw(purpose)  # durable before any noise exists
    answer = np.asarray(mechanism.release(sums.reveal(), noise.at(purpose, block.first))).tolist()
    reservation.store(block, [answer])  # durable before anybody sees it
    return answer


def _leaves(event: Event) -> Counter[Event]:
    if isinstance(event, Repeated):
        return Counter({leaf: event.times * often for leaf, often in _leaves(event.event).items()})
    if isinstance(event, Composed):
        return sum((_leaves(part) for part in event.events), Counter())
    return Counter({event: 1})
