"""Online answers: charged first, all or nothing, and never twice for the same query."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.labelling.doubles import ask

from quorate.accounting import Repeated
from quorate.data import row_digests
from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.labelling import Memo, OnlineAnswers, distinct
from quorate.labelling.stable import STAGE, StableAnswers, stable_purposes
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import ConfidentNoisyMax, GaussianNoisyMax, NoisyCounts, StableSparseVector
from quorate.mechanisms.sparse_vector import SparseVectorState
from quorate.noise import NoiseSource, OSNoise, SeededNoise
from quorate.types import IntArray, Secret

PURPOSE = "online answer"
BINARY = NoisyCounts(sigma=6.0, form="binary")
SURE = np.array([[0, 1_000]], dtype=np.int64)


class Ensemble:
    """Votes for class 1 throughout, and remembers which rows of a batch it was shown."""

    def __init__(self, row=SURE):
        self.row, self.shown = row, []

    def __call__(self, rows):
        self.shown.append(rows.tolist())
        return Secret(np.repeat(self.row, len(rows), axis=0))


def desk(reservation, noise=None, *, mechanism=BINARY, memo=None, ensemble=None):
    ensemble = ensemble or Ensemble()
    n_classes = ensemble.row.shape[1]
    return OnlineAnswers(ensemble, mechanism, reservation, noise or OSNoise(), memo or Memo(), n_classes)


def test_a_batch_is_charged_then_drawn_then_stored_and_only_then_returned(diary):
    reservation, noise = diary(PURPOSE, 5)
    online = desk(reservation, noise)
    for batch in ([b"a", b"b"], [b"c"]):
        ask(online, batch)
        reservation.diary.append("returned")
    assert diary.faults(reservation.diary) == []
    acts = [entry for entry in reservation.diary if not entry.startswith("noise")]
    first, second = ([f"draw {PURPOSE} {at}", f"store {PURPOSE} {at}", "returned"] for at in (0, 2))
    assert acts == first + second


def test_that_test_catches_one_that_answers_before_charging(diary):
    reservation, noise = diary(PURPOSE, 5)
    answers = BINARY.release_many(SURE, noise.at(PURPOSE, 0)).tolist()
    reservation.store(reservation.draw(PURPOSE, 1), answers)
    assert diary.faults(reservation.diary)


def test_an_answer_that_cannot_be_stored_is_neither_returned_nor_remembered(diary):
    reservation, noise = diary(PURPOSE, 5)
    reservation.store = lambda block, answers: (_ for _ in ()).throw(OSError("the disk is full"))
    online = desk(reservation, noise)
    with pytest.raises(OSError, match="disk"):
        ask(online, [b"a"])
    assert online.memo.recall(b"a") is None


def test_the_same_query_costs_nothing_and_gets_the_same_answer(sessions):
    reservation = sessions.reserve({PURPOSE: 5})
    split = Ensemble(np.array([[50, 50]], dtype=np.int64))  # a coin toss each time it is drawn
    online = desk(reservation, ensemble=split)
    first = ask(online, [b"a", b"b"])
    for _ in range(20):
        assert ask(online, [b"a", b"b"]).tolist() == first.tolist()
    assert reservation.remaining(PURPOSE) == 3
    assert len(split.shown) == 1


def test_a_query_that_appears_twice_in_a_batch_is_asked_once(sessions):
    reservation, ensemble = sessions.reserve({PURPOSE: 5}), Ensemble()
    answers = ask(desk(reservation, ensemble=ensemble), [b"a", b"b", b"a", b"b", b"c"])
    assert answers.tolist() == [1] * 5
    assert ensemble.shown == [[0, 1, 4]]
    assert reservation.remaining(PURPOSE) == 2


def test_minus_zero_is_zero(sessions):
    reservation = sessions.reserve({PURPOSE: 5})
    online = desk(reservation)
    plus, minus = np.array([[0.0, 1.0]]), np.array([[-0.0, 1.0]])
    assert plus.tobytes() != minus.tobytes()
    ask(online, row_digests(plus))
    ask(online, row_digests(minus))
    assert reservation.remaining(PURPOSE) == 4


def test_a_label_that_was_released_is_free(sessions):
    reservation, ensemble = sessions.reserve({PURPOSE: 5}), Ensemble()
    online = desk(reservation, memo=Memo({b"public": 0, b"declined": -1}), ensemble=ensemble)
    assert ask(online, [b"public", b"declined"]).tolist() == [0, -1]
    assert ensemble.shown == []
    assert reservation.remaining(PURPOSE) == 5


def test_a_batch_that_does_not_fit_is_refused_whole(sessions):
    reservation, ensemble = sessions.reserve({PURPOSE: 3}), Ensemble()
    online = desk(reservation, ensemble=ensemble)
    ask(online, [b"a"])
    with pytest.raises(BudgetExhausted) as caught:
        ask(online, [b"a", b"b", b"c", b"d"])
    assert caught.value.unit == "answers"
    assert ensemble.shown == [[0]]  # the votes were not even counted
    assert reservation.remaining(PURPOSE) == 2
    assert online.memo.recall(b"b") is None
    assert ask(online, [b"a", b"b", b"c", b"b"]).tolist() == [1] * 4  # new ones alone count
    with pytest.raises(BudgetExhausted):
        ask(online, [b"d"])
    assert ask(online, [b"a"]).tolist() == [1]  # free for ever


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("mechanism", [BINARY, GaussianNoisyMax(sigma=6.0, form="binary"), NoisyCounts(sigma=6.0)])
def test_after_a_restart_the_answers_are_the_same(mechanism, sessions):
    split = Ensemble(np.array([[50, 50]], dtype=np.int64))
    before = desk(sessions.reserve({PURPOSE: 40}, mechanism), mechanism=mechanism, ensemble=split)
    digests = [bytes([byte]) for byte in range(20)]
    answers = ask(before, digests)
    assert len(set(answers.tolist())) == 2  # all alike: once in half a million

    after = desk(sessions.reserve({PURPOSE: 40}, mechanism), mechanism=mechanism, ensemble=split)
    after.recall_stored()
    assert ask(after, digests).tolist() == answers.tolist()
    assert len(split.shown) == 1
    assert after.reservation.remaining(PURPOSE) == 20


def test_answers_lost_in_a_crash_are_spent_and_their_queries_are_asked_anew(sessions):
    reservation = sessions.reserve({PURPOSE: 5})

    class Power(Exception):
        pass

    def cut(rows):
        raise Power

    with pytest.raises(Power):
        ask(OnlineAnswers(cut, BINARY, reservation, OSNoise(), Memo(), 2), [b"a", b"b"])
    after = desk(sessions.reserve({PURPOSE: 5}))
    after.recall_stored()
    assert after.reservation.remaining(PURPOSE) == 3
    assert ask(after, [b"a"]).tolist() == [1]
    assert after.reservation.remaining(PURPOSE) == 2


def test_declined_is_an_answer(sessions):
    mechanism = ConfidentNoisyMax(900.0, 5.0, 6.0, "binary")
    reservation = sessions.reserve({PURPOSE: 5}, mechanism)
    split = Ensemble(np.array([[50, 50]], dtype=np.int64))
    online = desk(reservation, mechanism=mechanism, ensemble=split)
    assert ask(online, [b"a"]).tolist() == [-1]
    assert ask(online, [b"a"]).tolist() == [-1]
    assert reservation.remaining(PURPOSE) == 4


def test_online_answers_have_to_be_reserved_and_paid_for(sessions):
    with pytest.raises(InvalidParameter, match='no answers for "online answer"'):
        desk(sessions.reserve({"label": 5}))


def test_online_answers_of_another_mechanism_are_refused(sessions):
    with pytest.raises(InvalidParameter, match="does not pay"):
        desk(sessions.reserve({PURPOSE: 5}), mechanism=NoisyCounts(sigma=1.0, form="binary"))


def test_a_seeded_desk_repeats_itself_and_no_two_batches_share_noise(sessions_in_memory):
    """Alike by chance: once in 2^40."""
    split = Ensemble(np.array([[50, 50]], dtype=np.int64))
    rounds = []
    for _ in range(2):
        online = desk(sessions_in_memory().reserve({PURPOSE: 80}), SeededNoise(5), ensemble=split)
        rounds.append([ask(online, [bytes([k, n]) for n in range(40)]).tolist() for k in range(2)])
    assert rounds[0] == rounds[1]
    assert rounds[0][0] != rounds[0][1]


@pytest.mark.heavy
@given(batches=st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=6), cap=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_what_is_charged_is_the_number_of_distinct_queries_that_were_answered(batches, cap, sessions_in_memory):
    reservation = sessions_in_memory().reserve({PURPOSE: cap})
    online, answered = desk(reservation), set()
    for batch in batches:
        digests = [bytes([query]) for query in batch]
        if len(answered | set(digests)) <= cap:
            assert ask(online, digests).tolist() == [1] * len(batch)
            answered |= set(digests)
        else:
            with pytest.raises(BudgetExhausted):
                ask(online, digests)
        assert reservation.remaining(PURPOSE) == cap - len(answered)


queries = st.lists(st.binary(max_size=2), max_size=12)


@given(digests=queries)
def test_distinct_finds_first_appearances_in_order(digests):
    first, which = distinct(digests)
    seen = list(dict.fromkeys(digests))
    assert [digests[row] for row in first] == seen
    assert first.tolist() == [digests.index(each) for each in seen]
    assert [seen[query] for query in which] == digests


def test_no_queries_are_no_queries():
    first, which = distinct([])
    assert first.tolist() == which.tolist() == []
    assert first.dtype == which.dtype == "int64"


@given(digests=queries, answers=st.lists(st.integers(-1, 3), min_size=12, max_size=12))
def test_the_first_answer_stays(digests, answers):
    memo, slow = Memo(), {}
    for digest, answer in zip(digests, answers, strict=False):
        memo.remember([digest], [answer])
        slow.setdefault(digest, answer)
    assert len(memo) == len(slow)
    assert {digest: memo.recall(digest) for digest in slow} == slow


def test_what_was_never_asked_is_none_and_what_was_declined_is_not():
    memo = Memo({b"a": -1})
    assert memo.recall(b"a") == -1
    assert memo.recall(b"b") is None


def test_a_memo_keeps_a_copy_of_what_it_was_given():
    answers = {b"a": 1}
    memo = Memo(answers)
    answers[b"a"] = 0
    assert memo.recall(b"a") == 1


def test_every_query_has_one_answer():
    with pytest.raises(ValueError, match="zip"):
        Memo().remember([b"a", b"b"], [1])


def test_two_threads_that_ask_one_query_pay_for_it_once():
    mechanism = GaussianNoisyMax(sigma=50.0, form="binary")
    reservation = Ledger(budget=Budget(4.0, 1e-5)).reserve(
        Repeated(mechanism.event, 8), delta=1e-5, purposes={"online answer": 8}, key="kept back"
    )

    def slow_votes(rows: IntArray) -> Secret[IntArray]:
        time.sleep(0.02)  # long enough for the others to come to the same place
        return Secret(np.array([[50, 50]] * len(rows)))

    online = OnlineAnswers(slow_votes, mechanism, reservation, SeededNoise(0), Memo(), 2)
    with ThreadPoolExecutor(4) as pool:
        answers = [each.tolist() for each in pool.map(lambda _: ask(online, [b"the same"]), range(4))]

    assert reservation.remaining("online answer") == 7
    assert len({tuple(each) for each in answers}) == 1


def test_no_two_queries_meet_one_threshold_at_once(monkeypatch):
    mechanism = StableSparseVector(4.0, 1e-5, cutoff=6, n_queries=100)
    reservation = Ledger(budget=Budget(4.0, 1e-5)).reserve(
        mechanism.event, delta=1e-5, purposes=stable_purposes(mechanism), key="questions"
    )
    stable = StableAnswers(mechanism, SeededNoise(1))
    inside, crowded, step = threading.Semaphore(1), [], StableSparseVector.step

    def slow(
        self: StableSparseVector, state: SparseVectorState, counts: IntArray, noise: NoiseSource
    ) -> tuple[SparseVectorState, int | None]:
        alone = inside.acquire(blocking=False)
        crowded.append(not alone)
        time.sleep(0.01)
        if alone:
            inside.release()
        return step(self, state, counts, noise)

    monkeypatch.setattr(StableSparseVector, "step", slow)
    votes = Secret(["red"] * 400)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: stable.answer(reservation, f"question {number}", votes), range(8)))

    assert not any(crowded)
    assert reservation.remaining(STAGE) >= 4  # every answer was stable: hardly a stage was used up
