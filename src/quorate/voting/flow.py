"""The main flow, once: for an estimator in memory and for a run in a folder.

read → shard by keyed hash of the unit → fit teachers → count votes → choose queries (public data only) →
charge, release, record → student. Every step before the release is a function of its inputs and the run's key, so it
may be repeated; the release is not, and is never made twice.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quorate.ambient import unwarned
from quorate.data import public_digest, take
from quorate.ensemble import (
    CommandTeacher,
    DaskScheduler,
    Ensemble,
    Voter,
    count_votes,
    dump_voters,
    gather_scores,
    load_voters,
    partition_rows,
    seeds_of_units,
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
    RULES,
    STATEMENTS,
    count_cells,
    counted_rows,
    release_marginals,
    state_coordinates,
    stated_coordinates,
)
from quorate.run.drawn_rows import draw_distinct, parquet_of, pool_from
from quorate.run.facts import Result
from quorate.run.stage_store import CHUNK, FINISHED, NoStages, StageStore, pool_stage, stage_key
from quorate.students import StudentData, class_probabilities
from quorate.types import FloatArray, IntArray, Secret, Watch, derive
from quorate.voting import claims as checks
from quorate.voting.kept_votes import (
    CountedChunks,
    are_calls,
    are_prompts,
    can_be_counted_on_the_way,
    trained,
    votes_by_call,
    votes_by_prompt,
)
from quorate.voting.scope import scope_of
from quorate.voting.shard_rows import learning, limit_of
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
    shards = shards_of(task)
    looked = checks.shards(task, shards)  # refuses before anything is fitted or charged
    if task.draws_pool:
        task = on_drawn_pool(task, charge.reserve(ledger), stages, see)
    queries, scheduler = task.queries, task.config.scheduler
    with nullcontext() if scheduler is None else scheduler.connected():  # so that it is refused early
        ensemble, counts = votes(task, queries, stages, see, shards=learning(task, shards))
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
            if task.draws_pool:
                stages.save(FINISHED, finished_key(task, charge.key), b"")
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
        checks=(looked,),
        limit=limit_of(task, student, reservation),
    )


def shards_of(task: Task) -> Secret[IntArray]:
    """Which teacher gets which private row, ``(n_rows,)``: a function of units' identities and the run's key."""
    unit_keys = task.inputs.private.reveal().unit_keys
    return partition_rows(unit_keys, task.recipe.n_teachers, task.key, partition=task.partition)


def on_drawn_pool(task: Task, reservation: Reservation, stages: StageStore, see: Watch) -> Task:
    """Release the noisy counts, or read those that were, and return the task on the pool drawn from them: the ledger
    holds it before the first answer. Raises PreconditionFailed if another one was.
    """
    plan, private = task.recipe.pool, task.inputs.private.reveal()
    assert plan is not None  # noqa: S101 - the caller's condition
    assert private.cells is not None  # noqa: S101 - of a task that draws its pool
    counted = counted_rows(private.unit_keys, task.key)
    released = release_marginals(
        plan.marginals,
        count_cells(plan.declared, private.cells.parts(), counted, task.inputs.kinds.dialect),
        reservation,
        task.noise,
        progress=lambda done, total: see("marginals", done, total),
    )
    stated, pool = stated_coordinates(reservation), task.kept_pool(stages)
    if pool is None or public_digest(pool) not in stated:
        for rule in RULES:
            content = parquet_of(draw_distinct(plan.declared, replace(released, rule=rule), plan.n_rows, task.key))
            pool = pool_from(content)  # what is written is the pool
            if not stated or public_digest(pool) in stated:
                break
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


def votes(
    task: Task, queries: IntArray, stages: StageStore, see: Watch, *, shards: Secret[IntArray] | None = None
) -> tuple[Ensemble | None, Secret[Any]]:
    """Return the teachers (where they are needed later) and what a mechanism is to look at: :func:`votes_of`."""
    stage = "scores" if task.recipe.mechanism.takes == "scores" else "votes"
    key = stage_key(task.key, stage, task.stage_inputs)
    stored = stages.load(stage, key)
    if stored is not None:
        asked_later = teachers(task, stages, see, shards=shards) if task.recipe.online_answers else None
        return asked_later, Secret(np.load(io.BytesIO(stored), allow_pickle=False))
    rows = task.views.teacher(take(task.inputs.public, queries))
    chunks = None
    if stages.keeps and can_be_counted_on_the_way(task):
        chunks = CountedChunks(task, stages, lambda voters: votes_of(task, Ensemble(voters, task.n_classes), rows))
    ensemble = teachers(task, stages, see, shards=shards, chunks=chunks)
    see = _with_stage_names(task, see)
    declared = task.recipe.n_teachers  # in which progress is told: there may be another number of teachers
    see("votes", 0, declared)
    counts = votes_of(
        task,
        ensemble,
        rows,
        progress=lambda done, total: see("votes", declared * done // max(total, 1), declared),
        scheduler=task.config.scheduler,
        stages=stages,
    )
    counts = counts if chunks is None else chunks.beside(counts)
    if stages.keeps:
        content = io.BytesIO()
        np.save(content, counts.reveal(), allow_pickle=False)
        stages.save(stage, key, content.getvalue())
    return (None if chunks else ensemble), counts  # teachers without those of counted chunks are no ensemble


def _with_stage_names(task: Task, see: Watch) -> Watch:
    """Have stages of teachers that train nothing before they are asked told by what is done in them."""
    names = {}
    if are_prompts(task):
        names = {"teachers": "rows"}
    elif isinstance(task.teacher, CommandTeacher) and not task.teacher.keeps_model:
        names = {"teachers": "rows", "votes": "calls"}
    return lambda stage, done, total: see(names.get(stage, stage), done, total)


def votes_of(
    task: Task,
    ensemble: Ensemble,
    asked: Any,
    *,
    progress: Callable[[int, int], None] | None = None,
    scheduler: DaskScheduler | None = None,
    stages: StageStore | None = None,
) -> Secret[Any]:
    """Votes ``(n_queries, n_classes)``, or scores ``(n_queries, n_teachers)``; `stages` keep the run's own ones."""
    if are_prompts(task):
        return votes_by_prompt(task, ensemble, asked, stages=stages, progress=progress)
    if stages is not None and stages.keeps and are_calls(task):
        return votes_by_call(task, ensemble, asked, stages=stages, progress=progress)
    if task.recipe.mechanism.takes == "scores":
        return gather_scores(ensemble, asked, n_jobs=task.n_jobs, progress=progress, scheduler=scheduler)
    return count_votes(ensemble, asked, n_jobs=task.n_jobs, progress=progress, scheduler=scheduler)


def predictions(task: Task, queries: IntArray, so_far: Released) -> FloatArray | None:
    """A student's class probabilities on all queries, from the answers so far; None before there is an answer."""
    if not so_far.answered.any():
        return None
    pool = task.views.student(take(task.inputs.public, queries))
    student = task.student.fit(student_data_of(task, queries, so_far, purpose="interim student"))
    return class_probabilities(student, pool, task.inputs.classes)


def teachers(
    task: Task,
    stages: StageStore,
    see: Watch,
    *,
    shards: Secret[IntArray] | None = None,
    chunks: CountedChunks | None = None,
) -> Ensemble:
    """Train the teachers chunk by chunk, so that a killed run goes on from the last whole chunk; `shards`: looked at.
    `chunks` counts votes of teachers that are not stored, nor returned.
    """
    n_teachers, see = task.recipe.n_teachers, _with_stage_names(task, see)
    if shards is None:
        shards = shards_of(task)
        checks.shards(task, shards)
        shards = learning(task, shards)
    n_shards, seeds = task.number_of_shards(shards), _seeds(task, shards)
    parts: dict[int, list[Secret[tuple[Voter, ...]]]] = {}
    wanted: dict[int, range] = {}
    made_from = task.stage_inputs
    keys = {start: stage_key(task.key, _stage(start), made_from) for start in range(0, n_shards, CHUNK)}
    for start, key in keys.items():
        stored = stages.load(_stage(start), key)
        if stored is None and not (chunks is not None and chunks.has(start)):
            wanted[start] = range(start, min(start + CHUNK, n_shards))
        parts[start] = [] if stored is None else [load_voters(stored, task.trainer)]
    for numbers, voters in trained(task, shards, list(wanted.values()), seeds=seeds, see=see):
        start = numbers.start // CHUNK * CHUNK
        parts[start].append(voters)
        if stages.keeps and numbers.stop == wanted[start].stop:
            whole = Secret(tuple(voter for part in parts[start] for voter in part.reveal()))
            written = dump_voters(whole, boosting=chunks is None)
            if written is not None:  # what skops cannot write is trained again when it is needed
                stages.save(_stage(start), keys[start], written.reveal())
            elif chunks is not None:
                chunks.add(start, whole)
                parts[start] = []
    see("teachers", n_teachers, n_teachers)
    return Ensemble.from_chunks([part for chunk in parts.values() for part in chunk], task.n_classes)


def _seeds(task: Task, shards: Secret[IntArray]) -> Secret[IntArray] | None:
    """Seeds of teachers that have one unit each; None where a shard's number gives its teacher's seed."""
    if task.partition != "unit":
        return None
    seeds = seeds_of_units(task.inputs.private.reveal().unit_keys, shards, task.key).reveal()
    return Secret(np.concatenate([seeds, np.zeros(task.number_of_shards(shards) - len(seeds), dtype=np.int64)]))


def _stage(start: int) -> str:
    return f"teachers-{start:05d}"


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
