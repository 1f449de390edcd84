"""What is published: of FiniteClass nothing that a classifier does on private rows; of every concept its fields."""

import json
import warnings
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from tests.learners.concepts.tiny_worlds import WORLDS, Lookup

from quorate.errors import InvalidParameter
from quorate.learners import ExponentialLearner
from quorate.learners import concepts as room
from quorate.learners.concepts import FiniteClass, Member
from quorate.release.model_digest import described

HARD = 777.0


class Failing:
    """Labels numbers above 0, but on a hard one does what it is told; on the whole table, as classifiers do."""

    def __init__(self, does):
        self.does = does

    def predict(self, X):
        found = X[:, 0] == HARD
        labels = (X[:, 0] > 0).astype(float)
        return self.does(X, labels, found) if found.any() else labels


def raises(X, labels, found):
    raise ValueError(f"cannot take {X[found][0].tolist()}")


def warns(X, labels, found):
    warnings.warn(f"cannot take {X[found][0].tolist()}", stacklevel=1)
    return np.where(found, 0, labels)


WAYS = {
    "raises": raises,
    "warns": warns,
    "NaN": lambda X, labels, found: np.where(found, np.nan, labels),
    "another label": lambda X, labels, found: np.where(found, 0.5, labels),
    "text": lambda X, labels, found: np.where(found, "yes", labels.astype(int).astype(str)),
    "too few": lambda X, labels, found: labels[~found],
    "a column": lambda X, labels, found: labels[:, np.newaxis],
    "nothing": lambda X, labels, found: None,
}

ways = pytest.mark.parametrize("does", WAYS.values(), ids=WAYS)


@ways
@given(values=st.lists(st.sampled_from([-1.0, 0.0, 2.0, HARD]), max_size=9))
def test_a_row_that_a_classifier_cannot_take_is_labelled_0_and_no_other_row_with_it(does, values):
    labels = Member(0, Failing(does)).labels(np.array(values).reshape(-1, 1))
    assert labels.dtype == np.uint8
    assert labels.tolist() == [int(0 < value < HARD) for value in values]


@ways
@given(
    values=st.lists(st.sampled_from([-1.0, 2.0, HARD]), min_size=2, max_size=8),
    label=st.integers(0, 1),
    other=st.sampled_from([-1.0, 2.0, HARD]),
)
def test_a_replaced_record_moves_mistakes_by_one_at_most_whatever_the_classifier_does(does, values, label, other):
    concepts = FiniteClass([Failing(does), Lookup([0] * 1000)], 1)
    on = concepts.dichotomies(np.array([[2.0]]))
    labels = np.arange(len(values)) % 2
    found = []
    for first, its in ((values[0], labels[0]), (other, label)):
        points = np.array([first, *values[1:]]).reshape(-1, 1)
        found.append(on.mistakes(points, np.array([its, *labels[1:]])))
    assert np.abs(found[0] - found[1]).max() <= 1


@ways
@pytest.mark.several_fits
def test_a_fit_tells_nothing_of_a_row_that_a_classifier_cannot_take(does):
    concepts = FiniteClass([Failing(does), Failing(does)], n_features=1)
    for value in (0.0, HARD):
        points = np.zeros((50, 1))
        points[::2], points[0] = 2.0, value
        learner = ExponentialLearner(concepts=concepts, epsilon=1.0).fit(points, np.zeros(50, dtype=int))
        assert learner.guarantee_.epsilon == 1.0


def test_a_machine_without_memory_is_no_label():
    def exhausted(X, labels, found):
        raise MemoryError

    with pytest.raises(MemoryError):
        Member(0, Failing(exhausted)).labels(np.array([[HARD]]))


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        LogisticRegression().fit([[0.0], [1.0]], [-1, 1]),
        LogisticRegression().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1]),
        Lookup(["no"]),
        Lookup([0.5]),
    ],
    ids=["unfitted", "other labels", "other columns", "text", "no label"],
)
def test_a_classifier_that_cannot_take_a_public_row_is_refused_at_once(classifier):
    with pytest.raises(InvalidParameter, match=r"number 1, a .*, must predict 0 or 1 .* row of zeros"):
        FiniteClass([Lookup([1]), classifier], n_features=1)


def written(value):
    if isinstance(
        value, tuple(getattr(room, name) for name in ("Threshold", "Interval", "Rectangle", "PointFunction"))
    ):
        return [type(value).__name__, {part.name: getattr(value, part.name) for part in fields(value)}]
    return value


def read(value):
    if isinstance(value, list) and value and isinstance(value[0], str):
        return rebuilt(*value)
    return tuple(value) if isinstance(value, list) else value


def rebuilt(name, values):
    return getattr(room, name)(**{field: read(value) for field, value in values.items()})


@pytest.mark.parametrize(
    "world", [world for world in WORLDS if not isinstance(world.concept_class, FiniteClass)], ids=str
)
def test_a_concept_is_what_its_fields_say_in_json(world):
    for concept in world.concept_class.dichotomies(world.points):
        values = {part.name: written(getattr(concept, part.name)) for part in fields(concept)}
        assert rebuilt(type(concept).__name__, json.loads(json.dumps(values))) == concept
        assert eval(repr(concept), vars(room)) == concept  # noqa: S307  our own repr


def test_a_classifier_of_a_list_is_told_by_its_place():
    assert Member(3, Lookup([0, 1])) == Member(3, Lookup([1, 0])) != Member(2, Lookup([0, 1]))


def test_two_lists_of_classifiers_are_told_apart_by_what_they_hold():
    one, other = (FiniteClass([Lookup(labels)], 1) for labels in ([0, 1], [1, 0]))
    assert described(one) != described(other)
    assert repr(one) == repr(other) == "FiniteClass(1 classifiers, n_features=1)"
    assert one.erm(np.zeros((1, 1)), np.zeros(1)).index == 0
