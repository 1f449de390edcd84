"""What was released, and how it is read, against slow versions that go query by query.

A query that came after a stream had closed was not declined: it was never asked.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.labelling.conftest import reserved, vector

from quorate.errors import InvalidParameter
from quorate.labelling import Released, answering, label, stored_labels
from quorate.labelling.release_log import ReleaseBuilder
from quorate.mechanisms import DECLINED, GaussianNoisyMax, NoisyCounts, SoftLabel
from quorate.mechanisms.answers import half_lead
from quorate.noise import OSNoise
from quorate.release import NEVER_ASKED
from quorate.release.charge import is_closed
from quorate.types import Secret

BINARY, HISTOGRAM = NoisyCounts(sigma=5.0, form="binary"), NoisyCounts(sigma=5.0)
CLASSES = GaussianNoisyMax(sigma=5.0)

values = st.integers(-300, 300)


def released(mechanism, answers, interrupted=()):
    """As labelling makes it: a block for each answer, some of them lost."""
    answers = np.asarray(answers, dtype=np.int64)
    n_classes = answers.shape[1] if answers.ndim == 2 else 2
    builder = ReleaseBuilder(mechanism, n_queries=len(answers), n_classes=n_classes)
    for query, answer in enumerate(answers.tolist()):
        builder.put(query, 1, None if query in interrupted else [answer])
    return builder.released()


def answered(mechanism, answers, interrupted, n_teachers):
    """Each answer that was not lost, as it was given and as it is read; a lost one is read as none."""
    made = released(mechanism, answers, interrupted)
    for query, (answer, code, shares) in enumerate(zip(answers, made.codes, made.vote_shares(n_teachers), strict=True)):
        if query in interrupted:
            assert code == -1
            assert np.isnan(shares).all()
        else:
            yield answer, code, shares


@st.composite
def histograms(draw):
    n_classes = draw(st.integers(2, 5))
    return draw(st.lists(st.lists(values, min_size=n_classes, max_size=n_classes), min_size=1, max_size=8))


lost = st.sets(st.integers(0, 7))


@pytest.mark.heavy
@given(half_leads=st.lists(values, min_size=1, max_size=8), interrupted=lost, n_teachers=st.integers(1, 50))
def test_half_leads_are_read_as_a_slow_reader_would(half_leads, interrupted, n_teachers):
    for value, code, shares in answered(BINARY, half_leads, interrupted, n_teachers):
        assert code == (1 if value > 0 else 0)
        ones = Fraction(value + n_teachers // 2, n_teachers)  # n₁ = value + ⌊K/2⌋ where all vote
        np.testing.assert_allclose(shares, [float(1 - ones), float(ones)], atol=1e-12)


@pytest.mark.heavy
@given(counts=histograms(), interrupted=lost, n_teachers=st.integers(1, 50))
def test_noisy_counts_are_read_as_a_slow_reader_would(counts, interrupted, n_teachers):
    for row, code, shares in answered(HISTOGRAM, counts, interrupted, n_teachers):
        assert code == row.index(max(row))  # index() finds the lowest
        np.testing.assert_allclose(shares, [value / n_teachers for value in row])


@given(codes=st.lists(st.integers(-1, 3), min_size=1, max_size=8), interrupted=lost)
def test_declined_and_interrupted_are_told_apart(codes, interrupted):
    made = released(CLASSES, codes, interrupted)
    for query, code in enumerate(codes):
        gone = query in interrupted
        assert made.interrupted[query] == gone
        assert made.declined[query] == (not gone and code == -1)
        assert made.answered[query] == (not gone and code != -1)
        assert made.codes[query] == (-1 if gone else code)


@given(half_leads=st.lists(st.integers(-2, 2), min_size=1, max_size=8))
def test_a_noisy_value_of_minus_one_is_an_answer(half_leads):
    made = released(BINARY, half_leads)
    assert made.answered.all()
    assert made.answers.tolist() == half_leads
    assert not released(HISTOGRAM, [[-1, -1]]).declined.any()


@pytest.mark.heavy
@given(n_teachers=st.integers(1, 60), data=st.data())
def test_without_noise_the_shares_are_exact_where_all_vote_and_an_abstention_is_half_a_vote(n_teachers, data):
    ones = data.draw(st.integers(0, n_teachers))
    abstain = data.draw(st.integers(0, n_teachers - ones))
    counts = np.array([[n_teachers - ones - abstain, ones]])
    share = released(BINARY, half_lead(counts)).vote_shares(n_teachers)[0, 1]
    truth = (ones + abstain / 2) / n_teachers
    assert abs(share - truth) <= (0.5 / n_teachers if abstain else 0) + 1e-12
    np.testing.assert_allclose(released(HISTOGRAM, counts).vote_shares(n_teachers)[0], counts[0] / n_teachers)


def test_one_teacher_has_all_the_votes():
    """With one teacher, 1/2 + v/K would put a share of 3/2 on the only vote there is."""
    assert released(BINARY, half_lead(np.array([[0, 1], [1, 0]]))).vote_shares(1).tolist() == [[0, 1], [1, 0]]


def test_classes_have_no_vote_shares():
    with pytest.raises(InvalidParameter, match="no vote share"):
        released(CLASSES, [0, 1]).vote_shares(10)


@pytest.mark.parametrize("n_teachers", [0, -1, 2.5, True, None])
def test_a_share_is_of_a_number_of_teachers(n_teachers):
    with pytest.raises(InvalidParameter, match="n_teachers"):
        released(BINARY, [1]).vote_shares(n_teachers)


def test_reading_changes_nothing():
    for made in (released(BINARY, [1, -2], {1}), released(HISTOGRAM, [[1, 2], [3, 4]], {0})):
        before = made.answers.copy()
        made.vote_shares(10)
        assert made.codes is not made.answers
        np.testing.assert_array_equal(made.answers, before)


def test_what_was_never_put_comes_out_interrupted():
    made = ReleaseBuilder(BINARY, n_queries=2, n_classes=2).released()
    assert isinstance(made, Released)
    assert made.interrupted.all()
    assert made.codes.tolist() == [-1, -1]


DELTA = 1e-5
SPLIT, SURE = [50, 50], [100_000, 0]


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
    assert released(mechanism, answers).never_asked.tolist() == expected
    noted = [NEVER_ASKED if skipped else answer for answer, skipped in zip(answers, expected, strict=True)]
    assert released(mechanism, noted).never_asked.tolist() == expected


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
