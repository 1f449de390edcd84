"""One release of one number, table or choice: marked as drawn, then drawn, then stored, then told.

Labels come in blocks and by the thousand; an evaluation or a choice comes once. The order is the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.labelling.paid import check_paid
from quorate.ledger import Reservation
from quorate.mechanisms import Mechanism
from quorate.noise import NoiseSource
from quorate.types import IntArray, Secret

EVALUATION = "evaluation"
TUNING = "tuning"


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
        See :func:`~quorate.labelling.paid.check_paid`.
    BudgetExhausted
        If no answer is left; nothing is drawn then.

    Notes
    -----
    A release that was marked as drawn when its process ended is lost: it was paid for, and is never drawn again.
    """
    check_paid(reservation, purpose, mechanism)
    block = reservation.draw(purpose)  # durable before any noise exists
    answer = np.asarray(mechanism.release(sums.reveal(), noise.at(purpose, block.first))).tolist()
    reservation.store(block, [answer])  # durable before anybody sees it
    return answer
