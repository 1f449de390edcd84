"""Cells of a column as a model reads them: which public entry each is, and columns as plain floats and texts.

Which entry a cell is, is a public rule, the same at every door. In plain columns of pandas a missing one is NaN.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.data.cell_text import canonical_text, text_reader, truth_text
from quorate.data.columns import Family, column, doubles, texts
from quorate.data.rows import Rows, kind
from quorate.deferred import pd, pl


@dataclass(frozen=True, slots=True)
class PublicWords:
    """The entries of a public column of words: a cell that says the same as one of them is that entry, the commonest
    where several do. `truths`: whether a truth value may say the same, since all are written ones.
    """

    written: Mapping[str | None, str] = field(hash=False)
    truths: bool = False

    @classmethod
    def of(cls, entries: Iterable[str | None]) -> PublicWords:
        """Take the entries of a public column."""
        counts = Counter(entry for entry in entries if entry is not None)
        says = text_reader(counts)
        written: dict[str | None, str] = {}
        for text in sorted(counts, key=lambda text: (-counts[text], text)):
            written.setdefault(says(text), text)
        return cls(written, says is truth_text)

    def __call__(self, cell: Any) -> str | None:
        """Return the entry that says what a cell says, or what the cell says where none does."""
        said = self._says(cell)
        return said if said is None else self.written.get(said, said)

    def respelled(self, cells: Iterable[str]) -> dict[str, str]:
        """Return those of some texts that are an entry written in another way, each with that entry."""
        known = {}
        for cell in cells:
            entry = self.written.get(self._says(cell), cell)
            if entry != cell or (entry is not cell and type(cell) is not str):  # a member of an enumeration, say
                known[cell] = entry
        return known

    def of_column(self, cells: Any, family: Family) -> Any:
        """Return the cells of a column with public entries where they say the same; None where all stay as they are."""
        if family == "number":
            return [self(value) for value in doubles(cells).tolist()]
        if family == "missing":  # of no type, as polars has one
            return [None] * len(cells)
        if family != "text":
            return None
        if isinstance(cells, list):
            respelled = self.respelled({text for text in cells if text is not None})
            return [respelled.get(text, text) for text in cells] if respelled else None
        if hasattr(cells, "cast"):  # polars
            respelled = self.respelled(text for text in texts(cells.unique()) if text is not None)
            return cells.cast(str).replace(respelled) if respelled else None
        others = cells[~cells.isin(list(self.written.values()))]  # which is quicker than to tell all of them apart
        respelled = self.respelled(text for text in others.unique().tolist() if isinstance(text, str))
        if not respelled:
            return None
        codes, different = cells.factorize()
        known = np.array([*(respelled.get(text, text) for text in different.tolist()), None], dtype=object)
        return known[codes].tolist()  # a missing one has the code -1

    def _says(self, cell: Any) -> str | None:
        return truth_text(cell) if self.truths else canonical_text(cell)


def plain_columns(X: Rows, numbers: Mapping[int, bool]) -> dict[int, Any]:
    """Return by place the columns of a pandas frame that are not plain already: floats (`numbers` says which), or texts
    and None.
    """
    plain: dict[int, Any] = {}
    for place, of_numbers in numbers.items():
        series = column(X, place)
        if not _is_plain(series, of_numbers=of_numbers):
            plain[place] = doubles(series) if of_numbers else texts(series)
    return plain


def _is_plain(series: Any, *, of_numbers: bool) -> bool:
    dtype = series.dtype
    if of_numbers:
        return isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    if str(dtype) != "object":
        return str(dtype) == "str"  # of which a missing one is NaN
    return all(isinstance(value, float) for value in series[series.isna()].tolist())


def with_cells(X: Rows, read: Mapping[int, Any]) -> Rows:
    """Put columns, by place, where others are, all at once: each frame made anew goes through all columns."""
    if kind(X) == "polars":
        return X.with_columns(_polars_series(X.columns[place], cells) for place, cells in read.items())
    changed = X.copy(deep=False)
    for place, cells in read.items():
        changed.isetitem(place, _pandas_series(cells).set_axis(X.index))
    return changed


def frame_of(cells: Mapping[str, Any], library: str) -> Rows:
    """Return a frame of polars or pandas of such columns, by their names."""
    if library == "polars":
        return pl.DataFrame([_polars_series(name, held) for name, held in cells.items()])
    return pd.DataFrame({name: _pandas_series(held) for name, held in cells.items()})


def _polars_series(name: str, cells: Any) -> Any:
    if isinstance(cells, pl.Series):
        return cells.alias(name)
    return pl.Series(name, cells, dtype=pl.Float64 if isinstance(cells, np.ndarray) else pl.String)


def _pandas_series(cells: Any) -> Any:
    if isinstance(cells, (pd.Series, np.ndarray)):
        return pd.Series(cells)
    absent = float("nan")
    return pd.Series([absent if cell is None else cell for cell in cells], dtype=object)
