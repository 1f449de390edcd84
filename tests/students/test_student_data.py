"""Lessons: what fits together, and what becomes of a query without an answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from tests.students.made_up_student_data import Memorises, student_data_of, task, with_

from quorate.errors import InvalidParameter
from quorate.labelling import Released
from quorate.mechanisms import GaussianNoisyMax
from quorate.students import LabelStudent, SelfTraining, SpreadLabels

FALSE_ALARM = 1e-6


def mostly_declined(n, **changes):
    """A data of three classes in which every answer but three was declined."""
    codes = np.zeros(n, dtype=np.int64)
    codes[:3] = [0, 1, 2]
    released = Released(codes, np.arange(n) >= 3, np.zeros(n, dtype=bool), GaussianNoisyMax(sigma=5.0))
    return student_data_of(np.arange(n, dtype=float)[:, None], released, classes="abc", **changes)


def p_value_of_uniform(codes):
    """The least of six binomial tails, times six: that each class gets a third."""
    tails = []
    for each in range(3):
        hits = int(np.sum(codes == each))
        tails += [binom.cdf(hits, len(codes), 1 / 3), binom.sf(hits - 1, len(codes), 1 / 3)]
    return min(1.0, 6 * min(tails))


def test_a_declined_query_is_left_out_by_default():
    rows, codes = mostly_declined(100).labels()
    assert rows.tolist() == codes.tolist() == [0, 1, 2]


def test_a_declined_query_gets_a_uniformly_random_class_where_that_is_asked_for():
    rows, codes = mostly_declined(3_003, declined="random").labels()
    assert rows.tolist() == list(range(3_003))
    assert codes[:3].tolist() == [0, 1, 2]
    assert p_value_of_uniform(codes[3:]) > FALSE_ALARM


def test_that_test_catches_a_class_that_is_drawn_a_little_more_often():
    drawn = np.random.default_rng(0).choice(3, size=3_000, p=[0.40, 0.30, 0.30])
    assert p_value_of_uniform(drawn) < FALSE_ALARM


def test_a_random_class_is_given_to_what_was_declined_and_to_nothing_else():
    """A_priv of BTT18 reads ⊥ as a coin; of a query that was lost or never asked, no ⊥ was released."""
    data, _ = task(m=50, lost=(4, 9), declined=(7,), never_asked=(48, 49))
    assert data.labels()[0].tolist() == np.delete(np.arange(50), [4, 7, 9, 48, 49]).tolist()
    rows, codes = with_(data, declined="random").labels()
    assert rows.tolist() == np.delete(np.arange(50), [4, 9, 48, 49]).tolist()
    others = [with_(data, declined="random", seed=seed).labels()[1] for seed in range(40)]
    assert np.flatnonzero(np.ptp([codes, *others], axis=0)).tolist() == [rows.tolist().index(7)]


def test_random_classes_are_those_of_the_seed_and_no_others():
    draws = [mostly_declined(50, declined="random", seed=seed).labels()[1].tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("way", [LabelStudent, SelfTraining, SpreadLabels])
def test_every_student_of_labels_does_as_the_lesson_says(way):
    taught = way(Memorises(max_depth=3)).fit(mostly_declined(60, declined="random"))
    weights = taught.seen_[2]
    counted = np.unique(taught.seen_[1], return_counts=True)[1] if weights is None else weights
    assert np.sum(counted) == pytest.approx(60, abs=0.5)
    if way is LabelStudent:
        assert len(way(Memorises(max_depth=3)).fit(mostly_declined(60)).seen_[1]) == 3


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"declined": "keep"}, 'declined must be one of "drop", "random"'),
        ({"declined": None}, "declined must be one of"),
        ({"n_teachers": 0}, "n_teachers must be a whole number >= 1"),
        ({"n_teachers": True}, "n_teachers must be"),
        ({"seed": -1}, "seed must be"),
        ({"seed": None}, "seed must be"),
        ({"classes": ["one"]}, "classes must be at least two"),
        ({"queries": np.arange(3)}, "one row of the pool for each released answer"),
        ({"queries": np.arange(50) + 1}, "queries must be rows of the pool, 0 to 49"),
        ({"queries": np.arange(50) - 1}, "queries must be rows of the pool"),
        ({"points": np.zeros((3, 2))}, "points must be the rows of the pool"),
    ],
    ids=str,
)
def test_a_lesson_whose_parts_do_not_fit_is_refused_in_one_line(changes, said):
    data, _ = task(m=50)
    with pytest.raises(InvalidParameter, match=said) as told:
        with_(data, **changes)
    assert "\n" not in str(told.value)
