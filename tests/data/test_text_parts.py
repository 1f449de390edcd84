"""A CSV file read some lines at a time: the parts, and the types that polars finds in all of it at once."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from quorate.data import read_data
from quorate.data.formats import text_parts
from quorate.data.formats.delimited_text import DelimitedText
from quorate.data.stream import Workspace

FIRST = {"whole": "7", "real": "2.5", "truth": "true", "text": '"a ""b"", c\nd"', "none": "", "exponent": "1e5"}


def table(seed: int, n: int = 60) -> str:
    """A table whose columns change their kind somewhere, or do not."""
    rng = np.random.default_rng(seed)
    kinds = [rng.choice(list(FIRST), 2) for _ in range(6)]
    change = rng.integers(0, 2 * n, 6)
    rows = [
        ",".join(FIRST[str(kind[int(row >= at)])] for kind, at in zip(kinds, change, strict=True)) for row in range(n)
    ]
    return "\n".join([",".join("abcdef"), *rows]) + "\n" * (seed % 2)


def read(part: bytes, *, types: dict[str, Any]) -> pl.DataFrame:
    """Read a part as polars does."""
    return pl.read_csv(io.BytesIO(part), schema_overrides=types, infer_schema_length=None)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(40))
def test_the_types_are_those_of_the_whole_file(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_parts, "AT_ONCE", 90)
    content, path = table(seed).encode(), tmp_path / ("t.csv.gz" if seed % 3 == 0 else "t.csv")
    path.write_bytes(gzip.compress(content) if seed % 3 == 0 else content)
    whole = pl.read_csv(io.BytesIO(content), infer_schema_length=None)
    assert len(list(text_parts.parts_of(path))) > 5
    streamed = DelimitedText().stream(path, text_columns=["c"], workspace=Workspace(lambda: tmp_path))
    assert streamed is not None
    assert streamed.schema == {**whole.schema, "c": pl.String}
    text = pl.read_csv(io.BytesIO(content), infer_schema_length=None, schema_overrides={"c": pl.String})
    assert streamed.collect().equals(text)


def test_that_test_catches_types_of_the_first_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_parts, "AT_ONCE", 90)
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 80 + "2.5\n", encoding="utf-8")
    first = read(next(text_parts.parts_of(path)), types={})
    assert first.schema != text_parts.schema_of(text_parts.parts_of(path), read, given={})


@pytest.mark.parametrize("content", ['a,b\n1,"x\n' + "y\n" * 50, "a\n", "a"])
def test_marks_that_are_not_matched_and_files_without_rows(content: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    assert b"".join(part for part in text_parts.parts_of(path)).decode() == content


@pytest.mark.heavy
def test_memory_holds_no_more_than_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_parts, "AT_ONCE", 1_000)
    path, longest = tmp_path / "t.csv", 0
    path.write_text("a,b\n" + "12,word\n" * 20_000, encoding="utf-8")

    def watched(part: bytes, *, types: dict[str, Any]) -> pl.DataFrame:
        nonlocal longest
        longest = max(longest, len(part))
        return read(part, types=types)

    schema = text_parts.schema_of(text_parts.parts_of(path), watched, given={})
    assert schema == {"a": pl.Int64, "b": pl.String}
    assert longest < 1_100


@pytest.mark.parametrize("suffix", [".arrow", ".feather", ".ipc"])
def test_arrow_files_are_tables(suffix: str, tmp_path: Path) -> None:
    rows = pl.DataFrame({"age": [39, 50], "ill": ["no", "yes"], "id": ["007", "008"]})
    path = tmp_path / f"t{suffix}"
    rows.write_ipc(path)
    found = read_data(path, label="ill", unit="id")
    assert (found.X.rows(), found.y.tolist(), found.unit) == ([(39,), (50,)], ["no", "yes"], ["007", "008"])  # type: ignore[union-attr]
    streamed = read_data(path, label="ill", memory=0, workspace=Workspace(lambda: tmp_path))
    assert type(streamed.X).__name__ == "StreamedFrame"
    assert streamed.X.collect().equals(rows.drop("ill"))


def test_libsvm_text_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "t.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:0.5 3:2\n0 2:1\n"))
    found = read_data(path, n_features=3)
    assert found.X.toarray().tolist() == [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]]
    assert found.y.tolist() == [1, 0]  # type: ignore[union-attr]
