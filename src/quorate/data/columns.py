"""What the columns of a frame hold, and whether two tables share one schema.

The schema is public: names, order, and the family of each column (numbers, text, times). A private value is
never named here; a column is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.data.cell_text import OUT_OF_RANGE, category_texts, is_missing, pandas_values, polars_values
from quorate.data.rows import Rows, as_rows, columns, is_frame, kind, width
from quorate.data.stream import StreamedFrame
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
    return X.iloc[:, position] if kind(X) == "pandas" else X.to_series(position)


def families(X: Rows) -> dict[str, Family]:
    """Tell whether each column of a frame, in order, holds "number", "text" or "time", or is "missing": without any
    value.

    Truth values are numbers, categories are text. DataRefused if a column holds something else (lists, structures,
    bytes, mixed types).
    """
    if (names := columns(X)) is None:
        return {}
    if kind(X) == "pandas":
        return {
            # To take a column of pandas out of its frame takes longer than all the rest, and seldom tells more.
            name: "number" if _is_plain_number(dtype) else _pandas_family(column(X, position), name)
            for position, (name, dtype) in enumerate(zip(names, X.dtypes.tolist(), strict=True))
        }
    return {name: _polars_family(dtype, name) for name, dtype in zip(names, X.dtypes, strict=True)}


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
    if words or isinstance(dtype, types.CategoricalDtype):
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
        raise DataRefused(f"column {name!r} mixes types; expected numbers, text, truth values or dates alone")
    return family


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
        _refuse_beyond((held[code] for code in set(series.cat.codes) if code >= 0), series.name)
        return category_texts(series.cat)
    return _as_texts(pandas_values(series), series.isna().tolist(), series.name)


def _as_texts(values: list[Any], absent: list[bool], name: Any) -> list[str | None]:
    _refuse_beyond(values, name)
    return [None if gone else as_text(value) for value, gone in zip(values, absent, strict=True)]


def _refuse_beyond(values: Iterable[Any], name: Any) -> None:
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


def match_columns(private: Rows, public: Rows, *, called: tuple[str, str] = ("private", "public")) -> tuple[Rows, Rows]:
    """Bring the public table into the schema of the private one, or say how they differ; both of the same kind of
    container.

    Returned as given, but that the public columns come in the private order, that a column without any value on one
    side takes the type it has on the other, and that dates of a type are written in ISO 8601 where the other table has
    text. DataRefused if the kinds or widths differ, a column is on one side alone, or a column is text on one side and
    numbers on the other. The message calls the tables as in `called` and names columns, never a value.
    """
    one, other = called
    private, public = as_rows(private, one), as_rows(public, other)
    if kind(private) != kind(public):
        raise DataRefused(f"{one} rows are {kind(private)}, {other} rows {kind(public)}; give both in the same kind")
    names = columns(private)
    if names is None:
        if width(private) != width(public):
            raise DataRefused(
                f"{other} has {width(public)} features, but {one} has {width(private)}; "
                "give both the same columns (for svmlight files, declare n_features)"
            )
        return private, public
    public_names = columns(public) or ()
    refuse_other_columns(names, public_names, called=called)
    if names != public_names:
        order = {name: position for position, name in enumerate(public_names)}
        positions = [order[name] for name in names]
        public = public.iloc[:, positions] if kind(public) == "pandas" else public[:, positions]
    return _match_families(private, public, names, called)


def refuse_other_columns(names: Sequence[str], wanted: Sequence[str], *, called: tuple[str, str]) -> None:
    """Refuse a table that has not the columns of a public one, in whatever order, worded by :func:`other_columns`."""
    if set(names) != set(wanted):
        raise DataRefused(f"{other_columns(names, wanted, called=called)[0]}. Give both the same feature columns")


def other_columns(names: Sequence[str], wanted: Sequence[str], *, called: tuple[str, str]) -> tuple[str, list[str]]:
    """Word how the columns of a table differ from those of a public one, and name what one of them alone has. Where the
    first line does not show that it names columns, nothing of it is quoted.
    """
    one, other = called
    more = [name for name in names if name not in set(wanted)]
    lacking = [name for name in wanted if name not in set(names)]
    if not names_columns(names, wanted):
        words = (
            f"{one} lacks the {in_words(lacking)} of {other}; its own names are not quoted, since they may be a row. "
            "The first line must name the columns, the same in both"
        )
        return words, []
    both = ((other, more, one), (one, lacking, other))
    return (
        "; ".join(f"{lacks} lacks the {in_words(gone)} of {has}" for lacks, gone, has in both if gone),
        [*more, *lacking],
    )


def _match_families(private: Rows, public: Rows, names: tuple[str, ...], called: tuple[str, str]) -> tuple[Rows, Rows]:
    private_families, public_families = families(private), families(public)
    for position, name in enumerate(names):
        family, other = private_families[name], public_families[name]
        if family == other:
            continue
        if other == "missing" or _has_no_value(public, position):
            public = _retype(public, private, position)
        elif family == "missing" or _has_no_value(private, position):
            private = _retype(private, public, position)
        elif family == "text" and _are_dates(other, public, position):
            public = _in_words(public, position)
        elif other == "text" and _are_dates(family, private, position):
            private = _in_words(private, position)
        else:
            raise DataRefused(
                f"column {name!r} holds {_WORD[family]} in {called[0]}, but {_WORD[other]} in {called[1]}; write it "
                "the same way in both (one entry that is no number, such as 3,5 for 3.5, makes a column text), or drop "
                "it from both"
            )
    return private, public


def _are_dates(family: Family, X: Rows, position: int) -> bool:
    """Whether a column that memory holds is one of dates or times of day by its type; a duration has no words."""
    if family != "time" or isinstance(X, StreamedFrame):
        return False
    cells = column(X, position)
    if kind(X) == "polars":
        return not isinstance(cells.dtype, pl.Duration)
    return not pd.api.types.infer_dtype(cells, skipna=True).startswith("timedelta")


def _in_words(X: Rows, position: int) -> Rows:
    """Write a column of dates or times as text in ISO 8601, as a text table has it; each cell by itself."""
    cells = texts(column(X, position))
    return _with_column(X, position, cells, str if kind(X) == "polars" else object)


_WORD = {"number": "numbers", "text": "text", "time": "dates or times", "missing": "nothing"}


def _has_no_value(X: Rows, position: int) -> bool:
    series = column(X, position)
    return bool(series.isna().all()) if kind(X) == "pandas" else bool(series.null_count() == len(series))


def _retype(X: Rows, model: Rows, position: int) -> Rows:
    """Give a column without values the type it has in another table."""
    if isinstance(X, StreamedFrame):
        return X.retyped(X.columns[position], column(model, position).dtype)
    dtype = column(model, position).dtype
    if kind(X) == "pandas":
        plain = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_extension_array_dtype(dtype)
        dtype = "float64" if plain else dtype
    return _with_column(X, position, [None] * len(X), dtype)


def _with_column(X: Rows, position: int, cells: list[str | None] | list[None], dtype: Any) -> Rows:
    """Put cells of a type where a column is."""
    if kind(X) == "polars":
        return X.with_columns(pl.Series(X.columns[position], cells, dtype=dtype))
    changed = X.copy(deep=False)
    changed.isetitem(position, pd.Series(cells, index=X.index, dtype=dtype))
    return changed


def feature_families(X: Rows) -> tuple[Family, ...]:
    """Return the family of every column of any table; the columns of arrays are numbers."""
    if is_frame(X):
        return tuple(families(X).values())
    return tuple("number" for _ in range(width(X)))


def in_words(names: Sequence[str]) -> str:
    """Name one column or several."""
    return f"column{'s' * (len(names) > 1)} {listed(names)}"
