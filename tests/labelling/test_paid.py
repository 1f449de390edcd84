"""Whether a reservation paid for what is about to be drawn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.accounting import Composed, DiscreteGaussian, PureDP, Repeated, from_json
from quorate.errors import InvalidParameter
from quorate.labelling.paid import check_paid, occurrences
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import NoisyCounts, StableSparseVector

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


@given(event=events, leaf=st.sampled_from(LEAVES))
def test_occurrences_are_those_of_the_event_written_out(event, leaf):
    assert occurrences(leaf, within=event) == slow_leaves(event).count(leaf)


@given(event=events)
def test_what_comes_back_from_a_ledger_still_pays(event):
    restored = from_json(event.to_json())
    assert occurrences(event, within=restored) == 1
    assert occurrences(event, within=Repeated(restored, 7)) == 7 or slow_leaves(event) == []


def reserve(event, **purposes):
    ledger = Ledger(budget=Budget(60.0, 1e-5))
    return ledger.reserve(event, delta=1e-5, purposes=purposes, key="run")


def test_one_answer_too_few_is_too_few():
    mechanism = NoisyCounts(sigma=5.0, form="binary")
    assert check_paid(reserve(Repeated(mechanism.event, 10), label=10), "label", mechanism) == 10
    with pytest.raises(InvalidParameter, match="10 answers of NoisyCounts"):
        check_paid(reserve(Repeated(mechanism.event, 9), label=10), "label", mechanism)


def test_labels_and_online_answers_are_paid_for_together():
    """Ten events do not pay for ten labels and then for five online answers."""
    mechanism = NoisyCounts(sigma=5.0, form="binary")
    purposes = {"label": 10, "online answer": 5}
    for purpose, reserved in purposes.items():
        assert check_paid(reserve(Repeated(mechanism.event, 15), **purposes), purpose, mechanism) == reserved
        with pytest.raises(InvalidParameter, match="does not pay for 15"):
            check_paid(reserve(Repeated(mechanism.event, 14), **purposes), purpose, mechanism)


def test_two_mechanisms_may_be_paid_for_together():
    one, other = NoisyCounts(sigma=5.0, form="binary"), NoisyCounts(sigma=9.0, form="binary")
    reservation = reserve(Composed((Repeated(one.event, 10), Repeated(other.event, 3))), label=10, tuning=3)
    assert check_paid(reservation, "label", one) == 10
    assert check_paid(reservation, "tuning", other) == 3
    with pytest.raises(InvalidParameter, match="does not pay"):
        check_paid(reservation, "label", other)


def test_a_whole_run_of_an_interactive_mechanism_is_paid_for_once():
    mechanism = StableSparseVector(1.0, 1e-5, cutoff=2, n_queries=100)
    assert check_paid(reserve(mechanism.event, label=100), "label", mechanism) == 100
    with pytest.raises(InvalidParameter, match="does not pay"):
        check_paid(reserve(PureDP(0.1), label=100), "label", mechanism)
