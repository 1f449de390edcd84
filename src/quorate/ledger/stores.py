"""Which store keeps a ledger, by the place that was given: a path, or a URL whose scheme names a store."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from quorate.arguments import nearest
from quorate.errors import InvalidParameter
from quorate.ledger.store import LedgerStore, MemoryStore
from quorate.plugins import STORES, added, load

#: Opens a store: ``opener(url, create=...)``. `create` says whether a ledger may be made there.
Opener: TypeAlias = Callable[..., LedgerStore]

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://")
_BY_SCHEME: dict[str, Opener] = {}
_POSTGRES = "postgresql"


def register_store(scheme: str, opener: Opener) -> None:
    """Have ledgers at URLs of a scheme kept by a store of one's own: ``Ledger("scheme://...")``.

    Parameters
    ----------
    scheme : str
        Small letters and digits, at least two.
    opener : callable
        ``opener(url, create=...)`` returns a :class:`~quorate.ledger.LedgerStore`, or raises ``PreconditionFailed``
        where there is no ledger and `create` is False. Where the store has a ``path``, the key that binds private data
        to the ledger lies beside it; otherwise that key lives as long as the :class:`~quorate.ledger.Ledger`.

    Raises
    ------
    InvalidParameter
        If the scheme is none, or is taken.

    Examples
    --------
    >>> register_store("doctest-memory", lambda url, create: MemoryStore())
    >>> store_at("doctest-memory://anywhere", create=True).durable
    False
    """
    if not isinstance(scheme, str) or not _SCHEME.fullmatch(f"{scheme}://"):
        raise InvalidParameter(parameter="scheme", got=scheme, expected='small letters and digits, such as "shelf"')
    if scheme in _BY_SCHEME or scheme == _POSTGRES:
        raise InvalidParameter(f"the scheme {scheme!r} is taken by another store; choose another")
    _BY_SCHEME[scheme] = opener


def is_url(place: object) -> bool:
    """Whether a place is a URL, and no path."""
    return isinstance(place, str) and _SCHEME.match(place) is not None


def store_at(path: str | os.PathLike[str] | None, *, create: bool) -> LedgerStore:
    """Return the store for a place: the one decision where a ledger is kept.

    `path`: a SQLite file; a URL of PostgreSQL (``postgresql://``, the extra ``postgres``); or a URL of a registered
    scheme, or of one that an installed package declares (:mod:`quorate.plugins`). None keeps the ledger in memory.
    `create`: whether a ledger may be made there; one in memory is always new. Raises InvalidParameter if a ledger in
    memory is not to be made; or no store has the URL's scheme; PreconditionFailed if there is no file, and none is to
    be made.
    """
    if path is None:
        if not create:
            raise InvalidParameter("budget is needed for a ledger in memory; give Budget(epsilon, delta)")
        return MemoryStore()
    if isinstance(path, str) and is_url(path):
        return _store_of_url(path, create=create)
    # A ledger in memory needs no database.
    from quorate.ledger.sqlite import SqliteStore

    return SqliteStore(path, create=create)


def own_store(store: LedgerStore) -> str | None:
    """Name a store that is not of this package, with its module; None for those that are."""
    kind = type(store)
    here = kind.__module__.startswith("quorate.")
    if here and getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind:
        return None
    return f"{kind.__module__}.{kind.__qualname__}"


def _store_of_url(url: str, *, create: bool) -> LedgerStore:
    scheme = url.partition("://")[0]
    if scheme == _POSTGRES:
        from quorate.ledger.postgres import open_postgres

        return open_postgres(url, create=create)
    opener: Any = _BY_SCHEME.get(scheme) or load(STORES, scheme)
    if opener is None:
        known = {_POSTGRES, *_BY_SCHEME, *added(STORES)}
        raise InvalidParameter(
            f"no store has the scheme {scheme!r}{nearest(scheme, known)}; register_store adds one, and so does a "
            "package that declares it in quorate.stores"
        )
    store: object = opener(url, create=create)
    if not isinstance(store, LedgerStore):
        raise InvalidParameter(
            f"what opens {scheme}:// must return a LedgerStore (load, begin, append, abandon, anchor, close, durable, "
            f"in_place, facts), got {type(store).__name__}"
        )
    return store
