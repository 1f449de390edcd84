"""Why a store failed: a code, and a sentence of our own for it.

What a database says of an error may quote a statement, and so what was to be stored. Its codes quote nothing.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from typing import Final

_OF_SQLITE: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file, its folder or its disk is read-only",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_NOTADB: "the file is no database, or it is damaged",
    sqlite3.SQLITE_CANTOPEN: "a file could not be opened",
    sqlite3.SQLITE_PERM: "a file may not be used",
    sqlite3.SQLITE_NOMEM: "no memory is left",
    sqlite3.SQLITE_BUSY: "another process holds the file",
    sqlite3.SQLITE_LOCKED: "another connection holds the table",
    sqlite3.SQLITE_CONSTRAINT: "somebody else wrote to the table",
    sqlite3.SQLITE_PROTOCOL: "the locks of this file system do not work",
    sqlite3.SQLITE_MISUSE: "the database was used after it was closed",
}
_OF_POSTGRESQL: Final = {  # by the code, or by its first two characters
    "08": "the connection to the database broke",
    "22": "the database does not take what was to be stored",
    "23": "somebody else wrote to the ledger's tables",
    "25": "the transaction was ended by the database",
    "25006": "the database is read-only, such as a standby",
    "25P03": "the transaction was idle for longer than the database allows",
    "28": "the database refuses this user",
    "3D": "there is no such database",
    "40": "the transaction met another one and was rolled back by the database",
    "42": "the ledger's tables are not what they were",
    "42501": "this user lacks a permission on the ledger's tables",
    "53": "the database lacks a resource",
    "53100": "the disk of the database is full",
    "53200": "the database has no memory left",
    "53300": "the database has too many connections",
    "55P03": "another server holds the head of the ledger",
    "57": "the database was told to stop this",
    "57014": "the statement took longer than it may",
    "57P01": "the database is shutting down, or an administrator ended the connection",
    "57P02": "a process of the database crashed",
    "57P03": "the database does not take connections now",
    "57P05": "the connection was idle for longer than the database allows",
    "58": "the disk of the database reports an error",
    "XX": "the database found its own files damaged",
}
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def reason_of(error: BaseException) -> str:
    """Return the code of an error of a disk or a database, and a sentence for it; nothing of its message."""
    if isinstance(error, MemoryError):
        return "MemoryError: no memory is left"
    if isinstance(error, OSError) and error.errno is not None:
        return f"{errno.errorcode.get(error.errno, str(error.errno))}: {os.strerror(error.errno)}"
    if isinstance(error, sqlite3.Error):
        name, code = getattr(error, "sqlite_errorname", None), getattr(error, "sqlite_errorcode", 0) & 0xFF
        return f"{name or type(error).__name__}: {_OF_SQLITE.get(code, 'SQLite failed')}"
    sqlstate = getattr(error, "sqlstate", None)
    if isinstance(sqlstate, str):
        sentence = _OF_POSTGRESQL.get(sqlstate) or _OF_POSTGRESQL.get(sqlstate[:2], "PostgreSQL failed")
        return f"SQLSTATE {sqlstate}: {sentence}"
    return f"{type(error).__name__}: the connection to the database broke, or the database did not answer in time"


def is_shortage(error: BaseException) -> bool:
    """Tell whether this process, or the database, lacks what it may have again in a moment."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno in _SHORTAGES)
        or getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOMEM
        or getattr(error, "sqlstate", None) in ("53200", "53300")
    )


TRY_AGAIN: Final = "the ledger could not be written to just now ({}); nothing was written: try again"
