"""The main flow, once: for an estimator in memory and for a run in a folder.

read → shard by keyed hash of the unit → fit teachers → count votes → choose queries (public data only) →
charge, release, record → student. Every step before the release is a function of its inputs and the run's key, so it
may be repeated; the release is not, and is never made twice.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.ambient import unwarned
from quorate.data import public_digest, take
from quorate.data.unit_ids import counted_rows
from quorate.ensemble import (
    Ensemble,
)
from quorate.errors import PreconditionFailed
from quorate.findings import Finding
from quorate.labelling import Pool, Released, label, label_adaptively, stages_of
from quorate.labelling.adaptive import strategy_rng
from quorate.labelling.passive import block_size
from quorate.ledger import Ledger, Reservation
from quorate.release import Charge
from quorate.release.charge import COORDINATES, MARGINAL_LEVEL, is_closed
from quorate.run.drawn_pool import (
    STATEMENTS,
    count_cells,
    release_marginals,
    state_coordinates,
    stated_coordinates,
)
from quorate.run.drawn_rows import draw_distinct, kept_pool, parquet_of, pool_from
from quorate.run.facts import Result
from quorate.run.stage_store import FINISHED, NoStages, StageStore, pool_stage, stage_key
from quorate.students import StudentData, class_probabilities
from quorate.types import FloatArray, IntArray, Watch, derive
from quorate.voting.claims import shards_are_right
from quorate.voting.kept_votes import votes
from quorate.voting.scope import scope_of
from quorate.voting.shard_rows import limit_of, shards_to_train
from quorate.voting.task import Task

OTHER_POOL = (
    "the ledger holds these very answers on rows that were drawn with other bits, as another machine or version of a "
    "library draws them; nothing more was charged. Go on where they were drawn (a run: with its "
    "private/drawn-pool-*.stage); another release, which is charged, has another ε"
)


@dataclass(frozen=True, kw_only=True)
class RunResult(Result[Task]):
    """What came of votes, with a student. Everything but the ensemble may be published."""

    released: Released
    queries: IntArray
    ensemble: Ensemble | None
    checks: tuple[Finding, ...] = ()  # what was looked at on the way


def run_pipeline(
    task: Task, ledger: Ledger, *, stages: StageStore | None = None, key: str | None = None, watch: Watch | None = None
) -> RunResult:
    """Go the whole way, from checked inputs to a student. `key`: idempotency key of the charge: the same key is charged
    once, however often the run is resumed; by default that of the task's content. Raises LedgerMismatch if the ledger
    belongs to other data; BudgetExhausted if the schedule does not fit what is left; nothing is fitted or charged then.
    """
    stages = stages or NoStages()
    see = watch or (lambda stage, done, total: None)
    ledger.bind(task.fingerprint)
    charge = schedule(task, key or task.content_key)
    charge.check_affordable(ledger)  # a refusal comes before any work
    shards = shards_to_train(task)  # refuses before anything is fitted or charged
    if task.draws_pool:
        task = on_drawn_pool(task, charge.reserve(ledger), stages, see)
    queries, scheduler = task.queries, task.config.scheduler
    with nullcontext() if scheduler is None else scheduler.connected():  # so that it is refused early
        ensemble, counts = votes(task, queries, stages, see, shards=shards)
    reservation = charge.reserve(ledger)
    interactive = task.recipe.mechanism.takes == "votes and predictions"
    with unwarned():  # as an error, a warning would end what is charged by now
        if task.strategy is None:
            released = label(
                counts,
                task.recipe.mechanism,
                reservation,
                task.noise,
                block=block_size(len(queries), task.noise, informed=interactive),
                predict=(lambda so_far: predictions(task, queries, so_far)) if interactive else None,
                progress=lambda done, total: see("labels", done, total),
                fewer=task.draws_pool,
            )
        else:
            adaptive = label_adaptively(
                counts,
                pool_of(task),
                task.strategy,
                task.recipe.mechanism,
                reservation,
                task.noise,
                key=task.key,
                progress=lambda done, total: see("labels", done, total),
            )
            queries, released = adaptive.rows, adaptive.released
        if task.leaves_labels:
            stages.save(FINISHED, finished_key(task, charge.key), b"")
    see("student", 0, 1)
    student = teach(task, *spread(task, queries, released))
    see("student", 1, 1)
    if not any(reservation.remaining(purpose) for purpose in answering_purposes(task, reservation)):
        ensemble = None  # nothing is left to ask it
    return RunResult(
        task=task,
        model=student,
        released=released,
        queries=queries,
        charge=charge,
        reservation=reservation,
        ensemble=ensemble,
        checks=(shards_are_right(task.neighbouring, task.partition),),
        limit=limit_of(task, student, reservation),
    )


def on_drawn_pool(task: Task, reservation: Reservation, stages: StageStore, see: Watch) -> Task:
    """Release the noisy counts, or read those that were, and return the task on the pool drawn from them: the ledger
    holds it before the first answer. Raises PreconditionFailed if another one was.
    """
    plan, private = task.recipe.pool, task.inputs.private.reveal()
    assert plan is not None  # noqa: S101 - the caller's condition
    assert private.cells is not None  # noqa: S101 - of a task that draws its pool
    pool, counted = kept_pool(stages, task.content_key), counted_rows(private.unit_keys, task.key)
    stated = stated_coordinates(reservation)
    counts = count_cells(plan.declared, private.cells.parts(), counted, task.inputs.kinds.dialect)
    released = release_marginals(
        plan.marginals,
        counts,
        reservation,
        task.noise,
        progress=lambda done, total: see("marginals", done, total),
    )
    if pool is None or public_digest(pool) not in stated:
        content = parquet_of(draw_distinct(plan.declared, released, plan.n_rows, task.key))
        pool = pool_from(content)  # what is written is the pool
        stages.save(pool_stage(task.content_key), task.content_key, content)
    state_coordinates(reservation, public_digest(pool), refusal=OTHER_POOL)
    return task.on(pool, released)


def refuse_other_pool(task: Task, reservation: Reservation) -> None:
    """Refuse to go on with answers on another pool than the ledger says; raises PreconditionFailed."""
    if task.draws_pool and public_digest(task.inputs.public) not in stated_coordinates(reservation):
        raise PreconditionFailed(OTHER_POOL)


def answering_purposes(task: Task, reservation: Reservation) -> tuple[str, ...]:
    """What pays for questions after the labels: what was kept back, then labels that are left."""
    kept = ("online answer",) if "online answer" in reservation.purposes else ()
    return (*kept, "label") if task.leaves_labels else kept


def answers_left(task: Task, reservation: Reservation) -> int:
    """How many questions may still be asked after the labels: none once the mechanism is closed."""
    if is_closed(reservation):
        return 0
    return sum(reservation.remaining(purpose) for purpose in answering_purposes(task, reservation))


def finished_key(task: Task, charge: str) -> str:
    """Key of the note that a strategy has stopped: what it left may then be asked for, and not before."""
    return stage_key(task.key, FINISHED, {**task.cache_inputs, "charge": charge})


def pool_of(task: Task) -> Pool:
    """What a strategy sees: distinct public points as numbers, in the order of the stream."""
    points = take(task.views.numbers(task.inputs.public), task.queries)
    return Pool(rows=task.queries, points=points, n_classes=task.n_classes)


def spread(task: Task, queries: IntArray, released: Released) -> tuple[IntArray, Released]:
    """Let public points take over answers where the strategy says so; noisy votes stay with their own point."""
    if task.strategy is None or released.holds_values or not len(queries):
        return queries, released
    pool = pool_of(task)
    place = {row: at for at, row in enumerate(pool.rows.tolist())}
    places = np.array([place[row] for row in queries.tolist()], dtype=np.int64)
    whose = task.strategy.spread(pool.points, places, strategy_rng(task.key, 0))
    if whose is None:
        return queries, released
    taught = whose >= 0
    return pool.rows[taught], released.rows(whose[taught])


def schedule(task: Task, key: str) -> Charge:
    """Everything that is to be charged at once, before the first answer: labels and online answers, one cap."""
    purposes = {
        "label": task.recipe.n_queries,
        "online answer": task.recipe.online_answers,
        **stages_of(task.recipe.mechanism),
    }
    purposes = {purpose: count for purpose, count in purposes.items() if count}
    charged_to = None
    if task.recipe.pool is not None:  # the first part of the event pays for counts, the second for answers
        of_pool = {MARGINAL_LEVEL: task.recipe.pool.marginals.n_levels, COORDINATES: STATEMENTS}
        charged_to = {**dict.fromkeys(of_pool, 0), **dict.fromkeys(purposes, 1)}
        purposes = {**of_pool, **purposes}
    if task.sets is not None:
        purposes, charged_to = task.sets.charged(purposes)
    return Charge(
        event=task.event,
        also=task.also,
        delta=task.facts.delta,
        purposes=purposes,
        charged_to=charged_to,
        key=key,
        scope=scope_of(task),
        seeded=task.noise.seeded,
    )


def predictions(task: Task, queries: IntArray, so_far: Released) -> FloatArray | None:
    """A student's class probabilities on all queries, from the answers so far; None before there is an answer."""
    if not so_far.answered.any():
        return None
    pool = task.views.student(take(task.inputs.public, queries))
    student = task.student.fit(student_data_of(task, queries, so_far, purpose="interim student"))
    return class_probabilities(student, pool, task.inputs.classes)


def teach(task: Task, queries: IntArray, released: Released) -> Any:
    """Fit the student on released answers and public points; a warning as an error does not end what is charged."""
    data = student_data_of(task, queries, released, purpose="student")
    try:
        student = task.student.fit(data)
    except Warning:
        with unwarned():
            student = task.student.fit(data)
    return task.views.student.wrapped(student, task.inputs.public)


def student_data_of(task: Task, queries: IntArray, released: Released, *, purpose: str) -> StudentData:
    """Gather all that a student may see: public rows and facts, and answers that were paid for."""
    return StudentData(
        pool=task.views.student(task.inputs.public),
        points=task.views.numbers(task.inputs.public),
        queries=queries,
        released=released,
        classes=task.inputs.classes,
        n_teachers=task.recipe.n_teachers,
        seed=int.from_bytes(derive(task.key, purpose), "big"),
        declined=task.config.declined,
        one_unit=task.views.numbers.directions is not None,
        prior=task.views.prior,
    )
