"""From the JSON of a request to rows as the run's models know them: the columns and types of the public pool alone.

What is wrong with a row is found before it waits for an answer, so that it costs nothing and stops nobody else's. A
message names the place and what is expected there, never what was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from quorate.data import columns, families, is_frame, public_units, width
from quorate.data.column_kinds import MISSING_MARKS
from quorate.data.rows import Rows, kind, take
from quorate.data.table_reader import TableReader
from quorate.errors import PreconditionFailed
from quorate.service.problems import Problem

CellKind: TypeAlias = Literal["number", "truth", "text", "missing"]
Row: TypeAlias = tuple[Any, ...]  # cells in the order of the columns; of sparse rows (place, value) pairs

LARGEST: Final = 1e150  # the square of a number below it is finite

_EXPECTED: Final[dict[CellKind, str]] = {
    "number": "a number is expected",
    "truth": "true or false is expected",
    "text": "a text is expected",
    "missing": "null is expected: no public row has a value there",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the pool.

    `name`: its name; of rows without names its place, from 0.
    `kind`: what its cells are.
    `nullable`: whether a cell may be missing, as null.
    `centre`, `scale`: a number of which the distance from the centre is infinite in units of the scale is refused.
    `largest`: the largest number, in size, that the declared kinds of models hold, as it is and in units of the scale.
    `reader`: what reads tables for the run: then a number is one as JSON has it and as the pool's file writes it.
    """

    name: str
    kind: CellKind
    nullable: bool = True
    centre: float = 0.0
    scale: float = 1.0
    largest: float = inf
    reader: TableReader | None = None

    def cell(self, value: Any, place: str) -> Any:
        """Return one cell, or refuse it."""
        if self.nullable and (value is None or (self.reader is not None and self.reader.is_missing(value))):
            return None
        if self.reader is not None and (self.kind == "number" or self.is_written):
            return self._number(value, place, self.reader)
        match self.kind:
            case "number" if type(value) in (int, float):
                return self._in_range(float(value), place)
            case "truth" if type(value) is bool:
                return value
            case "text" if type(value) is str:
                if not (value.isascii() or _is_unicode(value)):
                    raise Problem("value-out-of-range", "the text has half of a surrogate pair", field=place)
                return value
        raise self._wrong(self.kind, place)

    @property
    def is_written(self) -> bool:
        """Whether the pool writes the numbers of this column as texts."""
        return self.reader is not None and self.kind == "text" and self.reader.kinds.kinds.get(self.name) == "number"

    def _number(self, value: Any, place: str, reader: TableReader) -> Any:
        """Return a number, whether it comes as one or as the pool's file writes it, in the form that the pool has."""
        if type(value) is str:
            number = reader.number(self.name, value)
            if number != number:
                if self.is_written and self.nullable and value.strip().lower() in {"", *MISSING_MARKS}:
                    return value
                raise self._wrong("number", place)
            number = self._in_range(number, place)
            return value if self.is_written else number
        if type(value) not in (int, float):
            raise self._wrong("number", place)
        number = self._in_range(float(value), place)
        return reader.written(self.name, number) if self.is_written else number

    def _in_range(self, number: float, place: str) -> float:
        scaled = (number - self.centre) / self.scale
        if not (abs(number) <= min(self.largest, LARGEST) and isfinite(scaled) and abs(scaled) <= self.largest):
            raise Problem("value-out-of-range", "the number is too large", field=place)
        return number

    def _wrong(self, kind_: CellKind, place: str) -> Problem:
        or_null = ", or null" if self.nullable and self.kind != "missing" else ""
        return Problem("wrong-type", _EXPECTED[kind_] + or_null, field=place)


@dataclass(frozen=True, slots=True)
class Features:
    """What a row must look like, from the public side alone.

    `columns`: in the order of the pool. `named`: whether a row is an object of its columns' names; else a list of
    numbers. `sparse`: whether the models take sparse rows; then an object of places ({"17": 1}) will do as well, and
    the rest is 0.
    """

    columns: tuple[Column, ...]
    named: bool
    sparse: bool

    @classmethod
    def of(
        cls,
        pool: Rows,
        *,
        reader: TableReader | None = None,
        encoder: Any = None,
        nullable: bool = True,
        complete: Sequence[str] = (),
        largest: float = inf,
    ) -> Features:
        """Read them off the public pool.

        `pool`: public rows.
        `reader`: what reads tables for the run.
        `encoder`: the public encoder that the models stand behind.
        `nullable`: whether the models take missing values.
        `complete`: columns that must have a value all the same.
        `largest`: the largest number, in size, that the declared kinds of models hold.

        Raises PreconditionFailed if a column holds dates: JSON has none.
        """
        if not is_frame(pool):
            places = range(width(pool))
            return cls(
                tuple(Column(str(place), "number", nullable=False, largest=largest) for place in places),
                False,
                kind(pool) == "sparse",
            )
        read = pool if reader is None else reader.kinds(take(pool, [0]))
        names = columns(read) or ()
        units = {} if encoder is None else {names[at]: unit for at, unit in public_units(encoder, read).items()}
        found = []
        for name, family in families(pool).items():
            if family == "time":
                raise PreconditionFailed(
                    f"column {name!r} holds dates or times, which JSON has not; turn it into numbers or text"
                )
            centre, scale = units.get(name, (0.0, 1.0))
            may_lack = nullable and name not in complete
            if family == "number" and _holds_truth(pool, name):
                found.append(Column(name, "truth", may_lack))
            else:
                found.append(Column(name, family, may_lack or family == "missing", centre, scale, largest, reader))
        return cls(tuple(found), True, False)

    def parse(self, rows: Sequence[Any], place: str = "/rows/{}") -> list[Row]:
        """Read rows.

        `rows`: as the request has them. `place`: the JSON pointer of a row, with {} for its number. Raises Problem
        naming the row and the column.
        """
        read = self._named if self.named else self._listed
        return [read(row, place.format(number)) for number, row in enumerate(rows)]

    def _named(self, row: Any, place: str) -> Row:
        if type(row) is not dict:
            raise Problem("wrong-type", "an object of columns is expected", field=place)
        found = []
        for column in self.columns:
            if column.name not in row:
                raise Problem(
                    "missing-column", "every column is needed; null where a value is missing", field=_at(place, column)
                )
            found.append(column.cell(row[column.name], _at(place, column)))
        if len(row) != len(found):
            raise Problem(
                "unknown-column", f"the columns are {', '.join(each.name for each in self.columns)}", field=place
            )
        return tuple(found)

    def _listed(self, row: Any, place: str) -> Row:
        if type(row) is dict and self.sparse:
            return self._placed(row, place)
        if type(row) is not list:
            raise Problem("wrong-type", "a list of numbers is expected", field=place)
        if len(row) != len(self.columns):
            raise Problem("wrong-width", f"{len(self.columns)} numbers are expected", field=place)
        found = [column.cell(value, _at(place, column)) for column, value in zip(self.columns, row, strict=True)]
        return tuple((at, value) for at, value in enumerate(found) if value) if self.sparse else tuple(found)

    def _placed(self, row: Mapping[str, Any], place: str) -> Row:
        found = []
        for name, value in row.items():
            at = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else len(self.columns)
            if at >= len(self.columns) or name != str(at):
                raise Problem("unknown-column", f"places are 0 to {len(self.columns) - 1}", field=place)
            found.append((at, self.columns[at].cell(value, _at(place, self.columns[at]))))
        return tuple(sorted(cell for cell in found if cell[1]))

    def table(self, rows: Sequence[Row]) -> Rows:
        """Return rows in the kind of the pool: a polars frame, a CSR matrix, or an array.

        Numbers are float64, whatever the pool's column has: as what models see of a row must not turn on its fellows.
        """
        if self.named:
            import polars as pl

            types = {"number": pl.Float64, "truth": pl.Boolean, "text": pl.String, "missing": pl.Null}
            cells = list(zip(*rows, strict=True)) if rows else [()] * len(self.columns)
            return pl.DataFrame(
                [
                    pl.Series(column.name, held, dtype=types[column.kind])
                    for column, held in zip(self.columns, cells, strict=True)
                ]
            )
        if not self.sparse:
            return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.columns))
        from scipy.sparse import csr_matrix

        starts = np.cumsum([0, *(len(row) for row in rows)])
        places = np.array([at for row in rows for at, _ in row], dtype=np.int32)
        values = np.array([value for row in rows for _, value in row], dtype=np.float64)
        return csr_matrix((values, places, starts), shape=(len(rows), len(self.columns)))

    def example(self) -> Any:
        """Return a row that is read, for the documents."""
        values: dict[CellKind, Any] = {"number": 0.5, "truth": True, "text": "north", "missing": None}
        if self.named:
            return {column.name: values[column.kind] for column in self.columns}
        return {"0": 0.5} if self.sparse else [0.5] * len(self.columns)


def _at(place: str, column: Column) -> str:
    return f"{place}/{column.name.replace('~', '~0').replace('/', '~1')}"


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _holds_truth(pool: Rows, name: str) -> bool:
    return str(pool[name].dtype) in ("Boolean", "bool", "boolean") if name in (columns(pool) or ()) else False
