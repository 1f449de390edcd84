"""The audit of a finished direct run: its own contributions and noise, on public rows with made-up labels."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from quorate.arguments import for_shell
from quorate.audit.rounds import audit_rounds
from quorate.audit.schedules import with_limit
from quorate.direct.contribution_check import check_contributions
from quorate.errors import PreconditionFailed
from quorate.folder.audited import NOT_THE_COUNTS, RUNS, RunAudit
from quorate.folder.direct_run import DirectRun
from quorate.report.facts import name_of
from quorate.types import Watch

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
    reservation = None
    if run.folder.has_ledger:
        with run.open_ledger() as ledger:
            reservation = run.charge_on(ledger).find(ledger)
    if reservation is None:
        root = run.folder.root
        raise PreconditionFailed(
            f"the ledger of {root} holds no charge for what quorate.toml and its tables ask for now, so there is "
            f"nothing to audit; put them back as they were, or run them first: quorate run {for_shell(root)}"
        )
    rows = task.public_rows
    check_contributions(task.plan, rows, unit=task.unit)
    schedule = with_limit(
        partial(audit_rounds, task.plan, task.paying_for_rounds(reservation.event), rows),
        None if task.held is None else task.held.plan.mechanism,
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
