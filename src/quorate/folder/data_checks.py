"""What keys of ``[data]`` cannot say of the tables that it names: by the names and formats of these alone.

`data` is the section as it was read, a ``DataSettings``.
"""

from __future__ import annotations

from typing import Any

from quorate.errors import InvalidParameter, naming

DIALECT = ("separator", "encoding", "quote", "line_breaks", "decimal", "thousands", "date_format", "missing")
_OF_TEXT_TABLES = ("separator", "encoding", "quote", "line_breaks")


def check_dialect(data: Any, written: list[str]) -> None:
    """Refuse what says nothing of any table, or contradicts itself or the classes.

    Raises InvalidParameter naming the key.
    """
    from quorate.data.formats import is_delimited, is_spreadsheet

    with naming({key: f"[data] {key}" for key in DIALECT}):
        dialect = data.dialect
    tables = list(data.tables.values())
    of_text = [key for key in written if key in _OF_TEXT_TABLES]
    if of_text and not any(is_delimited(path) for path in tables):
        raise InvalidParameter(
            f"[data] {of_text[0]} says how text tables are written (.csv, .tsv, .txt), and [data] names none; leave "
            "it out"
        )
    others = [path.name for path in tables if not is_delimited(path) and not is_spreadsheet(path)]
    if dialect.missing and others:
        raise InvalidParameter(
            f"[data] missing says which cells of text tables and of Excel files stand for no value, and {others[0]} is "
            "neither; a missing value is null there, so leave it out"
        )
    if lost := [name for name in data.classes if str(name) in dialect.missing]:
        raise InvalidParameter(
            f"[data] missing names {str(lost[0])!r}, which is one of the classes; a label cannot be both"
        )


def refuse_names_without_columns(data: Any) -> None:
    """Refuse settings that name columns of a table whose columns have no names: they would be passed over.

    Raises InvalidParameter naming the key and the file.
    """
    named = [key for key in ("drop", "text", "categorical", "numeric", "dates", "images") if getattr(data, key)]
    if not named:
        return
    from quorate.data.reading import has_named_columns  # here: who only looks at a run reads no table

    for table in data.tables.values():
        if not has_named_columns(table, data.dialect):
            raise InvalidParameter(
                f"[data] {named[0]} names columns, and those of {table.name} have no names; leave it out, or save the "
                "rows as CSV or Parquet"
            )
