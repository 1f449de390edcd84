"""What was expected of a run beside what came of it: from public facts, released answers and labelled public rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from quorate.data import PrivateRecords, encode_labels, match_columns, refuse_private_rows
from quorate.errors import InvalidParameter, keyword
from quorate.labelling import Released
from quorate.planning.plan_row import Grid, PlanRow, vote_rows
from quorate.planning.rehearsal.material import Material
from quorate.planning.rehearsal.rehearsal import Effort, Rehearsal
from quorate.report import ExpectedScore
from quorate.report.utility import ChosenScore
from quorate.run.expectation import BASES, Expected
from quorate.students.scores import Judged
from quorate.types import IntArray
from quorate.voting.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A student on labelled public rows, beside what was to be expected of it by a rehearsal of the run on these rows.
    `expected`: None where rows are too few for its shards, or the number of private units was not declared.
    `commonest`: of always saying their commonest class.
    """

    expected: Expected | None
    accuracy: float
    commonest: float

    @property
    def as_expected(self) -> bool | None:
        """Whether the accuracy lies in the expected range; None where nothing was expected."""
        return None if self.expected is None else self.expected.low <= self.accuracy <= self.expected.high


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRun:
    """The plan's row of a run, all from public facts, and what came: how many queries were asked, and answered."""

    row: PlanRow
    asked: int
    answered: int
    _task: Task = field(repr=False)
    _student: Any = field(repr=False)
    _records: PrivateRecords = field(repr=False)

    def compare(self, X: Any, y: Any) -> Comparison:
        """Rehearse the run on labelled public rows, and score its student on them; nothing is charged. Raises
        InvalidParameter, DataRefused if there are fewer than 40, they do not fit the pool, or are private.
        """
        task = self._task
        _, rows = match_columns(task.inputs.public, X, called=("the public pool", "the labelled rows"))
        codes = encode_labels(y, task.inputs.classes, name="labels")
        refuse_private_rows(rows, self._records, name="the labelled rows")
        expected, commonest = rehearsed(task, self.row, rows, codes)
        truth = np.asarray(list(task.inputs.classes))[codes]
        return Comparison(
            expected=expected,
            accuracy=float((np.asarray(self._student.predict(task.views.student.kinds(rows))) == truth).mean()),
            commonest=commonest,
        )


def rehearsed(
    task: Task, row: PlanRow, rows: Any, codes: IntArray, judged: Judged | None = None
) -> tuple[Expected | None, float]:
    """Rehearse a plan's row on labelled public rows: what to expect of the student, and of the commonest class; None
    where rows are too few for the shards, or nothing tells how many rows a teacher has.
    """
    see = task.views
    material = Material(
        pool=(see.teacher(task.inputs.public), see.student(task.inputs.public)),
        points=see.numbers(task.inputs.public),
        rows=(see.teacher(rows), see.student(rows), None),
        codes=codes,
        in_pool=None,
        teacher=task.trainer,
        student=task.student,
        classes=task.inputs.classes,
        basis="labelled public rows",
        schema=None,
        scoring="accuracy" if judged is None else judged.by(codes, len(task.inputs.classes)),
        shares=None if judged is None else judged.shares,
        one_unit=see.numbers.directions is not None,
        prior=see.prior,
    )
    facts = task.facts
    if facts.rows is None:
        return None, material.commonest
    costly = see.prior is None and bool(getattr(task.student, "compares_models", False))
    effort = replace(Effort.of(facts.n_public, facts.width, facts.n_classes, costly=costly), every_row=True)
    (rehearsed_row,) = Rehearsal(material=material, facts=facts, effort=effort)(facts, [row])
    return rehearsed_row.expected, material.commonest


def expected_of(task: Task, X: Any, y: Any, judged: Judged | None = None) -> tuple[Expected | None, float]:
    """Return what to expect of a task's student, rehearsed on labelled public rows, and of the commonest class."""
    if task.facts.rows is None:
        raise InvalidParameter(f"rehearsing needs the number of records; declare {keyword('n_records')}")
    _, rows = match_columns(task.inputs.public, X, called=("the public pool", "evaluation"))
    codes = encode_labels(y, task.inputs.classes, name="evaluation labels")
    refuse_private_rows(rows, task.inputs.records(), name="evaluation")
    task = task.without_private_rows()
    return rehearsed(task, row_of(task), rows, codes, judged or Judged())


def expected_score(expected: Expected) -> ExpectedScore:
    """Return what was expected as a report has it."""
    chosen = None if expected.scored is None else ChosenScore(**asdict(expected.scored))
    ends = {"accuracy": expected.accuracy, "low": expected.low, "high": expected.high}
    return ExpectedScore(**ends, basis=BASES[expected.basis], chosen=chosen)


def row_of(task: Task) -> PlanRow:
    """Return the plan's row for what a task does."""
    recipe = task.recipe
    grid = Grid(mechanisms=[recipe.mechanism], n_teachers=[recipe.n_teachers], queries=[recipe.n_queries])
    (row,) = vote_rows(task.facts, grid)
    return row


def planned_run(task: Task, released: Released, student: Any, records: PrivateRecords) -> PlannedRun:
    """Return what was expected of a task beside what was released; `records`: by which private rows are refused."""
    return PlannedRun(
        row=row_of(task),
        asked=int(released.asked.sum()),
        answered=int(released.answered.sum()),
        _task=task,
        _student=student,
        _records=records,
    )
