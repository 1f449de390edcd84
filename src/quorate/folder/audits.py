"""Audits: of a finished run, of votes, rounds or noisy means; and of a mechanism by its name, before any run.

What the ledger was charged for is the claim; what is attacked is the code and the noise that answered, and the teacher
pipeline on public rows. No private row, vote or teacher is looked at, so what comes out may be published.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from typing import Any

import numpy as np

from quorate.accounting import Event
from quorate.arguments import count, for_shell
from quorate.audit import ScheduleAudit, ShardAudit, audit_schedule, audit_shards, setting_of, sizes_for
from quorate.audit.rounds import audit_means, audit_rounds
from quorate.audit.schedules import with_limit
from quorate.data import take
from quorate.data.rows import n_rows
from quorate.direct.contribution_check import check_contributions
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.audited import RunAudit
from quorate.folder.cell_run import DirectRun, NumberRun
from quorate.folder.loaded import LoadedRun
from quorate.folder.prepared import PreparedRun
from quorate.mechanisms import Mechanism, check_own, noise_fields
from quorate.mechanisms.schedule import check_mechanism, mechanism_for
from quorate.report.facts import name_of
from quorate.types import Watch
from quorate.voting.task import Task

RUNS = 100_000  # of one answer

SHARD_ROWS = 240
ROWS_PER_TEACHER = 12
SHARD_UNITS = 2
NOT_THE_COUNTS = "the noisy counts from which the pool was drawn"
NO_TEACHERS = "None were audited: a mechanism alone has no teachers."
NO_SHARDS = "Shards were not audited: that is done for teachers that vote for classes."
ALONE = (
    "Public rows with made-up labels add the same integers alone and together, as records and in groups, and none is "
    "longer than the clip."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditOptions:
    """How an audit is made: `runs` of the attack on one answer (whole schedules get as many as fit), the `confidence`
    with which all bounds hold together, the `seed` of its own noise; the run's is not touched.
    """

    runs: int = RUNS
    confidence: float = 0.95
    seed: int | None = None
    n_jobs: int = 1
    watch: Watch | None = None
    clock: Callable[[], float] = time.perf_counter

    def attack(
        self, audit: Callable[..., ScheduleAudit], limit: Any = None, *, drew: bool = False, **of: Any
    ) -> ScheduleAudit:
        """Return what an attack finds that is made so; `limit`: what chooses that of sets, `drew`: whether a pool."""
        how: dict[str, Any] = {"seed": self.seed, "n_jobs": self.n_jobs, "watch": self.watch, **of}
        attacked = with_limit(audit, limit, confidence=self.confidence, runs=self.runs, **how)
        seen_less = (*attacked.does_not_see, NOT_THE_COUNTS)
        return replace(attacked, does_not_see=seen_less) if drew else attacked

    def found(self, schedule: ScheduleAudit, *, begun: float, **of: Any) -> RunAudit:
        """Return what a whole audit found that began at `begun`."""
        return RunAudit(schedule=schedule, seed=self.seed, seconds=self.clock() - begun, **of)


@singledispatch
def audit_run(run: PreparedRun, options: AuditOptions) -> RunAudit:
    """Attack what a finished run released, as is registered for runs of its kind."""
    del options
    raise PreconditionFailed(f"there is no audit of what {run.settings.method.by} releases")


@audit_run.register
def _(run: LoadedRun, options: AuditOptions) -> RunAudit:
    """Attack the mechanism of a finished run, and its teacher pipeline, by settings, ledger and public rows alone."""
    begun = options.clock()
    task, event = run.task, run.task.paying_for_answers(charged_event(run))
    see = options.watch or (lambda stage, done, total: None)
    schedule = options.attack(
        partial(audit_schedule, task.recipe.mechanism, event),
        None if task.sets is None else task.sets.mechanism,
        drew=task.draws_pool,
        n_teachers=task.recipe.n_teachers,
        n_classes=task.n_classes,
        delta=task.facts.delta,
    )
    see("shards", 0, 1)
    shards, why_not = shards_of(task, seed=options.seed, n_jobs=options.n_jobs)
    see("shards", 1, 1)
    setting = setting_of(task.recipe.mechanism, event, task.recipe.n_teachers, task.n_classes, task.facts.delta)
    return options.found(
        schedule,
        begun=begun,
        sizes=sizes_for(setting, schedule),
        delta=task.facts.delta,
        shards=shards,
        without_shards=why_not,
        seeded=task.noise.seeded,
    )


@audit_run.register
def _(run: DirectRun, options: AuditOptions) -> RunAudit:
    """Attack the rounds of a finished run."""
    begun, task, event = options.clock(), run.task, charged_event(run)
    rows = task.public_rows
    check_contributions(task.plan, rows, unit=task.unit)
    schedule = options.attack(
        partial(audit_rounds, task.plan, task.paying_for_rounds(event), rows),
        None if task.held is None else task.held.plan.mechanism,
        drew=task.drawn is not None,
        of="prediction sets" if task.target_range is None else "intervals",
        delta=task.delta,
        neighbours=task.relation.charged or "replace",  # the larger change, where both are covered at one price
    )
    how = {"without_shards": ALONE, "beside": "Contributions", "ran": name_of(audit_rounds)}
    return options.found(schedule, begun=begun, delta=task.delta, seeded=task.noise.seeded, **how)


@audit_run.register
def _(run: NumberRun, options: AuditOptions) -> RunAudit:
    """Attack the noisy means of a finished run."""
    begun, task, event = options.clock(), run.task, charged_event(run)
    schedule = options.attack(
        partial(audit_means, task.mechanism, task.learning if event == task.event else event),
        None if task.held is None else task.held.plan.mechanism,
        of="intervals",
        delta=task.delta,
        queries=task.n_queries,
        counts=task.counts,
    )
    how = {"without_shards": NO_SHARDS, "ran": name_of(audit_means)}
    return options.found(schedule, begun=begun, delta=task.delta, seeded=task.noise.seeded, **how)


def charged_event(run: PreparedRun) -> Event:
    """Return what the ledger was charged for, which is the claim; PreconditionFailed where there is no such charge."""
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
    return reservation.event


def shards_of(task: Task, *, seed: int | None = None, n_jobs: int = 1) -> tuple[ShardAudit | None, str | None]:
    """Audit the run's teacher and partition, or say why not: on public rows with made-up labels and units, and by a
    partition with a key of its own. What it would find on private rows would be about private rows.
    """
    n_public = n_rows(task.inputs.public)
    n_teachers = min(task.recipe.n_teachers, n_public // ROWS_PER_TEACHER)
    if n_teachers < 2:
        return None, "Shards were not audited: that takes two teachers and two dozen public rows at least."
    n = min(n_public, SHARD_ROWS, n_teachers * ROWS_PER_TEACHER)
    n_teachers = min(n_teachers, n // ROWS_PER_TEACHER)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(n_public)[:n])
    codes = rng.permutation(n) % task.n_classes
    try:
        result = audit_shards(
            task.trainer,
            task.views.teacher(take(task.inputs.public, rows)),
            np.asarray(list(task.inputs.classes))[codes],
            None if task.unit == "record" else np.arange(n) // 2,
            classes=task.inputs.classes,
            n_teachers=n_teachers,
            partition=task.partition,
            units=SHARD_UNITS,
            seed=seed,
            n_jobs=n_jobs,
        )
    except PreconditionFailed:
        return None, (
            "Shards could not be audited: two trainings on the same rows gave different teachers, so there is nothing "
            "to compare. Give the teacher a random_state parameter that is obeyed."
        )
    return result, None


def mechanism_to_audit(
    kind: type[Mechanism],
    fields: Mapping[str, Any],
    *,
    n_teachers: int,
    n_classes: int,
    answers: int,
    epsilon: float | None,
    delta: float,
) -> Mechanism:
    """Make the mechanism to audit, as a run would; `epsilon`: of all answers, None where noise is given."""
    count("--n-teachers", n_teachers, at_least=1)
    count("--n-classes", n_classes, at_least=2)
    count("--answers", answers, at_least=1)
    noise = noise_fields(kind)
    if noise and epsilon is None and not set(noise) <= set(fields):
        wanted = " ".join(f"--set {field}=..." for field in noise)
        raise InvalidParameter(f"how much noise has {kind.__name__}? Give {wanted}, or --epsilon to have it filled in")
    mechanism = mechanism_for(
        kind,
        fields,
        n_classes=n_classes,
        n_teachers=n_teachers,
        answers=answers,
        epsilon=1.0 if epsilon is None else epsilon,
        delta=delta,
    )
    check_mechanism(mechanism, n_classes=n_classes)
    check_own(mechanism, n_teachers=n_teachers, n_classes=n_classes, answers=answers)
    return mechanism


def audit_alone(
    mechanism: Mechanism, options: AuditOptions, *, n_teachers: int, n_classes: int, answers: int, delta: float
) -> RunAudit:
    """Attack a mechanism on made-up votes, by public numbers alone; the arguments are those of `audit_schedule`."""
    begun, event = options.clock(), mechanism.schedule(answers)
    schedule = options.attack(
        partial(audit_schedule, mechanism, event), n_teachers=n_teachers, n_classes=n_classes, delta=delta
    )
    return options.found(
        schedule,
        begun=begun,
        sizes=sizes_for(setting_of(mechanism, event, n_teachers, n_classes, delta), schedule),
        delta=delta,
        without_shards=NO_TEACHERS,
        seeded=False,
    )
