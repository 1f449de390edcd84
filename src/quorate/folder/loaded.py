"""A run whose files were read: what it asks for, whether and by which version it was begun, what its owner may see."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from quorate.accounting.attacker import OF_BUDGETS
from quorate.ambient import one_thread
from quorate.data import n_rows, take
from quorate.data.cell_text import csv_text
from quorate.ensemble import (
    ChatTeacher,
    agreement,
    average_stability,
    high_margin_curve,
    margins,
    soft_label_quality,
    train_teachers,
)
from quorate.errors import InvalidParameter, PreconditionFailed, naming
from quorate.findings import Finding
from quorate.folder.folder import RunFolder
from quorate.folder.labelled_rows import Evaluation
from quorate.folder.notes import notes_on_ids, public_notes
from quorate.folder.prepared import PreparedRun
from quorate.folder.published import POOL, PROMPT
from quorate.folder.settings import keys_of
from quorate.mechanisms import Values
from quorate.planning.planned_run import expected_of
from quorate.release import Charge
from quorate.report import AgreementFacts, Facts, InternalFacts, QualityFacts, Score, StabilityFacts, TeacherFacts
from quorate.run.drawn_rows import parquet_of
from quorate.run.expectation import Expected
from quorate.run.look import Look
from quorate.run.method import Method
from quorate.run.stage_store import FIRST_TEACHERS, FolderStages, stage_key
from quorate.students import PromptStudent
from quorate.types import IntArray, Secret, derive
from quorate.voting.claims import look_at_votes, private_notes, promise_notes
from quorate.voting.config import RunConfig
from quorate.voting.flow import RunResult, schedule
from quorate.voting.kept_votes import votes
from quorate.voting.method import VOTES
from quorate.voting.models import EARLIER_TEACHER, teacher_named
from quorate.voting.recipe import FEW_ROWS
from quorate.voting.shard_rows import TaughtShards, shards_to_train
from quorate.voting.task import Task

SEEDED_MARK = "seeded noise: reproducible, therefore not private"
EXCHANGES = 10  # pairs of teachers trained to estimate stability
SHOWN_POINTS = 200  # of a running sum or a curve; more cannot be seen
EXACT = "Margins, agreement and shard sizes are exact: whoever reads this page reads private data."
BETA = 0.05  # share of teachers that may be off in a strong soft label


@dataclass(frozen=True, slots=True)
class LoadedRun(PreparedRun):
    """A run's folder, what it asks for, and the task that follows from its files."""

    task: Task
    method: ClassVar[Method[Task]] = VOTES

    @property
    def charge_key(self) -> str:
        """Idempotency key of the charge: the same work is charged once, however often it is resumed."""
        return self.task.content_key

    @property
    def charge(self) -> Charge:
        """What the run asks of its ledger."""
        return schedule(self.task, self.charge_key)

    def notes(self) -> Iterable[Finding]:
        """Return what there is to say about the public table and about a mechanism of the owner's own."""
        return public_notes(self.settings, self.task)

    def private_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return what there is to say about the private table, to its owner alone."""
        return private_notes(self.task, self.names, ids=self._notes_on_ids)

    def promise_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return those of them that say that the guarantee will not hold."""
        return promise_notes(self.task, self.names, ids=self._notes_on_ids)

    def _notes_on_ids(self) -> Iterable[Finding]:
        return notes_on_ids(self.settings.data, self.task.inputs.private.reveal().unit_keys)

    @one_thread()
    def look(self) -> Secret[Look | None]:
        """Look at the private table."""
        return look_at_votes(self.task, self.names)

    @one_thread()
    def expected(self) -> tuple[Expected | None, float]:
        """Rehearse a run on its labelled public rows: the accuracy to expect, and that of the commonest class."""
        if self.task.draws_pool:
            raise InvalidParameter(
                "--rehearse plays on public rows, and [data] public names none: of rows that are drawn no accuracy can "
                "be foretold. Leave it out: the run itself scores the student on [data] evaluation"
            )
        if self.evaluation is None:
            raise InvalidParameter(
                "--rehearse plays on public rows with labels; name a table of them: [data] evaluation"
            )
        with naming(keys_of(self.settings)):
            return expected_of(self.task, self.evaluation.X, self.evaluation.truth, self.settings.data.judged)

    def score_published(self, model: Any, tell: Callable[[str], None] | None) -> Score | None:
        """Score the student; private rows among those with labels were refused when they were read."""
        if self.evaluation is None:
            return None
        return self.score(model, self.task.views.student.kinds(self.evaluation.X), self.evaluation.truth)

    def rows_to_calibrate(self, tell: Callable[[str], None] | None) -> Evaluation | None:
        """Return them, where there are any; private rows among them were refused when they were read."""
        rows = self.calibration
        return None if rows is None else replace(rows, X=self.task.views.student.kinds(rows.X))

    def files(self, result: RunResult, facts: Facts) -> Mapping[str, str | bytes]:
        """Return the labels; the pool, where one was drawn; and a prompt of them where teachers are prompts."""
        task = self.task
        more: dict[str, str | bytes] = {"labels.csv": labels_csv(task, result)}
        if task.draws_pool:
            more[POOL] = parquet_of(task.inputs.public)
        if isinstance(teacher := task.teacher, ChatTeacher) and not task.noise.seeded:
            more[PROMPT] = PromptStudent.of_answers(
                task.inputs.public,
                result.queries,
                result.released,
                classes=task.inputs.classes,
                guarantee=facts.guarantee,
                shots=teacher.shots,
                instruction=teacher.instruction,
                text=teacher.text,
            ).to_json()
        return more


def earlier_configs(config: RunConfig, run: LoadedRun) -> list[RunConfig]:
    """Return what earlier versions made of the same settings, where something was begun in the folder. Then a weight
    could not name a class, an entry with blanks around it was another category, and default teachers were others.
    """
    if not _may_have_begun(run.folder):
        return []
    configs = [config, *([_by_shard(config)] if run.task.names_classes else [])]
    configs += [before for later in configs for before in _with_earlier_defaults(later)]
    if run.task.respells:
        configs += [replace(earlier, words_as_written=True, try_models=False) for earlier in configs]
    return configs[1:]


def named_as_begun(of: Callable[[RunConfig], LoadedRun], config: RunConfig, folder: RunFolder) -> LoadedRun:
    """Make a run of settings, with weights for numbers in a shard only where it was begun when these meant that."""
    try:
        run = of(config)
        bool(run.task.names_classes)  # refuses what is none of the classes, where no rehearsal did
    except InvalidParameter:
        if not _may_have_begun(folder) or not has_begun(run := of(_by_shard(config))):
            raise
    return run


def has_begun(run: LoadedRun) -> bool:
    """Whether the folder holds teachers of this very run, or its charge: their keys are made of all settings."""
    key = stage_key(run.task.key, FIRST_TEACHERS, run.task.stage_inputs)
    if FolderStages(run.folder.private).load(FIRST_TEACHERS, key) is not None:
        return True
    if not run.folder.may_have_begun:
        return False
    try:
        with run.folder.look_into_ledger() as ledger:
            return run.charge.find(ledger) is not None
    except PreconditionFailed:  # it was killed before the first entry; whatever else it is, the run itself will meet
        return False


def _may_have_begun(folder: RunFolder) -> bool:
    return folder.may_have_begun or any(folder.private.glob("*.stage"))


def _with_earlier_defaults(config: RunConfig) -> tuple[RunConfig, RunConfig]:
    """Return a run with smaller tiny teachers, and one with none."""
    teacher = teacher_named(EARLIER_TEACHER) if config.teacher is None else config.teacher
    return (
        replace(config, most_tiny=FEW_ROWS, try_models=False),
        replace(config, earlier_defaults=True, teacher=teacher, try_models=False),
    )


def _by_shard(config: RunConfig) -> RunConfig:
    return replace(config, classes_by_shard=True, try_models=False)  # its models were tried when it was begun


def labels_csv(task: Task, result: RunResult) -> str:
    """Released answers as text: row of the public file (from 0), class, status, and noisy votes or scores if released.
    A class name that a spreadsheet would run as a formula has a quote before it.
    """
    released = result.released
    read = released.mechanism.answers
    columns = read.columns([str(label) for label in task.inputs.classes]) if isinstance(read, Values) else []
    numbers = read.published(released.answers) if isinstance(read, Values) else released.answers
    rows: list[Any] = numbers.reshape(len(numbers), -1).tolist()
    names = ["row", "label", "status", *columns]
    if task.noise.seeded:
        names.append("guarantee")
    lines = []
    for row, code, status, values in zip(
        result.queries.tolist(), released.codes.tolist(), released.statuses, rows, strict=True
    ):
        answered = code >= 0
        line = [row, task.inputs.classes[code] if answered else "", status]
        if columns:
            line += values if answered else [""] * len(columns)
        if task.noise.seeded:
            line.append(f"none: {SEEDED_MARK}")
        lines.append(line)
    return csv_text(names, lines)


def facts_for_owner(run: LoadedRun) -> Secret[InternalFacts]:
    """Gather what only the owner may see of a run, from its stored votes where they fit. One model is trained on all
    private rows beside the teachers, to compare, and a few teachers again with one record exchanged.
    """
    task, stages = run.task, FolderStages(run.folder.private)
    shards = shards_to_train(task)
    _, counts = votes(task, task.queries, stages, lambda stage, done, total: None, shards=shards)
    facts: dict[str, Any] = {"teachers": tuple(_teachers(task, shards)), "stability": _stability(task)}
    if task.recipe.mechanism.takes == "scores":
        facts["quality"] = _quality(counts)
    else:
        facts["margins"] = tuple(sorted(Counter(margins(counts).reveal().tolist()).items()))
        curve = high_margin_curve(counts, task.recipe.n_teachers).reveal()
        facts["high_margin"] = tuple(zip(curve.xi.tolist(), curve.nu.tolist(), strict=True))
        facts["agreement"] = _agreement(task, counts)
    tips = [caution.words for caution in task.recipe.cautions if caution.code not in OF_BUDGETS]
    words = (*tips, *(note.words for note in run.private_notes().reveal()))
    return Secret(InternalFacts(**facts, notes=(EXACT, *(f"{line[0].upper()}{line[1:]}." for line in words))))


def _agreement(task: Task, counts: Secret[IntArray]) -> AgreementFacts | None:
    private = task.inputs.private.reveal()
    alone = train_teachers(
        task.classifier,
        task.views.teacher(private.X),
        private.codes,
        Secret(np.zeros(len(private.codes), dtype=np.int64)),
        n_teachers=1,
        n_classes=task.n_classes,
        key=Secret(derive(task.key, "one model of all rows")),
        n_jobs=1,
    )
    reference = alone.voters.reveal()[0].vote(task.views.teacher(take(task.inputs.public, task.queries)))
    if (reference < 0).any():
        return None  # the model failed on all rows; nothing to compare with
    agreed = agreement(counts, reference, task.recipe.n_teachers).reveal()
    points = np.unique(np.linspace(0, len(reference) - 1, min(SHOWN_POINTS, len(reference))).astype(int))
    ours, theirs = agreed.cumulated
    return AgreementFacts(
        plurality=agreed.plurality,
        correlation=None if math.isnan(agreed.correlation) else agreed.correlation,
        cumulated=tuple(zip(ours[points].tolist(), theirs[points].tolist(), strict=True)),
    )


def _stability(task: Task) -> StabilityFacts | None:
    private = task.inputs.private.reveal()
    n_rows_each = n_rows(private.X) // task.recipe.n_teachers
    if n_rows_each < 1 or n_rows_each >= n_rows(private.X):
        return None
    try:
        stability = average_stability(
            task.classifier,
            task.views.teacher(private.X),
            private.codes,
            task.views.teacher(take(task.inputs.public, task.queries[:SHOWN_POINTS])),
            n_rows_each=n_rows_each,
            n_classes=task.n_classes,
            exchanges=EXCHANGES,
            rng=np.random.default_rng(int.from_bytes(derive(task.key, "stability"), "big")),
        ).reveal()
    except Exception:  # noqa: BLE001 - the teacher's own code: without its scores there is no such fact
        return None
    return StabilityFacts(
        mean=stability.mean, standard_error=stability.standard_error, n_records=n_rows_each, exchanges=EXCHANGES
    )


def _quality(scores: Secret[Any]) -> QualityFacts:
    quality = soft_label_quality(scores, beta=BETA).reveal()
    known = ~np.isnan(quality.weak)
    return QualityFacts(
        beta=BETA,
        weak=tuple(np.sort(quality.weak[known]).tolist()),
        strong=tuple(np.sort(quality.strong[known]).tolist()),
    )


def _teachers(task: Task, shards: TaughtShards) -> list[TeacherFacts]:
    private, of_row, facts = task.inputs.private.reveal(), shards.of_row.reveal(), []
    for teacher in range(shards.number):
        codes = private.codes[of_row == teacher]
        kinds = len(np.unique(codes))
        status = "abstains: no rows" if kinds == 0 else "votes its only class" if kinds == 1 else "trained"
        facts.append(TeacherFacts(index=teacher, n_records=len(codes), status=status))
    return facts
