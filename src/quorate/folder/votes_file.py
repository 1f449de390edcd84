"""Votes made elsewhere: a file of counts, or of one label per teacher and query, read strictly and kept secret.

Who trained the teachers, and on which parts of the data, is the owner's statement: nothing here can check that one
unit went to one teacher, and the guarantee says so.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from quorate.arguments import count, one_of
from quorate.data import check_classes, read_table
from quorate.data.cell_text import is_missing
from quorate.data.file_reading import existing_file
from quorate.data.labels import Label
from quorate.ensemble.votes import add_votes, code_type
from quorate.errors import DataRefused
from quorate.noise.source import MAX_SCALE
from quorate.types import IntArray, Secret

if TYPE_CHECKING:
    import polars as pl

VotesKind = Literal["auto", "counts", "labels"]


@dataclass(frozen=True, slots=True)
class VotesFile:
    """What a file of votes holds: `counts` ``(n_queries, n_classes)``, their classes, and how many teachers."""

    counts: Secret[IntArray]
    classes: tuple[Label, ...]
    n_teachers: int

    @property
    def n_queries(self) -> int:
        """Number of queries, which is public."""
        return len(self.counts.reveal())


def read_votes(
    path: Path, *, classes: Sequence[Any], kind: VotesKind = "auto", n_teachers: int | None = None
) -> VotesFile:
    """Read votes made elsewhere: a table (CSV, TSV, Parquet), or an array (``.npy``, ``.npy.xz``). `kind`: one column
    per class holding whole numbers; or one column per teacher holding a class each (in an array the index of a class),
    nothing or -1 where the teacher abstains. "auto" takes a table whose columns are the classes, and every array with
    as many columns as classes, as counts. A message tells a column by its place, and never a row or a vote: the names
    of a file without a header are votes.
    """
    declared = check_classes(classes)
    one_of("kind", kind, ("auto", "counts", "labels"))
    if n_teachers is not None:
        n_teachers = count("n_teachers", n_teachers, at_least=1)
    table = _array(path) if path.name.removesuffix(".xz").endswith(".npy") else _table(path)
    names = None if isinstance(table, np.ndarray) else [str(name) for name in table.columns]
    width = table.shape[1]
    if not (len(table) and width):
        raise DataRefused(f"{path} holds no votes; give one row a query")
    as_counts = kind == "counts" or (
        kind == "auto"
        and (width == len(declared) if names is None else set(names) == {str(label) for label in declared})
    )
    if as_counts:
        return _from_counts(path, table, names, declared, n_teachers)
    codes = _codes(path, table, names, declared)
    counts = np.zeros((len(codes), len(declared)), dtype=np.int64)
    add_votes(np.ascontiguousarray(codes.T, dtype=code_type(len(declared))), counts)
    if n_teachers is not None and n_teachers != width:
        raise DataRefused(f"{path} has {width} columns of labels, one per teacher, but n_teachers={n_teachers}")
    return VotesFile(Secret(counts), declared, width)


def _table(path: Path) -> pl.DataFrame:
    existing_file(path)
    try:
        return read_table(path)
    except DataRefused:  # its message may quote the first line, which holds votes where the header was left out
        raise DataRefused(
            f"{path} is not a table of votes: the first line must name each column, once, and every other line have as "
            "many fields"
        ) from None


def _array(path: Path) -> np.ndarray[Any, Any]:
    try:
        if path.suffix == ".xz":
            with lzma.open(path) as file:
                array = np.load(file, allow_pickle=False)
        else:
            array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataRefused(f"there is no file {path}") from None
    except (ValueError, OSError, lzma.LZMAError, EOFError):
        raise DataRefused(f"{path} is not an array file (.npy, .npy.xz)") from None
    if not isinstance(array, np.ndarray):  # an archive by another name
        array.close()
        raise DataRefused(f"{path} is not an array file (.npy, .npy.xz)")
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        raise DataRefused(f"{path} must hold a table of numbers, one row a query")
    return np.asarray(array)


def _from_counts(
    path: Path, table: Any, names: list[str] | None, classes: tuple[Label, ...], n_teachers: int | None
) -> VotesFile:
    if names is not None:
        wanted = [str(label) for label in classes]
        if set(names) != set(wanted):
            raise DataRefused(
                f"{path} must have a column for each class and no other, called {', '.join(wanted)} in its first line"
            )
        table = table.select(wanted).to_numpy()
    elif table.shape[1] != len(classes):
        raise DataRefused(f"{path} has {table.shape[1]} columns, but {len(classes)} classes were declared")
    if table.dtype.kind not in "iuf" or not np.all((table >= 0) & (table <= MAX_SCALE) & (table == np.floor(table))):
        raise DataRefused(f"{path} must hold whole numbers of votes, from 0 to 2^40, in every column")
    counts = table.astype(np.int64)
    totals = counts.sum(axis=1)
    if n_teachers is None:
        if np.any(totals != totals[0]):
            raise DataRefused(
                f"the votes of {path} do not add up to one number of teachers, so some abstained; say how many there "
                "are with --n-teachers"
            )
        n_teachers = int(totals[0])
    if n_teachers < 1:
        raise DataRefused(f"{path} holds no vote at all; say how many teachers there are with --n-teachers")
    if np.any(totals > n_teachers):
        raise DataRefused(f"{path} has a query with more votes than n_teachers={n_teachers}; one teacher, one vote")
    return VotesFile(Secret(counts), classes, n_teachers)


def _codes(path: Path, table: Any, names: list[str] | None, classes: tuple[Label, ...]) -> IntArray:
    if names is None:
        if not np.all((table == np.floor(table)) & (table >= -1) & (table < len(classes))):
            raise DataRefused(f"{path} must hold class indices from 0 to {len(classes) - 1}, or -1 for an abstention")
        return np.asarray(table, dtype=np.int64)
    place = {str(label): code for code, label in enumerate(classes)}
    if set(names) <= place.keys():
        raise DataRefused(
            f"the first line of {path} must name the columns, and holds classes alone; name the teachers there"
        )
    from polars import Int64

    place = {"": -1, "-1": -1} | place
    codes = np.full(table.shape, -1, dtype=np.int64)
    for column, name in enumerate(names):
        written = table[name].unique()
        code_of = [place.get(_text(value, place)) for value in written.to_list()]
        if None in code_of:
            raise DataRefused(f"{path}: column {column + 1} holds a vote that is none of the declared classes")
        codes[:, column] = table[name].replace_strict(written, code_of, return_dtype=Int64).to_numpy()
    return codes


def _text(value: Any, place: Mapping[str, int]) -> str:
    """A cell as a class would be written; a column with empty fields may hold whole numbers as floats."""
    if is_missing(value):
        return ""
    if isinstance(value, bool) and str(value) not in place:
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
