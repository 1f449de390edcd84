"""Rows that come later: how they are read for the models of a task, and under which keys their answers are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.data import row_digests, take
from quorate.data.column_kinds import ColumnKinds
from quorate.data.rows import Rows
from quorate.data.table_reader import TableReader
from quorate.labelling import Memo, Released
from quorate.types import IntArray
from quorate.voting.inputs import Inputs, View, as_declared, refuse_asked
from quorate.voting.task import Task


def reader_of(inputs: Inputs, *views: View, left_out: tuple[str, ...] = ()) -> TableReader:
    """Return what reads a table for models with these views of it.

    A model that takes the table as it is, such as a Pipeline, says nothing of what a column's cells have to be.
    """
    kinds = next((view.kinds for view in views if view.kinds.kinds), _as_it_is(inputs.kinds))
    as_frame = any(view.reads_frames for view in views)
    return TableReader.of(inputs.public, kinds, left_out=left_out, as_frame=as_frame)


def _as_it_is(kinds: ColumnKinds) -> ColumnKinds:
    return ColumnKinds(commas=kinds.commas, dialect=kinds.dialect)


def asked_rows(task: Task, asked: Any, name: str, *, left_out: tuple[str, ...] = ()) -> tuple[Rows, Rows]:
    """Take the rows that the teachers are asked about, in the form of the public pool.

    `asked`: a table, whatever holds it. `name`: what a message calls it. `left_out`: columns that are no features.
    Returns: the rows; and the rows as an earlier version took them, which left times in the type that they came in.
    Raises DataRefused if the columns are others, or the teachers cannot take a cell; nothing was charged.
    """
    if task.inputs.declared is not None:
        rows = as_declared(task.inputs, asked, left_out=left_out)
        refuse_asked(task.teacher, task.views.teacher, rows, name=name)
        return rows, rows
    reader = reader_of(task.inputs, task.views.teacher, left_out=left_out)
    rows = reader.as_the_pool(asked, name)
    refuse_asked(task.teacher, task.views.teacher, rows, name=name)
    return rows, reader.as_the_pool(asked, name, as_given=True) if reader.has_times else rows


def question_keys(view: View, memo: Memo, rows: Rows, earlier: Rows | None = None) -> Sequence[bytes]:
    """Return the key of each row: a digest of what the teachers see of it, so that two writings of a moment are one.

    A row that was answered by an earlier version keeps the key that it had there: the digest of its cells as they came.

    `view`: that of the teachers. `memo`: what was answered. `rows`, `earlier`: from :func:`asked_rows`.
    """
    seen = view.kinds(rows)
    keys = row_digests(seen)
    former = [table for table in (earlier, rows) if table is not None and table is not seen]
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
