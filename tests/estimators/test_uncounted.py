"""Fits that no ledger counts together say so: at the second one, with the sum; folds are told what they are."""

import multiprocessing
import re
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB

import quorate
from quorate import (
    Budget,
    LabelPrivateClassifier,
    Ledger,
    PrivacyWarning,
    PrivateClassifier,
    PrivateLogisticRegression,
    PublicPool,
    QuorateWarning,
    SubsampleAggregate,
)
from quorate.errors import InvalidParameter, LedgerMismatch, PreconditionFailed
from quorate.learners import AgnosticPrediction, ExponentialLearner
from quorate.learners.concepts import Thresholds
from quorate.release.session import FOLDS, UncountedFits

pytestmark = pytest.mark.mostly_heavy
RNG = np.random.default_rng(3)
X = RNG.normal(size=(240, 3))
Y = (X[:, 0] > 0).astype(int)
POOL = PublicPool(RNG.normal(size=(30, 3)))
LINE = RNG.integers(0, 16, (400, 1))

VOTED = {"classes": [0, 1], "n_teachers": 8, "n_jobs": 1, "queries": 10}
BITS = Thresholds(bits=4)


def classifier(**changes):
    return PrivateClassifier(GaussianNB(), GaussianNB(), **{**VOTED, "epsilon": 1.0, "delta": 1e-5, **changes})


def labels(**how):
    small = {"epsilon": 0.5, "delta": 1e-6, "allow_hopeless": True}
    return LabelPrivateClassifier(GaussianNB(), GaussianNB(), **VOTED, **small, **how)


def direct(**how):
    return PrivateLogisticRegression(classes=[0, 1], epsilon=1.0, delta=1e-5, **how)


def shards(**how):
    return SubsampleAggregate(epsilon=4.0, delta=1e-5, n_shards=60, cutoff=1, n_queries=2, n_jobs=1, **how)


def prediction(**how):
    return AgnosticPrediction(concepts=BITS, epsilon=2.0, alpha=0.3, beta=0.1, n_queries=2, **how)


def thresholds(**how):
    return ExponentialLearner(concepts=BITS, epsilon=0.25, **how)


def on_the_line(learner):
    return learner.fit(LINE, (LINE[:, 0] > 7).astype(int))


FITS = {  # a fit, and its ε and δ
    "PrivateClassifier": (lambda **how: classifier(**how).fit(X, Y, public=POOL), 1.0, 1e-5),
    "LabelPrivateClassifier": (lambda **how: labels(**how).fit(X, Y), 0.5, 1e-6),
    "PrivateLogisticRegression": (lambda **how: direct(**how).fit(X, Y, public=POOL), 1.0, 1e-5),
    "SubsampleAggregate": (lambda **how: shards(**how).fit(X), 4.0, 1e-5),
    "ExponentialLearner": (
        lambda **how: on_the_line(thresholds(**how)), 0.25, 0.0,
    ),
    "AgnosticPrediction": (lambda **how: on_the_line(prediction(**how)), 2.0, 0.0),
}  # fmt: skip


def of_privacy(caught):
    return [each for each in caught if each.category is PrivacyWarning]  # beside cautions, on so few rows


def sums(message):
    found = re.search(r"together they spend ε = (\S+) and δ = (\S+),", message)
    assert found is not None, message
    return float(found[1]), float(found[2])


@pytest.mark.heavy_cases(5)
@pytest.mark.parametrize("second", FITS)
@pytest.mark.parametrize("first", ["PrivateClassifier", "ExponentialLearner"])
def test_the_second_fit_without_a_ledger_warns_with_the_sum(first, second):
    (fit, *spent), (again, *budget) = FITS[first], FITS[second]
    fit()
    with pytest.warns(PrivacyWarning, match="fit 2 without a ledger in this process") as caught:
        made = again()
    [warning] = of_privacy(caught)
    epsilon, delta = sums(str(warning.message))
    assert epsilon == pytest.approx(spent[0] + budget[0], rel=0.02)  # a fit may cost a little less than its budget
    assert epsilon >= spent[0] * 0.98 + budget[0]
    assert delta == pytest.approx(spent[1] + budget[1], abs=1e-15)
    assert "\n" not in str(warning.message)
    assert "workers of n_jobs, are not seen" in str(warning.message)
    assert warning.filename == __file__
    assert made.guarantee_.epsilon <= budget[0]


@pytest.mark.quick
def test_it_is_a_warning_of_ours_that_everybody_can_name():
    assert issubclass(PrivacyWarning, QuorateWarning)
    assert issubclass(QuorateWarning, UserWarning)
    assert quorate.PrivacyWarning is PrivacyWarning


@pytest.mark.default_cases(1)
@pytest.mark.heavy_cases(3)  # each kind, with and without a ledger, here and in workers
@pytest.mark.parametrize("kept", ["without a ledger", "with a ledger"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", ["cross-validation", "search"])
def test_a_cross_validation_or_a_search_is_refused_before_anything_is_charged(kind, n_jobs, kept, tmp_path):
    clf = classifier(ledger=tmp_path / "ledger.db" if kept == "with a ledger" else None)
    search = GridSearchCV(clf, {"epsilon": [0.5, 1.0]}, cv=2, n_jobs=n_jobs)
    attempts = {
        "search": lambda: search.fit(X, Y, public=POOL),
        "cross-validation": lambda: cross_val_score(clf, X, Y, cv=3, params={"public": POOL}, n_jobs=n_jobs),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is refused before anything is looked at, or warned of
        with pytest.raises(ValueError, match="fits failed") as refused:
            attempts[kind]()
    last = str(refused.value).strip().splitlines()[-1]  # where a person looks
    assert last == f"quorate.errors.PreconditionFailed: {FOLDS}"
    assert last.split(": ")[1].startswith("Compare models on public rows with labels")
    assert not (tmp_path / "ledger.db").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        classifier().fit(X, Y, public=POOL)  # the first fit of this process


@pytest.mark.default_cases(1)
@pytest.mark.heavy_cases(3)  # each kind, here and in workers
@pytest.mark.parametrize("n_jobs", [2, 1])
@pytest.mark.parametrize("make", [classifier, thresholds], ids=["classifier", "learner"])
def test_folds_of_an_open_ledger_are_refused_before_a_worker_is_asked_to_take_it(make, n_jobs):
    with Ledger(budget=Budget(9.0, 1e-3)) as ledger:
        before = ledger.left
        attempts = (
            lambda: cross_val_score(make(ledger=ledger), LINE, LINE[:, 0] > 7, cv=2, n_jobs=n_jobs),
            lambda: GridSearchCV(make(ledger=ledger), {"epsilon": [0.5]}, cv=2, n_jobs=n_jobs).fit(
                LINE, LINE[:, 0] > 7
            ),
        )
        for attempt in attempts:
            with pytest.raises(PreconditionFailed) as refused:
                attempt()
            assert str(refused.value) == FOLDS
        assert ledger.left == before
        assert clone(make(ledger=ledger)).ledger is ledger  # not in a fold


def test_a_fit_in_a_worker_process_says_that_it_does_not_see_the_others(monkeypatch):
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    with pytest.warns(PrivacyWarning, match="in a worker process: its guarantee counts this fit alone"):
        classifier().fit(X, Y, public=POOL)
    with pytest.warns(PrivacyWarning, match="fit 2 without a ledger"):
        classifier().fit(X, Y, public=POOL)


def test_workers_of_joblib_are_known_as_such():
    assert all(Parallel(n_jobs=2)(delayed(in_a_worker)() for _ in range(2)))


def in_a_worker():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        UncountedFits().begin(Budget(1.0, 1e-5))
    return "worker process" in str(of_privacy(caught)[0].message)


@pytest.mark.parametrize("seeded", [True, False])
def test_what_a_ledger_counts_or_promises_nothing_does_not_warn(seeded):
    for fit, *_ in FITS.values():
        fit(**({"unsafe_noise_seed": 1} if seeded else {"ledger": Ledger(budget=Budget(99.0, 1e-2))}))
    FITS["PrivateClassifier"][0]()  # the first of its kind


def test_a_fit_that_charged_nothing_is_none():
    with pytest.raises(InvalidParameter):
        classifier(queries=10_000).fit(X, Y, public=POOL)
    fit = classifier().fit(X, Y, public=POOL)
    fit.predict(X)
    with pytest.warns(PrivacyWarning, match="fit 2"):
        fit.fit(X, Y, public=POOL)


def test_where_warnings_are_errors_nothing_is_charged_and_nothing_counted():
    classifier().fit(X, Y, public=POOL)
    again = classifier()
    with pytest.raises(PrivacyWarning, match="fit 2"):
        again.fit(X, Y, public=POOL)
    assert not hasattr(again, "guarantee_")
    with pytest.raises(PrivacyWarning, match="fit 2"):
        again.fit(X, Y, public=POOL)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("kind", FITS)
def test_folds_are_told_what_they_are_and_what_to_do(kind, tmp_path, monkeypatch):
    fit, *_ = FITS[kind]
    path = tmp_path / "ledger.db"
    with Ledger(path, budget=Budget(99.0, 1e-2)):
        pass
    fit(ledger=path)
    monkeypatch.setattr("tests.estimators.test_uncounted.X", X[:200])
    monkeypatch.setattr("tests.estimators.test_uncounted.Y", Y[:200])
    monkeypatch.setattr("tests.estimators.test_uncounted.LINE", LINE[:300])
    with pytest.raises(
        LedgerMismatch, match=r"A fold of cross_val_score, GridSearchCV .* is a data set of its own"
    ) as refused:
        fit(ledger=path)
    message = str(refused.value)
    assert "compare models on public rows" in message
    assert "same_release" not in message
    assert "same-release" not in message
    assert "\n" not in message
