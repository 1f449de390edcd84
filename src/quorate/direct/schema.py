"""What a row must look like, from the public side alone, and which private rows can be used.

Types, columns and units come from the pool. A private row is *usable* where each of its cells parses as what the
pool's column holds, its label is one of the declared classes, and it has a unit id where ids are given; any other row
is left out without a word, since a refusal would be an answer about it. Whether a row is usable depends on that row
and on public facts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data import columns, families, is_frame, kind, missing_columns, public_encoder, public_units, take, width
from quorate.data.column_kinds import ColumnKinds, GivenKinds, column_kinds
from quorate.data.columns import column as column_of
from quorate.data.columns import doubles, listed, refuse_other_columns
from quorate.data.declared import declared_columns
from quorate.data.feature_maps import FittedTransformer
from quorate.data.identity import as_list, is_missing, slot_bytes
from quorate.data.labels import Label, encode_labels
from quorate.data.rows import Rows, with_text_names
from quorate.data.summed_cells import summed_cells
from quorate.data.text_columns import refuse_without_text
from quorate.data.unit_keys import ListedKeys
from quorate.deferred import sparse
from quorate.direct.cells import (
    as_numbers,
    as_the_column,
    each,
    finite_rows,
    frame_like,
    is_plain_number,
    lists_of,
    number,
    number_with_comma,
    real,
    time_reader,
    word,
    writes_point,
)
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import FloatArray, IntArray

_LOOKED_AT = 48  # public rows that a transformer is asked for twice
_QUIET = np.errstate(all="ignore")  # a warning about what a private row holds would tell of it


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Columns of the pool, and the encoder that makes numbers of them.

    Attributes
    ----------
    pool : Rows
        The public rows, as given.
    encoder : transformer or None
        Fitted on the pool; None where rows are numbers without gaps.
    text : tuple of str
        Columns of running text that were named for the method: a row without a text in one of them cannot be used.
    kinds : ColumnKinds
        What each column is read as.
    """

    pool: Rows = field(repr=False)
    encoder: Any
    text: tuple[str, ...] = ()
    kinds: ColumnKinds = field(default_factory=ColumnKinds)

    @classmethod
    def of(
        cls,
        pool: Rows,
        *,
        transformer: Any = None,
        text: Sequence[str] = (),
        given: GivenKinds | None = None,
        ruled: bool = True,
    ) -> Schema:
        """Read the schema off the public pool.

        Parameters
        ----------
        pool : Rows
            Public rows.
        transformer : fitted transformer, optional
            What makes numbers of them in place of the public encoder.
        text : sequence of str
            Columns of running text, whose words are weighed.
        given : GivenKinds, optional
            What the owner says of columns.
        ruled : bool
            Whether the rule for kinds of columns is asked; runs that were begun before there was one go on without.

        Raises
        ------
        InvalidParameter, DataRefused
            If the transformer is not fitted or does not fit the pool, or a column of `text` holds none.
        """
        if transformer is not None:
            return cls._of_transformer(transformer, pool)
        if text:
            refuse_without_text(pool, text)
        kinds = _kinds(pool, text, given) if ruled else ColumnKinds(dict.fromkeys(text, "text"), frozenset())
        encoded = is_frame(pool) or (kind(pool) != "sparse" and bool(missing_columns(pool).any()))
        return cls(pool, public_encoder(kinds(pool), kinds.text) if encoded else None, tuple(text), kinds)

    @classmethod
    def _of_transformer(cls, transformer: Any, pool: Rows) -> Schema:
        if is_frame(pool):
            if times := [name for name, family in families(pool).items() if family == "time"]:
                raise InvalidParameter(f"columns {listed(times)} hold dates or times; turn them into numbers or text")
            pool = cls(pool, None).parsed(pool)[0]  # the types that private rows will have
        schema = cls(pool, FittedTransformer.of(transformer, pool))
        numbers = schema.numbers(pool)
        if not np.isfinite(numbers.data if _is_sparse(numbers) else numbers).all():
            raise InvalidParameter(
                f"feature_map: {type(transformer).__name__} fails on rows of the public pool, or makes of them what is "
                "not finite; mend them, or drop them"
            )
        some = np.arange(min(_LOOKED_AT, numbers.shape[0]))[::-1]
        again = schema.numbers(take(pool, some))
        if (again != numbers[some]).nnz if _is_sparse(numbers) else (again != numbers[some]).any():
            raise InvalidParameter(
                f"feature_map: {type(transformer).__name__} makes other numbers of a public row when it is asked "
                "again, so it keeps something between calls, and a private row could change what is made of others"
            )
        return schema

    @property
    def words(self) -> str:
        """What encoded rows are, in words."""
        return f"outputs of {self.encoder.name}" if isinstance(self.encoder, FittedTransformer) else "rows"

    @property
    def published_encoder(self) -> Any:
        """What a published model begins with, a scikit-learn transformer; None where rows are numbers already."""
        return self.encoder.transformer if isinstance(self.encoder, FittedTransformer) else self.encoder

    def _units(self) -> dict[int, tuple[float, float]]:
        """Mean and spread of the number columns that the encoder scales, by their place in the pool."""
        read = self.kinds(take(self.pool, [0]))
        names, there = columns(read), {name: at for at, name in enumerate(columns(self.pool) or ())}
        found = public_units(self.encoder, read)
        return found if names is None else {there[names[at]]: unit for at, unit in found.items()}

    @classmethod
    def without_pool(cls, X: Any, declared: Any = None) -> Schema:
        """Take the schema as it was declared, or read the number of columns off an array of numbers.

        Parameters
        ----------
        X : array or sparse matrix
            Private rows, of which the number of columns is public. A frame where the columns are declared.
        declared : mapping, optional
            What the columns hold, as :func:`~quorate.data.declared.declared_columns` takes it.

        Raises
        ------
        InvalidParameter
            If it is a frame without a declared schema, or has no columns: what its columns hold would be read off
            private rows.
        """
        if declared is not None:
            frame, encoder = declared_columns(declared)
            return cls(frame, encoder, kinds=ColumnKinds(commas=frozenset(frame.columns)))
        shape: Any = getattr(X, "shape", ())
        if hasattr(X, "columns") or len(shape) != 2 or not shape[1]:
            raise InvalidParameter(
                "without a public pool the rows must be an array of numbers or a sparse matrix: what the columns of a "
                "table hold, and how many a list has, is public, and cannot be read off private rows; give "
                'public=PublicPool(X_public), or declare it: schema={"age": [0, 120], "sex": ["F", "M"]}'
            )
        row = np.zeros((1, shape[1]))
        return cls(sparse.csr_matrix(row) if _is_sparse(X) else row, None)

    def formed(self, rows: Rows) -> Rows:
        """Return rows of the pool's kind as a published model takes them: dates as numbers, and no text missing."""
        return rows if self.encoder is None else self.kinds(rows)

    def numbers(self, rows: Rows) -> Any:
        """Return rows of the pool's kind as numbers: float64, dense or CSR."""
        encoded: Any = rows if self.encoder is None else self.encoder.transform(self.kinds(rows))
        if kind(encoded) == "sparse":
            return encoded.astype(np.float64, copy=False).tocsr()
        return np.asarray(encoded, np.float64)

    @_QUIET
    def parsed(self, X: Any, name: str = "X") -> tuple[Rows, NDArray[np.bool_]]:
        """Return private rows in the pool's kind and types, and which of them can be used.

        Raises
        ------
        DataRefused
            If the columns are not those of the pool; no cell is looked at for that.
        """
        if is_frame(self.pool):
            return self._parsed_frame(as_the_column(X, self.pool), name)
        rows: Any = real(X, name) if _is_sparse(X) else as_numbers(X, width(self.pool), name)
        if len(rows.shape) != 2 or rows.shape[1] != width(self.pool):
            raise DataRefused(f"{name} must have the pool's {width(self.pool)} columns; give both the same columns")
        if _is_sparse(rows):
            # First: two finite parts of a cell may sum to an infinite one. This is a copy, whatever the rows are.
            csr = summed_cells(rows.astype(np.float64, copy=False))
            csr.eliminate_zeros()  # a stored zero is none: what is done to a row next must not tell them apart
            odd = ~finite_rows(csr)
            if kind(self.pool) == "sparse":
                return csr, ~odd
            return (dense := csr.toarray()), ~odd & self._scalable(dense)
        usable: NDArray[np.bool_] = ~np.isinf(rows).any(axis=1) & self._scalable(rows)
        if self.encoder is None:
            usable &= ~np.isnan(rows).any(axis=1)
        return (sparse.csr_matrix(rows) if kind(self.pool) == "sparse" else rows), usable

    def _scalable(self, rows: FloatArray) -> NDArray[np.bool_]:
        """Tell which rows stay finite in the units of the pool; a missing value does."""
        fits = np.ones(len(rows), dtype=bool)
        for at, (mean, scale) in self._units().items():
            fits &= ~np.isinf((rows[:, at] - mean) / scale)
        return fits

    def _parsed_frame(self, X: Any, name: str) -> tuple[Rows, NDArray[np.bool_]]:
        if not is_frame(X):
            raise DataRefused(f"{name} is no data frame, but the public side tells of one; give a frame")
        X = with_text_names(X, name)
        names, wanted = columns(X) or (), columns(self.pool) or ()
        refuse_other_columns(names, wanted, called=(name, "the public pool"))
        usable = np.ones(X.shape[0], dtype=bool)
        parsed: dict[str, Any] = {}
        units, places = self._units(), {name: place for place, name in enumerate(names)}
        for at, (column, family) in enumerate(families(self.pool).items()):
            series = X[column] if kind(X) == "polars" else X.iloc[:, places[column]]
            as_kind = self.kinds.kinds.get(column)
            if family == "text":
                point = writes_point(as_list(column_of(self.pool, at)))
                parsed[column], fits = self._texts(as_list(series), as_kind, needed=column in self.text, point=point)
            else:
                times = family == "time" and as_kind in ("date", "time", "duration")
                if not times and is_plain_number(series):
                    values = doubles(series)
                    missing = np.isnan(values)
                else:
                    cells = as_list(series)
                    read = number_with_comma if column in self.kinds.commas else number  # as its owner declares them
                    values = np.array(each(time_reader(as_kind) if times else read, cells), np.float64)
                    missing = np.array([type(cell) is not str and is_missing(cell) for cell in cells], dtype=bool)
                parsed[column] = values
                mean, scale = units.get(at, (0.0, 1.0))
                fits = np.isfinite((values - mean) / scale) | missing
            if as_kind != "dropped":
                usable &= fits
        return frame_like(self.pool, parsed), usable

    def _texts(
        self, cells: list[Any], as_kind: str | None, *, needed: bool, point: bool
    ) -> tuple[list[Any], NDArray[np.bool_]]:
        """Return the cells of a text column, and which of them say something that its kind can read, or nothing."""
        words = each(partial(word, point=point), cells)
        fits = np.array([found is not None for found in words], dtype=bool)
        if as_kind in ("date", "time"):  # what stands for a missing number may be any text, and a date is a date
            fits &= np.isfinite(np.array(each(time_reader(as_kind), words), dtype=np.float64))
        missing = np.array([is_missing(cell) and not needed for cell in cells], dtype=bool)
        return words, fits | missing


def _kinds(pool: Rows, text: Sequence[str], given: GivenKinds | None) -> ColumnKinds:
    """Ask the rule, with the columns that were named for the method among those of running text."""
    given = given or GivenKinds()
    more = tuple(name for name in text if name not in given.text)
    return column_kinds(pool, replace(given, text=(*given.text, *more)))


def _is_sparse(X: Any) -> bool:
    return bool(sparse.issparse(X))


def codes_of_text(y: Any, classes: tuple[Label, ...]) -> IntArray:
    """Return the code of each label of a file in which every cell is text, and −1 where it is none of the classes.

    A whole number or a truth value may be written in any way that a table does; spaces around a name do not count.

    Examples
    --------
    >>> codes_of_text(["1", "1.0", " 0", "2", None], (0, 1)).tolist()
    [1, 1, 0, -1, -1]
    >>> codes_of_text(["true", "False"], (False, True)).tolist(), codes_of_text([" no", "NO"], ("no", "yes")).tolist()
    ([1, 0], [0, -1])
    """
    kind_ = type(classes[0])
    read: list[Any] = []
    for cell in as_list(y):
        if not isinstance(cell, str) or kind_ is str:
            read.append(cell.strip() if isinstance(cell, str) and cell not in classes else cell)
        elif kind_ is bool:
            read.append({"true": True, "false": False}.get(cell.strip().lower()))
        else:
            value = number(cell)
            read.append(int(value) if value.is_integer() else None)
    return codes_of(read, classes)


def codes_of(y: Any, classes: tuple[Label, ...]) -> IntArray:
    """Return the code of each label, and −1 where it is none of the declared classes.

    Examples
    --------
    >>> codes_of(["b", None, "c", "a"], ("a", "b")).tolist()
    [1, -1, -1, 0]
    """
    known: dict[tuple[type, Any], int] = {}
    codes = []
    for value in as_list(y):
        try:
            code = known.get((type(value), value))
        except Exception:  # noqa: BLE001 - a list, say
            codes.append(-1)
            continue
        if code is None:
            try:
                code = int(encode_labels([value], classes)[0])
            except Exception:  # noqa: BLE001 - what a label is decides on no refusal
                code = -1
            known[(type(value), value)] = code
        codes.append(code)
    return np.array(codes, dtype=np.int64)


def slots_of(groups: Any | None, n: int) -> tuple[Sequence[bytes], NDArray[np.bool_]]:
    """Return the slot of each row, and which rows have one; a row without a unit id has an empty slot."""
    if groups is None:
        return slot_bytes(None, n), np.ones(n, dtype=bool)
    known: dict[tuple[type, Any], int] = {}
    units: dict[bytes, int] = {}

    def place_of(value: Any) -> int:
        try:
            place = known.get((type(value), value))
            if place is None:
                place = known[(type(value), value)] = units.setdefault(slot_bytes([value], 1)[0], len(units))
        except Exception:  # noqa: BLE001 - nor does what an id is
            place = units.setdefault(b"", len(units))
        return place

    places = np.fromiter(map(place_of, chain.from_iterable(lists_of(groups))), dtype=np.int64)
    return ListedKeys(list(units), places), places != units.get(b"", -1)
