r"""What the columns of a table hold, as its owner declares it, and the cells into which each column is cut.

A schema is a public statement, never read off private rows. Of every unit a column adds one to one cell, or nothing;
which cell, follows from that cell of the table and the schema alone: the type that a library gave the column tells
nothing, since one private entry may have decided it.

A number is cut into the leaves of a binary tree: between bounds :math:`\min(\lfloor (x - lo) \cdot (2^D/(hi - lo))
\rfloor, 2^D - 1)` with D = 14; without bounds by sign, binary exponent (−40 … 40) and 16 bits of the mantissa, packed
in the order of x into D = 24 bits. Both are worked out entry by entry.
"""

from __future__ import annotations

import datetime as dt
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np

from quorate.data.cell_text import as_column, as_list, canonical_text, each, is_missing, text_reader, truth_text
from quorate.data.columns import in_words, is_plain_number
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.notation import number_with_comma, time_number, time_reader
from quorate.errors import InvalidParameter, as_typed, named
from quorate.stored_names import stored_as
from quorate.types import BoolArray, FloatArray, IntArray

DROPPED: Final = "drop"  #: how a column is declared that nothing reads
NOTHING: Final = -1  #: the code of an entry that adds nothing
MOST_VALUES: Final = 10_000  #: of a list
BOUNDED_DEPTH, UNBOUNDED_DEPTH = 14, 24

#: What the values of a column of numbers are: any, whole ones, days, or instants (as days since 1970).
Grid: TypeAlias = Literal["real", "int", "date", "time"]

_MANTISSA: Final = 16  # bits of it, behind the leading one
LARGEST: Final = 2.0**40  #: a number without bounds is below it, and 0 below 1 by it
_ZERO: Final = 1 << (UNBOUNDED_DEPTH - 1)  # the leaf of 0
_FIRST, _LAST = 1 << _MANTISSA, (81 << _MANTISSA) - 1  # magnitudes that there are, of exponents −39 … 40

_EXPECTED: Final = (
    'expected bounds ([0, 120], or two dates), "number" for a number without bounds, the list of its values '
    '(["F", "M"]), or "drop"'
)


class DeclaredColumn(ABC):
    """What one column holds, and the cells into which it is cut: codes from 0, missing entries last."""

    __slots__ = ()

    @property
    @abstractmethod
    def missing(self) -> int:
        """The code of a missing entry: the number of the other cells."""

    @abstractmethod
    def codes(self, values: Any, dialect: Dialect = PLAIN) -> IntArray:
        """Return the code of each entry: 0 … :attr:`missing`, or −1 for one that adds nothing; ``(n_rows,)``. No entry
        raises, warns or changes another's code.
        """

    @property
    @abstractmethod
    def facts(self) -> Any:
        """The column as JSON."""


@stored_as("quorate.data.declared_schema.NumberColumn")
@dataclass(frozen=True, slots=True)
class NumberColumn(DeclaredColumn):
    """A column of numbers or dates (days since 1970) from `low` to `high`, both inside, or without bounds (None)."""

    low: float | None
    high: float | None
    grid: Grid = "real"

    @property
    def depth(self) -> int:
        """D: levels of the tree below its root."""
        return UNBOUNDED_DEPTH if self.low is None else BOUNDED_DEPTH

    @property
    def missing(self) -> int:
        """The code of a missing entry: 2^D."""
        return int(2**self.depth)

    @property
    def facts(self) -> Any:
        """The bounds, or "number"."""
        if self.low is None or self.high is None:
            return "number"
        if self.grid in ("date", "time"):
            instants = (_EPOCH + dt.timedelta(days=bound) for bound in (self.low, self.high))
            dates = [instant.date().isoformat() if self.grid == "date" else instant.isoformat() for instant in instants]
            return {"dates": dates}  # not two texts, which a category may list
        return [int(bound) if self.grid == "int" else bound for bound in (self.low, self.high)]

    def numbers(self, values: Any, dialect: Dialect = PLAIN) -> tuple[FloatArray, BoolArray]:
        """Return the entries as float64, NaN for what is no number, and which of them are missing."""
        values = as_column(values)
        of_numbers = self.grid in ("real", "int")
        if of_numbers and is_plain_number(values):
            if hasattr(values, "to_physical"):  # polars
                absent = np.asarray(values.is_null().to_numpy(), dtype=bool)
                read = np.asarray(values.to_numpy(), dtype=np.float64)
                return read, absent | np.isnan(read)
            read = np.asarray(values, dtype=np.float64)
            return read, np.isnan(read)
        cells = as_list(values)
        number = dialect.cell_number if dialect.declares_numbers else number_with_comma
        read = np.array(each(number if of_numbers else time_reader("date", dialect.date), cells), dtype=np.float64)
        return read, np.array([type(cell) is not str and is_missing(cell) for cell in cells], dtype=bool)

    def codes(self, values: Any, dialect: Dialect = PLAIN) -> IntArray:
        """Return the leaf of each number in [low, high], 2^D for a missing one, and −1 for everything else."""
        numbers, missing = self.numbers(values, dialect)
        codes = np.full(len(numbers), NOTHING, dtype=np.int64)
        with np.errstate(all="ignore"):
            inside = self._inside(numbers)
            codes[inside] = self._leaves(numbers[inside])
        codes[missing] = self.missing
        return codes

    def _inside(self, numbers: FloatArray) -> BoolArray:
        if self.low is None or self.high is None:
            return np.asarray(np.abs(numbers) < LARGEST)
        return np.asarray((numbers >= self.low) & (numbers <= self.high))

    def _leaves(self, numbers: FloatArray) -> IntArray:
        """Return the leaf of each number that lies inside."""
        if self.low is None or self.high is None:
            mantissas, exponents = np.frexp(np.abs(numbers))
            bits = np.floor((mantissas - 0.5) * 2.0 ** (_MANTISSA + 1)).astype(np.int64)
            magnitudes = ((exponents.astype(np.int64) + 40) << _MANTISSA) + bits
            leaves = np.where(numbers < 0, _ZERO - 1 - magnitudes, _ZERO + magnitudes)
            return np.asarray(np.where(np.abs(numbers) < 1 / LARGEST, _ZERO, leaves))
        per_leaf = 2.0**BOUNDED_DEPTH / (self.high - self.low)
        leaves = np.floor((numbers - self.low) * per_leaf).astype(np.int64)
        return np.asarray(np.minimum(leaves, 2**BOUNDED_DEPTH - 1))

    def values(self, first: IntArray, behind: IntArray, shares: FloatArray) -> FloatArray:
        """Return one value ``(n_values,)`` of each range of leaves ``first <= leaf < behind``: a leaf, and a value
        within it. `shares`: two numbers in [0, 1) a value. Whole numbers and days stay such; where a range holds none,
        the one below.
        """
        if self.low is None or self.high is None:
            return _unbounded_values(first, behind, shares)
        per_leaf = 2.0**BOUNDED_DEPTH / (self.high - self.low)
        leaves = first + np.floor(shares[:, 0] * (behind - first))
        values: FloatArray = np.clip(self.low + (leaves + shares[:, 1]) / per_leaf, self.low, self.high)
        if self.grid not in ("int", "date"):
            return values
        least, beyond = self._first_whole(first, per_leaf), self._first_whole(behind, per_leaf)
        whole = least + np.floor(shares[:, 0] * np.maximum(beyond - least, 1))
        return np.asarray(np.where(beyond > least, whole, np.floor(values)))

    def _first_whole(self, leaves: IntArray, per_leaf: float) -> FloatArray:
        """Return the least whole number in each leaf or beyond it, one more than `high` where there is none."""
        assert self.low is not None and self.high is not None  # noqa: S101, PT018 - of bounded columns
        whole = np.ceil(self.low + leaves / per_leaf)
        for step in (-1.0, -1.0, 1.0, 1.0):  # an edge is rounded: the leaf of a number is what counts
            other = np.where(step < 0, whole + step, whole)
            beyond = (other > self.high) | (self._leaves(np.clip(other, self.low, self.high)) >= leaves)
            move = (beyond & (other >= self.low)) if step < 0 else ~beyond
            whole = np.where(move, whole + step, whole)
        return np.asarray(np.minimum(whole, np.floor(self.high) + 1))


@stored_as("quorate.data.declared_schema.CategoryColumn")
@dataclass(frozen=True, slots=True)
class CategoryColumn(DeclaredColumn):
    """A column of listed values in canonical writing, each once; `truth`: a written truth value is "1" or "0" too."""

    values: tuple[str, ...]
    truth: bool = False

    @property
    def missing(self) -> int:
        """The code of a missing entry: the number of listed values."""
        return len(self.values)

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as a column of texts holds them: truth values are written out."""
        return tuple("True" if value == "1" else "False" for value in self.values) if self.truth else self.values

    @property
    def facts(self) -> Any:
        """The list of values."""
        return [value == "1" for value in self.values] if self.truth else list(self.values)

    def codes(self, values: Any, dialect: Dialect = PLAIN) -> IntArray:
        """Return the place of each entry in the list, the list's length for a missing one, and −1 for all others."""
        del dialect  # of which words know nothing
        places = {value: place for place, value in enumerate(self.values)}
        says = truth_text if self.truth else canonical_text

        def code(cell: Any) -> int:
            if type(cell) is not str and is_missing(cell):
                return self.missing
            text = says(cell)
            return NOTHING if text is None else places.get(text, NOTHING)

        return np.array(each(code, as_list(values)), dtype=np.int64)


@stored_as("quorate.data.declared_schema.DroppedColumn")
@dataclass(frozen=True, slots=True)
class DroppedColumn:
    """A column that nothing reads."""

    facts: ClassVar[str] = DROPPED


@stored_as("quorate.data.declared_schema.Schema")
@dataclass(frozen=True, slots=True)
class Schema:
    """What the columns of a table hold, declared by its owner: a public statement for where there are no public rows.

    Write what is true of the column whoever is in the table: what `df.x.unique()` or `df.x.min()` print was read off
    private rows, and must not be written here.

    Parameters
    ----------
    declared : mapping of str to declaration
        For each column, in the order of the table:

        - two numbers: bounds, both inside; whole numbers where both are written without a point. Generous ones are
          fine;
        - two dates (``datetime.date``, ``datetime.datetime``): bounds of dates;
        - ``"number"``: a number without bounds;
        - a list of texts or truth values: a category, at most 10,000 values, each once. Codes are texts:
          ``["0", "1"]``;
        - ``"drop"``: the column is not read.

    Attributes
    ----------
    columns : mapping of str to DeclaredColumn
        The columns that are read, in order.
    dropped : tuple of str
        Those that are not.

    Raises
    ------
    InvalidParameter
        If a column is declared in another way, naming it; or if none is read.

    Examples
    --------
    >>> schema = Schema({"age": (0, 120), "sex": ["F", "M"], "income": "number", "note": "drop"})
    >>> list(schema.columns), schema.dropped
    (['age', 'sex', 'income'], ('note',))
    >>> schema.columns["sex"].codes(["M", None, "other"]).tolist()
    [1, 2, -1]
    """

    declared: Mapping[str, Any] = field(repr=False)
    columns: Mapping[str, DeclaredColumn] = field(init=False)
    dropped: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.declared, Mapping) or not self.declared:
            raise _wrong(
                f" must name the columns of the table, got {_typed(self.declared)}; for each column {_EXPECTED}"
            )
        if bad := [name for name in self.declared if not isinstance(name, str)]:
            raise _wrong(f": names of columns are texts, got {bad[0]!r}; rename the column")
        if undecided := [name for name, held in self.declared.items() if isinstance(held, str) and held == "?"]:
            raise _wrong(f": still open: {in_words(undecided)}; {_EXPECTED}")
        columns = {name: _column(name, held) for name, held in self.declared.items()}
        read = {name: column for name, column in columns.items() if isinstance(column, DeclaredColumn)}
        if not read:
            raise _wrong(" drops every column, so that nothing is left to learn from; declare one")
        object.__setattr__(self, "declared", MappingProxyType(dict(self.declared)))
        object.__setattr__(self, "columns", MappingProxyType(read))
        object.__setattr__(self, "dropped", tuple(name for name in columns if name not in read))

    @classmethod
    def of(cls, declared: Any) -> Schema:
        """Take a schema, or a plain mapping that declares one."""
        return declared if isinstance(declared, Schema) else cls(declared)

    @property
    def facts(self) -> dict[str, Any]:
        """The schema as JSON, the same for every spelling of it, in the order of the table."""
        dropped = dict.fromkeys(self.dropped, DroppedColumn.facts)
        facts = {name: column.facts for name, column in self.columns.items()} | dropped
        return {name: facts[name] for name in self.declared}


#: The leaves of a number without bounds that any number is in: negative ones, 0, and positive ones.
_IN_USE: Final = (
    (_ZERO - 1 - _LAST, _ZERO - _FIRST),
    (_ZERO, _ZERO + 1),
    (_ZERO + _FIRST, _ZERO + _LAST + 1),
)


def _unbounded_values(first: IntArray, behind: IntArray, shares: FloatArray) -> FloatArray:
    starts = np.stack([np.maximum(first, low) for low, _ in _IN_USE])
    sizes = np.maximum(np.stack([np.minimum(behind, high) for _, high in _IN_USE]) - starts, 0)
    place = np.floor(shares[:, 0] * sizes.sum(axis=0)).astype(np.int64)  # among the leaves of all three parts
    leaves = np.full(len(first), _ZERO)  # where no number is
    for start, size in zip(starts, sizes, strict=True):
        here = (place >= 0) & (place < size)
        leaves[here] = start[here] + place[here]
        place = place - size
    magnitudes = np.where(leaves < _ZERO, _ZERO - 1 - leaves, leaves - _ZERO)
    mantissas = 0.5 + ((magnitudes & (2**_MANTISSA - 1)) + shares[:, 1]) * 2.0 ** -(_MANTISSA + 1)
    values = np.ldexp(mantissas, ((magnitudes >> _MANTISSA) - 40).astype(np.int32))
    return np.where(leaves == _ZERO, 0.0, np.where(leaves < _ZERO, -values, values))


_WHOLE, _NUMBERS = (int, np.integer), (int, float, np.integer, np.floating)
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - instants without a zone are read as UTC


def _wrong(words: str) -> InvalidParameter:
    """Return the refusal of a schema, under the name that its owner knows it by."""
    return InvalidParameter(f"{named('schema')}{words}")


def _column(name: str, held: Any) -> DeclaredColumn | DroppedColumn:
    """Read what was declared of one column."""
    if isinstance(held, str):
        if held == DroppedColumn.facts:
            return DroppedColumn()
        if held == "number":
            return NumberColumn(None, None)
        if held in ("text", "image", "images"):
            raise _wrong(
                f': column {name!r} is declared as {held!r}, of which no rows can be drawn; write "drop" to '
                "leave it out, or give public rows in place of the schema"
            )
    if isinstance(held, (list, tuple)) and held:
        if all(isinstance(value, str) for value in held) or all(isinstance(value, bool) for value in held):
            return _category(name, held)
        bounds = _bounds(held)
        if bounds is not None:
            return bounds
        if (order := order_of_bounds(held)) is not None:
            raise _wrong(f": column {name!r} is declared as {_typed(held)}; {order}")
    raise _wrong(f": column {name!r} is declared as {_typed(held)}; {_EXPECTED}")


def _typed(held: Any) -> str:
    return as_typed(held, shown=reprlib.repr)


def order_of_bounds(held: Sequence[Any]) -> str | None:
    """Say how two bounds must lie that do not; None of what are no two numbers and no two dates."""
    ends = _ends(held)
    if ends is None or not ends[0] >= ends[1]:
        return None
    turned = f": {_typed([*held[::-1]] if isinstance(held, list) else tuple(held[::-1]))}" if ends[0] > ends[1] else ""
    return f"the first bound must be below the second{turned}"


#: How far apart two texts lie that are bounds rather than codes, such as "1" and "9".
_APART: Final = 10.0
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", re.ASCII)
_OPEN_MARK = re.compile(r"[+-]?[1-9]\d{0,2}(?:[.,]\d{3})+", re.ASCII)  # 1.500 may be 1500


def bounds_as_texts(declared: Mapping[str, Any]) -> Iterator[str]:
    """Yield what to write in place of each list of two texts that were probably meant as bounds."""
    for name, held in declared.items():
        if isinstance(held, list | tuple) and len(held) == 2 and all(isinstance(text, str) for text in held):
            one, other = (text.strip() for text in held)
            if (meant := _bounds_meant((one, other))) is not None:
                yield f"{named('schema')} {name!r} is a list of the two texts {one!r} and {other!r}; for {meant}"


def _bounds_meant(texts: Sequence[str]) -> str | None:
    """Return what two texts may have been meant as, and how that is written; None where they look like codes."""
    dates = ["-".join(part.zfill(2) for part in day.groups()[::-1]) if day else text
             for text in texts for day in [_DAY_FIRST.fullmatch(text)]]  # fmt: skip
    if all(isfinite(time_number(date, "date")) for date in dates):
        typed = f"write [{', '.join(dates)}], without quotation marks"
        return f"dates between them {typed if named('schema').startswith('[') else 'give two datetime.date'}"
    if any(map(_OPEN_MARK.fullmatch, texts)) and all(
        text.replace(".", "").replace(",", "").isdigit() for text in texts
    ):
        return "numbers between them write two numbers without quotation marks, such as [0, 120000]"
    low, high = map(number_with_comma, texts)
    if not (isfinite(low) and isfinite(high)) or abs(high - low) < _APART:
        return None
    plain = ", ".join(text.replace(",", ".") for text in texts)
    return f"numbers between them write [{plain}], without quotation marks"


def _category(name: str, held: Sequence[Any]) -> CategoryColumn:
    truth = isinstance(held[0], bool) or text_reader(held) is truth_text
    texts = [(truth_text if truth else canonical_text)(value) or "" for value in held]
    if "" in texts:
        raise _wrong(
            f": column {name!r} lists a value without any text, which is a missing value and has a cell of its "
            "own; leave it out"
        )
    if twice := [value for place, value in enumerate(texts) if value in texts[:place]]:
        raise _wrong(f": column {name!r} lists the value {twice[0]!r} twice; list each value once")
    if len(texts) > MOST_VALUES:
        raise _wrong(
            f": column {name!r} lists {len(texts):,} values, and at most {MOST_VALUES:,} are counted; join rare "
            'ones in the table, or write "drop"'
        )
    return CategoryColumn(tuple(texts), truth)


def _ends(held: Sequence[Any]) -> tuple[float, float] | None:
    """Read two numbers, or two dates as days; None where they are neither."""
    if len(held) == 2 and all(isinstance(bound, dt.date) for bound in held):
        low, high = (time_number(bound.isoformat(), "date") for bound in held)
        return low, high
    if len(held) == 2 and all(isinstance(bound, _NUMBERS) and not isinstance(bound, bool) for bound in held):
        try:
            return float(held[0]), float(held[1])
        except OverflowError:
            pass
    return None


def _bounds(held: Sequence[Any]) -> NumberColumn | None:
    """Read two numbers or two dates; None where they are neither, or bound nothing."""
    ends = _ends(held)
    if ends is None:
        return None
    low, high = ends
    grid: Grid = "int" if all(isinstance(bound, _WHOLE) for bound in held) else "real"
    if isinstance(held[0], dt.date):
        grid = "time" if any(isinstance(bound, dt.datetime) for bound in held) else "date"
    fits = isfinite(low) and isfinite(high) and low < high and isfinite(high - low)
    return NumberColumn(low, high, grid) if fits and isfinite(2.0**BOUNDED_DEPTH / (high - low)) else None
