"""Soft labels: two partitions, 2T stages, and the counts of scores that stand behind them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.errors import InvalidParameter, MechanismClosed
from quorate.mechanisms import DECLINED, SoftLabel, StableSparseVector, distance_to_instability
from quorate.mechanisms.soft_label import _counts
from quorate.noise import OSNoise, SeededNoise

FIELDS = {"epsilon": 1.0, "delta": 1e-5, "cutoff": 3, "n_queries": 50, "bins": 10}
N_TEACHERS = 5000  # far above any threshold here


def soft_label(**changed):
    return SoftLabel(**{**FIELDS, **changed})


def everyone_says(*scores):
    return np.tile(np.array(scores, dtype=np.float64)[:, None], (1, N_TEACHERS))


def split(a, b):
    row = np.full(N_TEACHERS, a)
    row[::2] = b
    return row[None]


def test_where_all_scores_share_a_bin_its_mid_point_leaves():
    scores = [0.0, 0.04, 0.1, 0.15, 0.5, 0.97, 1.0]
    answers = soft_label().release(everyone_says(*scores), OSNoise())

    np.testing.assert_allclose(soft_label().values(answers), [0.05, 0.05, 0.15, 0.15, 0.55, 0.95, 0.95])


def test_scores_on_both_sides_of_a_border_are_answered_by_the_shifted_partition():
    mechanism = soft_label()
    answers = mechanism.release(split(0.29, 0.31), OSNoise())

    assert answers.tolist() == [6]
    np.testing.assert_allclose(mechanism.values(answers), [0.3])


def test_scattered_scores_are_declined():
    mechanism = soft_label()
    answers = mechanism.release(np.random.default_rng(0).uniform(size=(1, N_TEACHERS)), OSNoise())

    assert answers.tolist() == [DECLINED]
    assert np.isnan(mechanism.values(answers)).all()


def test_the_first_partition_is_free_the_second_spends_one_stage_and_a_refusal_two():
    mechanism, noise = soft_label(), OSNoise()
    state = mechanism.init(noise)
    for scores, spent in [
        (everyone_says(0.5)[0], 0),
        (split(0.29, 0.31)[0], 1),
        (np.linspace(0, 1, N_TEACHERS), 3),
        (everyone_says(0.98)[0], 3),
        (np.linspace(0, 1, N_TEACHERS), 5),
        (np.linspace(0, 1, N_TEACHERS), 6),  # the last stage: the second partition is not tried any more
    ]:
        assert state.open
        state, _answer = mechanism.step(state, scores, noise)
        assert state.stages_spent == spent
    assert not state.open
    with pytest.raises(MechanismClosed):
        mechanism.step(state, everyone_says(0.5)[0], noise)


def test_a_stream_is_its_steps_and_ends_with_its_last_stage():
    mechanism = soft_label(cutoff=1)
    scores = np.concatenate([everyone_says(0.5), split(0.29, 0.31), split(0.49, 0.51), everyone_says(0.5)])
    whole = mechanism.release(scores, SeededNoise(3))
    noise = SeededNoise(3)
    state, steps = mechanism.init(noise), []
    for row in scores:
        if state.open:
            state, answer = mechanism.step(state, row, noise)
            steps.append(DECLINED if answer is None else answer)

    assert whole.tolist() == [11, 6, DECLINED, DECLINED]
    assert steps == whole[: len(steps)].tolist()


def test_a_query_may_have_a_width_of_its_own():
    mechanism, noise = soft_label(), OSNoise()
    _state, answer = mechanism.step(mechanism.init(noise), everyone_says(0.5)[0], noise, bins=4)

    assert answer == 5  # of 8: the mid-point 0.625 of [0.5, 0.75)


@pytest.mark.parametrize("calibration", ["tight", "lzcw21", "btt18"])
def test_the_price_is_that_of_twice_the_stages_and_twice_the_queries(calibration):
    mechanism = soft_label(calibration=calibration)

    assert mechanism.event == StableSparseVector(1.0, 1e-5, 6, 100, calibration).event


@given(
    scores=st.lists(
        st.floats(-0.5, 1.5) | st.just(float("nan")) | st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=30
    ),
    bins=st.integers(2, 12),
    changed=st.floats(0, 1) | st.just(float("nan")),
)
def test_one_changed_teacher_moves_the_distance_in_both_partitions_by_at_most_one(scores, bins, changed):
    first = np.clip(np.array(scores), 0, 1)
    second = first.copy()
    second[0] = changed
    for shift, n_bins in ((0.0, bins), (0.5, bins - 1)):
        a, b = (_counts(row * bins - shift, n_bins) for row in (first, second))
        assert np.abs(a - b).sum() <= 2
        gap = [int(distance_to_instability(counts[None])[0]) for counts in (a, b)]
        assert abs(gap[0] - gap[1]) <= 1
        assert a.size == max(2, n_bins)
        if shift == 0:
            assert a.sum() == np.isfinite(first).sum()


def test_a_bin_holds_its_lower_border_and_one_belongs_to_the_last():
    assert _counts(np.array([0.0, 0.1, 0.5, 1.0]) * 2, 2).tolist() == [2, 2]
    assert _counts(np.array([0.2, 0.25, 0.5, 0.75, 0.8]) * 2 - 0.5, 1).tolist() == [3, 0]


def test_a_score_out_of_range_is_the_nearer_end_and_nan_an_abstention():
    mechanism = soft_label()
    scores = everyone_says(5.0, -3.0, np.inf)
    assert mechanism.release(scores, OSNoise()).tolist() == [19, 1, 19]
    assert mechanism.release(everyone_says(np.nan), OSNoise()).tolist() == [DECLINED]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "scores", [None, [[0.5]], np.array([0.5]), np.array([[1]]), np.array([[True]]), np.array([["a"]])]
)
def test_what_is_no_array_of_scores_is_refused(scores):
    with pytest.raises(InvalidParameter, match=r"^scores must be "):
        soft_label().release(scores, OSNoise())


def test_more_queries_than_declared_are_refused():
    with pytest.raises(InvalidParameter, match="at most n_queries=2"):
        soft_label(cutoff=1, n_queries=2).release(everyone_says(0.5, 0.5, 0.5), OSNoise())
