"""A format of files from outside the package, and what the registry refuses."""

from __future__ import annotations

import polars as pl
import pytest

from quorate.data import TableFormat, column_names, formats, read_batches, read_data, read_table, register_format
from quorate.errors import InvalidParameter


class JsonLines(TableFormat):
    """One JSON object a line."""

    suffixes = (".jsonl",)

    def frame(self, path, *, text_columns=()):
        frame = pl.read_ndjson(path)
        return frame.with_columns(pl.col(name).cast(pl.String) for name in text_columns)

    def names(self, path):
        return self.frame(path).columns


@pytest.fixture
def json_lines(monkeypatch):
    monkeypatch.setattr(formats, "_BY_SUFFIX", dict(formats._BY_SUFFIX))
    register_format(JsonLines())


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.jsonl"
    path.write_text('{"person": 7, "age": 39, "ill": "no"}\n{"person": 8, "age": 50, "ill": "yes"}\n')
    return path


@pytest.mark.usefixtures("json_lines")
def test_a_format_of_ones_own_is_read_like_any_other(visits):
    table = read_data(visits, label="ill", unit="person")
    assert (table.columns, table.y.tolist(), table.unit) == (("age",), ["no", "yes"], ["7", "8"])
    assert column_names(visits) == ["person", "age", "ill"]
    assert read_table(visits).height == 2
    assert [batch.rows() for batch in read_batches(visits, batch_rows=1, columns=["age"])] == [[(39,)], [(50,)]]


def test_without_it_the_file_is_taken_for_sparse_text(visits):
    with pytest.raises(Exception, match="svmlight"):
        read_data(visits)


@pytest.mark.usefixtures("json_lines")
def test_a_suffix_has_one_format():
    with pytest.raises(InvalidParameter, match=r"'\.jsonl' belongs to the format JsonLines"):
        register_format(JsonLines())


@pytest.mark.parametrize("suffixes", [("jsonl",), (".JSONL",), ()])
def test_a_suffix_is_small_letters_after_a_dot(suffixes):
    class Odd(JsonLines):
        pass

    Odd.suffixes = suffixes
    with pytest.raises(InvalidParameter, match="suffix"):
        register_format(Odd())


def test_what_cannot_read_is_no_format():
    with pytest.raises(InvalidParameter, match="read method"):
        register_format("csv")
