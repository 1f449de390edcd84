"""What `quorate check` tells the owner of a folder beside its answer, in the names of the folder's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

from quorate.arguments import for_shell
from quorate.data.columns import column, families, in_words, texts
from quorate.data.dialect import UTF_8
from quorate.data.dialect_of_table import columns_with_line_breaks
from quorate.data.formats import is_delimited
from quorate.data.labels import TargetRange, without_numbers
from quorate.data.notation import number_with_comma
from quorate.data.reading import named_columns, read_table
from quorate.data.rows import Rows, is_frame
from quorate.data.unit_ids import as_unit_keys, only_whole_ids, usable_slots
from quorate.findings import Finding, Severity, caution, note
from quorate.folder.data_settings import DataSettings, key_of_class, reads_well, word_of_column
from quorate.folder.settings import Settings
from quorate.folder.table_source import Source, same_source
from quorate.folder.template import written
from quorate.run.remarks import note_on_shared_ids, note_on_unseen_rows, notes_on_pool, notes_without_pool, remarks
from quorate.voting.claims import note_on_mechanism
from quorate.voting.task import Task


def public_notes(settings: Settings, task: Task) -> Iterator[Finding]:
    """Yield what there is to say about the public table and about a mechanism of the owner's own."""
    data = settings.data
    yield from note_on_unit_word(data)
    yield from notes_on_declared(settings)
    yield from note_on_written_cells(settings, None if data.public is None else task.inputs.public)
    if data.public is not None:
        yield from remarks(lambda: notes_on_public(data, task.inputs.public))
    yield from remarks(lambda: note_on_mechanism(task))


def note_on_unit_word(data: DataSettings) -> Iterator[Finding]:
    """Yield what a unit is called where the owner has not said it: a board reads that word in every sentence."""
    if data.unit is not None and data.unit_name is None and not reads_well(data.unit):
        yield note("unit-word-of-the-column", word_of_column(data.unit))


def notes_on_declared(settings: Settings) -> tuple[Finding, ...]:
    """Return what should perhaps be declared where there are no public rows."""
    data = settings.data
    if data.public is not None:
        return ()
    declares = f"[data] class_shares = {written({key_of_class(name): 0.05 for name in data.classes[-1:]})}"
    return remarks(lambda: notes_without_pool(data.classes, data.class_shares, declares=declares))


def note_on_written_cells(settings: Settings, pool: Rows | None) -> Iterator[Finding]:
    """Yield how cells of a private text table are read where no public text table shows how to."""
    data, declared = settings.data, settings.schema or {}
    if not is_delimited(data.private) or (data.public is not None and is_delimited(data.public)):
        return
    dates, words = _dates_and_words(declared) if data.public is None else _typed_dates_and_words(pool)
    numbers = _numbers(declared) if data.public is None and not data.dialect.declares_numbers else []
    read = []
    if numbers:
        read.append(f"numbers of {in_words(numbers)} as 1234.5 or 1234,5, since no decimal and thousands are declared")
    if dates and not data.dialect.date_format:
        read.append(f"dates of {in_words(dates)} as ISO 8601 (2024-03-01), since no date_format is declared")
    if words and data.dialect.encoding == UTF_8:
        read.append(f"words of {in_words(words)} as UTF-8, since no encoding is declared")
    if read and data.public is None and not data.dialect.missing:
        read.append("empty cells alone as missing, since no missing is declared")
    if read:
        said = (
            f"no public text table shows how {data.private.name} is written, so that [data] says it: it is read with "
            f"{', and '.join(read)}. A cell that is written in another way says nothing"
        )
        if data.public is None:
            said += (
                f": see how many rows can be read before you pay, by quorate check {for_shell(settings.folder)} --look"
            )
        yield note("cells-as-declared", said)


def _numbers(declared: Mapping[str, Any]) -> list[str]:
    """Return the columns of a schema that hold numbers."""
    bounds = [name for name, held in declared.items() if isinstance(held, list) and len(held) == 2]
    of_numbers = [name for name in bounds if all(type(bound) in (int, float) for bound in declared[name])]
    return [name for name, held in declared.items() if held == "number" or name in of_numbers]


def _dates_and_words(declared: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the columns of a schema that hold dates, and those with words of other letters than A to Z."""
    lists = {name: held for name, held in declared.items() if isinstance(held, list)}
    dates = [name for name, held in lists.items() if any(isinstance(bound, date) for bound in held)]
    return dates, [name for name, held in lists.items() if not all(str(word).isascii() for word in held)]


def _typed_dates_and_words(pool: Rows | None) -> tuple[list[str], list[str]]:
    """Return the public columns of a type of dates, and those with words of other letters than A to Z."""
    if pool is None or not is_frame(pool):
        return [], []
    held = list(enumerate(families(pool).items()))
    texts_ = {name: texts(column(pool, place)) for place, (name, family) in held if family == "text"}
    words = [name for name, cells in texts_.items() if not all(cell is None or cell.isascii() for cell in cells)]
    return [name for _, (name, family) in held if family == "time"], words


def notes_on_public(data: DataSettings, pool: Rows) -> Iterator[Finding]:
    """Yield what there is to say about the public table."""
    name = data.pool.name
    if (names := named_columns(data.pool, data.dialect)) is not None:
        label = "label" if data.range is None else "target"
        for column_, what in ((data.label, "label"), (data.unit, "id")):
            if column_ in names:
                kind = label if what == "label" else what
                words = f"{name} has the {kind} column {column_!r}: it is left out, nothing learns from it"
                yield note(f"public-has-the-{what}-column", words)
    if data.evaluation is not None and same_source(data.pool, data.evaluation):
        words = (
            f"{name} is [data] public and [data] evaluation: the model is scored on rows that it learns from, which "
            "says too much of it. Keep some labelled rows out of [data] public"
        )
        yield note("scored-on-the-pool", words)
    yield from notes_on_pool(pool, name)


def direct_notes(settings: Settings, pool: Rows, root: Path, *, voted: bool = False) -> Iterator[Finding]:
    """Yield what there is to say about a run that looks at no private row, direct or `voted`: that its owner has to."""
    data = settings.data
    labels = "labels" if data.range is None else "targets"
    parts = f"{labels} and cells" if data.unit is None else f"{labels}, ids and cells"
    own = "your own file" if isinstance(data.private, Path) else "what your query returns"
    compare = (
        f"column {data.label!r} of {own} before the run; quorate check {for_shell(root)} --look counts what can "
        "be used, for you alone"
    )
    if data.line_breaks:
        words = (
            f"line_breaks = true is your statement that every quotation mark within a cell of {data.private.name} is "
            "doubled (RFC 4180). Where one is not, a cell of one row may take in other rows, and the guarantee does "
            "not hold"
        )
        yield note("line-breaks-are-stated", words)
    yield from note_on_unit_word(data)
    yield from notes_on_declared(settings)
    yield from note_on_written_cells(settings, pool)
    if tables := [table.name for table in _with_ids(data)]:
        words = (
            f"ids in column {data.unit!r} of {' and '.join(tables)} are NOT compared with those of "
            f"{data.private.name}. For whoever stands in both the guarantee does not hold: compare the ids yourself"
        )
        yield note("ids-are-not-compared", words)
    number = data.range is not None
    yield note_on_unseen_rows(parts, data.private.name, act="run", compare=compare, number=number, voted=voted)
    if data.public is not None:
        yield from remarks(lambda: notes_on_public(data, pool))


def numbers_caution(data: DataSettings) -> Finding:
    """Look whether a public table has the column of the number to predict, and no number of the range in it."""
    words = None
    for table in [] if data.range is None else [data.public, data.evaluation]:
        words = words or _without_targets(data, table, data.range)
    return caution("target-without-numbers", Severity.SERIOUS, words)


def _without_targets(data: DataSettings, table: Source | None, held: TargetRange | None) -> str | None:
    """Say what is wrong with the targets of a public table; None where nothing is, or it has none."""
    target = data.label
    if held is None or table is None or target not in (named_columns(table, data.dialect) or ()):
        return None
    cells = read_table(table, text_columns=[target], dialect=data.dialect)[target]
    said = {str(cell) for cell in cells if cell is not None}
    if (cell := without_numbers(said)) is not None:
        return (
            f"public rows of {table.name} have no numbers in the target column {target!r}, such as {cell!r}. "
            "Write label and classes under [data] in place of target and range, or name another column"
        )
    values = [value for value in map(number_with_comma, said) if isfinite(value)]
    if values and not any(held.low <= value <= held.high for value in values):
        return (
            f"no public row of {table.name} has a {target!r} within range = {list(held.ends)}, and a target beyond it "
            "counts as the nearer end. Write the range in the unit of the column, such as whole euros for thousands"
        )
    return None


def line_breaks_caution(data: DataSettings) -> Finding:
    """Look whether public tables have cells with line breaks, and nothing says that the private text table has too."""
    broken = []
    if is_delimited(data.private) and data.quote and not data.line_breaks:
        for path in [path for key, path in data.tables.items() if key != "private" and isinstance(path, Path)]:
            if (names := named_columns(path, data.dialect)) is not None:
                table = read_table(path, text_columns=names if is_delimited(path) else [], dialect=data.dialect)
                columns = columns_with_line_breaks(table)
                broken += [f"{in_words(columns)} of {path.name}"] if columns else []
    words = (
        f"cells of {' and '.join(broken)} hold line breaks, and each line of {data.private.name} is read as a row by "
        "itself, so that rows with such cells are left out. Write line_breaks = true under [data] if whoever wrote "
        f"{data.private.name} puts such cells in quotation marks and doubles marks within them; else save it as Parquet"
    )
    return caution("cells-with-line-breaks", Severity.SERIOUS, words if broken else None)


def notes_on_ids(data: DataSettings, unit_keys: Sequence[bytes]) -> Iterator[Finding]:
    """Yield which public tables carry ids of private rows: where they have the column of ids that is left out of them.

    `unit_keys`: canonical ids of the private rows; an empty one is none.
    """
    if data.unit is None:
        return
    for path in _with_ids(data):
        table = read_table(path, text_columns=[data.unit], dialect=data.dialect)
        public_ids = table[data.unit]
        floats = data.whole_ids or public_ids.dtype.is_float()
        others = usable_slots(only_whole_ids(public_ids) if floats else public_ids, len(table))
        ids = chain.from_iterable(as_unit_keys(unit_keys).blocks())
        yield from note_on_shared_ids(ids, others, private=data.private.name, public=path.name)


def _with_ids(data: DataSettings) -> Iterator[Source]:
    """Yield the public tables that have the column of ids."""
    for key, path in data.tables.items():
        if key != "private" and data.unit in (named_columns(path, data.dialect) or ()):
            yield path
