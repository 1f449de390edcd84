"""Whether a fit could be paid for, asked without a charge, an entry or a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quorate.errors import BudgetExhausted, LedgerMismatch, PreconditionFailed
from quorate.ledger import Budget, Ledger
from quorate.release.charge import Charge
from quorate.release.session import OTHER_DATA, GivenLedger, ledger_location

Reworded = Callable[[BudgetExhausted, Ledger], BudgetExhausted]


def check_affordable(
    given: GivenLedger,
    charge_on: Callable[[Ledger], Charge],
    *,
    budget: Budget,
    fingerprint: str,
    reworded: Reworded | None = None,
) -> None:
    """Raise what a fit would raise on its ledger now; nothing is charged, bound or written.

    `given`: the argument of an estimator. `charge_on`: what the fit would ask of a ledger. `budget`: what a new ledger
    would be opened with. `fingerprint`: keyed hash of the private data. `reworded`: what the fit would make of a
    budget's refusal by the open ledger, in its own words. Raises BudgetExhausted if too little is left; LedgerMismatch
    if the ledger belongs to other data.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> from quorate.ledger import GuaranteeScope
    >>> scope = GuaranteeScope(unit="person", neighbours="add, remove or replace one person")
    >>> charge = Charge(event=PureDP(0.25), delta=0.0, purposes={"sum": 1}, key="a sum", scope=scope, seeded=False)
    >>> ledger = Ledger(budget=Budget(1.0, 1e-5))
    >>> check_affordable(ledger, lambda _: charge, budget=Budget(1.0, 1e-5), fingerprint="of the data")
    >>> ledger.reservations(), ledger.fingerprints
    ((), ())
    """
    place = ledger_location(given)
    if isinstance(place, Path):
        opened = _existing(place)
        if opened is not None:
            with opened as ledger:
                _look(ledger, charge_on, fingerprint, reworded)
            return
        place = None
    _look(Ledger(budget=budget) if place is None else place, charge_on, fingerprint, reworded)


def _existing(path: Path) -> Ledger | None:
    """Open the ledger at a path; None where there is none yet, or one whose opening was interrupted."""
    try:
        return Ledger(path)
    except PreconditionFailed as refusal:
        if type(refusal) is PreconditionFailed:
            return None
        raise


def _look(ledger: Ledger, charge_on: Callable[[Ledger], Charge], fingerprint: str, reworded: Reworded | None) -> None:
    if ledger.fingerprints and fingerprint not in ledger.fingerprints:
        raise LedgerMismatch(OTHER_DATA)
    try:
        charge_on(ledger).check_affordable(ledger)
    except BudgetExhausted as refusal:
        raise (refusal if reworded is None else reworded(refusal, ledger)) from None
