"""Private rows of a direct run are read one by one: what one holds changes nothing about another, and stops nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from quorate.data import TableFormat, formats, match_columns, read_cells, read_data, register_format
from quorate.data.labels import codes_of
from quorate.errors import DataRefused
from quorate.run.schema import Schema


def test_a_missing_label_does_not_round_the_others(tmp_path: Path) -> None:
    path, far = tmp_path / "rows.parquet", 2**53 + 1
    for last in (2, None):
        pl.DataFrame({"a": [1.0, 2.0, 3.0], "l": [far, 2, last]}).write_parquet(path)
        codes = codes_of(read_cells(path, label="l", n_features=1).y, (2, far))
        assert codes.tolist()[:2] == [1, 0]


LINES = ["39,north,no", '"40","no, ""south""",yes', "41,,no"]
ODD_LINES = {
    "a mark that is left open": '50,"west,yes',
    "text after a mark": '"50"0,west,yes',
    "one mark alone": '"',
    "too few fields": "50",
    "a byte that is no text": "50,w\udcffst,perhaps",
    "a NUL": "50,w\0st,perhaps",
}


def as_read(path: Path, lines: list[str]) -> list[tuple[Any, ...]]:
    path.write_bytes("\n".join(["age,ward,ill", *lines, ""]).encode("utf-8", "surrogateescape"))
    table = read_cells(path, label="ill", n_features=2)
    assert table.y is not None
    return [(*row, label) for row, label in zip(table.X.rows(), table.y, strict=True)]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("odd", sorted(ODD_LINES))
@pytest.mark.parametrize("place", range(len(LINES) + 1))
def test_no_line_of_a_table_changes_how_another_is_read(tmp_path: Path, odd: str, place: int) -> None:
    path = tmp_path / "rows.csv"
    without = as_read(path, LINES)
    assert without == [("39", "north", "no"), ("40", 'no, "south"', "yes"), ("41", None, "no")]
    found = as_read(path, [*LINES[:place], ODD_LINES[odd], *LINES[place:]])
    assert found[:place] + found[place + 1 :] == without
    assert found[place][-1] in (None, "perhaps")


@pytest.mark.heavy
def test_a_line_of_svmlight_text_is_read_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    good = ["1 1:2.5 3:1", "0 2:1 # of note", "1"]

    def read(lines: list[str]) -> Any:
        path.write_text("\n".join([*lines, ""]))
        return read_cells(path, label="", n_features=3)

    without = read(good)
    assert without.X.toarray().tolist() == [[2.5, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert without.y.tolist() == [1, 0, 1]
    for odd in ("nothing", "1 1:x", "1 0:1", "1 2:1 1:1", f"1 {'9' * 30}:1", "1 3000000000:1", "1,0 1:1", "1 1"):
        for place in range(4):
            table = read([*good[:place], odd, *good[place:]])
            rest = np.delete(np.arange(4), place)
            assert (table.X.toarray()[rest] == without.X.toarray()).all(), odd
            assert (table.y[rest] == without.y).all(), odd
            assert np.isnan(table.X.toarray()[place]).any(), odd


class Rounding(TableFormat):
    """A format that knows frames alone: one cell that is no whole number makes floats of all."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".rounding",)

    def frame(self, path: Path, *, text_columns: Any = ()) -> pl.DataFrame:
        return pl.read_csv(path, infer_schema_length=None)

    def names(self, path: Path) -> list[str]:
        return self.frame(path).columns


class Written(Rounding):
    """The same, which says how cells are written."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".written",)

    def cells(self, path: Path) -> pl.DataFrame:
        return pl.read_csv(path, infer_schema=False)


class Whole:
    """A format without named columns, which reads a file as a whole alone."""

    suffixes = (".whole",)

    def read(self, path: Path, **how: Any) -> Any:
        raise AssertionError("it is not asked")


def test_a_format_that_reads_frames_alone_is_refused_for_private_rows_and_one_that_reads_cells_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BY_SUFFIX", dict(formats._BY_SUFFIX))
    for each in (Rounding(), Written(), Whole()):
        register_format(each)
    far = 2**53 + 1
    for name in ("rows.rounding", "rows.written", "rows.whole"):
        (tmp_path / name).write_text(f"a,l\n{far},1\n0.5,0\n")
    assert read_data(tmp_path / "rows.rounding", label="l").X["a"].to_list()[0] == 2**53  # rounded by the other row
    for name in ("rows.rounding", "rows.whole"):
        with pytest.raises(DataRefused, match=r"does not say how one private row is read by itself.*define cells"):
            read_cells(tmp_path / name, label="l", n_features=1)
    assert read_cells(tmp_path / "rows.written", label="l", n_features=1).X["a"].to_list() == [f"{far}", "0.5"]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.parquet", "rows.svm", "rows.npz"])
def test_a_file_without_a_row_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".parquet"):
        pl.DataFrame({"a": [], "l": []}, schema={"a": pl.Float64, "l": pl.String}).write_parquet(path)
    elif name.endswith(".npz"):
        parts = {"data": np.empty(0), "indices": np.empty(0, int), "indptr": np.zeros(1, int), "shape": [0, 1]}
        np.savez(path, l=np.empty(0), **parts)  # type: ignore[arg-type]
    else:
        path.write_text({"rows.csv": "a,l\n", "rows.tsv": "a\tl\n"}.get(name, ""))
    table = read_cells(path, label="l", n_features=1)
    assert table.X.shape == (0, 1)
    assert len(table.y) == 0  # type: ignore[arg-type]


HEADERLESS = "Ann,HIV,1951\nBob,none,1960\n"


def test_what_is_said_of_a_file_without_names_quotes_no_cell_of_its_first_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pool = pl.DataFrame({"name": ["Eve"], "finding": ["none"], "year": [1970]})
    path.write_text(HEADERLESS)
    said = []
    for act in (
        lambda: read_cells(path, label="ill", n_features=3),
        lambda: read_data(path, label="ill"),
        lambda: match_columns(read_data(path).X, pool),
        lambda: Schema.of(pool).parsed(read_data(path).X),
    ):
        with pytest.raises(DataRefused) as refusal:
            act()
        said.append(str(refusal.value))
    path.write_text("Ann,HIV,Ann\n")
    for act in (lambda: read_cells(path, label="ill", n_features=3), lambda: read_data(path, label="ill")):
        with pytest.raises(DataRefused) as refusal:
            act()
        said.append(str(refusal.value))
    assert not [each for each in said if "Ann" in each or "HIV" in each or "1951" in each]
    assert all(word in said[2] and word in said[3] for word in ("name", "finding", "year"))  # those of the pool are
