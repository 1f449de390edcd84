"""A charge is made once, found again by whoever made it, and told in the guarantee; and what it is stated by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quorate.accounting import Composed, PureDP
from quorate.accounting.neighbouring import N_IS_PUBLIC
from quorate.errors import BudgetExhausted, PreconditionFailed
from quorate.ledger import Budget, GuaranteeScope, Ledger
from quorate.release import Account, Charge, RollbackGuard, guarantee_of, session
from quorate.release.charge import (
    LABEL,
    LOCAL_CLIENT,
    SEEDED_CLIENT,
    check_affordable,
    client_of,
    floor_budget,
    floor_epsilon,
    noise_and_key,
    stored_answers,
)
from quorate.release.guarantee import BY_POSITION, NOT_DURABLE, weakest_that_holds
from quorate.release.session import LedgerTerms, terms_of

BUDGET = Budget(1.0, 1e-5)
SCOPE = GuaranteeScope(unit="person", neighbours="replace one person", caveats=("n is public",))
CHARGE = Charge(
    event=Composed((PureDP(0.25), PureDP(0.5))), delta=0.0, purposes={"label": 1, "evaluation": 1}, key="a run",
    scope=SCOPE, seeded=False, charged_to={"label": 0, "evaluation": 1},
)  # fmt: skip


def test_what_a_charge_says_is_what_the_ledger_holds():
    with Ledger(budget=BUDGET) as ledger:
        reservation = CHARGE.reserve(ledger)
        assert reservation.event == CHARGE.event
        assert dict(reservation.purposes) == CHARGE.purposes
        assert dict(reservation.charged_to or {}) == CHARGE.charged_to
        assert (reservation.scope, reservation.key, reservation.client) == (SCOPE, "a run", LOCAL_CLIENT)
        assert ledger.spent.epsilon == pytest.approx(0.75, abs=1e-8)


def test_a_charge_is_made_once_and_a_seeded_one_is_another():
    with Ledger(budget=Budget(2.0, 1e-5)) as ledger:
        seeded = replace(CHARGE, seeded=True)
        first, again = CHARGE.reserve(ledger), CHARGE.reserve(ledger)
        assert first.sequence == again.sequence
        assert seeded.find(ledger) is None
        assert seeded.reserve(ledger).client == SEEDED_CLIENT
        assert ledger.spent.epsilon == pytest.approx(1.5, abs=1e-8)
        assert CHARGE.find(ledger).sequence == first.sequence  # type: ignore[union-attr]


def test_another_sentence_makes_it_another_request():
    with Ledger(budget=BUDGET) as ledger:
        CHARGE.reserve(ledger)
        with pytest.raises(PreconditionFailed):
            replace(CHARGE, scope=replace(SCOPE, caveats=("n is public", "more"))).reserve(ledger)


def test_to_look_whether_it_can_be_paid_charges_nothing():
    with Ledger(budget=Budget(0.5, 1e-5)) as ledger:
        with pytest.raises(BudgetExhausted):
            CHARGE.check_affordable(ledger)
        replace(CHARGE, event=PureDP(0.5), charged_to=None).check_affordable(ledger)
        assert ledger.spent.epsilon == 0.0


def account(path: Path, charge: Charge = CHARGE) -> Account:
    guard = RollbackGuard()
    with session(path, budget=BUDGET, guard=guard) as ledger:
        charge.reserve(ledger)
        return Account(charge=charge, ledger=ledger, budget=BUDGET, guard=guard)


def test_an_account_opens_its_ledger_for_one_question(tmp_path):
    path = tmp_path / "ledger.db"
    mine = account(path)
    for question in range(2):
        with mine.open(path) as (ledger, reservation):
            assert reservation.key == "a run"
            purpose = ("label", "evaluation")[question]
            reservation.store(reservation.draw(purpose), [question])
            assert ledger.healthy
    with mine.open(path) as (_, reservation):
        assert [reservation.remaining(each) for each in CHARGE.purposes] == [0, 0]


def test_an_account_refuses_a_ledger_that_does_not_hold_its_charge(tmp_path):
    path = tmp_path / "ledger.db"
    mine = account(path)
    other = replace(mine, charge=replace(CHARGE, key="another run"))
    with pytest.raises(PreconditionFailed, match="no reservation of this fit"), other.open(path):
        pytest.fail("it was let in")


def test_a_guarantee_is_of_everything_on_the_ledger():
    with Ledger(budget=BUDGET) as ledger:
        CHARGE.reserve(ledger)
        told = guarantee_of(
            ledger, CHARGE.event, delta=0.0, mechanism="a sum", seeded=False, before="the sum", caveats=("rough",)
        )
        assert (told.epsilon, told.delta) == (ledger.spent.epsilon, 0.0)
        assert (told.unit, told.neighbours) == ("person", "replace one person")
        assert told.caveats == ("n is public", NOT_DURABLE, "rough")
        assert "priced before the sum and composed by sum" in told.accounting
        ledger.reserve(PureDP(0.125), delta=0, purposes={"label": 1}, key="more")
        more = guarantee_of(ledger, CHARGE.event, delta=0.0, mechanism="a sum", seeded=False)
        assert more.epsilon == ledger.spent.epsilon > told.epsilon + 0.124


def test_a_seeded_release_is_told_as_such():
    with Ledger(budget=BUDGET) as ledger:
        replace(CHARGE, seeded=True).reserve(ledger)
        assert guarantee_of(ledger, CHARGE.event, delta=0.0, mechanism="a sum", seeded=True).seeded
        assert guarantee_of(ledger, CHARGE.event, delta=0.0, mechanism="a sum", seeded=False).seeded_earlier


def test_to_look_binds_nothing():
    ledger = Ledger(budget=BUDGET)
    check_affordable(ledger, lambda _: CHARGE, budget=BUDGET, fingerprint="of the data")
    assert (ledger.reservations(), ledger.fingerprints) == ((), ())


def test_stored_answers_are_told_and_those_whose_process_ended_while_they_were_drawn(tmp_path):
    with Ledger(tmp_path / "ledger.db", budget=BUDGET) as ledger:
        reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={LABEL: 900}, key="a run")
        reservation.store(reservation.draw(LABEL, 256), [0] * 256)
        reservation.draw(LABEL, 64)
        assert stored_answers(reservation) == "256 of 900 answers are stored"
    with Ledger(tmp_path / "ledger.db") as ledger:
        (reservation,) = ledger.reservations()
        assert stored_answers(reservation) == "256 of 900 answers are stored, 64 are lost"


def test_what_is_said_of_a_number_that_was_read_off_is_said_of_replacing_alone():
    replaced = GuaranteeScope(unit="record", neighbours="replace one record", caveats=(N_IS_PUBLIC,))
    any_change, caveats = "add, remove or replace one record", (BY_POSITION, N_IS_PUBLIC)
    assert weakest_that_holds(replace(replaced, neighbours=any_change, caveats=caveats)) == replaced


def test_the_terms_of_a_ledger_are_its_own_or_those_of_a_new_one():
    assert LedgerTerms().composition == "sum"
    assert terms_of(Ledger(budget=Budget(1.0, 1e-5, composition="zcdp"))).composition == "zcdp"


def test_a_budget_is_rounded_down_to_what_a_ledger_counts_in():
    assert floor_epsilon(1.0986122886681098) == 1.098612288
    assert floor_budget(1.0986122886681098, 1e-5) == (1.098612288, 1e-5)
    assert floor_budget(np.float32(2), np.float64(1e-6)) == (2.0, 1e-6)
    assert client_of(seeded=True) == "local, seeded noise: no guarantee"


def test_a_seed_fixes_the_key_and_no_seed_draws_a_fresh_one():
    keys = [noise_and_key(seed)[1].reveal() for seed in (1, 1, 2, None, None)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
    assert [noise_and_key(seed)[0].seeded for seed in (1, None)] == [True, False]
