"""A query that came after a stream had closed was not declined: it was never asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.labelling.doubles import vector

from quorate.labelling import answering, label, stages_of, stored_labels
from quorate.labelling.released import ReleaseBuilder, never_asked
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import DECLINED, GaussianNoisyMax, SoftLabel
from quorate.noise import OSNoise
from quorate.release import NEVER_ASKED
from quorate.release.target import is_closed
from quorate.types import Secret

DELTA = 1e-5
SPLIT, SURE = [50, 50], [100_000, 0]


def reserved(mechanism, n):
    ledger = Ledger(budget=Budget(2.0, 1e-4))
    purposes = {"label": n, **stages_of(mechanism)}
    return ledger.reserve(mechanism.event, delta=DELTA, purposes=purposes, key="run")


def counted(released):
    return tuple(
        int(which.sum()) for which in (released.asked, released.answered, released.declined, released.never_asked)
    )


def test_of_a_thousand_queries_a_mechanism_that_declines_ten_was_asked_ten():
    mechanism = vector(10)
    reservation = reserved(mechanism, 1_000)
    released = label(Secret(np.array([SPLIT] * 1_000)), mechanism, reservation, OSNoise())
    assert counted(released) == (10, 0, 10, 990)
    assert is_closed(reservation)
    assert released.statuses == ["declined"] * 10 + ["never asked"] * 990
    assert not released.interrupted.any()
    assert np.all(released.codes == DECLINED)
    assert counted(stored_labels(mechanism, reservation, n_classes=2)) == (10, 0, 10, 990)


@pytest.mark.heavy
@given(rows=st.lists(st.booleans(), max_size=30), cutoff=st.integers(1, 4))
def test_every_query_is_in_one_state_and_the_order_says_which(rows, cutoff):
    mechanism = vector(cutoff)
    if not rows:
        return
    votes = Secret(np.array([SPLIT if split else SURE for split in rows]))
    released = label(votes, mechanism, reserved(mechanism, len(rows)), OSNoise())
    declined, expected = 0, []
    for split in rows:
        expected.append("never asked" if declined == cutoff else "declined" if split else "answered")
        declined += expected[-1] == "declined"
    assert released.statuses == expected
    states = np.array([released.answered, released.declined, released.interrupted, released.never_asked])
    assert np.all(states.sum(axis=0) == 1)


def gathered(mechanism, answers):
    builder = ReleaseBuilder(mechanism, n_queries=len(answers), n_classes=2)
    builder.put(0, len(answers), answers)
    return builder.released()


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("mechanism", "answers", "expected"),
    [
        (vector(2), [0, -1, 1, -1, -1, -1], [False] * 4 + [True] * 2),
        (vector(3), [0, -1, 1, -1], [False] * 4),
        # Four stages: a declined query takes two, an even code one.
        (SoftLabel(1.0, DELTA, cutoff=2, n_queries=9, bins=4), [7, 2, 2, -1, -1], [False] * 4 + [True]),
        (SoftLabel(1.0, DELTA, cutoff=2, n_queries=9, bins=4), [7, 2, -1, 5, -1, -1], [False] * 5 + [True]),
        (GaussianNoisyMax(sigma=5.0), [-1] * 4, [False] * 4),
    ],
)
def test_what_version_0_1_stored_as_declined_after_the_last_stage_was_never_asked(mechanism, answers, expected):
    assert gathered(mechanism, answers).never_asked.tolist() == expected
    noted = [NEVER_ASKED if skipped else answer for answer, skipped in zip(answers, expected, strict=True)]
    assert gathered(mechanism, noted).never_asked.tolist() == expected


def test_a_stage_that_was_lost_with_a_process_is_noted_by_the_next_one():
    """The answers alone cannot tell: two of three stages ended without a declined query."""
    mechanism = vector(3)
    reservation = reserved(mechanism, 10)
    reservation.draw("sparse-vector stage", 2)
    released = label(Secret(np.array([SPLIT] * 10)), mechanism, reservation, OSNoise())
    assert counted(released) == (1, 0, 1, 9)


def test_a_soft_label_that_closed_was_not_asked_again():
    mechanism = SoftLabel(1.0, DELTA, cutoff=2, n_queries=10, bins=10)
    scores = np.tile(np.array([0.05, 0.35, 0.65, 0.95] * 25), (5, 1))
    assert counted(label(Secret(scores), mechanism, reserved(mechanism, 5), OSNoise())) == (2, 0, 2, 3)


def test_a_stream_that_is_asked_says_when_it_is_closed():
    mechanism = vector(1)
    stream = answering(mechanism, reserved(mechanism, 5))

    def ask(*rows):
        return stream.answer("label", len(rows), lambda _: [np.array(row) for row in rows], OSNoise())[1]

    assert not stream.closed
    assert ask(SURE) == [0]
    assert not stream.closed  # its one stage is counted, and open here
    assert ask(SPLIT, SPLIT) == [DECLINED, NEVER_ASKED]
    assert stream.closed


def test_the_mask_has_the_shape_of_the_answers():
    assert never_asked(vector(1), np.empty(0, dtype=np.int64)).shape == (0,)
