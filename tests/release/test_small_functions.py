"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

from quorate.ledger import Budget, Ledger
from quorate.release.charge import Charge, check_affordable, client_of, floor_epsilon
from quorate.release.session import LedgerTerms, terms_of


def test_charge() -> None:
    from quorate.accounting import PureDP
    from quorate.ledger import GuaranteeScope

    scope = GuaranteeScope(unit="person", neighbours="add, remove or replace one person")
    charge = Charge(event=PureDP(0.25), delta=0.0, purposes={"sum": 1}, key="a sum", scope=scope, seeded=False)
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    check_affordable(ledger, lambda _: charge, budget=Budget(1.0, 1e-5), fingerprint="of the data")
    assert (ledger.reservations(), ledger.fingerprints) == ((), ())


def test_session() -> None:
    assert (LedgerTerms().composition, terms_of(Ledger(budget=Budget(1.0, 1e-5, composition="zcdp"))).composition) == (
        "sum",
        "zcdp",
    )


def test_target() -> None:
    assert floor_epsilon(1.0986122886681098) == 1.098612288
    assert client_of(seeded=True) == "local, seeded noise: no guarantee"
