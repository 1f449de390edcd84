"""Draw → durable → noise → store → told, as seen from the ledger while it happens; and whether it was paid for."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.accounting import Composed, DiscreteGaussian, DiscreteLaplace, PureDP, Repeated, from_json
from quorate.errors import BudgetExhausted, InvalidParameter, PreconditionFailed
from quorate.ledger import Budget, Ledger, MemoryStore
from quorate.mechanisms import NoisyCounts, NoisySum, StableSparseVector
from quorate.noise import OSNoise, discrete_laplace
from quorate.release import DrawnBlock, Stages, draw, release, release_once
from quorate.release.block import check_covered, single_events, uninterrupted
from quorate.release.charge import EVALUATION, LABEL, STAGE
from quorate.types import Secret

SUMS = Secret(np.array([1_000]))
HALF = NoisySum.costing(0.5, grid=1)
VECTOR = StableSparseVector(4.0, 1e-5, cutoff=2, n_queries=10)


class Watched:
    """Noise that looks at the ledger whenever it is drawn, and writes down which block it found to be the newest."""

    seeded = False

    def __init__(self, ledger: Ledger, seen: list[str], where: str = "") -> None:
        self._ledger, self._seen, self._where = ledger, seen, where

    def words(self, n: int) -> Any:
        drawn = [each.content for each in self._ledger.entries() if each.kind == "drawn"]
        stored = {each.content.block for each in self._ledger.entries() if each.kind == "stored"}  # type: ignore[attr-defined]
        entries = [each.sequence for each in self._ledger.entries() if each.kind == "drawn"]
        open_ = [f"{c.purpose} {c.first}" for c, s in zip(drawn, entries, strict=True) if s not in stored]  # type: ignore[attr-defined]
        self._seen.append(f"noise of {self._where} while drawn and not stored: {', '.join(open_) or 'nothing'}")
        return OSNoise().words(n)

    def at(self, purpose: str, index: int) -> Watched:
        return Watched(self._ledger, self._seen, f"{purpose} {index}")


def reserved(event: Any, purposes: dict[str, int], delta: float = 1e-5) -> tuple[Ledger, Any]:
    ledger = Ledger(budget=Budget(8.0, 1e-4), store=MemoryStore())
    return ledger, ledger.reserve(event, delta=delta, purposes=purposes, key="x")


def by_release(reservation: Any, noise: Any) -> Any:
    def compute(drawn: DrawnBlock) -> list[int]:
        return [int(z) for z in discrete_laplace(2.0, drawn.count, drawn.noise(noise))]

    return release(reservation, EVALUATION, 1, compute)[1]


def by_release_once(reservation: Any, noise: Any) -> Any:
    return release_once(SUMS, HALF, reservation, noise, purpose=EVALUATION)


def noise_first(reservation: Any, noise: Any) -> Any:
    answer = HALF.release(SUMS.reveal(), noise.at(EVALUATION, 0))
    reservation.store(reservation.draw(EVALUATION), [answer])
    return answer


def never_stored(reservation: Any, noise: Any) -> Any:
    return HALF.release(SUMS.reveal(), draw(reservation, EVALUATION).noise(noise))


def in_order(act: Callable[[Any, Any], Any]) -> bool:
    """Whether noise was drawn for a block that was durable, and the answer stored when it came back."""
    ledger, reservation = reserved(Repeated(HALF.event, 3), {EVALUATION: 3}, delta=0.0)
    seen: list[str] = []
    act(reservation, Watched(ledger, seen))
    [block, *rest] = reservation.blocks(EVALUATION)
    expected = "noise of evaluation 0 while drawn and not stored: evaluation 0"
    return bool(seen) and set(seen) == {expected} and not rest and block.status == "stored"


@pytest.mark.parametrize("act", [by_release, by_release_once])
def test_noise_is_drawn_for_a_durable_block_and_the_answer_is_stored_when_it_is_told(act):
    assert in_order(act)


@pytest.mark.parametrize("cheat", [noise_first, never_stored])
def test_that_test_catches_another_order(cheat):
    assert not in_order(cheat)


@pytest.mark.parametrize("ahead", [0, 1])
def test_thresholds_and_queries_have_noise_of_blocks_that_are_durable(ahead):
    ledger, reservation = reserved(VECTOR.event, {LABEL: 4, STAGE: 2})
    seen: list[str] = []
    stages = Stages(VECTOR, VECTOR.cutoff, ahead=ahead)
    rows = [np.array([900, 100]), np.array([50, 50])]
    for _ in range(2):
        stages.release(reservation, LABEL, 2, lambda _: rows, Watched(ledger, seen))
    assert seen
    drawn = {f"{LABEL} {first}" for first in (0, 2)}
    for line in seen:
        _, _, block = line.partition("while drawn and not stored: ")
        assert drawn & set(block.split(", ")), line
    assert all(block.status == "stored" for block in reservation.blocks(LABEL))


def test_a_failure_between_draw_and_store_leaves_a_block_that_is_never_drawn_again():
    _, reservation = reserved(PureDP(1.0), {"sum": 2}, delta=0.0)

    def broken(drawn: DrawnBlock) -> list[int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(reservation, "sum", 1, broken)
    drawn, answers = release(reservation, "sum", 1, lambda drawn: [drawn.first])
    assert (drawn.first, answers) == (1, [1])
    assert [block.answers for block in reservation.blocks("sum")] == [None, [1]]
    with pytest.raises(BudgetExhausted):
        release(reservation, "sum", 1, lambda drawn: [0])


STOPPING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def stopped(number: int, _: object) -> None:
    raise KeyboardInterrupt(number)


@contextmanager
def heard(handler: Any = stopped) -> Iterator[None]:
    """Have Python hear the signals that stop a process, as a command does."""
    before = {number: signal.signal(number, handler) for number in STOPPING}
    try:
        yield
        assert {signal.getsignal(number) for number in STOPPING} == {handler}
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def signalled(number: int, times: int = 1) -> Callable[[Any], list[int]]:
    def compute(_: Any) -> list[int]:
        for _ in range(times):
            os.kill(os.getpid(), number)
            time.sleep(0.001)  # a handler of Python's is called between two of its instructions
        return [7]

    return compute


def one_of_a_stream(reservation: Any, compute: Callable[[Any], list[int]]) -> None:
    def rows(drawn: Any) -> list[Any]:
        compute(drawn)
        return [np.array([900, 100])]

    Stages(VECTOR, VECTOR.cutoff, ahead=1).release(reservation, LABEL, 1, rows, OSNoise())


def one_by_itself(reservation: Any, compute: Callable[[Any], list[int]]) -> None:
    release(reservation, LABEL, 1, compute)


@pytest.mark.parametrize("one", [one_by_itself, one_of_a_stream])
@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_between_draw_and_store_waits_until_the_answers_are_stored(number, one):
    _, reservation = reserved(VECTOR.event, {LABEL: 4, STAGE: 2})
    with heard():
        with pytest.raises(KeyboardInterrupt, match=str(int(number))):
            one(reservation, signalled(number))
        assert signal.getsignal(number) is stopped
    assert [block.status for block in reservation.blocks(LABEL)] == ["stored"]


def test_that_test_catches_an_interrupt_that_is_not_put_off():
    _, reservation = reserved(PureDP(1.0), {LABEL: 1}, delta=0.0)
    with heard(), pytest.raises(KeyboardInterrupt):
        draw(reservation, LABEL).answer(signalled(signal.SIGINT))
    assert [block.answers for block in reservation.blocks(LABEL)] == [None]


def test_whoever_insists_is_not_kept_waiting():
    _, reservation = reserved(PureDP(1.0), {LABEL: 1}, delta=0.0)
    with heard(), pytest.raises(KeyboardInterrupt):
        release(reservation, LABEL, 1, signalled(signal.SIGINT, times=3))
    assert [block.answers for block in reservation.blocks(LABEL)] == [None]


def test_each_signal_that_was_put_off_gets_to_its_handler_once_and_all_handlers_are_back_by_then():
    _, reservation = reserved(PureDP(1.0), {LABEL: 1}, delta=0.0)
    arrived = []

    def arrive(number: int, _: object) -> None:
        arrived.append((number, {signal.getsignal(each) for each in STOPPING} == {arrive}))
        raise KeyboardInterrupt

    def compute(drawn: Any) -> list[int]:
        signalled(signal.SIGTERM)(drawn)
        return signalled(signal.SIGINT)(drawn)

    with heard(arrive), pytest.raises(KeyboardInterrupt):
        release(reservation, LABEL, 1, compute)
    assert arrived == [(signal.SIGTERM, True), (signal.SIGINT, True)]


def test_a_failure_puts_the_handlers_back_and_an_ignored_signal_stays_ignored():
    _, reservation = reserved(PureDP(1.0), {LABEL: 2}, delta=0.0)

    def broken(_: Any) -> list[int]:
        raise OSError("disk full")

    with heard(), pytest.raises(OSError, match="disk full"):
        release(reservation, LABEL, 1, broken)
    with heard(signal.SIG_IGN):
        release(reservation, LABEL, 1, signalled(signal.SIGINT))


def test_the_failure_of_a_block_is_the_context_of_what_a_signal_raises():
    _, reservation = reserved(PureDP(1.0), {LABEL: 1}, delta=0.0)

    def broken(drawn: Any) -> list[int]:
        signalled(signal.SIGINT)(drawn)
        raise OSError("disk full")

    with heard(), pytest.raises(KeyboardInterrupt) as stop:
        release(reservation, LABEL, 1, broken)
    assert "disk full" in str(stop.value.__context__)


def test_what_outlives_its_block_or_process_puts_nothing_off():
    """A signal may come while handlers are put back, and a child is forked with those of a block."""
    within = []

    def arrive(number: int, _: object) -> None:
        within.append(number)

    with heard(arrive):
        with uninterrupted():
            left = signal.getsignal(signal.SIGTERM)
            with uninterrupted():  # one block of them all
                assert signal.getsignal(signal.SIGTERM) is left
            assert left is not arrive
            if (child := os.fork()) == 0:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.001)
                os._exit(len(within))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
            left(signal.SIGTERM, None)
            assert within == []
        assert within == [signal.SIGTERM]
        left(signal.SIGTERM, None)
        assert within == [signal.SIGTERM] * 2


def test_in_another_thread_no_handler_is_touched():
    _, reservation = reserved(PureDP(1.0), {LABEL: 1}, delta=0.0)
    within = []

    def compute(_: Any) -> list[int]:
        within.append([signal.getsignal(number) for number in STOPPING])
        return [7]

    with heard():
        thread = threading.Thread(target=release, args=(reservation, LABEL, 1, compute))
        thread.start()
        thread.join()
    assert within == [[stopped] * 3]
    assert reservation.blocks(LABEL)[0].answers == [7]


def test_nothing_is_told_where_it_cannot_be_stored():
    ledger, reservation = reserved(PureDP(1.0), {"sum": 2}, delta=0.0)
    told = []

    def compute(drawn: DrawnBlock) -> list[int]:
        ledger.close()
        return [7]

    with pytest.raises(PreconditionFailed, match="closed"):
        told.append(release(reservation, "sum", 1, compute))
    assert told == []


def test_what_is_stored_may_say_more_than_what_is_told():
    _, reservation = reserved(PureDP(1.0), {"sum": 1}, delta=0.0)
    _, answer = release(reservation, "sum", 1, lambda _: 7, record=lambda answer: [{"rows": [3], "answer": answer}])
    assert answer == 7
    assert reservation.blocks("sum")[0].answers == [{"rows": [3], "answer": 7}]


LEAVES = (PureDP(0.5), PureDP(0.25), DiscreteGaussian(5.0, 1.0))
events = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        st.builds(Repeated, inner, st.integers(0, 4))
        | st.lists(inner, max_size=3).map(lambda some: Composed(tuple(some)))
    ),
    max_leaves=6,
)


def slow_leaves(event):
    if isinstance(event, Repeated):
        return slow_leaves(event.event) * event.times
    if isinstance(event, Composed):
        return [leaf for each in event.events for leaf in slow_leaves(each)]
    return [event]


@given(event=events)
def test_an_event_taken_apart_is_the_event_written_out(event):
    assert +single_events(event) == Counter(slow_leaves(event))


@given(event=events)
def test_what_comes_back_from_a_ledger_still_pays(event):
    restored = from_json(event.to_json())
    assert single_events(event) == single_events(restored)
    assert +single_events(Repeated(restored, 7)) == Counter(slow_leaves(event) * 7)


def reserve(event, *, charged_to=None, **purposes):
    ledger = Ledger(budget=Budget(1_000.0, 1e-4))
    stages = {STAGE: purposes.pop("stages")} if "stages" in purposes else {}
    return ledger.reserve(event, delta=1e-5, purposes={**purposes, **stages}, key="run", charged_to=charged_to)


def test_one_answer_too_few_is_too_few():
    mechanism = NoisyCounts(sigma=5.0, form="binary")
    assert check_covered(reserve(Repeated(mechanism.event, 10), label=10), "label", mechanism) == 10
    with pytest.raises(InvalidParameter, match="10 answers of NoisyCounts"):
        check_covered(reserve(Repeated(mechanism.event, 9), label=10), "label", mechanism)


def test_labels_and_online_answers_are_paid_for_together():
    """Ten events do not pay for ten labels and then for five online answers."""
    mechanism = NoisyCounts(sigma=5.0, form="binary")
    purposes = {"label": 10, "online answer": 5}
    for purpose, reserved in purposes.items():
        assert check_covered(reserve(Repeated(mechanism.event, 15), **purposes), purpose, mechanism) == reserved
        with pytest.raises(InvalidParameter, match="does not pay for 15"):
            check_covered(reserve(Repeated(mechanism.event, 14), **purposes), purpose, mechanism)


@pytest.mark.heavy
def test_two_mechanisms_are_paid_for_by_two_parts():
    one, other = NoisyCounts(sigma=5.0, form="binary"), NoisyCounts(sigma=9.0, form="binary")
    event = Composed((Repeated(one.event, 10), Repeated(other.event, 3)))
    reservation = reserve(event, label=10, tuning=3, charged_to={"label": 0, "tuning": 1})
    assert check_covered(reservation, "label", one) == 10
    assert check_covered(reservation, "tuning", other) == 3
    for purpose, mechanism in (("label", other), ("tuning", one)):
        with pytest.raises(InvalidParameter, match="does not pay"):
            check_covered(reservation, purpose, mechanism)


def test_no_part_pays_twice():
    """Without saying which part pays for what, each purpose could draw the dearer part."""
    one, other = NoisyCounts(sigma=5.0, form="binary"), NoisyCounts(sigma=9.0, form="binary")
    event = Composed((one.event, other.event))
    unsaid = reserve(event, label=1, tuning=1)
    shared = reserve(event, label=1, tuning=1, charged_to={"label": 0, "tuning": 0})
    for reservation in (unsaid, shared):
        for purpose in ("label", "tuning"):
            with pytest.raises(InvalidParameter, match=r'2 answers of .* for "label" and "tuning".*charged_to'):
                check_covered(reservation, purpose, one)


MECHANISMS = (
    NoisyCounts(sigma=5.0, form="binary"),
    NoisySum(scale=10.0, grid=5),
    NoisySum(scale=10.0, grid=5, form="shares"),  # the one before, twice
)


@pytest.mark.heavy
@settings(max_examples=50)
@given(data=st.data())
def test_whatever_is_let_through_was_charged(data):
    """Any answers that pass the look take no more of any single event than the reservation holds."""
    parts = data.draw(
        st.lists(
            st.lists(
                st.builds(Repeated, st.sampled_from([m.event for m in MECHANISMS]), st.integers(1, 4)), max_size=2
            ),
            min_size=1,
            max_size=3,
        )
    )
    names = ("evaluation", "label", "online answer", "tuning")
    purposes = data.draw(st.dictionaries(st.sampled_from(names), st.integers(1, 3), min_size=1))
    which = st.integers(0, len(parts) - 1)
    charged_to = data.draw(st.none() | st.fixed_dictionaries(dict.fromkeys(purposes, which)))
    event = Composed(tuple(Composed(tuple(part)) for part in parts))
    reservation = reserve(event, charged_to=charged_to, **purposes)
    drawn = Counter()
    for purpose, times in purposes.items():
        for _ in range(times):
            mechanism = data.draw(st.sampled_from(MECHANISMS))
            try:
                check_covered(reservation, purpose, mechanism)
            except InvalidParameter:
                continue
            drawn.update(slow_leaves(mechanism.event))
    charged = Counter(slow_leaves(event))
    assert all(charged[leaf] >= often for leaf, often in drawn.items())


def test_a_whole_run_of_a_stream_is_paid_for_once():
    mechanism = StableSparseVector(1.0, 1e-5, cutoff=2, n_queries=100)
    assert check_covered(reserve(mechanism.event, label=100, stages=2), "label", mechanism) == 100
    with pytest.raises(InvalidParameter, match="does not pay"):
        check_covered(reserve(PureDP(0.1), label=100, stages=2), "label", mechanism)
    with pytest.raises(InvalidParameter, match="does not pay for 101"):
        check_covered(reserve(mechanism.event, **{"label": 60, "stable query": 41}, stages=2), "label", mechanism)


def test_a_stream_and_its_like_do_not_share_one_event():
    """Else a run of a stream, and the same event for single answers, would both be drawn for one charge."""
    mechanism, counts = StableSparseVector(1.0, 1e-5, cutoff=2, n_queries=100), NoisyCounts(sigma=5.0, form="binary")
    event = Composed((mechanism.event, Repeated(counts.event, 10)))
    with pytest.raises(InvalidParameter, match="stream with stages"):
        check_covered(reserve(event, label=10, stages=2), "label", counts)
    with pytest.raises(InvalidParameter, match="no stream"):
        check_covered(reserve(event, label=10), "label", mechanism)
    apart = reserve(event, label=100, tuning=10, stages=2, charged_to={"label": 0, STAGE: 0, "tuning": 1})
    assert check_covered(apart, "label", mechanism) == 100
    assert check_covered(apart, "tuning", counts) == 10


OF_A_LABEL = DiscreteGaussian(40.0, 1.0)
SHARES = NoisySum(10.0, 5, "shares")
ONE = DiscreteLaplace(50.0, 5.0)


@pytest.mark.default_cases(6)
@pytest.mark.parametrize(
    ("event", "enough_for"),
    [
        (SHARES.event, 1),
        (Composed((ONE, OF_A_LABEL, ONE)), 1),
        (Repeated(SHARES.event, 3), 3),
        (Repeated(Composed((SHARES.event, Repeated(OF_A_LABEL, 7))), 2), 2),
        (Repeated(ONE, 9), 4),
        (ONE, 0),
        (OF_A_LABEL, 0),
        (Composed((ONE, OF_A_LABEL)), 0),
        (Repeated(DiscreteLaplace(50.0, 4.0), 2), 0),
        (Repeated(DiscreteLaplace(51.0, 5.0), 2), 0),
        (PureDP(100.0), 0),
    ],
)
def test_taken_apart_it_holds_enough_for_so_many_and_for_none_more(event, enough_for):
    if enough_for:
        assert check_covered(reserve(event, evaluation=enough_for), "evaluation", SHARES) == enough_for
    with pytest.raises(InvalidParameter, match=r"does not pay for .* of NoisySum"):
        check_covered(reserve(event, evaluation=enough_for + 1), "evaluation", SHARES)


def test_the_purpose_must_have_been_reserved():
    with pytest.raises(InvalidParameter, match='holds no answers for "tuning"'):
        check_covered(reserve(SHARES.event, evaluation=1), "tuning", SHARES)


def test_one_charge_is_not_drawn_for_two_purposes_and_three_are_drawn_three_times():
    """An event of ε = 0.5 never paid for an evaluation and for a choice."""
    purposes = {"evaluation": 1, "tuning": 1, "label": 1}

    def reserved_for(event, epsilon):
        return Ledger(budget=Budget(epsilon, 1e-6)).reserve(event, delta=0, purposes=purposes, key="x")

    once = reserved_for(HALF.event, 0.5)
    for purpose in ("evaluation", "tuning"):
        with pytest.raises(InvalidParameter, match="does not pay for 3 answers"):
            release_once(SUMS, HALF, once, OSNoise(), purpose=purpose)
        assert once.remaining(purpose) == 1
    thrice = reserved_for(Repeated(HALF.event, 3), 2.0)
    for purpose in purposes:
        release_once(SUMS, HALF, thrice, OSNoise(), purpose=purpose)
        assert thrice.remaining(purpose) == 0
    with pytest.raises(BudgetExhausted):
        release_once(SUMS, HALF, thrice, OSNoise(), purpose="label")
