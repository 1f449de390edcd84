"""What a check says beside its answer, in either method: nothing is wrong, but it may not be what was meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.accounting.figures import plural
from quorate.data import is_frame
from quorate.data.column_kinds import ColumnKinds
from quorate.data.columns import column, in_words
from quorate.data.comparison import compared_scales, unlike_cells
from quorate.data.rows import Rows, columns, n_rows
from quorate.errors import keyword, named
from quorate.findings import Finding, Severity, caution, note
from quorate.types import Secret

TOLERATED = 0.1  # how far a declared number of units may be off, as a share of it


@dataclass(frozen=True, slots=True)
class Names:
    """How messages name what would act, the two tables, and what declares the number of units and of rows."""

    act: str = "A fit"
    private: str = "X"
    public: str = "the public rows"
    n_records: str = "n_records="
    n_rows: str = "n_rows="


NAMES = Names()


def notes_on_pool(pool: Rows, name: str) -> Iterator[Finding]:
    """Yield what there is to say about the public rows; `name` is what they are called."""
    empty, constant = idle_columns(pool)
    for names, entries in ((empty, "are empty"), (constant, "have one value")):
        if names:
            words = f"nothing can be learned from {in_words(names)} of {name}: all entries {entries}"
            yield note("public-columns-without-information", words)


def note_on_unseen_rows(
    parts: str, private: str, *, act: str, compare: str, number: bool = False, voted: bool = False
) -> Finding:
    """Say of a method no word of which depends on private rows that their owner has to look at them, and what with."""
    which = "such a" if voted else "a direct"
    unusable, declared = ("A row with a label that is none of the classes", "classes")
    if number:
        unusable, declared = "A row whose target is no finite number", keyword("target_range")
    return note(
        "private-rows-are-not-checked",
        f"{parts} of {private} are NOT checked, since no message of {which} {act} may depend on private rows. "
        f"{unusable} is left out without a word; where that is every row, the whole "
        f"budget is spent for nothing. Compare {declared} with {compare}",
    )


def note_on_declared_units(n_units: int, unit: str) -> Finding:
    """Say of what a declared number counts, where units have ids: whether it is the number of rows is not looked at."""
    return note(
        "declared-number-is-of-units",
        f"{named('n_records', n_units)} is taken as the number of {plural(unit)}, and not of rows, since "
        f"{keyword('groups')} says whose each row is",
    )


def notes_without_pool(classes: Sequence[Any], shares: Any, *, declares: str) -> Iterator[Finding]:
    """Yield what should perhaps be declared, where no public rows show it. `declares`: what to type for the share of a
    rare class.
    """
    if shares is None and len(classes) == 2:
        yield note("class-shares-not-declared", words_on_shares(declares))


def words_on_shares(declares: str) -> str:
    """Say how the share of a rare class is declared, and when."""
    return (
        "no public rows show how rare a class is. If one of the two is rare, declare its share from public knowledge "
        f"before the run, such as {declares}: without it, a model may predict the commoner class for every row. A run "
        "that was begun goes on without it"
    )


def remarks(*makers: Callable[[], Iterable[Finding]]) -> tuple[Finding, ...]:
    """Work out what there is to remark, each maker by itself: one that cannot be worked out is left out. None fails a
    command, and none lets a library warn: what a private cell holds would decide on either.
    """
    notes: list[Finding] = []
    for maker in makers:
        try:
            with np.errstate(all="ignore"):
                notes += maker()
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException:  # noqa: BLE001, S112 - what a library raises; a panic of polars is no Exception
            continue
    return tuple(notes)


def notes_on_tables(rows: Rows, pool: Rows, kinds: ColumnKinds, names: Names = NAMES) -> Secret[tuple[Finding, ...]]:
    """Return what a comparison with the pool says. Privacy: outside the guarantee, for the owner's terminal alone."""
    return Secret(remarks(lambda: notes_on_cells(rows, pool, kinds, names), lambda: notes_on_scales(rows, pool, names)))


def note_on_shared_ids(
    ids: Iterable[bytes], others: Iterable[bytes], *, private: str, public: str
) -> Iterator[Finding]:
    """Yield that a public table names units of the private one, by canonical ids, of which an empty one is none."""
    if set(others).difference([b""]).isdisjoint(ids):
        return
    yield caution(
        "public-rows-carry-private-ids",
        Severity.SERIOUS,
        f"rows of {public} carry ids of {private}: what is published rests on {public}, so that for whoever stands in "
        "both tables the guarantee does not hold. Leave these rows out of it. Where the same id means two persons, "
        "since each table counts its own, nothing is wrong",
    )


def notes_on_cells(rows: Rows, pool: Rows, kinds: ColumnKinds, names: Names) -> Iterator[Finding]:
    """Yield where private cells say nothing to who knows the public ones."""
    private, public = names.private, names.public
    cells = unlike_cells(rows, pool, kinds).reveal()
    if cells.empty:
        yield note(
            "private-columns-are-empty",
            f"every cell is missing, or could not be read, in {in_words(list(cells.empty))} of {private}, though not "
            f"in {public}: nothing is learned from that, though the public rows have it",
        )
    if cells.respelled:
        yield note(
            "private-entries-are-spelled-otherwise",
            f"entries of {in_words(list(cells.respelled))} of {private} are those of {public} but for case, for blanks "
            "or for the form of Unicode: they differ, so that they are other entries, and what they say is lost. Write "
            "them in the same way in both",
        )
    if cells.foreign:
        yield note(
            "private-words-are-unknown",
            f"{private} and {public} have nothing in common in {in_words(list(cells.foreign))}: what is learned of it "
            "tells nothing about public rows. See that both are written in the same way",
        )
    if cells.blank > TOLERATED * n_rows(rows):
        share = "every row" if cells.blank == n_rows(rows) else f"more than {TOLERATED:.0%} of the rows"
        yield note(
            "private-rows-are-blank",
            f"{share} of {private} hold{'s' * (cells.blank == n_rows(rows))} 0 alone, as an image does that is missing "
            f"or could not be read; no row of {public} does. See that the files are where the table says",
        )


def notes_on_scales(rows: Rows, pool: Rows, names: Names) -> Iterator[Finding]:
    """Yield where a scaler that was fitted on all private rows may have been at work, which voids the guarantee."""
    private, public = names.private, names.public
    scales = compared_scales(rows, pool).reveal()
    if scales.fitted:
        yield caution(
            "private-columns-were-scaled",
            Severity.SERIOUS,
            f"{private} looks scaled by what was fitted on all of its rows, and {public} "
            f"{'do' if public.endswith('rows') else 'does'} not: {in_words(list(scales.fitted))}. Such a step carries "
            "every row into every shard, and the guarantee does not cover it. Give the columns as they were, and put "
            "the step into the teacher (a Pipeline)",
        )
    other = [name for name in scales.differing if name not in scales.fitted]
    if other:
        yield caution(
            "columns-on-other-scales",
            Severity.WARNING,
            f"{private} and {public} look differently scaled: {in_words(other)}. If a scaler was applied to "
            "one of them, the model is asked about rows that it cannot know; and if it was fitted on the private "
            "rows, the guarantee does not cover it. Put such a step into the teacher (a Pipeline)",
        )


def idle_columns(public: Rows) -> tuple[list[str], list[str]]:
    """Name the columns of a public frame without any value, and those with one value alone."""
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
