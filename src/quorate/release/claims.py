"""What everything on one ledger promises together, and what it cost."""

from __future__ import annotations

import math

from quorate.accounting.guarantee import SEEDED, SEEDED_EARLIER
from quorate.errors import PreconditionFailed
from quorate.ledger import Claim, Ledger
from quorate.release.source import SEEDED_CLIENT

N_IS_PUBLIC = "the number of private units was read off the data and is treated as public"
NOT_DURABLE = (
    "the ledger was kept in memory: nothing durable was recorded, and what other fits on the same data cost is not "
    "counted"
)
EARLIER = "includes what earlier runs on the same data spent from the same ledger"
NOT_CLAIMED = (
    "part of what was charged to the ledger does not say whose data it protects and against which change; that it "
    "protects the same is the owner's statement"
)


def spent_of(ledger: Ledger) -> tuple[float, float]:
    """ε and δ charged so far, rounded up; a total that is not known counts as infinite."""
    spent = ledger.spent
    return (
        math.inf if spent.epsilon is None else spent.epsilon,
        math.inf if spent.delta is None else spent.delta,
    )


def claimed(ledger: Ledger, *, seeded: bool) -> Claim:
    """What everything that was charged to a ledger promises together, with every caveat.

    Parameters
    ----------
    ledger : Ledger
        With one reservation at least that states its claim.
    seeded : bool
        Whether the run that asks had seeded noise.

    Raises
    ------
    PreconditionFailed
        If no reservation says whose data it protects.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> from quorate.ledger import Budget
    >>> ledger = Ledger(budget=Budget(2.0, 1e-5))
    >>> for key, change in (("first", "replace"), ("second", "add, remove or replace")):
    ...     claim = Claim(unit="person", neighbours=f"{change} one person")
    ...     charge = {"purposes": {"label": 1}, "key": key, "claim": claim}
    ...     _ = ledger.reserve(PureDP(1.0), delta=0, **charge)
    >>> claimed(ledger, seeded=False).neighbours
    'replace one person'
    """
    together, reservations = ledger.claim, ledger.reservations()
    if together is None:
        raise PreconditionFailed("nothing on this ledger says whose data it protects; no guarantee can be told")
    caveats = list(together.caveats)
    if seeded:
        caveats.insert(0, SEEDED)
    elif any(each.client == SEEDED_CLIENT for each in reservations):
        caveats.insert(0, SEEDED_EARLIER)
    if any(each.claim is None for each in reservations):
        caveats.append(NOT_CLAIMED)
    if not ledger.durable:
        caveats.append(NOT_DURABLE)
    if len(reservations) > 1:
        caveats.append(EARLIER)
    return Claim(unit=together.unit, neighbours=together.neighbours, caveats=tuple(caveats))
