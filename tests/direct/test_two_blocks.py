"""Settings of the map of two blocks, and weights shrunk afterwards: by public facts, for any pool and budget."""

from math import hypot

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import brentq

from quorate import PrivateLogisticRegression, PublicPool
from quorate.accounting import epsilon as price
from quorate.data.feature_maps import ResidualMap
from quorate.data.feature_maps.composed import default_map, feature_map_for
from quorate.data.feature_maps.coordinates import public_features
from quorate.data.pool_moments import PoolMoments
from quorate.direct import contributions
from quorate.direct.budgets import PlannedBudgets
from quorate.direct.contribution_check import check_contributions, faults_of, made_up
from quorate.direct.contributions import Grid
from quorate.direct.defaults import DirectSettings, most_dimensions, settings_for
from quorate.direct.plan import plan_direct
from quorate.direct.rounds import Descent, RoundNoise, _of_average, averaged_rounds, error_variances, shrunk
from quorate.ledger import Ledger
from quorate.report import render_text

RNG = np.random.default_rng(0)
POOL = RNG.normal(size=(160, 5))
HOW = {"n_units": 3_000, "epsilon": 1.0, "delta": 1e-5}


@pytest.fixture(scope="module")
def feature_map():
    return feature_map_for("kernels", POOL)


@pytest.fixture(scope="module")
def moments(feature_map):
    return PoolMoments.of_map(feature_map, POOL)


def ridge_of(features, dimension):
    """κ with an effective dimension, by all singular values of the features."""
    values = np.linalg.svd(features, compute_uv=False) ** 2 / len(features)
    return float(brentq(lambda ridge: (values / (values + ridge)).sum() - dimension, 1e-12, 1e3))


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["kernels", "linear"])
def test_a_public_row_that_is_repeated_adds_no_dimension(name):
    rows = POOL[:24]
    few, often = (
        settings_for(PoolMoments.of_map(feature_map_for(name, pool), pool), n_classes=2, n_units=100_000, mu=1.0)
        for pool in (rows, np.repeat(rows, 40, axis=0))
    )
    moments = PoolMoments.of_map(feature_map_for(name, np.repeat(rows, 40, axis=0)), np.repeat(rows, 40, axis=0))
    assert moments.n_distinct == 24
    assert moments.effective_dimension(often) <= 24  # of 960 rows: 12 of each block at most
    assert few.rounds == pytest.approx(often.rounds, abs=8)


@pytest.mark.heavy
def test_between_the_whole_numbers_of_a_pool_a_model_is_what_it_is_on_them():
    """A map of half as many dimensions as public rows goes through each of few points, and swings in between."""
    rng, n = np.random.default_rng(5), 6_000
    a, ward = rng.normal(50, 10, n), rng.choice(["u", "v"], n)
    y = np.where(a + 10 * (ward == "u") > 55, "yes", "no")
    frame = pd.DataFrame({"a": a, "ward": ward})
    clf = PrivateLogisticRegression(classes=["no", "yes"], epsilon=1.0, delta=1e-5, n_records=n, unsafe_noise_seed=0)
    clf.fit(frame, y, schema={"a": (0, 120), "ward": ["u", "v"]})  # whole numbers, to those who write them so
    assert clf.score(frame, y) > 0.95


@pytest.mark.parametrize(("n_classes", "rare"), [(2, None), (2, 0.06), (4, None)])
def test_the_settings_are_the_formulas(feature_map, moments, n_classes, rare):
    mu, n = 0.3, 3_000
    settings, two = settings_for(moments, n_classes=n_classes, n_units=n, mu=mu, rare=rare), n_classes == 2
    features = public_features(feature_map, POOL)
    linear, residual = features[:, : feature_map.n_linear], features[:, feature_map.n_linear :]
    target = min((0.04 if two else 0.025) * mu * n, len(POOL) / 2, most_dimensions(n))
    target *= 1 if rare is None else 4 * rare * (1 - rare)
    values = np.linalg.eigvalsh(linear.T @ linear / len(POOL))
    own = float((values / (values + settings.ridge)).sum())
    assert own <= (1.0 if two else 0.75) * target
    more = min(1.5 * max(target - own, target / 2), len(POOL) / 2, 250)
    assert settings.residual_ridge == pytest.approx(ridge_of(residual, more), rel=1e-3)
    r = (own + more) / (mu * n)
    assert settings.rounds == min(max(round(0.5 / r), 8 if two else 12), 32)
    assert settings.averaged == (0.5 if two else 0.3)
    parts = ((moments, settings.ridge), (moments.residual, settings.residual_ridge))
    length = hypot(*(np.median(part.lengths(ridge)) for part, ridge in parts))
    share = 0.8 * min(max(0.45 * np.sqrt(0.04 / r), 0.45), 1.0) if two else 0.32
    assert settings.clip == pytest.approx(share * length)
    assert settings.length == (pytest.approx(length) if two else None)


def test_lengths_are_of_rows_that_the_map_was_fitted_without(feature_map, moments):
    """Every row of the pool is a landmark: at its own one a row is as near as can be, and no other row is."""
    settings = settings_for(moments, n_classes=2, n_units=3_000, mu=0.3)
    within = np.linalg.norm(moments.coordinates(settings)[:, moments.block_sizes(settings)[0] :], axis=1)
    others = feature_map.fitted_on(POOL[:120])
    rest, held = (public_features(others, rows)[:, others.n_linear :] for rows in (POOL[:120], POOL[120:]))
    by_hand = PoolMoments.of(rest).spectrum.whitening(settings.residual_ridge or 0.0)
    middle = np.median(moments.residual.lengths(settings.residual_ridge or 0.0))
    assert middle == pytest.approx(np.median(np.linalg.norm(held @ by_hand, axis=1)), rel=0.15)
    assert middle != pytest.approx(np.median(within), rel=0.05)


@pytest.mark.heavy
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_plan_adds_bounded_vectors_at_its_price(feature_map, n_classes):
    plan = plan_direct(feature_map, POOL, n_classes=n_classes, **HOW)
    check_contributions(plan, POOL)
    assert 1.0 - 1e-4 < price(plan.event, 1e-5) <= 1.0
    assert sum(plan.block_sizes) == plan.coordinates.n_coordinates
    z = plan.coordinates(POOL) * 2.0**-plan.coordinates.bits
    assert np.mean((z**2).sum(axis=1)) == pytest.approx(plan.dimension, rel=0.05)  # but for what is left out


def test_a_twin_with_a_clip_for_each_block_is_caught(feature_map, monkeypatch):
    """Two clips of B let a unit move a sum by √2 B, and one of B is charged."""
    plan, whole = plan_direct(feature_map, POOL, n_classes=2, **HOW), contributions.record_factors
    n = plan.block_sizes[0]

    def of_records(z, lengths, codes, weights, grid):
        slope = contributions.slopes(z, codes, weights, grid)
        blocks = (z[:, :n], z[:, n:])
        return np.vstack([own.T @ whole(slope, np.linalg.norm(own, axis=1), grid) for own in blocks]).astype(np.int64)

    rows, codes, weights = made_up(plan, POOL)
    assert faults_of(plan, rows, codes, weights) == []
    small = plan_direct(feature_map, POOL, n_classes=2, clip=plan.settings.clip / 20, **HOW)
    monkeypatch.setattr("quorate.direct.contribution_check.of_records", of_records)
    assert "a contribution is longer than the clip" in faults_of(small, rows, codes, weights)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("m", "epsilon"), [(2, 1.0), (3, 1e-3), (9, 0.5), (40, 1e-3), (160, 1e-3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_rows_and_little_privacy_leave_a_direction_of_each_block(m, epsilon, n_classes):
    pool = POOL[:m]
    plan = plan_direct(
        feature_map_for("kernels", pool), pool, n_classes=n_classes, n_units=30, epsilon=epsilon, delta=1e-5
    )
    assert min(plan.block_sizes) >= 1
    check_contributions(plan, pool)
    wild = plan.start + RNG.normal(size=plan.start.shape) * 1e6
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(plan.shrunk(wild, pool, plan.settings.rounds)).all()


@pytest.mark.heavy
def test_an_outline_is_the_plan_of_a_run(feature_map):
    budgets = PlannedBudgets(POOL, "kernels")
    how = {"n_classes": 2, **HOW, "neighbours": "replace"}
    outline, plan = budgets.outline(**how), plan_direct(feature_map, POOL, **how)
    assert (outline.settings, outline.numbers, outline.event) == (plan.settings, plan.numbers, plan.event)
    assert outline.settings.in_digest == plan.settings.in_digest
    difference = outline.integers(budgets.along(POOL)) - plan.coordinates(POOL)
    assert np.abs(difference).max() <= 0.02 * 2**plan.coordinates.bits
    weights = RNG.normal(size=plan.start.shape)
    assert np.allclose(outline.shrunk(weights, 3_000, 9), plan.shrunk(weights, POOL, 9), rtol=1e-3, atol=1e-4)


SETTINGS = DirectSettings(ridge=0.1, clip=1.5, rounds=10, residual_ridge=0.1, length=3.0)


@pytest.mark.heavy
def test_the_noise_of_the_average_is_that_of_the_recursion():
    """Played many times: weights near a minimum, with the noise of every round and no clip."""
    curvature = np.array([0.02, 0.1, 0.25])
    rng, steps = np.random.default_rng(3), []
    for _ in range(4_000):
        w, path = np.zeros(3), []
        for _ in range(SETTINGS.rounds):
            w = w - SETTINGS.rate * curvature * w + SETTINGS.rate * rng.normal(size=3)
            path.append(w)
        steps.append(np.mean(path[-averaged_rounds(SETTINGS, SETTINGS.rounds) :], axis=0))
    noisy, gain = _of_average(SETTINGS, RoundNoise(1.0, 1, SETTINGS.rounds), curvature)
    assert np.allclose(np.var(steps, axis=0), noisy, rtol=0.1)
    kept = 1 - SETTINGS.rate * curvature
    assert np.allclose(gain, 1 - np.mean([kept**t for t in range(6, 11)], axis=0))


def test_variances_are_the_sums_over_rows():
    """Row by row, outcome by outcome, as the formula says it."""
    rng = np.random.default_rng(4)
    z, w = rng.normal(size=(30, 4)), rng.normal(size=4)
    z = z * (SETTINGS.length or 0) / np.median(np.linalg.norm(z, axis=1))  # so that nothing is rescaled
    rounds = RoundNoise(20.0, 500, 10)
    h, g = np.zeros(4), np.zeros(4)
    for row in z:
        p, length = 1 / (1 + np.exp(-row @ w)), np.linalg.norm(row)
        for chance, slope in ((p, 1 - p), (1 - p, p)):
            factor = min(1.0, SETTINGS.clip / (slope * length))
            h += chance * factor * p * (1 - p) * row**2 / len(z)
            g += chance * (factor * slope) ** 2 * row**2 / len(z)
    kept = 1 - 4 * h
    counts = np.array(
        [[sum(kept[j] ** (t - i) for t in range(max(i, 6), 11)) * 4 / 5 for j in range(4)] for i in range(1, 11)]
    )
    gain = 1 - np.mean([kept**t for t in range(6, 11)], axis=0)
    expected = (counts**2).sum(axis=0) * (20 / 500) ** 2 + gain**2 * g / (h**2 * 500)
    assert np.allclose(error_variances(w, z, SETTINGS, rounds), expected)


@pytest.mark.parametrize("intercept", [0.0, -4.0])
def test_bands_are_shrunk_by_part_of_what_james_and_stein_take_away(intercept):
    z = np.random.default_rng(5).normal(size=(50, 30))
    z[:, 0] = 1.0
    weights = np.random.default_rng(6).normal(size=(30, 1)) * 0.1
    weights[0] = intercept
    rounds = RoundNoise(5.0, 2_000, 10)
    variances = error_variances(weights[:, 0], z, SETTINGS, rounds)
    scale = SETTINGS.length / np.median(np.linalg.norm(z, axis=1))
    mean = float(np.mean(1 / (1 + np.exp(-(scale * z @ weights)))))
    assert (mean < 0.2) == (intercept < 0)  # so that one class is rare
    result = shrunk(weights, z, SETTINGS, rounds, (20, 10))[:, 0]
    for start, end in ((0, 8), (8, 18), (20, 28)):
        q, w = end - start, weights[start:end, 0]
        share = 1 - 2 * mean * (1 - mean)
        factor = max(0.0, 1 - share * (q - 2) / q * variances[start:end].sum() / (w**2).sum())
        assert np.allclose(result[start:end], factor * w)
    assert (result[18:20] == weights[18:20, 0]).all()  # two coordinates say too little of their size
    assert (shrunk(weights, z, DirectSettings(0.1, 1.5, 10), rounds, (30,)) == weights).all()
    assert (shrunk(np.zeros((30, 1)), z, SETTINGS, rounds, (20, 10)) == 0).all()


def test_the_last_rounds_that_were_stored_are_averaged():
    settings = DirectSettings(0.1, 1.0, 12, residual_ridge=0.1, averaged=0.3)
    descent = Descent(settings, Grid(10, 1.0, 20), 1, np.zeros((2, 3)))
    steps = np.random.default_rng(7).integers(-(2**20), 2**20, size=(5, 2, 3))
    descent.replay(steps)
    path = np.cumsum(4.0 * steps * 2.0**-20, axis=0)
    assert np.allclose(descent.result(), path[-2:].mean(axis=0))  # 30 % of five, rounded up
    assert [averaged_rounds(settings, n) for n in (1, 3, 4, 10, 20)] == [1, 1, 2, 3, 6]


def test_a_digest_of_a_run_without_blocks_is_what_it_was():
    assert (
        repr(DirectSettings(0.1, 1.0, 12)) == "DirectSettings(ridge=0.1, clip=1.0, rounds=12, rate=4.0, momentum=0.0)"
    )
    plan = plan_direct(feature_map_for("linear", POOL), POOL, n_classes=2, **HOW)
    assert plan.settings.in_digest == ()


@pytest.mark.heavy
def test_a_fit_learns_what_is_not_linear_and_says_how():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(3_300, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    fit = PrivateLogisticRegression(
        classes=[0, 1], epsilon=3.0, delta=1e-5, n_records=2_700, feature_map="kernels", unsafe_noise_seed=1
    ).fit(X[:2_700], y[:2_700], public=PublicPool(X[2_700:3_000]))
    assert fit.score(X[3_000:], y[3_000:]) > 0.8
    said = " ".join(render_text(fit.facts()).replace("│", " ").split())
    assert "their likeness to rows of the pool by two kernels, a Gaussian one" in said


def test_the_default_follows_from_what_columns_hold():
    rng = np.random.default_rng(9)
    indicators, pixels = rng.integers(0, 2, (50, 20)).astype(float), rng.integers(0, 17, (50, 64)).astype(float)
    lists = {n: np.eye(n + 1)[rng.integers(0, n, 400)] for n in (4, 40)}
    assert default_map(POOL) == "kernels"
    assert default_map(indicators) == default_map(sparse.csr_matrix(POOL)) == "linear"
    assert default_map(pixels) == "both"
    assert default_map(lists[4], [(0, 5)]) == "kernels"
    assert default_map(lists[40], [(0, 41)]) == "linear"
    assert default_map(np.hstack([POOL[:50], indicators])) == "kernels"


@pytest.mark.heavy
def test_a_fit_that_left_its_map_open_goes_on_with_the_default_that_it_had(tmp_path, monkeypatch):
    """The ledger alone knows of it: no plan is kept beside a fit."""
    X = np.random.default_rng(10).normal(size=(300, 2))
    y, pool = (X[:, 0] > 0).astype(int)[:240], PublicPool(X[240:])
    how = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "n_records": 240}
    with monkeypatch.context() as before:
        before.setattr("quorate.direct.stored.default_map", lambda pool, categories: "both")
        begun = PrivateLogisticRegression(**how, ledger=tmp_path / "begun.db").fit(X[:240], y, public=pool)
    again = PrivateLogisticRegression(**how, ledger=tmp_path / "begun.db").fit(X[:240], y, public=pool)
    assert type(again.plan_.coordinates.feature_map).__name__ == "StackedMap"
    assert (again.predict_proba(X) == begun.predict_proba(X)).all()
    for _ in range(2):  # a fit of today finds its own charge again
        new = PrivateLogisticRegression(**how, ledger=tmp_path / "new.db").fit(X[:240], y, public=pool)
        assert isinstance(new.plan_.coordinates.feature_map, ResidualMap)
    with Ledger(tmp_path / "new.db") as ledger:
        assert sum(entry["kind"] == "reserved" for entry in ledger.export()) == 1
