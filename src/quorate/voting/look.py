"""The owner's own look at a private table where teachers vote."""

from __future__ import annotations

from quorate.data.unit_ids import as_unit_keys
from quorate.findings import Finding
from quorate.run.look import CountedCells, Look, Names, compared_with_pool, compared_with_schema
from quorate.run.schema import Schema
from quorate.run.usable_rows import PrivateTable
from quorate.types import Secret
from quorate.voting.task import Task


def look_at_votes(task: Task, *, names: Names | None = None) -> Secret[Look | None]:
    """Look at the private rows of a task of teachers, whose labels and ids can all be used: else it was refused.

    `names`: what the tables are called. Privacy: as of :func:`look_by_cells`. What a check says of a private table
    anyway is not said again.
    """
    inputs, names = task.inputs, names or Names()
    private = inputs.private.reveal()
    table = private.cells or PrivateTable(Schema(inputs.public, None, kinds=inputs.kinds), private.X)
    # Else features are public, and labels alone are private; or rows are drawn, and compared with nothing.
    compared = inputs.public is not private.X and not task.draws_pool
    counted = CountedCells.of(table, compared=compared)
    pool = table.schema.parsed(inputs.public)[0] if compared else None
    n = len(private.codes)
    notes: tuple[Finding, ...] = ()
    if pool is not None:
        notes = compared_with_pool(counted, inputs.records(), pool, names)
    elif task.draws_pool:
        notes = compared_with_schema(counted, n, names)
    return Secret(
        Look(
            names=names,
            n=n,
            labels=(n, 0),
            ids=n if as_unit_keys(private.unit_keys).named else None,
            rows=None,
            cells=tuple(counted.cells),
            notes=notes,
        )
    )
