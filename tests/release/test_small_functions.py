"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

import numpy as np

from quorate.accounting import PureDP
from quorate.accounting.neighbouring import N_IS_PUBLIC
from quorate.ledger import Budget, GuaranteeScope, Ledger
from quorate.release.charge import (
    LABEL,
    Charge,
    check_affordable,
    client_of,
    floor_budget,
    floor_epsilon,
    noise_and_key,
    stored_answers,
)
from quorate.release.guarantee import BY_POSITION, weakest_that_holds
from quorate.release.session import LedgerTerms, terms_of


def test_charge() -> None:
    scope = GuaranteeScope(unit="person", neighbours="add, remove or replace one person")
    charge = Charge(event=PureDP(0.25), delta=0.0, purposes={"sum": 1}, key="a sum", scope=scope, seeded=False)
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    check_affordable(ledger, lambda _: charge, budget=Budget(1.0, 1e-5), fingerprint="of the data")
    assert (ledger.reservations(), ledger.fingerprints) == ((), ())
    reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={LABEL: 900}, key="a run")
    reservation.store(reservation.draw(LABEL, 256), [0] * 256)
    assert stored_answers(reservation) == "256 of 900 answers are stored"


def test_what_is_said_of_a_number_that_was_read_off_is_said_of_replacing_alone() -> None:
    written = GuaranteeScope(
        unit="record", neighbours="add, remove or replace one record", caveats=(BY_POSITION, N_IS_PUBLIC)
    )
    assert weakest_that_holds(written) == GuaranteeScope(
        unit="record", neighbours="replace one record", caveats=(N_IS_PUBLIC,)
    )


def test_session() -> None:
    assert (LedgerTerms().composition, terms_of(Ledger(budget=Budget(1.0, 1e-5, composition="zcdp"))).composition) == (
        "sum",
        "zcdp",
    )


def test_a_budget_is_rounded_down_to_what_a_ledger_counts_in() -> None:
    assert floor_epsilon(1.0986122886681098) == 1.098612288
    assert floor_budget(1.0986122886681098, 1e-5) == (1.098612288, 1e-5)
    assert floor_budget(np.float32(2), np.float64(1e-6)) == (2.0, 1e-6)
    assert client_of(seeded=True) == "local, seeded noise: no guarantee"


def test_a_seed_fixes_the_key_and_no_seed_draws_a_fresh_one() -> None:
    keys = [noise_and_key(seed)[1].reveal() for seed in (1, 1, 2, None, None)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
    assert [noise_and_key(seed)[0].seeded for seed in (1, None)] == [True, False]
