"""A run that reads each private cell by itself: what rounds, and votes for a number, do alike with a folder.

A row that cannot be used is left out without a word, and no message of such a run depends on a private row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from quorate.ambient import one_thread
from quorate.arguments import count
from quorate.data import PublicPool, take
from quorate.data.column_kinds import ColumnKinds
from quorate.data.formats import Table
from quorate.data.reading import has_named_columns
from quorate.data.rows import Rows
from quorate.errors import InvalidParameter
from quorate.findings import Finding, note
from quorate.folder.folder import RunFolder
from quorate.folder.labelled_rows import Evaluation
from quorate.folder.notes import direct_notes, line_breaks_caution, notes_on_ids, numbers_caution
from quorate.folder.prepared import PreparedRun
from quorate.folder.settings import Settings
from quorate.folder.tables import (
    pool_of,
    private_ids,
    read_pool,
    read_private_cells,
    refuse_unknown_drop,
)
from quorate.report import Score
from quorate.report.utility import NumberScore
from quorate.run.cell_task import left_out
from quorate.run.look import Look, Names, look_by_cells
from quorate.run.progress import PARTS
from quorate.run.remarks import remarks
from quorate.run.scores import score_numbers
from quorate.students.prediction_sets import Calibration, Limits, promised
from quorate.types import Secret, Watch


@dataclass(frozen=True, slots=True)
class CellRun(PreparedRun):
    """A run whose private rows are read cell by cell; its task has a schema, records, and a range for a number."""

    nothing_to_ask: ClassVar[str]  # why there is nothing to ask, and no internal edition of its report
    no_internal: ClassVar[str]

    @property
    def table_cautions(self) -> tuple[Finding, ...]:
        """What the public tables say that the owner should hear before the budget is spent."""
        data, looks = self.settings.data, (line_breaks_caution, numbers_caution)
        findings = [finding for look in looks for finding in remarks(partial(lambda look: [look(data)], look))]
        return tuple(finding for finding in findings if finding.applies)

    def notes(self) -> Iterable[Finding]:
        """Return that the private rows are not looked at, and what there is to say about the public ones."""
        return direct_notes(self.settings, self.task.schema.pool)

    @one_thread()
    def look(self) -> Secret[Look | None]:
        """Look at the private table, whose labels and ids are read again for that: a run holds neither."""
        data = self.settings.data
        _, _, private = read_tables(self.folder, self.settings, begin=False)
        names = Names(data.private.name, data.public_side)
        return look_by_cells(
            self.task, private.y, private_ids(data, private), names=names, ids=lambda ids: notes_on_ids(data, ids)
        )

    @property
    def published_table(self) -> tuple[Rows, ColumnKinds]:
        """The pool, public or drawn, as the model reads it."""
        return self.task.schema.pool, self.task.schema.kinds

    def pool_as_taken(self) -> Any:
        """Return the public rows as the model takes them; None where there are none of which labels are alike."""
        return self.task.schema.kinds(self.task.schema.pool) if self.task.has_public_pool else None

    def score_published(self, model: Any, tell: Callable[[str], None] | None) -> Score | NumberScore | None:
        """Score the model, unless private rows are among those with labels, which its owner alone is told."""
        if self.evaluation is None:
            return None
        if self.task.records.are_in(self.evaluation.table):
            if tell is not None:
                tell(left_out("[data] evaluation"))
            return None
        if (held := self.task.target_range) is not None:
            return score_numbers(held.clipped(model.predict(self.evaluation.X)), self.evaluation.truth)
        return self.score(model, self.evaluation.X, self.evaluation.truth)

    def calibration_notes(self) -> Iterator[Finding]:
        """Yield what prediction sets, or intervals of a number, will promise."""
        if self.task.target_range is None:
            yield from PreparedRun.calibration_notes(self)
        elif self.calibration is not None:
            promise = promised(len(self.calibration.truth), of="intervals")
            yield note("prediction-sets", f"{self.settings.data.calibrates}: {promise}")

    def calibrated(self, model: Any, tell: Callable[[str], None] | None) -> tuple[Any, Calibration | Limits | None]:
        """Return the model as it is calibrated; of a number how far off it is, with the model as it is."""
        held = self.task.target_range
        if held is None:
            return PreparedRun.calibrated(self, model, tell)
        rows = self.rows_to_calibrate(tell)
        if rows is None:
            return model, None
        return model, Limits.of(np.abs(rows.truth - held.clipped(model.predict(rows.X))), width=held.width)

    def rows_to_calibrate(self, tell: Callable[[str], None] | None) -> Evaluation | None:
        """Return them, unless private rows are among them, which its owner alone is told."""
        if self.calibration is None or not self.task.records.are_in(self.calibration.table):
            return self.calibration
        if tell is not None:
            tell(left_out(str(self.settings.data.calibrates), "calibration"))
        return None


def read_tables(
    folder: RunFolder,
    settings: Settings,
    *,
    begin: bool,
    watch: Watch | None = None,
    public_alone: bool = False,
) -> tuple[PublicPool | None, Any, Table]:
    """Read the pool, what was declared of columns in its place, and private cells as they are.

    `begin`: whether a place for rows that memory does not hold is made. `watch`: of a large file. `public_alone`:
    whether the private file is not opened, and stands for no row.
    """
    data = settings.data
    refuse_unknown_drop(data)
    public = None if data.public is None else pool_of(data, read_pool(data))
    declared, n_features = _declared(settings, public)
    if public_alone:
        assert public is not None  # noqa: S101 - the caller's condition
        nobody: list[str] | None = None if data.unit is None else []
        return public, declared, Table(X=take(public.rows(), np.arange(0)), y=np.empty(0), unit=nobody)
    if watch is not None:
        watch("private rows", 0, PARTS)  # before the labels, which lie in the whole of a text
    place = partial(folder.place_for_rows, begin=begin)
    how: dict[str, Any] = {"folder": place, "declared": tuple(declared or ()), "memory": settings.run.bytes_allowed}
    return public, declared, read_private_cells(data, public, n_features=n_features, **how)


def _declared(settings: Settings, public: PublicPool | None) -> tuple[Any, int]:
    """Return what was declared of a table's columns, if it was, and the public number of columns of sparse rows."""
    if public is not None:
        return None, public.width
    declared: Any = settings.schema
    if has_named_columns(settings.data.private, settings.data.dialect):
        return declared, len(declared)
    if set(declared) != {"columns"}:
        raise InvalidParameter(
            "[schema] of sparse rows, which have no names, is their number of columns alone. Example: columns = 5000"
        )
    return None, count("[schema] columns", declared["columns"], at_least=1)
