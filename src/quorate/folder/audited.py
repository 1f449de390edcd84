"""The audit of a finished run: its own mechanism at its own noise, and its own teacher pipeline on public rows.

What the ledger was charged for is the claim; what is attacked is the code and the noise that answered. No private row,
vote or teacher is looked at, so what comes out may be published.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from quorate.accounting import Event
from quorate.arguments import for_shell
from quorate.audit import (
    Attack,
    ScheduleAudit,
    ShardAudit,
    Sizes,
    audit_schedule,
    audit_shards,
    setting_of,
    sizes_for,
)
from quorate.audit.schedules import with_limit
from quorate.data import take
from quorate.data.rows import n_rows
from quorate.errors import PreconditionFailed
from quorate.findings import Finding, Outcome
from quorate.folder.audit_section import audit_section, fault_sizes, size_tree
from quorate.folder.folder import RunFolder
from quorate.folder.loaded import LoadedRun
from quorate.folder.prepared import PreparedRun
from quorate.folder.published import FACTS, publish_files
from quorate.report import Facts, render_html, render_json, sight_sentences, size_sentences
from quorate.report.facts import name_of
from quorate.types import Watch
from quorate.voting.task import Task

FORMAT = 1
RUNS = 100_000  # of one answer

SHARD_ROWS = 240
ROWS_PER_TEACHER = 12
SHARD_UNITS = 2
NOT_A_PROOF = "That is not a proof: another attack may find more."


@dataclass(frozen=True, kw_only=True, slots=True)
class RunAudit:
    """What the audit of a run found.

    `schedule`: on the mechanism: attacks, and for a sparse vector comparisons of its answers with their exact
        distribution.
    `sizes`: how small a fault the audit of the mechanism would have found, as far as that was measured; None where
        :attr:`ScheduleAudit.sees` says it.
    `delta`: the run's δ.
    `shards`: of the run's teacher pipeline and partition, on public rows with made-up labels.
    `without_shards`: why there is none.
    `seeded`: whether the run's own noise was seeded: then it has no guarantee, whatever an audit finds.
    `seed`: of the audit.
    `seconds`: that it took.
    `beside`: what was looked at beside the mechanism, in a word.
    `ran`: name of the function that attacked it.
    """

    schedule: ScheduleAudit
    sizes: Sizes | None
    delta: float
    shards: ShardAudit | None
    without_shards: str | None
    seeded: bool
    seed: int | None
    seconds: float
    beside: str = "Shards"
    ran: str = name_of(audit_schedule)

    @property
    def attacks(self) -> tuple[Attack, ...]:
        """Attacks on the mechanism, each with a bound on ε."""
        return self.schedule.attacks

    @property
    def confidence(self) -> float:
        """With which all bounds and comparisons hold together."""
        return self.schedule.confidence

    @property
    def violated(self) -> bool:
        """Whether the mechanism contradicts what was charged, or a unit moved more than one teacher."""
        return self.schedule.violated or (self.shards is not None and self.shards.violated)

    @property
    def verdict(self) -> str:
        """A few plain sentences."""
        sentences = []
        by_chance = (
            f"A correct mechanism looks like this in at most {100 * (1 - self.confidence):.3g} % of audits; audit "
            "again with more --runs and --confidence 0.999999, and if it stays, the guarantee does not hold."
        )
        if any(attack.violated for attack in self.attacks):
            sentences.append(f"VIOLATED: an attack on the mechanism proves more than was claimed. {by_chance}")
        elif any(comparison.violated for comparison in self.schedule.comparisons):
            sentences.append(
                "VIOLATED: the mechanism does not answer with the probabilities for which its price was proved. "
                f"{by_chance}"
            )
        if self.schedule.stage is not None and self.schedule.stage.violated:
            sentences.append("VIOLATED: one sparse-vector stage loses more than was charged for it, by an exact sum.")
        if self.schedule.charge is not None and self.schedule.charge.violated:
            sentences.append(self.schedule.charge.verdict)
        if self.shards is not None and self.shards.violated:
            sentences.append(f"VIOLATED: {self.shards.verdict.removeprefix('VIOLATED: ')}")
        if not sentences:
            sentences.append(
                f"No violation found, at confidence {100 * self.confidence:.10g} % for all bounds together. "
                f"{NOT_A_PROOF}"
            )
        if self.seeded:
            sentences.append("The run's own noise was seeded: it has no guarantee, whatever an audit finds.")
        return " ".join(sentences)

    @property
    def sight_sentences(self) -> tuple[str, ...]:
        """Which kinds of fault were looked for, and which were not, in sentences."""
        return sight_sentences(self.schedule.sees, self.schedule.does_not_see)

    @property
    def size_sentences(self) -> tuple[str, ...]:
        """How small a fault would have been found, in sentences."""
        return () if self.sizes is None else size_sentences(fault_sizes(self.sizes))

    @property
    def told_of_shards(self) -> str:
        """What became of the shard audit, in a sentence or two."""
        if self.shards is None:
            return self.without_shards or ""
        return self.shards.verdict

    def tree(self) -> dict[str, Any]:
        """Plain values, for ``audit.json``."""
        return {
            "format": FORMAT,
            "violated": self.violated,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "delta": self.delta,
            "attacks": [_attack_tree(attack) for attack in self.attacks],
            "comparisons": [
                asdict(comparison) | {"violated": comparison.violated} for comparison in self.schedule.comparisons
            ],
            "charge": None
            if (charge := self.schedule.charge) is None
            else {
                "charged_epsilon": charge.charged_epsilon,
                "released_epsilon": charge.released_epsilon,
                "violated": charge.violated,
            },
            "sees": list(self.schedule.sees),
            "does_not_see": list(self.schedule.does_not_see),
            "sizes": None
            if self.sizes is None
            else {
                "measured_at_this_setting": self.sizes.here,
                "faults": [size_tree(size) for size in self.sizes.rows],
                "verdict": " ".join(self.size_sentences),
            },
            "stage": None if (stage := self.schedule.stage) is None else asdict(stage) | {"violated": stage.violated},
            "shards": None
            if self.shards is None
            else {
                "violated": self.shards.violated,
                "most_teachers_moved": self.shards.worst,
                "changes_tried": len(self.shards.probes),
                "rows": "public rows with made-up labels",
            },
            "shards_verdict": self.told_of_shards,
            "seeded_run": self.seeded,
            "seed": self.seed,
            "seconds": self.seconds,
            "version": version("quorate"),
        }


def _attack_tree(attack: Attack) -> dict[str, Any]:
    return {
        "attack": attack.name,
        "guessed_by": attack.result.attack,
        "claim": repr(attack.result.claimed),
        "claimed_epsilon": attack.claimed,
        "proved_epsilon": attack.proved,
        "violated": attack.violated,
        "confidence": attack.result.confidence,
        "trials": attack.result.trials,
        "seconds": attack.result.seconds,
    }


def audit_run(
    batch: LoadedRun,
    *,
    runs: int = RUNS,
    confidence: float = 0.95,
    seed: int | None = None,
    n_jobs: int = 1,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> RunAudit:
    """Audit the mechanism of a finished run, and its teacher pipeline.

    `batch`: the run, as read.
    `runs`: of the attack on one answer; whole schedules, which draw more noise, get as many as fit.
    `confidence`: with which all bounds hold together, in (0, 1).
    `seed`: of the audit's own noise; the run's is not touched.
    `n_jobs`: processes.
    `watch`: ``watch(stage, done, total)``.
    `clock`: seconds.

    Raises PreconditionFailed if the ledger holds no charge for what the folder asks for now: then it is not what was
    run. Privacy: made of the settings, the ledger and public rows alone. Nothing is charged.
    """
    begun = clock()
    task, event = batch.task, batch.task.paying_for_answers(charged_event(batch))
    see = watch or (lambda stage, done, total: None)
    schedule = with_limit(
        partial(audit_schedule, task.recipe.mechanism, event),
        None if task.sets is None else task.sets.mechanism,
        n_teachers=task.recipe.n_teachers,
        n_classes=task.n_classes,
        delta=task.facts.delta,
        confidence=confidence,
        runs=runs,
        seed=seed,
        n_jobs=n_jobs,
        watch=see,
    )
    if task.draws_pool:
        schedule = replace(schedule, does_not_see=(*schedule.does_not_see, NOT_THE_COUNTS))
    see("shards", 0, 1)
    shards, why_not = shards_of(task, seed=seed, n_jobs=n_jobs)
    see("shards", 1, 1)
    setting = setting_of(task.recipe.mechanism, event, task.recipe.n_teachers, task.n_classes, task.facts.delta)
    return RunAudit(
        schedule=schedule,
        sizes=sizes_for(setting, schedule),
        delta=task.facts.delta,
        shards=shards,
        without_shards=why_not,
        seeded=task.noise.seeded,
        seed=seed,
        seconds=clock() - begun,
    )


NOT_THE_COUNTS = "the noisy counts from which the pool was drawn"


def charged_event(run: PreparedRun) -> Event:
    """Return what the ledger was charged for, which is the claim.

    Raises PreconditionFailed if there is no such charge.
    """
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
    """Audit the run's teacher and partition; or say why not.

    The rows are public ones with made-up labels and units, and the partition has a key of its own: what such an audit
    finds on private rows would be about private rows.
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


def with_audit(facts: Facts, found: RunAudit) -> Facts:
    """Return the facts of a run with what its audit found, in place of an earlier one.

    The attacks become the section on audits; two checks say how they, and the shard audit, ended.
    """
    added = [
        Finding(
            code="audit",
            words="Do attacks prove no more than was claimed?",
            outcome=Outcome.FAILED if found.schedule.violated else Outcome.PASSED,
            evidence=f"Measured on the run's own mechanism at its own noise. {NOT_A_PROOF}",
            ran=found.ran,
        )
    ]
    if found.shards is not None:
        added.append(
            Finding(
                code="shard audit",
                words=f"Does one changed {facts.setup.unit} change one teacher?",
                outcome=Outcome.FAILED if found.shards.violated else Outcome.PASSED,
                evidence=f"Tried with the run's teacher and partition on public rows. {found.shards.verdict}",
                ran=name_of(audit_shards),
            )
        )
    kept = [check for check in facts.checks if check.code not in {"audit", "shard audit"}]
    return replace(facts, audit=audit_section(found.schedule, found.sizes), checks=(*kept, *added))


def publish_audit(folder: RunFolder, facts: Facts, found: RunAudit) -> Facts:
    """Write ``public/audit.json``, and the report and the facts with what was found; return those facts."""
    facts_ = with_audit(facts, found)
    content = json.dumps({"run": facts.provenance.run, "ledger_head": facts.provenance.ledger_head, **found.tree()},
                         ensure_ascii=False, indent=2, allow_nan=False)  # fmt: skip
    publish_files(
        folder,
        {
            "audit.json": (content + "\n").encode(),
            "report.html": render_html(facts_).encode(),
            FACTS: render_json(facts_).encode(),
        },
    )
    return facts_
