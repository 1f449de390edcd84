"""The store for teams and several servers: PostgreSQL, one transaction a batch, under a lock on the row of the head.

Any number of processes may hold one ledger. Whoever writes locks the row of the head, reads what others appended since,
decides by all of it, and commits entries and head in one transaction. So the cap is met exactly, by however many.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from quorate.errors import LedgerBusy, LedgerIntegrityError, PreconditionFailed, QuorateError
from quorate.ledger.ledger_files import name_key
from quorate.ledger.postgres_url import LedgerUrl, driver
from quorate.ledger.state import GENESIS, Epoch, Head
from quorate.ledger.store import TRY_AGAIN, StoredEntry, is_shortage, reason_of

if TYPE_CHECKING:
    import psycopg


@contextmanager
def cut_after(seconds: float, descriptor: Callable[[], int]) -> Iterator[None]:
    """Cut a connection where the block has not ended after so many seconds.

    `seconds`: how long the block may take. `descriptor`: returns the socket of the connection, when the time is over. A
    server that was frozen keeps its socket open and says nothing; no timeout of its own ends that.

    Examples
    --------
    >>> here, there = socket.socketpair()
    >>> with cut_after(0.01, here.fileno):
    ...     here.recv(1)
    b''
    >>> here.close(), there.close()
    (None, None)
    """
    lock, ended = threading.Lock(), threading.Event()

    def cut() -> None:
        with lock, suppress(Exception):  # it was closed meanwhile
            if not ended.is_set():
                connection = socket.socket(fileno=descriptor())
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                finally:
                    connection.detach()

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            ended.set()
        timer.cancel()


_SETUP_LOCK: Final = 0x71756F72  # "quor": two processes that make the tables take turns
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS quorate_ledger (ledger text PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS quorate_head (ledger text PRIMARY KEY, sequence bigint NOT NULL, hash text NOT NULL)",
    "CREATE TABLE IF NOT EXISTS quorate_entry (ledger text, sequence bigint, line text, UNIQUE (ledger, sequence))",
)
# A commit is waited for; a holder of the lock that hangs is cut off by the server, and one that waits for it gives up.
_SESSION: Final = (
    "SET client_encoding = 'UTF8'",  # whatever the role or PGCLIENTENCODING says: a text is read as it was written
    "SET synchronous_commit = on",
    "SET lock_timeout = '22s'",
    "SET statement_timeout = '60s'",
    "SET idle_in_transaction_session_timeout = '20s'",
    # A service may wait for weeks for its next question; servers before 14, and before 17, have no such settings.
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'",
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'",
)
#: Seconds within which a server answers, or is given up: a little longer than the wait for the lock, and shorter than a
#: service that was told to stop is waited for; and for reading a whole ledger, which takes as long as that is large.
_ANSWERS_WITHIN: Final = 25.0
_READS_WITHIN: Final = 75.0
_NEEDED: Final = ("fsync", "full_page_writes")
# The first eight digits of a log file's name are the timeline: a standby that is promoted begins the next one.
_EPOCH: Final = """
    SELECT system_identifier::text, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
    FROM pg_control_system()
"""
_DEFAULTS: Final = {"application_name": "quorate", "connect_timeout": "10", "tcp_user_timeout": "30000"}


class PostgresStore:
    """Keeps the lines of one ledger in the tables of a PostgreSQL database, which several servers may share.

    ``quorate_entry`` holds the lines, ``quorate_head`` the newest head of each ledger: its anchor, and what writers
    lock. ``quorate_ledger`` names every ledger that ever had an entry, so that one that was deleted together with its
    head is missed.

    `url`: see :class:`~quorate.ledger.postgres_url.LedgerUrl`. `create`: whether to make the ledger where there is
    none. `at`: told the name of each step just after it: "begun", "inserted", "anchored", "committed". Fault tests stop
    there. Raises PreconditionFailed if there is no ledger and `create` is False; the server does not wait for its disk,
    or for the standby that the URL demands; it is a standby itself; or psycopg is missing; LedgerBusy if another server
    held the head for longer than 22 seconds; LedgerIntegrityError if the database cannot be reached or used; or
    entries, or the head, are missing.
    """

    def __init__(self, url: str, *, create: bool, at: Callable[[str], None] = lambda _: None) -> None:
        self._connection: psycopg.Connection[Any] | None = None
        place = LedgerUrl.read(url)
        self.name, self.path, self._standby = place.name, place.key, place.standby
        self.epoch: Epoch | None = None
        self.commits = 0
        self._at = at
        self._began = False
        self._read_to = self._kept_to = 0  # the newest entry that was read, and that all copies of the database keep
        self._warnings: list[str] = []
        self._waits_for: Any = None  # standbys that a commit waits for, and when the server read its settings
        self._version = ""
        with self._guarded("opened"):
            try:
                self._connect(place)
                self._find(create=create)
            except BaseException:
                self.close()
                raise

    shared: Final = True
    durable: Final = True
    in_place: Final = True  # a server is not asked for this

    @property
    def facts(self) -> Mapping[str, str]:
        """The store's kind, the version of the server, and the epoch."""
        epoch = {} if self.epoch is None else {"cluster": self.epoch.cluster, "timeline": str(self.epoch.timeline)}
        return {"postgresql": self._version, "store": "postgresql", **epoch}

    @property
    def place(self) -> str:
        """Where it is, in words that hold no password."""
        return f"PostgreSQL, ledger {self.name!r}"

    def load(self, after: int = 0) -> StoredEntry:
        """Return all lines beyond ``after``, and the anchor, as they stand at one moment.

        After a crash of the server, and where a wait was cancelled, they may be visible before its standby has them. So
        it is waited for: what rests on them may be told.
        """
        with self._guarded("read" if after == 0 else "read on"), self._transaction():
            return self._read(after)

    def begin(self, after: int, /) -> Sequence[object]:
        """Lock the head until :meth:`append` or :meth:`abandon`; return the lines beyond ``after``.

        Raises LedgerBusy if another server held the head for too long, or the database lacks memory; nothing was
        written.
        """
        psycopg = driver()
        with self._guarded("locked"):
            try:
                self._start()
                self._at("begun")
                return self._read(after).lines
            except (psycopg.Error, MemoryError, OSError) as error:
                if not (is_shortage(error) or isinstance(error, psycopg.errors.LockNotAvailable)):
                    raise
                self.abandon()  # so that the next request finds a sound connection; where it fails, there is none
                raise LedgerBusy(TRY_AGAIN.format(reason_of(error))) from error

    def append(self, lines: Sequence[str], head: Head) -> None:
        """Append lines and move the head in the transaction that was begun, and wait for the server's disk."""
        with self._guarded("written"):
            connection = self._open_connection()
            first = head.sequence - len(lines) + 1
            connection.execute(
                "INSERT INTO quorate_entry SELECT %s, * FROM unnest(%s::bigint[], %s::text[])",
                (self.name, list(range(first, head.sequence + 1)), list(lines)),
            )
            self._at("inserted")
            moved = connection.execute(
                "UPDATE quorate_head SET sequence = %s, hash = %s WHERE ledger = %s AND sequence = %s",
                (head.sequence, head.hash, self.name, first - 1),
            )
            if moved.rowcount != 1:
                raise LedgerIntegrityError(_CHANGED)
            if first == 1:
                connection.execute("INSERT INTO quorate_ledger VALUES (%s)", (self.name,))
            self._at("anchored")
            self._commit(head.sequence)
            self.commits += 1
            self._at("committed")
            if self.path is not None:
                name_key(self.path)

    def abandon(self) -> None:
        """Unlock the head, with nothing written; what others wrote is waited for, as :meth:`load` says."""
        with self._guarded("unlocked"):
            if self._began:
                self._end()

    def anchor(self, head: Head) -> None:
        """Nothing to do: head and entries are committed together, so a head that lags behind was altered."""
        raise LedgerIntegrityError(_CHANGED)

    def close(self) -> None:
        """Close the connection; what was begun is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with self._guarded("closed"):
                connection.close()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    # --- steps ---------------------------------------------------------------------------------------------------

    def _connect(self, place: LedgerUrl) -> None:
        settings = {name: value for name, value in _DEFAULTS.items() if name not in place.given}
        connection = self._connection = driver().connect(place.conninfo, autocommit=True, **settings)
        connection.add_notice_handler(self._note)
        for statement in _SESSION:
            connection.execute(statement)
        self._version = connection.info.parameter_status("server_version") or ""
        off = [name for name in _NEEDED if self._value(f"SHOW {name}") != "on"]
        if off:
            raise PreconditionFailed(
                f"the PostgreSQL server runs with {' and '.join(off)} off, so a commit may be lost; turn it on"
            )
        if self._value("SELECT pg_is_in_recovery()"):
            raise PreconditionFailed(_IN_RECOVERY)
        self.epoch = self._find_epoch()

    def _value(self, query: Any, *arguments: object) -> Any:
        row = self._open_connection().execute(query, arguments).fetchone()
        return None if row is None else row[0]

    def _find_epoch(self) -> Epoch | None:
        """Return the history that the database is in; None where it does not tell, as some hosted ones."""
        errors = driver().errors
        try:
            row = self._open_connection().execute(_EPOCH).fetchone()
        except (errors.InsufficientPrivilege, errors.FeatureNotSupported, errors.UndefinedFunction):
            return None
        return None if row is None else Epoch(cluster=row[0], timeline=row[1])

    def _find(self, *, create: bool) -> None:
        """See that there is a ledger, or make an empty one: a head that says that there is no entry yet."""
        tables = self._value("SELECT to_regclass('quorate_head') IS NOT NULL")
        if not tables and not create:
            raise self._absent()
        with self._transaction(keep=True):
            connection = self._open_connection()
            if create:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP_LOCK,))
                for statement in () if tables else _SCHEMA:
                    connection.execute(statement)
            if self._value("SELECT true FROM quorate_head WHERE ledger = %s", self.name):
                return
            for table in ("quorate_ledger", "quorate_entry"):
                if self._value(f"SELECT true FROM {table} WHERE ledger = %s LIMIT 1", self.name):  # noqa: S608
                    raise LedgerIntegrityError(_NO_HEAD)
            if not create:
                raise self._absent()
            connection.execute("INSERT INTO quorate_head VALUES (%s, 0, %s)", (self.name, GENESIS.hash))

    def _absent(self) -> PreconditionFailed:
        return PreconditionFailed(
            f"there is no ledger {self.name!r} in this PostgreSQL database; give a budget to open a new one"
        )

    def _read(self, after: int) -> StoredEntry:
        connection = self._open_connection()
        newest = connection.execute(
            f"SELECT sequence, hash, {_WAITS_FOR} FROM quorate_head WHERE ledger = %s FOR UPDATE",  # noqa: S608
            (self.name,),
        ).fetchone()
        if newest is None:
            raise LedgerIntegrityError(_NO_HEAD)
        self._waits_for = newest[2:]
        if self._standby and not self._waits_for[0].strip():
            raise PreconditionFailed(_NO_STANDBY)
        head = Head(sequence=newest[0], hash=newest[1])
        beyond = "SELECT sequence, line FROM quorate_entry WHERE ledger = %s AND sequence > %s ORDER BY sequence"
        rows = connection.execute(beyond, (self.name, after)).fetchall()
        if [row[0] for row in rows] != list(range(after + 1, head.sequence + 1)) or head.sequence < after:
            raise LedgerIntegrityError(_CHANGED)
        if head == GENESIS and self._value("SELECT true FROM quorate_ledger WHERE ledger = %s", self.name):
            raise LedgerIntegrityError(_NO_HEAD)
        self._read_to = head.sequence
        return StoredEntry(lines=tuple(row[1] for row in rows), anchor=head)

    def _start(self) -> None:
        self._open_connection().execute("BEGIN")
        self._began, self._read_to = True, self._kept_to

    def _commit(self, newest: int) -> None:
        """Commit, and wait for the disk and the standby; `newest`: the entry that is kept from then on.

        Where that wait is cancelled, the server reports a success, with a warning: the standby may lack the entry.
        Where the standby is taken out of its settings meanwhile, all who wait are told of a success, without one.
        """
        self._warnings.clear()
        ended = self._open_connection().execute("COMMIT").statusmessage
        self._began = False
        before, self._waits_for = self._waits_for, None
        changed = before is not None and before[0].strip() and self._settings_now() != before
        if ended != "COMMIT" or self._warnings or changed:
            why = "".join(f" (SQLSTATE {code})" for code in self._warnings[:1])
            raise LedgerIntegrityError(_NOT_KEPT.format(why), charged="the last charge may have been recorded")
        self._kept_to = newest

    def _settings_now(self) -> Any:
        return self._open_connection().execute(f"SELECT {_WAITS_FOR}").fetchone()

    def _end(self) -> None:
        """End what was begun, with nothing written.

        The lock on the head is written to the database's log, so that a commit of it alone waits for all that was read.
        """
        if self._read_to > self._kept_to:
            self._commit(self._read_to)
        else:
            self._open_connection().execute("ROLLBACK")
            self._began = False

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warnings.append(str(notice.sqlstate))

    @contextmanager
    def _transaction(self, *, keep: bool = False) -> Iterator[None]:
        """Do all in one transaction, which is that of :meth:`begin` where there is one."""
        if self._began:
            yield
            return
        self._start()
        try:
            yield
        except BaseException:
            with suppress(Exception):  # the server ends it where the connection is gone
                self.abandon()
            raise
        if keep:
            self._commit(self._kept_to)
        else:
            self._end()

    def _open_connection(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            raise PreconditionFailed("the ledger was closed; open it again")
        return self._connection

    def _socket(self) -> int:
        return int(self._open_connection().pgconn.socket)

    @contextmanager
    def _guarded(self, done: str) -> Iterator[None]:
        psycopg = driver()
        try:
            with cut_after(_READS_WITHIN if done in ("opened", "read") else _ANSWERS_WITHIN, self._socket):
                yield
        except QuorateError:
            raise
        except psycopg.errors.LockNotAvailable as error:
            raise LedgerBusy(
                f"another server holds the ledger {self.name!r}; it is opened again when it ends"
            ) from error
        except (OSError, psycopg.Error, psycopg.Warning) as error:
            # A connection that was never made has no code, and no statement that its message could quote.
            unmade = done == "opened" and self._connection is None and getattr(error, "sqlstate", None) is None
            why = f"{type(error).__name__}: {' '.join(str(error).split())}" if unmade else reason_of(error)
            raise LedgerIntegrityError(
                f"the ledger could not be {done} ({why}); nothing is released until it is opened and verified again",
                charged="the last charge may have been recorded",
            ) from error


_WAITS_FOR: Final = "current_setting('synchronous_standby_names'), pg_conf_load_time()"
_CHANGED: Final = (
    "head and entries of the ledger do not fit: entries are missing, or somebody else wrote to its tables; restore the "
    "newest backup of the database"
)
_IN_RECOVERY: Final = (
    "the PostgreSQL server is a standby, which takes no charge; let the ledger's URL lead to the primary "
    "(host=ONE,OTHER&target_session_attrs=read-write finds it)"
)
_NO_STANDBY: Final = (
    "the PostgreSQL server waits for no standby (synchronous_standby_names is empty), and standby=required in the "
    "ledger's URL demands one; see that this server is the primary and not one that was replaced, and attach a standby"
)
_NOT_KEPT: Final = (
    "the database may not have waited until the commit was kept{}, as where the wait for its standby is cancelled or "
    "settings change meanwhile: whether it would outlive the database is unknown; nothing is released until the ledger "
    "is opened and verified again"
)
_NO_HEAD: Final = (
    "the ledger's head was deleted: whether its entries are the newest is unknown; restore the newest backup of the "
    "database"
)
