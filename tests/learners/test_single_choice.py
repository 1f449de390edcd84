"""A choice among candidates whose number the private rows decide: no table is refused, and one is no draw."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from quorate.errors import InvalidParameter
from quorate.learners import (
    AgnosticLearner,
    AgnosticPrediction,
    EmpiricalLearner,
    ExponentialLearner,
    LabelBoost,
    SubsampledAgnostic,
)
from quorate.learners.base.exponential import chosen
from quorate.learners.concepts import FiniteClass
from quorate.mechanisms import Exponential, PermuteAndFlip
from quorate.noise import SeededNoise


class At:
    """1 at one number, 0 elsewhere: two of them are one dichotomy wherever neither number occurs."""

    def __init__(self, value):
        self.value = value

    def predict(self, X):
        return (X[:, 0] == self.value).astype(int)


WORLD = FiniteClass([At(1), At(2)], n_features=1)


def learners(concepts=WORLD):
    base = ExponentialLearner(concepts=concepts, epsilon=1.0)
    return {
        "Exponential": base,
        "Subsampled": SubsampledAgnostic(concepts=concepts, base=base, epsilon=5.0),
        "Agnostic": AgnosticLearner(concepts=concepts, base=base, epsilon=5.0),
        "Empirical": EmpiricalLearner(concepts=concepts, base=base, epsilon=5.0),
        "LabelBoost": LabelBoost(concepts=concepts, base=base, epsilon=5.0, base_rows=3),
    }


@pytest.mark.parametrize("name", learners())
def test_every_table_of_a_finite_world_gives_a_concept(name):
    learner = learners()[name]
    plan = learner._plan(3, 1, *learner._target())
    for i, (values, labels) in enumerate(product(product((0.0, 1.0, 2.0), repeat=4), product((0, 1), repeat=3))):
        if i % 3 and name != "Agnostic":  # every table once, and one in three with each of the others
            continue
        points, y = np.array(values).reshape(-1, 1), np.array([*labels, -1], dtype=np.int8)
        assert learner._learn(points, y, SeededNoise(i), plan).index in (0, 1)


@pytest.mark.parametrize("concepts", [WORLD, FiniteClass([At(777)], n_features=1)], ids=["two", "one"])
@pytest.mark.parametrize("name", learners())
@pytest.mark.several_fits
def test_a_class_that_the_rows_collapse_is_fitted_like_any_other(name, concepts):
    y = np.zeros(200, dtype=int)
    y[100:] = -1
    for value in (0.0, 1.0, 777.0):  # one row that tells two concepts apart, or none
        points = np.zeros((200, 1))
        points[0] = value
        assert learners(concepts)[name].fit(points, y).concept_.index in (0, 1)


def test_predictions_of_a_class_of_one_are_answered():
    alone = AgnosticPrediction(concepts=FiniteClass([At(777)], n_features=1), epsilon=4.0, n_queries=1)
    assert alone.fit(np.zeros((100, 1)), np.zeros(100, dtype=int)).ask([[0.0]]).tolist() in ([0], [1])


class NoWords(SeededNoise):
    def words(self, n):
        pytest.fail("drawn")


@pytest.mark.parametrize("mechanism", [Exponential(1.0), PermuteAndFlip(1.0)])
def test_a_single_candidate_is_taken_without_a_draw_and_two_are_drawn_from(mechanism):
    assert chosen(mechanism, np.array([-5]), NoWords(0)) == 0
    assert {chosen(mechanism, np.array([0, 0]), SeededNoise(seed)) for seed in range(40)} == {0, 1}
    with pytest.raises(InvalidParameter):  # what a learner that asks it directly would tell of its private rows
        mechanism.release(np.array([-5]), SeededNoise(0))
