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
MARGINAL_LEVEL: Final = "level of marginals"  # of the columns, from which a pool is drawn
STAGE: Final = "sparse-vector stage"  # counted, and never an answer


def is_closed(reservation: Reservation) -> bool:
    """Whether the reservation of a stream has no stage left: whoever asks from now on is not answered."""
    return STAGE in reservation.purposes and reservation.remaining(STAGE) == 0
