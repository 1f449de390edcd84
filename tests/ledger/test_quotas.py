"""Quotas of clients below one cap, and blocks that several clients share, with every store."""

from contextlib import suppress

import pytest
from tests.ledger.test_threads import together

from quorate.accounting import PureDP
from quorate.errors import BudgetExhausted, InvalidParameter, LedgerIntegrityError, PreconditionFailed, QuotaExhausted
from quorate.ledger import Part, Quota, rules, verify

PURPOSE = "online answer"


def kept_back(ledger, count=10):
    return ledger.reserve(PureDP(0.25), delta=0, purposes={PURPOSE: count}, key="kept back")


@pytest.fixture
def reservation(ledger):
    return kept_back(ledger)


def draw(reservation, client, count=1, **more):
    block = reservation.draw(PURPOSE, count, client=client, **more)
    reservation.store(block, [1] * count)
    return block


def told(ledger, client):
    quota = ledger.quota(client)
    return quota.answers, quota.drawn, quota.left


def test_a_client_is_given_no_more_than_its_quota_and_others_go_on(ledger, reservation):
    ledger.set_quota("ann", 3, "a trial")
    draw(reservation, "ann", 2)
    with pytest.raises(QuotaExhausted) as refused:
        draw(reservation, "ann", 2)
    facts = refused.value
    assert (facts.client, facts.spent, facts.requested, facts.limit, facts.unit) == ("ann", 2, 2, 3, "answers")
    assert (facts.exit_code, facts.code) == (3, "QUO-E013")
    draw(reservation, "ann")
    draw(reservation, "bob", 5)
    assert told(ledger, "ann") == (3, 3, 0)
    assert told(ledger, "bob") == (None, 5, None)


def test_clients_who_collude_meet_the_cap(ledger, reservation):
    given = 0
    for number in range(5):
        ledger.set_quota(f"client {number}", 4, "a trial")
        with suppress(QuotaExhausted, BudgetExhausted):
            while True:
                draw(reservation, f"client {number}")
                given += 1
    assert given == 10
    with pytest.raises(BudgetExhausted):  # the cap is told first: no quota helps here
        draw(reservation, "client 0")


def test_a_quota_is_raised_lowered_and_removed_with_a_reason_and_what_was_given_stays_counted(ledger, reservation):
    ledger.set_quota("ann", 3, "a trial")
    draw(reservation, "ann", 3)
    ledger.set_quota("ann", 4, "one more")
    draw(reservation, "ann")
    ledger.set_quota("ann", 1, "the trial is over")
    assert told(ledger, "ann") == (1, 4, 0)
    with pytest.raises(QuotaExhausted):
        draw(reservation, "ann")
    ledger.remove_quota("ann", "a contract was signed")
    draw(reservation, "ann")
    assert told(ledger, "ann") == (None, 5, None)
    said = [(one["quota"], one["reason"]) for one in ledger.export() if one["kind"] == "quota set"]
    assert said == [(3, "a trial"), (4, "one more"), (1, "the trial is over"), (None, "a contract was signed")]


def test_quotas_outlive_a_restart_and_a_closed_release(place, ledger, reservation):
    ledger.set_quota("ann", 3, "a trial")
    draw(reservation, "ann", 2)
    ledger.close_release("published")
    place.close()
    again = place.open()
    assert dict(again.quotas) == {"ann": Quota(3, 2)}
    [reservation] = again.reservations()
    with pytest.raises(QuotaExhausted):
        draw(reservation, "ann", 2)
    again.set_quota("ann", 4, "one more")
    draw(reservation, "ann", 2)
    again.verify()


def test_a_retry_that_was_answered_needs_no_quota(ledger, reservation):
    first = draw(reservation, "ann", key="k")
    ledger.set_quota("ann", 0, "blocked")
    assert reservation.draw(PURPOSE, client="ann", key="k").sequence == first.sequence


def test_a_quota_must_say_something(ledger):
    with pytest.raises(PreconditionFailed):
        ledger.remove_quota("ann", "r")
    ledger.set_quota("ann", 3, "r")
    with pytest.raises(PreconditionFailed):
        ledger.set_quota("ann", 3, "r")
    for wrong in (("ann", -1, "r"), ("ann", 1.5, "r"), ("ann", None, "r"), ("", 1, "r"), ("a", 1, "")):
        with pytest.raises(InvalidParameter):
            ledger.set_quota(*wrong)


def test_many_threads_of_a_client_are_given_exactly_its_quota(ledger):
    reservation = kept_back(ledger, 1000)
    ledger.set_quota("ann", 37, "a trial")
    given = []

    def ask(_):
        with suppress(QuotaExhausted):
            while True:
                given.append(reservation.draw(PURPOSE, client="ann").first)

    together(ask)
    assert len(given) == len(set(given)) == 37


def test_these_tests_catch_a_ledger_without_the_check_and_its_chain_is_refused(monkeypatch, ledger, reservation):
    ledger.set_quota("ann", 1, "a trial")
    with monkeypatch.context() as broken:
        broken.setattr(rules, "check_quota", lambda state, client, count: None)
        draw(reservation, "ann", 3)
        lines = ledger.export()
        verify(lines)
    assert told(ledger, "ann") == (1, 3, 0)
    with pytest.raises(LedgerIntegrityError, match="breaks a rule"):
        verify(lines)


def test_one_block_counts_for_each_of_its_clients_and_outlives_a_restart(place, ledger, reservation):
    parts = [Part(client="ann", count=2, key="k", body="sha"), Part(client="bob", count=1), Part(client="ann", count=1)]
    block = reservation.draw(PURPOSE, 4, parts=parts)
    reservation.store(block, [1, 0, 1, 1])
    place.close()
    ledger = place.open()
    ledger.verify()
    assert (ledger.quota("ann").drawn, ledger.quota("bob").drawn, ledger.quota("local").drawn) == (3, 1, 0)
    [block] = ledger.reservations()[0].blocks(PURPOSE)
    assert (block.parts, block.answers) == (tuple(parts), [1, 0, 1, 1])


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("count", "parts", "more"),
    [
        (3, [Part(client="a", count=1), Part(client="b", count=1)], {}),
        (1, [], {}),
        (2, [Part(client="a", count=1, key="k"), Part(client="a", count=1, key="k")], {}),
        (1, [Part(client="a", count=1)], {"key": "k"}),
        (1, [{"client": "a", "count": 1}], {}),
    ],
)
def test_a_shared_block_that_does_not_add_up_is_refused(count, parts, more, reservation):
    with pytest.raises(InvalidParameter):
        reservation.draw(PURPOSE, count, parts=parts, **more)
    assert reservation.remaining(PURPOSE) == 10


def test_a_key_of_a_part_is_used_once(reservation):
    part = Part(client="ann", count=1, key="k", body="sha")
    block = reservation.draw(PURPOSE, 1, parts=[part])
    again = reservation.draw(PURPOSE, 1, parts=[part])  # nothing was stored: charged again, never drawn again
    assert again.first == block.first + 1
    reservation.store(again, [1])
    other = Part(client="ann", count=1, key="k", body="another")
    for late in (part, other):
        with pytest.raises(PreconditionFailed):
            reservation.draw(PURPOSE, 1, parts=[late])
    reservation.draw(PURPOSE, 1, parts=[Part(client="bob", count=1, key="k", body="another")])


def test_shared_requests_are_taken_or_refused_one_by_one(ledger):
    reservation = kept_back(ledger, 5)
    ledger.set_quota("ann", 2, "a trial")
    draw(reservation, "bob", key="used")
    share = reservation.share(PURPOSE)
    share.add(Part(client="ann", count=2, key="k", body="sha"))
    refused = [
        (QuotaExhausted, Part(client="ann", count=1)),
        (BudgetExhausted, Part(client="bob", count=3)),
        (PreconditionFailed, Part(client="bob", count=1, key="used", body="sha")),
        (PreconditionFailed, Part(client="ann", count=1, key="k", body="sha")),
    ]
    for error, part in refused:
        with pytest.raises(error):
            share.add(part)
    share.add(Part(client="bob", count=2))
    block = reservation.draw(PURPOSE, share.count, parts=share.parts)
    assert (block.count, [part.client for part in block.parts]) == (4, ["ann", "bob"])
