"""Which store keeps a ledger, by the place that was given."""

from __future__ import annotations

import os

from quorate.errors import InvalidParameter
from quorate.ledger.memory import MemoryStore
from quorate.ledger.store import LedgerStore


def store_at(path: str | os.PathLike[str] | None, *, create: bool) -> LedgerStore:
    """Return the store for a place: the one decision where a ledger is kept.

    Parameters
    ----------
    path : str or PathLike, optional
        A SQLite file. None keeps the ledger in memory.
    create : bool
        Whether a ledger may be made there; one in memory is always new.

    Raises
    ------
    InvalidParameter
        A ledger in memory is not to be made.
    PreconditionFailed
        There is no file, and none is to be made.

    Examples
    --------
    >>> store_at(None, create=True).durable
    False
    """
    if path is None:
        if not create:
            raise InvalidParameter("budget is needed for a ledger in memory; give Budget(epsilon, delta)")
        return MemoryStore()
    # A ledger in memory needs no database.
    from quorate.ledger.sqlite import SqliteStore

    return SqliteStore(path, create=create)
