"""What the answers of a reservation are for: names under which several rooms reserve and draw, as ledgers hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quorate.ledger import Reservation

LABEL: Final = "label"  # of a row of the public pool
ONLINE_ANSWER: Final = "online answer"  # to a query that arrives later
EVALUATION: Final = "evaluation"
TUNING: Final = "tuning"
GRADIENT_ROUND: Final = "gradient round"  # of the direct method
STAGE: Final = "sparse-vector stage"  # counted, and never an answer


def is_closed(reservation: Reservation) -> bool:
    """Whether the reservation of a stream has no stage left: whoever asks from now on is not answered.

    Examples
    --------
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.mechanisms import StableSparseVector
    >>> mechanism = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=1, n_queries=10)
    >>> purposes = {LABEL: 10, STAGE: mechanism.stages}
    >>> ledger = Ledger(budget=Budget(1.0, 1e-5))
    >>> reservation = ledger.reserve(mechanism.event, delta=1e-5, purposes=purposes, key="labels")
    >>> block = reservation.draw("sparse-vector stage")
    >>> is_closed(reservation), reservation.remaining("label")
    (True, 10)
    """
    return STAGE in reservation.purposes and reservation.remaining(STAGE) == 0
