"""Excel files: each cell is of the type that its own cell in the file has, and no private one changes another."""

import datetime as dt
import sys
from xml.sax.saxutils import escape
from zipfile import ZipFile

import polars as pl
import pytest

from quorate.data import column_names, read_cells, read_data
from quorate.data.column_kinds import GivenKinds, column_kinds
from quorate.data.dialect import Dialect
from quorate.data.formats.spreadsheet import _with_cells_that_can_be_read
from quorate.errors import DataRefused, PreconditionFailed
from quorate.run.schema import Schema

pytest.importorskip("python_calamine")

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = 'xmlns="http://schemas.openxmlformats.org/package/2006/'
PARTS = {
    "[Content_Types].xml": f'<Types {PACKAGE}content-types"><Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>',
    "_rels/.rels": f'<Relationships {PACKAGE}relationships"><Relationship Id="r1" Type="{OFFICE}/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets>'
    "</workbook>",
    "xl/_rels/workbook.xml.rels": f'<Relationships {PACKAGE}relationships">'
    f'<Relationship Id="r1" Type="{OFFICE}/worksheet" Target="sheet.xml"/>'
    f'<Relationship Id="r2" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
    "xl/styles.xml": f'<styleSheet {MAIN}><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="46"/></cellXfs></styleSheet>',
}


class Raw(str):
    """What stands inside a cell of a workbook, and before it the attributes of that cell."""


def excel(path, rows):
    """Write a workbook of one sheet: numbers, truth values, days and texts; None is no cell."""

    def cell(value, at):
        if value is None:
            return ""
        if isinstance(value, Raw):
            attributes, _, inside = value.partition(">")
            return f'<c r="{at}" {attributes}>{inside}</c>' if inside else f'<c r="{at}" {attributes}/>'
        if isinstance(value, bool):
            return f'<c r="{at}" t="b"><v>{int(value)}</v></c>'
        if isinstance(value, dt.date):
            return f'<c r="{at}" s="1"><v>{(value - dt.date(1899, 12, 30)).days}</v></c>'
        if isinstance(value, str):
            return f'<c r="{at}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
        return f'<c r="{at}"><v>{value!r}</v></c>'

    lines = "".join(
        f'<row r="{at}">{"".join(cell(value, f"{chr(65 + place)}{at}") for place, value in enumerate(row))}</row>'
        for at, row in enumerate(rows, start=1)
    )
    with ZipFile(path, "w") as archive:
        for name, text in PARTS.items():
            archive.writestr(name, text)
        archive.writestr("xl/sheet.xml", f"<worksheet {MAIN}><sheetData>{lines}</sheetData></worksheet>")
    return path


NAMES = ("age", "temperature", "seen", "zip", "smokes", "ill")
ROWS = [
    (39, 38.8, dt.date(2023, 8, 23), "09001", True, "no"),
    (50, None, dt.date(2023, 9, 1), "10002", False, "yes"),
    (17, 36.6, None, "09001", None, "no"),
]


def test_each_cell_has_its_own_type(tmp_path):
    path = excel(tmp_path / "t.xlsx", [NAMES, *ROWS, (None, None)])
    assert column_names(path) == list(NAMES)
    table = read_data(path, label="ill")
    assert table.X.schema == {
        "age": pl.Int64, "temperature": pl.Float64, "seen": pl.String, "zip": pl.String, "smokes": pl.Boolean,
    }  # fmt: skip
    assert table.X.rows() == [
        (39, 38.8, "2023-08-23", "09001", True),
        (50, None, "2023-09-01", "10002", False),
        (17, 36.6, None, "09001", None),
    ]
    assert column_kinds(table.X).kinds["seen"] == "date"
    cells = read_cells(path, label="ill", n_features=5)
    assert cells.X.rows()[0] == ("39", "38.8", "2023-08-23", "09001", "true")
    _, usable = Schema.of(table.X).parsed(cells.X)
    assert usable.all()


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("odd", [(None,) * 6, ("old", "warm", "soon", 9001, 3, 7), (1e300, True, 5, None, "x", "")])
@pytest.mark.parametrize("place", range(4))
def test_no_row_changes_how_another_is_read(tmp_path, odd, place):
    pool = read_data(excel(tmp_path / "public.xlsx", [NAMES, *ROWS]), drop=["ill"]).X
    schema = Schema.of(pool)

    def parsed(rows):
        cells = read_cells(excel(tmp_path / "t.xlsx", [NAMES, *rows]), label="ill", n_features=5)
        read, usable = schema.parsed(cells.X)
        return [repr((row, fits)) for row, fits in zip(read.rows(), usable, strict=True)]

    without, found = parsed(ROWS), parsed([*ROWS[:place], odd, *ROWS[place:]])
    is_empty = set(odd) == {None}
    assert (found if is_empty else found[:place] + found[place + 1 :]) == without


def test_a_row_far_below_brings_no_empty_rows_along(tmp_path):
    """Without ids each row counts as a person, and an empty one as somebody whose every value is missing."""

    def cells(rows):
        return read_cells(excel(tmp_path / "t.xlsx", [NAMES, *rows]), label="ill", n_features=5).X.rows()

    empty = [(None,) * 6] * 50
    assert cells([ROWS[0], *empty, ROWS[1]]) == cells([ROWS[0], ROWS[1]])
    assert cells([*empty, ROWS[0], *empty]) == cells([ROWS[0]])
    assert cells([ROWS[0], *[(None,) * 7 + ("seen by Ann",)] * 9]) == cells([ROWS[0]])
    assert len(read_data(excel(tmp_path / "p.xlsx", [NAMES, ROWS[0], *empty, ROWS[1]]), label="ill").y) == 2


def test_a_cell_beside_the_named_columns_is_not_read(tmp_path):
    path = excel(tmp_path / "t.xlsx", [NAMES, ROWS[0], (*ROWS[1], None, "called twice"), ROWS[2]])
    plain = excel(tmp_path / "plain.xlsx", [(*NAMES, None), *ROWS])
    assert column_names(path) == column_names(plain) == list(NAMES)
    assert read_data(path, label="ill").X.equals(read_data(plain, label="ill").X)
    assert read_cells(path, label="ill", n_features=5).X.equals(read_cells(plain, label="ill", n_features=5).X)


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        ('t="e"><v>#N/A</v>', None),
        ('t="e"><v>#SPILL!</v>', None),
        ("s='1' t='e'><f>A1#</f><v>#CALC!</v>", None),
        ('t="e">', None),
        ('s="1"><v>-1e300</v>', str(int(-1e300))),
        ('s="2"><v>1E+300</v>', str(int(1e300))),
        ('s="1"><f>A1</f><v>-108000000000</v>', "-108000000000"),
    ],
)
def test_a_cell_that_the_library_fails_on_refuses_no_table(tmp_path, inside, says):
    """Errors of newer Excels and days before time began; what one private cell holds decides on that cell alone."""
    rows = [(Raw(inside), *ROWS[0][1:]), *ROWS[1:]]
    cells = read_cells(excel(tmp_path / "t.xlsx", [NAMES, *rows]), label="ill", n_features=5)
    others = read_cells(excel(tmp_path / "o.xlsx", [NAMES, (None, *ROWS[0][1:]), *ROWS[1:]]), label="ill", n_features=5)
    assert cells.X["age"].to_list() == [says, "50", "17"]
    assert cells.X.drop("age").equals(others.X.drop("age"))


@pytest.mark.parametrize("memory", [None, 0])
def test_ids_of_which_excel_lost_digits_make_no_two_persons_one(tmp_path, memory):
    rows = [("age", "id", "ill"), (39, 2**60, "no"), (40, 2**60 + 1, "yes"), (17, "P3", "no")]
    path = excel(tmp_path / "t.xlsx", [*rows, (18, 4, "no"), (19, str(2**60), "no")])
    table = read_cells(path, label="ill", unit="id", n_features=1, memory=memory)
    ids = table.unit if memory is None else table.unit.to_list()
    assert ids == [None, None, "P3", "4", str(2**60)]
    with pytest.raises(DataRefused, match=r"column 'id' holds numbers beyond 2⁵³ .* write ids as text"):
        read_data(path, label="ill", unit="id")
    whole = excel(tmp_path / "w.xlsx", [*rows[:1], (39, 2**53 - 1, "no")])
    assert read_data(whole, label="ill", unit="id").unit == [str(2**53 - 1)]


def test_a_cell_in_the_last_column_of_all_takes_no_memory(tmp_path):
    path = excel(tmp_path / "t.xlsx", [NAMES, *ROWS])
    whole = read_cells(path, label="ill", n_features=5).X
    with ZipFile(path) as archive:
        sheet = archive.read("xl/sheet.xml")
    sheet = sheet.replace(b"</row></sheetData>", b'<c r="XFD4"><v>1</v></c></row></sheetData>')
    with ZipFile(path, "w") as archive:
        for name, text in PARTS.items():
            archive.writestr(name, text)
        archive.writestr("xl/sheet.xml", sheet)
    assert b"XFD4" in sheet
    assert b"XFD" not in ZipFile(_with_cells_that_can_be_read(path)).read("xl/sheet.xml")
    assert read_cells(path, label="ill", n_features=5).X.equals(whole)


def test_numbers_and_texts_are_one_in_the_dialect_of_the_run(tmp_path):
    dialect = Dialect(decimal=",", thousands=".", date_format="dd.mm.yyyy", missing=("k.A.", "-999"))
    rows = [("dose", "day", "n"), (1.5, "23.08.2023", -999), ("2.000,5", "01.09.2023", 7), ("k.A.", None, 8)]
    path = excel(tmp_path / "t.xlsx", rows)
    table = read_data(path, dialect=dialect).X
    assert table["n"].to_list() == [None, 7, 8]
    kinds = column_kinds(table, GivenKinds(dialect=dialect))
    assert kinds.kinds == {"dose": "number", "day": "date", "n": "number"}
    assert kinds(table)["dose"].to_list()[:2] == [1.5, 2000.5]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "the first sheet is empty"),
        ([("a", "a"), (1, 2)], "a name that occurs twice"),
        ([(None, "a"), (1, 2)], "does not name each column"),
        ([(), (1, 2)], "does not name each column"),
        ([(7, 8), (1, 2)], "does not name each column"),
    ],
)
def test_a_sheet_without_names_is_one_line_that_quotes_nothing(tmp_path, rows, words):
    with pytest.raises(DataRefused, match=words) as refusal:
        read_data(excel(tmp_path / "t.xlsx", rows))
    assert "7" not in str(refusal.value).replace(str(tmp_path), "")


def test_what_is_no_workbook_and_a_library_that_is_not_there_are_one_line(tmp_path, monkeypatch):
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"PK\x03\x04 patient Ann Miller")
    with pytest.raises(DataRefused, match="the file is damaged, or no Excel file") as refusal:
        read_data(path)
    assert "Ann" not in str(refusal.value)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(PreconditionFailed, match=r"pip install 'quorate\[excel\]'"):
        read_data(path)
