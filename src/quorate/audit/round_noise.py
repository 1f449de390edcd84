r"""The noise of whole direct runs: the rounds of :func:`~quorate.direct.descend.descend`, on a ledger in memory.

Units are public rows with made-up labels, so that their exact sum in each round is known, and with it the noise: what
was released less what was summed. Correct noise is one discrete Gaussian on each number of each round, independent of
all others. Four things are compared with that, each at a quarter of the error: how much of the noise is small, whether
any round has less or more of it than chance allows (:math:`\chi^2`, at the error divided by the number of rounds), and
whether signs agree, or which noise is large, between rounds and between the numbers of a round, at all distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np

from quorate.accounting import epsilon as price
from quorate.audit.bounds import proportion_lower, proportion_upper
from quorate.audit.equal_votes import compared
from quorate.audit.goodness_of_fit import GoodnessOfFit
from quorate.audit.sampled import source_of
from quorate.data.rows import Rows, take
from quorate.deferred import special
from quorate.direct import descend as releasing
from quorate.direct.contributions import lengths_of, of_records
from quorate.direct.plan import DirectPlan
from quorate.direct.rounds import Descent, PrivateUnits
from quorate.ledger import Budget, Ledger
from quorate.noise import NoiseSource
from quorate.release.purposes import GRADIENT_ROUND
from quorate.types import FloatArray, Secret

_UNITS = 40
_LEAST = 80  # rounds, and numbers of one place in a round: over several runs where one has fewer
_LEAST_NUMBERS = 4_000  # the same, of all numbers
_MOST_RUNS = 80
_MOST_NUMBERS = 256  # of a round, compared with each other: a choice of them that no code can know
_MEDIAN = 0.6744897501960817  # of |N(0, 1)|
_LATTICE = 1e-6  # by how much integers of this noise may differ from continuous noise, and more

_SURE = 5.0  # standard errors by which a size is told from another


def noise_seen(comparisons: Sequence[GoodnessOfFit]) -> tuple[str, ...]:
    """Return which faults show in such comparisons, and how large, in words."""
    # A factor 1 − s moves the probability by s times 0.43: the density of |N(0, 1)| at its median, times the median.
    percent = 100 * _SURE * 0.5 / (0.43 * sqrt(comparisons[0].trials))
    return (
        "a round without noise, or without much of it",
        f"noise of the rounds that is smaller or larger by {percent:.2g} % or more",
        "noise, or its size alone, that rounds share with each other, at any distance",
        f"noise, or its size alone, that numbers of a round share: all, or {_MOST_NUMBERS} drawn for each audit",
    )


def audit_round_noise(
    plan: DirectPlan, rows: Rows, confidence: float, *, delta: float, seed: int | None = None
) -> tuple[GoodnessOfFit, ...]:
    """Compare the noise of whole runs on made-up units with what was charged for; see the head of this file.

    Parameters
    ----------
    plan : DirectPlan
        Of the run.
    rows : (n_public, n_columns)
        Public rows, encoded.
    confidence : float
        Of all comparisons together.
    delta : float
        At which the made-up runs are charged.
    seed : int, optional
        Of the audit.
    """
    source, numbers = source_of(seed).at("whole runs", 0), plan.start.size
    rounds = plan.settings.rounds
    wanted = max(_LEAST / rounds, _LEAST / numbers, _LEAST_NUMBERS / (rounds * numbers))
    repeats = min(max(1, ceil(wanted)), max(_MOST_RUNS, ceil(_LEAST / rounds)))
    noise = np.array([noise_of_run(plan, rows, source.at("run", place), delta) for place in range(repeats)])
    share = 1 - (1 - confidence) / 4
    found = [_size(noise, share), _energy(noise, share)]
    said = np.stack([noise > 0, np.abs(noise) > _MEDIAN], axis=-1)
    if rounds > 1:
        between = said.transpose(0, 2, 1, 3).reshape(repeats * numbers, -1, 2)
        found.append(compared(between, share, name="noise of whole runs: one round and another", known=0.5))
    if numbers > 1:
        some = np.sort(np.random.default_rng(seed).permutation(numbers)[:_MOST_NUMBERS])
        within = said.reshape(-1, numbers, 2)[:, some]
        found.append(compared(within, share, name="noise of whole runs: the numbers of a round", known=0.5))
    return tuple(found)


def noise_of_run(plan: DirectPlan, rows: Rows, source: NoiseSource, delta: float) -> FloatArray:
    """Return the noise that a run puts on each number of each round, in σ, ``(n_rounds, n_numbers)``."""
    chosen = np.linspace(0, rows.shape[0] - 1, min(_UNITS, rows.shape[0])).astype(np.int64)
    z = plan.coordinates.for_rounds(take(rows, chosen))
    codes = np.arange(len(chosen), dtype=np.int64) % max(plan.n_outputs, 2)
    ledger = Ledger(budget=Budget(2 * price(plan.event, delta), delta))
    rounds = {GRADIENT_ROUND: plan.settings.rounds}
    reservation = ledger.reserve(plan.event, delta=delta, purposes=rounds, key="made-up units")
    releasing.descend(plan, Secret(PrivateUnits(z, codes, None)), reservation, source)
    descent = Descent(plan.settings, plan.grid, plan.n_units, plan.start)
    noise = []
    for block in reservation.blocks(GRADIENT_ROUND):
        exact = np.asarray(of_records(z, lengths_of(z), codes, descent.weights, plan.grid))
        released = np.array((block.answers or [[]])[0], dtype=np.int64).reshape(exact.shape)
        noise.append((released - exact).ravel() / plan.sigma)
        descent.take(released)
    return np.array(noise)


def _size(noise: FloatArray, confidence: float) -> GoodnessOfFit:
    """Compare how often noise is below the median of its size: half the time."""
    alpha, trials = 1 - confidence, noise.size
    hits = int(np.count_nonzero(np.abs(noise) <= _MEDIAN))
    above = float(proportion_lower(hits, trials, alpha / 2)) - 0.5 - _LATTICE
    below = 0.5 - _LATTICE - float(proportion_upper(hits, trials, alpha / 2))
    return GoodnessOfFit(
        name="noise of whole runs: size",
        event=f"noise of at most {_MEDIAN:.4g} σ",
        observed=hits / trials,
        expected=0.5,
        distance=max(0.0, above, below),
        trials=trials,
        confidence=confidence,
        seconds=0.0,
    )


def _energy(noise: FloatArray, confidence: float) -> GoodnessOfFit:
    """Look for a round whose squared noise is outside of what all rounds together stay in."""
    squares = (noise**2).sum(axis=2).ravel()
    tail = (1 - confidence) / (2 * len(squares))
    half = noise.shape[2] / 2
    low, high = 2 * special.gammaincinv(half, tail), 2 * special.gammainccinv(half, tail)
    outside = float(np.mean((squares < low * (1 - _LATTICE)) | (squares > high * (1 + _LATTICE))))
    return GoodnessOfFit(
        name="noise of whole runs: each round",
        event="rounds with less or more noise than chance allows",
        observed=outside,
        expected=0.0,
        distance=outside,
        trials=len(squares),
        confidence=confidence,
        seconds=0.0,
    )
