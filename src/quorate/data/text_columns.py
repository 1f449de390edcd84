"""Columns of running text that are named beside the other columns, and what the public pool must have in them."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.data.columns import column, families, texts
from quorate.data.rows import Rows, is_frame
from quorate.errors import DataRefused, InvalidParameter


def refuse_without_text(pool: Rows, text: Sequence[str]) -> None:
    """Refuse columns of the public pool that are named as running text and are none, or lack a text in some row.

    Raises InvalidParameter if the pool is no frame, or a column is not one of text; DataRefused if a public row has no
    text: it would be taken for an empty one.
    """
    if not is_frame(pool):
        raise InvalidParameter("text names columns of a table, and the public pool is an array; give a data frame")
    kinds = families(pool)
    places = {name: place for place, name in enumerate(kinds)}
    for name in text:
        if kinds.get(name) != "text":
            held = "is not there" if name not in kinds else f"holds no text, but {kinds[name]}"
            raise InvalidParameter(f"text: column {name!r} of the public pool {held}; name columns of running text")
        if any(each is None for each in texts(column(pool, places[name]))):
            raise lacks_text(name)


def lacks_text(name: str) -> DataRefused:
    """Return what is said of a column of running text that lacks one."""
    return DataRefused(f"public: column {name!r} lacks a text in some rows; drop those rows of the pool")
