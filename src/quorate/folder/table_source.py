"""Where a table of ``[data]`` is (a file, several, a database), and what its keys cannot say of tables by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, naming
from quorate.folder.section import string

if TYPE_CHECKING:
    from quorate.data.database import DatabaseQuery


Source: TypeAlias = "Path | DatabaseQuery"

_READ = (".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".csv.xz", ".parquet", ".xlsx")  # without asking what reads them
LARGE_FILE = 1 << 24  # bytes, from which it is said how far the reading is, and how long a run takes


def source(data: Mapping[str, Any], key: str, folder: Path) -> Source:
    """Read where the table `key` of ``[data]`` is: a file, or a database with the query that is put to it."""
    value, query = string(f"[data] {key}", data[key]), data.get(f"{key}_query")
    if query is not None:
        string(f"[data] {key}_query", query)
    if re.search(r"[\x00-\x1f]", value):  # as "C:\new.csv" has a line break
        raise InvalidParameter(
            f"[data] {key} got {value!r}: a backslash and a letter stand for one character there; write the path with "
            "forward slashes, or in single quotes"
        )
    if "://" not in value:
        if re.search(r"password\s*=", value, re.IGNORECASE):  # as libpq takes it too; a file that is not there is named
            raise InvalidParameter(
                f"[data] {key} holds a password, and is no URL of a database; write postgresql://user@host/database, "
                "and give the password by the environment variable PGPASSWORD or in ~/.pgpass"
            )
        if query is not None:
            raise InvalidParameter(
                f"[data] {key}_query is put to a database, and {key} names a file; write its URL there, such as "
                '"postgresql://user@host/database" or "sqlite:///file.db"'
            )
        return folder / value
    from quorate.data.database import (  # here: who only looks at a run reads no table
        SCHEMES,
        DatabaseQuery,
        is_database,
    )

    if not is_database(value):
        raise InvalidParameter(f"[data] {key} is the URL of no database that is read; known: {', '.join(SCHEMES)}")
    if query is None:
        raise InvalidParameter(
            f"[data] {key} is the URL of a database, and {key}_query is missing; write there what selects "
            "the rows, ordered by a key"
        )
    return DatabaseQuery(value, query, f"[data] {key}", folder)


def _refuse_unread(data: Mapping[str, Any]) -> None:
    """Refuse a kind of file that is not read, before anything is said of how its table is written."""
    for key in ("private", "public", "evaluation", "calibration"):
        value = data.get(key)
        if isinstance(value, str) and "://" not in value and not value.lower().endswith(_READ):
            from quorate.data.formats import format_for  # here: who only looks at a run reads no table

            with called(f"[data] {key}"):
                format_for(value)


def public_source(document: Mapping[str, Any], folder: Path) -> Source | None:
    """Read where the public rows are; a declared schema may stand in their place."""
    data = document.get("data", {})
    _refuse_unread(data)
    if "public" in data:
        if "schema" in document:
            raise InvalidParameter(
                "[schema] takes the place of public rows, and [data] public names some; leave out one of them"
            )
        return source(data, "public", folder)
    if not document.get("schema"):
        raise InvalidParameter(
            "[data] public is required, or a [schema] that tells what the columns hold. Examples: "
            'public = "survey.csv"; age = [0, 120] and sex = ["F", "M"] under [schema]'
        )
    return None


def dropped_by_schema(data: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return the columns that a schema drops beside ``drop``; refuse one that declares the label or the unit."""
    from quorate.data.declared_schema import DROPPED  # here: who only looks at a run reads no table

    for name, held in schema.items():
        if name in (data.label, data.unit) and held != DROPPED:
            what = "unit" if name == data.unit else "label" if data.range is None else "target"
            raise InvalidParameter(f"[schema] names {name!r}, which is the {what}; leave it out of [schema]")
    return [name for name, held in schema.items() if held == DROPPED and name not in data.drop]


def is_there(table: Source) -> bool:
    """Tell whether there is such a file, folder or database file; of a pattern of names, whether any file has one."""
    if isinstance(table, Path) and not table.exists():
        from quorate.data.file_reading import files_of, is_partitioned  # here: who only looks at a run reads no table

        return is_partitioned(table) and bool(files_of(table))
    return table.exists()


def refuse_missing_files(others: Mapping[str, Any], data: Any, root: Path) -> None:
    """Refuse a table of ``[data]`` that is not there, or a file of `others`, by their keys, before any is read."""
    tables = {f"[data] {key}": table for key, table in data.tables.items()}
    for name, path in {**tables, **others}.items():
        if path is not None and not isinstance(path, str) and not is_there(path):
            raise PreconditionFailed(no_file(name, path if isinstance(path, Path) else path.file, root))


def no_file(key: str, path: Path, root: Path) -> str:
    """Say that a file of ``quorate.toml`` in `root` is missing, by its path as typed, and which one may be meant."""
    typed = path.relative_to(root) if path.is_relative_to(root) else path
    where = "" if typed.is_absolute() else " beside quorate.toml"
    try:
        near = get_close_matches(path.name, sorted(file.name for file in path.parent.iterdir()), n=1, cutoff=0.7)
    except OSError:
        near = []
    meant = f'did you mean "{typed.with_name(near[0])}"?' if near else "write its path relative to quorate.toml"
    return f'{key}: there is no file "{typed}"{where}; {meant}'


def require_file(key: str, table: Source) -> None:
    """Refuse a public table that is not there."""
    if not is_there(table):
        raise PreconditionFailed(f"[data] {key} names {table}, and there is no such file")


def file_of(table: Source) -> Path | None:
    """Return the file of a table; None where it is with a server."""
    if isinstance(table, Path):
        return table
    return table.file if table.is_sqlite else None


@contextmanager
def called(name: str) -> Iterator[None]:
    """Begin with the key or the option of a table what is refused of it inside, where no key or option begins it."""
    try:
        yield
    except DataRefused as refusal:
        if not refusal.names_key:
            refusal.names_key, refusal.args = True, (f"{name}: {refusal}",)
        raise


def is_large(table: Source) -> bool:
    """Tell whether to go through a table takes a while: by the size of its file; of a query, nobody knows."""
    from quorate.data.file_reading import bytes_of  # here: who only looks at a run reads no table

    file = file_of(table)
    return file is None or (is_there(table) and bytes_of(file) >= LARGE_FILE)


def same_source(one: Source, other: Source) -> bool:
    """Tell whether two settings name one file, or parts of which one is the same, or one query of one database."""
    if isinstance(one, Path) or isinstance(other, Path):
        if not (isinstance(one, Path) and isinstance(other, Path)):
            return False
        if one.is_file() and other.is_file():
            return one.samefile(other)
        from quorate.data.file_reading import files_of  # here: who only looks at a run reads no table

        files = [{(s.st_dev, s.st_ino) for s in map(Path.stat, files_of(path))} for path in (one, other)]
        return bool(files[0] & files[1])
    return one.is_as(other)


def refuse_private_again(data: Any) -> None:
    """Refuse the private table as a public one, before a table is read: at every door, since public rows are shown."""
    for key, table in data.tables.items():
        if key != "private" and is_there(table) and is_there(data.private) and same_source(data.private, table):
            why = {"public": "every row of the pool is published, in effect. Give rows that may be shown and are"}
            others = "what is made of it would be published without a charge. Give public rows with labels,"
            raise DataRefused(
                f"[data] {key} is the private file again; {why.get(key, others)} about nobody in the private table",
                names_key=True,
            )


DIALECT = ("separator", "encoding", "quote", "line_breaks", "decimal", "thousands", "date_format", "missing")
_OF_TEXT_TABLES = ("separator", "encoding", "quote", "line_breaks")


def check_tables(data: Any, given: Mapping[str, Any]) -> None:
    """Refuse what `given` says of tables, where it says nothing of any, or contradicts itself or the classes."""
    _check_calibration(given)
    written = [key for key in DIALECT if key in given]
    if not written:
        return
    from quorate.data.formats import is_delimited, is_spreadsheet
    from quorate.data.formats.spreadsheet import NO_EXCEL, is_packed

    with naming({name: f"[data] {name}" for name in DIALECT}):
        dialect = data.dialect
    tables = list(data.tables.values())
    for key, path in data.tables.items():  # before what text tables alone have
        if is_spreadsheet(path) and path.is_file() and not is_packed(path):
            raise DataRefused(f"[data] {key}: {path}: {NO_EXCEL}", names_key=True)
    of_text = [key for key in written if key in _OF_TEXT_TABLES]
    if of_text and not any(is_delimited(path) for path in tables):
        raise InvalidParameter(
            f"[data] {of_text[0]} says how text tables are written (.csv, .tsv, .txt), and [data] names none; leave "
            "it out, or name the files so"
        )
    others = [path.name for path in tables if not is_delimited(path) and not is_spreadsheet(path)]
    if dialect.missing and others:
        raise InvalidParameter(
            f"[data] missing says which cells of text tables and of Excel files stand for no value, and {others[0]} is "
            "neither; a missing value is null there, so leave it out"
        )
    if lost := [name for name in data.classes if str(name) in dialect.missing]:
        raise InvalidParameter(
            f"[data] missing names {str(lost[0])!r}, which is one of the classes; a label cannot be both"
        )


def _check_calibration(given: Mapping[str, Any]) -> None:
    """Refuse two sources of rows that calibrate, and what says something of one that is missing."""
    if "calibration_of_evaluation" in given and "calibration" in given:
        said = "calibration_of_evaluation takes rows of [data] evaluation, and [data] calibration names rows of its own"
        raise InvalidParameter(f"[data] {said}; leave one of the two out")
    if "calibration_of_evaluation" in given and "evaluation" not in given:
        said = "calibration_of_evaluation is a share of the rows of [data] evaluation, which is missing; name a table"
        raise InvalidParameter(f"[data] {said} of public rows with labels there, or leave it out")
    of_public = next((key for key in ("calibration", "calibration_of_evaluation") if key in given), None)
    if "calibration_share" in given and of_public is not None:
        said = f"calibration_share holds private rows out for sets or intervals, and [data] {of_public} makes them of"
        raise InvalidParameter(f"[data] {said} public ones, for free; leave calibration_share out")
    if "calibration_share" not in given and "coverage" in given:
        said = "coverage is what [data] calibration_share is chosen for, which is missing; leave coverage out, and"
        raise InvalidParameter(f"[data] {said} ask for any one by quorate predict --coverage")


def refuse_names_without_columns(data: Any) -> None:
    """Refuse settings that name columns of a table whose columns have no names: they would be passed over."""
    named = [key for key in ("drop", "text", "categorical", "numeric", "dates", "images") if getattr(data, key)]
    if not named:
        return
    from quorate.data.formats import has_named_columns  # here: who only looks at a run reads no table

    for table in data.tables.values():
        if not has_named_columns(table, data.dialect):
            raise InvalidParameter(
                f"[data] {named[0]} names columns, and those of {table.name} have no names; leave it out, or save the "
                "rows as CSV or Parquet"
            )
