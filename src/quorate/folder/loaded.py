"""A run whose files were read: what it asks for, whether it was begun before, and by which version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from quorate.ambient import one_thread
from quorate.data.cell_text import csv_text
from quorate.data.column_kinds import ColumnKinds
from quorate.data.rows import Rows
from quorate.ensemble import ChatTeacher
from quorate.errors import InvalidParameter, PreconditionFailed, naming
from quorate.findings import Finding
from quorate.folder import notes
from quorate.folder.folder import RunFolder
from quorate.folder.labelled_rows import Evaluation
from quorate.folder.prepared import PreparedRun
from quorate.folder.published import POOL, PROMPT
from quorate.folder.settings import keys_of
from quorate.mechanisms import Values
from quorate.planning.planned_run import expected_of
from quorate.release import Charge
from quorate.report import Facts, Score
from quorate.run.drawn_rows import parquet_of
from quorate.run.expected import Expected
from quorate.run.look import Look, Names
from quorate.run.method import Method
from quorate.run.stage_store import FIRST_TEACHERS, FolderStages, stage_key
from quorate.students import PromptStudent
from quorate.types import Secret
from quorate.voting.claims import look_at_votes
from quorate.voting.config import RunConfig
from quorate.voting.flow import RunResult, schedule
from quorate.voting.method import VOTES
from quorate.voting.models import EARLIER_TEACHER, teacher_named
from quorate.voting.recipe import FEW_ROWS
from quorate.voting.task import Task

SEEDED_MARK = "seeded noise: reproducible, therefore not private"


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

    @property
    def cautions(self) -> tuple[Finding, ...]:
        """What its owner should hear before the budget is spent, from public facts alone."""
        return self.task.recipe.cautions

    def notes(self) -> Iterable[Finding]:
        """Return what there is to say about the public table and about a mechanism of the owner's own."""
        return notes.public_notes(self.settings, self.task)

    def private_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return what there is to say about the private table, to its owner alone."""
        return notes.private_notes(self.settings.data, self.task)

    def promise_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return those of them that say that the guarantee will not hold."""
        return notes.promise_notes(self.settings.data, self.task)

    @one_thread()
    def look(self) -> Secret[Look | None]:
        """Look at the private table."""
        data = self.settings.data
        return look_at_votes(self.task, names=Names(data.private.name, data.public_side))

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

    @property
    def published_table(self) -> tuple[Rows, ColumnKinds]:
        """The pool, public or drawn, as the student reads it."""
        return self.task.inputs.public, self.task.views.student.kinds

    def pool_as_taken(self) -> Any:
        """Return the public rows as the student takes them; None where there are none of which labels are alike."""
        return None if self.task.draws_pool else self.task.views.student.kinds(self.task.inputs.public)

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
    """Return what earlier versions made of the same settings, where something was begun in the folder.

    Then a weight could not name a class, an entry with blanks around it was another category, and the teachers that
    votes had by default were others.
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

    A class name that a spreadsheet would run as a formula has a quote before it (:mod:`quorate.data.cell_text`).
    The status is that of :attr:`~quorate.labelling.Released.statuses`: answered, declined, interrupted or never asked.
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
