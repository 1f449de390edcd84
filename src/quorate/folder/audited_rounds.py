"""The audit of a finished run that reads its rows cell by cell: its rounds, or its noisy means."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from quorate.audit.noisy_means import audit_means
from quorate.audit.rounds import audit_rounds
from quorate.audit.schedules import with_limit
from quorate.direct.contribution_check import check_contributions
from quorate.folder.audited import NOT_THE_COUNTS, RUNS, RunAudit, charged_event
from quorate.folder.direct_run import DirectRun
from quorate.folder.number_run import NumberRun
from quorate.report.facts import name_of
from quorate.types import Watch

NO_SHARDS = "Shards were not audited: that is done for teachers that vote for classes."
ALONE = (
    "Public rows with made-up labels add the same integers alone and together, as records and in groups, and none is "
    "longer than the clip."
)


def audit_direct(
    run: DirectRun,
    *,
    runs: int = RUNS,
    confidence: float = 0.95,
    seed: int | None = None,
    n_jobs: int = 1,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> RunAudit:
    """Attack the rounds of a finished run; the arguments are those of :func:`~quorate.folder.audited.audit_run`.

    Raises PreconditionFailed if the ledger holds no charge for what the folder asks for now: then it is not what was
    run; or if contributions on this machine are not what the price rests on.
    """
    begun, task = clock(), run.task
    event = charged_event(run)
    rows = task.public_rows
    check_contributions(task.plan, rows, unit=task.unit)
    schedule = with_limit(
        partial(audit_rounds, task.plan, task.paying_for_rounds(event), rows),
        None if task.held is None else task.held.plan.mechanism,
        of="prediction sets" if task.target_range is None else "intervals",
        delta=task.delta,
        confidence=confidence,
        runs=runs,
        seed=seed,
        n_jobs=n_jobs,
        watch=watch,
        neighbours=task.relation.charged or "replace",  # the larger change, where both are covered at one price
    )
    if task.drawn is not None:
        schedule = replace(schedule, does_not_see=(*schedule.does_not_see, NOT_THE_COUNTS))
    return RunAudit(
        schedule=schedule,
        sizes=None,
        delta=task.delta,
        shards=None,
        without_shards=ALONE,
        seeded=task.noise.seeded,
        seed=seed,
        seconds=clock() - begun,
        beside="Contributions",
        ran=name_of(audit_rounds),
    )


def audit_numbers(
    run: NumberRun,
    *,
    runs: int = RUNS,
    confidence: float = 0.95,
    seed: int | None = None,
    n_jobs: int = 1,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> RunAudit:
    """Attack the noisy means of a finished run; arguments and refusals are those of :func:`audit_direct`."""
    begun, task = clock(), run.task
    charged = charged_event(run)
    schedule = with_limit(
        partial(audit_means, task.mechanism, task.learning if charged == task.event else charged),
        None if task.held is None else task.held.plan.mechanism,
        of="intervals",
        queries=task.n_queries,
        counts=task.counts,
        delta=task.delta,
        confidence=confidence,
        runs=runs,
        seed=seed,
        n_jobs=n_jobs,
        watch=watch,
    )
    return RunAudit(
        schedule=schedule,
        sizes=None,
        delta=task.delta,
        shards=None,
        without_shards=NO_SHARDS,
        seeded=task.noise.seeded,
        seed=seed,
        seconds=clock() - begun,
        ran=name_of(audit_means),
    )
