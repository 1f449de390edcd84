r"""The rounds of the direct method, and noisy means of teachers' numbers, attacked; the noise of whole runs, measured.

The attack guesses which of two public units was in the sums, or whether one was. Everything is made from public rows
with made-up labels: what such an attack finds on private rows would be about private rows. Contributions and noisy sums
are made by a run's own functions; the attacker knows all units but one, the weights and the direction between both.

The noise of whole runs of :func:`~quorate.direct.descend.descend` is what was released less what was summed: one
discrete Gaussian on each number of each round, all independent, if it is correct. Compared with that, each at a quarter
of the error, are how much of it is small, whether any round has less or more than chance allows (:math:`\chi^2`, at the
error divided by the rounds), and whether signs agree, or which noise is large, between rounds and numbers, at all
distances.

Of noisy means one answer is attacked, and all of them together, and counts of targets before: the attacker knows all
teachers but one, at one end of the range or at the other, on made-up queries; and all targets but one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Any

import numpy as np

from quorate.accounting import Composed, Event, Repeated
from quorate.accounting import epsilon as price
from quorate.accounting.neighbouring import Relation
from quorate.audit.claims import proportion_lower, proportion_upper
from quorate.audit.goodness_of_fit import GoodnessOfFit
from quorate.audit.many_answers import compared
from quorate.audit.plans import FEWEST, Attack, PlannedAttack, share_of
from quorate.audit.sampled import ByStream, source_of
from quorate.audit.schedules import Charge, ScheduleAudit
from quorate.data.labels import STEPS
from quorate.data.rows import Rows, take
from quorate.deferred import special
from quorate.direct import descend as releasing
from quorate.direct.contributions import Grid, lengths_of, of_records
from quorate.direct.plan import DirectPlan
from quorate.direct.rounds import Descent, PrivateUnits
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import NoisyMean
from quorate.mechanisms.noisy_mean import TargetCounts
from quorate.noise import NoiseSource
from quorate.release.charge import GRADIENT_ROUND
from quorate.run.located import COUNTING
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray, Secret, Watch

_UNITS = 40
_LEAST = 80  # rounds, and numbers of one place in a round: over several runs where one has fewer
_LEAST_NUMBERS = 4_000  # the same, of all numbers
_MOST_RUNS = 80
_MOST_NUMBERS = 256  # of a round, compared with each other: a choice of them that no code can know
_MEDIAN = 0.6744897501960817  # of |N(0, 1)|
_LATTICE = 1e-6  # by how much integers of this noise may differ from continuous noise, and more

_SURE = 5.0  # standard errors by which a size is told from another


def _noise_seen(comparisons: Sequence[GoodnessOfFit]) -> tuple[str, ...]:
    """Return which faults show in such comparisons, and how large, in words."""
    # A factor 1 − s moves the probability by s times 0.43: the density of |N(0, 1)| at its median, times the median.
    percent = 100 * _SURE * 0.5 / (0.43 * sqrt(comparisons[0].trials))
    return (
        "a round without noise, or without much of it",
        f"noise of the rounds that is smaller or larger by {percent:.2g} % or more",
        "noise, or its size alone, that rounds share with each other, at any distance",
        f"noise, or its size alone, that numbers of a round share: all, or {_MOST_NUMBERS} drawn for each audit",
    )


def _audit_round_noise(
    plan: DirectPlan, rows: Rows, confidence: float, *, delta: float, seed: int | None = None
) -> tuple[GoodnessOfFit, ...]:
    """Compare the noise of whole runs on units of public `rows` with the charge, all comparisons at one confidence."""
    source, numbers = source_of(seed).at("whole runs", 0), plan.start.size
    rounds = plan.settings.rounds
    wanted = max(_LEAST / rounds, _LEAST / numbers, _LEAST_NUMBERS / (rounds * numbers))
    repeats = min(max(1, ceil(wanted)), max(_MOST_RUNS, ceil(_LEAST / rounds)))
    noise = np.array([_noise_of_run(plan, rows, source.at("run", place), delta) for place in range(repeats)])
    share = 1 - (1 - confidence) / 4
    tests = [_size(noise, share), _energy(noise, share)]
    said = np.stack([noise > 0, np.abs(noise) > _MEDIAN], axis=-1)
    if rounds > 1:
        between = said.transpose(0, 2, 1, 3).reshape(repeats * numbers, -1, 2)
        tests.append(compared(between, share, name="noise of whole runs: one round and another", known=0.5))
    if numbers > 1:
        some = np.sort(np.random.default_rng(seed).permutation(numbers)[:_MOST_NUMBERS])
        within = said.reshape(-1, numbers, 2)[:, some]
        tests.append(compared(within, share, name="noise of whole runs: the numbers of a round", known=0.5))
    return tuple(tests)


def _noise_of_run(plan: DirectPlan, rows: Rows, source: NoiseSource, delta: float) -> FloatArray:
    """Return the noise that a run puts on each number of each round, in σ, ``(n_rounds, n_numbers)``."""
    chosen = np.linspace(0, rows.shape[0] - 1, min(_UNITS, rows.shape[0])).astype(np.int64)
    z = plan.coordinates.for_rounds(take(rows, chosen))
    codes = np.arange(len(chosen), dtype=np.int64) % plan.n_codes
    ledger = Ledger(budget=Budget(2 * price(plan.event, delta), delta))
    rounds = {GRADIENT_ROUND: plan.settings.rounds}
    reservation = ledger.reserve(plan.event, delta=delta, purposes=rounds, key="made-up units")
    releasing.descend(plan, Secret(PrivateUnits(z, codes, None)), reservation, source)
    descent = Descent(plan.settings, plan.grid, plan.n_units, plan.start)
    noise = []
    for block in reservation.blocks(GRADIENT_ROUND):
        exact = np.asarray(of_records(z, lengths_of(z), codes, descent.weights, descent.grid))
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


ABSENT = -1  # in place of the number of a row: a unit that is not in the data

_ROWS = 100  # public rows that the two units are chosen among
_OTHERS = 3  # units that stay as they are
_STEEP = 50.0  # length of logits at which a wrong label has all of its slope
_NUMBERS = 40_000_000  # noisy numbers that the runs of one attack draw together
_BLOCK = 4_000_000  # at once


@dataclass(frozen=True, slots=True, eq=False)
class NoisyRounds(ByStream):
    """Rounds at fixed weights on units that are public rows with labels; told are projections of the noisy sums.

    A unit is a label and the number of a row, or :data:`ABSENT`. `direction`: of length one.
    """

    plan: DirectPlan
    grid: Grid
    rows: Rows = field(repr=False)
    weights: FloatArray = field(repr=False)
    direction: FloatArray = field(repr=False)
    rounds: int

    def release_many(self, counts: IntArray, noise: NoiseSource) -> FloatArray:
        """Go the rounds on each of ``(n_tables, n_units, 2)``; return the sum of all, and the first."""
        tables, which = np.unique(counts, axis=0, return_inverse=True)
        exact = np.array([contribution(self.plan, self.grid, self.rows, table, self.weights) for table in tables])
        per_run = self.rounds * len(self.direction)
        released = np.empty((len(counts), 2))
        step = max(1, _BLOCK // per_run)
        for start in range(0, len(counts), step):
            runs = slice(start, min(start + step, len(counts)))
            sums = np.repeat(exact[which.ravel()[runs], None], self.rounds, axis=1)
            noisy = releasing.noisy_sum(sums, self.plan.sigma, noise) @ self.direction
            released[runs] = np.column_stack([noisy.sum(axis=1), noisy[:, 0]])
        return released


def contribution(plan: DirectPlan, grid: Grid, rows: Rows, units: IntArray, weights: FloatArray) -> IntArray:
    """Return the sum that units ``(n_units, 2)`` of rows and labels add in one round on a grid, as one vector."""
    units = units[units[:, 0] != ABSENT]
    z = plan.coordinates.for_rounds(take(rows, units[:, 0]))
    return np.asarray(of_records(z, lengths_of(z), units[:, 1], weights, grid)).ravel()


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

    `plan`: of the run.
    `event`: what was charged for all rounds: ``Repeated`` of one.
    `rows` ``(n_public, n_columns)``: public rows, encoded.
    `delta`, `confidence`, `seed`, `n_jobs`, `watch`: as for :func:`~quorate.audit.audit_schedule`.
    `runs`: of each attack at most; where a round has many numbers as many as fit, and 400 at least.
    `neighbours`: "add-or-remove" or "replace": the change of one unit that was charged for: whether a unit is there, or
    which of two.
    """
    see = watch or (lambda stage, done, total: None)
    planned = tuple(_planned(plan, event, neighbours))
    share = share_of(confidence, len(planned) + 1)
    see("noise of whole runs", 0, 1)
    noise = _audit_round_noise(plan, rows, share, delta=delta, seed=seed)
    see("noise of whole runs", 1, 1)
    attacks: list[Attack] = []
    attacked = {grid: _far_apart(plan, grid, rows, neighbours) for grid in plan.grids}
    for name, grid, rounds, charged in planned:
        tables, weights = attacked[grid]
        first, second = (contribution(plan, grid, rows, units, weights) for units in tables)
        direction = (first - second) / max(float(np.linalg.norm(first - second)), 1.0)
        whole = NoisyRounds(plan, grid, rows, weights, direction, rounds)
        fitting = as_many_as_fit(runs, rounds * len(direction))
        attack = PlannedAttack(name=name, neighbours=tables, event=charged, runs=fitting)
        attacks.append(attack.audit(whole, share, delta=delta, seed=seed, n_jobs=n_jobs, watch=see))
    return ScheduleAudit(
        attacks=tuple(attacks),
        comparisons=noise,
        confidence=confidence,
        charge=Charge(charged=event, released=plan.event, delta=delta),
        sees=(*SEES, *_noise_seen(noise)),
        does_not_see=DOES_NOT_SEE,
    )


def as_many_as_fit(runs: int, numbers: int) -> int:
    """Return how many runs are made, `runs` at most, of an attack of which each draws so many numbers."""
    return min(runs, max(FEWEST, _NUMBERS // numbers))


SEES = ("a public unit that adds so much more than the clip that the claim of one round or of all is broken",)
DOES_NOT_SEE = (
    "a unit of the private table that is read or cut off otherwise than public rows are",
    "noise that is wrong in some runs alone, or on one machine",
)


def _planned(plan: DirectPlan, event: Event, neighbours: Relation) -> Iterator[tuple[str, Grid, int, Event]]:
    units = {"add-or-remove": "a public unit, or none", "replace": "one of two public units"}[neighbours]
    one, rounds = event.event if isinstance(event, Repeated) else event, plan.settings.rounds
    yield f"one round: {units}", plan.grid, 1, one
    for counting in plan.grids[1:]:
        what = "how often the model is right" if plan.settings.judges else "targets"
        yield f"one round that counts {what}: {units}", counting, 1, one
    if rounds > 1:
        yield f"all {rounds:,} rounds: {units}", plan.grid, rounds, event


def _far_apart(
    plan: DirectPlan, grid: Grid, rows: Rows, neighbours: Relation
) -> tuple[tuple[IntArray, IntArray], FloatArray]:
    """Return two tables that differ in one unit, and weights at which the two contributions are far apart."""
    rng = np.random.default_rng(0)
    chosen = np.unique(np.linspace(0, rows.shape[0] - 1, _ROWS).astype(np.int64))
    # Of a number, both ends of its range are among them.
    labels = np.linspace(0, plan.n_codes - 1, min(plan.n_codes, 4)).astype(np.int64)
    units = np.array([(row, label) for row in chosen for label in labels], dtype=np.int64)
    steep = rng.normal(size=plan.start.shape)
    steep *= _STEEP / max(float(np.linalg.norm(steep)), 1e-300)
    best: tuple[float, Any, Any] = (-1.0, None, None)
    if neighbours == "add-or-remove":
        units = np.vstack([units, [[ABSENT, ABSENT]]])
    for weights in (plan.start, steep):
        contributions = np.array(
            [contribution(plan, grid, rows, unit[None], weights) for unit in units], dtype=np.float64
        )
        squares = (contributions * contributions).sum(axis=1)
        apart = squares[:, None] + squares[None, :] - 2 * contributions @ contributions.T
        if neighbours == "add-or-remove":
            apart[:-1, :-1] = -1.0  # one of the two is not there
        place = int(np.argmax(apart))
        if apart.flat[place] > best[0]:
            best = (float(apart.flat[place]), divmod(place, len(units)), weights)
    present = units[units[:, 0] != ABSENT]
    others = present[rng.permutation(len(present))[:_OTHERS]]
    one, other = (np.vstack([others, units[number][None]]) for number in best[1])
    return (one, other), best[2]


_SAME = 2  # teachers that stay as they are: of the sum their number changes nothing
SEES_OF_MEANS = (
    "a teacher that moves a sum by so much more than the range that the claim of one answer or of all is broken",
    "noise so small that the same claim is broken",
)
DOES_NOT_SEE_OF_MEANS = (
    "a teacher that is trained on rows of another",
    "noise that is wrong in some runs alone, or on one machine",
)


@dataclass(frozen=True, slots=True)
class _Answers(ByStream):
    """Tables of places ``(n_tables, n_teachers)`` in; sums over `queries` noisy sums of what they add out."""

    mechanism: Any
    queries: int

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each table."""
        tables, which = np.unique(counts, axis=0, return_inverse=True)
        on_each = np.repeat(tables[..., None], self.queries, axis=-1)  # of a teacher, whose numbers may be one vector
        sums = self.mechanism.steps(on_each)[..., 0].sum(axis=1)[which.ravel()]
        step = max(1, _BLOCK // self.queries)
        parts = [sums[start : start + step] for start in range(0, len(sums), step)]
        noisy = [self.mechanism.release_many(np.repeat(part, self.queries)[:, None], noise) for part in parts]
        return np.concatenate([part.reshape(-1, self.queries).sum(axis=1) for part in noisy])


@dataclass(frozen=True, slots=True)
class _Counts(ByStream):
    """Tables of targets ``(n_tables, n_units)`` in; by how much `times` noisy counts of the outer cells differ out."""

    mechanism: Any
    times: int

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each table."""
        exact = np.array([self.mechanism.counts_of(targets, 0, STEPS) for targets in counts])
        noisy = self.mechanism.release_many(np.repeat(exact, self.times, axis=0), noise)
        return np.asarray((noisy[:, 0] - noisy[:, -1]).reshape(-1, self.times).sum(axis=1))


@stored_as("quorate.audit.noisy_means.audit_means")
def audit_means(
    mechanism: NoisyMean,
    event: Event,
    *,
    queries: int,
    counts: TargetCounts | None = None,
    delta: float,
    confidence: float = 0.95,
    runs: int = 100_000,
    seed: int | None = None,
    n_jobs: int = 1,
    watch: Watch | None = None,
) -> ScheduleAudit:
    """Attack one noisy mean, and all of them together, and compare what was charged with what is released.

    `mechanism`: of the run. `event`: what was charged for all answers. `queries`: how many answers there are, at least
    1. `counts`: of the targets, released before; then `event` composes what they cost with what the answers cost.
    `delta`, `confidence`, `runs`, `seed`, `n_jobs`, `watch`: as for :func:`audit_rounds`.

    Privacy: made of public settings alone.
    """
    before, means = event.events if counts is not None and isinstance(event, Composed) else (None, event)
    one = means.event if isinstance(means, Repeated) else means
    middle = np.full(_SAME, mechanism.grid)
    tables = np.append(middle, 2 * mechanism.grid), np.append(middle, 0)
    planned: list[tuple[str, Any, tuple[IntArray, IntArray], Event, int]] = [
        ("one noisy mean: a teacher at either end of the range", _Answers(mechanism, 1), tables, one, 1)
    ]
    if queries > 1:
        every = f"all {queries:,} noisy means: likewise, on each"
        planned.append((every, _Answers(mechanism, queries), tables, means, queries))
    if counts is not None and before is not None:
        times = before.times if isinstance(before, Repeated) else 1
        targets = np.append(middle, STEPS), np.append(middle, 0)
        name = f"{times:,} noisy counts of targets: a unit's at either end of the range"
        planned.append((name, _Counts(counts, times), targets, before, times * counts.cells))
    share, attacks = share_of(confidence, len(planned)), []
    for name, attacked, pair, charged, numbers in planned:
        attack = PlannedAttack(name=name, neighbours=pair, event=charged, runs=as_many_as_fit(runs, numbers))
        attacks.append(attack.audit(attacked, share, delta=delta, seed=seed, n_jobs=n_jobs, watch=watch))
    released = mechanism.schedule(queries)
    if counts is not None:
        released = Composed((counts.schedule(COUNTING), released))
    return ScheduleAudit(
        attacks=tuple(attacks),
        confidence=confidence,
        charge=Charge(charged=event, released=released, delta=delta),
        sees=SEES_OF_MEANS,
        does_not_see=DOES_NOT_SEE_OF_MEANS,
    )
