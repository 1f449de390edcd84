"""What each column of a table is read as: numbers, categories, running text, dates, or nothing. A public rule.

The rule looks at the public pool alone (:func:`column_kinds`), and the owner may say otherwise. Private rows decide on
no kind; how a cell is read follows from the cell and the kind of its column.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from quorate.data.cell_text import canonical_text, each
from quorate.data.column_cells import PublicWords, plain_columns, with_cells
from quorate.data.columns import Family, column, doubles, families, listed, nearest, texts
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.notation import (
    TimeKind,
    are_dates,
    are_decimal_commas,
    comma_number,
    has_decimal_comma,
    text_kind,
    time_kind,
    time_numbers,
    written_number,
)
from quorate.data.rows import Rows, columns, is_frame, kind, n_rows
from quorate.data.stream import StreamedFrame
from quorate.errors import InvalidParameter, named

ColumnKind: TypeAlias = Literal["number", "category", "text", "date", "time", "duration", "dropped"]
RARE_SHARE = 0.005  # a value that a smaller share of the public rows has is rare
RARE_ROWS = 2  # and so is one that fewer rows than these have
MAX_VALUES = 100  # of one column, the most frequent
# Chosen on some public tables and reported on others: docs/decisions/0037.
FEWEST_ROWS = 20  # public rows from which a column of texts is looked at
COVERED = 0.5  # share of rows with a frequent value, from which a column is one of categories
TEXT_WORDS = 2.5  # words that an entry of running text has on average, at least
SHARED_WORDS = 0.3  # share of these words that other entries have too, at least
ALL_DIFFERENT = 0.9  # share of different entries, from which a column tells rows apart and nothing else
MISSING_MARKS = frozenset({"na", "n/a", "nan", "null", "none", "unknown", "?", "-", "."})  # in a column of numbers
_WORD = re.compile(r"(?u)\b\w\w+\b")  # as TfidfVectorizer takes words
_LOOKED_AT = 5_000  # different entries of a column


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenKinds:
    """What the owner says of columns, by their names; the rule decides on the others.

    `text`, `categorical`, `numeric`, `dates`, `drop`: names of columns. `dialect`: how numbers and dates are written.
    """

    text: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    dialect: Dialect = PLAIN

    @classmethod
    def of(cls, **given: Any) -> GivenKinds:
        """Check names, a list or one; InvalidParameter if they are no names, or one is given twice."""
        read = {key: _names(key, names) for key, names in given.items()}
        every = [name for names in read.values() for name in names]
        if twice := [name for name, times in Counter(every).items() if times > 1]:
            raise InvalidParameter(f"column {twice[0]!r} is named more than once; say one kind of each column")
        return cls(**read)  # type: ignore[arg-type]

    @property
    def arguments(self) -> dict[str, tuple[str, ...]]:
        """The named columns, as arguments of :class:`~quorate.PublicPool`."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "dialect"}

    @property
    def named(self) -> dict[str, str]:
        """Each named column, and what it was named as."""
        return {name: key for key, names in self.arguments.items() for name in names}


def _names(key: str, names: Any) -> tuple[str, ...]:
    named = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Sequence) else None
    if named is None or not all(isinstance(name, str) and name for name in named):
        raise InvalidParameter(f'{key} must name columns (["notes"]), got {names!r}')
    return named


@dataclass(frozen=True, slots=True)
class ColumnKinds:
    """What each column of a table is read as.

    Parameters
    ----------
    kinds : mapping of str to kind
        By the names of the pool's columns; empty for tables without names.
    changed : frozenset of str
        Columns that are read in another way than by their type alone, as version 0.1 read them.
    asked : frozenset of str
        Columns of which the owner has said what they are.
    commas : frozenset of str
        Columns of numbers whose decimal mark is a comma, as the pool shows.
    words : mapping of str to PublicWords
        Of columns of categories that the pool holds as text, the public entries: a cell that says the same is one.
    dialect : Dialect
        How numbers and dates are written, as the owner declares it.

    Examples
    --------
    >>> import polars
    >>> pool = polars.DataFrame({"seen": ["2024-03-01", "2024-03-02"], "age": [39, 50]})
    >>> read = column_kinds(pool)
    >>> read.kinds
    {'seen': 'date', 'age': 'number'}
    >>> read(pool).rows()
    [(19783.0, 39), (19784.0, 50)]
    """

    kinds: Mapping[str, ColumnKind] = field(default_factory=dict, hash=False)
    changed: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    commas: frozenset[str] = frozenset()
    words: Mapping[str, PublicWords] = field(default_factory=dict, hash=False)
    dialect: Dialect = PLAIN

    @property
    def text(self) -> tuple[str, ...]:
        """Columns of running text."""
        return self.of("text")

    def of(self, kind_: ColumnKind) -> tuple[str, ...]:
        """Return the columns of one kind."""
        return tuple(name for name in self.kinds if self.kinds[name] == kind_)

    def facts(self) -> dict[str, str]:
        """Return the kinds of columns that are not read by their type alone; public."""
        return {name: self.kinds[name] for name in sorted(self.changed)}

    def __call__(self, X: Rows) -> Rows:
        """Return rows as their columns are read: numbers and texts alone where a rule applies; others as they are.

        Each cell is a function of that cell, its column's kind and public entries. What is no number, date or time is
        missing (NaN in pandas); a missing text is empty; a word that says what a public entry says is that entry; a
        category that is no text is what it says. Rows that were read already come back as they are.
        """
        if not is_frame(X) or not (self.changed or self.words or (self.kinds and kind(X) == "pandas")):
            return X
        if isinstance(X, StreamedFrame):
            X = X.collect()
        places = {name: place for place, name in enumerate(columns(X) or ())}
        kept = [place for name, place in places.items() if self.kinds.get(name) != "dropped"]
        if len(kept) < len(places):
            X = X.iloc[:, kept] if kind(X) == "pandas" else X[:, kept]
            places = {name: place for place, name in enumerate(columns(X) or ())}
        held = families(X)
        read = {
            places[name]: self._read(column(X, places[name]), held[name], name)
            for name in self.changed
            if name in places
        }
        if kind(X) == "pandas":
            others = {place: name for name, place in places.items() if place not in read and name in self.kinds}
            read |= plain_columns(X, {place: self.kinds[name] == "number" for place, name in others.items()})
        for name in self.words.keys() & places.keys():
            place = places[name]
            plain = read.get(place) if held[name] == "text" else None
            cells = self.words[name].of_column(column(X, place) if plain is None else plain, held[name])
            read |= {} if cells is None else {place: cells}
        return with_cells(X, read) if read else X

    def respells(self, X: Rows) -> bool:
        """Whether a word of a table is a public entry written in another way. As secret as the table."""
        if not self.words or not is_frame(X):
            return False
        if isinstance(X, StreamedFrame):
            return any(map(self.respells, X.blocks()))
        return any(
            family == "text" and name in self.words and self.words[name].of_column(column(X, place), family) is not None
            for place, (name, family) in enumerate(families(X).items())
        )

    def number(self, name: str, text: str | None) -> float:
        """Return what a text says in a column of numbers; NaN for what is none."""
        if text is None:
            return float("nan")
        if self.dialect.declares_numbers:
            return _in_range(self.dialect.number(text))
        return _in_range(comma_number(text) if name in self.commas else written_number(text))

    def _read(self, series: Any, family: Family, name: str) -> Any:
        """Return one column as its kind reads it: floats, or texts."""
        kind_ = self.kinds[name]
        if family == "number":
            return (
                [canonical_text(value) for value in doubles(series).tolist()]
                if kind_ in ("category", "text")
                else doubles(series)
            )
        if kind_ in ("date", "time", "duration"):
            return time_numbers(series, kind_, self.dialect.date)
        if kind_ == "number":
            return np.array(each(partial(self.number, name), texts(series)), dtype=np.float64)
        return ["" if text is None and kind_ == "text" else text for text in texts(series)]


def _in_range(value: float) -> float:
    return value if abs(value) < 1e150 else float("nan")  # beyond, squares are infinite


def column_kinds(pool: Rows, given: GivenKinds | None = None) -> ColumnKinds:
    """Decide what each column of a table is read as, from the public pool and what the owner says.

    Parameters
    ----------
    pool : Rows
        Public rows. The columns of arrays are numbers.
    given : GivenKinds, optional
        What the owner says.

    Returns
    -------
    ColumnKinds
        By type: numbers and truth values are numbers, types of times dates, times of day or durations. A column of
        text (at least 20 rows)

        - of which each entry is a date, or each one a time of day, in ISO 8601, is that;
        - of numbers, but for marks of a missing one (NA, n/a, nan, null, none, unknown, ?, -, .), is numbers; so are
          numbers with a decimal comma (3,5), unless each comma has three digits after it, as thousands have;
        - of which at least half of the rows have a frequent value (0.5 % of the rows and two rows, at most 100 values)
          is one of categories;
        - else is running text if its entries have 2.5 words or more on average, and 30 % of the words occur in other
          entries as well;
        - else is left out if 90 % of its entries differ: ids and names;
        - and else is one of categories, whose rare values count as none.

    Raises
    ------
    InvalidParameter
        If a named column is not there, or cannot be read as what it is named as.

    Examples
    --------
    >>> import polars
    >>> pool = polars.DataFrame({
    ...     "ward": ["north", "south"] * 20,
    ...     "patient": [f"P{i:04d}" for i in range(40)],
    ...     "note": [f"seen at {i} with {'a cough' if i % 2 else 'no fever'} today" for i in range(40)],
    ... })
    >>> column_kinds(pool).kinds
    {'ward': 'category', 'patient': 'dropped', 'note': 'text'}
    >>> column_kinds(pool, GivenKinds(categorical=("note",))).kinds["note"]
    'category'
    """
    given = given or GivenKinds()
    if not is_frame(pool):
        if given.named:
            raise InvalidParameter(
                f"columns {listed(list(given.named))} are named, and the public rows are an array, whose columns have "
                "no names; give a data frame"
            )
        return ColumnKinds()
    held = families(pool)
    if unknown := [name for name in given.named if name not in held]:
        [name, *_] = unknown
        near = nearest(name, held)
        raise InvalidParameter(
            f"{named(given.named[name])} names {name!r}, which is no column of the public rows{near}"
        )
    kinds, commas, words = dict[str, ColumnKind](), set[str](), dict[str, PublicWords]()
    for place, (name, family) in enumerate(held.items()):
        series, declared = column(pool, place), given.named.get(name)
        clock = time_kind(series) if family == "time" else None
        cells = texts(series) if family == "text" and declared not in ("drop", "text") else []
        if declared is not None:
            kinds[name] = _declared_kind(declared, name, family, clock, cells, given.dialect)
        elif family == "text":
            kinds[name] = text_column_kind(cells, n_rows(pool), given.dialect)
        else:
            kinds[name] = clock or "number"
        if family == "text" and kinds[name] == "category":
            words[name] = PublicWords.of(cells)
        elif family == "text" and kinds[name] == "number" and not given.dialect.declares_numbers:
            entries = _some(Counter(cell for cell in cells if cell is not None))
            commas |= {name} if any(map(has_decimal_comma, entries)) else set()
    if set(kinds.values()) == {"dropped"}:
        if given.drop:
            raise InvalidParameter(f"{named('drop')}: no column of the public rows is left; name fewer of them")
        kinds = dict.fromkeys(kinds, "category")  # a caution says that nothing is learned from them
        words = {
            name: PublicWords.of(texts(column(pool, place))) for place, name in enumerate(held) if held[name] == "text"
        }
    named_ones = frozenset(given.named)
    return ColumnKinds(kinds, changed_kinds(kinds, held), named_ones, frozenset(commas), words, given.dialect)


def changed_kinds(kinds: Mapping[str, ColumnKind], held: Mapping[str, Family]) -> frozenset[str]:
    """Return the columns that are read in another way than by what they hold alone."""
    plain = {"number": "number", "text": "category", "missing": "number"}
    return frozenset(name for name in kinds if kinds[name] != plain.get(held[name]))


def text_column_kind(cells: Sequence[str | None], rows: int, dialect: Dialect = PLAIN) -> ColumnKind:
    """Decide on a column of text, by the rule of :func:`column_kinds`."""
    counts = Counter(cell for cell in cells if cell is not None and cell.strip())
    present = counts.total()
    if counts and (clock := text_kind(_some(counts), dialect.date)) is not None:
        return clock
    if counts and _numbers_with_marks(_some(counts), dialect):
        return "number"
    if present < FEWEST_ROWS or are_dates([text.strip() for text in _some(counts)]):
        return "category"  # dates in another form: said by a caution
    frequent = sorted((times for times in counts.values() if times >= max(RARE_ROWS, RARE_SHARE * rows)), reverse=True)
    if sum(frequent[:MAX_VALUES]) >= COVERED * present:
        return "category"
    words, shared = word_figures(_some(counts))
    if words >= TEXT_WORDS and shared >= SHARED_WORDS:
        return "text"
    return "dropped" if len(counts) >= ALL_DIFFERENT * present else "category"


def words_of(text: str) -> list[str]:
    """Return the words of an entry, in small letters."""
    return _WORD.findall(text.lower())


def word_figures(different: Sequence[str]) -> tuple[float, float]:
    """Return how many words an entry has on average, and which share of them another entry has too."""
    entries = [set(words_of(text)) for text in different]
    counts = Counter(word for words in entries for word in words)
    total = counts.total()
    if not total:
        return 0.0, 0.0
    mean = sum(len(words_of(text)) for text in different) / len(different)
    return mean, sum(times for times in counts.values() if times > 1) / total


def _numbers_with_marks(different: Sequence[str], dialect: Dialect) -> bool:
    """Tell whether these are numbers but for marks of a missing one, or for commas; digits alone may well be codes."""
    others = [text.strip().lower() for text in different if math.isnan(_in_range(dialect.number(text)))]
    if not dialect.declares_numbers and are_decimal_commas(others):
        return MISSING_MARKS.issuperset(text for text in others if not has_decimal_comma(text))
    marked = [text for text in different if dialect.declares_numbers and not text.strip().isdigit()]
    return len(marked or others) > 0 and len(others) < len(different) and MISSING_MARKS.issuperset(others)


def _some(counts: Counter[str]) -> list[str]:
    return list(counts)[:_LOOKED_AT]


def _declared_kind(
    declared: str,
    name: str,
    family: Family,
    clock: TimeKind | None,
    cells: Sequence[str | None],
    dialect: Dialect,
) -> ColumnKind:
    """Return the kind that the owner names, or say why the column cannot be read so."""
    if declared == "drop":
        return "dropped"
    if declared == "dates":
        known = clock or _best_clock([text for text in cells if text is not None], dialect)
        if known is None:
            written = f" or as {dialect.date_format}" * bool(dialect.date_format)
            raise InvalidParameter(
                f"{named('dates')}: column {name!r} of the public rows holds no date in ISO 8601 (2024-03-01, "
                f"2024-03-01T12:30, or 12:30 for a time of day){written}; write it so, say how it is written by "
                "date_format under [data] of quorate.toml (dd.mm.yyyy), or name the column as text, categorical or drop"
            )
        return known
    if family == "time":
        raise InvalidParameter(
            f"{named(declared)}: column {name!r} holds dates or times, by its type; name it as dates, or drop"
        )
    if declared == "numeric" and family == "text":
        read = dialect.number if dialect.declares_numbers else comma_number
        entries = {text for text in cells if text is not None}
        if all(np.isnan(_in_range(read(text))) for text in entries):
            some = next((f", such as {text!r}" for text in sorted(entries) if text.strip()), "")
            raise InvalidParameter(
                f"{named('numeric')}: column {name!r} of the public rows holds no number, but entries{some}; write "
                "plain numbers (12.5) in all tables, or name it as text or drop"
            )
    if declared == "text" and family != "text":
        held = {"number": "numbers", "missing": "nothing"}[family]
        raise InvalidParameter(f"{named('text')}: column {name!r} of the public pool holds no text, but {held}")
    return {"numeric": "number", "categorical": "category", "text": "text"}[declared]  # type: ignore[return-value]


def _best_clock(cells: list[str], dialect: Dialect) -> Literal["date", "time"] | None:
    """Dates where most entries that can be read are dates; the others are missing."""
    kinds = Counter(kind_ for text in cells if (kind_ := text_kind([text], dialect.date)) is not None)
    return kinds.most_common(1)[0][0] if kinds else None
