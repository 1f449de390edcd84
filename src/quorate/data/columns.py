"""What the columns of a table hold, and what is refused about them before anything is fitted or charged.

The schema is public: names, order, and the family of each column (numbers, text, times). A message names a column and
the kind of fault, never a row, a value or how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.data.cell_text import (
    OUT_OF_RANGE,
    canonical_text,
    category_texts,
    is_missing,
    pandas_values,
    polars_values,
)
from quorate.data.rows import BEYOND, Rows, as_rows, blocks, columns, is_frame, kind, texts_like, width
from quorate.deferred import pd, pl
from quorate.errors import DataRefused

Family: TypeAlias = Literal["number", "text", "time", "missing"]

_PANDAS_OBJECT: dict[str, Family] = {
    "string": "text",
    "categorical": "text",
    "boolean": "number",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "datetime": "time",
    "datetime64": "time",
    "date": "time",
    "time": "time",
    "timedelta": "time",
    "empty": "missing",
}
_SHOWN = 8  # names in a message
_NEITHER = "that are none of numbers, text, truth values and dates, as intervals and periods are; write them as text"
_BLOCK_CELLS = 1 << 22  # cells looked at together: 32 MiB of float64


def nearest(name: str, known: Iterable[str]) -> str:
    """Word a hint for a name that is not known: the nearest one, or what there is."""
    known = list(known)
    close = get_close_matches(name, known, n=1)
    if not close:  # a difference of case alone
        close = [other for other in known if other.casefold() == name.casefold()][:1]
    return f"; did you mean {close[0]!r}?" if close else f"; known: {listed(known)}"


def listed(names: Sequence[str]) -> str:
    """Quote names for a message, the first few of them."""
    quoted = ", ".join(repr(name) for name in names[:_SHOWN])
    return quoted if len(names) <= _SHOWN else f"{quoted} and {len(names) - _SHOWN} more"


def names_columns(line: Sequence[str], public: Sequence[str]) -> bool:
    """Tell whether the first line of a table names its columns: the public names all stand in it, or half of those that
    could be no number. Nothing else of a private first line may be quoted.
    """
    held, words = set(line), {name for name in public if not name.strip().lstrip("+-").replace(".", "", 1).isdigit()}
    return bool(public) and (held.issuperset(public) or (bool(words) and 2 * len(held & words) >= len(words)))


def column(X: Rows, position: int) -> Any:
    """Return one column of a frame as a series of its own library."""
    return X.iloc[:, position] if hasattr(X, "iloc") else X.to_series(position)


def families(X: Rows) -> dict[str, Family]:
    """Tell whether each column of a frame, in order, holds "number", "text" or "time", or is "missing": without any
    value.

    Truth values are numbers, categories are text. DataRefused if a column holds something else (lists, structures,
    bytes, mixed types).
    """
    if (names := columns(X)) is None:
        return {}
    if not hasattr(X, "iloc"):  # polars
        return {name: _polars_family(dtype, name) for name, dtype in zip(names, X.dtypes, strict=True)}
    return {
        # To take a column of pandas out of its frame takes longer than all the rest, and seldom tells more.
        name: "number" if _is_plain_number(dtype) else _pandas_family(column(X, position), name)
        for position, (name, dtype) in enumerate(zip(names, X.dtypes.tolist(), strict=True))
    }


def text_columns(X: Rows) -> tuple[str, ...]:
    """Name the text columns of a frame; none of an array."""
    return tuple(name for name, family in families(X).items() if family == "text")


def _is_plain_number(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _polars_family(dtype: Any, name: str) -> Family:
    if dtype.is_numeric() or dtype == pl.Boolean:
        return "number"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    if dtype.is_temporal():
        return "time"
    if dtype == pl.Null:
        return "missing"
    raise DataRefused(f"column {name!r} is of type {dtype}; expected numbers, text, truth values or dates")


def _pandas_family(series: Any, name: str) -> Family:
    types, dtype = pd.api.types, series.dtype
    words = types.is_string_dtype(dtype) and dtype.kind == "O" and str(dtype) != "object"
    if words:
        return "text"
    if isinstance(dtype, types.CategoricalDtype):
        if any(_says_nothing(value) for value in pandas_values(series.cat.categories)):
            raise DataRefused(f"column {name!r} has categories {_NEITHER}")
        return "text"
    if types.is_bool_dtype(dtype) or (types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)):
        return "number"
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "time"
    family = _PANDAS_OBJECT.get(types.infer_dtype(series, skipna=True))
    if family is None:  # NaT may be taken for a time
        present = [value for value in series.tolist() if not is_missing(value)]
        family = _PANDAS_OBJECT.get(types.infer_dtype(present, skipna=False))
    if family is None:
        raise DataRefused(f"column {name!r} mixes types, or holds entries {_NEITHER}")
    return family


def _says_nothing(category: Any) -> bool:
    """Whether no cell of a category says anything, as of an interval; a date out of range is refused as such."""
    return not isinstance(category, str) and category is not OUT_OF_RANGE and canonical_text(category) is None


def doubles(series: Any) -> NDArray[np.float64]:
    """Return a number column as 64-bit floats: truth values are 0 and 1, a missing value is NaN. OverflowError for a
    whole number beyond them, which :func:`~quorate.data.check_features` refuses.
    """
    if hasattr(series, "cast"):  # polars
        numbers = series.cast(pl.Float64)
        if numbers.null_count():  # to fill takes longer than all the rest
            numbers = numbers.fill_null(float("nan"))
        return np.asarray(numbers.to_numpy(), dtype=np.float64)
    if series.dtype.kind in "Ob":  # Python objects, and truth values that pandas does not turn into floats
        return np.asarray(series.astype(object).where(series.notna(), np.nan), dtype=np.float64)
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)


def is_plain_number(series: Any) -> bool:
    """Tell by its type whether a column's values are floats, or missing, once they are made such: no object is one."""
    if hasattr(series, "to_physical"):  # polars
        return bool(series.dtype.is_integer() or series.dtype.is_float()) and "128" not in str(series.dtype)
    dtype: Any = getattr(series, "dtype", None)
    return _is_plain_number(dtype) and dtype.itemsize <= np.dtype(np.float64).itemsize


def texts(series: Any) -> list[str | None]:
    """Return a text or time column as text, times by their ISO form, None for missing; refuse, without a quote, dates
    and durations that Python cannot hold.
    """
    if hasattr(series, "cast"):  # polars
        if not series.dtype.is_temporal():
            words: list[str | None] = series.cast(pl.String).to_list()
            return words
        return _as_texts(polars_values(series), series.is_null().to_list(), series.name)
    if type(series.dtype).__name__ == "CategoricalDtype":
        held = pandas_values(series.cat.categories)
        _refuse_out_of_range((held[code] for code in set(series.cat.codes) if code >= 0), series.name)
        return category_texts(series.cat)
    return _as_texts(pandas_values(series), series.isna().tolist(), series.name)


def _as_texts(values: list[Any], absent: list[bool], name: Any) -> list[str | None]:
    _refuse_out_of_range(values, name)
    return [None if gone else as_text(value) for value, gone in zip(values, absent, strict=True)]


def _refuse_out_of_range(values: Iterable[Any], name: Any) -> None:
    if any(value is OUT_OF_RANGE for value in values):
        raise DataRefused(
            f"column {str(name)!r} holds a date or a duration beyond the years 1 to 9999, as one "
            "written in another unit has; mend it, or drop the column"
        )


def as_text(value: Any) -> str:
    """Write one value down: a time by its ISO form, a duration as its seconds."""
    if isinstance(value, str):
        return value
    if hasattr(value, "total_seconds"):  # durations first: those of pandas have both
        return repr(float(value.total_seconds()))
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def feature_families(X: Rows) -> tuple[Family, ...]:
    """Return the family of every column of any table; the columns of arrays are numbers."""
    if is_frame(X):
        return tuple(families(X).values())
    return tuple("number" for _ in range(width(X)))


def in_words(names: Sequence[str]) -> str:
    """Name one column or several."""
    return f"column{'s' * (len(names) > 1)} {listed(names)}"


def check_features(X: Any, name: str = "X", *, allow_missing: bool = False, pool: Rows | None = None) -> Rows:
    """Take a table of features as one of the four kinds of rows, or refuse it as a whole.

    `X`: see :func:`~quorate.data.rows.as_rows`. Of a frame, only what no model can be given is looked for: text, times,
    missing and infinite values are for the steps of a Pipeline to read. `allow_missing`: whether NaN may stand in an
    array; infinite values never may. `pool`: public rows, as whose one column bare texts are read. DataRefused, by the
    table's `name`, if it is not two-dimensional, not numeric (and not a frame), or not finite; or if a whole number is
    beyond the floats.
    """
    rows = as_rows(X if pool is None else texts_like(X, pool), name)
    if is_frame(rows):
        _refuse_beyond(rows, name)
        return rows
    refuse_infinite(rows, name)
    if not allow_missing:
        refuse_missing(rows, name=name, taker="this model")
    return rows


def refuse_infinite(X: Rows, name: str = "X") -> None:
    """Refuse infinite numbers, with DataRefused that names the columns; not the rows, nor how many."""
    infinite = _columns_where(X, np.isinf)
    if infinite.any():
        raise DataRefused(f"{name}: Input contains infinity in {named(X, infinite)}; expected finite numbers")


def refuse_larger(X: Rows, largest: float, *, name: str = "X", taker: str) -> None:
    """Refuse numbers beyond the largest that a kind of model holds; columns are named, not rows, nor how many."""
    chosen = _columns_where(X, lambda values: np.abs(values) > largest)
    if chosen.any():
        raise DataRefused(
            f"{name}: a number in {named(X, chosen)} is larger than {taker} holds; expected at most {largest:.3g} in "
            "size"
        )


def _refuse_beyond(X: Rows, name: str) -> None:
    """Refuse a column of Python objects with a whole number that no float can hold."""
    if not hasattr(X, "iloc"):
        return  # polars has no such number
    beyond = np.zeros(width(X), dtype=np.bool_)
    for place, family in enumerate(families(X).values()):
        series = column(X, place)
        if family == "number" and series.dtype.kind == "O":
            try:
                doubles(series)
            except OverflowError:
                beyond[place] = True
    if beyond.any():
        raise DataRefused(f"{name}: {BEYOND} in {named(X, beyond)}; write it as text, or drop it")


def missing_columns(X: Rows) -> NDArray[np.bool_]:
    """Tell which columns have a missing value (NaN, or null in a frame) somewhere, ``(n_features,)``."""
    if not is_frame(X):
        return _columns_where(X, np.isnan)
    if hasattr(X, "iloc"):  # pandas
        return np.asarray(X.isna().any(axis=0), dtype=np.bool_)
    series = [column(X, position) for position in range(width(X))]
    return np.array([s.null_count() > 0 or (s.dtype.is_float() and s.is_nan().any()) for s in series], dtype=bool)


def refuse_missing(
    X: Rows, *, name: str = "X", taker: str, advice: str = "fill or drop the column, or give a Pipeline that imputes"
) -> None:
    """Refuse missing values that `taker` cannot take, with DataRefused that names the columns; not the rows, nor how
    many.
    """
    missing = missing_columns(X)
    if missing.any():
        raise DataRefused(f"{name}: Input contains NaN in {named(X, missing)}, which {taker} cannot take; {advice}")


def _columns_where(X: Rows, test: Callable[[NDArray[Any]], Any]) -> NDArray[np.bool_]:
    """Tell which columns of numbers hold a number, stored in them, that a test is true of, ``(n_features,)``."""
    if is_frame(X):
        numbers = [family == "number" for family in families(X).values()]
        return np.array([is_number and test(doubles(column(X, at))).any() for at, is_number in enumerate(numbers)])
    holds = np.zeros(width(X), dtype=np.bool_)
    if X.dtype.kind != "f":
        return holds
    if kind(X) == "sparse":
        holds[X.indices[test(X.data)]] = True
        return holds
    for block in blocks(X, _BLOCK_CELLS):
        holds |= test(block).any(axis=0)
    return holds


def named(X: Rows, chosen: NDArray[np.bool_]) -> str:
    """Name the chosen columns of a table in a message, by their names or by their positions."""
    positions = np.flatnonzero(chosen)
    names = columns(X)
    words = listed([names[i] for i in positions]) if names is not None else ", ".join(map(str, positions[:8]))
    return f"column {words}" if len(positions) == 1 else f"columns {words}"
