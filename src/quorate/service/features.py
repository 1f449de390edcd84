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
from quorate.data.column_kinds import ColumnKinds
from quorate.data.rows import Rows, kind, take
from quorate.data.table_reader import TableReader, is_marked_missing
from quorate.deferred import pl, sparse
from quorate.service.problems import Problem

CellKind: TypeAlias = Literal["number", "date", "time", "duration", "truth", "text", "missing"]
Row: TypeAlias = tuple[Any, ...]  # cells in the order of the columns; of sparse rows (place, value) pairs

LARGEST: Final = 1e150  # the square of a number below it is finite

_EXPECTED: Final[dict[CellKind, str]] = {
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
    `reader`: what reads tables for the run; None where rows have no names. Numbers and times may come as texts by it.
    """

    name: str
    kind: CellKind
    nullable: bool = True
    centre: float = 0.0
    scale: float = 1.0
    largest: float = inf
    reader: TableReader | None = None

    @property
    def is_needed(self) -> bool:
        """Whether a row must have it: all columns but those that no model learned from."""
        return self.reader is None or self.name in self.reader.needed

    @property
    def is_written(self) -> bool:
        """Whether the pool writes the numbers of this column as texts."""
        return self.kind == "number" and self.reader is not None and self.reader.families[self.name] == "text"

    @property
    def is_plain(self) -> bool:
        """Whether a text says a number as programs write it, with a point, and not in a notation of the run's files."""
        kinds = None if self.reader is None else self.reader.kinds
        declared = kinds is None or kinds.dialect.declares_numbers or self.name in kinds.commas
        return not (declared or self.is_written)

    def cell(self, value: Any, place: str) -> Any:
        """Return one cell, as a number, a truth value, a text or None, or refuse it."""
        if self.nullable and (value is None or (self.reader is not None and self.reader.is_missing(value))):
            return None
        if type(value) is str and not (value.isascii() or _is_unicode(value)):
            raise Problem("value-out-of-range", "the text has half of a surrogate pair", field=place)
        match self.kind:
            case "truth" if type(value) is bool:
                return value
            case "truth" if type(value) is str and self.reader is not None:
                said = self.reader.number(self.name, value)
                if said in (0, 1):
                    return bool(said)
            case "text" if type(value) is str:
                return value
            case "number" if type(value) in (int, float):
                number = self._in_range(float(value), place)
                return self.reader.written(self.name, number) if self.reader and self.is_written else number
            case "duration" if type(value) in (int, float):
                return repr(self._in_range(float(value), place))
            case "number" | "date" | "time" | "duration" if type(value) is str and self.reader is not None:
                return self._of_text(value, place, self.reader)
        raise self._wrong(place)

    def _of_text(self, text: str, place: str, reader: TableReader) -> Any:
        """Return what a text says, or the text where the pool holds texts, or times."""
        if reader.is_unread(self.name, text) or (is_marked_missing(text) and not self.nullable):
            raise self._wrong(place)
        if self.kind != "number":
            return text
        number = reader.number(self.name, text)
        if number == number:
            number = self._in_range(number, place)
        return text if self.is_written else None if number != number else number

    def _in_range(self, number: float, place: str) -> float:
        scaled = (number - self.centre) / self.scale
        if not (abs(number) <= min(self.largest, LARGEST) and isfinite(scaled) and abs(scaled) <= self.largest):
            raise Problem("value-out-of-range", "the number is too large", field=place)
        return number

    def _wrong(self, place: str) -> Problem:
        or_null = ", or null" if self.nullable and self.kind != "missing" else ""
        if self.kind in _EXPECTED:
            expected = _EXPECTED[self.kind]
        else:
            expected = "a number is expected" if self.reader is None else self.reader.expected(self.name)
        return Problem("wrong-type", expected + or_null, field=place)


@dataclass(frozen=True, slots=True)
class Features:
    """What a row must look like, from the public side alone: an object of named columns, or a list of numbers.

    Where models take sparse rows, an object of places ({"17": 1}) will do as well, and the rest is 0.
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
        """Read them off the public pool, the run's reader, and what its encoder and its models take.

        `nullable`: whether models take missing values. `complete`: columns that must have one all the same. `largest`:
        the largest number, in size, that the declared kinds of models hold.
        """
        if not is_frame(pool):
            places = range(width(pool))
            return cls(
                tuple(Column(str(place), "number", nullable=False, largest=largest) for place in places),
                False,
                kind(pool) == "sparse",
            )
        reader = TableReader.of(pool, ColumnKinds()) if reader is None else reader
        read = reader.kinds(take(pool, [0]))
        names = columns(read) or ()
        units = {} if encoder is None else {names[at]: unit for at, unit in public_units(encoder, read).items()}
        described = []
        for name, family in families(pool).items():
            held: CellKind = "text" if family == "time" else family
            cells = "truth" if reader.types[name] == "truth value" else reader.says(name) or held
            centre, scale = units.get(name, (0.0, 1.0)) if cells == "number" else (0.0, 1.0)
            may_lack = (nullable and name not in complete) or family == "missing"
            described.append(Column(name, cells, may_lack, centre, scale, largest, reader))
        return cls(tuple(described), True, False)

    def parse(self, rows: Sequence[Any], place: str = "/rows/{}") -> list[Row]:
        """Read the rows of a request; `place` is the JSON pointer of a row.

        Raises Problem naming the row and the column.
        """
        read = self._named if self.named else self._listed
        return [read(row, place.format(number)) for number, row in enumerate(rows)]

    def _named(self, row: Any, place: str) -> Row:
        if type(row) is not dict:
            raise Problem("wrong-type", "an object of columns is expected", field=place)
        cells = []
        for column in self.columns:
            if column.name not in row and column.is_needed:
                raise Problem(
                    "missing-column", "every column is needed; null where a value is missing", field=_at(place, column)
                )
            cells.append(column.cell(row[column.name], _at(place, column)) if column.name in row else None)
        if len(row) != sum(column.name in row for column in self.columns):
            raise Problem(
                "unknown-column", f"the columns are {', '.join(known.name for known in self.columns)}", field=place
            )
        return tuple(cells)

    def _listed(self, row: Any, place: str) -> Row:
        if type(row) is dict and self.sparse:
            return self._placed(row, place)
        if type(row) is not list:
            raise Problem("wrong-type", "a list of numbers is expected", field=place)
        if len(row) != len(self.columns):
            raise Problem("wrong-width", f"{len(self.columns)} numbers are expected", field=place)
        cells = [column.cell(value, _at(place, column)) for column, value in zip(self.columns, row, strict=True)]
        return tuple((at, value) for at, value in enumerate(cells) if value) if self.sparse else tuple(cells)

    def _placed(self, row: Mapping[str, Any], place: str) -> Row:
        cells = []
        for name, value in row.items():
            at = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else len(self.columns)
            if at >= len(self.columns) or name != str(at):
                raise Problem("unknown-column", f"places are 0 to {len(self.columns) - 1}", field=place)
            cells.append((at, self.columns[at].cell(value, _at(place, self.columns[at]))))
        return tuple(sorted(cell for cell in cells if cell[1]))

    def table(self, rows: Sequence[Row]) -> Rows:
        """Return rows in the kind of the pool: a polars frame, a CSR matrix, or an array.

        Numbers are float64, whatever the pool's column has: as what models see of a row must not turn on its fellows.
        """
        if self.named:
            types = {"number": pl.Float64, "truth": pl.Boolean, "missing": pl.Null}
            cells = list(zip(*rows, strict=True)) if rows else [()] * len(self.columns)
            table = pl.DataFrame(
                [
                    pl.Series(
                        column.name, held, dtype=pl.String if column.is_written else types.get(column.kind, pl.String)
                    )
                    for column, held in zip(self.columns, cells, strict=True)
                ]
            )
            reader = self.columns[0].reader
            return reader.as_the_pool(table, "rows") if reader is not None and reader.has_times and rows else table
        if not self.sparse:
            return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.columns))
        starts = np.cumsum([0, *(len(row) for row in rows)])
        places = np.array([at for row in rows for at, _ in row], dtype=np.int32)
        values = np.array([value for row in rows for _, value in row], dtype=np.float64)
        return sparse.csr_matrix((values, places, starts), shape=(len(rows), len(self.columns)))

    def example(self) -> Any:
        """Return a row that is read, for the documents."""
        values: dict[CellKind, Any] = {
            "number": 0.5, "date": "2024-03-01", "time": "12:30", "duration": 90.0, "truth": True, "text": "north",
            "missing": None,
        }  # fmt: skip
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
