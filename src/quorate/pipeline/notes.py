"""What a check says beside its answer: nothing is wrong, but it may not be what was meant.

Some of it depends on the private table, as a refusal may. That goes to the owner's terminal and to the internal edition
of the report, and nowhere else: into no JSON, no log, no warning and nothing that is public. None of it holds a count
or a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorate.accounting.figures import plural
from quorate.data import is_frame
from quorate.data.columns import column, in_words
from quorate.data.rows import Rows, columns, n_rows
from quorate.data.scales import compared_scales
from quorate.data.unit_keys import count_units
from quorate.data.unlike_cells import unlike_cells
from quorate.errors import DataRefused
from quorate.mechanisms import own_statement
from quorate.pipeline.task import Task
from quorate.types import Secret

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


def notes_on_pool(pool: Rows, name: str) -> Iterator[Note]:
    """Yield what there is to say about the public rows; `name` is what they are called."""
    empty, constant = idle_columns(pool)
    for names, entries in ((empty, "are empty"), (constant, "have one value")):
        if names:
            words = f"nothing can be learned from {in_words(names)} of {name}: all entries {entries}"
            yield Note("public-columns-without-information", words)


def note_on_unseen_rows(parts: str, private: str, *, act: str, compare: str) -> Note:
    """Say of the direct method, no word of which depends on private rows, that their owner has to look at them.

    Parameters
    ----------
    parts, private : str
        What is not looked at, and what the private table is called.
    act : str
        What would spend the budget: "run", "fit".
    compare : str
        What the classes are to be compared with, and what to mind.
    """
    return Note(
        "private-rows-are-not-checked",
        f"{parts} of {private} are NOT checked, since no message of a direct {act} may depend on private rows. "
        "A row with a label that is none of the classes is left out without a word; where that is every row, the whole "
        f"budget is spent for nothing. Compare classes with {compare}",
    )


def note_on_declared_units(n_units: int, unit: str) -> Note:
    """Say of what a declared number counts, where units have ids: whether it is the number of rows is not looked at."""
    return Note(
        "declared-number-is-of-units",
        f"n_records = {n_units:,} is taken as the number of {plural(unit)}, and not of rows, since groups= says whose "
        "each row is",
    )


def refuse_rows_as_units(task: Task) -> None:
    """Refuse a declared number of units that is the number of rows, where several rows are of one unit.

    Raises
    ------
    DataRefused
        To the owner of the private table, before anything is charged.
    """
    keys = task.inputs.private.reveal().unit_keys
    if not task.n_was_read and task.facts.n_records == len(keys) != count_units(keys):
        raise DataRefused(
            f"n_records={task.facts.n_records} is the number of rows, and with groups= it declares that of "
            f"{plural(task.unit)}, which is smaller; give that one, and n_rows={task.facts.n_records} if it may be "
            "published. Nothing was charged"
        )


def note_on_mechanism(task: Task) -> Iterator[Note]:
    """Yield that a mechanism is the owner's own, where it is."""
    statement = own_statement(task.recipe.mechanism)
    if statement is not None:
        yield Note("mechanism-of-the-owners-own", statement)


def private_notes(
    task: Task,
    *,
    private: str = "X",
    public: str = "the public rows",
    n_records: str = "n_records",
    n_rows: str = "n_rows",
) -> Secret[tuple[Note, ...]]:
    """Return what there is to say about the private table.

    Parameters
    ----------
    task : Task
        What is to be done.
    private, public : str
        What the two tables are called.
    n_records, n_rows : str
        What declares the number of units, and of rows.

    Notes
    -----
    Privacy: outside the guarantee. For the owner's terminal and the internal edition of the report alone.
    """
    numbers = _declared_numbers(task, n_records=n_records, n_rows=n_rows)
    called = {"private": private, "public": public}
    return Secret((*numbers, *_cells(task, **called), *_scales(task, **called)))


def _declared_numbers(task: Task, *, n_records: str, n_rows: str) -> Iterator[Note]:
    keys = task.inputs.private.reveal().unit_keys
    declared = None if task.rows_were_read else task.facts.n_rows
    if declared is not None and abs(declared - len(keys)) > TOLERATED * len(keys):
        yield Note(
            "declared-rows-are-off",
            f"{n_rows} = {declared:,} is more than 10 % off the number of rows in the private table; the "
            "teachers and the noise were chosen for the declared one",
        )
    declared, units = None if task.n_was_read else task.facts.n_records, count_units(keys)
    if declared is not None and abs(declared - units) > TOLERATED * units:
        yield Note(
            "declared-number-is-off",
            f"{n_records} = {declared:,} is more than 10 % off the number of {plural(task.unit)} in the "
            "private table; the teachers and the noise were chosen for the declared one",
        )


def _cells(task: Task, *, private: str, public: str) -> Iterator[Note]:
    inputs = task.inputs
    rows = inputs.private.reveal().X
    found = unlike_cells(rows, inputs.public, inputs.kinds).reveal()
    if found.empty:
        yield Note(
            "private-columns-are-empty",
            f"every cell is missing, or could not be read, in {in_words(list(found.empty))} of {private}, though not "
            f"in {public}: teachers learn nothing from that, and are asked about rows that have it",
        )
    if found.foreign:
        yield Note(
            "private-words-are-unknown",
            f"{private} and {public} have no entry and no word in common in {in_words(list(found.foreign))}: nothing "
            "that teachers learn of it tells them about the rows that they are asked about. See that both are written "
            "in the same way",
        )
    if found.blank > TOLERATED * n_rows(rows):
        share = "every row" if found.blank == n_rows(rows) else f"more than {TOLERATED:.0%} of the rows"
        yield Note(
            "private-rows-are-blank",
            f"{share} of {private} hold{'s' * (found.blank == n_rows(rows))} 0 alone, as an image does that is missing "
            f"or could not be read; no row of {public} does. See that the files are where the table says",
        )


def _scales(task: Task, *, private: str, public: str) -> Iterator[Note]:
    found = compared_scales(task.inputs.private.reveal().X, task.inputs.public).reveal()
    if found.fitted:
        yield Note(
            "private-columns-were-scaled",
            f"{private} looks scaled by what was fitted on all of its rows, and {public} does not: "
            f"{in_words(list(found.fitted))}. Such a step carries every row into every shard, and the guarantee does "
            "not cover it. Give the columns as they were, and put the step into the teacher (a Pipeline)",
        )
    other = [name for name in found.differing if name not in found.fitted]
    if other:
        yield Note(
            "columns-on-other-scales",
            f"{private} and {public} look differently scaled: {in_words(other)}. If a scaler was applied to "
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
