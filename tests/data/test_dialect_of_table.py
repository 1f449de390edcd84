"""What a public table shows of how it is written, and what it does not show."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from quorate.data.dialect import PLAIN, Dialect
from quorate.data.dialect_of_table import date_orders, dialect_beside, dialect_of_first_line, dialect_of_public
from quorate.errors import DataRefused


def shown(path: Path, content: str, encoding: str = "utf-8") -> Dialect:
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
def test_a_public_table_shows_how_it_is_written(tmp_path: Path, name: str, content: str, expected: Dialect) -> None:
    assert shown(tmp_path / name, content) == expected


def test_what_is_not_utf_8_is_said_with_a_word_to_compare(tmp_path: Path) -> None:
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


def test_dates_that_show_no_order_are_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    assert shown(path, "seen\n03.04.2023\n") == PLAIN
    assert date_orders(["03.04.2023"]) == ("dd.mm.yyyy", "mm.dd.yyyy")
    assert date_orders(["23.04.2023", "2023-04-23", "2023-04-24"]) == ("dd.mm.yyyy",)  # Excel: some texts, some dates
    assert date_orders(["23.04.2023", "2023-04-23", "soon"]) == ()
    assert shown(path, "seen,left\n03.04.2023,23.04.2023\n") == Dialect(date_format="dd.mm.yyyy")
    assert len(dialect_of_public(path).said) == 1


def test_texts_of_a_table_with_types_show_how_they_are_written(tmp_path: Path) -> None:
    cells = {"seen": ["23.08.2023", "1.2.2023"], "crp": ["1,5", "2,5"], "n": [1.5, 2.5]}
    pl.DataFrame(cells).write_parquet(tmp_path / "public.parquet")
    (tmp_path / "private.csv").write_bytes(b"seen;crp;n\n\xff")
    shown_ = dialect_beside(tmp_path / "private.csv", tmp_path / "public.parquet").dialect
    assert shown_ == Dialect(separator=";", decimal=",", date_format="dd.mm.yyyy")


def test_the_first_line_of_a_private_table_shows_the_separator_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a;b;c\n1,5;\xff;23.08.2023\n")
    assert dialect_of_first_line(path) == Dialect(separator=";")
