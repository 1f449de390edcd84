"""Self-training, labels that spread over the public pool, and students from the class of votes (LZCW21)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.students.made_up_student_data import K, Memorises, labels, release, right, student_data_of, task

from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.errors import InvalidParameter
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts
from quorate.students import (
    LabelStudent,
    SelfTraining,
    SpreadLabels,
    VoteShareStudent,
    VotingClass,
    class_probabilities,
)


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
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=m)
    X = rng.normal(size=(m, 5)) + 1.4 * truth[:, None] * rng.choice([-1, 1], size=5)
    return a_few_asked(X, truth, rng.binomial(K, np.where(truth, 0.9, 0.1)), asked, sigma=10.0, seed=seed)


def a_few_asked(X, truth, votes, asked, *, sigma, seed):
    queries = np.concatenate([np.flatnonzero(truth == each)[: asked // 2] for each in (0, 1)])
    released = release(np.column_stack([K - votes, votes])[queries], labels(sigma=sigma), seed)
    return student_data_of(X, released, queries=queries, classes=(0, 1)), truth


def test_a_classifier_that_cannot_say_how_sure_it_is_is_refused():
    with pytest.raises(InvalidParameter, match="SelfTraining asks the student how sure it is, and RidgeClassifier has"):
        SelfTraining(RidgeClassifier())


def two_moons(seed, *, m=300, asked=10, noise=0.1):
    """Two half circles, which no line tells apart, and a few points asked."""
    rng = np.random.default_rng(seed)
    truth, angle = rng.integers(2, size=m), rng.uniform(0, np.pi, size=m)
    X = np.column_stack([np.cos(angle) + truth, np.where(truth, 0.4 - np.sin(angle), np.sin(angle))])
    X += rng.normal(scale=noise, size=X.shape)
    return a_few_asked(X, truth, rng.binomial(K, np.where(truth, 0.95, 0.05)), asked, sigma=5.0, seed=seed)


def graph(data, neighbours):
    """Who is among the nearest of whom, row by row."""
    z = PoolCoordinates.of(data.points).measured(data.points)
    edges = np.zeros((len(z), len(z)))
    for i, point in enumerate(z):
        edges[i, np.argsort([np.sum((point - other) ** 2) for other in z], kind="stable")[:neighbours]] = 1
    return edges


@pytest.mark.parametrize("alpha", [0.2, 0.7])
def test_spreading_is_that_of_the_closed_form(alpha):
    r"""The fixed point of :math:`F = \alpha S F + (1 - \alpha) Y` (Zhou et al. 2004), S without its diagonal."""
    data, _ = two_moons(0, m=60)
    edges = graph(data, 7)
    np.fill_diagonal(edges, 0)
    degree = edges.sum(axis=0)
    S = edges / np.sqrt(np.where(degree == 0, 1, np.outer(degree, degree)))
    S[~np.isfinite(S)] = 0
    Y = np.zeros((60, 2))
    Y[data.queries, data.released.codes] = 1
    F = np.linalg.solve(np.eye(60) - alpha * S, (1 - alpha) * Y)
    expected = F / np.where(F.sum(axis=1, keepdims=True) == 0, 1, F.sum(axis=1, keepdims=True))
    reached = SpreadLabels(alpha=alpha).reached(data)
    some = F.sum(axis=1) > 0.02  # where nearly nothing has arrived, the last rounds still count
    assert some.sum() > 20
    np.testing.assert_allclose(reached[some], expected[some], atol=0.05)


def test_propagation_keeps_every_label():
    data, _ = two_moons(1)
    reached = SpreadLabels(method="propagation").reached(data)
    assert reached[data.queries].argmax(axis=1).tolist() == data.released.codes.tolist()


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["spreading", "propagation"])
def test_labels_flow_along_the_pool_where_no_line_would_lead_them(method):
    """Ten pools with seeds of their own, so this cannot fail by chance."""
    spread = SpreadLabels(KNeighborsClassifier(5), method=method)
    rates = [
        [right(way, *two_moons(seed)) for way in (spread, LabelStudent(KNeighborsClassifier(5)))] for seed in range(10)
    ]
    ours, plain = np.mean(rates, axis=0)
    assert ours > 0.95
    assert 1 - ours < 0.5 * (1 - plain)


def test_every_point_that_was_reached_is_taught_by_its_weights():
    data, _ = two_moons(2)
    student = SpreadLabels(Memorises(max_depth=2))
    _, _, weights = student.fit(data).seen_
    reached = student.reached(data)
    np.testing.assert_allclose(np.sort(weights), np.sort(reached[reached > 1e-6]))


def test_a_point_that_no_label_reaches_is_left_out():
    X = np.concatenate([np.linspace(0, 1, 10), np.linspace(50, 51, 10)])[:, None]
    released = release(np.array([[K, 0], [0, K]]), labels(sigma=1.0))
    data = student_data_of(X, released, queries=[0, 9], classes=(0, 1))
    for estimator in (Memorises(max_depth=2), KNeighborsClassifier(1)):
        student = SpreadLabels(estimator, neighbours=3)
        assert student.reached(data)[10:].max() == 0
        fitted = student.fit(data)
        assert (fitted.seen_[0] if isinstance(estimator, Memorises) else fitted._fit_X).max() <= 1
    assert fitted.predict(X).shape == (20,)


def test_sparse_points_spread_alike():
    data, _ = task(m=120, mechanism=labels(sigma=5.0), asked=range(30))
    binary = (data.points > 0).astype(float)
    dense = SpreadLabels().reached(student_data_of(binary, data.released, queries=data.queries, classes=(0, 1)))
    rows = csr_array(binary)
    sparse = SpreadLabels().reached(student_data_of(rows, data.released, queries=data.queries, classes=(0, 1)))
    assert dense.shape == sparse.shape == (120, 2)
    assert np.mean(dense.argmax(axis=1) == sparse.argmax(axis=1)) > 0.7  # ties between equal distances aside


def test_a_small_pool_has_fewer_neighbours():
    data, _ = task(m=4, mechanism=labels(sigma=1.0))
    assert SpreadLabels(LogisticRegression()).fit(data).predict(data.pool).shape == (4,)


WRONG = [
    (SelfTraining, "threshold", "", (1.0, float("nan"), "0.5")),
    (SelfTraining, "max_iter", "", (0, True)),
    (SpreadLabels, "method", "", ("flooding",)),
    (SpreadLabels, "neighbours", "", (1,)),
    (SpreadLabels, "alpha", "", (0, 1.0, float("nan"))),
    (VotingClass, "n_estimators", "a whole number >= 1", (0, -1, 2.5, True, "ten")),
    (VoteShareStudent, "weights", "True or False", (None, 1, "no")),
]


@pytest.mark.parametrize(("way", "name", "said", "value"), [(*of, value) for *of, values in WRONG for value in values])
def test_an_argument_out_of_range_is_refused_by_its_name(way, name, said, value):
    with pytest.raises(InvalidParameter, match=f"^{name} must be {said}"):
        way(**{name: value})


FALSE_ALARM = 1e-6
STUMP = DecisionTreeClassifier(max_depth=1)


def test_it_is_adaboost_on_released_labels():
    data, _ = task(m=80, mechanism=labels(), asked=range(60))
    ours = VotingClass(STUMP, n_estimators=7).fit(data)
    theirs = LabelStudent(AdaBoostClassifier(STUMP, n_estimators=7)).fit(data)
    np.testing.assert_array_equal(ours.predict_proba(data.pool), theirs.predict_proba(data.pool))


def test_of_noisy_votes_it_learns_the_class_with_the_largest_estimated_share_at_every_public_point():
    data, _ = task(m=80, mechanism=NoisyCounts(40.0, "binary"), asked=range(60))
    ours = VotingClass(STUMP, n_estimators=7).fit(data)
    largest = VoteShareStudent().model(data, data.points)(data.points).argmax(axis=1)
    theirs = AdaBoostClassifier(STUMP, n_estimators=7, random_state=data.estimator_seed).fit(data.pool, largest)
    np.testing.assert_array_equal(ours.predict_proba(data.pool), theirs.predict_proba(data.pool))


@pytest.mark.heavy
def test_there_are_as_many_rounds_as_teachers_unless_it_is_said_otherwise():
    data, _ = task(m=60, mechanism=labels(sigma=60.0))
    assert VotingClass(STUMP).fit(data).n_estimators == data.n_teachers
    assert VotingClass(STUMP, n_estimators=3).fit(data).n_estimators == 3


class Coin(ClassifierMixin, BaseEstimator):
    """A hypothesis that is always the same class, whatever it was fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[1])


def test_where_the_first_hypothesis_is_no_better_than_a_coin_it_stands_alone():
    X = np.zeros((40, 1))
    released = release(np.tile([[100, 0], [100, 0], [0, 100]], (14, 1))[:40], labels(sigma=1.0))
    data = student_data_of(X, released, classes=(0, 1))
    fitted = VotingClass(Coin(), n_estimators=5).fit(data)
    assert isinstance(fitted, Coin)


def test_other_failures_are_not_taken_for_coins():
    class Breaks(Coin):
        def fit(self, X, y, sample_weight=None):
            raise ValueError("nothing here is to my taste")

    with pytest.raises(ValueError, match="to my taste"):
        VotingClass(Breaks(), n_estimators=5).fit(task(m=40, mechanism=labels())[0])


@pytest.mark.parametrize(
    "hypothesis", [KNeighborsClassifier(), make_pipeline(StandardScaler(), STUMP)], ids=["knn", "pipeline"]
)
def test_a_hypothesis_that_takes_no_weights_is_refused(hypothesis):
    with pytest.raises(InvalidParameter, match=r"VotingClass boosts by weights, and \w+ takes none in fit"):
        VotingClass(hypothesis)


@pytest.mark.heavy
def test_a_vote_of_stumps_learns_what_no_stump_can():
    """Five tasks with seeds of their own, so this cannot fail by chance."""
    tasks = [task(seed, m=300, mechanism=labels(sigma=10.0)) for seed in range(5)]
    one, many = (np.mean([right(way, *each) for each in tasks]) for way in (LabelStudent(STUMP), VotingClass(STUMP)))
    assert 1 - many < 0.6 * (1 - one)


HYPOTHESES = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])  # (h, x), as in the paper's Figure 1; y is always 1
POINTS = HYPOTHESES.T.astype(float)  # a point is told by what the three hypotheses say of it


def taught_by_the_paper(n_teachers, rng, *, rows=30):
    """Empirical risk minimisers on shards of their own, ties by lot: their votes ``(4, 2)``."""
    seen = rng.integers(4, size=(n_teachers, rows))
    mistakes = np.array([(HYPOTHESES[:, shard] != 1).sum(axis=1) for shard in seen])
    chosen = np.argmin(mistakes + rng.random(mistakes.shape) / 2, axis=1)
    ones = HYPOTHESES[chosen].sum(axis=0)
    return np.column_stack([n_teachers - ones, ones]), np.bincount(chosen, minlength=3)


@pytest.mark.heavy
def test_example_1_with_teachers_that_learn_and_a_student_of_their_labels():
    votes, chosen = taught_by_the_paper(101, np.random.default_rng(20260821))
    assert min(binom.cdf(chosen, 101, 1 / 3).min(), binom.sf(chosen - 1, 101, 1 / 3).min()) > FALSE_ALARM
    data = student_data_of(POINTS, release(votes, GaussianNoisyMax(3.0, "binary")), classes=(0, 1), n_teachers=101)
    student = VotingClass(STUMP).fit(data)
    assert student.predict(POINTS).tolist() == [1, 0, 0, 0]
    assert np.mean(student.predict(POINTS) != 1) == 0.75


@pytest.mark.heavy
def test_theorem_20_a_student_from_the_teachers_class_cannot_follow_the_vote_and_one_from_its_votes_can():
    votes, _ = taught_by_the_paper(401, np.random.default_rng(3))
    majority = votes.argmax(axis=1)
    assert min(np.mean(h != majority) for h in HYPOTHESES) == 0.25
    data = student_data_of(POINTS, release(votes, GaussianNoisyMax(3.0, "binary")), classes=(0, 1), n_teachers=401)
    of_votes = VotingClass(STUMP).fit(data)
    assert np.mean(of_votes.predict(POINTS) != majority) == 0
    weights = class_probabilities(of_votes, POINTS, (0, 1))
    assert (weights.argmax(axis=1) == majority).all()
