"""Students of noisy votes."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from tests.students.made_up_student_data import K, Memorises, labels, release, right, student_data_of, task, values

from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.deferred import skops
from quorate.mechanisms import NoisyCounts
from quorate.students import AutoStudent, LabelStudent, NoiseAwareStudent, VoteShareStudent, class_probabilities
from quorate.students.shares import (
    ProcessShares,
    TreeShares,
    VoteShares,
    fit_process_shares,
    fit_vote_shares,
    once_per_class,
)
from quorate.students.values import best_of, errors_by_folds, gain


@pytest.mark.parametrize(("n_classes", "noise"), [(2, np.sqrt(2) * 40.0), (3, 40.0)])
def test_the_classifier_is_taught_the_shares_that_fit_the_noise_of_the_form(n_classes, noise):
    data, _ = task(n_classes=n_classes, m=80)
    X, classes = data.pool, list("abc")[:n_classes]
    student = VoteShareStudent(Memorises(max_depth=2)).fit(replace(data, classes=classes))
    shares = fit_vote_shares(X, data.released.vote_shares(K), noise_sd=noise / K, geometry=PoolCoordinates.of(X))(X)
    which, codes, weights = once_per_class(shares)
    seen_X, seen_y, seen_weights = student.seen_
    np.testing.assert_array_equal(seen_X, X[which])
    assert seen_y.tolist() == [classes[code] for code in codes]
    np.testing.assert_allclose(seen_weights, weights, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_gaussian_process_is_told_the_noise_of_one_share_in_either_form(n_classes):
    data, _ = task(n_classes=n_classes, m=80)
    model = VoteShareStudent(shares="gaussian-process").model(data, data.points)
    expected = fit_process_shares(
        data.points, data.released.vote_shares(K), noise_sd=40.0 / K,
        geometry=PoolCoordinates.of(data.points).kernel(data.points),
    )  # fmt: skip
    np.testing.assert_allclose(model(data.points), expected(data.points), atol=1e-9)


def test_points_that_were_never_asked_are_taught_too():
    asked = [3, 10, 17, 40, 55]
    data, _ = task(m=60, asked=asked, mechanism=values(sigma=5.0))
    seen = VoteShareStudent(Memorises(max_depth=2)).fit(data).seen_
    assert len(np.unique(seen[0], axis=0)) == 60
    assert seen[2].sum() == pytest.approx(60, rel=1e-3)


def test_a_classifier_without_weights_gets_the_largest_share():
    data, _ = task()
    student = VoteShareStudent(KNeighborsClassifier(1)).fit(data)
    shares = VoteShareStudent().model(data, data.points)(data.points)
    assert student.predict(data.pool).tolist() == shares.argmax(axis=1).tolist()


def test_a_classifier_with_weights_may_do_without():
    data, _ = task(m=60, n_classes=3)
    seen_X, seen_y, weights = VoteShareStudent(Memorises(max_depth=2), weights=False).fit(data).seen_
    shares = VoteShareStudent().model(data, data.points)(data.points)
    np.testing.assert_array_equal(seen_X, data.pool)
    assert weights is None
    assert seen_y.tolist() == shares.argmax(axis=1).tolist()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("shares", ["linear", "kernel"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("form", [VoteShareStudent, NoiseAwareStudent])
@pytest.mark.parametrize("wide", [False, True])
def test_the_students_own_probabilities_are_the_shares_of_the_model(form, shares, n_classes, wide):
    width = 1_200 if wide else 4
    mechanism = (values if form is VoteShareStudent else labels)(n_classes, sigma=10.0)
    data, _ = task(m=150, width=width, n_classes=n_classes, mechanism=mechanism)
    way = form(shares=shares)
    expected = way.model(data, data.points)(data.points)
    fitted = way.fit(data)
    np.testing.assert_allclose(fitted.predict_proba(data.pool), expected, atol=1e-9)
    there = replace(data, pool=csr_array(data.pool), points=csr_array(data.points))
    found = class_probabilities(way.fit(there), there.pool, there.classes)
    assert found.shape == (150, n_classes)
    if not wide:  # the model of a sparse pool is its own student as well
        np.testing.assert_allclose(found, way.model(there, there.points)(there.points), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_gaussian_process_and_its_classifier_predict_the_same(n_classes):
    data, _ = task(m=150, n_classes=n_classes, mechanism=values(n_classes, sigma=10.0))
    way = VoteShareStudent(shares="gaussian-process")
    model, fitted = way.model(data, data.points), way.fit(data)
    there = np.random.default_rng(9).normal(size=(300, 5))
    assert fitted.predict(there).tolist() == model.mean(there).argmax(axis=1).tolist()
    assert np.abs(fitted.predict_proba(data.pool) - model(data.points)).mean() < 0.1


def curved(seed, *, sigma, m=400):
    """A task no line can do: the class is whether a point lies far from the middle."""
    X = np.random.default_rng(seed).normal(size=(m, 2))
    share = 1 / (1 + np.exp(-4 * (np.sum(X**2, axis=1) - 1.4)))
    return by_votes_of(share, X, seed, sigma)


def by_votes_of(share, X, seed, sigma):
    votes = np.random.default_rng(seed).binomial(K, share)
    data = student_data_of(X, release(np.column_stack([K - votes, votes]), values(sigma=sigma)), classes=(0, 1))
    return data, (share > 0.5).astype(int)


@pytest.mark.heavy
def test_auto_finds_the_curve_where_there_is_one_and_keeps_the_line_where_there_is_none():
    for seed in range(3):
        data, truth = curved(seed, sigma=30.0)
        auto = VoteShareStudent(shares="auto")
        assert len(auto.model(data, data.points).geometry.maps) == 2
        assert right(auto, data, truth) > right(VoteShareStudent(), data, truth) + 0.1
        by_default = AutoStudent().fit(data)
        assert np.mean(by_default.predict(data.pool) == truth) > right(VoteShareStudent(), data, truth) + 0.1
        assert skops.io.get_untrusted_types(data=skops.io.dumps(by_default)) == []
        straight, _ = task(seed, m=400, mechanism=values(sigma=60.0))
        assert auto.model(straight, straight.points).geometry.maps == ()


def stepped(seed, *, sigma, m=1_500):
    """A task for trees: the class is a matter of which of four boxes a point lies in."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(m, 4))
    share = np.where((X[:, 0] > 0.2) ^ (X[:, 1] > -0.3), 0.85, 0.15)
    return by_votes_of(share, X, seed, sigma)


@pytest.mark.heavy
@pytest.mark.parametrize("as_sparse", [False, True])
def test_trees_learn_boxes_and_their_classifier_says_the_same(as_sparse):
    data, truth = stepped(0, sigma=60.0)
    if as_sparse:
        data = replace(data, pool=csr_array(data.pool), points=csr_array(data.points))
    way = VoteShareStudent(shares="trees")
    model, fitted = way.model(data, data.points), way.fit(data)
    assert isinstance(model, TreeShares)
    assert np.mean(model(data.points).argmax(axis=1) == truth) > 0.9
    assert np.mean(fitted.predict(data.pool) == model(data.points).argmax(axis=1)) > 0.97
    written = skops.io.dumps(fitted)
    trees = ["sklearn.tree._tree.Tree"]
    assert skops.io.get_untrusted_types(data=written) == trees
    assert (skops.io.loads(written, trusted=trees).predict(data.pool) == fitted.predict(data.pool)).all()


@pytest.mark.heavy
def test_auto_takes_trees_where_they_predict_noisy_votes_best_and_there_are_enough():
    auto = VoteShareStudent(shares="auto")
    data, _ = stepped(1, sigma=30.0)
    assert isinstance(auto.model(data, data.points), TreeShares)
    few, _ = stepped(1, sigma=30.0, m=499)
    assert not isinstance(auto.model(few, few.points), TreeShares)
    straight, _ = task(1, m=600, mechanism=values(sigma=60.0))
    assert auto.model(straight, straight.points).geometry.maps == ()


def test_few_answers_are_not_divided_into_folds():
    data, _ = curved(0, sigma=5.0, m=49)
    assert VoteShareStudent(shares="auto").model(data, data.points).geometry.maps == ()


def test_the_gain_is_that_of_a_second_writing():
    data, _ = curved(1, sigma=30.0, m=90)
    X, noisy = data.points, data.released.vote_shares(K)

    def mean_of(X, noisy):
        return lambda rows: np.tile(noisy.mean(axis=0), (len(rows), 1))

    def half(X, noisy):
        return lambda rows: np.full((len(rows), 2), 0.5)

    differences = []
    for rest, fold in KFold(3, shuffle=True, random_state=0).split(X):
        middle = sum(noisy[i] for i in rest) / len(rest)
        differences += [sum((noisy[i] - 0.5) ** 2) - sum((noisy[i] - middle) ** 2) for i in fold]
    spread = np.sqrt(sum((each - np.mean(differences)) ** 2 for each in differences) / 89)
    found = gain(errors_by_folds(half, X, noisy), errors_by_folds(mean_of, X, noisy))
    assert found == pytest.approx(np.mean(differences) - spread / np.sqrt(90))


@pytest.mark.heavy
def test_points_are_measured_once_for_all_folds_and_models_of_one_geometry(monkeypatch):
    data, _ = curved(1, sigma=30.0, m=90)
    X, noisy = data.points, data.released.vote_shares(K)
    forms = {name: form() for name, form in VoteShareStudent(shares="smooth")._forms(data, X).items()}
    whole = {name: errors_by_folds(lambda *rows, on=on: on[1](*rows, on[0]), X, noisy) for name, on in forms.items()}
    best = max(("kernel", "gaussian-process"), key=lambda name: gain(whole["linear"], whole[name]))
    mapped = []
    features = forms["kernel"][0].maps[-1]
    transform = type(features).transform
    monkeypatch.setattr(
        type(features), "transform", lambda own, rows: (mapped.append(len(rows)), transform(own, rows))[1]
    )
    assert best_of("linear", ["kernel", "gaussian-process"], forms, X, noisy) == best
    assert gain(whole["linear"], whole[best]) > 0
    assert mapped == [90]


@pytest.mark.heavy
@pytest.mark.parametrize("shares", ["kernel", "gaussian-process"])
def test_a_curve_is_learned_from_ten_thousand_points_in_seconds(shares):
    data, truth = curved(2, sigma=200.0, m=10_000)
    started = time.process_time()
    assert right(VoteShareStudent(shares=shares), data, truth) > 0.9
    assert time.process_time() - started < 60


def test_models_are_what_they_are_called():
    data, _ = task(m=60)
    for shares, kind, maps in (
        ("linear", VoteShares, 0),
        ("kernel", VoteShares, 2),
        ("gaussian-process", ProcessShares, 2),
    ):
        model = VoteShareStudent(shares=shares).model(data, data.points)
        assert isinstance(model, kind)
        assert len(model.geometry.maps) == maps


def test_another_seed_makes_another_student():
    data, _ = task()
    coefficients = [
        VoteShareStudent(SGDClassifier(max_iter=5, tol=None)).fit(replace(data, seed=seed)).coef_ for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(coefficients[0], coefficients[1])
    assert not np.array_equal(coefficients[0], coefficients[2])


def mean_right(way, *, sigma=80.0, n_classes=2):
    """Twelve tasks with seeds of their own, so what is asserted of them cannot fail by chance."""
    tasks = [
        task(seed, m=300, width=8, n_classes=n_classes, mechanism=NoisyCounts(sigma, values(n_classes).form))
        for seed in range(12)
    ]
    return np.mean([right(way, *each) for each in tasks])


@pytest.mark.heavy
@pytest.mark.parametrize("n_classes", [2, 4])
def test_values_teach_more_than_the_classes_read_off_them(n_classes):
    from_labels = 1 - mean_right(LabelStudent(), n_classes=n_classes)
    for shares in ("linear", "kernel", "gaussian-process"):
        assert (
            1 - mean_right(VoteShareStudent(LogisticRegression(), shares=shares), n_classes=n_classes)
            < 0.9 * from_labels
        )
    assert 1 - mean_right(VoteShareStudent(), n_classes=n_classes) < 0.9 * from_labels


@pytest.mark.heavy
def test_more_noise_makes_a_worse_student():
    assert mean_right(VoteShareStudent(), sigma=20.0) > mean_right(VoteShareStudent(), sigma=160.0)


def test_by_default_the_student_of_straight_votes_is_the_linear_model_of_their_shares():
    data, _ = task(m=200)
    X = data.points
    student, linear = (each.fit(data) for each in (AutoStudent(), VoteShareStudent()))
    np.testing.assert_array_equal(student.predict_proba(X), linear.predict_proba(X))


@pytest.mark.heavy
def test_trees_are_tried_by_auto_and_not_by_smooth(monkeypatch):
    tried = []
    monkeypatch.setattr(
        "quorate.students.values.best_of", lambda linear, rivals, *_: tried.append(len(rivals)) or linear
    )
    data, _ = task(m=600)
    for shares in ("smooth", "auto"):
        VoteShareStudent(shares=shares).fit(data)
    assert tried == [2, 3]
