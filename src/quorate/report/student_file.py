"""The file of the student: what must be trusted to open it, what rows it takes, and how that is told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar, Final

from quorate.report.notation import escaped
from quorate.report.plain import Plain, require

#: What rows are: columns with names, or all of them running text; numbers by place; sparse; or pixels.
ROWS: Final = ("table", "texts", "numbers", "sparse", "images")

_TASKS = {"images": "image-classification", "texts": "text-classification"}

_TAKES = {
    "table": "a data frame with the columns of the public table",
    "texts": "a data frame with the columns of the public table, which are running text",
    "numbers": "an array with the columns of the public rows",
    "sparse": "a sparse matrix with the columns of the public rows",
    "images": "an array with one image a row, its pixels side by side, of the size of the public ones",
}
_READ = {
    "date": "dates as days since 1970",
    "time": "times of day as hours",
    "duration": "durations as days",
    "category": "categories as text",
    "number": "numbers as numbers, not text",
    "text": "no text missing",
}
_WRITTEN = {
    "number": "numbers",
    "truth value": "true or false",
    "category": "words",
    "text": "text",
    "date": "dates, such as 2024-03-01 or 2024-03-01T12:30+01:00; without a zone they are in UTC",
    "time": "times of day, such as 12:30",
    "duration": "durations, as numbers of seconds",
    "dropped": "nothing that the model reads",
}
_HOLDS = ("number", "text", "time", "missing")


@dataclass(frozen=True, kw_only=True, slots=True)
class Written(Plain):
    """How cells of text are written, as the owner declared it; "" where nothing was said.

    `decimal`, `thousands`: marks of numbers. `date_format`: the order of day, month and year, such as "dd.mm.yyyy".
    `missing`: texts that stand for no value.
    """

    decimal: str = ""
    thousands: str = ""
    date_format: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TextTable(Plain):
    """How text tables of the run are written, as the owner declared it.

    `separator`: between cells; "" leaves it to the name of a file. `encoding`: such as "cp1252". `quote`: the mark
    around a cell that holds a separator, "" for none. `line_breaks`: whether such a cell may hold them.
    """

    separator: str = ""
    encoding: str = "utf-8"
    quote: str = '"'
    line_breaks: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TableColumn(Plain):
    """How a table's column is read before the student meets it: from the public pool and the settings alone.

    `name`: its name. `holds`: what it holds in the public pool. `read_as`: "number", "category", "text", "date",
    "time", "duration" or "dropped"; None where it is read as it is. `comma`: whether the decimal mark of its numbers
    may be a comma. `gaps`: true where a cell that is no number counts as missing, since the owner named the column
    numeric. `type`: the type of its cells there: "number", "truth value", "text", "date", "time", "duration",
    "datetime", "datetime ZONE" or "missing"; None where an earlier version wrote the facts. `written`: how its cells
    are written, where the owner declared it.
    """

    name: str
    holds: str
    read_as: str | None = None
    comma: bool = False
    gaps: bool | None = None
    type: str | None = None
    written: Written | None = None

    LEFT_OUT: ClassVar[tuple[str, ...]] = ("gaps", "type", "written")

    @property
    def cell_type(self) -> str:
        """The type of its cells; the widest of its kind where an earlier version did not write it."""
        clock = self.read_as if self.read_as in ("time", "duration") else "datetime"
        return self.type or (clock if self.holds == "time" else self.holds)

    @property
    def read_kind(self) -> str:
        """What a cell is read as: "number", "date", "time", "duration", "category" or "text"."""
        held = "number" if self.holds == "number" else "date" if self.holds == "time" else "category"
        return self.read_as or held

    @property
    def needs_reader(self) -> bool:
        """Whether cells have to be read before the model meets them: as times, or since they are marked."""
        written = self.written or Written()
        by_text = self.read_kind == "number" and self.holds == "text"
        marked = by_text or self.comma or bool(written.missing or written.decimal)
        return self.read_kind in ("date", "time", "duration") or marked

    @property
    def words(self) -> str:
        """What its cells hold, and how they are written."""
        held = "date" if str(self.type).startswith("datetime") else "dropped" if self.holds == "missing" else self.type
        kind = "truth value" if held == "truth value" else self.read_as or held or self.holds
        written = self.written or Written()
        ways = {
            "number": (
                "what is no number counts as missing" if self.gaps else "",
                "the decimal mark may be a comma" if self.comma else "",
                f"the decimal mark is {written.decimal}" if written.decimal else "",
                f"the mark of thousands is {written.thousands}" if written.thousands else "",
            ),
            "date": (f"or as {written.date_format}" if written.date_format else "",),
        }
        missing = f"missing is {', '.join(written.missing)}" if written.missing and kind != "dropped" else ""
        return "; ".join(filter(None, (_WRITTEN[kind], *ways.get(kind, ()), missing)))

    def _check(self) -> None:
        require(self.holds in _HOLDS, f"holds must be one of {', '.join(_HOLDS)}, got {self.holds!r}")
        kinds = (*_READ, "dropped")
        require(
            self.read_as is None or self.read_as in kinds,
            f"read_as must be one of {', '.join(kinds)}, got {self.read_as!r}",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class StudentFile(Plain):
    """What whoever opens ``student.skops`` must know.

    `rows` ("table", "texts", "numbers", "sparse", "images"): what the student takes. `read_as`: kinds of columns that
    are to be read in another way than by their type before the student meets them: "date", "time", "duration",
    "category", "number" or "text". `trusted`: types that skops opens only where it is told to. `pixels`: of images: how
    many numbers one has; None where an earlier version wrote the facts. `darkest`, `lightest`: of images: the smallest
    and the largest number among the public ones. `columns`: of tables: their columns, in the order of the public pool;
    None where an earlier version wrote the facts.

    Examples
    --------
    >>> StudentFile(rows="table", read_as=["date"]).task
    'tabular-classification'
    >>> StudentFile(rows="images", pixels=784, darkest=0.0, lightest=255.0).takes
    'an array with one image a row: 784 numbers, its pixels row by row, from 0 to 255 in the public images'
    """

    rows: str
    read_as: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    pixels: int | None = None
    darkest: float | None = None
    lightest: float | None = None
    columns: tuple[TableColumn, ...] | None = None
    text_table: TextTable | None = None

    LEFT_OUT: ClassVar[tuple[str, ...]] = ("columns", "text_table")

    def _check(self) -> None:
        require(self.rows in ROWS, f"rows must be one of {', '.join(ROWS)}, got {self.rows!r}")
        require(set(self.read_as) <= set(_READ), f"read_as must be kinds of columns, got {self.read_as!r}")

    @property
    def known_columns(self) -> tuple[TableColumn, ...]:
        """The columns with what their cells are; nothing where an earlier version wrote the facts."""
        known = self.columns or ()
        return known if all(column.type is not None for column in known) else ()

    @property
    def read_columns(self) -> tuple[TableColumn, ...]:
        """The columns that the model reads, where a program beside it has to read a table; nothing where it takes cells
        as they are.
        """
        if any(column.read_as is None and column.holds == "time" for column in self.known_columns):
            return ()  # a Pipeline of the owner's takes times as they are
        read = tuple(
            column for column in self.known_columns if column.read_as != "dropped" and column.holds != "missing"
        )
        return read if any(column.needs_reader for column in read) else ()

    @property
    def task(self) -> str:
        """The task, in the word of model hubs."""
        return _TASKS.get(self.rows, "tabular-classification")

    @property
    def takes(self) -> str:
        """What the student takes, in words."""
        takes = _TAKES[self.rows]
        if self.pixels is not None and self.darkest is not None and self.lightest is not None:
            takes = (
                f"an array with one image a row: {self.pixels:,} numbers, its pixels row by row, from "
                f"{self.darkest:g} to {self.lightest:g} in the public images"
            )
        return "; ".join((takes, ", ".join(_READ[kind] for kind in self.read_as))).removesuffix("; ")


def how_to_use(file: StudentFile | None, *, seeded: bool) -> str:
    """Return in Markdown how the student is opened and asked; less is known of facts of an earlier version."""
    if seeded:
        return (
            "The model of a run with seeded noise carries no guarantee. It is not published, so there is none to open."
        )
    opened, takes = "", "rows with the columns of the public ones"
    if file is None:
        load = 'skops.io.load("student.skops")  # where a type must be trusted, the error names it'
    elif file.trusted:
        listed = escaped(json.dumps(list(file.trusted), ensure_ascii=True))
        opened = f"trusted = {listed}  # types that skops opens only where it is told to\n"
        load = 'skops.io.load("student.skops", trusted=trusted)'
    else:
        load = 'skops.io.load("student.skops")  # no type has to be trusted'
    if file is not None:
        takes = file.takes
    imports, read = "import skops.io\n", ""
    if file is not None and file.read_columns:
        imports += (
            "from read_table import read_table  # read_table.py lies beside a model that `quorate export` wrote\n"
        )
        csv = "CSV" if file.text_table is None else "CSV as the tables of the run are written, or"
        how = 'with what polars.read_csv takes, such as separator=";"'
        read = f'rows = read_table("new.csv")  # Parquet, or {csv} {how}\n'
    return f"```python\n{imports}\n{opened}student = {load}\n{read}student.predict(rows)  # {takes}\n```"
