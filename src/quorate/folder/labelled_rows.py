"""Labelled public rows of a run: what scores its model, and what calibrates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.figures import several
from quorate.data import encode_labels, refuse_private_rows, take
from quorate.data.formats import Table
from quorate.data.labels import finite_numbers
from quorate.data.rows import Rows, columns
from quorate.errors import DataRefused, InvalidParameter
from quorate.folder.data_settings import DataSettings
from quorate.folder.table_source import Source
from quorate.folder.tables import read_public, refuse_other_columns
from quorate.students.prediction_sets import COVERAGE, FEWEST, apart, require_rows
from quorate.voting.ask import reader_of
from quorate.voting.task import Task
from quorate.voting.without_pool import as_declared

_HOW_TO_MEND = (
    "write under [data] how tables are written (date_format, decimal, missing), mend the cells, or drop their rows"
)
_SALT = b"calibration"  # so that the halves of a calibration are not those of the table it was taken from


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Public rows with labels, to score or calibrate the student on; `whole`: features of all rows of their table."""

    X: Any = field(repr=False)
    truth: NDArray[Any] = field(repr=False)
    whole: Any = field(default=None, repr=False)

    @property
    def table(self) -> Any:
        """The features of all rows of their table: if private ones are among them, neither part is used."""
        return self.X if self.whole is None else self.whole

    def at(self, places: NDArray[Any]) -> Evaluation:
        """Return the rows at some places."""
        return Evaluation(take(self.X, places), self.truth[places], whole=self.X)


#: Of a table with labels, by its key; None where it is not named.
Reader: TypeAlias = Callable[[DataSettings, Any, str], Evaluation | None]


def labelled_rows(read: Reader, data: DataSettings, task: Any) -> tuple[Evaluation | None, Evaluation | None]:
    """Read, by `of_votes` or `of_cells`, the public rows that score the model, and those that calibrate it."""
    scored, calibrating = read(data, task, "evaluation"), read(data, task, "calibration")
    if data.calibration_of_evaluation is not None and scored is not None:
        n = len(scored.truth)
        n_held = round(data.calibration_of_evaluation * n)
        if n_held >= n:
            raise InvalidParameter(
                f"[data] calibration_of_evaluation={data.calibration_of_evaluation:g} of {several(n, 'row')} leaves "
                "none to score the model on; give a smaller share, or more rows"
            )
        held, rest = apart(n, n_held, salt=_SALT)
        scored, calibrating = scored.at(rest), scored.at(held)
    if scored is not None and data.range is not None:
        scored = replace(scored, truth=data.range.clipped(scored.truth))
    if calibrating is not None:
        _require_enough(len(calibrating.truth), of_a_number=data.range is not None, name=str(data.calibrates))
    return scored, calibrating


def _require_enough(n_rows: int, *, of_a_number: bool, name: str) -> None:
    if not of_a_number:
        require_rows(n_rows, name=name)
    elif n_rows < FEWEST:
        raise InvalidParameter(
            f"{name} got {several(n_rows, 'row')}, and intervals of {100 * COVERAGE:g} % need at least {FEWEST}; give "
            "more rows, or leave it out"
        )


def _read(data: DataSettings, source: Source, pool: Rows) -> Table:
    """Read public rows with labels, of the columns of the pool."""
    drop = [*([data.unit] if data.unit else []), *data.drop]
    table = read_public(data, source, pool, label=data.label, drop=drop)
    refuse_other_columns(data, table.X, source, pool)
    return table


def of_votes(data: DataSettings, task: Task, key: str) -> Evaluation | None:
    """Read the rows as teachers that vote on classes do; private ones among them are refused: a score or a temperature
    of them would be published at no charge.
    """
    if (source := data.tables.get(key)) is None:
        return None
    table = _read(data, source, task.inputs.public)
    if task.draws_pool:
        rows = as_declared(task.inputs, table.X)
    else:
        reader = reader_of(task.inputs, task.views.student)
        rows = reader.as_the_pool(table.X, source.name, as_given=True)  # as private, so that they are known
    task.views.student.check(rows, source.name)
    codes = encode_labels(table.y, task.inputs.classes, name=f"{source.name}, column {data.label!r}")
    refuse_private_rows(rows, task.inputs.records(), name=f"[data] {key}")
    return Evaluation(rows, np.asarray(list(task.inputs.classes))[codes])


def of_cells(data: DataSettings, task: Any, key: str) -> Evaluation | None:
    """Read the rows cell by cell; whether private ones are among them is asked after the rounds."""
    if (source := data.tables.get(key)) is None:
        return None
    table = _read(data, source, task.schema.pool)
    rows, fits, usable = task.schema.judged(table.X, source.name)
    if not usable.all():
        where, holds = f"[data] {key}, {source.name}", "the public pool" if data.public is not None else "[schema]"
        raise DataRefused(f"{where}: {_first_unusable(rows, fits)} not what {holds} says; {_HOW_TO_MEND}")
    name_of_column = f"{source.name}, column {data.label!r}"
    if task.target_range is not None:
        return Evaluation(task.schema.kinds(rows), finite_numbers(table.y, name=name_of_column))
    codes = encode_labels(table.y, task.classes, name=name_of_column)
    return Evaluation(task.schema.kinds(rows), np.asarray(list(task.classes))[codes])


def _first_unusable(rows: Any, fits: Sequence[NDArray[np.bool_]]) -> str:
    """Return in words where a cell is that its column cannot hold; not what it holds: private rows may be there."""
    names = columns(rows)
    at = next((at for at, of_column in enumerate(fits) if not of_column.all()), None)
    if at is None or names is None:
        return "a cell is"
    return f"the cell of row {int(np.flatnonzero(~fits[at])[0])} in column {names[at]!r} is"
