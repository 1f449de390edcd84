"""What a ledger needs of the place where it is kept, why such a place failed, and one in memory, which is not durable.

What a database says of an error may quote a statement, and so what was to be stored. So a failure has a code, which
quotes nothing, and a sentence of our own for it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from quorate.ledger.state import GENESIS, Head

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


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredEntry:
    """What a store holds: the lines as they are, unverified, and the anchored head."""

    lines: tuple[object, ...]
    anchor: Head


@runtime_checkable
class LedgerStore(Protocol):
    """Keeps the lines of one ledger, in order. It decides nothing: the chain and its rules are checked above it.

    Formal guarantees
    -----------------
    - When :meth:`append` returns, all its lines and the new anchor are on stable storage (if :attr:`durable`).
    - If the process dies at any moment, all lines of an :meth:`append` are there, or none; the anchor never names
      an entry that is not there.
    - Nobody else appends between :meth:`begin` and :meth:`append` or :meth:`abandon`.
    - Whatever goes wrong raises: :class:`~quorate.errors.LedgerBusy` where another process holds the ledger,
      :class:`~quorate.errors.LedgerIntegrityError` otherwise. A ledger uses a store no more after an error, but for
      ``LedgerBusy`` of :meth:`begin`: nothing was begun then, and it may be tried again.
    - The message of an error goes to the log of a service. It holds no line that was to be stored.
    """

    @property
    def durable(self) -> bool:
        """Whether entries outlive the process."""

    @property
    def in_place(self) -> bool:
        """Whether what holds the ledger is still where it was opened, as far as that is seen at once."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What is recorded about the store when a session starts: its kind and version."""

    def load(self, after: int = 0) -> StoredEntry:
        """Return all lines beyond ``after``, oldest first, and the anchor."""

    def begin(self, after: int, /) -> Sequence[object]:
        """Begin to write; return the lines beyond ``after`` that others appended (none in an exclusive store)."""

    def append(self, lines: Sequence[str], head: Head) -> None:
        """Append in one atomic, durable step; then anchor ``head``, the last of them."""

    def abandon(self) -> None:
        """End what :meth:`begin` began, with nothing written."""

    def anchor(self, head: Head) -> None:
        """Anchor a head that is in the chain already."""

    def close(self) -> None:
        """Let go of the ledger. May be called again."""


class MemoryStore:
    """Keeps lines in a list; they end with the process."""

    durable: Final = False
    in_place: Final = True
    facts: Final[Mapping[str, str]] = MappingProxyType({"store": "memory"})

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._anchor = GENESIS
        self.commits = 0

    def load(self, after: int = 0) -> StoredEntry:
        """Return all lines beyond ``after``, and the anchor."""
        return StoredEntry(lines=tuple(self._lines[after:]), anchor=self._anchor)

    def begin(self, after: int, /) -> Sequence[str]:
        """Begin to write: nobody else can have appended."""
        return self._lines[after:]

    def append(self, lines: Sequence[str], head: Head) -> None:
        """Append, then anchor."""
        self._lines.extend(lines)
        self._anchor = head
        self.commits += 1

    def abandon(self) -> None:
        """End what was begun."""

    def anchor(self, head: Head) -> None:
        """Anchor a head."""
        self._anchor = head

    def close(self) -> None:
        """Nothing is held."""


def own_store(store: LedgerStore) -> str | None:
    """Name a store that is not of this package, with its module; None for those that are."""
    kind = type(store)
    here = kind.__module__.startswith("quorate.")
    if here and getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind:
        return None
    return f"{kind.__module__}.{kind.__qualname__}"
