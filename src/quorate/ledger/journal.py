"""Group commit: carries requests to the pure rules, and what they admit to a store, many on one wait for the disk.

With it stands which process this is, and locks that a forked child finds open.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from threading import RLock
from types import TracebackType
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from quorate.errors import LedgerBusy, LedgerIntegrityError, PreconditionFailed, QuorateError, know_charge
from quorate.ledger.chain import begins_at, extend, read_line, replay, utc, verify
from quorate.ledger.entries import Content, Entry, Opened, Started
from quorate.ledger.fields import Json
from quorate.ledger.rules import apply
from quorate.ledger.state import Head, LedgerState
from quorate.ledger.store import LedgerStore

_token = object()


def this_process() -> tuple[int, object]:
    """Return what is this process's alone: its number, and a token that a forked child does not inherit."""
    return os.getpid(), _token


class Turn:
    """A lock for threads that take turns; a thread may take it twice. In a forked child nobody holds it."""

    def __init__(self) -> None:
        self._lock = RLock()
        _TURNS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()


_TURNS: WeakSet[Turn] = WeakSet()


def _begin_child() -> None:
    global _token
    _token = object()
    for turn in tuple(_TURNS):
        turn._lock = RLock()  # open, whoever held it


os.register_at_fork(after_in_child=_begin_child)


R = TypeVar("R")


@dataclass(eq=False, slots=True)
class _Ticket(Generic[R]):
    """A request that waits for the next commit."""

    decide: Callable[[LedgerState], Content | int]
    reply: Callable[[LedgerState, int], R]
    done: bool = False
    result: R | None = None
    error: QuorateError | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Verified:
    """What a process verified of a chain before it let go of it: it may go on from there, and so may nobody else.

    `state`: what the entries up to the newest one add up to; whoever opens the ledger with it goes on with a copy.
    """

    state: LedgerState


class Journal:
    """One verified chain in one store, used by the threads of one process.

    `store`: where the chain is; it is read and verified at once. `clock`: returns the time, with a time zone. `known`:
    what this process verified of the chain before: what is newer is verified, where the chain goes on from there. The
    state runs ahead of the store only while a commit is under way, and nobody reads it then. After any error of the
    store, what is in doubt counts as charged, and nothing is admitted or read until the chain is opened again; but
    where the store could not even begin (``LedgerBusy``), nothing was written, and the next request may go on.
    """

    def __init__(self, store: LedgerStore, *, clock: Callable[[], datetime], known: Verified | None = None) -> None:
        self._store = store
        self._clock = clock
        self._process = this_process()
        self._commit_lock = threading.Lock()
        self._turn = threading.Condition()
        self._writing = False
        self._queue: list[_Ticket[Any]] = []
        self._session: int | None = None
        self._stopped: LedgerIntegrityError | PreconditionFailed | None = None
        self._writes = False  # whether the store has begun to write
        self._follow: Callable[[Head], None] | None = None
        self._state, anchor = _verified(store, known)
        if anchor != self._state.head:  # the process died between the commit and the anchor
            store.anchor(self._state.head)

    @property
    def session(self) -> int | None:
        """Number of the entry that began this process's session; None before it wrote anything."""
        return self._session

    @property
    def shared(self) -> bool:
        """Whether other processes may append at the same time."""
        return bool(getattr(self._store, "shared", False))

    @property
    def healthy(self) -> bool:
        """Whether requests are admitted."""
        return self._stopped is None and this_process() == self._process

    @property
    def in_place(self) -> bool:
        """Whether what holds the ledger is still where it was opened."""
        return self._store.in_place

    def read(self, read: Callable[[LedgerState], R]) -> R:
        """Return what ``read`` finds in the state; all of it is on stable storage."""
        self._check_process()
        with self._commit_lock:
            self._refuse_stopped()
            return read(self._state)

    def submit(self, decide: Callable[[LedgerState], Content | int], reply: Callable[[LedgerState, int], R]) -> R:
        """Have a request decided, and wait until all that its reply rests on is on stable storage.

        `decide`: pure: from the state to a new entry's content, or to the number of the entry that answers already.
        `reply`: pure: from the state and that number to what is returned. Raises QuorateError whatever ``decide`` or
        the rules raise; nothing was recorded for this request; LedgerIntegrityError if the store failed; whether the
        request was recorded is in doubt, and nothing more is admitted.
        """
        self._check_process()
        ticket = _Ticket(decide, reply)
        leads = False
        try:
            # Requests queue up while a commit waits for the disk; the first to find it over commits them all.
            with self._turn:
                self._queue.append(ticket)
                self._turn.wait_for(lambda: ticket.done or not self._writing)
                if not ticket.done:
                    leads = self._writing = True
            if leads:
                self._commit()
        finally:
            if leads:
                with self._turn:
                    self._writing = False
                    self._turn.notify_all()
        if ticket.error is not None:
            raise know_charge(ticket.error)  # it was made in the thread of whoever committed
        if not ticket.done:  # an interrupt lost the batch on its way
            raise self._stop_error()
        return ticket.result  # type: ignore[return-value]

    def entries(self) -> tuple[Entry, ...]:
        """Read all entries again, oldest first; they must be the ones this process knows."""
        with self._quiet(), self._stopping(), self._caught_up():
            entries = tuple(read_line(line) for line in self._store.load().lines)
            _refuse_changed([entry.hash for entry in entries] == self._state.hashes)
            return entries

    def catch_up(self) -> None:
        """Read what other processes appended to a shared store; a store that one process holds has nothing new."""
        with self._quiet(), self._stopping(), self._caught_up():
            pass

    def verify(self, check: Callable[[LedgerState], None] = lambda _: None) -> None:
        """Read everything again, replay every rule, and compare with the anchor and with what this process knows.

        `check` is asked about the result; what it raises stops the journal like any other error.
        """
        with self._quiet(), self._stopping(), self._caught_up():
            stored = self._store.load()
            state = verify(stored.lines, anchor=stored.anchor)
            _refuse_changed(state == self._state and stored.anchor == state.head)
            check(state)

    def follow(self, noted: Callable[[Head], None] | None) -> None:
        """Have `noted` told of each newest head once it is on stable storage; what it raises stops the journal."""
        with self._commit_lock:
            self._follow = noted

    def close(self) -> Verified | None:
        """Let go of the store. May be called again; a forked child leaves it to its parent.

        Return what was verified, for whoever opens the chain again in this process; None where it stopped before.
        """
        if this_process() != self._process:
            return None
        with self._commit_lock:
            verified = Verified(self._state) if self._stopped is None else None
            self._stopped = self._stopped or PreconditionFailed("the ledger was closed; open it again")
            self._store.close()
            return verified

    def _commit(self) -> None:
        batch: Sequence[_Ticket[Any]] = ()
        try:
            with self._commit_lock, self._stopping():
                with self._turn:
                    batch, self._queue = self._queue, []
                self._refuse_stopped()
                self._write(batch)
        except BaseException as error:
            for ticket in batch:
                ticket.result = None
                ticket.error = self._stop_error() if self._stopped is not None else LedgerBusy(str(error))
            if not isinstance(error, QuorateError):
                raise  # an interrupt, or a defect: the thread that met it is told what it was
        finally:
            for ticket in batch:
                ticket.done = True

    def _write(self, batch: Sequence[_Ticket[Any]]) -> None:
        time = utc(self._clock())
        with self._begun():
            entries: list[Entry] = []
            for ticket in batch:
                self._decide(ticket, entries, time)
            if entries:
                self._store.append([entry.to_json() for entry in entries], self._state.head)
                if self._follow is not None:
                    self._follow(self._state.head)
            else:
                self._store.abandon()

    def _decide(self, ticket: _Ticket[Any], entries: list[Entry], time: str) -> None:
        state = self._state
        try:
            decided = ticket.decide(state)
            if isinstance(decided, Content):
                if self._session is None and not isinstance(decided, Opened):
                    self._join(Started(store=Json.of(dict(self._store.facts))), entries, time)
                self._join(decided, entries, time)
                decided = state.head.sequence
            ticket.result = ticket.reply(state, decided)
        except QuorateError as error:
            ticket.error = error

    def _join(self, content: Content, entries: list[Entry], time: str) -> None:
        [entry] = extend(self._state.head, [content], time=time, session=self._session)
        apply(self._state, entry)
        self._session = entry.session
        entries.append(entry)

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Hold the state while no commit is under way."""
        self._check_process()
        with self._commit_lock:
            self._refuse_stopped()
            yield

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """Begin to write, with all that others wrote in the state; whatever goes wrong, others need not wait for it."""
        self._writes = False
        lines = self._store.begin(self._state.head.sequence)
        self._writes = True
        try:
            for line in lines:
                replay(self._state, read_line(line))
            yield
        except BaseException:
            with suppress(QuorateError):  # what went wrong before is what is told
                self._store.abandon()
            raise

    @contextmanager
    def _caught_up(self) -> Iterator[None]:
        """Keep others from writing, with all that they wrote in the state."""
        with self._begun():
            yield
            self._store.abandon()

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Stop at any error, whatever it is."""
        try:
            yield
        except BaseException as error:
            if self._stopped is None and (self._writes or not isinstance(error, LedgerBusy)):
                cause = str(error) if isinstance(error, QuorateError) else f"interrupted ({type(error).__name__})"
                self._stopped = LedgerIntegrityError(f"the ledger stopped: {cause}")
            raise

    def _refuse_stopped(self) -> None:
        if self._stopped is not None:
            raise self._stop_error()

    def _stop_error(self) -> QuorateError:
        """Make a fresh error for each thread that is told."""
        stopped = self._stopped or LedgerIntegrityError("the ledger stopped")
        doubt = None if isinstance(stopped, PreconditionFailed) else "the charge may have been recorded"
        return type(stopped)(str(stopped), charged=doubt)

    def _check_process(self) -> None:
        if this_process() != self._process:
            raise PreconditionFailed("a ledger belongs to the process that opened it; open it there")


def _verified(store: LedgerStore, known: Verified | None) -> tuple[LedgerState, Head]:
    """Read a chain and verify it, from what is known of it or from its first entry; return its sum and its anchor."""
    state = LedgerState() if known is None else known.state.copy()
    stored = store.load(max(state.head.sequence - 1, 0))
    lines = stored.lines
    if state.hashes and begins_at(state.head, lines):
        lines = lines[1:]
    elif state.hashes:  # it does not go on from there
        state, stored = LedgerState(), store.load()
        lines = stored.lines
    return verify(lines, anchor=stored.anchor, known=state), stored.anchor


def _refuse_changed(same: bool) -> None:
    if not same:
        raise LedgerIntegrityError(
            "the ledger was changed by somebody else while it was open; restore the newest ledger and anchor together"
        )
