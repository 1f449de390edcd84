"""Which process this is, and locks that a forked child finds open."""

from __future__ import annotations

import os
from threading import RLock
from types import TracebackType
from weakref import WeakSet

_token = object()


def this_process() -> tuple[int, object]:
    """Return what is this process's alone: its number, and a token that a forked child does not inherit.

    Examples
    --------
    >>> this_process() == this_process()
    True
    """
    return os.getpid(), _token


class Turn:
    """A lock for threads that take turns; a thread may take it twice. In a forked child nobody holds it.

    Examples
    --------
    >>> turn = Turn()
    >>> with turn:
    ...     pass
    """

    def __init__(self) -> None:
        self._lock = RLock()
        _TURNS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Open the lock, whoever held it: for a child that was just forked."""
        self._lock = RLock()


_TURNS: WeakSet[Turn] = WeakSet()


def _begin_child() -> None:
    global _token
    _token = object()
    for turn in tuple(_TURNS):
        turn.renew()


os.register_at_fork(after_in_child=_begin_child)
