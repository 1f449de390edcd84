"""From a row of Python, NumPy, pandas or polars to the JSON of a request, which :mod:`.features` reads."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import index
from typing import Any

from quorate.errors import NOTHING_CHARGED, InvalidParameter


def as_json(row: Any, name: str) -> dict[str, Any] | list[Any]:
    """Return a row as it is sent; `name`: what a message calls it.

    Raises InvalidParameter for what the service could not read: it names the place and the type, never the value.
    """
    if isinstance(row, Mapping):
        cells = {_column(column, name): _cell(value, f"{name}: column {column!r}") for column, value in row.items()}
        if len(cells) < len(row):
            raise _refusal(f"{name} has two columns of one name")
        return cells
    if isinstance(row, str | bytes) or not (isinstance(row, Sequence) or _is_vector(row)):
        raise _refusal(
            f"{name} must be a mapping of columns or a sequence of numbers, got a {type(row).__name__}; of a table, "
            'give to_dicts() (polars) or to_dict("records") (pandas)'
        )
    return [_cell(value, f"{name}: place {at}") for at, value in enumerate(row)]


def _is_vector(row: Any) -> bool:
    import numpy as np

    return isinstance(row, np.ndarray) and row.ndim == 1


def _column(column: Any, name: str) -> str:
    """Return the name of a column, or the place of sparse rows, as a text."""
    try:
        return column if _is_text(column) else str(index(column))
    except TypeError:
        raise _refusal(f"{name}: column {column!r} must have a text as its name") from None


def _cell(value: Any, place: str) -> Any:
    """Return a cell as JSON has it: a text, a number, a truth value, or None."""
    plain = value if value is None or type(value) in (str, int, float, bool) else _plain(value)
    if isinstance(plain, float) and plain != plain:
        return None
    if plain is None or _is_text(plain) or (isinstance(plain, int | float) and abs(plain) <= sys.float_info.max):
        return plain
    raise _refusal(
        f"{place} holds a {type(value).__name__}, expected a text, a finite number, a truth value, a date, a time, a "
        "duration, or None"
    )


def _is_text(value: Any) -> bool:
    """Tell whether a value is a text, and no half of a surrogate pair is in it."""
    return isinstance(value, str) and value.encode("utf-8", "replace").decode() == value


def _plain(value: Any) -> Any:
    """Return what a value of a library says, or the value itself."""
    import numpy as np  # a row of Python's own values needs nothing of this, which takes long to load

    from quorate.data.cell_text import as_list, is_missing
    from quorate.data.columns import as_text
    from quorate.data.notation import number

    if is_missing(value):
        return None
    if isinstance(value, np.generic):
        [value] = as_list(np.array([value]))
    if isinstance(value, Decimal):
        return number(value)
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    return as_text(value) if isinstance(value, dt.date | dt.time) else value


def _refusal(words: str) -> InvalidParameter:
    return InvalidParameter(words, charged=NOTHING_CHARGED)
