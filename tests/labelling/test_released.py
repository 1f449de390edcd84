"""What was released, and how it is read, against slow versions that go query by query."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.errors import InvalidParameter
from quorate.labelling import Released
from quorate.labelling.released import ReleaseBuilder
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts
from quorate.mechanisms.votes import half_lead

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


@st.composite
def histograms(draw):
    n_classes = draw(st.integers(2, 5))
    return draw(st.lists(st.lists(values, min_size=n_classes, max_size=n_classes), min_size=1, max_size=8))


lost = st.sets(st.integers(0, 7))


@pytest.mark.heavy
@given(half_leads=st.lists(values, min_size=1, max_size=8), interrupted=lost, n_teachers=st.integers(1, 50))
def test_half_leads_are_read_as_a_slow_reader_would(half_leads, interrupted, n_teachers):
    made = released(BINARY, half_leads, interrupted)
    for query, value in enumerate(half_leads):
        code, shares = made.codes[query], made.vote_shares(n_teachers)[query]
        if query in interrupted:
            assert code == -1
            assert np.isnan(shares).all()
            continue
        assert code == (1 if value > 0 else 0)
        ones = Fraction(value + n_teachers // 2, n_teachers)  # n₁ = value + ⌊K/2⌋ where all vote
        np.testing.assert_allclose(shares, [float(1 - ones), float(ones)], atol=1e-12)


@pytest.mark.heavy
@given(counts=histograms(), interrupted=lost, n_teachers=st.integers(1, 50))
def test_noisy_counts_are_read_as_a_slow_reader_would(counts, interrupted, n_teachers):
    made = released(HISTOGRAM, counts, interrupted)
    for query, row in enumerate(counts):
        code, shares = made.codes[query], made.vote_shares(n_teachers)[query]
        if query in interrupted:
            assert code == -1
            assert np.isnan(shares).all()
            continue
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
@given(counts=histograms(), data=st.data())
def test_the_order_of_the_classes_does_not_matter_but_to_ties(counts, data):
    order = data.draw(st.permutations(range(len(counts[0]))))
    made, permuted = released(HISTOGRAM, counts), released(HISTOGRAM, [[row[c] for c in order] for row in counts])
    np.testing.assert_array_equal(permuted.vote_shares(10), made.vote_shares(10)[:, order])
    for query, row in enumerate(counts):
        if sorted(row)[-1] > sorted(row)[-2]:
            assert order[permuted.codes[query]] == made.codes[query]


@given(half_lead=values.filter(bool), n_teachers=st.integers(1, 20).map(lambda half: 2 * half))
def test_swapping_two_classes_mirrors_a_half_lead(half_lead, n_teachers):
    there, back = released(BINARY, [half_lead]), released(BINARY, [-half_lead])
    assert there.codes[0] == 1 - back.codes[0]
    np.testing.assert_allclose(there.vote_shares(n_teachers)[0], back.vote_shares(n_teachers)[0, ::-1])


def test_ties_go_to_the_lowest_class():
    assert BINARY.answers.codes(np.array([0, 1])).tolist() == [0, 1]
    assert HISTOGRAM.answers.codes(np.array([[3, 3, 1], [1, 3, 3]])).tolist() == [0, 1]


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


@pytest.mark.default_cases(4)
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
