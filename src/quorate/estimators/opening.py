"""How an estimator opens the ledger it was given: a path, a Ledger, or None for one in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quorate.errors import PreconditionFailed
from quorate.ledger import Budget, Ledger, Receipt

#: What ``ledger=`` may be.
GivenLedger = str | Path | Ledger | None


def place_of(given: GivenLedger) -> Path | Ledger | None:
    """Return the path or ledger that was given, a text as a path.

    Examples
    --------
    >>> place_of("run/ledger.db").name
    'ledger.db'
    """
    return Path(given) if isinstance(given, str) else given


class LastSeen:
    """The newest entry of a ledger that a fitted estimator knows of.

    Between two questions a ledger's file is let go of. Were an older state put back in its place, anchor and all, the
    answers given since would be given again from what was reserved; so each opening asks for that entry.

    Examples
    --------
    >>> seen, ledger = LastSeen(), Ledger(budget=Budget(1.0, 1e-5))
    >>> with opened(ledger, budget=Budget(1.0, 1e-5), seen=seen):
    ...     pass
    >>> with opened(Ledger(budget=Budget(1.0, 1e-5)), budget=Budget(1.0, 1e-5), seen=seen):
    ...     pass
    Traceback (most recent call last):
    quorate.errors.LedgerIntegrityError: the ledger does not hold entry 1 of the receipt: an older or another ledger ...
    """

    def __init__(self) -> None:
        self._receipt: Receipt | None = None

    def check(self, ledger: Ledger) -> None:
        """Refuse a ledger that does not hold the newest entry that was seen."""
        if self._receipt is not None:
            ledger.check_receipt(self._receipt)

    def note(self, ledger: Ledger) -> None:
        """Remember its newest entry, unless something was found wrong with it."""
        if ledger.healthy:
            self._receipt = Receipt(ledger.head.sequence, ledger.head.hash)


@contextmanager
def opened(
    given: GivenLedger, *, budget: Budget, in_memory: Ledger | None = None, seen: LastSeen | None = None
) -> Iterator[Ledger]:
    """Open the ledger for one act: a path is let go of again, so that others may read it in between.

    Parameters
    ----------
    given : path, Ledger or None
        The argument of the estimator.
    budget : Budget
        What a new ledger is opened with. One that exists has its own.
    in_memory : Ledger, optional
        Where None was given, the one that was made before.
    seen : LastSeen, optional
        What the estimator knows of it: asked for on entering, brought up to date on leaving.

    Raises
    ------
    LedgerIntegrityError
        If the ledger does not hold what was seen in it before.

    Examples
    --------
    >>> with opened(None, budget=Budget(1.0, 1e-5)) as ledger:
    ...     ledger.durable
    False
    """
    seen = seen or LastSeen()
    with _held(given, budget, in_memory) as ledger:
        seen.check(ledger)
        try:
            yield ledger
        finally:
            seen.note(ledger)


@contextmanager
def _held(given: GivenLedger, budget: Budget, in_memory: Ledger | None) -> Iterator[Ledger]:
    if isinstance(given, Ledger):
        yield given
    elif given is None:
        yield in_memory or Ledger(budget=budget)
    else:
        with _opened_file(Path(given), budget) as ledger:
            yield ledger


def _opened_file(path: Path, budget: Budget) -> Ledger:
    try:
        return Ledger(path)
    except PreconditionFailed as refusal:
        if type(refusal) is not PreconditionFailed:
            raise
    return Ledger(path, budget=budget)  # there is none yet, or one whose opening was interrupted
