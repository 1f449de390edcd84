"""One release of one number, table or choice: an evaluation or a choice comes once, where labels come in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.ledger import Reservation
from quorate.mechanisms import Mechanism
from quorate.noise import NoiseSource
from quorate.release.answer import DrawnBlock, release
from quorate.release.coverage import check_covered
from quorate.types import IntArray, Secret


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
        See :func:`~quorate.release.coverage.check_covered`.
    BudgetExhausted
        If no answer is left; nothing is drawn then.

    Notes
    -----
    A release that was marked as drawn when its process ended is lost: it was paid for, and is never drawn again.
    """
    check_covered(reservation, purpose, mechanism)

    def compute(drawn: DrawnBlock) -> list[Any]:
        return [np.asarray(mechanism.release(sums.reveal(), drawn.noise(noise))).tolist()]

    _, [answer] = release(reservation, purpose, 1, compute)
    return answer
