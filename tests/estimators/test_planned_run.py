"""What a fit was expected to be, kept beside what came of it."""

import numpy as np
import pytest

from quorate import PrivateClassifier, PublicPool, check
from quorate.errors import DataRefused, InvalidParameter


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ np.array([4.0, -3.0, 2.0, 0.0]) + rng.logistic(size=n) > 0).astype(np.int64)


@pytest.fixture(scope="module")
def clf():
    made = PrivateClassifier(
        classes=[0, 1], epsilon=2.0, delta=1e-5, n_records=3_000, n_teachers=100, n_jobs=1, unsafe_noise_seed=0
    )
    return made.fit(*drawn(3_000, 0), public=PublicPool(drawn(150, 1)[0]))


@pytest.mark.heavy
def test_the_row_of_the_plan_is_the_run_that_was_made(clf):
    plan = clf.plan_
    assert plan.row.mechanism == clf.recipe_.mechanism
    assert (plan.row.n_teachers, plan.row.n_queries) == (100, 150)
    assert (plan.asked, plan.answered) == (150, 150)
    assert plan.row.answered == 1.0


@pytest.mark.heavy
def test_labelled_public_rows_tell_what_was_to_be_expected_and_what_came(clf):
    X, y = drawn(800, 2)
    found = clf.plan_.compare(X, y)
    assert found.accuracy == pytest.approx(clf.score(X, y))
    assert found.as_expected == (found.expected.low <= found.accuracy <= found.expected.high)
    assert found.expected.accuracy == pytest.approx(found.accuracy, abs=0.06)
    assert found.commonest < 0.56 < found.expected.low


def test_too_few_rows_are_refused_and_too_few_for_a_shard_are_told(clf):
    X, y = drawn(39, 3)
    with pytest.raises(InvalidParameter, match="40 labelled public rows or more"):
        clf.plan_.compare(X, y)
    X, y = drawn(60, 3)
    assert clf.plan_.compare(X, y).expected is None
    assert clf.plan_.compare(X, y).as_expected is None


@pytest.mark.heavy
def test_without_a_number_of_records_nothing_is_rehearsed_and_the_plan_says_nothing_of_it():
    made = PrivateClassifier(classes=[0, 1], epsilon=2.0, delta=1e-5, n_teachers=100, n_jobs=1, unsafe_noise_seed=0)
    private, public, (X, y) = drawn(3_000, 0), PublicPool(drawn(150, 1)[0]), drawn(800, 2)
    with pytest.raises(InvalidParameter, match=r"rehearsing needs the number of records; declare n_records=$"):
        check(made, *private, public=public, evaluation=(X, y))
    plan = made.fit(*private, public=public).plan_
    assert plan.row.rows_each is None
    found = plan.compare(X, y)
    assert (found.expected, found.as_expected) == (None, None)
    assert found.commonest < 0.56 < found.accuracy


def test_private_rows_are_refused_where_public_ones_are_asked_for(clf):
    """Else accuracy on private labels would be told for nothing."""
    X, y = drawn(3_000, 0)
    with pytest.raises(DataRefused, match="private"):
        clf.plan_.compare(X[:500], y[:500])
