"""Excel files: the first sheet, whose first row names the columns; every cell is of the type that the file gives it.

So no private cell changes how another is read. Cells come as text, as from a database: a number as text tables write it
here, a date in ISO 8601. A column of public numbers alone is one of numbers.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final
from zipfile import ZipFile

from quorate.data.cell_text import canonical_text
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.file_reading import reading
from quorate.data.formats.format import TableFormat, require_column
from quorate.deferred import pl
from quorate.errors import DataRefused, PreconditionFailed

_EXACT = 2**53  # below it, every whole number is a float of its own
_OF_A_BYTE = 60  # bytes in memory, of a byte in the file, which is packed
_ROW = re.compile(rb"<(?:\w+:)?row\b.*?</(?:\w+:)?row>", re.DOTALL)
_CELL = rb"<(?P<ns>(?:\w+:)?)c\b(?P<attributes>[^>]*)"
_ANY = re.compile(_CELL + rb"(?:(?<=/)>|>(?P<inside>.*?)</(?P=ns)c>)", re.DOTALL)
_ERROR = re.compile(_CELL + rb"""\st=["']e["'][^>]*(?<!/)>.*?</(?P=ns)c>""", re.DOTALL)
#: A number with a style that is a date's, maybe, or a duration's: the library, or Python, fails on so many days.
_FAR = re.compile(
    _CELL + rb"""\ss=["']\w*["'](?P<more>[^>]*>\s*(?:<(?:\w+:)?f\b(?:[^>]*/>|[^<]*</(?:\w+:)?f>)\s*)?<(?:\w+:)?v>"""
    rb"""-?(?:\d{10}|[\d.]+[eE]\+?\d\d))"""
)
_COLUMN = re.compile(rb"""\sr=["']([A-Z]+)""")


NO_EXCEL: Final = "no Excel file, whatever its name says; name it .csv if it is text, or save it as .xlsx or CSV"


@dataclass(frozen=True, slots=True)
class Spreadsheet(TableFormat):
    """An Excel file. `dialect`: what stands for no value, and how a number is written as text."""

    dialect: Dialect = PLAIN
    suffixes: ClassVar[tuple[str, ...]] = (".xlsx", ".xlsm")  # without and with macros, which are never run

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table."""
        names, rows = _sheet(path)
        for name in text_columns:
            require_column(name, names, path)
        columns = []
        for place, name in enumerate(names):
            cells = [self._text(row[place]) for row in rows]
            kinds = {type(row[place]) for row, text in zip(rows, cells, strict=True) if text is not None}
            present = [None if text is None else row[place] for row, text in zip(rows, cells, strict=True)]
            if name in text_columns or not kinds or not kinds <= {int, float, bool} or kinds > {bool}:
                columns.append(pl.Series(name, cells, dtype=pl.String))
            elif kinds == {bool}:
                columns.append(pl.Series(name, present, dtype=pl.Boolean))
            else:
                numbers = pl.Series(name, present, dtype=pl.Float64)
                whole = all(value is None or (float(value).is_integer() and abs(value) < 2**53) for value in present)
                columns.append(numbers.cast(pl.Int64) if whole else numbers)
        return pl.DataFrame(columns)

    def cells(self, path: Path) -> pl.DataFrame:
        """Return every cell as text, whatever stands in the others."""
        names, rows = _sheet(path)
        return pl.DataFrame(
            {name: [self._text(row[place]) for row in rows] for place, name in enumerate(names)},
            schema=dict.fromkeys(names, pl.String),
        )

    def ids(self, path: Path, column: pl.Series, *, each: bool) -> pl.Series:
        """Return the ids without numbers of which Excel has lost digits, so that many persons would be one."""
        names, rows = _sheet(path)
        place = names.index(column.name)
        lost = pl.Series([isinstance(row[place], (int, float)) and abs(row[place]) >= _EXACT for row in rows])
        if lost.any() and not each:
            raise DataRefused(
                f"{path}: column {column.name!r} holds numbers beyond 2⁵³ as ids, of which Excel keeps 15 digits; "
                "write ids as text"
            )
        return column.set(lost, None) if len(lost) else column

    def names(self, path: Path) -> list[str]:
        """Return the names in the first row, on which no other row decides."""
        return _sheet(path)[0]

    def bytes_in_memory(self, path: Path) -> int:
        """Guess from above."""
        return _OF_A_BYTE * path.stat().st_size

    def _text(self, value: Any) -> str | None:
        """Return what a cell says; None for an empty one, and for a mark of a missing value."""
        if isinstance(value, str):
            text: str | None = value or None
        elif isinstance(value, bool):
            text = str(value).lower()
        elif isinstance(value, (int, float)):
            number = canonical_text(value)
            text = None if number is None else self.dialect.written(number)
        else:
            text = canonical_text(value)
        return None if text in self.dialect.missing else text


def is_packed(path: Path) -> bool:
    """Tell whether a file begins as those of Excel do."""
    with reading(path), path.open("rb") as file:
        return bool(file.read(2) == b"PK")


def _sheet(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Return the names and the rows of the first sheet; an empty row is none, wherever it stands.

    Privacy: how many columns there are follows from the first row, and whether another row counts from that row alone;
    what stands right of the named columns is not read. Were empty rows counted, one row at the end would bring all
    before it along. An error of Excel, and what the library would fail on, is an empty cell. No refusal quotes
    anything.
    """
    workbook_of = _calamine()
    try:
        with workbook_of(_with_cells_that_can_be_read(path)) as workbook:
            rows = workbook.get_sheet_by_index(0).to_python(skip_empty_area=False)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - a panic of the library is no Exception, and what it says may quote a cell
        if not is_packed(path):
            raise DataRefused(f"{path}: {NO_EXCEL}") from None
        raise DataRefused(f"{path}: the file is damaged, or no Excel file as its name says") from None
    if not rows:
        raise DataRefused(f"{path}: the first sheet is empty; expected a first row that names the columns, and rows")
    names = [canonical_text(cell) or "" for cell in rows[0]]
    while names and not names[-1]:
        names.pop()
    if not names or not all(isinstance(cell, str) and cell.strip() for cell in rows[0][: len(names)]):
        raise DataRefused(
            f"{path}: the first row of the first sheet does not name each column; write their names there"
        )
    if len(set(names)) < len(names):
        raise DataRefused(
            f"{path}: the first row of the first sheet has a name that occurs twice; name each column once"
        )
    cut = (row[: len(names)] for row in rows[1:])
    return names, [row for row in cut if any(cell != "" for cell in row)]


def _with_cells_that_can_be_read(path: Path) -> io.BytesIO:
    """Return the workbook without cells on which the library fails as a whole (later errors of Excel), or that are in
    no named column. What comes of a cell follows from that cell and the first row.
    """
    copied = io.BytesIO()
    with ZipFile(path) as original, ZipFile(copied, "w") as copy:
        for name in original.namelist():
            part = original.read(name)
            if b"sheetData" in part:
                part = _FAR.sub(rb"<\g<ns>c\g<attributes>\g<more>", _ERROR.sub(b"", part))
                part = _without_unnamed(part)
            copy.writestr(name, part)
    copied.seek(0)
    return copied


def _without_unnamed(sheet: bytes) -> bytes:
    """Return a sheet without the cells that stand to the right of its first row."""
    first = _ROW.search(sheet)
    named = [cell["attributes"] for cell in _ANY.finditer(first[0] if first else b"") if cell["inside"]]
    last = max((_order(match[1]) for attributes in named if (match := _COLUMN.search(attributes))), default=None)
    if last is None or all(_order(column) <= last for column in set(_COLUMN.findall(sheet))):
        return sheet

    def kept(cell: re.Match[bytes]) -> bytes:
        column = _COLUMN.search(cell["attributes"])
        return b"" if column and _order(column[1]) > last else cell[0]

    return _ANY.sub(kept, sheet)


def _order(column: bytes) -> tuple[int, bytes]:
    """Return what orders the letters of columns, from A to XFD."""
    return len(column), column


def _calamine() -> Any:
    """Return what opens a workbook, or refuse where it is not there."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise PreconditionFailed(
            "Excel files are read by python-calamine: pip install 'quorate[excel]'; or save as CSV UTF-8"
        ) from None
    return CalamineWorkbook.from_filelike
