"""The rounds over a ledger: drawn, durable, noise, stored, used; one charge for all of them, before the first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quorate.direct.plan import DirectPlan
from quorate.direct.rounds import Descent, SummedUnits
from quorate.ledger import Reservation
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.release import DrawnBlock, release
from quorate.release.charge import GRADIENT_ROUND as PURPOSE
from quorate.types import FloatArray, IntArray, Secret

Progress = Callable[[int, int], None]


def descend(
    plan: DirectPlan,
    units: Secret[SummedUnits],
    reservation: Reservation,
    noise: NoiseSource,
    *,
    finish: Callable[[FloatArray, int], FloatArray] | None = None,
    progress: Progress | None = None,
) -> Descent:
    """Go every round that is left of a reservation, and return what came of all that were stored. `finish`: as
    :class:`~quorate.direct.rounds.Descent` has it. Privacy: a round's noise is drawn after the round is counted in the
    ledger, durably, and its noisy sum is used after it is stored. A round that an earlier process drew and did not
    store is skipped: the next one starts from the same weights.
    """
    shape = plan.start.shape
    descent = Descent(plan.settings, plan.grid, plan.n_units, plan.start, finish)
    drawn_before = [block.answers for block in reservation.blocks(PURPOSE)]
    descent.replay(
        None if answers is None else np.array(answers[0], dtype=np.int64).reshape(shape) for answers in drawn_before
    )
    total = reservation.purposes[PURPOSE]
    grid, summing = None, None
    while reservation.remaining(PURPOSE):
        if progress:
            progress(total - reservation.remaining(PURPOSE), total)
        with np.errstate(all="ignore"):  # a warning about what a private row holds would tell of it
            if summing is None or grid != descent.grid:
                grid, summing = descent.grid, units.reveal().summing(descent.grid)
            exact = summing(descent.weights)

        def compute(drawn: DrawnBlock, exact: IntArray = exact) -> IntArray:
            return noisy_sum(exact, plan.sigma, drawn.noise(noise))

        _, noisy = release(reservation, PURPOSE, 1, compute, record=lambda answer: [answer.ravel().tolist()])
        descent.take(noisy)
    if progress:
        progress(total, total)
    return descent


def noisy_sum(exact: IntArray, sigma: float, noise: NoiseSource) -> IntArray:
    """Return sums of units with the noise of a round on each number, any shape: what runs release and audits attack."""
    return exact + discrete_gaussian(sigma, exact.shape, noise)
