"""Rows of a PostgreSQL or SQLite database, by one query that can only read.

Every value comes as text, as a cell of a CSV file does, so that what one row holds does not change how another is read.
What a database says of an error may quote a cell. So nothing of it is passed on: a code, or how its text begins,
chooses one of the sentences here, and only where the query was looked at and no row was.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from quorate.arguments import before_at
from quorate.deferred import pl
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed

SCHEMES = ("postgresql", "postgres", "sqlite")
_ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
# What is no code of the query itself, and parentheses; of strings, each database has its own.
_COMMON = r"""--[^\n]*|'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|/\*|\*/|[()]"""
_TOKEN_OF_SQLITE = re.compile(rf"{_COMMON}|`[^`]*(?:`|\Z)|\[[^\]]*(?:\]|\Z)")
_TOKEN_OF_POSTGRESQL = re.compile(
    rf"(?<![\w$])[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z)|(?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)|{_COMMON}",
    re.DOTALL,
)
_AT_ONCE = 10_000  # rows
_AS_TEXT = "quorate_text"  # what SQLite calls the text that stands for a value here
_TRUTH = 16
_TYPES = {_TRUTH: bool, **dict.fromkeys((20, 21, 23, 26), int), **dict.fromkeys((700, 701, 1700), float)}  # object ids
_NO_TABLE = "names a table that is not there, or that this user may not see; see how it is spelt, and its schema"
_NO_COLUMN = "names a column that is not there; see how it is spelt"
_TWO_COLUMNS = "names a column that two of its tables have; write the table before it (table.column)"
_NO_FUNCTION = "calls a function that is not there, or not with these arguments; see how it is spelt"
_SYNTAX = "is no SQL that the database understands; see its spelling, commas, quotes and parentheses"
_NOT_PERMITTED = "reads what this user of the database may not; ask its administrator for the right to select"
_ONE_STATEMENT = "is more than one statement; write one statement, with nothing after its semicolon"
_REFUSED = "is refused by the database; try it in sqlite3, which says why"
WRITES = "does more than read, and is not run; write one that selects"

_BY_SQLSTATE = {
    "42P01": _NO_TABLE,
    "42703": _NO_COLUMN,
    "42702": _TWO_COLUMNS,
    "42883": _NO_FUNCTION,
    "42601": _SYNTAX,
    "42501": _NOT_PERMITTED,
    "25006": WRITES,
    "0A000": WRITES,
}
_OF_A_FILE = {
    "SQLITE_NOTADB": "which is no SQLite database; see that it is the right file",
    "SQLITE_CORRUPT": "which is damaged; restore it from a backup",
    "SQLITE_BUSY": "which another process is writing to; try again",
}
_BY_WORDS_OF_SQLITE = (
    ("not authorized", WRITES),
    ("authorization denied", WRITES),
    ("attempt to write a readonly database", WRITES),
    ("you can only execute one statement", _ONE_STATEMENT),
    ("no such table", _NO_TABLE),
    ("no such column", _NO_COLUMN),
    ("ambiguous column name", _TWO_COLUMNS),
    ("no such function", _NO_FUNCTION),
    ("wrong number of arguments to function", _NO_FUNCTION),
    ("incomplete input", _SYNTAX),
    ("unrecognized token", _SYNTAX),
)
_WRITING = re.compile(
    r"\s*(insert|update|delete|replace|merge|create|drop|alter|truncate|grant|revoke|copy|call|do|set|attach|detach|"
    r"pragma|vacuum|reindex|analyze|begin|commit)\b|.*\b(insert\s+into|delete\s+from)\b",
    re.IGNORECASE | re.DOTALL,
)
_BY_WORDS_OF_LIBPQ = (
    (
        "password authentication failed",
        "the server refuses the password; see that PGPASSWORD or ~/.pgpass has that of this user",
    ),
    ("connection refused", "no server answers at this host and port; see that it is up, and that both are right"),
    ("no such file or directory", "no server answers at this socket; see that it is up, and that its folder is right"),
    ("failed to resolve host", "there is no such host; see how its name is spelt"),
    ("could not translate host name", "there is no such host; see how its name is spelt"),
    ("timeout expired", "the server does not answer in time; see that host and port are right, and that it is up"),
    ("no pg_hba.conf entry", "the server lets this user in from nowhere here; ask its administrator"),
)
_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def is_database(text: object) -> bool:
    """Tell whether a text is the URL of a database that is read."""
    return isinstance(text, str) and text.partition("://")[0].lower() in SCHEMES and "://" in text


@dataclass(frozen=True, slots=True)
class DatabaseQuery:
    """A table that a query makes of a database, which is only read. `setting`: what the settings call it.

    `url`: ``postgresql://user@host/database`` or ``sqlite:///file.db`` (relative to `folder`); one with a password is
    refused, unquoted: libpq takes that from ``PGPASSWORD`` or ``~/.pgpass``.
    """

    url: str = field(repr=False)
    query: str = field(repr=False)
    setting: str
    folder: Path = field(repr=False)

    def __post_init__(self) -> None:
        if _has_password(self.url):
            raise InvalidParameter(
                f"{self.setting} holds a password, and quorate.toml is no place for one; leave it out of the URL, and "
                "give it by the environment variable PGPASSWORD or in ~/.pgpass (an @ that is part of a name is %40)"
            )
        try:
            urlsplit(self.url)
        except ValueError:
            raise InvalidParameter(
                f"{self.setting} is no URL of a database; write postgresql://user@host/database or sqlite:///file.db"
            ) from None
        if self.is_sqlite and not self.url.lower().startswith("sqlite:///"):
            path = self.url.partition("://")[2]
            raise InvalidParameter(
                f'{self.setting}: after sqlite: there are three slashes; write "sqlite:///{path or "clinic.db"}"'
            )
        if self.is_sqlite and not self.file.name:
            raise InvalidParameter(f"{self.setting} names no file; write sqlite:///clinic.db")

    @property
    def name(self) -> str:
        """What a message calls the table."""
        return f"the query of {self.setting}"

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of SQLite."""
        return self.url.lower().startswith("sqlite:")

    @property
    def file(self) -> Path:
        """The file of an SQLite database."""
        return self.folder / urlsplit(self.url).path.removeprefix("/")

    @property
    def is_ordered(self) -> bool:
        """Whether the query itself says in which order rows come; a part of it, such as a window, does not."""
        return _ORDERED.search(_outermost(self.query, is_sqlite=self.is_sqlite)) is not None

    def is_as(self, other: DatabaseQuery) -> bool:
        """Tell whether another is the same query of the same database, but for spaces and the semicolon at its end."""
        one, two = (q.file.resolve() if q.is_sqlite else q.url.partition("://")[2].strip() for q in (self, other))
        return one == two and self._bare.split() == other._bare.split()

    def exists(self) -> bool:
        """Tell whether there is such a file; whether a server answers is seen when it is asked."""
        return not self.is_sqlite or self.file.is_file()

    def __str__(self) -> str:
        return self.name

    def names(self) -> list[str]:
        """Return the names of the columns, or refuse; no row is fetched."""
        with self._rows_of(self._of("*", " limit 0")) as cursor:
            return [column[0] for column in cursor.description]

    def cells(self) -> pl.DataFrame:
        """Return all rows, every value as text, and null for a missing one, in the order of :meth:`blocks`."""
        return pl.concat(list(self.blocks()))

    def blocks(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of :meth:`cells`, some at once; of a table without rows, one block without rows. In the order
        of the query or, without one, of their values as texts: a run that goes on must find the same ones.
        """
        with self._rows_of(self._bare if self.is_sqlite else self._of("*", " limit 0")) as cursor:
            names = [column[0] for column in cursor.description]
        if len(set(names)) < len(names):
            raise DataRefused(f"{self.name}: two columns have one name; name each of them (… as name)")
        ordered = self._bare if self.is_ordered else self._of("*", f" order by {self._keys(names)}")
        with self._rows_of(ordered, stays=True) as cursor:
            truths = [] if self.is_sqlite else [column[0] for column in cursor.description if column[1] == _TRUTH]
            as_words = pl.col(truths).replace({"t": "true", "f": "false"})
            height = 0
            while True:
                with self._refusing():
                    rows = cursor.fetchmany(_AT_ONCE)
                if not rows and height:
                    return
                block = _as_texts(rows, names)
                yield block.with_columns(as_words) if truths else block
                if not rows:
                    return
                height += len(rows)

    def _keys(self, names: Sequence[str]) -> str:
        """Return by what rows are put in order: the texts of all their values, byte by byte, missing ones last."""
        quoted = self._quoted(names)
        if self.is_sqlite:  # a text that is no UTF-8 is read by us alone
            value = "case typeof({0}) when 'text' then cast({0} as blob) else {0} end"
            return ", ".join(f"{_AS_TEXT}({value.format(name)}) nulls last" for name in quoted)
        value = "case when {0} is not distinct from null then null else convert_to(format('%s', {0}), 'UTF8') end"
        return f"array[{', '.join(value.format(name) for name in quoted)}]"  # one key, however many columns there are

    def table(self, *, text: Sequence[str] = ()) -> pl.DataFrame:
        """Return all rows, with numbers and truth values where the database has them (in SQLite, by values), and `text`
        columns as text.
        """
        cells, types = self.cells(), self._types()
        wanted = {name: types[name] for name in cells.columns if name in types and name not in text}
        as_number = {int: pl.Int64, float: pl.Float64}
        return cells.with_columns(
            pl.col(name) == "true" if dtype is bool else pl.col(name).cast(as_number[dtype], strict=False)
            for name, dtype in wanted.items()
        )

    def _types(self) -> dict[str, type]:
        """Return the columns of numbers and truth values."""
        if not self.is_sqlite:
            with self._rows_of(self._of("*", " limit 0")) as cursor:
                return {column[0]: _TYPES[column[1]] for column in cursor.description if column[1] in _TYPES}
        names = self.names()
        quoted = self._quoted(names)
        other = ", ".join(f"max(typeof({name}) in ('text', 'blob')), max(typeof({name}) = 'real')" for name in quoted)
        with self._rows_of(self._of(other)) as cursor, self._refusing():
            row = cursor.fetchone()
        columns = zip(names, row[::2], row[1::2], strict=True)
        return {name: float if real else int for name, is_text, real in columns if is_text == 0}

    def _quoted(self, names: Sequence[str]) -> list[str]:
        mark = "`" if self.is_sqlite else '"'  # what stands in quotes and is no column, SQLite would take for a text
        return [mark + name.replace(mark, 2 * mark) + mark for name in names]

    def _of(self, what: str, more: str = "") -> str:
        return f"select {what} from (\n{self._bare}\n) as asked{more}"  # noqa: S608 - what the owner wrote

    @property
    def _bare(self) -> str:
        return self.query.strip().rstrip(";").rstrip()

    @contextmanager
    def _rows_of(self, query: str, *, stays: bool = False) -> Iterator[Any]:
        """Ask a query, and yield a cursor over its rows; with `stays` they stay with the server until fetched."""
        how = {"name": "rows"} if stays and not self.is_sqlite else {}
        with self._connected() as connection, closing(connection.cursor(**how)) as cursor:
            if self.is_sqlite:
                with self._refusing(prepares=True):
                    cursor.execute(f"explain {query}")
                with self._refusing():
                    cursor.execute(query)
            else:
                with self._refusing():
                    cursor.execute(query, **({} if stays else {"prepare": True}))  # both take one statement alone
            if cursor.description is None:
                raise InvalidParameter(f"{self.name} returns no rows; write one that selects")
            yield cursor

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        if self.is_sqlite:
            if not self.file.is_file():
                raise PreconditionFailed(f'{self.setting}: there is no file "{self.file}"')
            with closing(self._sqlite()) as connection:
                only_reads = {True: sqlite3.SQLITE_OK, False: sqlite3.SQLITE_DENY}
                connection.set_authorizer(lambda action, *_: only_reads[action in _READING])
                connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
                connection.create_function(_AS_TEXT, 1, _text, deterministic=True)
                yield connection
            return
        try:
            import psycopg
        except ImportError:
            raise PreconditionFailed(
                f"{self.setting} is a PostgreSQL database, which needs psycopg: pip install 'quorate[postgres]'"
            ) from None
        options = "-c default_transaction_read_only=on -c datestyle=ISO,YMD -c intervalstyle=iso_8601"
        try:  # with the encoding in which texts are read here, whatever the role or PGCLIENTENCODING says
            server = psycopg.connect(self.url, options=options, client_encoding="UTF8")
        except psycopg.Error as error:
            raise unreachable(self.setting, error) from None
        with closing(server):
            server.read_only = True
            _load_texts(server)
            yield server

    def _sqlite(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(f"file:{quote(os.fsencode(self.file.resolve()))}?mode=ro", uri=True)
        except (sqlite3.Error, ValueError) as error:  # no permission; a name that SQLite does not take
            raise PreconditionFailed(
                f"{self.setting}: {self.file} cannot be opened as an SQLite database ({type(error).__name__}); see "
                "that it is one, and that you may read it and its folder"
            ) from None

    @contextmanager
    def _refusing(self, *, prepares: bool = False) -> Iterator[None]:
        """Say what is wrong with a query without quoting what the database says of it."""
        try:
            yield
        except sqlite3.Error as error:
            if prepares and (fault := _OF_A_FILE.get(getattr(error, "sqlite_errorname", ""))) is not None:
                raise PreconditionFailed(f"{self.setting} names {self.file}, {fault}") from None
            # Once rows are looked at, what is said hangs on them: a search for what a cell holds names its "column".
            raise refused(self.name, refused_by_sqlite(error, self._own_words) if prepares else None) from None
        except Exception as error:  # noqa: BLE001 - none is passed on: it may quote a cell
            if not isinstance(getattr(error, "sqlstate", None), str):  # a lost connection, or a driver and a value
                raise PreconditionFailed(
                    f"{self.name} was broken off: the connection was lost, or the driver failed; what it says is not "
                    "quoted, since it may hold cells. See that the database is up, and try again"
                ) from None
            raise refused(self.name, refused_by_postgresql(error, self._own_words)) from None

    @property
    def _own_words(self) -> str:
        return _outermost(self._bare, is_sqlite=self.is_sqlite)


def _has_password(url: str) -> bool:
    """Tell whether a URL holds a password, or what may be one, as libpq reads it: a colon before the last @, or a
    parameter of that name after the first question mark.
    """
    parameters = [unquote(part.partition("=")[0]).lower() for part in re.split("[?&;#]", url)[1:]]
    return ":" in unquote(before_at(url)) or any("password" in part for part in parameters)


def _outermost(query: str, *, is_sqlite: bool) -> str:
    """Return a query without its strings, quoted names, comments, and all that stands in parentheses."""
    token = _TOKEN_OF_SQLITE if is_sqlite else _TOKEN_OF_POSTGRESQL
    kept: list[str] = []
    at = depth = 0
    while (match := token.search(query, at)) is not None:
        if depth == 0:
            kept.append(query[at : match.start()])
        text, at = match.group(), match.end()
        if text == "/*":
            at = _end_of_comment(query, at, nests=not is_sqlite)
        depth = max(0, depth + {"(": 1, ")": -1}.get(text, 0))
        kept.append(" " if text.startswith(("--", "/*")) else " . ")
    if depth == 0:
        kept.append(query[at:])
    return "".join(kept)


def _end_of_comment(query: str, at: int, *, nests: bool) -> int:
    depth = 1
    for mark in re.finditer(r"/\*|\*/", query[at:]):
        depth += -1 if mark.group() == "*/" else nests
        if depth == 0:
            return at + mark.end()
    return len(query)


def _load_texts(connection: Any) -> None:
    """Have every value come as the server writes it: a value that Python has no form for stops nothing."""
    from psycopg.adapt import Loader

    class Text(Loader):
        def load(self, data: Any) -> str:
            return bytes(data).decode("utf-8", "replace")

    for known in list(connection.adapters.types):
        connection.adapters.register_loader(known.oid, Text)
        if known.array_oid:
            connection.adapters.register_loader(known.array_oid, Text)
    connection.adapters.register_loader(0, Text)  # and types that are not known


def _as_texts(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> pl.DataFrame:
    columns = [[_text(value) for value in values] for values in zip(*rows, strict=True)] if rows else [[]] * len(names)
    return pl.DataFrame(dict(zip(names, columns, strict=True)), schema=dict.fromkeys(names, pl.String))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return repr(value) if isinstance(value, float) else str(value)


def refused_by_sqlite(error: sqlite3.Error, outermost: str) -> str:
    """Say why SQLite does not prepare a query, which looks at no row; `outermost`: the query without strings, comments,
    and what stands in parentheses.
    """
    text = str(error).lower()
    sentence = _SYNTAX if text.endswith("syntax error") else _REFUSED
    sentence = next((known for words, known in _BY_WORDS_OF_SQLITE if text.startswith(words)), sentence)
    return _as_written(sentence, outermost)


def refused_by_postgresql(error: Any, outermost: str) -> str | None:
    """Say why PostgreSQL refuses a query; None where it may be a matter of a row: a statement that a function makes of
    a cell fails with the same codes, and with the function as context.
    """
    diagnosed = getattr(error, "diag", None)
    if getattr(diagnosed, "context", None) is not None or getattr(diagnosed, "internal_query", None) is not None:
        return None
    sentence = _BY_SQLSTATE.get(error.sqlstate)
    if sentence is not None:
        return _as_written(sentence, outermost)
    words = f"is refused by the database (SQLSTATE {error.sqlstate}); try it in psql, which says why"
    return words if error.sqlstate.startswith("42") else None  # the others of this class are of the query, too


def _as_written(fault: str, outermost: str) -> str:
    """Tell apart what is no SQL because it is two statements, or one that writes where a table is expected."""
    if fault != _SYNTAX:
        return fault
    if ";" in outermost:
        return _ONE_STATEMENT
    return WRITES if _WRITING.match(outermost) else _SYNTAX


def unreachable(setting: str, error: Any) -> PreconditionFailed:
    """Say why there is no connection, in as far as libpq tells: of this nothing hangs on a row."""
    text, connection = str(error).lower(), getattr(error, "pgconn", None)
    if getattr(connection, "needs_password", False):
        why = "the server asks for a password, and there is none; give it by PGPASSWORD or in ~/.pgpass"
    else:
        why = next((sentence for words, sentence in _BY_WORDS_OF_LIBPQ if words in text), "")
    if not why and re.search(r'(role|database) "[^"]*" does not exist', text):
        why = "the server has no such user or database; see how both are spelt in the URL"
    if not why:
        why = (
            f"{type(error).__name__}; see that host, port, database and user are right, and that PGPASSWORD or "
            "~/.pgpass has the password if one is needed"
        )
    return PreconditionFailed(f"{setting}: the database cannot be reached: {why}")


def refused(name: str, why: str | None) -> InvalidParameter:
    """Return the refusal of a query for a reason, or for one that may hang on a row."""
    why = why or (
        "is refused by the database (an error while it ran); what it says is not quoted, since it may hold "
        "cells. Try the query in psql or sqlite3"
    )
    return InvalidParameter(f"{name} {why}")
