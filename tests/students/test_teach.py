"""From released answers to a student."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate.errors import InvalidParameter
from quorate.labelling import Released
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts
from quorate.noise import SeededNoise
from quorate.students import fit_student, fit_vote_shares, teach_plain, teach_values
from quorate.students.teach import once_per_class

FALSE_ALARM = 1e-6
K = 100
CLASSES = ["no", "yes"]


class Memorises(DecisionTreeClassifier):
    """Keeps what it was fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = (X, np.asarray(y), sample_weight)
        return super().fit(X, y, sample_weight=sample_weight)


def rng(seed=0):
    return np.random.default_rng(seed)


def cast(X, seed, *, n_classes=2, steep=2.0):
    """Teachers' votes on points: a binomial or multinomial draw around a softmax. Secret, in a real run."""
    draw = rng(seed)
    weights = steep * draw.normal(size=(X.shape[1], n_classes)) / np.sqrt(X.shape[1])
    scores = X @ weights
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    votes = np.array([draw.multinomial(K, row) for row in shares], dtype=np.int64)
    return votes, shares.argmax(axis=1)


def release(votes, mechanism, seed=0, *, lost=()):
    answers = mechanism.release_many(votes, SeededNoise(seed))
    interrupted = np.zeros(len(votes), dtype=bool)
    interrupted[list(lost)] = True
    answers[interrupted] = 0
    return Released(answers, np.zeros_like(interrupted), interrupted, mechanism)


def task(seed=0, *, m=200, width=5, n_classes=2, sigma=40.0, lost=()):
    X = rng(seed).normal(size=(m, width))
    votes, truth = cast(X, seed, n_classes=n_classes)
    mechanism = NoisyCounts(sigma=sigma, form="binary" if n_classes == 2 else "histogram")
    return X, release(votes, mechanism, seed, lost=lost), truth


def taught(student, X, released, *, classes=CLASSES, queries=None, pool=None, seed=0, points=None):
    pool = X if pool is None else pool
    return teach_values(
        student,
        pool,
        pool if points is None else points,
        np.arange(len(X)) if queries is None else queries,
        released,
        classes,
        n_teachers=K,
        rng=rng(seed),
    )


# --- what a student may see ----------------------------------------------------------------------------------


def test_a_student_takes_released_answers_and_nothing_else_that_comes_from_teachers():
    allowed = {
        teach_plain: {"student", "X", "released", "classes", "declined", "rng"},
        teach_values: {
            "student", "X_pool", "points", "queries", "released", "classes", "n_teachers", "rng"
        },
    }  # fmt: skip
    for teach, names in allowed.items():
        parameters = inspect.signature(teach).parameters
        assert set(parameters) == names
        assert parameters["released"].annotation == "Released"


@pytest.mark.parametrize("form", ["binary", "histogram"])
def test_votes_that_were_not_released_change_nothing(form):
    X = rng().normal(size=(60, 3))
    votes, _ = cast(X, 0, n_classes=2 if form == "binary" else 3)
    released = release(votes, NoisyCounts(sigma=20.0, form=form), lost=range(10, 20))
    classes = CLASSES if form == "binary" else ["a", "b", "c"]
    before = taught(LogisticRegression(), X, released, classes=classes)
    votes[:] = votes[:, ::-1]  # the ensemble changes its mind after the release
    released.answers[10:20] = 777  # and rows that were never answered hold anything at all
    after = taught(LogisticRegression(), X, released, classes=classes)
    np.testing.assert_array_equal(before.coef_, after.coef_)


def test_that_test_catches_a_student_that_reads_rows_without_an_answer():
    X, released, _ = task(m=60, lost=range(10, 20))

    def reads_all():
        everything = Released(released.answers, released.declined, np.zeros(60, dtype=bool), released.mechanism)
        return taught(LogisticRegression(), X, everything).coef_

    before = reads_all()
    released.answers[10:20] = 777
    assert not np.allclose(before, reads_all())


# --- values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_classes", "noise"), [(2, np.sqrt(2) * 40.0), (3, 40.0)])
def test_a_student_is_taught_the_shares_that_fit_the_noise_of_its_form(n_classes, noise):
    X, released, _ = task(n_classes=n_classes, m=80)
    student = taught(Memorises(max_depth=2), X, released, classes=list("abc")[:n_classes])
    shares = fit_vote_shares(X, released.vote_shares(K), noise_sd=noise / K, pool=X)(X)
    which, codes, weights = once_per_class(shares)
    seen_X, seen_y, seen_weights = student.seen_
    np.testing.assert_array_equal(seen_X, X[which])
    assert seen_y.tolist() == [list("abc")[code] for code in codes]
    np.testing.assert_allclose(seen_weights, weights, atol=1e-9)


def test_points_that_were_never_asked_are_taught_too():
    X, _, _ = task(m=60)
    votes, _ = cast(X, 0)
    asked = np.array([3, 10, 17, 40, 55])
    released = release(votes[asked], NoisyCounts(sigma=5.0, form="binary"))
    student = taught(Memorises(max_depth=2), X[asked], released, queries=asked, pool=X)
    assert len(np.unique(student.seen_[0], axis=0)) == 60
    assert student.seen_[2].sum() == pytest.approx(60, rel=1e-3)


def test_a_student_without_weights_gets_the_largest_share():
    X, released, _ = task()
    student = taught(KNeighborsClassifier(1), X, released)
    shares = fit_vote_shares(X, released.vote_shares(K), noise_sd=np.sqrt(2) * 0.4, pool=X)(X)
    assert student.predict(X).tolist() == [CLASSES[code] for code in shares.argmax(axis=1)]


@pytest.mark.parametrize(
    "student",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
        DecisionTreeClassifier(max_depth=3),
    ],
    ids=["plain", "pipeline", "pipeline without weights", "tree"],
)
@pytest.mark.parametrize("container", [np.asarray, csr_array, pd.DataFrame], ids=["dense", "sparse", "frame"])
def test_any_student_learns_from_any_table(student, container):
    rows = (rng(3).random((150, 12)) < 0.4).astype(float)
    votes, truth = cast(rows, 3, steep=6.0)
    released = release(votes, NoisyCounts(sigma=20.0, form="binary"))
    if container is csr_array and "standardscaler" in str(student).lower():
        student = make_pipeline(StandardScaler(with_mean=False), student[-1])
    pool = container(rows)
    if container is pd.DataFrame:
        pool.columns = [f"c{column}" for column in range(12)]
    points = pool if container is csr_array else rows
    fitted = taught(student, rows, released, pool=pool, points=points)
    right = np.mean(fitted.predict(pool) == np.array(CLASSES)[truth])
    assert right > max(np.mean(truth), 1 - np.mean(truth)) + 0.1


@pytest.mark.parametrize("classes", [["no", "yes"], [1, 0], [False, True], [-1, 1]])
def test_classes_are_words_numbers_or_truth_values(classes):
    X, released, truth = task(sigma=10.0)
    student = taught(LogisticRegression(), X, released, classes=classes)
    assert np.mean(student.predict(X) == np.array(classes)[truth]) > 0.85


def test_when_every_answer_was_lost_there_is_still_a_student():
    X, released, _ = task(m=20, lost=range(20))
    assert set(taught(LogisticRegression(), X, released).predict(X)) <= set(CLASSES)
    plain = teach_plain(LogisticRegression(), X, released, CLASSES, rng=rng())
    assert plain.predict(X).tolist() == ["no"] * 20


def test_one_public_point_is_enough():
    X = np.array([[1.0, 2.0]])
    released = release(np.array([[0, K]]), NoisyCounts(sigma=1.0, form="binary"))
    assert taught(LogisticRegression(), X, released).predict(X + 3).tolist() == ["yes"]


def test_unanimous_votes_teach_one_class():
    X = rng().normal(size=(30, 2))
    released = release(np.tile([[K, 0]], (30, 1)), NoisyCounts(sigma=1.0, form="binary"))
    assert taught(LogisticRegression(), X, released).predict(X).tolist() == ["no"] * 30


def test_the_same_seed_makes_the_same_student_and_another_seed_another():
    X, released, _ = task()
    students = [taught(SGDClassifier(max_iter=5, tol=None), X, released, seed=seed).coef_ for seed in (1, 1, 2)]
    np.testing.assert_array_equal(students[0], students[1])
    assert not np.array_equal(students[0], students[2])
    plain = [
        teach_plain(SGDClassifier(max_iter=5, tol=None), X, released, CLASSES, rng=rng(seed)).coef_
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(plain[0], plain[1])
    assert not np.array_equal(plain[0], plain[2])


def test_classes_alone_teach_no_values():
    X = rng().normal(size=(20, 2))
    released = release(cast(X, 0)[0], GaussianNoisyMax(sigma=5.0, form="binary"))
    with pytest.raises(InvalidParameter, match="no vote share"):
        taught(LogisticRegression(), X, released)


# --- plain ---------------------------------------------------------------------------------------------------


def test_a_plain_student_is_fitted_on_the_released_classes():
    X, released, _ = task(m=50, lost=(4, 9))
    student = teach_plain(LogisticRegression(), X, released, CLASSES, rng=rng())
    kept = np.delete(np.arange(50), [4, 9])
    alone = fit_student(LogisticRegression(), X[kept], released.codes[kept], CLASSES)
    np.testing.assert_array_equal(student.coef_, alone.coef_)


def _declined(n, seed=0, declined="random", classes=("a", "b", "c")):
    """Labels that a student was given where every answer but three was declined."""
    X = np.arange(n, dtype=float)[:, None]
    codes = np.full(n, 0)
    codes[:3] = [0, 1, 2]
    gone = np.arange(n) >= 3
    released = Released(codes, gone, np.zeros(n, dtype=bool), GaussianNoisyMax(sigma=5.0))
    return teach_plain(Memorises(max_depth=2), X, released, list(classes), declined=declined, rng=rng(seed)).seen_[1]


def _p_value_of_uniform(labels):
    """The least of three two-sided binomial tails, tripled: that each class gets a third."""
    tails = []
    for each in "abc":
        hits = int(np.sum(labels == each))
        tails += [binom.cdf(hits, len(labels), 1 / 3), binom.sf(hits - 1, len(labels), 1 / 3)]
    return min(1.0, 6 * min(tails))


def test_a_declined_query_gets_a_uniformly_random_class_where_that_is_asked_for():
    labels = _declined(3_003)
    assert labels[:3].tolist() == ["a", "b", "c"]
    assert _p_value_of_uniform(labels[3:]) > FALSE_ALARM


def test_that_test_catches_a_class_that_is_drawn_a_little_more_often():
    labels = rng().choice(list("abc"), size=3_000, p=[0.40, 0.30, 0.30])
    assert _p_value_of_uniform(labels) < FALSE_ALARM


def test_a_declined_query_is_left_out_by_default():
    assert _declined(100, declined="drop").tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("declined", ["keep", None, True])
def test_what_becomes_of_declined_queries_is_one_of_two_things(declined):
    with pytest.raises(InvalidParameter, match="declined"):
        _declined(10, declined=declined)


# --- what it is for ------------------------------------------------------------------------------------------


def _mean_errors(student_of, *, tasks=12, sigma=80.0):
    """Share of points on which a student disagrees with the teachers' true majority."""
    return np.mean([student_of(*task(seed, m=300, width=8, sigma=sigma)) for seed in range(tasks)])


def _of_values(X, released, truth):
    return np.mean(taught(LogisticRegression(), X, released).predict(X) != np.array(CLASSES)[truth])


def _of_labels(X, released, truth):
    student = teach_plain(LogisticRegression(), X, released, CLASSES, rng=rng())
    return np.mean(student.predict(X) != np.array(CLASSES)[truth])


def test_values_teach_more_than_the_classes_read_off_them():
    """The same release, two students. Twelve tasks with seeds of their own, so this cannot fail by chance."""
    assert _mean_errors(_of_values) < 0.9 * _mean_errors(_of_labels)


def test_more_noise_makes_a_worse_student():
    assert _mean_errors(_of_values, sigma=20.0) < _mean_errors(_of_values, sigma=160.0)
