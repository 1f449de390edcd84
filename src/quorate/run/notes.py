"""What `quorate check` tells the owner beside its answer: nothing is wrong, but it may not be what was meant.

These sentences go to the owner's terminal and into no file. One of them depends on the private table, as a refusal
may; none of them holds a count or a value of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.data import column_names, is_frame
from quorate.data.columns import column, listed
from quorate.data.reading import has_named_columns
from quorate.data.rows import Rows, columns
from quorate.pipeline.task import Task
from quorate.run.settings import DataSettings

TOLERATED = 0.1  # how far a declared number of units may be off, as a share of it


def notes(data: DataSettings, task: Task) -> Iterator[str]:
    """Yield sentences for the owner of the data, about both tables.

    Notes
    -----
    Privacy: outside the guarantee, as everything that `quorate check` says. Never write them to a public file.
    """
    if data.n_records is not None:
        units = len(set(task.inputs.private.reveal().slots))
        if abs(data.n_records - units) > TOLERATED * units:
            yield (
                f"[data] n_records = {data.n_records:,} is more than 10 % off the number of {task.unit}s in the "
                "private table; the teachers and the noise were chosen for the declared one"
            )
    if has_named_columns(data.public):
        there = column_names(data.public)
        if data.label in there:
            yield f"{data.public.name} has the label column {data.label!r}: it is left out, nothing learns from it"
        if data.unit in there:
            yield f"{data.public.name} has the id column {data.unit!r}: it is left out, nothing learns from it"
    empty, constant = idle_columns(task.inputs.public)
    if empty:
        yield f"nothing can be learned from {_some(empty)} of {data.public.name}: all entries are empty"
    if constant:
        yield f"nothing can be learned from {_some(constant)} of {data.public.name}: all entries have one value"


def idle_columns(public: Rows) -> tuple[list[str], list[str]]:
    """Name the columns of a public frame without any value, and those with one value alone.

    Examples
    --------
    >>> import polars
    >>> idle_columns(polars.DataFrame({"a": [1, 2], "b": [3, 3], "c": [None, None]}))
    (['c'], ['b'])
    """
    empty: list[str] = []
    constant: list[str] = []
    if not is_frame(public) or len(public) < 2:
        return empty, constant
    for position, name in enumerate(columns(public) or ()):
        series = column(public, position)
        present = series.dropna() if hasattr(series, "dropna") else series.drop_nulls()
        if len(present) == 0:
            empty.append(name)
        elif len(present) == len(series) and len(present.unique()) == 1:
            constant.append(name)
    return empty, constant


def _some(names: list[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {listed(names)}"
