"""Any classifier as a teacher: labels, seeds, failures."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate.ensemble import AbstainingVoter, ClassifierTeacher, ClassifierVoter, ConstantVoter
from quorate.errors import InvalidParameter

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(np.int64)


class Fixed(ClassifierMixin, BaseEstimator):
    def __init__(self, answer=None, contiguous=False):
        self.answer = answer
        self.contiguous = contiguous

    def fit(self, X, y):
        if self.contiguous and sorted(set(y)) != list(range(len(set(y)))):
            raise ValueError("labels must be 0..k-1")
        self.y_ = y
        return self

    def predict(self, X):
        if isinstance(self.answer, Exception):
            raise self.answer
        return np.zeros(len(X), dtype=int) if self.answer is None else self.answer


@pytest.mark.heavy
@given(labels=st.lists(st.integers(0, 9), min_size=2, max_size=8).filter(lambda y: len(set(y)) > 1))
def test_labels_are_contiguous_inside_and_the_classes_own_outside(labels):
    teacher = ClassifierTeacher(make_pipeline(Fixed(contiguous=True)))
    voter = teacher.train(np.zeros((len(labels), 1)), np.array(labels), 1)

    assert voter.vote(np.zeros((2, 1))).tolist() == [min(labels)] * 2


def test_a_tree_that_remembers_its_shard_votes_its_labels_back():
    y = np.array([9, 2, 2, 4, 9])
    points = np.arange(5.0).reshape(-1, 1)

    assert ClassifierTeacher(DecisionTreeClassifier()).train(points, y, 1).vote(points).tolist() == y.tolist()


def test_one_class_votes_for_it_and_no_rows_abstain():
    teacher = ClassifierTeacher(LogisticRegression())

    assert teacher.train(X[:4], np.full(4, 7), 1).vote(X[:3]).tolist() == [7, 7, 7]
    assert teacher.train(X[:0], Y[:0], 1).vote(X[:3]).tolist() == [-1, -1, -1]


def test_parameters_are_looked_at_once_for_all_teachers_and_a_wrong_one_abstains(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    plain = DecisionTreeClassifier(random_state=ClassifierTeacher(DecisionTreeClassifier()).fresh(5).random_state)
    expected = plain.fit(X, y).tree_.threshold.tolist()
    looked = []
    right = DecisionTreeClassifier._validate_params
    monkeypatch.setattr(DecisionTreeClassifier, "_validate_params", lambda own: (looked.append(own), right(own)))
    teacher = ClassifierTeacher(DecisionTreeClassifier())
    voters = [teacher.train(X, y, seed) for seed in (5, 6)]
    assert len(looked) == 1
    assert voters[0].estimator.tree_.threshold.tolist() == expected
    assert isinstance(ClassifierTeacher(DecisionTreeClassifier(max_depth=-1)).train(X, y, 5), AbstainingVoter)
    assert isinstance(ClassifierTeacher(DecisionTreeClassifier(splitter="any")).train(X, y, 5), AbstainingVoter)


def test_an_exception_in_fit_abstains():
    y = Y.copy()
    bad = X.copy()
    bad[0, 0] = np.nan

    assert ClassifierTeacher(LogisticRegression()).train(bad, y, 1).vote(X[:3]).tolist() == [-1, -1, -1]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("answer", "votes"),
    [
        ([0, 1, 0], [3, 5, 3]),
        (np.array([[1], [0], [1]]), [5, 3, 5]),
        (np.array([0.0, 1.0, np.nan]), [3, 5, -1]),
        (np.array([0, 2, -1]), [3, -1, -1]),
        (np.array([0.5, 1.0, np.inf]), [-1, 5, -1]),
        (["0", "1", "x"], [-1, -1, -1]),
        ([0, 1], [-1, 3, 5]),  # asked again about each half: two rows, two answers
        (np.zeros((3, 3)), [-1, -1, -1]),
        (object(), [-1, -1, -1]),
        (RuntimeError("row 17"), [-1, -1, -1]),
    ],
)
def test_a_prediction_that_is_no_known_label_abstains(answer, votes):
    voter = ClassifierTeacher(Fixed(answer)).train(np.zeros((3, 1)), np.array([3, 5, 3]), 1)
    assert voter.vote(np.zeros((3, 1))).tolist() == votes


def test_every_nested_random_state_comes_from_the_seed():
    forest = make_pipeline(StandardScaler(), BaggingClassifier(DecisionTreeClassifier(max_features=1), 3))
    teacher = ClassifierTeacher(forest)
    one, again, other = (teacher.train(X, Y, seed).estimator for seed in (1, 1, 2))
    names = ["baggingclassifier__random_state", "baggingclassifier__estimator__random_state"]

    states = [[model.get_params()[name] for name in names] for model in (one, again, other)]
    assert states[0] == states[1]
    assert len({*states[0], *states[2]}) == 4
    assert all(0 <= state < 2**31 for row in states for state in row)
    assert (one.predict_proba(X) == again.predict_proba(X)).all()
    assert not (one.predict_proba(X) == other.predict_proba(X)).all()


def test_a_generator_handed_in_is_not_shared():
    """A RandomState as parameter would give teacher i what teachers 0..i-1 left of it."""
    teacher = ClassifierTeacher(SGDClassifier(random_state=np.random.RandomState(0)))
    first, second = (teacher.train(X, Y, 5).estimator for _ in range(2))

    assert (first.coef_ == second.coef_).all()


def test_the_teacher_itself_stays_unfitted_and_unshared():
    lookup = {"seen": []}
    estimator = make_pipeline(FunctionTransformer(kw_args=lookup), RandomForestClassifier(2, warm_start=True))
    estimator.set_params(functiontransformer__kw_args=None)
    estimator.steps.insert(0, ("extra", FunctionTransformer(inv_kw_args=lookup)))
    teacher = ClassifierTeacher(estimator)
    voters = [teacher.train(X, Y, seed) for seed in range(2)]

    assert not hasattr(estimator[-1], "estimators_")
    held = [voter.estimator[0].inv_kw_args["seen"] for voter in voters]
    assert held[0] is not held[1]
    assert held[0] is not lookup["seen"]


@pytest.mark.parametrize("freeze", [False, True])
def test_public_preprocessing_is_kept_as_it_was_fitted(freeze):
    scaler = StandardScaler().fit([[100.0, 0, 0], [300.0, 1, 1]])
    pipeline = make_pipeline(FrozenEstimator(scaler) if freeze else scaler, LogisticRegression())
    voters = [ClassifierTeacher(pipeline, preprocessing="public").train(X, Y, seed) for seed in range(2)]

    kept = [voter.estimator[0].estimator for voter in voters]
    assert all((step.mean_ == scaler.mean_).all() for step in kept)
    assert kept[0] is not kept[1]
    assert kept[0] is not scaler
    assert isinstance(pipeline[0], FrozenEstimator if freeze else StandardScaler)
    assert (voters[0].vote(X) == voters[1].vote(X)).all()
    assert set(voters[0].vote(X)) <= {0, 1}


def test_frames_reach_the_pipeline_as_frames():
    frame = pl.DataFrame({"age": [1.0, 2.0, 3.0, 4.0]})
    only_age = FunctionTransformer(lambda table: table.select("age").to_numpy())
    voter = ClassifierTeacher(make_pipeline(only_age, DecisionTreeClassifier())).train(frame, np.array([0, 0, 1, 1]), 1)

    assert voter.vote(frame).tolist() == [0, 0, 1, 1]


def test_only_a_teacher_without_code_of_its_own_may_share_a_process():
    assert ClassifierTeacher(make_pipeline(StandardScaler(), LogisticRegression())).keeps_no_global_state
    assert not ClassifierTeacher(Fixed()).keeps_no_global_state
    assert not ClassifierTeacher(make_pipeline(FunctionTransformer(lambda t: t), Fixed())).keeps_no_global_state
    assert ClassifierVoter(LogisticRegression(), np.array([0, 1])).keeps_no_global_state


def test_the_repr_of_a_voter_tells_nothing_it_learned():
    voter = ClassifierTeacher(LogisticRegression()).train(X, Y + 41, 1)

    assert repr(voter) == "ClassifierVoter()"
    assert repr(ConstantVoter(41)) == "ConstantVoter()"


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(n_jobs=-1),
        RandomForestClassifier(n_estimators=2, n_jobs=4),
        make_pipeline(StandardScaler(), KNeighborsClassifier(n_jobs=-1)),
        make_pipeline(FunctionTransformer(np.negative), RandomForestClassifier(n_jobs=2)),
    ],
    ids=["copied as it is", "forest", "step", "beside a function"],
)
def test_a_teacher_keeps_to_one_thread_whatever_its_model_was_told(model):
    """A child that forks threads of its own would wait for them with its fellows, or for ever."""
    fresh = ClassifierTeacher(model).fresh(3)
    told = {name: value for name, value in fresh.get_params().items() if name.rpartition("__")[2] == "n_jobs"}

    assert set(told.values()) <= {None, 1}
    assert model.get_params() != fresh.get_params()  # its owner's stays


class ChangesItsArguments(Fixed):
    def __init__(self, answer=None, contiguous=False):
        super().__init__([answer], contiguous)


def test_an_estimator_that_cannot_be_copied_is_refused_before_any_row_is_there():
    with pytest.raises(InvalidParameter, match=r"\(ChangesItsArguments\) cannot be copied: RuntimeError"):
        ClassifierTeacher(ChangesItsArguments(3))


class Duck:
    """Looks like a classifier, and knows nothing of scikit-learn."""

    __slots__ = ("label",)

    def fit(self, X, y):
        self.label = y[0]

    def predict(self, X):
        return [self.label] * len(X)


@pytest.mark.parametrize("preprocessing", ["inside", "public"])
def test_a_look_alike_is_taken(preprocessing):
    voter = ClassifierTeacher(Duck(), preprocessing=preprocessing).train(X, Y + 2, 1)

    assert voter.vote(X[:2]).tolist() == [Y[0] + 2] * 2
