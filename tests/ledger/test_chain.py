"""Every way to alter a chain is refused; where chain and anchor are both replaced, receipts show it.

Chains that version 0.1 wrote are read, priced and gone on with.
"""

import json
import string
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.accounting import PureDP, from_json
from quorate.errors import InvalidParameter, LedgerIntegrityError
from quorate.ledger import Budget, GuaranteeScope, Head, Ledger, MemoryStore
from quorate.ledger.budget import DELTA_DIGITS, BudgetUnits, float_up
from quorate.ledger.chain import begins_at, extend, holds, utc, verify
from quorate.ledger.entries import (
    GENESIS_HASH,
    KINDS,
    Bound,
    BudgetRaised,
    Closed,
    Drawn,
    Entry,
    Opened,
    Part,
    QuotaSet,
    Reserved,
    SameRelease,
    Started,
    Stored,
    seal,
)
from quorate.ledger.fields import Json, canonical
from quorate.ledger.pricing import check_prices, price
from quorate.ledger.state import GENESIS

PUBLISHED_ENTRY = (
    '{"amounts":{"delta_e18":0,"epsilon_e9":500000000,"rho_e9":0},'
    '"claim":{"caveats":["n is public"],"neighbours":"replace one person","unit":"person"},"client":"local",'
    '"event":{"epsilon":0.5,"kind":"pure_dp"},'
    '"hash":"22e786813136e5b9e5b9085f398e78a1571b67f7ce2184e19abf002760de279e","key":"k","kind":"reserved","paid_by":null,'
    '"previous":"091a2e2b9ba73409c3bf4270702157880858d1e7116b681a3cd6c2038d95e0b5",'
    '"purposes":{"label":2,"online answer":1},"sequence":5,"session":1,"time":"2026-01-01T00:00:00.000000Z"}'
)
PUBLISHED_HASH = "573936766d0a55781268f1438d8ac0fd22427890547c33fec18a265a16c150af"


def a_chain():
    """A chain with an entry of every kind; its lines and receipts."""
    store = MemoryStore()
    with Ledger(budget=Budget(1.0, 1e-5), store=store) as ledger:
        ledger.bind("a")
        ledger.same_release("b", "corrected")
        ledger.raise_budget(Budget(2.0, 1e-5), "second year")
        scope = GuaranteeScope(unit="record", neighbours="replace one record", caveats=("n is public",))
        purposes = {"label": 9, "online answer": 1}
        reservation = ledger.reserve(PureDP(0.5), delta=1e-6, purposes=purposes, key="k", scope=scope)
        for answers in ([1, 0], [2], [0, 0, 1]):
            block = reservation.draw("label", len(answers))
            receipt = reservation.store(block, answers)
        reservation.draw("online answer", key="q", client="c", body="sha")
        ledger.set_quota("c", 3, "a trial")
        shared = [Part(client="c", count=1, key="s", body="sha"), Part(client="d", count=1)]
        reservation.draw("label", 2, parts=shared)
    with Ledger(store=store) as ledger:
        ledger.close_release("published")
    return list(store.load().lines), store.load().anchor, receipt


LINES, ANCHOR, RECEIPT = a_chain()
COUNT = len(LINES)


def resealed(objects):
    """Rewrite a chain as somebody would who knows the format: numbers, links and hashes are all sound."""
    lines, previous = [], GENESIS_HASH
    for number, value in enumerate(objects, 1):
        value = {**value, "sequence": number, "previous": previous, "hash": GENESIS_HASH}
        entry = Entry.from_object(value)
        entry = seal(entry.content, sequence=number, time=entry.time, session=entry.session, previous=entry.previous)
        lines.append(entry.to_json())
        previous = entry.hash
    return lines


def test_the_sound_chain_has_every_kind_of_entry_and_is_accepted():
    assert {json.loads(line)["kind"] for line in LINES} == set(KINDS)
    assert verify(LINES, anchor=ANCHOR).head == ANCHOR
    assert resealed([json.loads(line) for line in LINES]) == LINES


@pytest.mark.heavy
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_edited_character_is_noticed(data):
    number = data.draw(st.integers(0, COUNT - 1))
    place = data.draw(st.integers(0, len(LINES[number]) - 1))
    edit = data.draw(st.sampled_from(["replace", "delete", "insert"]))
    letter = data.draw(st.sampled_from(string.printable + "é\x00"))
    before, at, after = LINES[number][:place], LINES[number][place], LINES[number][place + 1 :]
    edits = {"replace": before + letter + after, "delete": before + after, "insert": before + letter + at + after}
    edited = edits[edit]
    if edited == LINES[number]:
        return
    with pytest.raises(LedgerIntegrityError):
        verify([*LINES[:number], edited, *LINES[number + 1 :]])


MOVED = {
    "removed": lambda number: [*LINES[:number], *LINES[number + 1 :]],
    "swapped": lambda number: [*LINES[:number], LINES[number + 1], LINES[number], *LINES[number + 2 :]],
    "doubled": lambda number: [*LINES[: number + 1], *LINES[number:]],
}


@pytest.mark.default_cases(6)
@pytest.mark.parametrize("how", MOVED)
@pytest.mark.parametrize("number", range(COUNT - 1))
def test_an_entry_that_was_removed_moved_or_doubled_is_noticed(how, number):
    with pytest.raises(LedgerIntegrityError):
        verify(MOVED[how](number))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("length", range(COUNT))
def test_an_older_copy_is_noticed_by_the_anchor(length):
    verify(LINES[:length])  # sound in itself
    with pytest.raises(LedgerIntegrityError):
        verify(LINES[:length], anchor=ANCHOR)


def test_a_chain_that_goes_on_beyond_its_anchor_is_accepted():
    older = Head(sequence=COUNT - 2, hash=json.loads(LINES[COUNT - 3])["hash"])
    assert verify(LINES, anchor=older).head == ANCHOR


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("known", range(1, COUNT + 1))
def test_what_is_newer_is_verified_and_adds_up_to_the_same(known):
    state = verify(LINES[:known])
    assert begins_at(state.head, LINES[known - 1 :])
    assert verify(LINES[known:], anchor=ANCHOR, known=state) == state == verify(LINES, anchor=ANCHOR)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("known", range(1, COUNT))
def test_what_does_not_go_on_from_what_is_known_is_told_and_refused(known):
    head = verify(LINES[:known]).head
    other = resealed([{**json.loads(line), "time": "2026-01-02T03:04:05.000000Z"} for line in LINES])
    for lines in ([], LINES[known:], other[known - 1 :]):  # cut, without the known entry, another chain
        assert not begins_at(head, lines)
    altered = [LINES[known].replace('"sequence":', '"sequence": ', 1), *LINES[known + 1 :]]
    with pytest.raises(LedgerIntegrityError):
        begins_at(ANCHOR, altered)
    for newer, said in ((altered, "altered"), (LINES[known:-1], "older copy")):
        with pytest.raises(LedgerIntegrityError, match=said):
            verify(newer, anchor=ANCHOR, known=verify(LINES[:known]))


def test_a_newer_entry_that_breaks_a_rule_is_refused():
    state = verify(LINES)
    forged = resealed([json.loads(line) for line in [*LINES, LINES[1]]])[COUNT:]  # bound a second time
    with pytest.raises(LedgerIntegrityError, match="breaks a rule"):
        verify(forged, anchor=ANCHOR, known=state)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("line", [b"{}", None, "", "{}", "[]", "1", "null", "{", '"x"', "[" * 5000, "NaN"])
def test_what_is_no_entry_is_refused(line):
    with pytest.raises(LedgerIntegrityError):
        verify([*LINES, line])


def edited(kind, /, **fields):
    objects = [json.loads(line) for line in LINES]
    number = next(number for number, value in enumerate(objects) if value["kind"] == kind)
    objects[number].update(fields)
    return objects


def shared(**fields):
    objects = [json.loads(line) for line in LINES]
    next(value for value in objects if "parts" in value).update(fields)
    return objects


SHARE = {"body": None, "client": "d", "count": 2, "key": None}
WRONG_SHARES = [
    {"parts": []},
    {"parts": None},
    {"parts": [SHARE, SHARE]},
    {"parts": [{**SHARE, "count": 0}, SHARE]},
    {"parts": [{**SHARE, "name": "d"}]},
    {"parts": [{**SHARE, "client": "c", "key": "q"}]},
    {"parts": [SHARE], "key": "t"},
    {"parts": "d"},
]
CLAIM = {"unit": "person", "neighbours": "replace one person", "caveats": []}
LESS = {"epsilon_e9": 1, "delta_e18": 0, "rho_e9": 0}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "objects",
    [
        edited("reserved", amounts=LESS),
        edited("reserved", purposes={"label": 9000, "online answer": 1}),
        edited("stored", answers=[0, 0]),
        edited("reserved", claim=CLAIM),
        edited("bound", fingerprint="c"),
        edited("budget raised", reason="none"),
        edited("opened", ledger="0" * 32),
    ],
)
def test_a_chain_rewritten_by_the_rules_is_noticed_by_its_anchor_and_exposed_by_receipts(objects):
    lines = resealed(objects)
    with pytest.raises(LedgerIntegrityError):
        verify(lines, anchor=ANCHOR)
    state = verify(lines)  # the anchor was replaced, too
    assert not holds(state, Head(sequence=RECEIPT.sequence, hash=RECEIPT.head_hash))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "objects",
    [
        edited("opened", limit={"epsilon_e9": 10**12, "delta_e18": 10**13, "rho_e9": 0}),
        edited("opened", format=2),
        edited("opened", session=2),
        edited("budget raised", budget={"epsilon": 0.5, "delta": 1e-5, "composition": "sum"}),
        edited("budget raised", budget={"epsilon": 2.0, "delta": 1e-5, "composition": "zcdp"}),
        edited("budget raised", limit={"epsilon_e9": 10**12, "delta_e18": 10**13, "rho_e9": 0}),
        edited("reserved", amounts={"epsilon_e9": 3 * 10**9, "delta_e18": 0, "rho_e9": 0}),
        edited("reserved", amounts={"epsilon_e9": 0, "delta_e18": 0, "rho_e9": 1}),
        edited("reserved", session=3),
        *(
            edited("reserved", claim={**CLAIM, **wrong})
            for wrong in ({"caveats": None}, {"unit": ""}, {"caveats": "none"})
        ),
        edited("reserved", claim="person"),
        *(edited("reserved", paid_by=wrong) for wrong in ({"label": 0}, [0, 0])),
        *(
            edited("drawn", **wrong)
            for wrong in ({"count": 10}, {"first": 1}, {"reservation": 1}, {"purpose": "audit"}, {"key": "k"})
        ),
        *(edited("stored", **wrong) for wrong in ({"answers": [1]}, {"block": 1}, {"session": 15})),
        edited("same release", fingerprint="a"),
        edited("closed", kind="reopened"),
        *(edited("quota set", **wrong) for wrong in ({"quota": 1}, {"quota": -1}, {"client": ""}, {"quota": None})),
        *(shared(**wrong) for wrong in WRONG_SHARES),
        [*edited("closed"), json.loads(LINES[4])],
        edited("opened")[1:],
        [*edited("opened"), json.loads(LINES[0])],
        edited("bound")[:2] + edited("bound")[1:],
    ],
)
def test_a_rewritten_chain_that_breaks_a_rule_is_refused_without_an_anchor(objects):
    try:
        lines = resealed(objects)
    except (InvalidParameter, TypeError):  # not even an entry
        lines = [canonical(value) for value in objects]
    with pytest.raises(LedgerIntegrityError):
        verify(lines)


def test_the_format_is_the_published_one():
    """A published format does not change: these hashes are for ever."""
    budget, store = Budget(1.0, 1e-5), Json.of({"store": "memory"})
    opened = Opened(budget=budget, limit=budget.limit, ledger="0" * 32, store=store)
    contents = [
        opened,
        Bound(fingerprint="f"),
        SameRelease(fingerprint="g", reason="corrected"),
        BudgetRaised(budget=Budget(2.0, 1e-5), limit=Budget(2.0, 1e-5).limit, reason="second year"),
        Reserved(
            event=Json(PureDP(0.5).to_json()),
            amounts=BudgetUnits(epsilon_e9=500_000_000),
            purposes={"label": 2, "online answer": 1},
            client="local",
            key="k",
            claim=GuaranteeScope(unit="person", neighbours="replace one person", caveats=("n is public",)),
        ),
        Drawn(reservation=5, purpose="label", first=0, count=2, client="local"),
        Stored(block=6, answers=Json.of([1, -1])),
        Drawn(reservation=5, purpose="online answer", first=0, count=1, client="c", key="q", body="sha"),
        Closed(reason="published"),
    ]
    entries = extend(GENESIS, contents, time="2026-01-01T00:00:00.000000Z", session=None)
    last = extend(Head(sequence=9, hash=entries[-1].hash), [Started(store=store)], time=entries[0].time, session=None)
    verify([entry.to_json() for entry in (*entries, *last)])
    assert entries[4].to_json() == PUBLISHED_ENTRY
    assert last[0].hash == PUBLISHED_HASH


def test_the_format_of_quotas_and_shared_blocks_is_the_published_one():
    part = Part(client="ann", count=2, key="k", body="sha")
    contents = [
        QuotaSet(client="ann", quota=3, reason="a trial"),
        QuotaSet(client="ann", quota=None, reason="signed"),
        Drawn(reservation=5, purpose="label", first=0, count=2, client="local", parts=(part,)),
    ]
    entries = extend(GENESIS, contents, time="2026-01-01T00:00:00.000000Z", session=1)
    assert [entry.hash[:16] for entry in entries] == ["27c78d142340937b", "dbd865be5b1086f7", "55094752d3480010"]
    assert '"parts":[{"body":"sha","client":"ann","count":2,"key":"k"}]' in entries[2].to_json()


def test_times_are_utc_and_of_one_form():
    with pytest.raises(InvalidParameter):
        utc(datetime(2026, 1, 1))  # noqa: DTZ001
    assert utc(datetime.fromisoformat("2026-01-01T01:00:00+01:00")) == "2026-01-01T00:00:00.000000Z"


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
