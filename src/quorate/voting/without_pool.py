"""Votes where there are no public rows: a schema says what columns hold, and rows drawn for it are the pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.arguments import count, one_of, real
from quorate.data import check_classes, row_digests
from quorate.data.declared_schema import Schema as DeclaredSchema
from quorate.data.rows import Rows, without_columns
from quorate.data.table_reader import TableReader
from quorate.ensemble import ChatTeacher, Partition
from quorate.errors import InvalidParameter, named
from quorate.labelling.active import Strategy
from quorate.release.session import LedgerTerms
from quorate.run.drawn_pool import refuse_both
from quorate.run.drawn_rows import EVENLY, draw_rows, most_distinct
from quorate.run.progress import in_parts
from quorate.run.public_facts import NEIGHBOURS, ChosenRelation, choose_relation
from quorate.run.schema import Schema
from quorate.run.usable_rows import PrivateTable
from quorate.types import Secret, Watch
from quorate.voting.config import RunConfig
from quorate.voting.inputs import Inputs, PrivateRows, labels_and_keys

VOTED_ROWS = 4_000  # drawn: a student of few rows is worse, and more change little


def declared_inputs(
    config: RunConfig, X: Any, y: Any, *, teacher: Any, public: Any, groups: Any | None, watch: Watch | None = None
) -> Inputs:
    """Check the private table against the schema that was declared for it, with a made-up pool, drawn evenly."""
    if public is not None:
        refuse_both()
    if isinstance(teacher, ChatTeacher):
        raise InvalidParameter(
            f"the teacher {type(teacher).__name__} shows rows as text, and rows that are drawn column by column have "
            "none; give public=PublicPool(X_public), or another teacher"
        )
    names, declared = check_classes(config.classes), DeclaredSchema.of(config.schema)
    pool = draw_rows(declared, None, rows_to_draw(config, declared), EVENLY)
    schema = Schema.of_declared(declared, pool, config.dialect)
    table = PrivateTable.of(schema, without_columns(X, declared.dropped))
    rows, (digests, _) = table.as_declared(declared), table.known(in_parts(watch, "private rows"))
    called = {"label_name": config.label_name, "group_name": config.group_name}
    codes, unit_keys = labels_and_keys(y, groups, names, len(digests), **called)
    return Inputs(
        private=Secret(PrivateRows(rows, codes, unit_keys, digests.packed(), cells=table)),
        public=pool,
        digests=row_digests(pool),
        classes=names,
        kinds=schema.kinds,
        declared=declared,
    )


def as_declared(inputs: Inputs, X: Any, *, left_out: Sequence[str] = ()) -> Rows:
    """Return rows that come later as private ones are read; raises DataRefused if columns are not the declared ones."""
    assert inputs.declared is not None  # noqa: S101 - the caller's condition
    schema = Schema.of_declared(inputs.declared, inputs.public, inputs.kinds.dialect)
    X = without_columns(X, (*inputs.declared.dropped, *left_out))
    return PrivateTable.of(schema, X).as_declared(inputs.declared)


def asked_as_declared(inputs: Inputs, X: Any, name: str = "X", *, left_out: Sequence[str] = ()) -> Rows:
    """Return rows that somebody asks about, as the declared columns hold them; a cell that is none is refused, by its
    column, and counts as missing in private rows alone.
    """
    assert inputs.declared is not None  # noqa: S101 - the caller's condition
    others = (*inputs.declared.dropped, *left_out)
    reader = TableReader.of(inputs.public, inputs.kinds, left_out=others, called="the schema")
    reader.as_the_pool(X, name)  # which refuses
    return as_declared(inputs, X, left_out=left_out)


def rows_to_draw(config: RunConfig, declared: DeclaredSchema) -> int:
    """Return ℓ without a pool: what was asked for, else 4,000; no more than there can be different rows."""
    queries = config.queries
    if isinstance(queries, Strategy):
        wanted = max(queries.n, VOTED_ROWS)
    else:
        wanted = VOTED_ROWS if isinstance(queries, str) else count("queries", queries, at_least=1)
    return most_distinct(declared, wanted)


def n_public_of(config: RunConfig, inputs: Inputs) -> int:
    """Return how many different public rows there are, or are to be drawn."""
    return len(set(inputs.digests)) if inputs.declared is None else rows_to_draw(config, inputs.declared)


def share_of(config: RunConfig) -> float | None:
    """Return the share of the budget for noisy counts, where one was given."""
    return None if config.marginals is None else real("marginals", config.marginals, above=0, below=1)


def refuse_of_drawn_pools(config: RunConfig) -> None:
    """Refuse what is said of noisy counts where there are public rows; raises InvalidParameter."""
    if share_of(config) is not None:
        raise InvalidParameter(
            f"{named('marginals', config.marginals)} is for where a schema stands in the place of public rows, and a "
            "pool is drawn; leave it out"
        )
    if one_of("neighbours", config.neighbours, NEIGHBOURS) != "auto":
        raise InvalidParameter(
            f"{named('neighbours', config.neighbours)} is for where there are no public rows: votes on public rows "
            "have one price for adding, removing and replacing; leave it out"
        )


def relation_of(
    config: RunConfig, partition: Partition, terms: LedgerTerms | None, *, n_was_read: bool, unit: str
) -> ChosenRelation | None:
    """Return for which change of one unit the noisy counts are, where one was asked for; else they hold for each."""
    if config.neighbours == "auto":
        return None
    if config.neighbours == "add-or-remove" and partition == "balanced":
        raise InvalidParameter(
            f"{named('partition', 'balanced')} covers replacing a unit alone, and "
            f"{named('neighbours', 'add-or-remove')} asks for another change; take {named('partition', 'hash')}, or "
            f"leave {named('neighbours')} out"
        )
    held = None if terms is None else terms.relation
    return choose_relation(config.neighbours, n_was_read=n_was_read, held=held, unit=unit)
