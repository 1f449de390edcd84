"""Ledgers that version 0.1 wrote: they verify, every price is still one that was charged, and they go on."""

import json
from pathlib import Path

import pytest

from quorate.accounting import from_json
from quorate.ledger import Ledger, MemoryStore, verify
from quorate.ledger.budget import DELTA_DIGITS, float_up
from quorate.ledger.pricing import check_prices, price

GOLDEN = Path(__file__).parent / "golden"
WRITTEN = {"sum": (55, 24, 17.560312386), "zcdp": (37, 12, 6.091977143)}  # entries, charges, ε


def lines(composition):
    return (GOLDEN / f"version_0_1_{composition}.jsonl").read_text().splitlines()


@pytest.mark.parametrize("composition", WRITTEN)
def test_every_entry_and_every_price_still_holds(composition):
    entries, charges, _ = WRITTEN[composition]
    state = verify(lines(composition))
    assert (state.head.sequence, len(state.reservations)) == (entries, charges)
    check_prices(state)
    for reservation in state.reservations.values():  # and by not a unit another
        told = reservation.reserved.amounts
        event = from_json(reservation.reserved.event.text)
        again = price(event, composition=composition, delta=float_up(told.delta_e18, DELTA_DIGITS))
        assert again == told, event


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("composition", WRITTEN)
def test_it_goes_on_and_a_retry_of_what_was_charged_is_no_second_charge(composition):
    store = MemoryStore()
    written = lines(composition)
    state = verify(written)
    store.append(written, state.head)
    with Ledger(store=store) as ledger:
        assert ledger.spent.epsilon == WRITTEN[composition][2]
        for reservation in state.reservations.values():
            reserved = reservation.reserved
            again = ledger.reserve(
                from_json(json.dumps(reserved.event.value)),
                delta=float_up(reserved.amounts.delta_e18, DELTA_DIGITS) if composition == "sum" else None,
                purposes=reserved.purposes,
                key=reserved.key,
            )
            assert again.sequence == reservation.sequence
        assert ledger.spent.epsilon == WRITTEN[composition][2]
        again.draw("label", 1)
        ledger.verify(prices=True)
