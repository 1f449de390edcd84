"""What a row must look like, from the public side alone, and which private rows can be used.

Types, columns and units come from the pool. A private row is *usable* where each of its cells parses as what the
pool's column holds, its label is one of the declared classes, and it has a unit id where ids are given; any other row
is left out without a word, since a refusal would be an answer about it. Whether a row is usable depends on that row
and on public facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data import (
    PublicPool,
    columns,
    families,
    is_frame,
    kind,
    missing_columns,
    public_encoder,
    public_units,
    take,
    width,
)
from quorate.data.cell_text import as_list, each, is_missing, one_column
from quorate.data.column_cells import PublicWords
from quorate.data.column_kinds import MISSING_MARKS, ColumnKinds, GivenKinds, column_kinds
from quorate.data.columns import column as column_of
from quorate.data.columns import doubles, is_plain_number, listed, texts
from quorate.data.declared_schema import CategoryColumn, NumberColumn
from quorate.data.declared_schema import Schema as DeclaredSchema
from quorate.data.dialect import PLAIN, UNREADABLE, Dialect
from quorate.data.encoding import indicator_blocks, refuse_without_text
from quorate.data.feature_maps import FittedTransformer
from quorate.data.identity import is_same_object
from quorate.data.notation import number, number_with_comma, time_reader
from quorate.data.rows import Rows, from_arrow, summed_cells, with_text_names
from quorate.data.schema_encoder import declared_columns, declared_kinds, encoder_of, kinds_of
from quorate.data.shared_schema import SCHEMA, refuse_other_columns
from quorate.data.unit_ids import refuse_floating_ids
from quorate.deferred import sparse
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.run.cells import as_numbers, as_the_column, finite_rows, frame_like, real
from quorate.types import FloatArray

POOL_IS_STATED = (
    "that nobody's private row is in the public pool is the owner's statement: the rows of both were not compared, "
    "since the answer would tell of private rows"
)
LINE_BREAKS_ARE_STATED = (
    "that every quotation mark within a cell of a text table is doubled (RFC 4180) is the owner's statement, by "
    "line_breaks = true: where one is not, a cell of one unit may take in rows of others"
)
_LOOKED_AT = 48  # public rows that a transformer is asked for twice
_QUIET = np.errstate(all="ignore")  # a warning about what a private row holds would tell of it


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Columns of the pool, and the encoder that makes numbers of them; None where rows are numbers without gaps.
    `text`: without which a row cannot be used. `declared`: where there is no pool. `called`: by a message.
    """

    pool: Rows = field(repr=False)
    encoder: Any
    text: tuple[str, ...] = ()
    kinds: ColumnKinds = field(default_factory=ColumnKinds)
    declared: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    called: str = "the public pool"
    _asked: list[Any] = field(default_factory=list, init=False, repr=False)  # numbers of the pool, once asked for

    @classmethod
    def of(
        cls, pool: Rows, *, transformer: Any = None, text: Sequence[str] = (), given: GivenKinds | None = None
    ) -> Schema:
        """Read the schema off the public pool; `given`: what the owner says of columns; `transformer`: has to fit."""
        if transformer is not None:
            return cls._of_transformer(transformer, pool)
        if text:
            refuse_without_text(pool, text)
        kinds = _kinds(pool, text, given)
        encoded = is_frame(pool) or (kind(pool) != "sparse" and bool(missing_columns(pool).any()))
        return cls(pool, public_encoder(kinds(pool), kinds.text) if encoded else None, tuple(text), kinds)

    @classmethod
    def _of_transformer(cls, transformer: Any, pool: Rows) -> Schema:
        if is_frame(pool):
            if times := [name for name, family in families(pool).items() if family == "time"]:
                raise InvalidParameter(f"columns {listed(times)} hold dates or times; turn them into numbers or text")
            pool = cls(pool, None).parsed(pool)[0]  # the types that private rows will have
        words = ColumnKinds(words=column_kinds(pool).words)
        schema = cls(pool, FittedTransformer.of(transformer, pool), kinds=words)
        numbers = schema.numbers(pool)
        if not np.isfinite(numbers.data if _is_sparse(numbers) else numbers).all():
            raise InvalidParameter(
                f"feature_map: {type(transformer).__name__} fails on rows of the public pool, or makes of them what is "
                "not finite; mend them, or drop them"
            )
        some = np.arange(min(_LOOKED_AT, numbers.shape[0]))[::-1]
        repeated = schema.numbers(take(pool, some))
        if (repeated != numbers[some]).nnz if _is_sparse(numbers) else (repeated != numbers[some]).any():
            raise InvalidParameter(
                f"feature_map: {type(transformer).__name__} makes other numbers of a public row when it is asked "
                "again, so it keeps something between calls, and a private row could change what is made of others"
            )
        return schema

    def with_words_as_written(self) -> Schema:
        """The same schema, its categories told apart however an entry is written, as in runs that were begun before."""
        kinds, encoder = replace(self.kinds, words={}), self.encoder
        if not (self.declared or isinstance(encoder, FittedTransformer)) and self.kinds.respells(self.pool):
            encoder = public_encoder(kinds(self.pool), kinds.text)
        return replace(self, kinds=kinds, encoder=encoder)

    @property
    def words(self) -> str:
        """What encoded rows are, in words."""
        return f"outputs of {self.encoder.name}" if isinstance(self.encoder, FittedTransformer) else "rows"

    @property
    def published_encoder(self) -> Any:
        """What a published model begins with, a scikit-learn transformer; None where rows are numbers already."""
        return self.encoder.transformer if isinstance(self.encoder, FittedTransformer) else self.encoder

    @property
    def indicator_blocks(self) -> tuple[tuple[int, int], ...]:
        """The first and one past the last encoded column of each column of categories."""
        return indicator_blocks(self.encoder)

    def _units(self) -> dict[int, tuple[float, float]]:
        """Mean and spread of the number columns that the encoder scales, by their place in the pool."""
        read = self.kinds(take(self.pool, [0]))
        names, places = columns(read), {name: at for at, name in enumerate(columns(self.pool) or ())}
        units = public_units(self.encoder, read)
        return units if names is None else {places[names[at]]: unit for at, unit in units.items()}

    @classmethod
    def without_pool(cls, X: Any, declared: Any = None, dialect: Dialect = PLAIN) -> Schema:
        """Take the declared schema, or an array's number of columns; a frame alone would be read off private rows."""
        if declared is not None:
            frame, encoder = declared_columns(declared)
            kinds = declared_kinds(declared, dialect)
            return cls(frame, encoder, kinds=kinds, declared=declared, called=SCHEMA)
        shape: Any = getattr(X, "shape", ())
        if hasattr(X, "columns") or len(shape) != 2 or not shape[1]:
            raise InvalidParameter(
                "without a public pool the rows must be an array of numbers or a sparse matrix: what the columns of a "
                "table hold, and how many a list has, is public, and cannot be read off private rows; give "
                'public=PublicPool(X_public), or declare it: schema={"age": [0, 120], "sex": ["F", "M"]}'
            )
        row = np.zeros((1, shape[1]))
        return cls(sparse.csr_matrix(row) if _is_sparse(X) else row, None)

    @classmethod
    def of_declared(cls, declared: DeclaredSchema, pool: Rows, dialect: Dialect = PLAIN) -> Schema:
        """Take the schema as it was declared, for rows that were drawn for it; `dialect`: of private cells."""
        kinds, held = kinds_of(declared, dialect), declared.columns.items()
        lists = {name: column.texts for name, column in held if isinstance(column, CategoryColumn)}
        bounds = {name: (column.low, column.high) for name, column in held if isinstance(column, NumberColumn)}
        said = {**lists, **{name: both for name, both in bounds.items() if None not in both}}
        return cls(pool, encoder_of(declared, kinds(pool)), kinds=kinds, declared=said, called=SCHEMA)

    def numbers(self, rows: Rows) -> Any:
        """Return rows of the pool's kind as float64 numbers, dense or CSR, of an own transformer, too."""
        if rows is not self.pool or not isinstance(self.encoder, FittedTransformer):
            return self._encoded(rows)
        if not self._asked:
            self._asked.append(self._encoded(rows))
        return self._asked[0].copy()

    def _encoded(self, rows: Rows) -> Any:
        encoded: Any = rows if self.encoder is None else self.encoder.transform(self.kinds(rows))
        if kind(encoded) == "sparse":
            return encoded.astype(np.float64, copy=False).tocsr()
        return np.asarray(encoded, np.float64)

    @_QUIET
    def parsed(self, X: Any, name: str = "X") -> tuple[Rows, NDArray[np.bool_]]:
        """Return private rows in the pool's kind and types, and which of them can be used. Raises DataRefused if the
        columns are not those of the pool; no cell is looked at for that.
        """
        rows, _, usable = self.judged(X, name)
        return rows, usable

    @_QUIET
    def judged(self, X: Any, name: str = "X") -> tuple[Rows, Sequence[NDArray[np.bool_]], NDArray[np.bool_]]:
        """Return private rows as :meth:`parsed`, which cells of each column are usable or missing, and which rows are
        usable; of sparse rows no cell is judged by itself.
        """
        X = from_arrow(X)
        if is_frame(self.pool):
            return self._judged_frame(as_the_column(X, self.pool), name)
        rows: Any = real(X, name) if _is_sparse(X) else as_numbers(X, width(self.pool), name)
        if len(rows.shape) != 2 or rows.shape[1] != width(self.pool):
            raise DataRefused(f"{name} must have the pool's {width(self.pool)} columns; give both the same columns")
        if _is_sparse(rows):
            # First: two finite parts of a cell may sum to an infinite one. This is a copy, whatever the rows are.
            csr = summed_cells(rows.astype(np.float64, copy=False))
            csr.eliminate_zeros()  # a stored zero is none: what is done to a row next must not tell them apart
            odd = ~finite_rows(csr)
            if kind(self.pool) == "sparse":
                return csr, (), ~odd
            fits = self._scalable(dense := csr.toarray())
            return dense, tuple((fits & np.isfinite(dense)).T), ~odd & fits.all(axis=1)
        fits = ~np.isinf(rows) & self._scalable(rows)
        usable: NDArray[np.bool_] = fits.all(axis=1)
        if self.encoder is None:
            usable &= ~np.isnan(rows).any(axis=1)
        return (sparse.csr_matrix(rows) if kind(self.pool) == "sparse" else rows), tuple(fits.T), usable

    def _scalable(self, rows: FloatArray) -> NDArray[np.bool_]:
        """Tell which cells stay finite in the units of the pool; a missing value does."""
        fits = np.ones(rows.shape, dtype=bool)
        for at, (mean, scale) in self._units().items():
            fits[:, at] = ~np.isinf((rows[:, at] - mean) / scale)
        return fits

    def _judged_frame(self, X: Any, name: str) -> tuple[Rows, list[NDArray[np.bool_]], NDArray[np.bool_]]:
        if not (hasattr(X, "columns") and is_frame(X)):
            raise DataRefused(
                f"{named(name)} has no names of columns, and the public side has; give a data frame, or a file that "
                "names them"
            )
        X = with_text_names(X, name)
        names, wanted = columns(X) or (), columns(self.pool) or ()
        refuse_other_columns(names, wanted, called=(name, self.called))
        usable = np.ones(X.shape[0], dtype=bool)
        parsed: dict[str, Any] = {}
        judged = []
        units, places = self._units(), {name: place for place, name in enumerate(names)}
        for at, (column, family) in enumerate(families(self.pool).items()):
            series = X[column] if kind(X) == "polars" else X.iloc[:, places[column]]
            as_kind = self.kinds.kinds.get(column)
            if family == "text":
                cells = as_list(series)
                words = each(self.kinds.words.get(column) or PublicWords.of(self._public_texts(column, at)), cells)
                parsed[column], fits = self._texts(words, cells, as_kind, needed=column in self.text)
            else:
                parsed[column], missing = self._values(series, family, column)
                mean, scale = units.get(at, (0.0, 1.0))
                fits = np.isfinite((parsed[column] - mean) / scale) | missing
            judged.append(fits)
            if as_kind != "dropped":
                usable &= fits
        return frame_like(self.pool, parsed), judged, usable

    def _values(self, series: Any, family: str, column: str) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the numbers of a column of numbers or times, and which of its cells are missing."""
        as_kind = self.kinds.kinds.get(column)
        times = family == "time" and as_kind in ("date", "time", "duration")
        if not times and is_plain_number(series):
            values = doubles(series)
            return values, np.isnan(values)
        cells = as_list(series)
        read: Callable[[Any], float] = number_with_comma if column in self.kinds.commas else number
        if self.kinds.dialect.declares_numbers:
            read = self.kinds.dialect.cell_number
        values = np.array(each(time_reader(as_kind, self.kinds.dialect.date) if times else read, cells), np.float64)
        return values, np.array([type(cell) is not str and is_missing(cell) for cell in cells], dtype=bool)

    def _public_texts(self, column: str, at: int) -> Sequence[str | None]:
        """Return the public entries of a text column, by its name and its place in the pool."""
        return self.declared.get(column) or texts(column_of(self.pool, at))

    def categories(self) -> dict[int, frozenset[str]]:
        """Return the public entries of each column of categories, by its place in the pool."""
        return {
            at: frozenset(text for text in self._public_texts(column, at) if text is not None)
            for at, (column, family) in enumerate(families(self.pool).items())
            if family == "text" and self.kinds.kinds.get(column) in (None, "category")
        }

    def bounds(self) -> dict[int, tuple[float, float]]:
        """Return the declared bounds of each column that has some, by its place in the pool; of dates in days."""
        held = [(at, self.declared.get(name)) for at, name in enumerate(columns(self.pool) or ())]
        return {at: (both[0], both[1]) for at, both in held if both and not isinstance(both[0], str)}

    def unread(self, rows: Rows) -> dict[int, int]:
        """Count the texts of parsed rows that are no number in a column of numbers, by its place, and are missing."""
        if not is_frame(self.pool):
            return {}
        texts_ = {name: at for at, (name, family) in enumerate(families(self.pool).items()) if family == "text"}
        if not (numbers := [name for name in self.kinds.of("number") if name in texts_]):
            return {}
        read = self.kinds(rows)
        places = {name: at for at, name in enumerate(columns(read) or ())}
        lost = {}
        for name in numbers:
            cells = texts(column_of(rows, texts_[name]))
            present = np.array([(cell or "na").strip().lower() not in MISSING_MARKS for cell in cells], dtype=np.bool_)
            lost[texts_[name]] = int((np.isnan(doubles(column_of(read, places[name]))) & present).sum())
        return lost

    def _texts(
        self, words: list[str | None], cells: list[Any], as_kind: str | None, *, needed: bool
    ) -> tuple[list[Any], NDArray[np.bool_]]:
        """Return the words of a text column, and which of its cells its kind can read, or are missing."""
        fits = np.array([word is not None and UNREADABLE not in word for word in words], dtype=bool)
        if as_kind in ("date", "time"):  # what stands for a missing number may be any text, and a date is a date
            fits &= np.isfinite(np.array(each(time_reader(as_kind, self.kinds.dialect.date), words), dtype=np.float64))
        missing = np.array([is_missing(cell) and not needed for cell in cells], dtype=bool)
        return words, fits | missing


def _kinds(pool: Rows, text: Sequence[str], declared: GivenKinds | None) -> ColumnKinds:
    """Ask the rule, with the columns that were named for the method among those of running text."""
    declared = declared or GivenKinds()
    more = tuple(name for name in text if name not in declared.text)
    return column_kinds(pool, replace(declared, text=(*declared.text, *more)))


def _is_sparse(X: Any) -> bool:
    return bool(sparse.issparse(X))


def check_pool(public: Any) -> PublicPool:
    """Return the pool, or refuse what is none."""
    if isinstance(public, PublicPool):
        return public
    if public is None:
        raise InvalidParameter(
            "neither public= nor schema= is given; give public=PublicPool(X_public), or, without public rows, "
            "schema={...}, which says what each column holds"
        )
    raise InvalidParameter(
        f"public must be a PublicPool, got {type(public).__name__}; write public=PublicPool(X_public), so that "
        "model selection cannot cut it along private folds"
    )


def refuse_forms(X: Any, y: Any, groups: Any, public: PublicPool | None) -> None:
    """Refuse what the objects themselves tell, whatever they hold."""
    if public is not None and is_same_object(X, public.rows()):
        raise DataRefused(
            "the public pool is the private table itself or a part of it, and the pool is published, in effect. Give "
            "public rows, about nobody in the private table"
        )
    if public is not None:
        public.refuse_images(X)
    if y is None or not hasattr(y, "__iter__"):
        requires = (
            "this estimator requires y to be passed, but the target y is None"
            if y is None
            else f"got {type(y).__name__}"
        )
        raise DataRefused(f"y: {requires}; give one label for every row")
    one_column(y, "y")
    if groups is not None:
        one_column(groups, "groups", entry="unit id")
    refuse_floating_ids(groups)
