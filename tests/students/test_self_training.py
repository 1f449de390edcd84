"""Self-training, against scikit-learn's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from tests.students.made_up_student_data import labels, right, task

from quorate.errors import InvalidParameter
from quorate.students import LabelStudent, SelfTraining


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("threshold", [0.6, 0.75, 0.95])
@pytest.mark.parametrize("max_iter", [1, 3, 10])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_that_of_scikit_learn(threshold, max_iter, n_classes):
    data, _ = task(m=150, n_classes=n_classes, mechanism=labels(n_classes, 10.0), asked=range(25), lost=(3,))
    codes = np.full(150, -1)
    codes[:25] = data.released.codes
    theirs = SelfTrainingClassifier(LogisticRegression(), threshold=threshold, max_iter=max_iter)
    theirs.fit(data.pool, codes)
    ours = SelfTraining(LogisticRegression(), threshold=threshold, max_iter=max_iter).fit(data)
    np.testing.assert_allclose(ours.coef_, theirs.estimator_.coef_, atol=1e-6)
    assert (theirs.labeled_iter_ > 0).any(), "there was something to train oneself on"


def test_without_further_points_it_is_the_plain_student():
    data, _ = task(mechanism=labels())
    np.testing.assert_array_equal(SelfTraining().fit(data).coef_, LabelStudent().fit(data).coef_)


def test_a_prediction_that_is_not_sure_enough_is_not_taken_over():
    data, _ = task(m=150, mechanism=labels(), asked=range(30))
    plain = LabelStudent().fit(data)
    surest = plain.predict_proba(data.pool[30:]).max()
    unsure = SelfTraining(threshold=float(surest)).fit(data)
    np.testing.assert_array_equal(unsure.coef_, plain.coef_)
    taken = SelfTraining(threshold=float(np.nextafter(surest, 0)), max_iter=1).fit(data)
    assert not np.array_equal(taken.coef_, plain.coef_)


@pytest.mark.heavy
def test_a_pipeline_that_reads_a_frame_by_its_names_trains_itself_as_one_on_numbers():
    data, _ = task(m=200, width=2, mechanism=labels(sigma=5.0), asked=range(20))
    frame = pd.DataFrame(data.pool, columns=["a", "b"])
    reader = ColumnTransformer([("numbers", "passthrough", ["a", "b"])])
    by_names = SelfTraining(make_pipeline(reader, LogisticRegression())).fit(replace(data, pool=frame))
    np.testing.assert_allclose(by_names[-1].coef_, SelfTraining(LogisticRegression()).fit(data).coef_)


@pytest.mark.heavy
def test_it_makes_more_of_few_labels():
    """Twelve tasks of two clouds with seeds of their own, so this cannot fail by chance."""
    gains = []
    for seed in range(12):
        data, truth = clouds(seed)
        way = GaussianNB()
        gains.append(right(SelfTraining(way, threshold=0.9), data, truth) - right(LabelStudent(way), data, truth))
    assert np.mean(gains) > 0.02


def clouds(seed, *, m=300, asked=8):
    """Two clouds, whose teachers know which is which; a few points asked."""
    from tests.students.made_up_student_data import K, release, student_data_of

    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=m)
    X = rng.normal(size=(m, 5)) + 1.4 * truth[:, None] * rng.choice([-1, 1], size=5)
    votes = rng.binomial(K, np.where(truth, 0.9, 0.1))
    queries = np.concatenate([np.flatnonzero(truth == each)[: asked // 2] for each in (0, 1)])
    released = release(np.column_stack([K - votes, votes])[queries], labels(sigma=10.0), seed)
    return student_data_of(X, released, queries=queries, classes=(0, 1)), truth


def test_a_classifier_that_cannot_say_how_sure_it_is_is_refused():
    with pytest.raises(InvalidParameter, match="SelfTraining asks the student how sure it is, and RidgeClassifier has"):
        SelfTraining(RidgeClassifier())


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("changes", "said"),
    [({"threshold": 1.0}, "threshold"), ({"threshold": float("nan")}, "threshold"), ({"threshold": "0.5"}, "threshold"),
     ({"max_iter": 0}, "max_iter"), ({"max_iter": True}, "max_iter")],
    ids=str,
)  # fmt: skip
def test_numbers_out_of_range_are_refused(changes, said):
    with pytest.raises(InvalidParameter, match=said):
        SelfTraining(**changes)
