"""Whether a reservation paid for what is about to be drawn."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.accounting import Composed, DiscreteGaussian, DiscreteLaplace, PureDP, Repeated, from_json
from quorate.errors import InvalidParameter
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import NoisyCounts, NoisySum, StableSparseVector
from quorate.release.block import check_covered, single_events
from quorate.release.charge import STAGE

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
    """Every leaf, one by one."""
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


# --- taken apart ----------------------------------------------------------------------------------------------------

LABEL = DiscreteGaussian(40.0, 1.0)
SHARES = NoisySum(10.0, 5, "shares")
ONE = DiscreteLaplace(50.0, 5.0)


@pytest.mark.default_cases(6)
@pytest.mark.parametrize(
    ("event", "enough_for"),
    [
        (SHARES.event, 1),
        (Composed((ONE, LABEL, ONE)), 1),
        (Repeated(SHARES.event, 3), 3),
        (Repeated(Composed((SHARES.event, Repeated(LABEL, 7))), 2), 2),
        (Repeated(ONE, 9), 4),
        (ONE, 0),
        (LABEL, 0),
        (Composed((ONE, LABEL)), 0),
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
