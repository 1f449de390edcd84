"""What `quorate check` tells the owner beside its answer: nothing is wrong, but it may not be what was meant.

Some of it depends on the private table, as a refusal may. That goes to the owner's terminal and to the internal edition
of the report, and nowhere else: into no JSON, no log, no warning and nothing that is public. None of it holds a count
or a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quorate.accounting.figures import plural
from quorate.data import column_names, is_frame
from quorate.data.columns import column, listed
from quorate.data.dates import date_like
from quorate.data.reading import has_named_columns
from quorate.data.rows import Rows, columns
from quorate.data.scales import compared_scales
from quorate.mechanisms import own_statement
from quorate.outcomes import Caution, Severity, caution
from quorate.pipeline.task import Task
from quorate.run.settings import DataSettings
from quorate.types import Secret

COLUMNS_OF_DATES = "columns-of-dates"
TOLERATED = 0.1  # how far a declared number of units may be off, as a share of it


@dataclass(frozen=True, slots=True)
class Note:
    """One thing for the owner to know.

    Parameters
    ----------
    code : str
        What programs decide by.
    words : str
        One sentence, without a full stop.
    """

    code: str
    words: str

    def tree(self) -> dict[str, str]:
        """Return the note as JSON has it."""
        return {"code": self.code, "message": self.words}


def public_notes(data: DataSettings, task: Task) -> Iterator[Note]:
    """Yield what there is to say about the public table and about a mechanism of the owner's own."""
    yield from notes_on_public(data, task.inputs.public)
    statement = own_statement(task.recipe.mechanism)
    if statement is not None:
        yield Note("mechanism-of-the-owners-own", statement)


def notes_on_public(data: DataSettings, pool: Rows) -> Iterator[Note]:
    """Yield what there is to say about the public table."""
    name = data.pool.name
    if has_named_columns(data.pool):
        there = column_names(data.pool)
        for column_, what in ((data.label, "label"), (data.unit, "id")):
            if column_ in there:
                words = f"{name} has the {what} column {column_!r}: it is left out, nothing learns from it"
                yield Note(f"public-has-the-{what}-column", words)
    empty, constant = idle_columns(pool)
    for names, entries in ((empty, "are empty"), (constant, "have one value")):
        if names:
            words = f"nothing can be learned from {_some(names)} of {name}: all entries {entries}"
            yield Note("public-columns-without-information", words)


def direct_notes(data: DataSettings, pool: Rows) -> Iterator[Note]:
    """Yield what there is to say about a direct run, which looks at no private row: that its owner has to."""
    parts = "labels and cells" if data.unit is None else "labels, ids and cells"
    yield Note(
        "private-rows-are-not-checked",
        f"{parts} of {data.private.name} are NOT checked, since no message of a direct run may depend on private rows. "
        "A row with a label that is none of the classes is left out without a word; where that is every row, the whole "
        f"budget is spent for nothing. Compare classes with column {data.label!r} of your own file before the run",
    )
    if data.public is not None:
        yield from notes_on_public(data, pool)


def date_cautions(data: DataSettings, pool: Rows, *, read_as_text: Sequence[str] = ()) -> tuple[Caution, ...]:
    """Say which public columns of text are dates or times: the encoder takes each as a word of its own."""
    if data.public is None:  # the columns were declared
        return ()
    names = [name for name in (date_like(pool) if is_frame(pool) else []) if name not in read_as_text]
    words = (
        f"{_some(names)} of {data.public.name} {'hold' if len(names) > 1 else 'holds'} dates or times as text, and "
        "each is taken as a word of its own, so that a date that is new means nothing. Turn them into numbers in all "
        "tables, such as days since a fixed date, the month or the hour, or leave them out"
    )
    found = caution(COLUMNS_OF_DATES, Severity.WARNING, words if names else None)
    return (found,) if found.applies else ()


def private_notes(data: DataSettings, task: Task) -> Secret[tuple[Note, ...]]:
    """Return what there is to say about the private table.

    Notes
    -----
    Privacy: outside the guarantee. For the owner's terminal and the internal edition of the report alone.
    """
    return Secret((*_declared_number(data, task), *_scales(data.private, data.pool, task)))


def _declared_number(data: DataSettings, task: Task) -> Iterator[Note]:
    keys = task.inputs.private.reveal().unit_keys
    if data.n_rows is not None and abs(data.n_rows - len(keys)) > TOLERATED * len(keys):
        yield Note(
            "declared-rows-are-off",
            f"[data] n_rows = {data.n_rows:,} is more than 10 % off the number of rows in the private table; the "
            "teachers and the noise were chosen for the declared one",
        )
    if data.n_records is None:
        return
    units = len(set(keys))
    if abs(data.n_records - units) > TOLERATED * units:
        yield Note(
            "declared-number-is-off",
            f"[data] n_records = {data.n_records:,} is more than 10 % off the number of {plural(task.unit)} in the "
            "private table; the teachers and the noise were chosen for the declared one",
        )


def _scales(private: Path, public: Path, task: Task) -> Iterator[Note]:
    found = compared_scales(task.inputs.private.reveal().X, task.inputs.public).reveal()
    if found.fitted:
        yield Note(
            "private-columns-were-scaled",
            f"{private.name} looks scaled by what was fitted on all of its rows, and {public.name} does not: "
            f"{_some(list(found.fitted))}. Such a step carries every row into every shard, and the guarantee does not "
            "cover it. Give the columns as they were, and put the step into the teacher (a Pipeline)",
        )
    other = [name for name in found.differing if name not in found.fitted]
    if other:
        yield Note(
            "columns-on-other-scales",
            f"{private.name} and {public.name} look differently scaled: {_some(other)}. If a scaler was applied to "
            "one of them, teachers are asked about rows that they cannot know; and if it was fitted on the private "
            "rows, the guarantee does not cover it. Put such a step into the teacher (a Pipeline)",
        )


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
