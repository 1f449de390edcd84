"""What every way to learn owes: declared classes, any table, no peeking, and a student that a stranger can open."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from tests.students.made_up_student_data import K, cast, labels, release, right, student_data_of, task, values

from quorate import PrivateClassifier, PublicPool
from quorate.deferred import skops
from quorate.errors import InvalidParameter
from quorate.labelling import Released
from quorate.mechanisms import GaussianNoisyMax, LaplaceNoisyMax, NoisyCounts, StableSparseVector
from quorate.students import (
    AutoStudent,
    LabelStudent,
    NoiseAwareStudent,
    SelfTraining,
    SpreadLabels,
    Student,
    StudentData,
    VoteShareStudent,
    VotingClass,
    as_student,
    class_probabilities,
)
from quorate.students.student import SharedCoordinates
from quorate.types import Secret

CASES = {
    "labels": (LabelStudent(), labels),
    "labels of values": (LabelStudent(GaussianNB()), values),
    "answers, labels": (AutoStudent(), labels),
    "answers, values": (AutoStudent(), values),
    "noisy labels": (NoiseAwareStudent(), labels),
    "noisy labels, taught": (NoiseAwareStudent(GaussianNB()), labels),
    "noisy labels of values": (NoiseAwareStudent(), values),
    "linear": (VoteShareStudent(), values),
    "linear, taught": (VoteShareStudent(LogisticRegression()), values),
    "kernel": (VoteShareStudent(shares="kernel"), values),
    "kernel, taught": (VoteShareStudent(GaussianNB(), shares="kernel"), values),
    "noisy labels, kernel": (NoiseAwareStudent(shares="kernel"), labels),
    "process": (VoteShareStudent(shares="gaussian-process"), values),
    "process, taught": (VoteShareStudent(GaussianNB(), shares="gaussian-process"), values),
    "auto": (VoteShareStudent(shares="auto"), values),
    "without weights": (VoteShareStudent(KNeighborsClassifier(1)), values),
    "self-training": (SelfTraining(), labels),
    "spreading": (SpreadLabels(), labels),
    "propagation": (SpreadLabels(GaussianNB(), method="propagation"), labels),
    "voting, labels": (VotingClass(n_estimators=5), labels),
    "voting, values": (VotingClass(GaussianNB(), n_estimators=5), values),
}  # fmt: skip
every_student = pytest.mark.parametrize(("student", "mechanism"), CASES.values(), ids=CASES)


def taught(student, released, X, classes, **changes):
    data = student_data_of(X, released, queries=np.arange(len(released.declined)), classes=classes, **changes)
    return student.fit(data)


@pytest.mark.default_cases(3)
@every_student
@pytest.mark.parametrize("classes", [("b", "a", "c"), (2, 0, 1)])
@pytest.mark.parametrize("seen", [(0, 1, 2), (2, 0), (1, 2), (2,), ()], ids=str)
def test_probabilities_stand_in_the_declared_order_for_every_class_seen_or_not(student, mechanism, classes, seen):
    X = np.random.default_rng(0).normal(size=(40, 2))
    votes = np.zeros((40, 3), dtype=np.int64)
    if seen:
        votes[np.arange(40), np.array(seen)[np.arange(40) % len(seen)]] = K
        X[:, 0] += 8 * votes.argmax(axis=1)
    released = release(votes, mechanism(3, sigma=3.0), lost=() if seen else range(40))
    fitted = taught(student, released, X, classes)
    probabilities = class_probabilities(fitted, X, classes)
    assert probabilities.shape == (40, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    predicted = fitted.predict(X)
    assert set(predicted.tolist()) <= set(classes)
    assert predicted.tolist() == [classes[code] for code in probabilities.argmax(axis=1)]
    if seen:
        assert np.mean(predicted == np.array(classes)[votes.argmax(axis=1)]) > 0.6
    else:
        assert predicted.tolist() == [classes[0]] * 40


@pytest.mark.default_cases(2)
@every_student
@pytest.mark.parametrize("classes", [("no", "yes"), (1, 0), (False, True), (-1, 1)], ids=str)
def test_two_classes_are_words_numbers_or_truth_values(student, mechanism, classes):
    data, truth = task(m=120, mechanism=mechanism(sigma=10.0), asked=range(80))
    data = replace(data, classes=classes)
    assert right(student, data, truth) > 0.8


@pytest.mark.default_cases(4)
@every_student
def test_without_any_answer_there_is_the_constant_first_class(student, mechanism):
    data, _ = task(m=20, mechanism=mechanism(), lost=range(20))
    data = replace(data, classes=("no", "yes"))
    assert student.fit(data).predict(data.pool).tolist() == ["no"] * 20
    if isinstance(student, VoteShareStudent | NoiseAwareStudent):  # who know that random classes say nothing
        drawn = student.fit(replace(data, declined="random"))
        assert drawn.predict(data.pool).tolist() == ["no"] * 20


NAMES = [f"c{column}" for column in range(12)]
CONTAINERS = {
    "dense": np.asarray,
    "sparse": csr_array,
    "pandas": lambda rows: pd.DataFrame(rows, columns=NAMES),
    "polars": lambda rows: pl.DataFrame(rows, schema=NAMES),
}


@pytest.mark.default_cases(2)
@every_student
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_a_student_learns_from_any_table_and_predicts_rows_like_it(student, mechanism, container):
    rows = (np.random.default_rng(3).random((150, 12)) < 0.4).astype(float)
    votes, truth = cast(rows, 3, steep=8.0)
    released = release(votes, mechanism(sigma=10.0))
    if isinstance(student.estimator, GaussianNB):
        student = replace(student, estimator=BernoulliNB())
    pool = container(rows)
    points = pool if container is csr_array else rows
    fitted = taught(student, released, rows, ["no", "yes"], pool=pool, points=points)
    assert np.mean(fitted.predict(pool) == np.array(["no", "yes"])[truth]) > 0.75


@pytest.mark.default_cases(2)
@every_student
def test_the_same_lesson_teaches_the_same(student, mechanism):
    data, _ = task(m=80, mechanism=mechanism(), asked=range(50))
    first, second = (class_probabilities(student.fit(data), data.pool, data.classes) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.default_cases(4)
@every_student
def test_the_classifier_that_was_given_stays_as_it_is(student, mechanism):
    if student.estimator is None:
        return
    given, before = clone(student.estimator), student.estimator.get_params()
    student.fit(task(m=60, mechanism=mechanism())[0])
    assert student.estimator.get_params() == before
    assert vars(student.estimator) == vars(given)


@pytest.mark.default_cases(3)
@every_student
def test_one_public_point_is_enough(student, mechanism):
    released = release(np.array([[0, K]]), mechanism(sigma=1.0))
    X = np.array([[1.0, 2.0]])
    if isinstance(student.estimator, GaussianNB):  # which divides by the variance of one point
        student = replace(student, estimator=LogisticRegression())
    assert taught(student, released, X, ["no", "yes"]).predict(X).tolist() == ["yes"]


@pytest.mark.heavy
@every_student
def test_the_students_file_opens_for_a_stranger_with_nothing_to_trust(student, mechanism):
    if isinstance(student.estimator, KNeighborsClassifier):
        return  # skops wants a word about its tree, whoever fitted it
    data, _ = task(m=60, mechanism=mechanism(sigma=10.0))
    fitted = student.fit(data)
    written = skops.io.dumps(fitted)
    assert skops.io.get_untrusted_types(data=written) == []
    there = skops.io.loads(written)
    np.testing.assert_array_equal(there.predict(data.pool), fitted.predict(data.pool))
    np.testing.assert_allclose(there.predict_proba(data.pool), fitted.predict_proba(data.pool))


def test_a_lesson_holds_public_rows_released_answers_and_public_facts_alone():
    assert {each.name for each in fields(StudentData)} == {
        "pool", "points", "queries", "released", "classes", "n_teachers", "seed", "declined", "one_unit", "prior",
        "shared",
    }  # fmt: skip
    assert {each.name for each in fields(SharedCoordinates)} == {"_known"}  # coordinates by a hash of the pool
    assert {each.name for each in fields(Released)} == {
        "answers", "declined", "interrupted", "mechanism", "never_asked"
    }  # fmt: skip


def held(value: Any, seen: list[Any]) -> list[Any]:
    """Everything that can be reached from a value by its fields and items."""
    if any(value is each for each in seen):
        return seen
    seen.append(value)
    names = [*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", ())]
    inner = [getattr(value, name) for name in names if hasattr(value, name)]
    for each in [*inner, *(value if isinstance(value, list | tuple) else ())]:
        held(each, seen)
    return seen


class Overhears:
    def __init__(self) -> None:
        self.lessons: list[StudentData] = []

    @property
    def learner(self):
        return LogisticRegression()

    def check(self, mechanism):
        pass

    def fit(self, data):
        self.lessons.append(data)
        return AutoStudent().fit(data)


@pytest.mark.heavy
def test_in_a_whole_run_a_student_meets_no_vote_no_private_row_and_no_secret(monkeypatch):
    from quorate.voting import flow

    counted = []
    votes = flow.votes

    def overheard(*given, **how):
        ensemble, counts = votes(*given, **how)
        counted.append(counts.reveal().copy())
        return ensemble, counts

    monkeypatch.setattr(flow, "votes", overheard)
    rng = np.random.default_rng(0)
    X, pool = rng.normal(size=(300, 3)), rng.normal(size=(30, 3))
    student = Overhears()
    clf = PrivateClassifier(
        GaussianNB(), student, classes=[0, 1, 2], epsilon=2.0, delta=1e-5, n_teachers=10, queries=20, n_jobs=1,
        allow_hopeless=True,
        mechanism=NoisyCounts(sigma=40.0),
    )  # fmt: skip
    clf.fit(X, (X[:, 0] > 0).astype(int), public=PublicPool(pool))
    data, (true,) = student.lessons[-1], counted  # the first is the trial on public rows
    assert data.released is clf.released_
    assert data.queries is clf.queries_
    assert met(data, true, X) == []
    peeking = replace(data, released=replace(data.released, answers=true), pool=X, points=X, classes=[Secret(3), 4])
    assert met(peeking, true, X) == ["votes", "private rows", "a secret"]


def met(data, true, private):
    """What a student could find in its data and must not."""
    reached = held(data, [])
    arrays = [each for each in reached if isinstance(each, np.ndarray)]
    findings = {
        "votes": any(each.shape == true.shape and np.array_equal(each, true) for each in arrays),
        "private rows": any(np.isin(each, private).any() for each in arrays if each.dtype == np.float64),
        "a secret": any(isinstance(each, Secret) for each in reached),
    }
    return [name for name, found in findings.items() if found]


@pytest.mark.default_cases(2)
@every_student
def test_votes_that_were_not_released_change_nothing(student, mechanism):
    X = np.random.default_rng(0).normal(size=(60, 3))
    votes, _ = cast(X, 0)
    released = release(votes, mechanism(sigma=10.0), lost=range(10, 20))
    before = class_probabilities(taught(student, released, X, ["no", "yes"]), X, ["no", "yes"])
    votes[:] = votes[:, ::-1]  # the ensemble changes its mind after the release
    released.answers[10:20] = 1  # and rows that were never answered hold anything at all
    after = class_probabilities(taught(student, released, X, ["no", "yes"]), X, ["no", "yes"])
    np.testing.assert_array_equal(before, after)


@pytest.mark.default_cases(2)
@every_student
def test_that_test_catches_a_student_that_reads_rows_without_an_answer(student, mechanism):
    X = np.random.default_rng(0).normal(size=(60, 3))
    released = release(cast(X, 0)[0], mechanism(sigma=10.0), lost=range(10, 30))

    def reads_all():
        no = np.zeros(60, dtype=bool)
        everything = Released(released.answers, no, no, released.mechanism)
        return class_probabilities(taught(student, everything, X, ["no", "yes"]), X, ["no", "yes"])

    before = reads_all()
    released.answers[10:30] = 1 if mechanism is labels else 400
    assert not np.allclose(before, reads_all())


def test_a_bare_classifier_learns_from_whatever_was_released():
    for mechanism, expected in ((values(), VoteShareStudent), (labels(), LabelStudent)):
        data, _ = task(m=60, mechanism=mechanism)
        bare = as_student(LogisticRegression()).fit(data)
        np.testing.assert_array_equal(bare.coef_, expected(LogisticRegression()).fit(data).coef_)


def test_every_way_is_a_student_and_a_classifier_is_none():
    assert all(isinstance(student, Student) for student, _ in CASES.values())
    assert isinstance(Overhears(), Student)
    assert not isinstance(LogisticRegression(), Student)


@pytest.mark.parametrize(
    "way", [AutoStudent, LabelStudent, NoiseAwareStudent, VoteShareStudent, SelfTraining, SpreadLabels]
)
def test_a_way_teaches_a_classifier_and_not_a_class_or_another_way(way):
    with pytest.raises(InvalidParameter, match=r"estimator must be an instance, got the class GaussianNB; add \(\)"):
        way(GaussianNB)
    with pytest.raises(
        InvalidParameter, match=f"{way.__name__} teaches a scikit-learn classifier, got the student LabelStudent"
    ):
        way(LabelStudent())


STREAM = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=10)


@pytest.mark.parametrize(
    ("student", "mechanism", "said"),
    [
        (VoteShareStudent(), GaussianNoisyMax(5.0), "learns from noisy votes, and GaussianNoisyMax releases"),
        (VoteShareStudent(), LaplaceNoisyMax(5.0), "learns from noisy votes, and LaplaceNoisyMax releases"),
        (VoteShareStudent(), STREAM, "learns from noisy votes, and StableSparseVector releases"),
        (NoiseAwareStudent(), STREAM, "NoiseAwareStudent has to know how often noise changes a label"),
    ],
)
def test_a_mechanism_that_cannot_teach_a_student_is_refused_before_anything_is_learned(student, mechanism, said):
    data, _ = task(m=20, mechanism=labels())
    data = replace(data, released=replace(data.released, mechanism=mechanism))
    for refuse in (lambda: student.check(mechanism), lambda: student.fit(data)):
        with pytest.raises(InvalidParameter, match=said):
            refuse()


@pytest.mark.parametrize("shares", ["auto", "gaussian-process", "kernl", None, True])
def test_models_of_the_shares_are_known_by_name(shares):
    with pytest.raises(InvalidParameter, match='shares must be one of "linear", "kernel"'):
        NoiseAwareStudent(shares=shares)
    if shares not in ("auto", "gaussian-process"):
        with pytest.raises(InvalidParameter, match="shares must be one of"):
            VoteShareStudent(shares=shares)
