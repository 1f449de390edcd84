"""The rounds of the direct method, attacked: which of two public units was in the sums, or whether one was.

Everything is made from public rows with made-up labels: what such an attack finds on private rows would be about
private rows. Contributions and noisy sums are made by the functions that a run makes them with; the attacker knows all
units but one, the weights and the direction in which the two candidates differ. Beside the attacks whole runs are made
on a ledger in memory, and the noise in them is looked at (:mod:`quorate.audit.round_noise`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from quorate.accounting import Event, GridGaussian, Repeated
from quorate.accounting import epsilon as price
from quorate.accounting.gaussian import epsilon_of_gaussian
from quorate.accounting.neighbouring import Relation
from quorate.audit.claims import GaussianClaim
from quorate.audit.plans import FEWEST, Attack, share_of
from quorate.audit.round_noise import audit_round_noise, noise_seen
from quorate.audit.sampled import audit_mechanism
from quorate.audit.schedules import Charge, ScheduleAudit
from quorate.data.rows import Rows, take
from quorate.direct import descend as releasing
from quorate.direct.contributions import lengths_of, of_records
from quorate.direct.plan import DirectPlan
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray, Watch

ABSENT = -1  # in place of the number of a row: a unit that is not in the data

_ROWS = 100  # public rows that the two units are chosen among
_OTHERS = 3  # units that stay as they are
_STEEP = 50.0  # length of logits at which a wrong label has all of its slope
_NUMBERS = 40_000_000  # noisy numbers that the runs of one attack draw together
_BLOCK = 4_000_000  # at once


@dataclass(frozen=True, slots=True, eq=False)
class NoisyRounds:
    """Rounds at fixed weights on units that are public rows with labels; told are projections of the noisy sums.

    Attributes
    ----------
    plan : DirectPlan
        Contributions and noise.
    rows : Rows
        Encoded public rows; a unit is the number of one, or :data:`ABSENT`, and a label.
    weights : FloatArray, (n_coordinates, n_outputs)
        At which the rounds are gone.
    direction : FloatArray, (n_coordinates * n_outputs,)
        Of length one: noisy sums are projected on it.
    rounds : int
        How many.
    """

    plan: DirectPlan
    rows: Rows = field(repr=False)
    weights: FloatArray = field(repr=False)
    direction: FloatArray = field(repr=False)
    rounds: int
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> FloatArray:
        """Go the rounds on one table ``(n_units, 2)``."""
        return np.asarray(self.release_many(np.asarray(counts)[None], noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> FloatArray:
        """Go the rounds on each of ``(n_tables, n_units, 2)``; return the sum of all, and the first."""
        tables, which = np.unique(counts, axis=0, return_inverse=True)
        exact = np.array([contribution(self.plan, self.rows, table, self.weights) for table in tables])
        per_run = self.rounds * len(self.direction)
        told = np.empty((len(counts), 2))
        step = max(1, _BLOCK // per_run)
        for start in range(0, len(counts), step):
            runs = slice(start, min(start + step, len(counts)))
            sums = np.repeat(exact[which.ravel()[runs], None], self.rounds, axis=1)
            noisy = releasing.noisy_sum(sums, self.plan.sigma, noise) @ self.direction
            told[runs] = np.column_stack([noisy.sum(axis=1), noisy[:, 0]])
        return told


def contribution(plan: DirectPlan, rows: Rows, units: IntArray, weights: FloatArray) -> IntArray:
    """Return the sum that units ``(n_units, 2)`` of rows and labels add in one round, as one vector."""
    units = units[units[:, 0] != ABSENT]
    z = plan.coordinates.for_rounds(take(rows, units[:, 0]))
    return np.asarray(of_records(z, lengths_of(z), units[:, 1], weights, plan.grid)).ravel()


@stored_as("quorate.audit.rounds.audit_rounds")
def audit_rounds(
    plan: DirectPlan,
    event: Event,
    rows: Rows,
    *,
    delta: float,
    confidence: float = 0.95,
    runs: int = 100_000,
    seed: int | None = None,
    n_jobs: int = 1,
    watch: Watch | None = None,
    neighbours: Relation = "replace",
) -> ScheduleAudit:
    """Attack one round, and all of them together; look at the noise of whole runs, and compare what was charged.

    Parameters
    ----------
    plan : DirectPlan
        Of the run.
    event : Event
        What was charged for all rounds: ``Repeated`` of one.
    rows : (n_public, n_columns)
        Public rows, encoded.
    delta : float
        At which ε is told.
    confidence : float, default 0.95
        Of everything together.
    runs : int, default 100,000
        Of each attack at most; where a round has many numbers as many as fit, and 400 at least.
    seed : int, optional
        Of the audit.
    n_jobs : int, default 1
        Processes.
    watch : callable, optional
        ``watch(stage, done, total)``.
    neighbours : {"add-or-remove", "replace"}
        The change of one unit that was charged for: whether a unit is there, or which of two.
    """
    see = watch or (lambda stage, done, total: None)
    tables, weights = _far_apart(plan, rows, neighbours)
    first, second = (contribution(plan, rows, units, weights) for units in tables)
    direction = (first - second) / max(float(np.linalg.norm(first - second)), 1.0)
    planned = tuple(_planned(plan, event, neighbours))
    share = share_of(confidence, len(planned) + 1)
    see("noise of whole runs", 0, 1)
    noise = audit_round_noise(plan, rows, share, delta=delta, seed=seed)
    see("noise of whole runs", 1, 1)
    attacks = []
    for name, rounds, charged in planned:
        moved = charged.event if isinstance(charged, Repeated) else charged
        assert isinstance(moved, GridGaussian)  # noqa: S101 - what rounds are charged as
        numbers = rounds * len(direction)
        result = audit_mechanism(
            NoisyRounds(plan, rows, weights, direction, rounds),
            tables,
            GaussianClaim(sqrt(rounds) * moved.l2_sensitivity / moved.sigma),
            share,
            min(runs, max(FEWEST, _NUMBERS // numbers)),
            seed=seed,
            n_jobs=n_jobs,
            progress=lambda done, total, name=name: see(name, done, total),  # type: ignore[misc]
        )
        proved = epsilon_of_gaussian(delta, result.lower_bound) if result.lower_bound > 0 else 0.0
        attacks.append(Attack(name=name, claimed=price(charged, delta), proved=proved, result=result))
    return ScheduleAudit(
        attacks=tuple(attacks),
        comparisons=noise,
        stage=None,
        confidence=confidence,
        charge=Charge(charged=event, released=plan.event, delta=delta),
        sees=(*SEES, *noise_seen(noise)),
        does_not_see=DOES_NOT_SEE,
    )


SEES = ("a public unit that adds so much more than the clip that the claim of one round or of all is broken",)
DOES_NOT_SEE = (
    "a unit of the private table that is read or cut off otherwise than public rows are",
    "noise that is wrong in some runs alone, or on one machine",
)


def _planned(plan: DirectPlan, event: Event, neighbours: Relation) -> Iterator[tuple[str, int, Event]]:
    told = {"add-or-remove": "a public unit, or none", "replace": "one of two public units"}[neighbours]
    yield f"one round: {told}", 1, event.event if isinstance(event, Repeated) else event
    rounds = plan.settings.rounds
    if rounds > 1:
        yield f"all {rounds:,} rounds: {told}", rounds, event


def _far_apart(plan: DirectPlan, rows: Rows, neighbours: Relation) -> tuple[tuple[IntArray, IntArray], FloatArray]:
    """Return two tables that differ in one unit, and weights at which the two contributions are far apart."""
    rng = np.random.default_rng(0)
    chosen = np.unique(np.linspace(0, rows.shape[0] - 1, _ROWS).astype(np.int64))
    n_classes = max(plan.n_outputs, 2)
    units = np.array([(row, label) for row in chosen for label in range(min(n_classes, 4))], dtype=np.int64)
    steep = rng.normal(size=plan.start.shape)
    steep *= _STEEP / max(float(np.linalg.norm(steep)), 1e-300)
    best: tuple[float, Any, Any] = (-1.0, None, None)
    if neighbours == "add-or-remove":
        units = np.vstack([units, [[ABSENT, ABSENT]]])
    for weights in (plan.start, steep):
        each = np.array([contribution(plan, rows, unit[None], weights) for unit in units], dtype=np.float64)
        squares = (each * each).sum(axis=1)
        apart = squares[:, None] + squares[None, :] - 2 * each @ each.T
        if neighbours == "add-or-remove":
            apart[:-1, :-1] = -1.0  # one of the two is not there
        place = int(np.argmax(apart))
        if apart.flat[place] > best[0]:
            best = (float(apart.flat[place]), divmod(place, len(units)), weights)
    present = units[units[:, 0] != ABSENT]
    others = present[rng.permutation(len(present))[:_OTHERS]]
    one, other = (np.vstack([others, units[number][None]]) for number in best[1])
    return (one, other), best[2]
