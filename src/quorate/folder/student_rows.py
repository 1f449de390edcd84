"""How a published student takes rows: what each column is read as, and the public rows as they were learned from."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, cast

import numpy as np

from quorate.data.column_kinds import ColumnKind, ColumnKinds, changed_kinds, column_kinds
from quorate.data.columns import Family
from quorate.data.declared_schema import Schema
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.encoding import public_words
from quorate.data.formats import has_named_columns, is_delimited
from quorate.data.rows import Rows, is_frame, kind
from quorate.data.schema_encoder import declared_kinds, is_of_drawn_pool, kinds_of
from quorate.data.table_reader import TableReader
from quorate.errors import PreconditionFailed
from quorate.folder.settings import Settings
from quorate.folder.tables import read_pool
from quorate.report import StudentFile
from quorate.report.student_file import TableColumn, TextTable, Written
from quorate.run.drawn_rows import draw_rows, pool_from
from quorate.types import Secret


def encoder_of(student: Any) -> Any:
    """Return the public encoder that a published student begins with; None where it has none."""
    steps = getattr(student, "named_steps", {})
    return getattr(steps["encoder"], "estimator", None) if "encoder" in steps else None


def student_kinds(settings: Settings, pool: Rows, student: Any) -> ColumnKinds:
    """Return what columns are read as before a student meets them. That is nothing for a Pipeline of the owner's own,
    which reads the table as it is; and for a student that was made before there was a rule, which is told by what its
    encoder takes for texts. One that was made before words were those of the public entries has some that say the same,
    and tells these apart.
    """
    cells, encoder = not settings.method.may_have_teachers, encoder_of(student)
    if settings.data.public is None or not is_frame(pool) or not (cells or encoder is not None):
        return ColumnKinds()
    declared = settings.data.kinds
    more = tuple(name for name in settings.method.text if name not in declared.text) if cells else ()
    kinds = column_kinds(pool, replace(declared, text=(*declared.text, *more)))
    parts = {part: set(places) for part, _, places in getattr(encoder, "transformers_", []) if part == "text"}
    as_texts = kinds.changed & parts.get("text", set())
    if any(kinds.kinds[name] != "category" for name in as_texts):
        return ColumnKinds()
    told_apart = parts.get("text", set()) - public_words(encoder).keys()
    return replace(kinds, words={name: kinds.words[name] for name in kinds.words if name not in told_apart})


def have_named_columns(settings: Settings) -> bool:
    """Tell whether a run's tables name their columns; the private table, which may be gone, is not looked at."""
    data = settings.data
    if data.public is not None:
        return has_named_columns(data.public, data.dialect)
    return not isinstance((settings.schema or {}).get("columns"), int)  # of sparse rows their number


def public_table(settings: Settings) -> Rows:
    """Read the public rows of a run, or make up what was declared of its columns."""
    data = settings.data
    if data.public is not None:
        return read_pool(data).rows()
    declared: Any = settings.schema
    if have_named_columns(settings):
        return draw_rows(Schema.of(declared), None, 1, Secret(bytes(32)))  # made up: columns and their types
    raise PreconditionFailed("a direct run on sparse rows without a public pool is not served; give [data] public")


def reader_of(settings: Settings, student: Any, pool: Rows) -> TableReader:
    """Return what reads tables for the published student of a run."""
    kinds, left_out = student_kinds(settings, pool, student), settings.data.left_out
    called = "the public pool" if settings.data.public is not None else "the schema"
    if settings.data.public is None and is_frame(pool):
        declared: Any = settings.schema
        left_out += tuple(Schema.of(declared).dropped)
        if settings.method.by == "votes" or is_of_drawn_pool(encoder_of(student)):
            kinds = kinds_of(Schema.of(declared), settings.data.dialect)
        else:
            kinds = declared_kinds(declared, settings.data.dialect)
    elif is_frame(pool) and not kinds.kinds:  # a Pipeline takes numbers as the pool writes them
        plain = column_kinds(pool, settings.data.kinds)
        kinds = ColumnKinds(commas=plain.commas, dialect=plain.dialect)
    return TableReader.of(pool, kinds, left_out=left_out, called=called)


def published_columns(settings: Settings, student: Any, pool: Rows) -> tuple[TableColumn, ...] | None:
    """Return how the tables of a run are read, to be published; None where they have no columns of their own. The
    label, the unit and what else is no feature stay unnamed: they are columns of the private table alone.
    """
    data = settings.data
    if data.images is not None or not is_frame(pool) or not have_named_columns(settings):
        return None
    reader = reader_of(settings, student, pool)
    dialect = reader.kinds.dialect
    is_declared = dialect.of_cells or dialect.missing
    written = Written(**dialect.of_cells, missing=dialect.missing) if is_declared else None
    return tuple(
        TableColumn(
            name=name,
            holds=family,
            read_as=reader.kinds.kinds.get(name),
            comma=name in reader.kinds.commas,
            gaps=reader.may_be_unread(name) or None,
            type=reader.types[name],
            written=written,
        )
        for name, family in reader.families.items()
    )


def published_text_table(settings: Settings) -> TextTable | None:
    """Return how text tables of the run are written, to be published; None where they are written as usual."""
    data = settings.data
    written = TextTable(**{part.name: getattr(data.dialect, part.name) for part in fields(TextTable)})
    return written if written != TextTable() and any(map(is_delimited, data.tables.values())) else None


def dialect_of_text_table(written: TextTable | None) -> Dialect:
    """Return what was published of how text tables are written, as they are read."""
    return PLAIN if written is None else Dialect(**{part.name: getattr(written, part.name) for part in fields(written)})


def reader_of_columns(columns: tuple[TableColumn, ...], student: Any) -> TableReader:
    """Return what reads tables by what was published of their columns, as :func:`reader_of` does in the run."""
    held = {column.name: cast(Family, column.holds) for column in columns}
    kinds = {column.name: cast(ColumnKind, column.read_as) for column in columns if column.read_as is not None}
    commas, gaps = (frozenset(column.name for column in columns if getattr(column, part)) for part in ("comma", "gaps"))
    words = {name: words for name, words in public_words(encoder_of(student)).items() if held.get(name) == "text"}
    written = columns[0].written if columns else None
    dialect = (
        PLAIN if written is None else Dialect(**{part.name: getattr(written, part.name) for part in fields(written)})
    )
    read = ColumnKinds(kinds, changed_kinds(kinds, held), asked=gaps, commas=commas, words=words, dialect=dialect)
    return TableReader(
        families=held,
        kinds=read,
        types={column.name: column.cell_type for column in columns},
        container="polars",
        width=len(columns),
    )


def student_file(pool: Rows, kinds: ColumnKinds, *, images: bool) -> StudentFile:
    """Say what rows a student takes; what must be trusted to open its file is known once it is written."""
    if images:
        return StudentFile(
            rows="images", pixels=pool.shape[1], darkest=float(np.min(pool)), lightest=float(np.max(pool))
        )
    if not is_frame(pool):
        return StudentFile(rows="sparse" if kind(pool) == "sparse" else "numbers")
    read_as = {kinds.kinds[name] for name in kinds.changed} - {"dropped"}
    texts = set(kinds.kinds.values()) - {"dropped"} == {"text"}
    return StudentFile(rows="texts" if texts else "table", read_as=tuple(sorted(read_as)))


def public_rows_of(settings: Settings, student: Any, drawn: bytes | None = None) -> Rows:
    """Return the public rows of a run, or those that it drew and published, as its student takes them."""
    data = settings.data
    if data.public is not None:
        pool = read_pool(data).rows()
        return student_kinds(settings, pool, student)(pool)
    if drawn is None:
        raise PreconditionFailed(
            "this run has no public rows, on which a converted student could be compared with it, and drew none; "
            "export it as skops alone, which is the default"
        )
    pool = pool_from(drawn)
    return reader_of(settings, student, pool).kinds(pool)
