"""Why a database refuses a query, or cannot be reached, in sentences of ours that hang on no row.

What a database says itself may quote a cell. So nothing of it is passed on: a code, or how its text begins, chooses one
of the sentences here, and only where the query was looked at and no row was.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from quorate.errors import InvalidParameter, PreconditionFailed

_NO_TABLE = "names a table that is not there, or that this user may not see; see how it is spelt, and its schema"
_NO_COLUMN = "names a column that is not there; see how it is spelt"
_TWO_COLUMNS = "names a column that two of its tables have; write the table before it (table.column)"
_NO_FUNCTION = "calls a function that is not there, or not with these arguments; see how it is spelt"
_SYNTAX = "is no SQL that the database understands; see its spelling, commas, quotes and parentheses"
_NOT_PERMITTED = "reads what this user of the database may not; ask its administrator for the right to select"
_ONE_STATEMENT = "is more than one statement; write one statement, with nothing after its semicolon"
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


def refused_by_sqlite(error: sqlite3.Error, outermost: str) -> str:
    """Say why SQLite does not prepare a query, which looks at no row; `outermost`: the query without strings, comments,
    and what stands in parentheses.
    """
    text = str(error).lower()
    other = (
        _SYNTAX if text.endswith("syntax error") else "is refused by the database; try it in sqlite3, which says why"
    )
    sentence = next((known for words, known in _BY_WORDS_OF_SQLITE if text.startswith(words)), other)
    return _as_written(sentence, outermost)


def refused_by_postgresql(error: Any, outermost: str) -> str | None:
    """Say why PostgreSQL refuses a query; None where it may be a matter of a row: a statement that a function makes of
    a cell fails with the same codes, and with the function as context.
    """
    diagnosed = getattr(error, "diag", None)
    if getattr(diagnosed, "context", None) is not None or getattr(diagnosed, "internal_query", None) is not None:
        return None
    sentence = _BY_SQLSTATE.get(error.sqlstate)
    if sentence is None:  # the others of this class are of the query, too
        of_query = error.sqlstate.startswith("42")
        return (
            f"is refused by the database (SQLSTATE {error.sqlstate}); try it in psql, which says why"
            if of_query
            else None
        )
    return _as_written(sentence, outermost)


def _as_written(fault: str, outermost: str) -> str:
    """Tell apart what is no SQL because it is two statements, or one that writes where a table is expected."""
    if fault != _SYNTAX:
        return fault
    if ";" in outermost:
        return _ONE_STATEMENT
    return WRITES if _WRITING.match(outermost) else _SYNTAX


def unreadable_file(setting: str, file: Any, error: sqlite3.Error) -> PreconditionFailed | None:
    """Say of an SQLite file that it is none, is damaged or is held; None where the error is about something else."""
    words = {
        "SQLITE_NOTADB": "which is no SQLite database; see that it is the right file",
        "SQLITE_CORRUPT": "which is damaged; restore it from a backup",
        "SQLITE_BUSY": "which another process is writing to; try again",
    }.get(getattr(error, "sqlite_errorname", ""))
    return None if words is None else PreconditionFailed(f"{setting} names {file}, {words}")


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
    if why is not None:
        return InvalidParameter(f"{name} {why}")
    return InvalidParameter(
        f"{name} is refused by the database (an error while it ran); what it says is not quoted, since it may hold "
        "cells. Try the query in psql or sqlite3"
    )
