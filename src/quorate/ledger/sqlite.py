"""The default store: one SQLite file, written by one connection of one process at a time.

Several connections that write and checkpoint the same write-ahead log can corrupt it in SQLite 3.7.0 to 3.51.2;
here there is one, held by two locks: a lock file, which survives that somebody in this process opens and closes the
database file (POSIX drops a process's record locks then), and SQLite's own exclusive lock, which survives that
somebody deletes the lock file and keeps other tools out.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from quorate.errors import InvalidParameter, LedgerBusy, LedgerIntegrityError, PreconditionFailed, QuorateError
from quorate.ledger.ledger_files import APPLICATION_ID, BUSY, NO_ANCHOR, LedgerFiles
from quorate.ledger.state import GENESIS, Head
from quorate.ledger.store import TRY_AGAIN, StoredEntry, is_shortage, reason_of

_SCHEMA = "CREATE TABLE entry (sequence INTEGER PRIMARY KEY, line TEXT NOT NULL)"


class SqliteStore:
    """Keeps lines in the table of one SQLite file (write-ahead log, ``synchronous=FULL``), mode 0600.

    Beside ``<path>`` lie ``<path>.anchor`` (the newest head) and ``<path>.lock``, which from the first entry on is not
    empty; and ``<path>.key``, if somebody put it there as ``<path>.key.new``: with the first entry it gets its name.
    So a ledger and an anchor that were both deleted are missed, and a start that was interrupted is none of these.

    `path`: the database file, in a folder that exists. `create`: whether to create it where there is neither file nor
    anchor. `at`: told the name of each step just after it: "begun", "inserted", "committed", "anchor written",
    "anchored"; and, where the anchor is made, "anchor renamed". Fault tests stop there. Raises PreconditionFailed if
    there is no ledger and `create` is False, or the path cannot hold one; LedgerBusy if another process, or another
    object of this one, holds it; LedgerIntegrityError if ledger or anchor, or both, are missing, or cannot be read; or
    the anchor says that there is no entry yet, where a lock file or a key says that there was one.

    A ledger has one name. Its anchor, lock, log and key are found by that name, so under a second one (a symbolic or a
    hard link) it would have another set of them: whoever opens it there would miss what the first set tells. A link to
    a folder above it is no second name.
    """

    durable: Final = True

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool, at: Callable[[str], None] = lambda _: None
    ) -> None:
        self._connection: sqlite3.Connection | None = None
        if not isinstance(path, str | os.PathLike):
            raise InvalidParameter(f"path must be a str or a path, got {type(path).__name__}")
        self.path = Path(path).parent.resolve() / Path(path).name
        self.commits = 0
        self._at = at
        with self._guarded("opened"):
            self._files = LedgerFiles(self.path, at=at, create=create)
            try:
                with self._files.opening() as new:
                    self._connect(new=new)
            except BaseException:
                self.close()
                raise
        _watch_forks()
        _OPEN.add(self)

    @property
    def facts(self) -> Mapping[str, str]:
        """The store's kind and the version of SQLite."""
        return {"sqlite": sqlite3.sqlite_version, "store": "sqlite"}

    @property
    def in_place(self) -> bool:
        """Whether database, log and anchor stand under their names."""
        return self._files.in_place

    def load(self, after: int = 0) -> StoredEntry:
        """Return all lines beyond ``after``, and the anchor; the file's own checks are made where all are read."""
        with self._guarded("read"):
            connection = self._open_connection()
            if not after and [row[0] for row in connection.execute("PRAGMA integrity_check")] != ["ok"]:
                raise LedgerIntegrityError(
                    "the ledger's file is damaged; restore the newest ledger and anchor together"
                )
            beyond = "SELECT sequence, line FROM entry WHERE sequence > ? ORDER BY sequence"
            rows = connection.execute(beyond, (after,)).fetchall()
            if [row[0] for row in rows] != list(range(after + 1, after + len(rows) + 1)):
                raise LedgerIntegrityError("entries are missing from the ledger; restore the newest ledger and anchor")
            anchor = self._files.anchor
            slots = anchor.slots()
            if slots is None or slots.newest is None:
                raise LedgerIntegrityError(NO_ANCHOR)
            if slots.torn and slots.newest.sequence >= self._newest():  # no crash of ours leaves these two together
                raise LedgerIntegrityError(
                    f"a part of the anchor {anchor.path.name} is damaged, and the ledger holds nothing beyond "
                    "the other part: whether it is the newest is unknown; restore the newest ledger and anchor together"
                )
            if rows and slots.newest != GENESIS:  # where it is, the newest entry is anchored first
                self._files.leave_traces()
            return StoredEntry(lines=tuple(row[1] for row in rows), anchor=slots.newest)

    def _newest(self) -> int:
        [[newest]] = self._open_connection().execute("SELECT coalesce(max(sequence), 0) FROM entry")
        return int(newest)

    def begin(self, _after: int, /) -> Sequence[object]:
        """Begin to write: nobody else can have appended.

        Raises LedgerIntegrityError if a file of the ledger was removed or replaced since it was opened; LedgerBusy if
        this process has no descriptor or no memory left: nothing was written, and it may be tried again.
        """
        with self._guarded("written"):
            connection = self._open_connection()
            try:
                self._files.refuse_replaced()
                self._files.name_log()
                connection.execute("BEGIN IMMEDIATE")
            except (OSError, sqlite3.Error, MemoryError) as error:
                if not is_shortage(error):
                    raise
                with suppress(sqlite3.Error):
                    self.abandon()
                raise LedgerBusy(TRY_AGAIN.format(reason_of(error))) from error
            self._files.noted = False
            self._at("begun")
        return ()

    def append(self, lines: Sequence[str], head: Head) -> None:
        """Append in one transaction, wait for the disk, then anchor ``head`` and wait again."""
        with self._guarded("written"):
            connection = self._open_connection()
            first = head.sequence - len(lines) + 1
            connection.executemany("INSERT INTO entry VALUES (?, ?)", enumerate(lines, first))
            self._at("inserted")
            connection.execute("COMMIT")
            self.commits += 1
            self._files.note(written=True)
            self._at("committed")
            self._files.anchor.write(head)
            if first == 1:
                self._files.leave_traces()

    def abandon(self) -> None:
        """End what was begun, with nothing written."""
        if self._connection is not None and self._connection.in_transaction:
            with self._guarded("unlocked"):
                self._connection.execute("ROLLBACK")
                self._files.note(written=self.commits > 0)

    def anchor(self, head: Head) -> None:
        """Anchor a head that was committed, but perhaps not waited for: put the log on the disk first."""
        with self._guarded("anchored"):
            if self._open_connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise LedgerIntegrityError("the log could not be put on the disk; open the ledger again")
            self._files.note(written=self.commits > 0)
            self._files.anchor.write(head)
            self._files.leave_traces()

    def close(self) -> None:
        """Close the file, then unlock it; LedgerIntegrityError if what was written is in a file that was replaced."""
        _OPEN.discard(self)
        connection, self._connection = self._connection, None
        with self._guarded("closed"), self._files.let_go():
            if connection is not None:
                try:
                    if self.commits:
                        self._files.refuse_replaced()
                finally:
                    connection.close()

    def __del__(self) -> None:
        # Whoever forgot to close it gives it back with the last reference.
        with suppress(QuorateError, OSError):
            if hasattr(self, "_files"):  # else it was refused at once
                self.close()

    def _connect(self, *, new: bool) -> None:
        connection = self._connection = sqlite3.connect(
            self.path, timeout=0, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        # Set before anything is read: an exclusive connection keeps the log's index in its own memory.
        if connection.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
            raise LedgerIntegrityError("SQLite could not keep a write-ahead log here; use a local file system")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA fullfsync=ON")
        connection.execute("PRAGMA checkpoint_fullfsync=ON")
        connection.execute("BEGIN IMMEDIATE")
        tables = [row[0] for row in connection.execute("SELECT sql FROM sqlite_master")]
        if new and not tables:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(_SCHEMA)
            tables = [_SCHEMA]
        connection.execute("COMMIT")
        if tables != [_SCHEMA] or connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            raise LedgerIntegrityError(f"{self.path.name} is not a ledger, or its tables were altered")

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise PreconditionFailed("the ledger was closed; open it again")
        return self._connection

    @contextmanager
    def _guarded(self, done: str) -> Iterator[None]:
        try:
            yield
        except QuorateError:
            raise
        except (OSError, sqlite3.Error, sqlite3.Warning) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise LedgerBusy(BUSY.format(self.path)) from error
            if done == "opened" and _is_forbidden(error):
                words, remedy = f"no permission to open the ledger {self.path}", "ask their owner"
                if getattr(error, "errno", None) == errno.EROFS:
                    words, remedy = f"the file system of the ledger {self.path} is read-only", "mount it for writing"
                raise PreconditionFailed(
                    f"{words}: even to read it, its folder and files must be writable, for the lock; {remedy}, or open "
                    "a copy of the folder"
                ) from error
            raise LedgerIntegrityError(
                f"the ledger could not be {done} ({reason_of(error)}); nothing is released until it is opened and "
                "verified again",
                charged="the last charge may have been recorded",
            ) from error


def _is_forbidden(error: Exception) -> bool:
    codes = (sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
    return (
        isinstance(error, PermissionError)
        or getattr(error, "errno", None) == errno.EROFS
        or getattr(error, "sqlite_errorcode", 0) & 0xFF in codes
    )


_OPEN: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def _forget_in_child() -> None:
    """Keep a forked child from closing a connection that it inherited: closing would move the parent's log.

    The child's reference is never given back, so that not even its end closes the connection. The lock stays with
    the parent, in its own descriptor.
    """
    for store in tuple(_OPEN):
        if store._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(store._connection))
            store._connection = None
        store._files.forget_lock()
    _OPEN.clear()


@cache
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=_forget_in_child)
