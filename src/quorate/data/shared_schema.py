"""Whether two tables share one schema, and how they differ: in names, order and family of columns, which are public."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from quorate.data.columns import Family, column, families, in_words, names_columns, texts
from quorate.data.rows import Rows, as_rows, columns, kind, width
from quorate.data.stream import StreamedFrame
from quorate.deferred import pd, pl
from quorate.errors import DataRefused

_NEAR: Final = 0.75  # of 1, where a name is the other one: a slip of the hand, and no other word
SCHEMA: Final = "the schema"  #: what a message calls a declared one
_WORD = {"number": "numbers", "text": "text", "time": "dates or times", "missing": "nothing"}


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
    if set(names) == set(wanted):
        return
    words, unlike = other_columns(names, wanted, called=called)
    advice = "Give both the same feature columns"
    if called[1] == SCHEMA:
        words, advice = unlike_schema(names, wanted, called=called) if unlike else (words, "")
    raise DataRefused(f"{words}. {advice}" if advice else words)


def not_taken(names: Sequence[str], called: str) -> str:
    """Word that a table has columns that a model does not know; whoever received the model has no other table."""
    several = len(names) > 1
    return f"{called} has the {in_words(names)}, which the model does not take. Leave {'them' if several else 'it'} out"


def unlike_schema(
    names: Sequence[str], wanted: Sequence[str], *, called: tuple[str, str], left_out: str = ""
) -> tuple[str, str]:
    """Word how the columns of a table differ from those of a declared schema, and what to do. `left_out`: what to type
    to leave out the others, where that is more than a table without them.
    """
    table, schema = called
    more, lacking = (
        [name for name in one if name not in set(other)] for one, other in ((names, wanted), (wanted, names))
    )
    near = {name: hit for name in lacking for hit in get_close_matches(name, more, n=1, cutoff=_NEAR)}
    said = [f"{schema} names {name!r}, which {table} lacks; did you mean {hit!r}?" for name, hit in near.items()]
    if gone := [name for name in lacking if name not in near]:
        them = "them" if len(gone) > 1 else "it"
        said.append(f"{table} lacks the {in_words(gone)} of {schema}; leave {them} out of {schema}")
    others = [name for name in more if name not in near.values()]
    if not others:
        return ". ".join(said).replace("?.", "?"), ""
    them = "them" if len(others) > 1 else "it"
    said.append(f"{schema} lacks the {in_words(others)} of {table}")
    how = f'Declare {them} in {schema}, as bounds ([0, 120]) or as a list (["F", "M"]), or leave {them} out'
    return ". ".join(said).replace("?.", "?"), f"{how}{left_out or f' of {table}'}"


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
