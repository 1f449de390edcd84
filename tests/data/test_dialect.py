"""Text tables as spreadsheets write them: what is declared of a table reads it, and nothing is guessed."""

from datetime import date
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.data import PublicPool, read_cells, read_data
from quorate.data.column_kinds import GivenKinds, column_kinds
from quorate.data.dialect import DECIMALS, ENCODINGS, PLAIN, QUOTES, SEPARATORS, THOUSANDS, UTF_8, Dialect
from quorate.data.dialect_of_table import date_orders, dialect_beside, dialect_of_first_line, dialect_of_public
from quorate.data.formats import DelimitedText, delimited_text, has_named_columns
from quorate.data.stream import Workspace
from quorate.data.table_reader import TableReader
from quorate.errors import DataRefused, InvalidParameter
from quorate.run.schema import Schema

MARKS = [(decimal, mark) for decimal, mark in product(DECIMALS, ("", *THOUSANDS)) if decimal != mark]
DEFAULTS = [*((mark, '"', UTF_8) for mark in SEPARATORS), *((";", quote, "cp1252") for quote in QUOTES)]


def written(dialect, rows):
    """Rows as lines: a cell that holds a separator or a mark gets marks, as a spreadsheet does it."""
    separator, quote = dialect.separator, dialect.quote

    def cell(text):
        needed = quote and any(mark in text for mark in (separator, quote, "\r", "\n"))
        return f"{quote}{text.replace(quote, quote + quote)}{quote}" if needed else text

    return [separator.join(map(cell, row)).encode(dialect.encoding) for row in rows]


def as_read(path, dialect, lines):
    path.write_bytes(b"\r\n".join([*written(dialect, [("age", "ward", "ill")]), *lines, b""]))
    table = read_cells(path, label="ill", n_features=2, dialect=dialect)
    return [(*row, label) for row, label in zip(table.X.rows(), table.y, strict=True)]


def no_line_changes_another(path, separator, quote, encoding):
    dialect = Dialect(separator=separator, quote=quote, encoding=encoding)
    other = next(mark for mark in (",", ";") if mark != separator)
    rows = [("39", "north", "no"), ("40", f"no{other} {quote}south{quote}", "yes"), ("41", "", "no")]
    if quote:
        rows.append(("42", f"east{separator} west", "yes"))
    lines = written(dialect, rows)
    without = as_read(path, dialect, lines)
    assert without == [(age, ward or None, ill) for age, ward, ill in rows]
    mark, end = quote.encode(), separator.encode()
    for odd in (
        b"50" + end + mark + b"west" + end + b"yes",
        mark + b"50" + mark + b"0" + end + b"west" + end + b"yes",
        mark or b"'",
        b"50",
        end * 9,
        b"50" + end + bytes(range(128, 256)) + b"\0" + end + b"perhaps",
        b"50" + end + b"w\xc3" + end + b"perhaps",
        b"\xef\xbb\xbf",
    ):
        for place in range(len(lines) + 1):
            found = as_read(path, dialect, [*lines[:place], odd, *lines[place:]])
            assert found[:place] + found[place + 1 :] == without, (odd, place)
            assert found[place][-1] in (None, "yes" if not quote else None, "perhaps"), (odd, place)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("separator", "quote", "encoding"), DEFAULTS)
def test_no_line_changes_another_in_any_dialect(tmp_path, separator, quote, encoding):
    no_line_changes_another(tmp_path / "rows.csv", separator, quote, encoding)


@pytest.mark.heavy
def test_no_byte_changes_another_line_in_any_encoding(tmp_path):
    for encoding in ENCODINGS:
        dialect = Dialect(separator="|", encoding=encoding)
        lines = written(dialect, [("39", "north", "no"), ("41", "", "no")])
        without = as_read(tmp_path / "rows.csv", dialect, lines)
        odd = b"50|" + bytes(byte for byte in range(256) if byte not in b'\n|"') + b"|perhaps"
        found = as_read(tmp_path / "rows.csv", dialect, [lines[0], odd, lines[1]])
        assert [found[0], found[2]] == without, encoding
        assert found[1][-1] == "perhaps"


@pytest.mark.heavy
@pytest.mark.heavy_cases(3)  # every encoding by itself is above
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_line_changes_another_whatever_is_declared_together(tmp_path, encoding):
    for separator, quote in product(SEPARATORS, QUOTES):
        no_line_changes_another(tmp_path / "rows.csv", separator, quote, encoding)


HOSTILE = st.text(st.sampled_from("a 5;,|\t\"'\r\n"), max_size=12)


@given(
    cell=HOSTILE,
    note=HOSTILE,
    place=st.integers(0, 3),
    at_once=st.sampled_from([1, 7, 1 << 20]),
    marks=st.sampled_from([*product(('"', "'"), SEPARATORS)]),
)
def test_no_cell_changes_another_row_where_line_breaks_are_declared(
    tmp_path_factory, cell, note, place, at_once, marks
):
    path = tmp_path_factory.getbasetemp() / "noted.csv"
    rows = [("39", "north\n(old)", "no"), ("40", 'a "b"\r\n\n;', "yes"), ("41", "\n", "no")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited_text, "AT_ONCE", at_once)
        dialect = Dialect(quote=marks[0], separator=marks[1], line_breaks=True)
        found = as_read(path, dialect, written(dialect, [*rows[:place], (cell, note, "yes"), *rows[place:]]))
    assert found[:place] + found[place + 1 :] == rows
    assert found[place] == (cell or None, note or None, "yes")


def test_a_cell_that_is_too_long_leaves_out_its_own_row_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("quorate.data.dialect.LONGEST", 40)
    dialect = Dialect(separator=";", line_breaks=True)
    rows = [(str(age), 'a "b"\n\n;', "no") for age in range(20)]
    for at_once in (16, 64, 1 << 20):
        monkeypatch.setattr(delimited_text, "AT_ONCE", at_once)
        for place in (0, 3, 20):
            long = ("7", "50;west;yes\n" * 9, "yes")
            lines = written(dialect, [*rows[:place], long, *rows[place:]])
            assert as_read(tmp_path / "rows.csv", dialect, lines) == rows


@pytest.mark.heavy
@pytest.mark.parametrize("odd", ['x;5" tube;no', 'x;"5 tube;no', 'x;tube";no', '"x', '"'])
def test_a_mark_that_stands_alone_takes_in_no_other_row(tmp_path, monkeypatch, odd):
    dialect = Dialect(separator=";", line_breaks=True)
    rows = [(str(age), "north\n(old)" if age % 3 else "south", "no") for age in range(30)]
    for at_once in (16, 1 << 20):
        monkeypatch.setattr(delimited_text, "AT_ONCE", at_once)
        for place in (0, 4, 20):
            lines = [written(dialect, [row])[0] for row in rows]
            lines = [*lines[:place], odd.encode(), *lines[place:20], odd.encode(), *lines[20:]]
            found = as_read(tmp_path / "rows.csv", dialect, lines)
            assert [row for row in found if row[0] is not None and row[0] != "x"] == rows


def test_the_cells_of_a_text_are_read_some_lines_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited_text, "AT_ONCE", 100)
    path = tmp_path / "rows.csv"
    path.write_text("age,ward\n" + "39,north\n" * 90, encoding="utf-8")
    parts = list(delimited_text.DelimitedText().cell_parts(path, ["ward"]))
    assert len(parts) > 5
    assert sum(part.height for part in parts) == 90


def test_that_test_catches_a_reader_of_whole_files(tmp_path, monkeypatch):
    def whole(self, rows, names, path, **how):
        text = "\n".join([";".join(names), *rows])
        return pl.read_csv(text.encode(), separator=";", infer_schema=False, truncate_ragged_lines=True)

    monkeypatch.setattr(delimited_text.DelimitedText, "_cells", whole)
    with pytest.raises((AssertionError, pl.exceptions.PolarsError)):
        no_line_changes_another(tmp_path / "rows.csv", ";", '"', "cp1252")


def test_no_encoding_has_a_character_of_two_bytes():
    for encoding in ENCODINGS:
        for byte in range(256 if encoding != UTF_8 else 128):
            text = bytes([byte]).decode(encoding, "replace")
            assert len(text) == 1
            assert byte > 127 or text == chr(byte)
    with pytest.raises(InvalidParameter, match="encoding must be one of"):
        Dialect(encoding="utf-16")


@given(number=st.integers(-(10**9), 10**9), digits=st.integers(0, 4), marks=st.sampled_from(MARKS))
def test_a_number_is_read_as_it_is_written(number, digits, marks):
    dialect = Dialect(decimal=marks[0], thousands=marks[1])
    plain = f"{number / 10**digits:,.{digits}f}".replace(",", "\0").replace(".", marks[0]).replace("\0", marks[1])
    assert dialect.number(plain) == float(f"{number / 10**digits:.{digits}f}")
    in_table = delimited_text.typed(pl.DataFrame({"a": [plain, "7"]}), dialect, {})["a"]
    assert in_table.dtype.is_numeric()
    assert in_table.to_list()[0] == dialect.number(plain)


@pytest.mark.parametrize("text", ["1.5", "1.23,4", "12.3456", "1..234", "0x1", "1_2", "", "k.A.", "\u0661"])
def test_what_is_written_in_another_way_is_no_number(text):
    assert np.isnan(Dialect(decimal=",", thousands=".").number(text))
    assert delimited_text.typed(pl.DataFrame({"a": [text]}), Dialect(decimal=",", thousands="."), {})["a"][0] == text


@given(day=st.dates(date(1000, 1, 1)), order=st.permutations(["dd", "mm", "yyyy"]), mark=st.sampled_from("./-"))
def test_a_date_is_read_in_the_order_that_is_declared(day, order, mark):
    dialect = Dialect(date_format=mark.join(order))
    parts = {"dd": f"{day.day}", "mm": f"{day.month:02}", "yyyy": f"{day.year:04}"}
    expected = (day - date(1970, 1, 1)).days
    assert dialect.date(mark.join(parts[part] for part in order)) == expected
    assert dialect.date(day.isoformat()) == expected or mark == "-"
    assert dialect.date(f"{mark.join(parts[part] for part in order)} 12:00") == expected + 0.5


def test_what_is_no_date_in_that_order_is_none():
    dialect = Dialect(date_format="dd.mm.yyyy")
    for text in ("31.02.2023", "04.23.2023", "1.2.23", "23/08/2023", "23.08.2023 soon", "soon"):
        assert np.isnan(dialect.date(text)), text
    assert np.isnan(PLAIN.date("23.08.2023"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"separator": ":"}, "separator must be one of"),
        ({"quote": "`"}, "quote must be"),
        ({"decimal": ";"}, "decimal must be"),
        ({"decimal": ",", "thousands": ","}, "one mark has one meaning"),
        ({"thousands": "."}, "one mark has one meaning"),
        ({"date_format": "dd.mm.yy"}, "does not tell the century"),
        ({"date_format": "dd.dd.yyyy"}, "date_format must be"),
        ({"missing": ("",)}, "missing must list"),
        ({"encoding": "klingon"}, "encoding must be one of"),
        ({"quote": "", "line_breaks": True}, "line_breaks = true needs a quotation mark, and quote is empty"),
    ],
)
def test_what_cannot_be_declared_is_one_line(wrong, words):
    with pytest.raises(InvalidParameter, match=words):
        Dialect(**wrong)


GERMAN = Dialect(
    separator=";", encoding="cp1252", decimal=",", thousands=".", date_format="dd.mm.yyyy", missing=("k.A.",)
)
ROWS = [
    ("17", "P1", "23.08.2023", "38,8", "5.386", "Gynäkologie", "ja"),
    ("80", "P1", "01.09.2023", "k.A.", "953", "Innere; Station 2", "nein"),
    ("33", "P2", "02.09.2023", "36,6", "", "Innere", "nein"),
]
NAMES = ("Alter", "Patient", "Aufnahme", "Temperatur", "Leukozyten", "Station", "Sepsis")


def german(path, rows=ROWS):
    path.write_bytes(b"\r\n".join([*written(GERMAN, [NAMES, *rows]), b""]))
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.txt", "t.tsv"])
def test_a_german_export_is_read_by_every_door(tmp_path, name):
    path = german(tmp_path / name)
    table = read_data(path, label="Sepsis", unit="Patient", dialect=GERMAN)
    assert table.X.rows() == [
        (17, "23.08.2023", 38.8, 5386, "Gynäkologie"),
        (80, "01.09.2023", None, 953, "Innere; Station 2"),
        (33, "02.09.2023", 36.6, None, "Innere"),
    ]
    kinds = column_kinds(table.X, GivenKinds(dialect=GERMAN))
    assert kinds.kinds["Aufnahme"] == "date"
    assert kinds(table.X)["Aufnahme"].to_list() == [19592.0, 19601.0, 19602.0]
    reader = TableReader.of(table.X, kinds, left_out=("Patient", "Sepsis"))
    raw = pl.DataFrame(dict(zip(NAMES, zip(*ROWS, strict=True), strict=True))).with_columns(
        pl.col("Leukozyten").replace("", None)
    )
    assert repr(reader(raw).rows()) == repr(kinds(table.X).fill_null(np.nan).rows())
    schema = Schema.of(table.X, given=GivenKinds(dialect=GERMAN))
    cells = read_cells(path, label="Sepsis", unit="Patient", n_features=5, dialect=GERMAN)
    parsed, usable = schema.parsed(cells.X)
    assert usable.all()
    assert repr(schema.kinds(parsed).rows()) == repr(kinds(table.X).fill_null(np.nan).rows())


@pytest.mark.parametrize(
    ("place", "cell"),
    [(2, "31.02.2023"), (2, "2/9/2023"), (3, "38.8"), (4, "53.86"), (0, "alt"), (5, "Gyn\x81kologie")],
)
def test_a_private_cell_that_does_not_parse_is_unusable_and_changes_no_other(tmp_path, place, cell):
    pool = read_data(german(tmp_path / "public.csv"), drop=["Sepsis", "Patient"], dialect=GERMAN).X
    schema = Schema.of(pool, given=GivenKinds(dialect=GERMAN))
    path = german(tmp_path / "t.csv")
    without, _ = schema.parsed(read_cells(path, label="Sepsis", unit="Patient", n_features=5, dialect=GERMAN).X)
    lines = path.read_bytes().split(b"\r\n")
    odd = list(ROWS[1])
    odd[place] = cell
    text = ";".join(f'"{part}"' for part in odd).encode("latin-1")
    path.write_bytes(b"\r\n".join([*lines[:2], text, *lines[3:]]))
    cells = read_cells(path, label="Sepsis", unit="Patient", n_features=5, dialect=GERMAN)
    found, usable = schema.parsed(cells.X)
    assert usable.tolist() == [True, False, True]
    assert [repr(found.rows()[at]) for at in (0, 2)] == [repr(without.rows()[at]) for at in (0, 2)]


def test_a_private_byte_that_is_none_of_the_encoding_refuses_a_table_read_as_a_whole(tmp_path):
    path = german(tmp_path / "t.csv")
    path.write_bytes(path.read_bytes().replace(b"Innere;", b"Innere\x81;"))
    for memory in (None, 0):
        with pytest.raises(DataRefused, match=r"not cp1252 text, as \[data\] encoding says") as refusal:
            read_data(path, label="Sepsis", dialect=GERMAN, memory=memory, workspace=Workspace(lambda: tmp_path))
        assert "Innere" not in str(refusal.value)
        assert refusal.value.__cause__ is None


def test_a_file_that_begins_with_a_utf_8_mark_is_utf_8_whatever_is_declared(tmp_path):
    path = german(tmp_path / "t.csv")
    expected = read_data(path, dialect=GERMAN).X.rows()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().decode("cp1252").encode())
    assert read_data(path, dialect=GERMAN).X.rows() == expected
    streamed = read_data(path, dialect=GERMAN, memory=0, workspace=Workspace(lambda: tmp_path)).X
    assert streamed.collect().rows() == expected
    cells = read_cells(path, label="Sepsis", n_features=6, dialect=GERMAN)
    assert cells.X["Station"].to_list() == ["Gynäkologie", "Innere; Station 2", "Innere"]


@pytest.mark.parametrize("dialect", [GERMAN, Dialect(separator="|", quote="'", missing=("9",))])
def test_a_table_read_in_parts_is_the_table_read_at_once(tmp_path, dialect, monkeypatch):
    rng, path = np.random.default_rng(3), tmp_path / "t.csv"
    decimal, held = dialect.decimal or ".", f"a\n{dialect.quote}{dialect.separator}b"
    rows = [
        (str(number), f"{number}{decimal}5", f"1{dialect.thousands}234", held, word)
        for number, word in zip(rng.integers(0, 99, 60), rng.choice(["9", "true", ""], 60), strict=True)
    ]
    rows[50] = (f"7{decimal}5", *rows[50][1:])
    path.write_bytes(b"\n".join([*written(dialect, [tuple("abcde"), *rows]), b""]))
    whole = read_data(path, text=["c"], dialect=dialect).X
    monkeypatch.setattr(delimited_text, "AT_ONCE", 90)
    streamed = read_data(path, text=["c"], dialect=dialect, memory=0, workspace=Workspace(lambda: tmp_path)).X
    assert type(streamed).__name__ == "StreamedFrame"
    assert streamed.collect().equals(whole)
    assert whole["a"].dtype == pl.Float64
    assert whole["c"].dtype == pl.String


def test_a_txt_file_is_a_table_where_a_separator_is_declared_and_there_alone(tmp_path):
    assert has_named_columns("rows.txt", Dialect(separator="\t"))
    assert not has_named_columns("rows.txt", Dialect(decimal=","))
    (tmp_path / "rows.txt").write_text("a\tb\n1\t2\n")
    with pytest.raises(DataRefused, match="separator ="):
        read_data(tmp_path / "rows.txt")


def test_kinds_say_how_cells_are_written_in_the_pool_of_a_folder():
    rows = pl.DataFrame({"seen": ["03.04.2023"] * 30, "ward": ["north", "south"] * 15})
    pool = PublicPool.described(rows, GivenKinds(dates=("seen",), dialect=Dialect(date_format="dd.mm.yyyy")))
    assert (
        column_kinds(pool.rows(), pool.given)(rows)["seen"].to_list()[0] == (date(2023, 4, 3) - date(1970, 1, 1)).days
    )
    with pytest.raises(InvalidParameter, match="say how it is written by date_format"):
        PublicPool.described(rows, GivenKinds(dates=("seen",)))


def shown(path, content, encoding="utf-8"):
    path.write_bytes(content.encode(encoding))
    return dialect_of_public(path).dialect


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.csv", "a,b\n1,2.5\n", PLAIN),
        ("t.csv", "\ufeffa;b\r\n1;2\r\n", Dialect(separator=";")),
        ("t.csv", "Größe, cm;Gewicht, kg\n170,5;70\n", Dialect(separator=";", decimal=",")),
        ("t.csv", 'a,b\n"x;y;z;w",1\n', PLAIN),
        ("t.tsv", "a\tb\n1\t2\n", PLAIN),
        ("t.txt", "a\tb\n1\t2\n", Dialect(separator="\t")),
        ("t.txt", "1 1:0.5\t2:1\n", PLAIN),
        ("t.csv", "'a','b'\n'x,y','1'\n", Dialect(quote="'")),
        ("t.csv", 'a;b\n"1.234,5";1\n', Dialect(separator=";", decimal=",", thousands=".")),
        ("t.csv", 'a,b\n"1,234.5",1\n', Dialect(thousands=",")),
        ("t.csv", "a;b\n1,5;5.386\n", Dialect(separator=";", decimal=",", thousands=".")),
        ("t.csv", "a;b\n1,5;2.5\n", Dialect(separator=";")),  # two decimal marks: each column shows its own
        ("t.csv", "a;b\n1,234;1\n", Dialect(separator=";")),  # thousands, or decimals
        ("t.csv", "a\n23.08.2023\n01.02.2023\n", Dialect(date_format="dd.mm.yyyy")),
        ("t.csv", "a\n08/23/2023\n", Dialect(date_format="mm/dd/yyyy")),
        ("t.csv", "a\n01.02.2023\n12.12.2023\n", PLAIN),  # nothing shows which is the day
        ("t.csv", "a\n23.13.2023\n", PLAIN),
        ("t.csv", "a,b\n23.08.2023,08.23.2023\n", PLAIN),
        ("t.svm", "1 1:0.5", PLAIN),
        (
            "t.csv",
            "a;b\n<0,6;\nk.A.;\n" + "".join(f"{i},5;1\n" for i in range(20)),
            Dialect(separator=";", decimal=","),
        ),
        (
            "t.csv",
            "a;b\n<0,6;\n" + "".join(f"1.{100 + i},5;1\n" for i in range(10)),
            Dialect(separator=";", decimal=",", thousands="."),
        ),
        ("t.csv", "a;b\nP,6;1\n1,5;1\n2,5;1\n", Dialect(separator=";")),  # too few of them are numbers
        ("t.csv", "a\nk.A.\n" + "".join(f"{12 + i}.08.2023\n" for i in range(10)), Dialect(date_format="dd.mm.yyyy")),
    ],
)
def test_a_public_table_shows_how_it_is_written(tmp_path, name, content, expected):
    assert shown(tmp_path / name, content) == expected


def test_what_is_not_utf_8_is_said_with_a_word_to_compare(tmp_path):
    path = tmp_path / "t.csv"
    assert shown(path, "ward;n\nGynäkologie;1\n", "cp1252") == Dialect(separator=";", encoding="cp1252")
    [said] = dialect_of_public(path).said
    assert "Gynäkologie" in said
    assert "Correct it if that is wrong" in said
    path.write_bytes(b"ward\nGyn\x81\xff\n")
    with pytest.raises(DataRefused, match="neither UTF-8 text nor cp1252"):
        dialect_of_public(path)
    path.write_bytes("ward\nx\n".encode("utf-16"))
    with pytest.raises(DataRefused, match="UTF-16 text"):
        dialect_of_public(path)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("cell", ["b", "Müller", "y"])
def test_rows_that_stand_in_the_first_line_are_refused_alike_and_never_quoted(tmp_path, encoding, cell):
    """Lines that end with a carriage return alone are one line: whatever a private cell holds, that is said of them."""
    path, reader = tmp_path / "t.csv", DelimitedText(Dialect(encoding=encoding))
    path.write_bytes(f"name,y\r{cell},no\rb,c\r".encode())
    for read in (reader.names, reader.frame, reader.cells):
        with pytest.raises(DataRefused, match=r"^\S*t\.csv: its lines end with a carriage return alone") as refused:
            read(path)
        assert "Müller" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp1250"])
def test_a_first_line_that_is_utf_8_is_no_text_of_a_code_page(tmp_path, encoding):
    """Its names were read as other ones, which no setting has; a line that is ASCII, or of the code page, is read."""
    path, reader = tmp_path / "t.csv", DelimitedText(Dialect(encoding=encoding))
    path.write_text("Größe,x\n1,2\n", encoding="utf-8")
    for read in (reader.names, reader.frame, reader.cells):
        with pytest.raises(
            DataRefused, match=r"its first line is UTF-8 text, and \[data\] encoding says .*; leave encoding out"
        ):
            read(path)
    path.write_text("Größe,x\n1,2\n", encoding=encoding)
    assert reader.names(path) == ["Größe", "x"]
    path.write_text("x\nKöln\n", encoding="utf-8")
    assert reader.names(path) == ["x"]
    path.write_text("x\n1\n", encoding="utf-16")
    with pytest.raises(
        DataRefused, match=r"UTF-16 text, not .*; save as CSV UTF-8 .*, and leave out \[data\] encoding"
    ):
        reader.names(path)


def test_dates_that_show_no_order_are_not_guessed(tmp_path):
    path = tmp_path / "t.csv"
    assert shown(path, "seen\n03.04.2023\n") == PLAIN
    assert date_orders(["03.04.2023"]) == ("dd.mm.yyyy", "mm.dd.yyyy")
    assert date_orders(["23.04.2023", "2023-04-23", "2023-04-24"]) == ("dd.mm.yyyy",)  # Excel: some texts, some dates
    assert date_orders(["23.04.2023", "2023-04-23", "soon"]) == ()
    assert shown(path, "seen,left\n03.04.2023,23.04.2023\n") == Dialect(date_format="dd.mm.yyyy")
    assert len(dialect_of_public(path).said) == 1


def test_texts_of_a_table_with_types_show_how_they_are_written(tmp_path):
    cells = {"seen": ["23.08.2023", "1.2.2023"], "crp": ["1,5", "2,5"], "n": [1.5, 2.5]}
    pl.DataFrame(cells).write_parquet(tmp_path / "public.parquet")
    (tmp_path / "private.csv").write_bytes(b"seen;crp;n\n\xff")
    shown_ = dialect_beside(tmp_path / "private.csv", tmp_path / "public.parquet").dialect
    assert shown_ == Dialect(separator=";", decimal=",", date_format="dd.mm.yyyy")


def test_the_first_line_of_a_private_table_shows_the_separator_and_nothing_else(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a;b;c\n1,5;\xff;23.08.2023\n")
    assert dialect_of_first_line(path) == Dialect(separator=";")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Größe".encode("cp1252"), "cp1252"),
        ("Größe".encode(), UTF_8),
        (b"\xef\xbb\xbfsize", UTF_8),
        (b"size", UTF_8),
        ("für".encode("cp850"), UTF_8),  # no text of cp1252: it is refused where the names are read
    ],
)
def test_names_of_other_letters_show_the_encoding_of_a_table_and_it_is_said(tmp_path, line, shown):
    (tmp_path / "t.csv").write_bytes(line + b";b\n\xff;1\n")
    found = dialect_beside(tmp_path / "t.csv", None)
    assert found.dialect == Dialect(separator=";", encoding=shown)
    assert len(found.said) == (shown != UTF_8)


@pytest.mark.parametrize("line", ["size;age", "size, in cm, of all;age", "size,age", "size"])
def test_a_known_separator_and_encoding_stay_whatever_the_first_line_has(tmp_path, line):
    (tmp_path / "t.csv").write_bytes(f"{line}, für\n1;2\n".encode("cp1252"))
    for known in (Dialect(separator=";"), Dialect(separator=";", encoding="cp1250", decimal=",")):
        assert dialect_of_first_line(tmp_path / "t.csv", known) == known
