"""What a check says beside its answer: nothing is wrong, but it may not be what was meant.

Some of it depends on the private table, as a refusal may. That goes to the owner's terminal and to the internal edition
of the report, and nowhere else: into no JSON, no log, no warning and nothing that is public. None of it holds a count
or a value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from quorate.accounting.figures import plural
from quorate.data import is_frame
from quorate.data.column_kinds import ColumnKinds
from quorate.data.columns import column, in_words
from quorate.data.rows import Rows, columns, n_rows
from quorate.data.scales import compared_scales
from quorate.data.unit_keys import count_units
from quorate.data.unlike_cells import unlike_cells
from quorate.errors import DataRefused, PrivacyWarning
from quorate.mechanisms import own_statement
from quorate.outcomes import frames_of_ours
from quorate.pipeline.task import Task
from quorate.types import Secret

TOLERATED = 0.1  # how far a declared number of units may be off, as a share of it


@dataclass(frozen=True, slots=True)
class Note:
    """One thing for the owner to know.

    `code`: what programs decide by. `words`: one sentence, without a full stop.
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

    `parts`, `private`: what is not looked at, and what the private table is called. `act`: what would spend the budget:
    "run", "fit". `compare`: what the classes are to be compared with, and what to mind.
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

    Raises DataRefused to the owner of the private table, before anything is charged.
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


def remarks(*makers: Callable[[], Iterable[Note]]) -> tuple[Note, ...]:
    """Work out what there is to remark, each maker by itself: all remarks of all commands and fits are made here.

    A remark that cannot be worked out is left out. None fails a command, and none lets a library warn: what a private
    cell holds would decide on either.
    """
    notes: list[Note] = []
    for maker in makers:
        try:
            with np.errstate(all="ignore"):
                notes += maker()
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException:  # noqa: BLE001, S112 - what a library raises; a panic of polars is no Exception
            continue
    return tuple(notes)


def private_notes(
    task: Task,
    *,
    private: str = "X",
    public: str = "the public rows",
    n_records: str = "n_records",
    n_rows: str = "n_rows",
    ids: Callable[[], Iterable[Note]] = tuple,
) -> Secret[tuple[Note, ...]]:
    """Return what there is to say about the private table where teachers vote.

    `task`: what is to be done. `private`, `public`: what the two tables are called. `n_records`, `n_rows`: what
    declares the number of units, and of rows. `ids`: makes what there is to say of ids that stand in public tables too,
    where those have a column of them. Privacy: outside the guarantee. For the owner's terminal and the internal edition
    of the report alone.
    """
    inputs, called = task.inputs, {"private": private, "public": public}
    kinds = inputs.kinds if task.views.teacher.encoder is not None else replace(inputs.kinds, words={})
    return Secret(
        (
            *remarks(lambda: _declared_numbers(task, n_records=n_records, n_rows=n_rows)),
            *remarks(lambda: notes_on_cells(inputs.private.reveal().X, inputs.public, kinds, **called)),
            *promise_notes(task, **called, ids=ids).reveal(),
        )
    )


def promise_notes(
    task: Task,
    *,
    private: str = "X",
    public: str = "the public rows",
    ids: Callable[[], Iterable[Note]] = tuple,
) -> Secret[tuple[Note, ...]]:
    """Return those of :func:`private_notes` that say that the guarantee will not hold: a fit warns of them."""
    inputs = task.inputs
    scales = remarks(
        lambda: notes_on_scales(inputs.private.reveal().X, inputs.public, private=private, public=public),
        ids,
    )
    return Secret(scales)


def warn_of_promise(task: Task) -> None:
    """Warn of what makes the guarantee void, in the words of a check, before anything is charged.

    Warns PrivacyWarning at the line that called quorate.
    """
    for note in promise_notes(task).reveal():
        warnings.warn(f"{note.code}: {note.words}", PrivacyWarning, stacklevel=frames_of_ours())


def notes_on_tables(
    rows: Rows, pool: Rows, kinds: ColumnKinds, *, private: str = "X", public: str = "the public rows"
) -> Secret[tuple[Note, ...]]:
    """Return what a comparison of private rows with the public pool says, in either method.

    `rows`, `pool`: private rows with the columns of the public pool, in its order and types; and the pool. `kinds`:
    what each column is read as. `private`, `public`: what the two tables are called. Privacy: outside the guarantee.
    For the owner's terminal alone; of the direct method, for a look that was asked for.
    """
    called = {"private": private, "public": public}
    return Secret(
        remarks(
            lambda: notes_on_cells(rows, pool, kinds, **called),
            lambda: notes_on_scales(rows, pool, **called),
        )
    )


def note_on_shared_ids(ids: Iterable[bytes], others: Iterable[bytes], *, private: str, public: str) -> Iterator[Note]:
    """Yield that a public table names units of the private one, where it does.

    `ids`, `others`: canonical ids of the private rows and of the public ones; an empty one is none. `private`,
    `public`: what the two tables are called.
    """
    if not (set(ids) & set(others)).difference([b""]):
        return
    yield Note(
        "public-rows-carry-private-ids",
        f"rows of {public} carry ids of {private}: what is published rests on {public}, so that for whoever stands in "
        "both tables the guarantee does not hold. Leave these rows out of it. Where the same id means two persons, "
        "since each table counts its own, nothing is wrong",
    )


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


def notes_on_cells(rows: Rows, pool: Rows, kinds: ColumnKinds, *, private: str, public: str) -> Iterator[Note]:
    """Yield where private cells say nothing to who knows the public ones."""
    found = unlike_cells(rows, pool, kinds).reveal()
    if found.empty:
        yield Note(
            "private-columns-are-empty",
            f"every cell is missing, or could not be read, in {in_words(list(found.empty))} of {private}, though not "
            f"in {public}: nothing is learned from that, though the public rows have it",
        )
    if found.respelled:
        yield Note(
            "private-entries-are-spelled-otherwise",
            f"entries of {in_words(list(found.respelled))} of {private} are those of {public} but for case, for blanks "
            "or for the form of Unicode: they differ, so that they are other entries, and what they say is lost. Write "
            "them in the same way in both",
        )
    if found.foreign:
        yield Note(
            "private-words-are-unknown",
            f"{private} and {public} have nothing in common in {in_words(list(found.foreign))}: what is learned of it "
            "tells nothing about public rows. See that both are written in the same way",
        )
    if found.blank > TOLERATED * n_rows(rows):
        share = "every row" if found.blank == n_rows(rows) else f"more than {TOLERATED:.0%} of the rows"
        yield Note(
            "private-rows-are-blank",
            f"{share} of {private} hold{'s' * (found.blank == n_rows(rows))} 0 alone, as an image does that is missing "
            f"or could not be read; no row of {public} does. See that the files are where the table says",
        )


def notes_on_scales(rows: Rows, pool: Rows, *, private: str, public: str) -> Iterator[Note]:
    """Yield where a scaler that was fitted on all private rows may have been at work, which voids the guarantee."""
    found = compared_scales(rows, pool).reveal()
    if found.fitted:
        yield Note(
            "private-columns-were-scaled",
            f"{private} looks scaled by what was fitted on all of its rows, and {public} {_verb(public)} not: "
            f"{in_words(list(found.fitted))}. Such a step carries every row into every shard, and the guarantee does "
            "not cover it. Give the columns as they were, and put the step into the teacher (a Pipeline)",
        )
    other = [name for name in found.differing if name not in found.fitted]
    if other:
        yield Note(
            "columns-on-other-scales",
            f"{private} and {public} look differently scaled: {in_words(other)}. If a scaler was applied to "
            "one of them, the model is asked about rows that it cannot know; and if it was fitted on the private "
            "rows, the guarantee does not cover it. Put such a step into the teacher (a Pipeline)",
        )


def _verb(name: str) -> str:
    """The verb of a table: of a file, or of rows."""
    return "do" if name.endswith("rows") else "does"


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
