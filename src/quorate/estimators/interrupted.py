"""Ctrl-C or an error in a fit: what it leaves behind, said where Python prints it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from quorate.errors import QuorateError
from quorate.ledger import Ledger
from quorate.release.target import client_of, stored_answers

BEFORE = "quorate: interrupted before anything was charged. Call fit again"
IN_MEMORY = (
    "quorate: interrupted after the charge, in a ledger in memory, so nothing is left to go on with. The charge counts "
    "as spent. With ledger=PATH an interrupted fit can be resumed"
)
AFTER = "quorate: interrupted after the charge. "
BY_RESUME = "Nothing is charged twice: resume(...) with the arguments of fit goes on"
BY_FIT = f"{BY_RESUME}, and so does the same call of fit"


@contextmanager
def noted(ledger: Ledger, key: str, *, seeded: bool, how: str = BY_RESUME) -> Iterator[None]:
    """Have an interruption of the block, or an error after the charge, say what was charged, and how to go on.

    `ledger`: open. `key`: idempotency key of the charge. `seeded`: whether the noise of the fit is seeded. `how`: how
    to go on where the ledger outlives the process: a sentence without a full stop.

    Examples
    --------
    >>> from quorate.ledger import Budget
    >>> try:
    ...     with noted(Ledger(budget=Budget(1.0, 1e-5)), "a charge", seeded=False):
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt as stop:
    ...     print(stop.__notes__[0])
    quorate: interrupted before anything was charged. Call fit again
    """
    try:
        yield
    except QuorateError:
        raise  # it says itself what its ledger was charged
    except BaseException as stop:
        interrupted = isinstance(stop, KeyboardInterrupt)
        if (reservation := ledger.reservation(key, client=client_of(seeded=seeded))) is not None:
            stored = stored_answers(reservation)
            words = f"{AFTER}{'' if stored is None else f'{stored}. '}{how}" if ledger.durable else IN_MEMORY
            stop.add_note(words if interrupted else words.replace("interrupted", "ended by this error", 1))
        elif interrupted:
            stop.add_note(BEFORE)
        raise
