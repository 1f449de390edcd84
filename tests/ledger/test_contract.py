"""The contract suite: what a ledger promises, with every store. One test, at least, for each clause."""

import copy
import json
import pickle
from contextlib import suppress
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from tests.ledger.conftest import STORES, reserved

from quorate.accounting import ApproxDP, Composed, DiscreteGaussian, PureDP
from quorate.errors import (
    BudgetExhausted,
    InvalidParameter,
    LedgerIntegrityError,
    LedgerMismatch,
    PreconditionFailed,
    QuorateError,
)
from quorate.ledger import Block, Budget, GuaranteeScope, Ledger, Receipt, verify
from quorate.ledger.fields import canonical
from quorate.types import Secret

BUDGET = Budget(1.0, 1e-5)


@pytest.mark.heavy
def test_who_knows_a_chain_goes_on_from_there_and_meets_what_others_wrote(place, ledger):
    reserved(ledger)
    known = ledger.close()
    place.open().bind("by another")
    place.close()
    again = place.open(known=known)
    assert again.fingerprints == ("by another",)
    assert again.reservation("labels").remaining("label") == 10
    assert again.verify() == again.head
    reserved(again, key="more")
    place.close()
    assert len(place.open().reservations()) == 2


@pytest.mark.heavy
def test_what_is_known_stays_what_it_was_and_may_be_used_again(place, ledger):
    reserved(ledger)
    known = ledger.close()
    before = known.state.copy()
    for name in ("one more", "another"):
        reserved(place.open(known=known), key=name)
        assert known.state == before
        place.close()
    assert len(place.open(known=known).reservations()) == 3


@pytest.mark.heavy
def test_what_is_known_of_another_chain_is_of_no_use(place, tmp_path):
    with Ledger(budget=BUDGET) as other:
        reserved(other, count=99)
        known = other.close()
    reserved(place.open(BUDGET))
    place.close()
    assert place.open(known=known).reservation("labels").remaining("label") == 10


def test_nothing_is_known_of_a_ledger_that_stopped_or_was_closed(place, ledger):
    with pytest.raises(LedgerIntegrityError), ledger._journal._stopping():
        raise LedgerIntegrityError("something")
    assert ledger.close() is None
    healthy = place.open()
    assert healthy.close() is not None
    assert healthy.close() is None


def test_only_what_is_newer_is_read_from_the_store(place):
    for after in (0, 1, 2):
        ledger = place.open(BUDGET if after == 0 else None)
        reserved(ledger, key=f"{after}")
        lines = ledger._store.load().lines
        assert ledger._store.load(after).lines == lines[after:]
        place.close()


def test_what_draw_returns_is_in_the_store_already_and_what_store_returns(ledger, reservation):
    block = reservation.draw("label", 3)
    newest = ledger.entries()[-1]
    assert (newest.sequence, newest.kind, newest.content.count) == (block.sequence, "drawn", 3)
    receipt = reservation.store(block, [1, -1, 0])
    newest = ledger.export()[-1]
    assert (newest["sequence"], newest["hash"]) == (receipt.sequence, receipt.head_hash)
    assert newest["answers"] == [1, -1, 0]


def test_answers_cannot_be_stored_without_a_charge(reservation):
    receipt = Receipt(99, "0" * 64)
    made_up = Block(sequence=99, purpose="label", first=0, count=1, status="drawn", answers=None, receipt=receipt)
    with pytest.raises(PreconditionFailed):
        reservation.store(made_up, [1])


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("place", "point"), [(kind, point) for kind, of in STORES.items() for point in of.steps], indirect=["place"]
)
def test_after_a_commit_that_failed_nothing_is_released_until_it_is_opened_again(place, point, ledger, reservation):
    kept = reservation.draw("label", 2)
    reservation.store(kept, [0, 1])
    place.fail_at(point)
    with suppress(LedgerIntegrityError):  # what was committed before the connection was lost is told
        reservation.draw("label", 3)
    for act in (
        lambda: reservation.draw("label"),
        lambda: reservation.store(kept, [0, 1]),
        lambda: reservation.blocks("label"),
        lambda: ledger.spent,
        ledger.verify,
        ledger.entries,
    ):
        with pytest.raises(LedgerIntegrityError):
            act()
    assert not ledger.healthy
    place.close()
    place.at = lambda _: None  # it works again, but what it holds was not known
    ledger = place.open(BUDGET)
    ledger.verify()
    reservation = reserved(ledger)
    recorded = place.steps.index(point) >= place.steps.index("committed")
    assert reservation.remaining("label") == (5 if recorded else 8)
    assert [block.status for block in reservation.blocks("label")] == ["stored"] + ["interrupted"] * recorded


def test_a_reservation_is_charged_at_once_at_its_whole_price(ledger):
    reserved(ledger)
    assert (ledger.spent.epsilon, ledger.left.epsilon) == (0.25, 0.75)


def test_spend_outlives_a_restart(place):
    reserved(place.open(BUDGET))
    place.close()
    assert place.open().spent.epsilon == 0.25


def test_there_is_no_reset(ledger):
    assert not [name for name in dir(ledger) if "reset" in name or "refund" in name or "delete" in name]


def test_a_reservation_beyond_the_budget_is_refused_and_costs_nothing(ledger):
    reserved(ledger)
    with pytest.raises(BudgetExhausted) as caught:
        ledger.reserve(PureDP(0.75 + 1e-9), delta=0, purposes={"label": 1}, key="more")
    assert (caught.value.unit, caught.value.spent, caught.value.limit) == ("ε", 0.25, 1.0)
    assert ledger.spent.epsilon == 0.25
    ledger.reserve(PureDP(0.75), delta=0, purposes={"label": 1}, key="all")
    assert ledger.left.epsilon == 0.0


def test_delta_has_a_cap_too(ledger):
    ledger.reserve(ApproxDP(0.1, 1e-5), delta=1e-5, purposes={"label": 1}, key="all")
    with pytest.raises(BudgetExhausted) as caught:
        ledger.reserve(ApproxDP(0.1, 1e-18), delta=1e-18, purposes={"label": 1}, key="more")
    assert caught.value.unit == "δ"


def test_rho_has_a_cap_where_the_ledger_was_opened_so(place):
    ledger = place.open(Budget(1.0, 1e-5, "zcdp"))
    event = DiscreteGaussian(10, 1)  # ρ = 1/200 and a rounding
    fits = int(ledger.left.rho * 200)
    for number in range(fits):
        ledger.reserve(event, purposes={"label": 1}, key=str(number))
    with pytest.raises(BudgetExhausted) as caught:
        ledger.reserve(event, purposes={"label": 1}, key="more")
    assert caught.value.unit == "ρ"
    assert 0 < ledger.spent.epsilon <= 1.0


def test_no_more_answers_are_drawn_than_were_reserved(ledger):
    reservation = reserved(ledger, count=10, evaluation=2)
    reservation.draw("label", 8)
    with pytest.raises(BudgetExhausted) as caught:
        reservation.draw("label", 3)
    assert (caught.value.unit, caught.value.spent, caught.value.requested, caught.value.limit) == ("answers", 8, 3, 10)
    assert reservation.remaining("label") == 2
    assert (reservation.draw("label", 2).first, reservation.draw("evaluation", 1).first) == (8, 0)


def test_a_purpose_that_was_not_reserved_is_refused(reservation):
    for ask in (reservation.draw, reservation.remaining, reservation.blocks):
        with pytest.raises(InvalidParameter):
            ask("audit")


def test_raising_the_budget_is_explicit_and_chained(ledger):
    with pytest.raises(InvalidParameter):
        ledger.raise_budget(Budget(2.0, 1e-5), reason="")
    for lower in (Budget(0.5, 1e-4), Budget(2.0, 1e-6), BUDGET):
        with pytest.raises(InvalidParameter):
            ledger.raise_budget(lower, reason="why not")
    with pytest.raises(LedgerMismatch):
        ledger.raise_budget(Budget(2.0, 1e-5, "zcdp"), reason="another rule")
    ledger.raise_budget(Budget(2.0, 1e-5), reason="second year of the study")
    assert (ledger.budget, ledger.left.epsilon) == (Budget(2.0, 1e-5), 2.0)
    assert ledger.export()[-1]["reason"] == "second year of the study"


def test_a_closed_release_reserves_nothing_more_but_ends_what_it_began(ledger, reservation):
    ledger.close_release("published")
    assert ledger.closed
    for act in (
        lambda: reserved(ledger, key="again"),
        lambda: ledger.raise_budget(Budget(2.0, 1e-5), "more"),
        lambda: ledger.close_release("twice"),
    ):
        with pytest.raises(PreconditionFailed):
            act()
    reservation.store(reservation.draw("label"), [1])
    assert reserved(ledger).sequence == reservation.sequence  # the same request as before: nothing new


def test_a_receipt_of_this_ledger_is_accepted_and_of_another_refused(place, tmp_path, ledger):
    receipts = [reserved(ledger).receipt, ledger.bind("f" * 64)]
    for receipt in receipts:
        ledger.check_receipt(receipt)
    with Ledger(tmp_path / "other.db", budget=BUDGET, clock=place.clock) as other:
        reserved(other)
        other.bind("f" * 64)
        for receipt in receipts:
            with pytest.raises(LedgerIntegrityError):
                other.check_receipt(receipt)
    for made_up in (Receipt(99, receipts[0].head_hash), Receipt(-1, receipts[0].head_hash), Receipt(0, "x")):
        with pytest.raises(LedgerIntegrityError):
            ledger.check_receipt(made_up)
    with pytest.raises(InvalidParameter):
        ledger.check_receipt(None)


def test_an_export_can_be_verified_by_whoever_gets_it(ledger, reservation):
    reservation.store(reservation.draw("label", 2), [0, 1])
    lines = [canonical(entry) for entry in json.loads(json.dumps(ledger.export()))]
    assert verify(lines).head == ledger.head == ledger.verify()
    assert verify(lines) == verify(ledger.export()) == ledger.state


def test_a_changed_fingerprint_is_refused_until_the_owner_says_that_it_is_the_same_release(place, ledger):
    with pytest.raises(PreconditionFailed):
        ledger.same_release("b", "nothing is bound yet")
    first = ledger.bind("a")
    assert ledger.bind("a").sequence == first.sequence  # nothing new was written
    reserved(ledger)
    with pytest.raises(LedgerMismatch):
        ledger.bind("b")
    with pytest.raises(InvalidParameter):
        ledger.same_release("b", "")
    ledger.same_release("b", "three rows were corrected")
    ledger.bind("b")
    ledger.bind("a")
    assert ledger.fingerprints == ("a", "b")
    assert ledger.spent.epsilon == 0.25  # the same budget, not a fresh one
    place.close()
    with pytest.raises(LedgerMismatch):
        place.open().bind("c")


def test_an_existing_ledger_keeps_its_budget(place):
    place.open(BUDGET)
    place.close()
    for other in (Budget(2.0, 1e-5), Budget(1.0, 1e-6), Budget(1.0, 1e-5, "zcdp")):
        with pytest.raises(LedgerMismatch):
            place.open(other)
    assert place.open(Budget(1, 1e-5)).budget == BUDGET
    place.close()
    with pytest.raises(InvalidParameter):
        place.open((1.0, 1e-5))


def test_a_reservation_retried_under_its_key_is_not_charged_again(place, ledger):
    first, head = reserved(ledger), ledger.head
    assert reserved(ledger).sequence == first.sequence
    assert (ledger.head, ledger.spent.epsilon) == (head, 0.25)
    place.close()
    ledger = place.open()
    again = reserved(ledger)
    assert (again.sequence, again.receipt, ledger.head) == (first.sequence, first.receipt, head)
    assert ledger.reservation("labels").sequence == first.sequence
    assert ledger.reservation("labels", client="somebody else") is None
    assert [one.sequence for one in ledger.reservations()] == [first.sequence]
    assert (again.event, again.key, again.client) == (PureDP(0.25), "labels", "local")
    assert dict(again.purposes) == {"label": 10}


def test_another_reservation_under_the_same_key_is_refused(ledger):
    reserved(ledger)
    for event, delta, purposes, more in (
        (PureDP(0.2), 0, {"label": 10}, {}),
        (PureDP(0.25), 1e-6, {"label": 10}, {}),
        (PureDP(0.25), 0, {"label": 11}, {}),
        (PureDP(0.25), 0, {"label": 10}, {"epsilon": 0.3}),
    ):
        with pytest.raises(PreconditionFailed):
            ledger.reserve(event, delta=delta, purposes=purposes, key="labels", **more)
    assert ledger.spent.epsilon == 0.25
    ledger.reserve(PureDP(0.2), delta=0, purposes={"label": 10}, key="labels", client="another")  # its own keys
    assert ledger.spent.epsilon == 0.45


def test_a_retried_question_gets_the_stored_answer(place, reservation):
    block = reservation.draw("label", key="q1", client="c", body="sha")
    assert (block.status, block.answers) == ("drawn", None)
    receipt = reservation.store(block, [4])
    again = reservation.draw("label", key="q1", client="c", body="sha")
    assert (again.sequence, again.status, again.answers, again.receipt) == (block.sequence, "stored", [4], receipt)
    assert reservation.remaining("label") == 9
    place.close()
    after = reserved(place.open()).draw("label", key="q1", client="c", body="sha")
    assert (after.answers, after.receipt) == ([4], receipt)


def test_a_retried_question_without_a_stored_answer_is_charged_again(place, reservation):
    first = reservation.draw("label", key="q1", client="c", body="sha")
    place.close()
    reservation = reserved(place.open())
    second = reservation.draw("label", key="q1", client="c", body="sha")
    assert (second.first, second.status, reservation.remaining("label")) == (1, "drawn", 8)
    reservation.store(second, [4])
    assert reservation.draw("label", key="q1", client="c", body="sha").answers == [4]
    assert [block.status for block in reservation.blocks("label")] == ["interrupted", "stored"]
    with pytest.raises(PreconditionFailed):
        reservation.store(first, [4])  # never drawn under the old charge


def test_the_first_stored_answer_is_the_answer(reservation):
    first = reservation.draw("label", key="q1", body="sha")
    second = reservation.draw("label", key="q1", body="sha")  # a retry before the first was stored
    reservation.store(first, [4])
    reservation.store(second, [5])
    assert reservation.draw("label", key="q1", body="sha").answers == [4]


def test_another_question_under_the_same_key_is_refused(ledger):
    reservation = reserved(ledger, evaluation=3)
    reservation.draw("label", key="q1", client="c", body="sha")
    for purpose, count, key, body in (
        ("label", 1, "q1", "other"),
        ("label", 2, "q1", "sha"),
        ("evaluation", 1, "q1", "sha"),
        ("label", 1, "q1", None),
    ):
        with pytest.raises(PreconditionFailed):
            reservation.draw(purpose, count, key=key, client="c", body=body)
    with pytest.raises(PreconditionFailed):
        reservation.draw("label", key="labels")  # used for the reservation
    assert reservation.remaining("label") == 9
    assert reservation.draw("label", key="q1", client="another", body="other").first == 1


def test_foreseeing_a_reservation_says_what_it_would_raise_and_charges_nothing(ledger):
    asked = {"delta": 0, "purposes": {"label": 10}, "client": "local"}
    ledger.check_affordable(PureDP(1.0), key="labels", **asked)
    assert (ledger.head.sequence, ledger.spent.epsilon) == (1, 0.0)
    with pytest.raises(BudgetExhausted):
        ledger.check_affordable(PureDP(1.5), key="labels", **asked)
    reserved(ledger)
    head = ledger.head
    ledger.check_affordable(PureDP(0.25), key="labels", **asked)  # made already: a retry costs nothing
    with pytest.raises(PreconditionFailed):
        ledger.check_affordable(PureDP(0.5), key="labels", **asked)
    with pytest.raises(BudgetExhausted):
        ledger.check_affordable(PureDP(0.8), key="more", **asked)
    with pytest.raises(InvalidParameter):
        ledger.check_affordable(0.5, key="more", **asked)
    assert ledger.head == head
    ledger.close_release("published")
    with pytest.raises(PreconditionFailed):
        ledger.check_affordable(PureDP(0.1), key="more", **asked)


PERSON = GuaranteeScope(unit="person", neighbours="add, remove or replace one person", caveats=("n is public",))
REPLACED = GuaranteeScope(unit="person", neighbours="replace one person")
RECORD = GuaranteeScope(unit="record", neighbours="add, remove or replace one record")


def claiming(ledger, scope, key="labels", **more):
    return ledger.reserve(PureDP(0.25), delta=0, purposes={"label": 10}, key=key, scope=scope, **more)


def test_a_claim_is_stored_with_its_charge_and_read_back(place, ledger):
    parts = Composed((PureDP(0.125), PureDP(0.125)))
    claiming(ledger, PERSON)
    how = {"purposes": {"label": 1, "tuning": 2}, "charged_to": {"label": 1, "tuning": 0}}
    ledger.reserve(parts, delta=0, key="parts", scope=REPLACED, **how)
    reserved(ledger, key="unsaid")
    told = [(each.scope, each.charged_to) for each in ledger.reservations()]
    assert told == [(PERSON, None), (REPLACED, {"label": 1, "tuning": 0}), (None, None)]
    ledger.close()
    again = place.open(BUDGET)
    assert [(each.scope, each.charged_to) for each in again.reservations()] == told
    assert again.scope.neighbours == "replace one person"
    assert verify(again.export()) == again.state


def test_what_protects_another_unit_is_refused_and_nothing_is_charged(ledger):
    claiming(ledger, RECORD)
    head = ledger.head
    for act in (ledger.check_affordable, ledger.reserve):
        with pytest.raises(PreconditionFailed, match="protect one record, and this one one person"):
            act(PureDP(0.25), delta=0, purposes={"label": 10}, key="more", scope=PERSON)
    odd = GuaranteeScope(unit="record", neighbours="change the label of one record")
    with pytest.raises(PreconditionFailed, match="another kind of change"):
        claiming(ledger, odd, key="more")
    assert (ledger.head, ledger.spent.epsilon) == (head, 0.25)


def test_a_retry_promises_what_was_promised_or_leaves_out_a_caveat(ledger):
    first = claiming(ledger, PERSON)
    assert claiming(ledger, PERSON).sequence == first.sequence
    assert claiming(ledger, replace(PERSON, caveats=())).scope == PERSON  # the caveat stays
    assert claiming(ledger, REPLACED).scope == PERSON  # so does the wider promise
    claiming(ledger, REPLACED, key="narrow")
    with pytest.raises(PreconditionFailed):
        claiming(ledger, PERSON, key="narrow")
    for other in (None, replace(PERSON, caveats=("another",)), replace(RECORD, caveats=("n is public",))):
        with pytest.raises(PreconditionFailed):
            claiming(ledger, other)
    reserved(ledger, key="unsaid")
    with pytest.raises(PreconditionFailed):
        claiming(ledger, PERSON, key="unsaid")
    assert ledger.spent.epsilon == 0.75


def test_a_retry_is_paid_by_the_same_parts(ledger):
    asked = {"delta": 0, "purposes": {"label": 1, "tuning": 1}, "key": "k"}
    event = Composed((PureDP(0.25), PureDP(0.25)))
    first = ledger.reserve(event, charged_to={"tuning": 1, "label": 0}, **asked)
    assert ledger.reserve(event, charged_to={"label": 0, "tuning": 1}, **asked).sequence == first.sequence
    for other in (None, {"label": 1, "tuning": 0}, {"label": 0, "tuning": 0}):
        with pytest.raises(PreconditionFailed):
            ledger.reserve(event, charged_to=other, **asked)


def test_a_block_that_was_drawn_and_not_stored_is_interrupted_after_a_restart(place, reservation):
    reservation.store(reservation.draw("label", 4), [1, 2, 3, 4])
    lost = reservation.draw("label", 4)
    place.close()
    ledger = place.open()
    reservation = reserved(ledger)
    head = ledger.head
    told = [(block.first, block.count, block.status, block.answers) for block in reservation.blocks("label")]
    assert told == [(0, 4, "stored", [1, 2, 3, 4]), (4, 4, "interrupted", None)]
    assert (reservation.remaining("label"), ledger.head) == (2, head)  # reading writes nothing
    with pytest.raises(PreconditionFailed):
        reservation.store(lost, [5, 6, 7, 8])
    assert reservation.draw("label", 2).first == 8
    with pytest.raises(BudgetExhausted):
        reservation.draw("label")


def test_each_process_that_writes_says_so_with_the_version_of_its_store(place):
    place.open(BUDGET)
    place.close()
    ledger = place.open()
    ledger.bind("a")
    kinds = [(entry["kind"], entry["session"]) for entry in ledger.export()]
    assert kinds == [("opened", 1), ("started", 2), ("bound", 2)]
    for entry in ledger.export()[:2]:
        assert entry["store"]["store"] == place.kind
        assert set(entry["store"]) == set(place.facts)


def test_answers_are_stored_once(reservation):
    block = reservation.draw("label", 2)
    receipt = reservation.store(block, [0, 1])
    assert reservation.store(block, [0, 1]) == receipt  # the very same: nothing changes
    with pytest.raises(PreconditionFailed):
        reservation.store(block, [1, 1])


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "answers",
    [[1], [1, 2, 3], [1, float("nan")], [1, Secret(2)], [1, {2}], np.array([1]), {1: 2}, [b"a", b"b"], [2 + 1j, 1],
     [1, reduce(lambda deep, _: [deep], range(200), 1)]],
)  # fmt: skip
def test_answers_that_do_not_fit_are_refused_before_they_spoil_the_chain(answers, ledger, reservation):
    block = reservation.draw("label", 2)
    with pytest.raises(InvalidParameter) as caught:
        reservation.store(block, answers)
    assert "Secret" not in str(caught.value)
    reservation.store(block, [0, 1])
    ledger.verify()


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (np.array([0, -1]), [0, -1]),
        ([np.int64(3), np.float64(0.5)], [3, 0.5]),
        ([None, 2], [None, 2]),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ({"labels": [1, 2]}, {"labels": [1, 2]}),
    ],
)
def test_answers_may_be_any_json_and_arrays(answers, told, reservation):
    reservation.store(reservation.draw("label", 2), answers)
    assert reservation.blocks("label")[0].answers == told


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "arguments",
    [
        *({"purposes": wrong} for wrong in ({}, *({"label": n} for n in (-1, 1.5, True, "3")), {"": 3}, ["label"])),
        *({"key": wrong} for wrong in ("", None, "two\nlines")),
        {"client": 7},
        {"delta": "0"},
        {"event": 0.25},
        {"scope": "person"},
        {"scope": ("person", "replace one person", ())},
        {"charged_to": {"label": 0}},  # a single event has no parts
        *(
            {"event": Composed((PureDP(0.25),)), "charged_to": wrong}
            for wrong in ({"label": 1}, {"label": -1}, {"label": True}, {}, {"label": 0, "tuning": 0}, [0])
        ),
    ],
)
def test_a_reservation_with_a_wrong_argument_is_refused(arguments, ledger):
    sound = {"event": PureDP(0.25), "delta": 0, "purposes": {"label": 1}, "key": "k"}
    with pytest.raises(InvalidParameter):
        ledger.reserve(**{**sound, **arguments})
    assert ledger.spent.epsilon == 0.0


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("count", [0, -1, 1.0, True, "1", None])
def test_a_draw_with_a_wrong_count_is_refused(count, reservation):
    with pytest.raises(InvalidParameter):
        reservation.draw("label", count)
    assert reservation.draw("label", np.int64(2)).count == 2


def test_a_ledger_is_a_thing_and_not_a_value(ledger):
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"ledger": ledger})["ledger"] is ledger
    with pytest.raises(PreconditionFailed):
        pickle.dumps(ledger)


def test_a_closed_ledger_admits_nothing(ledger, reservation):
    ledger.close()
    ledger.close()
    assert not ledger.healthy
    for act in (ledger.verify, ledger.entries, lambda: ledger.spent, lambda: reservation.draw("label")):
        with pytest.raises(PreconditionFailed):
            act()


def test_durable_says_whether_anything_outlives_the_process(place):
    assert place.open(BUDGET).durable == (place.kind != "memory")


def test_the_state_handed_out_is_a_copy(ledger, reservation):
    state = ledger.state
    state.reservations[reservation.sequence].drawn["label"] = -100
    state.hashes.clear()
    assert reservation.remaining("label") == 10
    ledger.verify()


def test_a_clock_without_a_time_zone_is_refused(place, ledger):
    place.clock.now = place.clock.now.replace(tzinfo=None)
    with pytest.raises(QuorateError):
        ledger.bind("a")
    assert not ledger.healthy


def test_a_ledger_in_memory_needs_a_budget():
    with pytest.raises(InvalidParameter):
        Ledger()
    with Ledger(budget=BUDGET) as ledger:
        assert (ledger.durable, ledger.path, repr(ledger)) == (False, None, "Ledger(None)")
