"""The ledger: the thin shell that carries requests to the pure rules, and admitted entries to a store.

Which store that is, is told by the place that was given: a path, or a URL whose scheme names one.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, Unpack

from quorate.arguments import nearest
from quorate.errors import InvalidParameter, PreconditionFailed, note_charge
from quorate.ledger.budget import Budget
from quorate.ledger.chain import Receipt, now, receipt_of
from quorate.ledger.entries import BudgetRaised, Closed, Opened, QuotaSet, SameRelease
from quorate.ledger.fields import Json
from quorate.ledger.journal import Journal, Verified
from quorate.ledger.pricing import Request, priced_request
from quorate.ledger.readings import LedgerReadings
from quorate.ledger.reservation import Reservation
from quorate.ledger.rules import admit_binding, admit_opening, admit_reservation, check_budget, check_reservation
from quorate.ledger.scope import GuaranteeScope
from quorate.ledger.state import Head, LedgerState
from quorate.ledger.store import LedgerStore, MemoryStore
from quorate.plugins import STORES, added, load

if TYPE_CHECKING:
    from quorate.accounting import Event
    from quorate.accounting.neighbouring import Neighbouring

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


def _store_of_url(url: str, *, create: bool) -> LedgerStore:
    scheme = url.partition("://")[0]
    if scheme == _POSTGRES:
        from quorate.ledger.postgres import PostgresStore

        return PostgresStore(url, create=create)
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


_NO_BUDGET = "budget must be a Budget, got {}; write budget=Budget(epsilon=1.0, delta=1e-6)"


class Ledger(LedgerReadings):
    """The durable record of what one release has spent. Append-only; there is no reset.

    Parameters
    ----------
    path : str or PathLike, optional
        A SQLite file; its anchor lies beside it. None keeps the ledger in memory: nothing durable is recorded.
    budget : Budget, optional
        Needed for a new ledger. One that exists must have the same budget.
    clock : callable, optional
        Returns the time, with a time zone. The system's clock by default.
    store : LedgerStore, optional
        Where to keep the ledger instead of ``path``.
    known : Verified, optional
        What :meth:`close` returned in this process: what is newer is verified. All is, where the chain does not go on
        from there, and by :meth:`verify`.

    Raises
    ------
    InvalidParameter
        A new ledger in memory was given no budget.
    PreconditionFailed
        There is no ledger at ``path`` and no budget was given.
    LedgerMismatch
        The ledger has another budget.
    LedgerBusy
        Another process holds it.
    LedgerIntegrityError
        It was altered, cut, deleted, or is older than its anchor.

    Notes
    -----
    Formal guarantees:

    - No answer leaves before its charge is on stable storage.
    - The recorded spend never falls below what was released.
    - The cap is never passed, whatever the number of clients.
    - An altered or older ledger is refused, or, where ledger and anchor were both restored, exposed by any client's
      receipt.

    A ledger may be used by many threads of the process that opened it; requests that wait together share one commit.
    After any error of its store it is unhealthy and admits nothing until it is opened, and so verified, again.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> with Ledger(budget=Budget(1.0, 1e-5)) as ledger:
    ...     reservation = ledger.reserve(PureDP(0.25), delta=0, purposes={"label": 100}, key="labels")
    ...     ledger.spent, ledger.left.epsilon, ledger.durable
    (Totals(epsilon=0.25, delta=0.0, rho=None), 0.75, False)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        budget: Budget | None = None,
        clock: Callable[[], datetime] = now,
        store: LedgerStore | None = None,
        known: Verified | None = None,
    ) -> None:
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidParameter(_NO_BUDGET.format(type(budget).__name__))
        if store is None:
            store = store_at(path, create=budget is not None)
        elif path is not None:
            raise InvalidParameter("path and store were both given; give one")
        self.path = None if path is None else getattr(store, "path", None) if is_url(path) else Path(path)
        self._store = store
        try:
            self._journal = Journal(store, clock=clock, known=known)
            self._journal.read(lambda state: check_budget(state, budget))
            if not self.head.sequence:
                self._begin(budget)
        except BaseException:
            store.close()
            raise

    def _begin(self, budget: Budget | None) -> None:
        if budget is None:
            raise PreconditionFailed("the ledger has no entry yet; give a budget to open a new one")
        opened = Opened(
            budget=budget, limit=budget.limit, ledger=secrets.token_hex(16), store=Json.of(dict(self._store.facts))
        )
        self._journal.submit(lambda state: admit_opening(state, opened), receipt_of)

    def close(self) -> Verified | None:
        """Let go of the file. May be called again. Return what was verified of it; None where something was wrong."""
        return self._journal.close()

    def follow(self, noted: Callable[[Head], None] | None) -> None:
        """Have `noted` told of each newest entry once it is on stable storage; None ends that.

        It is called before anything that rests on the entry is returned. What it raises stops the ledger, as an error
        of the store does.
        """
        self._journal.follow(noted)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({None if self.path is None else str(self.path)!r})"

    def __copy__(self) -> Ledger:
        return self  # a ledger is a thing, not a value: a cloned estimator charges the same one

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> NoReturn:
        raise PreconditionFailed("a ledger belongs to the process that opened it and cannot be pickled; pass its path")

    # --- the owner's acts --------------------------------------------------------------------------------------

    def bind(self, fingerprint: str) -> Receipt:
        """Bind the ledger to a data set by its keyed fingerprint; once bound, accept only that data set.

        Raises
        ------
        LedgerMismatch
            It is bound to other data, which the owner has not declared the same release.
        """
        return self._journal.submit(lambda state: admit_binding(state, fingerprint), receipt_of)

    def same_release(self, fingerprint: str, reason: str) -> Receipt:
        """Record that data of another fingerprint are the same release: they compose into the same budget."""
        content = SameRelease(fingerprint=fingerprint, reason=reason)
        return self._journal.submit(lambda _: content, receipt_of)

    def raise_budget(self, budget: Budget, reason: str) -> Receipt:
        """Record a higher lifetime budget, with its reason; composition stays as it was.

        Raises
        ------
        InvalidParameter
            Epsilon or delta is below the one before, or neither is above.
        LedgerMismatch
            The composition is another one.
        """
        if not isinstance(budget, Budget):
            raise InvalidParameter(_NO_BUDGET.format(type(budget).__name__))
        content = BudgetRaised(budget=budget, limit=budget.limit, reason=reason)
        return self._journal.submit(lambda _: content, receipt_of)

    def set_quota(self, client: str, answers: int, reason: str, *, first: bool = False) -> Receipt:
        """Record the most answers that a client is ever given from this ledger; a new one takes the old one's place.

        Answers that it was given before count. The cap of all clients together stays what it is.

        Parameters
        ----------
        client : str
            Whose draws it bounds, in blocks of its own and in shared ones.
        answers : int
            At least 0. Below what was drawn already, nothing more is drawn for this client.
        reason : str
            Recorded with it.
        first : bool, default False
            Whether to set it only where the client never had one, so that no choice of the owner is undone.

        Raises
        ------
        PreconditionFailed
            The client has this quota already; or, with `first`, it has one or had one.
        """
        if answers is None:
            raise InvalidParameter("answers must be an integer >= 0; remove_quota takes a quota away")
        content = QuotaSet(client=client, quota=answers, reason=reason)

        def decide(state: LedgerState) -> QuotaSet:
            if first and (client in state.quotas or client in state.unbound):
                raise PreconditionFailed("the client has a quota, or had one that was taken away; it stays as it is")
            return content

        return self._journal.submit(decide, receipt_of)

    def remove_quota(self, client: str, reason: str) -> Receipt:
        """Record that the cap alone bounds a client from now on; what it was given stays counted.

        Raises
        ------
        PreconditionFailed
            The client has no quota.
        """
        content = QuotaSet(client=client, quota=None, reason=reason)
        return self._journal.submit(lambda _: content, receipt_of)

    def close_release(self, reason: str) -> Receipt:
        """End the release: nothing more is reserved, for ever. What was reserved may still be drawn."""
        content = Closed(reason=reason)
        return self._journal.submit(lambda _: content, receipt_of)

    # --- reserving ---------------------------------------------------------------------------------------------

    def reserve(
        self,
        event: Event,
        *,
        delta: float | None = None,
        purposes: Mapping[str, int],
        key: str,
        epsilon: float | None = None,
        client: str = "local",
        scope: GuaranteeScope | None = None,
        charged_to: Mapping[str, int] | None = None,
        also: tuple[Neighbouring, Event] | None = None,
    ) -> Reservation:
        """Charge a schedule at its exact price, durably, before anything of it is drawn.

        Parameters
        ----------
        event : Event
            All that the reservation may release; the parts of one planned run together, as their ``Composed``.
        delta : float, optional
            δ of this reservation; needed under sums, unused under zCDP.
        purposes : mapping of str to int
            How many answers there are for each purpose ("label", "online answer", "threshold test", …).
        key : str
            Idempotency key: a retry by the same client, with the same event, delta and purposes, returns the
            reservation it made before and charges nothing.
        epsilon : float, optional
            ε to charge instead of the event's price, and not below it.
        client : str, default "local"
            Who asks.
        scope : GuaranteeScope, optional
            Whose data this protects, and against which change. All scopes of a ledger are about one unit. A retry may
            state fewer caveats; those of the first request stay.
        charged_to : mapping of str to int, optional
            Where `event` is a ``Composed``: which of its parts, from 0, pays for each purpose. Purposes with one part
            share it. Left out, all purposes share the whole event.
        also : (Neighbouring, Event), optional
            The other of the two relations "add or remove" and "replace", and what the reservation is for it. It is
            recorded with its price, and charged to nothing.

        Raises
        ------
        BudgetExhausted
            The price would pass the budget; nothing was charged.
        PreconditionFailed
            The key was used for another request, the release was closed, or what was charged earlier protects another
            unit.
        InvalidParameter, UnsupportedEvent
            An argument is of the wrong kind, or the event has no price under this ledger's rule.
        """
        content = priced_request(
            event,
            composition=self.budget.composition,
            delta=delta,
            purposes=purposes,
            key=key,
            epsilon=epsilon,
            client=client,
            scope=scope,
            charged_to=charged_to,
            also=also,
        )
        receipt = self._journal.submit(
            lambda state: admit_reservation(state, content, stated=epsilon is not None), self._handle
        )
        note_charge()
        return receipt

    def check_affordable(self, event: Event, **request: Unpack[Request]) -> None:
        """Raise what :meth:`reserve` would raise with these arguments, and charge nothing.

        It is asked before long work whose result would be thrown away. It promises nothing: another client may
        charge in between.
        """
        content = priced_request(event, composition=self.budget.composition, **request)
        stated = request.get("epsilon") is not None
        self._journal.read(lambda state: check_reservation(state, content, stated=stated))
