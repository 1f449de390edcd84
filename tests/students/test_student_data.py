"""What a student is given fits together, and a student has the declared classes, whatever was released."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from tests.students.made_up_student_data import K, Memorises, labels, release, student_data_of, task, values

from quorate.errors import InvalidParameter
from quorate.labelling import Released
from quorate.mechanisms import GaussianNoisyMax
from quorate.students import (
    AutoStudent,
    LabelStudent,
    NoiseAwareStudent,
    SelfTraining,
    SpreadLabels,
    VoteShareStudent,
    fit_student,
)
from quorate.students.declared import last_step, spread, takes_weights
from quorate.students.student import LinearPrior
from quorate.students.values import fit_linear_shares, linear_share_student

FALSE_ALARM = 1e-6


def mostly_declined(n, **changes):
    """A data of three classes in which every answer but three was declined."""
    codes = np.zeros(n, dtype=np.int64)
    codes[:3] = [0, 1, 2]
    released = Released(codes, np.arange(n) >= 3, np.zeros(n, dtype=bool), GaussianNoisyMax(sigma=5.0))
    return student_data_of(np.arange(n, dtype=float)[:, None], released, classes="abc", **changes)


def p_value_of_uniform(codes):
    """The least of six binomial tails, times six: that each class gets a third."""
    tails = []
    for each in range(3):
        hits = int(np.sum(codes == each))
        tails += [binom.cdf(hits, len(codes), 1 / 3), binom.sf(hits - 1, len(codes), 1 / 3)]
    return min(1.0, 6 * min(tails))


def test_a_declined_query_is_left_out_by_default():
    rows, codes = mostly_declined(100).labels()
    assert rows.tolist() == codes.tolist() == [0, 1, 2]


def test_a_declined_query_gets_a_uniformly_random_class_where_that_is_asked_for():
    rows, codes = mostly_declined(3_003, declined="random").labels()
    assert rows.tolist() == list(range(3_003))
    assert codes[:3].tolist() == [0, 1, 2]
    assert p_value_of_uniform(codes[3:]) > FALSE_ALARM


def test_that_test_catches_a_class_that_is_drawn_a_little_more_often():
    drawn = np.random.default_rng(0).choice(3, size=3_000, p=[0.40, 0.30, 0.30])
    assert p_value_of_uniform(drawn) < FALSE_ALARM


def test_a_random_class_is_given_to_what_was_declined_and_to_nothing_else():
    """A_priv of BTT18 reads ⊥ as a coin; of a query that was lost or never asked, no ⊥ was released."""
    data, _ = task(m=50, lost=(4, 9), declined=(7,), never_asked=(48, 49))
    assert data.labels()[0].tolist() == np.delete(np.arange(50), [4, 7, 9, 48, 49]).tolist()
    rows, codes = replace(data, declined="random").labels()
    assert rows.tolist() == np.delete(np.arange(50), [4, 9, 48, 49]).tolist()
    others = [replace(data, declined="random", seed=seed).labels()[1] for seed in range(40)]
    assert np.flatnonzero(np.ptp([codes, *others], axis=0)).tolist() == [rows.tolist().index(7)]


def test_random_classes_are_those_of_the_seed_and_no_others():
    draws = [mostly_declined(50, declined="random", seed=seed).labels()[1].tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("way", [LabelStudent, SelfTraining, SpreadLabels])
def test_every_student_of_labels_does_as_the_lesson_says(way):
    taught = way(Memorises(max_depth=3)).fit(mostly_declined(60, declined="random"))
    weights = taught.seen_[2]
    counted = np.unique(taught.seen_[1], return_counts=True)[1] if weights is None else weights
    assert np.sum(counted) == pytest.approx(60, abs=0.5)
    if way is LabelStudent:
        assert len(way(Memorises(max_depth=3)).fit(mostly_declined(60)).seen_[1]) == 3


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"declined": "keep"}, 'declined must be one of "drop", "random"'),
        ({"declined": None}, "declined must be one of"),
        ({"n_teachers": 0}, "n_teachers must be a whole number >= 1"),
        ({"n_teachers": True}, "n_teachers must be"),
        ({"seed": -1}, "seed must be"),
        ({"seed": None}, "seed must be"),
        ({"classes": ["one"]}, "classes must be at least two"),
        ({"queries": np.arange(3)}, "one row of the pool for each released answer"),
        ({"queries": np.arange(50) + 1}, "queries must be rows of the pool, 0 to 49"),
        ({"queries": np.arange(50) - 1}, "queries must be rows of the pool"),
        ({"points": np.zeros((3, 2))}, "points must be the rows of the pool"),
    ],
    ids=str,
)
def test_a_lesson_whose_parts_do_not_fit_is_refused_in_one_line(changes, said):
    data, _ = task(m=50)
    with pytest.raises(InvalidParameter, match=said) as told:
        replace(data, **changes)
    assert "\n" not in str(told.value)


RNG = np.random.default_rng(0)
M, D, C, NOISE = 60, 12, 3, 0.05
U = RNG.normal(size=(M, D))
U /= np.linalg.norm(U, axis=1)[:, None]
EFFECTS = np.linspace(1.0, 0.05, D)
TRUE = RNG.normal(size=(C, D)) * np.sqrt(EFFECTS)
SHARES = 1 / C + U @ TRUE.T + NOISE * RNG.normal(size=(M, C))


def log_evidence(variance: float, noise: float) -> float:
    """Of all shares, by the dense covariance of the points."""
    covariance = variance * (U * EFFECTS) @ U.T + noise**2 * np.eye(M)
    _, log_determinant = np.linalg.slogdet(covariance)
    Y = SHARES - 1 / C
    return float(-0.5 * (C * log_determinant + np.einsum("ic,ic->", Y, np.linalg.solve(covariance, Y))))


@pytest.mark.heavy
@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_it_is_the_posterior_mean_at_the_most_likely_variance(noise):
    logs = np.linspace(-14, 10, 4_801)
    best = np.exp(logs[int(np.argmax([log_evidence(float(np.exp(each)), noise) for each in logs[::20]])) * 20])
    fine = [best * np.exp(each) for each in np.linspace(-0.2, 0.2, 801)]
    variance = fine[int(np.argmax([log_evidence(each, noise) for each in fine]))]
    prior = np.diag(1 / (variance * EFFECTS))
    expected = np.linalg.solve(U.T @ U / noise**2 + prior, U.T @ (SHARES - 1 / C) / noise**2).T
    found = fit_linear_shares(U, SHARES, noise_sd=noise, effects=EFFECTS)
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())


def test_where_noise_drowns_all_shares_they_are_equal_and_without_noise_they_are_what_they_are():
    drowned = fit_linear_shares(U, SHARES, noise_sd=1e4, effects=EFFECTS)
    assert np.abs(drowned).max() < 1e-3
    plain = fit_linear_shares(U, 1 / C + U @ TRUE.T, noise_sd=1e-6, effects=EFFECTS)
    np.testing.assert_allclose(plain, TRUE, atol=1e-4)


def test_shares_of_sure_teachers_bend_and_keep_the_slope_at_a_half():
    scores = 4 * U @ np.full(D, 3.0)
    bent = 1 / (1 + np.exp(-scores))
    found = fit_linear_shares(U, np.stack([1 - bent, bent], 1), noise_sd=1e-4, effects=EFFECTS, bends=True)
    np.testing.assert_allclose(found, np.stack([np.full(D, -3.0), np.full(D, 3.0)]), atol=1e-2)
    straight = fit_linear_shares(U, np.stack([1 - bent, bent], 1), noise_sd=1e-4, effects=EFFECTS)
    assert np.abs(straight[1] - 3.0).max() > 1.0  # what it would be without
    drowned = fit_linear_shares(U, SHARES[:, :2], noise_sd=1e4, effects=EFFECTS, bends=True)
    assert np.abs(drowned).max() < 1e-3


@pytest.mark.parametrize("classes", [["no", "yes"], ["a", "b", "c"]])
def test_the_student_predicts_the_largest_share(classes):
    shares = SHARES[:, : len(classes)]
    shares = shares - shares.mean(axis=1, keepdims=True) + 1 / len(classes)
    student = linear_share_student(U, shares, LinearPrior(EFFECTS, 5.0), noise_sd=NOISE, classes=classes)
    scores = U @ fit_linear_shares(U, shares, noise_sd=NOISE, effects=EFFECTS).T
    assert student.predict(U).tolist() == np.asarray(classes)[scores.argmax(axis=1)].tolist()
    assert student.predict_proba(U).shape == (M, len(classes))


X = np.array([[0.0], [1.0], [2.0], [3.0]])


@given(order=st.permutations(["a", "b", "c", "d"]), seen=st.sets(st.sampled_from("abcd"), min_size=1))
def test_spread_puts_each_column_where_its_class_is(order, seen):
    columns = sorted(seen)
    values = np.arange(1.0, 1 + len(columns))[None]
    everywhere = spread(values, np.array(columns), order)
    assert everywhere[0].tolist() == [values[0, columns.index(each)] if each in seen else 0.0 for each in order]


TABLES = [X, csr_array(X), pd.DataFrame(X, columns=["a"]), pl.DataFrame(X, schema=["a"])]


@pytest.mark.parametrize("table", TABLES, ids=["numpy", "sparse", "pandas", "polars"])
def test_a_student_of_one_class_or_none_is_a_constant_for_any_table(table):
    for codes, expected in (([1, 1, 1, 1], "b"), ([], "a")):
        student = fit_student(LogisticRegression(), table[: len(codes)], np.array(codes, dtype=np.int64), ["a", "b"])
        assert student.predict(table).tolist() == [expected] * 4


def test_a_seed_fills_every_random_state_that_is_open_and_no_other():
    student = make_pipeline(StandardScaler(), SGDClassifier())
    assert (
        fit_student(student, X, np.array([0, 0, 1, 1]), [0, 1], seed=7).get_params()["sgdclassifier__random_state"] == 7
    )
    fixed = SGDClassifier(random_state=1)
    assert fit_student(fixed, X, np.array([0, 0, 1, 1]), [0, 1], seed=7).random_state == 1


def test_weights_go_to_the_step_that_learns():
    rng = np.random.default_rng(0)
    points, codes, weights = rng.normal(size=(30, 2)), np.arange(30) % 2, rng.random(30)
    alone = LogisticRegression().fit(StandardScaler().fit_transform(points), codes, sample_weight=weights)
    for student in (
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), make_pipeline("passthrough", LogisticRegression())),
    ):
        assert takes_weights(student)
        fitted = fit_student(student, points, codes, [0, 1], weights=weights)
        np.testing.assert_allclose(last_step(fitted)[1].coef_, alone.coef_)


@pytest.mark.parametrize(
    "student",
    [
        make_pipeline(SelectKBest(k=1), LogisticRegression()),
        make_pipeline(StandardScaler(), make_pipeline(TargetEncoder(), LogisticRegression())),
        make_pipeline(FeatureUnion([("own", PLSRegression())]), LogisticRegression()),
        make_pipeline(ColumnTransformer([("own", SelectFromModel(LogisticRegression()), [0])]), LogisticRegression()),
        make_pipeline(LinearDiscriminantAnalysis(), LogisticRegression()),
        KNeighborsClassifier(),
        CalibratedClassifierCV(KNeighborsClassifier()),
        AdaBoostClassifier(make_pipeline(SelectKBest(k=1), LogisticRegression())),
    ],
    ids=["selection", "nested", "union", "columns", "discriminants", "neighbours", "calibrated", "boosted"],
)
def test_a_part_that_weights_do_not_reach_gets_each_point_once_with_its_largest_class(student):
    assert not takes_weights(student)


@pytest.mark.parametrize(
    "step",
    [
        "passthrough",
        PCA(),
        SimpleImputer(),
        Nystroem(),
        VarianceThreshold(),
        FrozenEstimator(SelectKBest(k=1)),
        ColumnTransformer([("scaled", StandardScaler(), [0])], remainder="drop"),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_step_that_learns_nothing_from_labels_leaves_the_weights_to_the_last(step):
    assert takes_weights(make_pipeline(step, LogisticRegression()))


@pytest.mark.parametrize(
    ("form", "mechanism"),
    [(VoteShareStudent, values), (AutoStudent, values), (NoiseAwareStudent, labels), (SpreadLabels, labels)],
    ids=["vote shares", "answers", "noisy labels", "spreading"],
)
def test_a_student_that_selects_features_finds_those_that_tell(form, mechanism):
    draw = np.random.default_rng(9)
    X = draw.normal(size=(300, 12))
    yes = (X[:, 7] > 0).astype(int)
    votes = np.column_stack([K - 80 * yes - 10, 80 * yes + 10])
    data = student_data_of(X, release(votes, mechanism()), classes=[0, 1])
    student = form(make_pipeline(SelectKBest(k=1), LogisticRegression()))
    assert student.fit(data)[0].get_support().nonzero()[0].tolist() == [7]
