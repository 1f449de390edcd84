"""How an estimator opens the ledger it was given: a path, a Ledger, or None for one in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quorate.errors import PreconditionFailed
from quorate.ledger import Budget, Ledger

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


@contextmanager
def opened(given: GivenLedger, *, budget: Budget, in_memory: Ledger | None = None) -> Iterator[Ledger]:
    """Open the ledger for one act: a path is let go of again, so that others may read it in between.

    Parameters
    ----------
    given : path, Ledger or None
        The argument of the estimator.
    budget : Budget
        What a new ledger is opened with. One that exists has its own.
    in_memory : Ledger, optional
        Where None was given, the one that was made before.

    Examples
    --------
    >>> with opened(None, budget=Budget(1.0, 1e-5)) as ledger:
    ...     ledger.durable
    False
    """
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
