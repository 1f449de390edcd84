"""``quorate predict``: what the published model says of a table is the same however the table lies and is cut."""

import polars as pl
import pytest
from tests.folder.conftest import visits

import quorate
from quorate.data.dialect import Dialect
from quorate.errors import DataRefused
from quorate.estimators import predicted_table
from quorate.folder.settings import settings_of

N = 60
ROWS = visits(N, seed=9)[0].with_row_index("id")


@pytest.fixture(scope="module")
def run(finished_runs):
    return finished_runs()


def parts_of(folder):
    """Write the table as a folder of files, one of them without rows."""
    folder.mkdir()
    for number, (first, n) in enumerate(((0, 25), (25, 0), (25, N - 25))):
        ROWS.slice(first, n).write_parquet(folder / f"{number}.parquet")
    return folder


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("end", ["parquet", "csv"])
def test_a_table_of_any_form_is_predicted_as_it_is_in_memory(end, run, cli, tmp_path, monkeypatch):
    monkeypatch.setattr(predicted_table, "AT_ONCE", 7)
    loaded = quorate.load(run)
    rows = ROWS.drop("id")
    expected = pl.DataFrame({"id": ROWS["id"], "label": loaded.predict(rows)}).with_columns(
        pl.Series(f"probability_{name}", loaded.predict_proba(rows)[:, place])
        for place, name in enumerate(loaded.classes_.tolist())
    )
    ROWS.write_parquet(tmp_path / "rows.parquet")
    ROWS.write_csv(tmp_path / "rows.csv")
    parts_of(tmp_path / "parts")
    for table in ("rows.parquet", "rows.csv", "parts"):
        out = tmp_path / f"{table}.out.{end}"
        code, said, advice = cli("predict", run, tmp_path / table, "--out", out, "--keep", "id")
        assert (code, f"{N} rows" in said, "onnx" in advice) == (0, True, False)
        found = pl.read_parquet(out) if end == "parquet" else pl.read_csv(out)
        assert found.columns == expected.columns
        assert [str(id_) for id_ in found["id"]] == [str(id_) for id_ in expected["id"]]  # a cell of CSV is a text
        assert found["label"].to_list() == expected["label"].to_list()
        for name in expected.columns[2:]:
            assert (found[name] - expected[name]).abs().max() < 1e-9
    assert not list(tmp_path.glob(".predictions-*"))


@pytest.mark.parametrize(
    ("table", "out", "more", "code", "said"),
    [
        ("nowhere.csv", "out.csv", (), 4, "there is no file or folder"),
        ("rows.csv", "out.json", (), 2, "--out must name a file that ends in .parquet or .csv, got"),
        ("rows.csv", "rows.csv", (), 4, "is there already, and is not replaced"),
        ("rows.csv", "no folder/out.csv", (), 4, "there is no folder"),
        ("rows.csv", "out.csv", ("--keep", "ie"), 4, "quorate: --keep: "),
        ("wrong.csv", "out.csv", (), 4, "column 'age' of wrong.csv: a number is expected"),
        ("other.csv", "out.csv", (), 4, "has no column 'age', which the model needs. See that its first line names"),
        ("short.csv", "out.csv", (), 4, "short.csv: row 3 below the first line has 2 cells, and the first line names"),
        ("long.csv", "out.csv", (), 4, "long.csv: row 3 below the first line has"),
        ("marks.csv", "out.csv", (), 4, "row 3 below the first line has quotation marks that do not match"),
        ("rows.csv", "/proc/out.csv", (), 4, "the machine refused to write /proc/out.csv: no such file or directory"),
        ("rows.svm", "out.csv", (), 2, "expected a table with named columns"),
        ("empty", "out.csv", (), 4, "holds no .parquet file"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(table, out, more, code, said, run, cli, tmp_path):
    ROWS.write_csv(tmp_path / "rows.csv")
    ROWS.with_columns(age=pl.lit("ancient")).write_csv(tmp_path / "wrong.csv")
    ROWS.rename({name: f"{name}_" for name in ROWS.columns}).write_csv(tmp_path / "other.csv")
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    third = {"short": ",".join(lines[3].split(",")[:2]), "long": f"{lines[3]},1", "marks": f'"{lines[3]}'}
    for name, line in third.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([*lines[:3], line, *lines[4:], ""]))
    (tmp_path / "rows.svm").write_text("1 1:2\n")
    (tmp_path / "empty").mkdir()
    before = {path.name for path in tmp_path.iterdir()}
    ended, shown, told = cli("predict", run, tmp_path / table, "--out", tmp_path / out, *more)
    assert said in told.words, told
    assert (ended, shown) == (code, "")
    assert {path.name for path in tmp_path.iterdir()} == before
    assert "ancient" not in told


def test_of_a_folder_each_file_that_does_not_fit_is_one_line(run, cli, tmp_path):
    folder = parts_of(tmp_path / "parts")
    ROWS.drop("age").write_parquet(folder / "3.parquet")
    (folder / "4.parquet").write_bytes(b"no file of this kind")
    told = cli.refused(4, "predict", run, folder, "--out", tmp_path / "out.csv")
    assert ["3.parquet" in told, "4.parquet" in told, "0.parquet" in told] == [True, True, False]
    assert not (tmp_path / "out.csv").exists()


def test_what_was_exported_reads_a_table_by_the_separator_of_its_first_line(run, cli, tmp_path):
    """There is no quorate.toml beside it, in which a line could be written."""
    assert cli("export", run, "--to", tmp_path / "outbox")[0] == 0
    found = {}
    for separator in (",", ";", "\t"):
        ROWS.write_csv(tmp_path / "rows.csv", separator=separator)
        out = tmp_path / f"{ord(separator)}.parquet"
        cli.ok("predict", tmp_path / "outbox", tmp_path / "rows.csv", "--out", out)
        found[separator] = pl.read_parquet(out)
        cli.ok("predict", tmp_path / "outbox", tmp_path / "rows.csv", "--out", out.with_suffix(".csv"))
        assert pl.read_csv(out.with_suffix(".csv"), separator=separator).columns == found[separator].columns
    assert found[","].equals(found[";"])
    assert found[","].equals(found["\t"])


@pytest.mark.parametrize("line", ["age", "age;ward", 'age,"sys;dia;mean"', "Gr\u00f6\u00dfe,age"])
def test_a_folder_reads_a_table_as_its_own_whatever_the_first_line_has(line, run, tmp_path):
    (tmp_path / "rows.csv").write_bytes(f"{line}\n1\n".encode("cp1252"))
    assert quorate.load(run).table_reader(tmp_path / "rows.csv")[1] == settings_of(run).data.dialect


def test_bytes_that_are_no_text_are_refused_and_no_word_is_taken_for_another(run, cli, tmp_path):
    rows = ROWS.with_columns(ward=pl.lit("Gyn\u00e4kologie"))
    (tmp_path / "rows.csv").write_bytes(rows.write_csv().encode("cp1252"))
    said = cli.refused(4, "predict", run, tmp_path / "rows.csv", "--out", tmp_path / "out.csv")
    assert "cells of column 'ward' are no UTF-8 text; save the table as CSV UTF-8" in said.words
    assert "Gyn" not in said
    assert not (tmp_path / "out.csv").exists()
    (tmp_path / "rows.csv").write_bytes(rows.write_csv().encode())
    assert cli("predict", run, tmp_path / "rows.csv", "--out", tmp_path / "out.csv")[0] == 0


def test_text_in_utf_8_is_not_taken_for_the_code_page_of_the_run(tmp_path):
    """Bytes of UTF-8 are letters of every code page; a file that begins with a mark is UTF-8 whatever is declared."""
    dialect, path = Dialect(encoding="cp1252"), tmp_path / "rows.csv"
    rows = pl.DataFrame({"ward": ["Gyn\u00e4kologie", "north", None], "age": ["1", "2", "3"]})
    for encoding in ("cp1252", "utf-8-sig"):
        path.write_bytes(rows.write_csv().encode(encoding))
        [(_, read)] = predicted_table._blocks(path, ["ward", "age"], dialect, None)
        predicted_table._refuse_other_encoding(read, path, dialect)
        assert read["ward"].to_list() == rows["ward"].to_list()
    path.write_bytes(rows.write_csv().encode())
    [(_, read)] = predicted_table._blocks(path, ["ward", "age"], dialect, None)
    with pytest.raises(DataRefused, match="cells of column 'ward' are UTF-8 text, and the run has encoding = "):
        predicted_table._refuse_other_encoding(read, path, dialect)
