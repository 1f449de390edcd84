"""Requests of several clients answered together: one block, each charged to who asked, in the order of every charge."""

import numpy as np
import pytest
from tests.release.test_block import Watched

from quorate.accounting import PureDP, Repeated
from quorate.errors import (
    BudgetExhausted,
    DataRefused,
    InvalidParameter,
    LedgerBusy,
    LedgerIntegrityError,
    PreconditionFailed,
    QuorateError,
    QuotaExhausted,
    TeachersSilent,
)
from quorate.labelling import ClientRequest, Memo, OnlineAnswers, stages_of
from quorate.labelling.questions import Planning
from quorate.ledger import Budget, Ledger, MemoryStore
from quorate.mechanisms import NoisyCounts, StableSparseVector
from quorate.noise import OSNoise
from quorate.release import NEVER_ASKED
from quorate.types import Secret

PURPOSE, MECHANISM = "online answer", NoisyCounts(sigma=6.0, form="binary")


class Desk:
    """Online answers of a ledger in memory: the rows that were voted on, and what noise saw of the ledger."""

    def __init__(self, total=10, *, purposes=None, store=None, mechanism=MECHANISM, votes=(0, 1000)):
        self.store = store or MemoryStore()
        self.ledger = Ledger(budget=Budget(60.0, 1e-5), store=self.store)
        purposes = purposes or {PURPOSE: total}
        event = getattr(mechanism, "event", None)
        schedule = event if isinstance(mechanism, StableSparseVector) else Repeated(event, sum(purposes.values()))
        self.reservation = self.ledger.reserve(
            schedule, delta=1e-5, purposes={**purposes, **stages_of(mechanism)}, key="kept back"
        )
        self.votes, self.mechanism, self.purposes = np.array([votes]), mechanism, tuple(purposes)
        self.diary, self.seen = [], []
        self.online = self.opened(Memo())

    def opened(self, memo):
        noise = Watched(self.ledger, self.seen)
        return OnlineAnswers(self.count, self.mechanism, self.reservation, noise, memo, 2, self.purposes)

    def count(self, rows):
        self.diary.append(rows.tolist())
        return Secret(np.repeat(self.votes, len(rows), axis=0))

    def ask(self, *requests):
        asked = [ClientRequest(**request) for request in requests]
        return self.online.ask_together(np.arange(sum(len(request.digests) for request in asked)), asked)

    def given(self, client):
        return self.ledger.quota(client).drawn


def request(client, *digests, **more):
    return {"client": client, "digests": list(digests), **more}


def test_64_waiting_requests_are_one_block_and_two_commits():
    desk = Desk(100)
    before = desk.store.commits
    answers = desk.ask(*(request(f"client {n}", b"%d" % n, key="k") for n in range(64)))
    assert desk.store.commits - before == 2  # drawn, then stored
    [block] = desk.reservation.blocks(PURPOSE)
    assert (block.count, len(block.parts), block.status) == (64, 64, "stored")
    assert all(answer.codes.tolist() == [1] and answer.charged == 1 for answer in answers)
    for answer in answers:
        desk.ledger.check_receipt(answer.receipt)


class SharedStore(MemoryStore):
    """A ledger that other processes may write to, as far as its readers know."""

    shared = True


@pytest.mark.parametrize("how", ["ask", "ask_together"])
def test_two_servers_that_draw_for_one_query_tell_the_answer_that_was_stored_first(how):
    desk = Desk(4, store=SharedStore())
    first, second, late = (desk.opened(Memo()) for _ in range(3))
    told = []

    def ask(online):
        if how == "ask":
            told.extend(online.ask(np.arange(1), [b"a"]).tolist())
        else:
            told.extend(online.ask_together(np.arange(1), [ClientRequest(**request("ann", b"a"))])[0].codes.tolist())

    def counted_meanwhile(rows):  # its answer is drawn before the other one's, and stored behind it
        desk.votes = np.array([(1000, 0)])
        ask(second)
        desk.votes = np.array([(0, 1000)])
        return desk.count(rows)

    object.__setattr__(first, "count_votes", counted_meanwhile)
    ask(first)
    assert told == [0, 0]
    [drawn_first], [stored_first] = (block.answers["answers"] for block in desk.reservation.blocks(PURPOSE))
    assert (drawn_first > 0) != (stored_first > 0)  # the two do differ
    for online in (first, second):
        ask(online)
    late.recall_stored()
    ask(late)
    assert told == [0] * 5
    assert desk.reservation.remaining(PURPOSE) == 2


def test_noise_is_drawn_after_the_block_is_durable_and_answers_leave_after_they_are_stored():
    desk = Desk()
    desk.ask(request("ann", b"a"), request("bob", b"b"))
    assert set(desk.seen) == {f"noise of {PURPOSE} 0 while drawn and not stored: {PURPOSE} 0"}
    assert [block.status for block in desk.reservation.blocks(PURPOSE)] == ["stored"]


def test_that_test_catches_noise_without_a_charge():
    desk = Desk()
    Watched(desk.ledger, desk.seen).at(PURPOSE, 0).words(1)
    assert desk.seen == [f"noise of {PURPOSE} 0 while drawn and not stored: nothing"]


def test_a_query_that_two_clients_ask_together_is_drawn_once_and_charged_to_the_first():
    desk = Desk()
    first, second = desk.ask(request("ann", b"a", b"b"), request("bob", b"b", b"c", b"b"))
    assert (first.charged, second.charged) == (2, 1)
    assert first.codes[1] == second.codes[0] == second.codes[2]
    assert (desk.given("ann"), desk.given("bob")) == (2, 1)
    assert desk.diary[0] == [0, 1, 3]  # positions in all digests, one request after another
    [again] = desk.ask(request("cleo", b"c"))
    assert (again.charged, again.receipt) == (0, None)


def test_each_request_is_refused_by_itself_and_what_a_refused_one_asked_is_charged_to_the_next():
    desk = Desk(4)
    desk.ledger.set_quota("ann", 1, "a trial")
    answers = desk.ask(
        request("ann", b"a", b"b"), request("bob", b"a", b"b", b"c"), request("cleo", b"d", b"e"), request("dan", b"d")
    )
    assert [type(answer) for answer in answers[::2]] == [QuotaExhausted, BudgetExhausted]
    assert [answer.charged for answer in answers[1::2]] == [3, 1]
    assert (desk.given("ann"), desk.given("cleo"), desk.reservation.remaining(PURPOSE)) == (0, 0, 0)


def test_another_body_under_a_key_is_refused_even_where_it_would_be_free():
    desk = Desk()
    desk.ask(request("ann", b"a", b"b", key="k"))
    same, other, stranger = desk.ask(
        request("ann", b"a", b"b", key="k"), request("ann", b"a", key="k"), request("bob", b"a", key="k")
    )
    assert (same.charged, stranger.charged) == (0, 0)
    assert isinstance(other, PreconditionFailed)
    first, twice = desk.ask(request("ann", b"c", key="new"), request("ann", b"d", key="new"))
    assert first.charged == 1
    assert isinstance(twice, PreconditionFailed)


def test_a_retry_of_a_request_whose_answer_was_lost_is_charged_again_under_its_key():
    desk = Desk()
    failing = OnlineAnswers(lambda rows: 1 / 0, MECHANISM, desk.reservation, OSNoise(), Memo(), 2)
    [lost] = failing.ask_together(np.arange(2), [ClientRequest(client="ann", digests=[b"a", b"b"], key="k")])
    assert isinstance(lost.__cause__, ZeroDivisionError)
    [answer] = desk.ask(request("ann", b"a", b"b", key="k"))
    assert (answer.charged, desk.given("ann")) == (2, 4)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "failure", [ZeroDivisionError(), InvalidParameter("no"), TeachersSilent("gone"), LedgerBusy("")]
)
@pytest.mark.parametrize("at", [0, 1])
def test_a_request_whose_block_was_never_drawn_is_told_that_it_was_not_charged(failure, at):
    desk = Desk(purposes={PURPOSE: 2, "label": 3})
    real, calls = desk.count, []

    def count(rows):
        calls.append(rows)
        if len(calls) == at + 1:
            raise failure
        return real(rows)

    desk.count = count
    desk.online = desk.opened(Memo())
    asked = {
        "ann": [b"a", b"b"],  # of the first block
        "bob": [b"c", b"d"],  # of the second one
        "cleo": [b"e", b"a"],  # of the second one, beside what the first one draws
        "dan": [b"b"],  # what the first block draws
        "eve": [b"c"],  # what the second block draws
    }
    outcomes = dict(zip(asked, desk.ask(*(request(client, *rows) for client, rows in asked.items())), strict=True))
    kept = desk.reservation.remaining
    assert (kept(PURPOSE), kept("label")) == (0, 0 if at else 3)
    lost, free, unasked = (
        (["bob", "cleo"], ["ann", "dan"], ["eve"]) if at else (["ann"], [], ["bob", "cleo", "dan", "eve"])
    )
    for client in lost:
        assert isinstance(failure, InvalidParameter) or "stays charged" in outcomes[client].charged
        assert failure in (outcomes[client], outcomes[client].__cause__)
        assert desk.given(client) > 0
    assert [outcomes[client].charged for client in free] == [2, 0][: len(free)]
    for client in unasked:
        assert outcomes[client].charged == "nothing was charged"
        assert desk.given(client) == 0
    if not at:
        again = desk.ask(*(request(client, *asked[client]) for client in ("bob", "eve")))
        assert [answer.charged for answer in again] == [2, 0]


def test_a_request_goes_to_the_first_purpose_with_room_for_all_of_it():
    desk = Desk(purposes={PURPOSE: 2, "label": 3})
    answers = desk.ask(request("ann", b"a"), request("bob", b"b", b"c", b"d"), request("cleo", b"e"))
    assert [answer.charged for answer in answers] == [1, 3, 1]
    assert (desk.reservation.remaining(PURPOSE), desk.reservation.remaining("label")) == (0, 0)


def test_a_sparse_vector_answers_a_shared_block_in_its_stage_and_closes():
    mechanism = StableSparseVector(epsilon=4.0, delta=1e-5, cutoff=2, n_queries=20)
    desk = Desk(20, mechanism=mechanism, votes=(2, 1))
    answers = desk.ask(request("ann", b"a", b"b", b"c", b"d", key="k"), request("bob", b"e", b"f", b"g", b"h"))
    codes = np.concatenate([answer.codes for answer in answers])
    assert (codes == -1).sum() == 2
    assert (codes == NEVER_ASKED).any()
    [again, later] = desk.ask(request("ann", b"a", b"b", b"c", b"d", key="k"), request("cleo", b"z"))
    assert again.codes.tolist() == answers[0].codes.tolist()
    assert isinstance(later, BudgetExhausted)
    assert later.unit == "stages"


def test_a_stopped_ledger_answers_nobody():
    desk = Desk()
    with pytest.raises(LedgerIntegrityError), desk.ledger._journal._stopping():
        raise LedgerIntegrityError("the disk is full")
    with pytest.raises(LedgerIntegrityError):
        desk.ask(request("ann", b"a"))


def test_where_another_server_was_given_answers_in_between_the_requests_are_collected_anew(monkeypatch):
    desk, taken = Desk(4), []
    honest = Planning.__init__

    def late(self, *arguments):
        honest(self, *arguments)
        if not taken:
            taken.append(desk.reservation.draw(PURPOSE, 2, client="another server"))

    monkeypatch.setattr(Planning, "__init__", late)
    first, second = desk.ask(request("ann", b"a", b"b"), request("bob", b"c"))
    assert first.charged == 2
    assert isinstance(second, BudgetExhausted)
    assert desk.reservation.remaining(PURPOSE) == 0


def test_the_price_of_a_reservation_does_not_depend_on_how_its_answers_are_shared():
    desk = Desk()
    spent = desk.ledger.spent
    desk.ask(*(request(f"client {n}", b"%d" % n) for n in range(10)))
    assert desk.ledger.spent == spent
    assert desk.ledger.reserve(PureDP(0.5), delta=0, purposes={"sum": 1}, key="other").sequence


@pytest.mark.parametrize("failure", [PreconditionFailed("no votes"), DataRefused("no votes"), RuntimeError("no votes")])
def test_a_failure_after_the_draw_is_charged_once_and_told_as_charged(failure):
    desk = Desk()

    def fails(rows):
        raise failure

    desk.count = fails
    desk.online = desk.opened(Memo())
    one, two = desk.ask(request("ann", b"1", b"2"), request("bob", b"3"))
    assert [type(one), type(two)] == [QuorateError, QuorateError]
    assert one.__cause__ is two.__cause__ is failure
    assert "charged" in one.charged
    assert "nothing" not in one.charged
    assert desk.reservation.remaining(PURPOSE) == 10 - 3


def test_only_a_lost_race_is_drawn_again(monkeypatch):
    desk = Desk()
    draws, refusals = [], [LedgerBusy("held"), BudgetExhausted("less is left", spent=1, requested=1, limit=1)]
    real = type(desk.reservation).draw

    def draw(self, *given, **named):
        draws.append(1)
        if refusals:
            raise refusals.pop(0)
        return real(self, *given, **named)

    monkeypatch.setattr(type(desk.reservation), "draw", draw)
    with pytest.raises(LedgerBusy):
        desk.ask(request("ann", b"1"))
    assert len(draws) == 1
    assert desk.ask(request("ann", b"1"))[0].charged == 1
    assert len(draws) == 3
