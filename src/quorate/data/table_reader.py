"""What reads a table for a run: its columns by name, in the order and types of the public pool, then by their kinds.

Whoever hands rows to the models of a run goes through this, whatever holds them: a file or a table that is asked about
or predicted, and a row that comes over HTTP. What a cell says follows from that cell and from public facts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn, TypeAlias

import numpy as np

from quorate.data.cell_text import canonical_text, truth_text
from quorate.data.column_cells import frame_of, with_cells
from quorate.data.column_kinds import MISSING_MARKS, ColumnKinds
from quorate.data.columns import Family, check_features, column, doubles, families, in_words, refuse_infinite, texts
from quorate.data.notation import (
    DAY,
    comma_number,
    microseconds,
    plain_comma_number,
    time_type,
    times_of_type,
    written_number,
)
from quorate.data.rows import (
    TEXT,
    Kind,
    Rows,
    columns,
    from_arrow,
    holds_texts,
    is_frame,
    kind,
    texts_table,
    width,
    with_text_names,
)
from quorate.data.shared_schema import not_taken, other_columns
from quorate.data.stream import StreamedFrame
from quorate.deferred import sparse
from quorate.errors import DataRefused

#: What a cell has to say: a number, a moment, a time of day, or a duration.
Says: TypeAlias = Literal["number", "date", "time", "duration"]

_EXPECTED: Final[dict[Says, str]] = {
    "number": "a number is expected",
    "date": "a date is expected, such as 2024-03-01 or 2024-03-01T12:30+01:00",
    "time": "a time of day is expected, such as 12:30",
    "duration": "a duration is expected, as a number of seconds",
}
_DAYS: Final = "a day is expected, such as 2024-03-01"


@dataclass(frozen=True, slots=True)
class TableReader:
    """How the tables of one run are read. `families`: what the public pool's columns hold; empty without names.

    `types`: "truth value", a time's by :func:`~quorate.data.notation.time_type`, or what a column holds. `container`:
    of the pool; None where nothing is known, and rows come back as they are. `as_frame`: one model takes the table as
    it is. `called`: by a message, what says which columns there are: the pool, or a schema.
    """

    families: Mapping[str, Family] = field(default_factory=dict, hash=False)
    kinds: ColumnKinds = field(default_factory=ColumnKinds)
    left_out: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict, hash=False)
    container: Kind | None = None
    width: int = 0
    as_frame: bool = False
    called: str = "the public pool"

    @classmethod
    def of(
        cls,
        pool: Rows,
        kinds: ColumnKinds,
        *,
        left_out: tuple[str, ...] = (),
        as_frame: bool = False,
        called: str = "the public pool",
    ) -> TableReader:
        """Return the reader of tables that have the columns of a pool; `called`: in a message."""
        held, names = families(pool), columns(pool) or ()
        truths = [str(dtype).lower() in ("boolean", "bool") for dtype in pool.dtypes] if names else []
        types = {name: "truth value" if truth else held[name] for name, truth in zip(names, truths, strict=True)}
        times = {name: time_type(column(pool, at)) for at, name in enumerate(names) if held[name] == "time"}
        return cls(
            families=held,
            kinds=kinds,
            left_out=tuple(name for name in left_out if name not in names),
            types=types | times,
            container=kind(pool),
            width=width(pool),
            as_frame=as_frame,
            called=called,
        )

    @property
    def has_times(self) -> bool:
        """Whether a column of the pool is of a type of times."""
        return "time" in self.families.values()

    @property
    def needed(self) -> list[str]:
        """Columns that a table must have, in the pool's order: all but those that no model learned from."""
        dropped: set[str] = set() if self.as_frame else set(self.kinds.of("dropped"))
        return [name for name in self.families if name not in dropped]

    def says(self, name: str) -> Says | None:
        """Return what each cell of a column has to say, if it is there; None where it may be anything."""
        held, read_as = self.families[name], self.kinds.kinds.get(name)
        if read_as == "dropped":
            return None
        if held == "time":
            type_ = self.types[name]
            return type_ if type_ in ("time", "duration") else "date"  # type: ignore[return-value]
        if read_as in ("date", "time", "duration") or (read_as == "number" and held == "text"):
            return read_as
        return "number" if held == "number" else None

    def may_be_unread(self, name: str) -> bool:
        """Whether a cell that is no number is missing, and so counted: the owner names a column numeric that is text in
        the pool.
        """
        named = name in self.kinds.asked and self.kinds.kinds.get(name) == "number"
        return named and self.families[name] == "text"

    def unread(self, X: Any) -> dict[str, int]:
        """Count by column the cells that are no number where these are missing, where there are any."""
        X = from_arrow(X)
        if not is_frame(X):
            return {}
        counts = {
            name: sum(self._says_no_number(name, word) for word in texts(column(X, place)))
            for place, (name, held) in enumerate(families(X).items())
            if held == "text" and name in self.families and self.may_be_unread(name)
        }
        return {name: count for name, count in counts.items() if count}

    def expected(self, name: str) -> str:
        """Word what is expected in a column whose cells have to say something."""
        says = self.says(name)
        assert says is not None  # noqa: S101 - the callers' condition
        words = _DAYS if says == "date" and self._of_days(name) else _EXPECTED[says]
        written = self.kinds.dialect.date_format if says == "date" else ""
        return f"{words}, or as {written}" if written else words

    def is_unread(self, name: str, text: str | None) -> bool:
        """Whether a text says something else than its column has to say; a missing one does not."""
        says = self.says(name)
        if says is None or is_marked_missing(text):
            return False
        if says == "number":
            return not self.may_be_unread(name) and self._says_no_number(name, text)
        said = self._microseconds(text, says)
        return said is None or (self._of_days(name) and said % DAY != 0)

    def _says_no_number(self, name: str, text: str | None) -> bool:
        return not (is_marked_missing(text) or self.is_missing(text)) and bool(np.isnan(self.number(name, text)))

    def _microseconds(self, text: str | None, says: Says) -> int | None:
        return None if says == "number" else microseconds(self.kinds.dialect.iso_date(text), says)

    def __call__(self, X: Any, name: str = "X") -> Rows:
        """Return rows as a published student takes them, refused as :meth:`as_the_pool` does; where an encoder
        takes them, also if a number is infinite.
        """
        rows = self.kinds(self.as_the_pool(X, name))
        if self.kinds.kinds and is_frame(rows):
            refuse_infinite(rows, name)
        return rows

    def as_the_pool(self, X: Any, name: str = "X", *, as_given: bool = False) -> Rows:
        """Return a table with the columns of the pool, in its order, types and container.

        `name`: what a message calls it. `as_given`: whether a column of numbers, texts or times stays as it is where
        the pool's holds the same, as private rows are read. Refuses other columns, and a cell that says something else
        than its column expects. Columns are named, no cell is.
        """
        X = from_arrow(X)
        if not self.families:
            return X if self.container is None else self._as_array(X, name)
        if len(self.families) == 1 and holds_texts(X):
            X = texts_table(X).rename({TEXT: next(iter(self.families))})
        X = self._as_frame(X, name)
        features = [feature for feature in columns(X) or () if feature not in self.left_out]
        needed = set(self.needed)
        wanted = [feature for feature in self.families if feature in needed or feature in features]
        if set(features) != set(wanted):
            words, unlike = other_columns(features, wanted, called=(name, self.called))
            advice = f"Give the columns of {self.called}"
            if unlike and set(features) > set(wanted):  # whoever received the model has no pool
                raise DataRefused(f"{not_taken(unlike, name)}. Nothing was charged")
            raise DataRefused(f"{words}. {advice}. Nothing was charged")
        X = self._without_marks(check_features(X[wanted], name))
        held, as_held = families(X), kind(X) == self.container
        kept = {feature for feature in wanted if as_given and as_held and held[feature] == self.families[feature]}
        cells = {
            feature: None if feature in kept else self._cells(X, place, feature, held[feature], name)
            for place, feature in enumerate(wanted)
        }
        if not as_held:
            return frame_of(cells, str(self.container))
        changed = {place: cells[feature] for place, feature in enumerate(wanted) if cells[feature] is not None}
        return with_cells(X, changed) if changed else X

    def _as_frame(self, X: Any, name: str) -> Rows:
        """Return a frame; an array where the names of the columns are places in an array."""
        if isinstance(X, StreamedFrame):
            return X.collect()
        if hasattr(X, "columns") and is_frame(X):
            return with_text_names(X, name)
        if list(self.families) == [str(place) for place in range(len(self.families))]:
            rows = check_features(X, name, allow_missing=True)
            if width(rows) == len(self.families) and not sparse.issparse(rows):
                cells = np.asarray(rows, dtype=np.float64)
                return frame_of({str(place): cells[:, place] for place in range(width(rows))}, "polars")
        raise DataRefused(
            f"{name}: got {type(X).__name__}, and expected a frame with {in_words(list(self.families))}. Nothing was "
            "charged"
        )

    def _as_array(self, X: Any, name: str) -> Rows:
        """Return rows without names as the pool holds them; the columns of a frame count by their places."""
        rows = check_features(X, name, allow_missing=True)
        if is_frame(rows):
            if words := [name for name, family in families(rows).items() if family in ("text", "time")]:
                raise DataRefused(
                    f"{name}: {in_words(words)} hold{'s' * (len(words) == 1)} no numbers, and the public pool is an "
                    "array of numbers; give numbers alone. Nothing was charged"
                )
            rows = np.column_stack([doubles(column(rows, place)) for place in range(width(rows))])
            refuse_infinite(rows, name)
        if width(rows) != self.width:
            raise DataRefused(
                f"{name} has {width(rows)} features, but PublicPool is expecting {self.width} features as input; give "
                "the columns of the public pool. Nothing was charged"
            )
        if kind(rows) == self.container:
            return rows
        return rows.toarray() if self.container == "numpy" else sparse.csr_matrix(rows)

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
        if text is not None and self.types.get(name) == "truth value":
            text = truth_text(text)
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

    def _of_days(self, name: str) -> bool:
        """Whether cells must be whole days: those of the pool are, and a model takes the table as it is."""
        return self.types.get(name) == "date" and (self.as_frame or name not in self.kinds.kinds)

    def _cells(self, X: Rows, place: int, name: str, held: Family, table: str) -> Any:
        """Return the cells of a column as the pool holds them; None where they can stay as they are."""
        wanted, says, as_held = self.families[name], self.says(name), kind(X) == self.container
        if as_held and (wanted == "missing" or (held == wanted and (says is None or held == "number"))):
            return None
        series = column(X, place)
        if as_held and held == wanted == "time" and time_type(series) == self.types[name]:
            return None
        if (held == "number" and says in ("date", "time")) or (held == "time" and says == "number"):
            self._refuse(name, table)
        if held == "number" and wanted in ("number", "missing"):
            return doubles(series)
        if held == "number":
            words = [self.written(name, number) for number in doubles(series).tolist()]
        else:
            words = texts(series)
        if any(self.is_unread(name, word) for word in set(words)):
            self._refuse(name, table)
        if wanted == "time":
            return self._times(name, words)
        if wanted in ("number", "missing"):
            return np.array([self.number(name, word) for word in words], dtype=np.float64)
        return None if held == "text" and as_held else words

    def _times(self, name: str, words: list[str | None]) -> Any:
        """Return texts as a series of the pool's type of times; where days have a time of day, with that."""
        type_ = self.types[name]
        kind_: Says = type_ if type_ in ("time", "duration") else "date"  # type: ignore[assignment]
        known = {word: None if is_marked_missing(word) else self._microseconds(word, kind_) for word in set(words)}
        if type_ == "date" and any(said is not None and said % DAY for said in known.values()):
            type_ = "datetime"
        return times_of_type([known[word] for word in words], type_, str(self.container))

    def _refuse(self, name: str, table: str) -> NoReturn:
        raise DataRefused(
            f"column {name!r} of {table}: {self.expected(name)}; correct or empty the cells that hold something else. "
            "Nothing was charged"
        )


def unread_in_words(counts: Mapping[str, int], name: str) -> str:
    """Say which cells of a table count as missing; `counts`: as :meth:`TableReader.unread` returns them, not empty."""
    (first, number), *others = counts.items()
    more = "".join(f" and {count:,} of {column!r}" for column, count in others)
    if sum(counts.values()) == 1:
        return f"{name}: 1 cell of column {first!r} is no number; it counts as missing"
    return (
        f"{name}: {number:,} cell{'s' * (number > 1)} of column {first!r}{more} are no numbers; they count as missing"
    )


def is_marked_missing(text: str | None) -> bool:
    """Whether a text stands for a missing number or time: it is not there, blank, or a mark such as n/a."""
    return text is None or text.strip().lower() in {"", *MISSING_MARKS}
