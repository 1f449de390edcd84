"""Row access that is the same for arrays, sparse matrices and data frames, and converts none of them.

A teacher gets the rows in the container its owner chose: a Pipeline written for a polars frame is fitted on
polars frames. Four kinds are known: ``numpy`` (2-D arrays), ``sparse`` (SciPy, compressed by rows), ``pandas``
and ``polars`` frames.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.data.stream import PartedFrame, StreamedFrame
from quorate.deferred import pd, pl, sparse
from quorate.errors import DataRefused

Kind: TypeAlias = Literal["numpy", "sparse", "pandas", "polars"]
Rows: TypeAlias = Any  # a 2-D numpy array, a SciPy CSR matrix or array, a pandas or a polars DataFrame

TEXT = "text"  # what the one column of bare texts is called
BEYOND = "a whole number is beyond the range of 64-bit floats"
_EXPECTED = "a 2-D array, a scipy.sparse matrix, a pandas or polars DataFrame, or an Arrow table"


def _is_sparse(X: object) -> bool:
    module = sys.modules.get("scipy.sparse")  # as with frames, below: no other rows take the time to load it
    return module is not None and bool(module.issparse(X))


def _is_frame(X: object, library: str) -> bool:
    if isinstance(X, (StreamedFrame, PartedFrame)):  # a polars frame that stays in its file
        return library == "polars"
    module = sys.modules.get(library)  # a frame can only exist where its library was imported
    return module is not None and isinstance(X, module.DataFrame)


def kind(X: Rows) -> Kind:
    """Name the container that holds the rows; DataRefused if it is none of the four kinds."""
    if isinstance(X, np.ndarray):
        return "numpy"
    if _is_sparse(X):
        return "sparse"
    if _is_frame(X, "polars"):
        return "polars"
    if _is_frame(X, "pandas"):
        return "pandas"
    raise DataRefused(f"the rows are of type {no_rows(X)}")


def is_frame(X: Rows) -> bool:
    """Tell whether the rows are a pandas or polars frame, whose columns have names."""
    return kind(X) in ("pandas", "polars")


def n_rows(X: Rows) -> int:
    """Count the rows. Of private rows this is private, unless ``n_records`` was declared."""
    return int(X.shape[0])


def width(X: Rows) -> int:
    """Count the columns, which are part of the public schema."""
    return int(X.shape[1])


def columns(X: Rows) -> tuple[str, ...] | None:
    """Name the columns of a frame, in order; None for arrays and sparse matrices."""
    return tuple(map(spoken_name, X.columns)) if is_frame(X) else None


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """Leave columns of a frame out that it may have; what is no frame comes back as it is."""
    if not names or not hasattr(X, "columns") or not is_frame(X):
        return X
    kept = [name for name in X.columns if name not in set(names)]
    return X.only(kept) if hasattr(X, "only") else X[kept]


def with_text_names(X: Any, name: str = "X") -> Any:
    """Return a frame whose columns are called as :func:`columns` says, once, where it comes in; anything else as it is.
    pandas takes numbers, or tuples, as names. Refuses two columns of one name; `name`: what messages call the table.
    """
    if not _is_frame(X, "pandas"):  # in a polars frame names are texts, and no two the same
        return X
    names = columns(X) or ()
    if len(set(names)) < len(names):
        twice = sorted({column for column in names if names.count(column) > 1})
        raise DataRefused(f"{name}: more than one column is called {twice[0]!r}; rename one of them")
    return X if all(type(column) is str for column in X.columns) else X.set_axis(list(names), axis=1)


def spoken_name(name: Any) -> str:
    """Return the text by which a column is called: its name's own, and that of several levels joined by "/"."""
    return "/".join(map(str, name)) if isinstance(name, tuple) else str(name)


def take(X: Rows, indices: NDArray[Any] | list[int]) -> Rows:
    """Pick rows by positions from 0, in the order given, or by a mask ``(n_rows,)``; the container's kind stays."""
    positions = np.asarray(indices)
    if positions.dtype == np.bool_:
        if positions.shape != (n_rows(X),):
            raise DataRefused("the mask does not have one entry per row")
        positions = np.flatnonzero(positions)
    positions = positions.astype(np.int64)
    match kind(X):
        case "pandas":
            return X.iloc[positions]
        case _:
            return X[positions]


def blocks(X: Rows, cells: int) -> Iterator[Rows]:
    """Yield the rows of a table that memory holds, about so many cells at a time."""
    step = max(1, cells // max(1, width(X)))
    for start in range(0, n_rows(X), step):
        yield X.iloc[start : start + step] if kind(X) == "pandas" else X[start : start + step]


def as_rows(X: Any, name: str = "X") -> Rows:
    """Take any 2-D table as one of the four kinds. Frames, numeric arrays and CSR matrices come back as they are, these
    where each cell is stored once and in order.

    Lists become float arrays; Arrow tables become polars frames; texts alone (a list, an array or a column of them)
    become a table of one column, ``text``; other sparse matrices become such CSR; arrays of Python objects become
    float arrays where every entry is a number, and so do floats of more than 64 bits. Columns of a frame are called by
    texts afterwards. `name`: what the message calls the table. DataRefused if it is not two-dimensional, has no row or
    no column, has two columns of the same name, or is an array that holds something else than real numbers.
    """
    X = texts_table(X) if holds_texts(X) else from_arrow(X)
    if _is_frame(X, "polars") or _is_frame(X, "pandas"):
        rows = with_text_names(X, name)
    elif _is_sparse(X):
        _refuse_dtype(X.dtype, name)
        rows = X if len(X.shape) != 2 or (X.format == "csr" and _is_plain(X)) else summed_cells(X)
        if _is_long(rows.dtype):
            with np.errstate(over="ignore"):
                rows = rows.astype(np.float64)
    elif X is None or isinstance(X, (str, bytes, dict, Iterator)) or hasattr(X, "collect") or hasattr(X, "to_table"):
        raise DataRefused(f"{name}: got {no_rows(X)}")
    else:
        rows = flat_images(_as_array(X, name))
    if len(rows.shape) != 2:
        raise DataRefused(
            f"{name}: expected a 2-D table, got {len(rows.shape)} dimension(s). Reshape your data: "
            "X.reshape(-1, 1) or X[[name]] for one feature, X.reshape(1, -1) for one row"
        )
    if width(rows) == 0:
        raise DataRefused(
            f"{name}: 0 feature(s) (shape=(, 0)) while a minimum of 1 is required; give at least one column"
        )
    if n_rows(rows) == 0:
        raise DataRefused(
            f"{name}: 0 sample(s) (shape=(0, {width(rows)})) while a minimum of 1 is required; give at least one row"
        )
    return rows


def no_rows(X: Any) -> str:
    """Say what something is that holds no rows in memory, and what to do with it."""
    if hasattr(X, "to_table"):  # a data set or a scanner of pyarrow
        how = ". Call to_table() on it, or name its folder as [data] private of a run, which reads it part by part"
    else:
        how = (
            ". Call collect() on it" if hasattr(X, "collect") else ". Read the file first" if isinstance(X, str) else ""
        )
    return f"{type(X).__name__}; expected {_EXPECTED}{how}"


def from_arrow(X: Any) -> Any:
    """Return a table that is handed over by Arrow's interface as a polars frame; anything else as it is."""
    if type(X).__module__.startswith("polars.") or _is_frame(X, "pandas") or not hasattr(X, "__arrow_c_stream__"):
        return X
    if not (hasattr(X, "schema") or hasattr(X, "columns")):  # one column
        return X
    return pl.DataFrame(pl.from_arrow(X))


def image_shape(X: Any) -> tuple[int, ...] | None:
    """Return the shape of one image, where these are an array of images: ``(n, h, w)`` or ``(n, h, w, c)``."""
    return X.shape[1:] if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and X.ndim in (3, 4) else None


def flat_images(X: Any) -> Any:
    """Return images as rows of pixels, line by line; anything else as it is."""
    return X if image_shape(X) is None else X.reshape(len(X), -1)


def holds_texts(X: Any) -> bool:
    """Tell whether these are texts, one a row: a list, a 1-D array, or a column of pandas or polars."""
    if isinstance(X, (list, tuple)):
        return any(isinstance(value, str) for value in X) and not any(
            hasattr(value, "__len__") and not isinstance(value, str) for value in X
        )
    dtype, dimensions = getattr(X, "dtype", None), getattr(X, "ndim", 1)
    if dtype is None or dimensions != 1 or sparse.issparse(X):
        return False
    if isinstance(X, np.ndarray):
        return dtype.kind == "U" or (dtype.kind == "O" and holds_texts(X.tolist()))
    if not hasattr(X, "to_list"):
        return False
    return str(dtype) in ("String", "str", "string", "Categorical", "category") or (
        str(dtype) == "object" and holds_texts(X.to_list())
    )


def texts_table(X: Any) -> Rows:
    """Return texts as a polars frame of one column, ``text``; what is no text is missing."""
    cells = X.to_list() if hasattr(X, "to_list") else X.tolist() if hasattr(X, "tolist") else list(X)
    read = [str(cell) if isinstance(cell, str) else None for cell in cells]
    return pl.DataFrame({TEXT: pl.Series(TEXT, read, dtype=pl.String)})


def texts_like(X: Any, pool: Rows) -> Any:
    """Return bare texts as the one column that the public pool has; anything else as it is."""
    if not (holds_texts(X) and is_frame(pool) and width(pool) == 1):
        return X
    table = texts_table(X).rename({TEXT: str(pool.columns[0])})
    if kind(pool) == "polars":
        return table
    return pd.DataFrame({pool.columns[0]: pd.Series(table.to_series().to_list(), dtype=object)})


def _as_array(X: Any, name: str) -> NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray):
        raise DataRefused(f"{name}: a masked array hides what is under its mask; fill it with NaN first")
    try:
        array = np.asarray(X)
    except ValueError:
        raise DataRefused(f"{name}: the rows differ in length; expected {_EXPECTED}") from None
    if array.dtype == object:
        try:
            with np.errstate(over="ignore"):  # what becomes infinite is refused as such
                array = array.astype(np.float64)
        except OverflowError:
            where = ", ".join(str(place) for place in range(array.shape[-1]) if _overflows(array[..., place]))
            raise DataRefused(f"{name}: {BEYOND} in column {where}; leave it out, or give a DataFrame") from None
        except (TypeError, ValueError):
            raise DataRefused(f"{name}: an array holds something else than numbers; give a DataFrame") from None
    _refuse_dtype(array.dtype, name)
    if _is_long(array.dtype):
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    return array if isinstance(X, np.ndarray) else array.astype(np.float64)


def _overflows(values: NDArray[Any]) -> bool:
    try:
        values.astype(np.float64)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False
    return False


def _is_long(dtype: np.dtype[Any]) -> bool:
    return bool(dtype.kind == "f" and dtype.itemsize > np.dtype(np.float64).itemsize)


def _refuse_dtype(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind == "c":
        raise DataRefused(f"{name}: Complex data not supported; expected real numbers")
    if dtype.kind not in "biuf":
        raise DataRefused(f"{name}: an array of dtype {dtype} does not hold numbers; give a DataFrame")


def is_plain_float_matrix(X: Any) -> bool:
    """Whether these are finite float64 rows, dense or CSR: all that is computed without an estimator's own checks."""
    if kind(X) == "sparse":
        return bool(X.format == "csr" and X.dtype == np.float64 and np.isfinite(X.data).all())
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype == np.float64 and bool(np.isfinite(X).all())


def summed_cells(rows: Any) -> Any:
    """Return rows as CSR, columns in order, each cell once: the sum of its parts, one after another as they are stored.

    Where an index is no column, its row holds what is infinite. Each row is a function of that row alone: SciPy's own
    sums first sort the columns of all rows if those of *any* row are out of order, which may swap the parts of a cell,
    and three floats in another order differ in their last bit.
    """
    if rows.format == "csr" and _is_plain(rows):
        return rows.copy()  # what follows would return no other
    if rows.format in ("csr", "csc"):
        compressed = rows.tocsr()  # sums nothing
        whose = np.repeat(np.arange(rows.shape[0]), np.diff(compressed.indptr))
        where, values = compressed.indices, compressed.data
    else:
        stored = rows.tocoo()
        whose, where, values = stored.row, stored.col, stored.data
    outside = (where < 0) | (where >= rows.shape[1])  # which nothing would look for
    if outside.any():
        where, values = np.where(outside, 0, where), np.where(outside, np.inf, values)
    order = np.lexsort((where, whose))  # stable: parts of a cell stay in the order they are stored in
    whose, where, values = whose[order], where[order], values[order]
    first = np.ones(len(values), dtype=bool)
    first[1:] = (whose[1:] != whose[:-1]) | (where[1:] != where[:-1])
    sums = values[first]
    np.add.at(sums, (np.cumsum(first) - 1)[~first], values[~first])
    starts = np.concatenate([[0], np.cumsum(np.bincount(whose[first], minlength=rows.shape[0]))])
    form = sparse.csr_array if isinstance(rows, sparse.sparray) else sparse.csr_matrix
    return form((sums, where[first], starts), shape=rows.shape)


def _is_plain(rows: Any) -> bool:
    """Tell whether every index is a column, and each row's are in order, each once."""
    where = rows.indices
    if not len(where):
        return True
    rising = where[1:] > where[:-1]
    starts = rows.indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(where))] - 1] = True
    return bool(rising.all() and where.min() >= 0 and where.max() < rows.shape[1])
