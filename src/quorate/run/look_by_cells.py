"""The owner's own look at a private table whose cells are read each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.data import PrivateRecords
from quorate.data.cell_text import is_missing
from quorate.data.labels import Label, codes_of
from quorate.data.target_range import TargetRange
from quorate.data.unit_ids import usable_slots
from quorate.findings import Finding
from quorate.run.cells import lists_of
from quorate.run.look import CountedCells, Look, Names, compared_with_pool, compared_with_schema
from quorate.run.remarks import notes_on_tables, remarks
from quorate.run.schema import Schema
from quorate.run.usable_rows import UsableRows
from quorate.types import Secret


class ReadByCells(Protocol):
    """A task whose private rows are kept with what the public side says of their columns."""

    @property
    def schema(self) -> Schema:
        """What columns hold."""

    @property
    def private(self) -> Secret[UsableRows]:
        """The private rows."""

    @property
    def records(self) -> PrivateRecords:
        """By what they are known again."""

    @property
    def grouped(self) -> bool:
        """Whether units have ids."""

    @property
    def has_public_pool(self) -> bool:
        """Whether rows were given that are public."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """The declared classes; none where a number is predicted."""

    @property
    def target_range(self) -> TargetRange | None:
        """Its range."""


def look_by_cells(
    task: ReadByCells,
    y: Any,
    groups: Any | None,
    *,
    names: Names | None = None,
    ids: Callable[[Iterable[bytes]], Iterable[Finding]] = lambda _: (),
) -> Secret[Look | None]:
    """Look at the private rows of a task.

    `ids`: makes what there is to say of ids that stand in public tables too. Privacy: outside the guarantee; for the
    owner's terminal alone. A table that is read part by part is counted so, and compared by its first rows.
    """
    private, names = task.private.reveal(), names or Names()
    labels = np.concatenate([np.empty(0, dtype=np.int64), *(_codes(part, task) for part in lists_of(y))])
    slots = [slot for part in lists_of(groups) for slot in usable_slots(part, len(part))] if task.grouped else None
    counted = CountedCells.of(private.table, compared=task.has_public_pool, whole_rows=private.codes >= 0)
    notes: tuple[Finding, ...] = ()
    if task.has_public_pool:
        pool, called = task.schema.parsed(task.schema.pool)[0], {"private": names.private, "public": names.public}
        notes = (
            *compared_with_pool(counted, task.records, pool, names),
            *remarks(lambda: notes_on_tables(counted.rows(), pool, task.schema.kinds, **called).reveal()),
        )
    elif task.schema.declared:
        notes = compared_with_schema(counted, len(labels), names)
    notes += remarks(lambda: ids(slots or ()))
    return Secret(
        Look(
            names=names,
            n=len(labels),
            labels=_of_labels(labels),
            ids=None if slots is None else sum(map(bool, slots)),
            rows=counted.whole,
            cells=tuple(counted.cells),
            notes=notes,
            of_number=task.target_range is not None,
        )
    )


def _codes(labels: list[Any], task: ReadByCells) -> NDArray[np.int64]:
    """Return the class of each label, or its step in the range; −1 for what is none, −2 for a missing one."""
    held = task.target_range
    codes = codes_of(labels, task.classes) if held is None else held.steps_of(labels)
    return np.where([is_missing(label) for label in labels], -2, codes) if len(codes) else codes


def _of_labels(codes: NDArray[np.int64]) -> tuple[int, int]:
    return int((codes >= 0).sum()), int((codes == -2).sum())
