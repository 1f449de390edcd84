"""Students from the class of votes, and the two examples that say when voting fails and when it wins (LZCW21)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import AdaBoostClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.students.made_up_student_data import labels, release, right, student_data_of, task

from quorate.errors import InvalidParameter
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts
from quorate.students import LabelStudent, VoteShareStudent, VotingClass, class_probabilities

FALSE_ALARM = 1e-6
STUMP = DecisionTreeClassifier(max_depth=1)


# --- the student -----------------------------------------------------------------------------------------------


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


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("n_estimators", [0, -1, 2.5, True, "ten"])
def test_rounds_are_a_whole_number(n_estimators):
    with pytest.raises(InvalidParameter, match="n_estimators must be a whole number >= 1"):
        VotingClass(n_estimators=n_estimators)


@pytest.mark.heavy
def test_a_vote_of_stumps_learns_what_no_stump_can():
    """Five tasks with seeds of their own, so this cannot fail by chance."""
    tasks = [task(seed, m=300, mechanism=labels(sigma=10.0)) for seed in range(5)]
    one, many = (np.mean([right(way, *each) for each in tasks]) for way in (LabelStudent(STUMP), VotingClass(STUMP)))
    assert 1 - many < 0.6 * (1 - one)


# --- LZCW21, Example 1: voting fails ---------------------------------------------------------------------------

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


# --- LZCW21, Theorem 20: the student's class holds the vote, the teachers' class does not -----------------------


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


def test_what_a_vote_of_three_can_say_the_hypotheses_cannot():
    """Dis(h, majority) is 0 for a vote and at least 1/4 for a member, whichever labels of ±h are allowed."""
    majority = (HYPOTHESES.sum(axis=0) >= 2).astype(int)
    members = [*HYPOTHESES, *(1 - HYPOTHESES)]
    assert min(np.mean(each != majority) for each in members) == 0.25


# --- LZCW21, Example 2: voting wins ----------------------------------------------------------------------------


@pytest.mark.heavy
def test_voting_classes_of_any_hypothesis_with_weights():
    data, truth = task(m=200, mechanism=labels(sigma=10.0))
    for hypothesis in (None, GaussianNB(), STUMP):
        assert right(VotingClass(hypothesis, n_estimators=10), data, truth) > 0.8
