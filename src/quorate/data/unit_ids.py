"""Whose row it is: the canonical bytes of each row's unit, of its id or of its position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from quorate.data.cell_text import each, id_text
from quorate.data.identity import as_column, as_list
from quorate.data.packed import AT_ONCE
from quorate.data.streamed import StreamedColumn
from quorate.data.unit_keys import ID, IdKeys, PositionKeys
from quorate.errors import DataRefused

_AS_WRITTEN: Final = r"^[!-~](?:[ -~]*[!-~])?$"  # printable ASCII without blanks around it: an id says just that,
_POINT: Final = r"\.0+$"  # unless it ends so


def slot_bytes(groups: Any | None, n: int, *, name: str = "groups") -> Sequence[bytes]:
    """Canonical bytes of the slot of each row: its unit id, or its position where there is no id.

    Parameters
    ----------
    groups : (n,) array, series or sequence, or None
        The unit id of each row: what :func:`~quorate.data.cell_text.id_text` reads.
    n : int
        Number of rows.
    name : str
        What the ids are called in a message: a file and its column.

    Returns
    -------
    sequence of n bytes
        A list of ids; positions, and the ids of a :class:`~quorate.data.streamed.StreamedColumn`, are written down
        when they are asked for. Equal for equal ids. A whole number, a float of the same value and its decimal digits
        as text are the same id: were ``12`` and ``"12"`` different, one private row with a letter in its id would
        turn a column of numbers into text and move every unit to another shard.

    Raises
    ------
    DataRefused
        If an id is missing or empty, or says nothing, or the column is of floats, or there is not one id per row.

    Notes
    -----
    Privacy: ids are private. The bytes go to the keyed hash that picks a shard, and nowhere else.

    Examples
    --------
    >>> slot_bytes([12, "ann", 12.0], 3)
    [b'id:12', b'id:ann', b'id:12']
    >>> len(set(slot_bytes(None, 3)))
    3
    """
    if groups is None:
        return PositionKeys(n)
    if isinstance(groups, StreamedColumn):
        refuse_floating_ids(groups.series, name)
        return _keys_of_column(groups, name)
    if getattr(groups := as_column(groups), "ndim", 1) != 1:
        raise DataRefused(f"{name}: expected one unit id per row, got a table with columns; give one column")
    unit_keys = usable_slots(groups, n, name=name)
    if len(unit_keys) != n:
        raise DataRefused(f"{name}: expected one unit id per row of X; their lengths differ")
    if b"" in unit_keys:
        raise _without_id(name)
    return unit_keys


def usable_slots(groups: Any | None, n: int, *, name: str = "groups") -> Sequence[bytes]:
    """Return the slot of each row, as :func:`slot_bytes`; it is empty for a row whose id says nothing.

    Raises DataRefused if the column is of floats. No id decides on it.
    """
    if groups is None:
        return PositionKeys(n)
    refuse_floating_ids(groups, name)
    return each(_slot, as_list(groups))


def only_whole_ids(groups: Any) -> Any:
    """Return unit ids of which each is a whole number below 2⁵³, or none, whatever type the column has.

    `groups`: such ids as floats hold, so that one that is missing makes no other one another. Returns: as
    :func:`slot_bytes` and :func:`usable_slots` take them; none is a row without id.
    """
    read = partial(id_text, whole_alone=True)
    if not isinstance(groups, StreamedColumn):
        return None if groups is None else each(read, as_list(groups))
    import polars as pl

    return StreamedColumn(pl.concat([pl.Series(each(read, part), dtype=pl.String) for part in _parts(groups.series)]))


def refuse_floating_ids(groups: Any, name: str = "groups") -> None:
    """Refuse a column of unit ids that is of floats or complex numbers: large ids lost digits, and persons are one.

    Privacy: a library makes floats of whole numbers where one of them is missing, and complex numbers of all where one
    is, so that one private cell may decide on this refusal. It is one of the three things that private cells decide in
    the direct method, and the owner alone is told.

    Examples
    --------
    >>> refuse_floating_ids(np.array([1.0, 2.0]))
    Traceback (most recent call last):
    quorate.errors.DataRefused: groups: a column of floats has lost digits of its ids, as where one id is missing; give ids as text or as nullable integers (Int64), or, where all of them are whole numbers below 2⁵³, whole_ids=True ([data] whole_ids = true)
    """  # noqa: E501  a doctest's message is one line
    if found := _floating(as_column(groups)):
        cause = "missing" if found == "floats" else "such a number"
        raise DataRefused(
            f"{name}: a column of {found} has lost digits of its ids, as where one id is {cause}; give ids as text or "
            "as nullable integers (Int64), or, where all of them are whole numbers below 2⁵³, whole_ids=True "
            "([data] whole_ids = true)"
        )


def _floating(ids: Any) -> str:
    """Return the word for the type of a column that holds large whole numbers without their last digits."""
    dtype: Any = getattr(ids, "dtype", None)
    if hasattr(dtype, "is_float"):  # polars
        return "floats" if dtype.is_float() else ""
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    return {"f": "floats", "c": "complex numbers"}.get(getattr(dtype, "kind", ""), "")


def _slot(value: Any) -> bytes:
    text = id_text(value)
    return b"" if text is None else ID + text.encode("utf-8", "surrogatepass")


def _without_id(name: str) -> DataRefused:
    return DataRefused(
        f"{name}: unit ids are missing, and how many is not told; give every row one that is a text or a number, or "
        "drop the rows without"
    )


def _keys_of_column(ids: StreamedColumn, name: str) -> IdKeys:
    """Write the ids of a column down once each; whole numbers and plain text without an object a row."""
    import polars as pl

    series = ids.series
    if not (series.dtype.is_integer() or (series.dtype == pl.String and _as_written(series))):
        series = pl.concat([pl.Series(each(id_text, part), dtype=pl.String) for part in _parts(series)])
    if series.null_count():
        raise _without_id(name)
    distinct = series.unique().sort()
    place = series.rank("dense").to_numpy().astype(np.int64) - 1
    return IdKeys(distinct.cast(pl.String), place)


def _as_written(series: Any) -> bool:
    plain = series.str.contains(_AS_WRITTEN) & ~series.str.contains(_POINT)
    return bool(plain.all(ignore_nulls=True))


def _parts(series: Any) -> Iterator[list[Any]]:
    for start in range(0, len(series), AT_ONCE):
        yield as_list(series[start : start + AT_ONCE])
