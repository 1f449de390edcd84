"""A question has one way: rows are read for the teachers, found again by their key, charged, drawn and answered.

A fitted estimator, a run's folder, the command and the service all go it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import current_process
from typing import Any

from quorate.data import row_digests, take
from quorate.data.column_kinds import ColumnKinds
from quorate.data.rows import Rows
from quorate.data.table_reader import TableReader
from quorate.ensemble import Ensemble
from quorate.errors import PreconditionFailed, named
from quorate.labelling import Memo, OnlineAnswers, Released, stored_adaptively, stored_labels
from quorate.ledger import Reservation
from quorate.mechanisms import DECLINED
from quorate.release import NEVER_ASKED
from quorate.stored_names import stored_as
from quorate.types import IntArray, Secret
from quorate.voting.flow import answering_purposes, answers_left
from quorate.voting.inputs import Inputs, View, refuse_asked
from quorate.voting.kept_votes import are_prompts, votes_of
from quorate.voting.task import Task
from quorate.voting.without_pool import asked_as_declared

_STATUS = {DECLINED: "declined", NEVER_ASKED: "never asked"}


@stored_as("quorate.voting.ask.Asked")
@dataclass(frozen=True, slots=True)
class Asked:
    """What became of the rows of one question.

    `answers`: a class for each row, or None where there is no answer.
    `status`: for each row "answered"; "declined", where the teachers were asked and the mechanism gave no class; or
    "never asked", where the mechanism had closed before the row's turn came.
    `left`: how many new rows may still be asked.
    `new`: how many of these rows were new, each of which used one answer.
    """

    answers: list[Any]
    status: list[str]
    left: int
    new: int = 0


@dataclass(frozen=True, slots=True)
class OpenEnsemble:
    """The ensemble of a task, open to questions; teachers are read or trained where needed."""

    task: Task
    answers: OnlineAnswers
    teachers: Callable[[], Ensemble] = field(repr=False)

    def ask(self, rows: Rows, earlier: Rows | None = None) -> Asked:
        """Answer rows of :func:`question_rows`, all or nothing. Raises PreconditionFailed if a row is new and no
        answers were kept back, or the endpoint of prompts is gone; BudgetExhausted if fewer answers are left than there
        are new rows, or the mechanism is closed. Nothing is drawn then.
        """
        views = self.view(rows)  # before the draw: where this fails, nothing is charged
        keys, answers = self.keys(rows, earlier), self.answers
        new = answers.count_new(keys)
        if new and not answers.purposes:
            raise PreconditionFailed(
                f"no answers were kept back for new rows; set {named('online_answers')} before a run. The student "
                "answers for free"
            )
        if 0 < new <= answers.left:
            self.teachers()  # before anything is drawn
        codes = answers.ask(views, keys).tolist()
        return Asked(
            answers=[None if code in _STATUS else self.task.inputs.classes[code] for code in codes],
            status=[_STATUS.get(code, "answered") for code in codes],
            # Read off the ledger, for who asks next: a stage that is open ends with this process.
            left=answers_left(self.task, answers.reservation),
            new=new,
        )

    def view(self, rows: Rows) -> Rows:
        """Return rows as the teachers see them."""
        return self.task.views.teacher(rows)

    def keys(self, rows: Rows, earlier: Rows | None = None) -> Sequence[bytes]:
        """Return the key of each row, under which its answer is kept."""
        return question_keys(self.task.views.teacher, self.answers.memo, rows, earlier)


def open_online(
    task: Task, reservation: Reservation, ensemble: Callable[[], Ensemble], *, memo: Memo | None = None
) -> OpenEnsemble:
    """Open the ensemble of a task whose labels are released, with all that was answered so far in its memo. `ensemble`:
    called once, where a row is new. `memo`: one that is kept between questions; by default it is filled from the
    ledger.
    """
    mechanism = task.recipe.mechanism
    if memo is None:
        queries = task.queries
        if task.strategy is None:
            released = stored_labels(mechanism, reservation, n_classes=task.n_classes, n_queries=len(queries))
        else:
            labelled = stored_adaptively(mechanism, reservation, n_classes=task.n_classes)
            queries, released = labelled.rows, labelled.released
        memo = memo_of(task, queries, released)
    teachers = cache(ensemble)

    def votes(rows: Rows) -> Secret[Any]:
        return votes_of(task, teachers(), rows)

    answers = OnlineAnswers(
        count_votes=votes,
        mechanism=mechanism,
        reservation=reservation,
        noise=task.noise,
        memo=memo,
        n_classes=task.n_classes,
        purposes=answering_purposes(task, reservation),
        # No worker is to be had in a daemonic process, which is known before the draw.
        votes_first=are_prompts(task) or current_process().daemon,
    )
    answers.recall_stored()
    return OpenEnsemble(task, answers, teachers)


def reader_of(inputs: Inputs, *views: View, left_out: tuple[str, ...] = ()) -> TableReader:
    """Return what reads a table for models with these views of it. A model that takes the table as it is, such as a
    Pipeline, says nothing of what a column's cells have to be.
    """
    as_it_is = ColumnKinds(commas=inputs.kinds.commas, dialect=inputs.kinds.dialect)
    kinds = next((view.kinds for view in views if view.kinds.kinds), as_it_is)
    as_frame = any(view.reads_frames for view in views)
    return TableReader.of(inputs.public, kinds, left_out=left_out, as_frame=as_frame)


def question_rows(task: Task, asked: Any, name: str, *, left_out: tuple[str, ...] = ()) -> tuple[Rows, Rows]:
    """Take the rows that the teachers are asked about, in the form of the public pool; and as an earlier version took
    them, which left times in the type that they came in. Raises DataRefused if the columns are others, or the teachers
    cannot take a cell; nothing was charged.
    """
    if task.inputs.declared is not None:
        rows = asked_as_declared(task.inputs, asked, name, left_out=left_out)
        refuse_asked(task.teacher, task.views.teacher, rows, name=name)
        return rows, rows
    reader = reader_of(task.inputs, task.views.teacher, left_out=left_out)
    rows = reader.as_the_pool(asked, name)
    refuse_asked(task.teacher, task.views.teacher, rows, name=name)
    return rows, reader.as_the_pool(asked, name, as_given=True) if reader.has_times else rows


def question_keys(view: View, memo: Memo, rows: Rows, earlier: Rows | None = None) -> Sequence[bytes]:
    """Return the key of each row: a digest of what the teachers see of it, so that two writings of a moment are one.
    One that was answered by an earlier version keeps its key: the digest of its cells as they came.
    """
    as_seen = view.kinds(rows)
    keys = row_digests(as_seen)
    former = [table for table in (earlier, rows) if table is not None and table is not as_seen]
    former = former[:1] if earlier is rows else former
    if not former:
        return keys
    known = zip(keys, *(row_digests(table) for table in former), strict=True)
    return [next((old for old in olds if memo.recall(old) is not None), key) for key, *olds in known]


def memo_of(task: Task, queries: IntArray, released: Released) -> Memo:
    """The released labels by query, declined ones included; what was lost or never asked was not released."""
    known, memo, kinds = released.asked & ~released.interrupted, Memo(), task.views.teacher.kinds
    points = queries[known]
    keys: Sequence[bytes] = [task.inputs.digests[row] for row in points]
    if kinds.kinds and len(points):
        keys = row_digests(kinds(take(task.inputs.public, points)))
    memo.remember(keys, released.codes[known].tolist())
    return memo
