"""From a task of votes for a number to a student: charge → where targets lie → teachers → noisy means → student."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import fsum, nan
from typing import Any

import numpy as np

from quorate.accounting import Guarantee
from quorate.accounting.figures import at_least, several
from quorate.ambient import one_thread, unwarned
from quorate.data import take
from quorate.data.feature_maps.coordinates import PublicCoordinates
from quorate.data.labels import STEPS, TargetRange
from quorate.data.table_reader import TableReader
from quorate.data.unit_ids import one_row_of_each
from quorate.ensemble import check_partition, partition_rows, sum_numbers, train_chunk
from quorate.ensemble.linear.tiny import TinyRegressor
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.labelling.passive import block_size
from quorate.ledger import Ledger, Reservation
from quorate.mechanisms.noisy_mean import NoisyMeans
from quorate.release import DrawnBlock, guarantee_of, release
from quorate.release.charge import LABEL, TARGET_COUNT
from quorate.run.cell_task import behind_features, number_model
from quorate.run.facts import Result
from quorate.run.located import COUNTING, narrowed_part
from quorate.run.stage_store import StageStore
from quorate.run.usable_rows import UsableRows
from quorate.students.values import fit_linear_numbers
from quorate.types import FloatArray, IntArray, Secret, Watch
from quorate.voting.numbers import PARTITION, NumberTask

_SHARDS = 400  # drawn from the public rows, to see what tiny teachers say of a number that is known
_MOST_ROWS = 400  # of such a shard
_TRIED = 3  # public rows
_OFF_GRID = 1e-4  # of the part of a range that is predicted in: more than coordinates on a grid change
CONSTANT = 10.0  # how much a constant counts beside the effects of coordinates, which are 1 at most


@dataclass(frozen=True, kw_only=True)
class NumberResult(Result[NumberTask]):
    """What came of the votes; `answered`: how many queries; `part`: of the range, where predictions end."""

    answered: int
    part: TargetRange


@one_thread()
def run_votes(
    task: NumberTask, ledger: Ledger, *, stages: StageStore | None = None, watch: Watch | None = None
) -> NumberResult:
    """Go the whole way, or on from where a killed process stopped; refusals come before any fit or charge. Nothing is
    kept beside the ledger, so that a run that goes on trains its teachers again.
    """
    del stages
    see = watch or (lambda stage, done, total: None)
    ledger.bind(task.fingerprint)
    charge = task.charge_on(ledger)
    charge.check_affordable(ledger)  # a refusal comes before any work
    model_of(task, np.zeros(1 + task.coordinates.n_directions), tried=True)  # fails here, and not after the charge
    begun = charge.find(ledger)
    owed = begun is None or begun.remaining(LABEL)
    with nullcontext() if task.scheduler is None or not owed else task.scheduler.connected():  # refused early, too
        shards = shards_of(task) if owed else None
        reservation = charge.reserve(ledger)
        if reservation.event != task.event:
            raise InvalidParameter("the reservation pays for another release than that of the task; reserve its charge")
        with unwarned():  # as an error, a warning would end what is charged by now
            part = located(task, reservation)
            sums = None if shards is None else sums_of(task, shards, part, see)
            means, answered = noisy_means(task, sums, reservation, see)
            see("student", 0, 1)
            weights = student_weights(task, means, answered)
            model = model_of(task, weights, part)
            see("student", 1, 1)
            limit = None
            if task.held is not None:
                sets = task.held.plan
                limit = sets.limit_of(reservation, task.noise, lambda: held_out_places(task, weights, part))
    return NumberResult(
        task=task,
        model=model,
        answered=int(answered.sum()),
        part=task.target_range.part(*part),
        charge=charge,
        reservation=reservation,
        limit=limit,
    )


def held_out_places(task: NumberTask, weights: FloatArray, part: tuple[int, int]) -> Secret[IntArray]:
    """Count how far off the published model is on the units held out: ``(n_places,)`` units by their place. A place
    follows, bit for bit, from the unit's row and public facts: products of integer coordinates are summed and rounded
    once.
    """
    assert task.held is not None  # noqa: S101 - the caller's condition
    plan, codes, (low, high) = task.held.plan, task.held.codes.reveal(), part
    places, width = np.zeros(plan.n_places, dtype=np.int64), (high - low) / STEPS
    rows = UsableRows(task.private.reveal().table, codes, None, 0)
    for at, encoded in rows.blocks(widest=task.coordinates.n_directions):
        with np.errstate(all="ignore"), unwarned():  # a warning about what a private row holds would tell of it
            z = with_one(in_units(task.coordinates.coordinates, encoded)) * weights
        scores = np.array([_sum_of(row) for row in z.tolist()])
        predicted = np.clip(low / STEPS + width * (1 + scores) / 2, 0.0, 1.0)
        places += plan.places_of_errors(np.abs(codes[at] / STEPS - predicted), _OFF_GRID * width)
    return Secret(places)


def _sum_of(numbers: list[float]) -> float:
    """Return the sum, rounded once; no number where it has none."""
    try:
        return fsum(numbers)
    except (OverflowError, ValueError):
        return nan


def shards_of(task: NumberTask) -> Secret[IntArray]:
    """Return the shard of each row. Raises PreconditionFailed if a unit could change two teachers."""
    slots = task.slots.reveal()
    shards = partition_rows(slots, task.n_teachers, task.key, partition=PARTITION, fewer=True)
    if check_partition(slots, shards, task.n_teachers, task.key, partition=PARTITION):
        raise PreconditionFailed(
            f"the shards are not those of a {PARTITION} partition: a {task.unit} could change more than one teacher, "
            "so nothing was fitted. This is a fault of quorate; please report it"
        )
    return shards


def located(task: NumberTask, reservation: Reservation) -> tuple[int, int]:
    """Return the part of the range that teachers predict in, in its steps, by noisy counts of targets. One that was
    drawn and not stored narrows nothing, and is never drawn again.
    """
    low, high, counts = 0, STEPS, task.counts
    if counts is None:
        return low, high
    for number in range(COUNTING):
        blocks = reservation.blocks(TARGET_COUNT)
        if number == len(blocks):
            exact = targets_in_cells(task, low, high)  # before the draw: what lies behind it is lost with the process
            release(reservation, TARGET_COUNT, 1, partial(_noisy_counts, task, exact))
            blocks = reservation.blocks(TARGET_COUNT)
        if blocks[number].answers is not None:
            shares = counts.shares(np.asarray(blocks[number].answers[0]), task.n_units)
            low, high = narrowed_part(low, high, shares, last=number == COUNTING - 1)
    return low, high


def _noisy_counts(task: NumberTask, exact: Secret[IntArray], drawn: DrawnBlock) -> list[list[int]]:
    assert task.counts is not None  # noqa: S101 - the caller's condition
    noisy: list[list[int]] = task.counts.release_many(exact.reveal()[None], drawn.noise(task.noise)).tolist()
    return noisy


def targets_in_cells(task: NumberTask, low: int, high: int) -> Secret[IntArray]:
    """Count units by the cell of their target, ``(n_cells,)``, by the row that a unit's identity and the key choose."""
    assert task.counts is not None  # noqa: S101 - the caller's condition
    targets = task.private.reveal().codes[one_row_of_each(task.slots.reveal(), task.key)]
    return Secret(task.counts.counts_of(targets, low, high))


def sums_of(task: NumberTask, shards: Secret[IntArray], part: tuple[int, int], see: Watch) -> Secret[IntArray]:
    """Train the teachers, each on its own shard, and sum what they predict, ``(n_queries, 1)``, cut off at the ends of
    a part of the range. Tiny teachers learn targets that are cut off there, others learn them as they are.
    """
    private, teacher = task.private.reveal(), task.teacher

    def as_teachers_see(encoded: Any) -> Any:
        return with_one(task.coordinates.transform(encoded)) if task.tiny else encoded

    queries = as_teachers_see(task.schema.numbers(take(task.schema.pool, task.queries)))
    places, rows = [np.empty(0, dtype=np.int64)], [queries[:0]]
    for at, encoded in private.blocks():
        places.append(at)
        with np.errstate(all="ignore"), unwarned():  # a warning about what a private row holds would tell of it
            rows.append(as_teachers_see(encoded))
    kept = np.concatenate(places)
    targets, low, high = private.codes[kept], *part
    if isinstance(teacher, TinyRegressor):
        inside = np.clip((targets - low) / (high - low), 0.0, 1.0)
        targets = np.rint(inside * (2 * task.mechanism.grid)).astype(np.int64)
    else:
        teacher = replace(teacher, voted=task.target_range.part(low, high))
    see("teachers", 0, task.n_teachers)
    voters = train_chunk(
        teacher,
        np.concatenate(rows),
        targets,
        Secret(shards.reveal()[kept]),
        numbers=range(task.n_teachers),
        n_teachers=task.n_teachers,
        n_classes=2 * task.mechanism.grid + 1,
        key=task.key,
        n_jobs=task.n_jobs,
    )
    see("teachers", task.n_teachers, task.n_teachers)
    return sum_numbers(
        voters,
        queries,
        task.mechanism,
        grid=task.mechanism.grid,
        n_jobs=task.n_jobs,
        scheduler=task.scheduler,
        progress=lambda done, total: see("votes", done, total),
    )


def noisy_means(
    task: NumberTask, sums: Secret[IntArray] | None, reservation: Reservation, see: Watch
) -> tuple[FloatArray, Any]:
    """Return the noisy mean of each query in halves of the range from its middle, and which of them were stored. Block
    by block: marked as drawn → durable → its noise → stored; never drawn again. A vector of a teacher's numbers is one
    block: two halves of vectors of teachers trained anew can be a longer one.
    """
    mechanism, n_queries = task.mechanism, task.n_queries
    done = sum(block.count for block in reservation.blocks(LABEL))
    at_once = isinstance(mechanism, NoisyMeans)
    size = n_queries if at_once else block_size(n_queries, task.noise, informed=False)
    while done < n_queries:
        see("labels", done, n_queries)
        assert sums is not None  # noqa: S101 - where answers are left, there are sums
        drawn, _ = release(
            reservation,
            LABEL,
            min(size, n_queries - done),
            lambda drawn: mechanism.release_many(
                sums.reveal()[drawn.first : drawn.first + drawn.count], drawn.noise(task.noise)
            ).tolist(),
        )
        done = drawn.first + drawn.count
    see("labels", n_queries, n_queries)
    answers, answered = np.zeros(n_queries, dtype=np.int64), np.zeros(n_queries, dtype=bool)
    for block in reservation.blocks(LABEL):
        if isinstance(block.answers, list):
            part = slice(block.first, block.first + block.count)
            answers[part], answered[part] = block.answers, True
    return mechanism.means(answers, task.n_teachers), answered


def student_weights(task: NumberTask, means: FloatArray, answered: Any) -> FloatArray:
    """Return γ of public coordinates, in halves of the range: least squares that knows the noise of the means."""
    if not answered.any():
        return np.zeros(1 + task.coordinates.n_directions)
    encoded = task.schema.numbers(take(task.schema.pool, task.queries[answered]))
    if task.tiny:
        design = with_one(task.coordinates.transform(encoded)) @ what_tiny_teachers_say(task)
    else:
        design = with_one(in_units(task.coordinates.coordinates, encoded))
    effects = np.concatenate([[CONSTANT], task.coordinates.effects])
    return fit_linear_numbers(design, means[answered], noise_sd=task.noise_sd, effects=effects)


def what_tiny_teachers_say(task: NumberTask) -> FloatArray:
    r"""Return :math:`E[(A^\top A + \lambda I)^{-1} A^\top Z]` times the gain, square: of public rows alone."""
    encoded = task.schema.numbers(task.schema.pool)
    A = with_one(task.coordinates.transform(encoded))
    Z = with_one(in_units(task.coordinates.coordinates, encoded))
    rng, total = np.random.default_rng(0), np.zeros((A.shape[1], Z.shape[1]))
    assert isinstance(task.teacher, TinyRegressor)  # noqa: S101 - the caller's condition
    penalty, gains = task.teacher.penalty, np.full(A.shape[1], task.teacher.gain)
    gains[0] = 1.0
    for size in np.minimum(rng.poisson(task.rows_each, _SHARDS), _MOST_ROWS).tolist():
        rows = rng.integers(0, len(A), size)
        gram = A[rows] @ A[rows].T + penalty * np.eye(size)
        total += A[rows].T @ np.linalg.solve(gram, Z[rows])
    return np.asarray(gains[:, None] * total / _SHARDS)


def with_one(coordinates: FloatArray) -> FloatArray:
    """Return rows with a 1 before their coordinates, so that a teacher of few rows knows their mean."""
    return np.column_stack([np.ones(len(coordinates)), coordinates])


def in_units(coordinates: PublicCoordinates, encoded: Any) -> FloatArray:
    """Return coordinates of rows as numbers, and not as steps of their grid."""
    return np.ldexp(np.asarray(coordinates(encoded), dtype=np.float64), -coordinates.bits)


def model_of(task: NumberTask, weights: FloatArray, part: tuple[int, int] = (0, STEPS), *, tried: bool = False) -> Any:
    """Return the published Pipeline, whose weights are in halves of a part of the range; `tried` on a few rows."""
    coordinates = task.coordinates.coordinates
    feature_map = coordinates.feature_map
    coefficients, intercepts = feature_map.weights(coordinates.features(2 * weights[1:, None]))
    linear = number_model(coefficients[:, 0], float(intercepts[0] + 2 * weights[0]), task.target_range.part(*part))
    model = behind_features(linear, feature_map, task.schema, n_columns=len(coefficients))
    if tried:
        rows = take(task.schema.pool, np.arange(min(_TRIED, task.n_public)))
        model.predict(TableReader.of(task.schema.pool, task.schema.kinds)(rows))
    return model


def promised_by(task: NumberTask, ledger: Ledger) -> Guarantee:
    """Say what everything that was charged to the ledger guarantees together."""
    return guarantee_of(ledger, task.event, delta=task.delta, mechanism=released_words(task), seeded=task.noise.seeded)


def released_words(task: NumberTask) -> str:
    """What is released, in words."""
    before = ""
    if (counts := task.counts) is not None:
        before = (
            f"{COUNTING} noisy counts of targets in {counts.cells} cells, discrete Gaussian noise of "
            f"{at_least(counts.sigma)} on each count; and "
        )
    limit = "" if task.held is None else f"; and {task.held.plan.released_in_words}"
    means = task.mechanism
    shrunk = ""
    if isinstance(means, NoisyMeans):
        shrunk = f", each teacher's shrunk to at most {means.length:g} of their greatest length,"
    return (
        f"{before}noisy means of the numbers of {several(task.n_teachers, 'teacher')}{shrunk} on "
        f"{several(task.n_queries, 'public row')}, discrete Gaussian noise of {at_least(task.mechanism.sigma)} votes "
        f"on each sum{limit}"
    )
