"""What reads a table for a run: its columns by name, in the order and types of the public pool, then by their kinds.

Whoever hands rows to the models of a run goes through this: a file or a frame that is asked about or predicted, and a
row that comes over HTTP. What a cell says follows from that cell and from public facts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.data.cell_text import canonical_text
from quorate.data.column_kinds import MISSING_MARKS, ColumnKinds, with_cells
from quorate.data.columns import Family, column, doubles, families, in_words, refuse_other_columns, texts
from quorate.data.decimal_commas import comma_number, plain_comma_number
from quorate.data.rows import TEXT, Rows, columns, holds_texts, is_frame, texts_table, with_text_names
from quorate.data.streamed import StreamedFrame
from quorate.data.written_numbers import written_number
from quorate.errors import DataRefused


@dataclass(frozen=True, slots=True)
class TableReader:
    """How the tables of one run are read.

    `families`: what the public pool's columns hold, in its order; empty where they have no names. `kinds`: what they
    are read as. `left_out`: columns that are no features: the label, the unit, and what the owner leaves out.

    Examples
    --------
    >>> import polars
    >>> from quorate.data.column_kinds import column_kinds
    >>> pool = polars.DataFrame({"temperature": ["38,8", "36,6"], "seen": ["2024-03-01", "2024-03-02"]})
    >>> reader = TableReader.of(pool, column_kinds(pool), left_out=("id",))
    >>> reader(polars.DataFrame({"id": [7], "seen": ["1970-01-02"], "temperature": [38.8]})).rows()
    [(38.8, 1.0)]
    """

    families: Mapping[str, Family] = field(default_factory=dict, hash=False)
    kinds: ColumnKinds = field(default_factory=ColumnKinds)
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, pool: Rows, kinds: ColumnKinds, *, left_out: tuple[str, ...] = ()) -> TableReader:
        """Return the reader of tables that have the columns of a public pool."""
        return cls(families(pool), kinds, tuple(name for name in left_out if name not in (columns(pool) or ())))

    def __call__(self, X: Any, name: str = "X") -> Rows:
        """Return rows as a published student takes them; columns that are read as nothing may be missing.

        Raises DataRefused if the columns are others than those of the pool, or one holds something else.
        """
        return self.kinds(self.as_the_pool(X, name, needed=set(self.families) - set(self.kinds.of("dropped"))))

    def as_the_pool(self, X: Any, name: str = "X", *, needed: set[str] | None = None) -> Rows:
        """Return a frame with the columns of the pool, in its order and types; what is no frame comes back as it is.

        Raises DataRefused as above. Columns are named, no cell is.
        """
        if not self.families:
            return X
        if len(self.families) == 1 and holds_texts(X):
            X = texts_table(X).rename({TEXT: next(iter(self.families))})
        if not hasattr(X, "columns") or not is_frame(X):
            if self.kinds.kinds:
                raise DataRefused(
                    f"{name}: got {type(X).__name__}, and expected a frame with {in_words(list(self.families))}. "
                    "Nothing was charged"
                )
            return X
        X = X.collect() if isinstance(X, StreamedFrame) else with_text_names(X, name)
        features = [feature for feature in columns(X) or () if feature not in self.left_out]
        wanted = [feature for feature in self.families if needed is None or feature in needed or feature in features]
        refuse_other_columns(features, wanted, called=(name, "the public pool"))
        X = self._without_marks(X[wanted])
        held, changed = families(X), {}
        for place, feature in enumerate(wanted):
            if held[feature] != self.families[feature]:
                cells = self._cells(column(X, place), feature, held[feature], name)
                if cells is not None:
                    changed[place] = cells
        return with_cells(X, changed) if changed else X

    def is_missing(self, cell: Any) -> bool:
        """Whether the owner says that such a cell stands for no value."""
        marks = self.kinds.dialect.missing
        if isinstance(cell, str) or not marks:
            return cell in marks
        return type(cell) in (int, float) and cell in set(map(self.kinds.dialect.number, marks))

    def _without_marks(self, X: Rows) -> Rows:
        """Return a frame without what stands for no value."""
        changed: dict[int, Any] = {}
        for place, held in enumerate(families(X).values() if self.kinds.dialect.missing else ()):
            if held == "text":
                changed[place] = [None if self.is_missing(text) else text for text in texts(column(X, place))]
            elif held == "number":
                numbers = doubles(column(X, place))
                absent = np.isin(numbers, [self.kinds.dialect.number(mark) for mark in self.kinds.dialect.missing])
                if absent.any():
                    changed[place] = np.where(absent, np.nan, numbers)
        return with_cells(X, changed) if changed else X

    def written(self, name: str, number: float) -> str | None:
        """Return a number as the pool's column of texts writes it; None for a missing one."""
        text = None if np.isnan(number) else canonical_text(number)
        if text is None:
            return None
        if self.kinds.dialect.declares_numbers and self.kinds.kinds.get(name) == "number":
            return self.kinds.dialect.written(text)
        return text.replace(".", ",") if name in self.kinds.commas and "e" not in text else text

    def number(self, name: str, text: str | None) -> float:
        """Return what a text says in a column of numbers, in the pool's own notation; NaN for what is none."""
        if text is None:
            return float("nan")
        if self.kinds.dialect.declares_numbers:
            return self.kinds.dialect.number(text)
        if name not in self.kinds.commas:
            return written_number(text)
        if self.families[name] == "text":  # the pool shows its commas
            return comma_number(text)
        value = written_number(text)  # declared: a comma that can be nothing else
        return plain_comma_number(text) if np.isnan(value) else value

    def _cells(self, series: Any, name: str, held: Family, table: str) -> Any:
        """Return the cells of a column as the pool holds them; None where they can stay as they are."""
        wanted = self.families[name]
        if wanted == "text":
            if held == "number":
                return [self.written(name, number) for number in doubles(series).tolist()]
            return texts(series)
        if wanted == "number" and held == "missing":
            return np.full(len(series), np.nan)
        if wanted == "number" and held == "text":
            words = texts(series)
            numbers = np.array([self.number(name, word) for word in words], dtype=np.float64)
            unread = {
                word.strip().lower() for word, value in zip(words, numbers, strict=True) if word and np.isnan(value)
            }
            if unread <= MISSING_MARKS | {""}:
                return numbers
        if wanted == "number":
            raise DataRefused(
                f"column {name!r} of {table} holds {_WORDS[held]}, and numbers in the public pool; write it "
                "the same way in both. Nothing was charged"
            )
        return None


_WORDS = {"text": "text", "time": "dates or times"}
