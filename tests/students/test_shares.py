"""Vote shares learned from noisy votes, against slow second writings of the same models, and onto the simplex."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq, minimize
from scipy.sparse import csr_array, csr_matrix
from scipy.stats import chi2

from quorate.data.feature_maps.pool_coordinates import PoolCoordinates, PoolStandardizer
from quorate.errors import InvalidParameter
from quorate.students.shares import PRIOR_VARIANCE, VoteShares, fit_process_shares, fit_vote_shares, onto_simplex

FALSE_ALARM = 1e-6


def made_up(seed=0, *, n=40, width=3, n_classes=3, noise_sd=0.2):
    """Points, and noisy shares of a softmax of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)) * rng.uniform(0.1, 30, size=width) + rng.normal(size=width) * 5
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = z @ rng.normal(size=(width, n_classes)) + rng.normal(size=n_classes)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return X, shares + rng.normal(scale=noise_sd, size=shares.shape)


def softmax(X, shares, noise_sd, pool):
    return fit_vote_shares(X, shares, noise_sd=noise_sd, geometry=PoolCoordinates.of(pool))


def process(X, noisy, noise_sd, pool):
    return fit_process_shares(X, noisy, noise_sd=noise_sd, geometry=PoolCoordinates.of(pool).kernel(pool))


def slow_points(X):
    """Centre, divide by the standard deviation (but for indicators), shrink to length one: column by column."""
    columns = []
    for column in X.T.tolist():
        mean = sum(column) / len(column)
        spread = np.sqrt(sum((value - mean) ** 2 for value in column) / len(column))
        plain = set(column) <= {0.0, 1.0} or len(set(column)) == 1
        columns.append([(value - mean) / (1.0 if plain else spread) for value in column])
    rows = list(zip(*columns, strict=True))
    length = np.sqrt(sum(sum(value**2 for value in row) for row in rows) / len(rows))
    return np.array(rows) / (length or 1.0)


def slow_loss(theta, z, shares, noise_sd):
    """Minus the log posterior, term by term; `theta` is one row (intercept, weights) a class."""
    total = float(sum(value**2 for value in theta.ravel())) / (2 * PRIOR_VARIANCE)
    for point, row in zip(z, shares, strict=True):
        odds = [np.exp(each[0] + each[1:] @ point) for each in theta]
        total += sum((odd / sum(odds) - share) ** 2 for odd, share in zip(odds, row, strict=True)) / (2 * noise_sd**2)
    return total


def parameters(model):
    return np.column_stack([model.intercepts, model.weights])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_fit_is_that_of_a_slow_optimiser_that_knows_no_gradient(n_classes):
    X, shares = made_up(n=15, width=2, n_classes=n_classes)
    model = softmax(X, shares, 0.2, X)
    z, shape = slow_points(X), (n_classes, 3)
    found = minimize(
        lambda flat: slow_loss(flat.reshape(shape), z, shares, 0.2), np.zeros(3 * n_classes), method="BFGS", tol=1e-6
    )
    np.testing.assert_allclose(parameters(model).ravel(), found.x, atol=2e-3)
    assert slow_loss(parameters(model), z, shares, 0.2) <= found.fun + 1e-5


def steps_to_the_bottom(theta, z, shares, noise_sd):
    """How far each parameter is from where the slow loss is flat, by its slope and its bend."""
    here = slow_loss(theta, z, shares, noise_sd)
    for place in np.ndindex(*theta.shape):
        step = np.zeros_like(theta)
        step[place] = 1e-3
        up, down = (slow_loss(theta + sign * step, z, shares, noise_sd) for sign in (1, -1))
        yield abs(up - down) / 2e-3 / max(abs(up + down - 2 * here) / 1e-6, 1.0)


@pytest.mark.heavy
@given(seed=st.integers(0, 1_000), n_classes=st.integers(2, 4), noise_sd=st.sampled_from([0.05, 0.3, 2.0]))
@settings(max_examples=15, deadline=None)
def test_the_fit_stands_where_the_slow_loss_is_flat(seed, n_classes, noise_sd):
    X, shares = made_up(seed, n=12, width=2, n_classes=n_classes)
    theta, z = parameters(softmax(X, shares, noise_sd, X)), slow_points(X)
    assert max(steps_to_the_bottom(theta, z, shares, noise_sd)) <= 0.02


def test_that_test_catches_a_prior_of_another_variance(monkeypatch):
    X, shares = made_up(n=12, width=2)
    monkeypatch.setattr("quorate.students.shares.PRIOR_VARIANCE", 4 * PRIOR_VARIANCE)
    theta, z = parameters(softmax(X, shares, 0.3, X)), slow_points(X)
    assert max(steps_to_the_bottom(theta, z, shares, 0.3)) > 0.02


def test_a_half_lead_is_fitted_as_one_sigmoid_with_one_noise():
    """One number with noise τ a point, and a logistic curve whose slope has twice the prior variance."""
    X, shares = made_up(n=15, width=2, n_classes=2)
    ones, tau = shares[:, 1], 0.15
    pair = np.column_stack([1 - ones, ones])
    model = softmax(X, pair, np.sqrt(2) * tau, X)
    z = np.column_stack([np.ones(len(X)), slow_points(X)])

    def loss(slope):
        curve = 1 / (1 + np.exp(-z @ slope))
        return np.sum((curve - ones) ** 2) / (2 * tau**2) + np.sum(slope**2) / (2 * 2 * PRIOR_VARIANCE)

    found = minimize(loss, np.zeros(3), method="BFGS", tol=1e-6)
    np.testing.assert_allclose(model(X)[:, 1], 1 / (1 + np.exp(-z @ found.x)), atol=1e-3)


@pytest.mark.heavy
@given(shift=st.floats(-50, 50), factor=st.floats(0.01, 100))
@settings(max_examples=20, deadline=None)
def test_neither_origin_nor_unit_of_a_measurement_matters(shift, factor):
    X, shares = made_up(1)
    moved = X.copy()
    moved[:, 1] = factor * X[:, 1] + shift
    there = softmax(moved, shares, 0.2, moved)(moved)
    np.testing.assert_allclose(there, softmax(X, shares, 0.2, X)(X), atol=2e-3)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("fit", [softmax, process])
@pytest.mark.parametrize("container", [csr_array, csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.bool_])
def test_indicators_are_the_same_sparse_and_dense(container, dtype, fit):
    rng = np.random.default_rng(2)
    X = (rng.random((30, 6)) < 0.3).astype(np.float64)
    X[:, 4], X[:, 5] = 0, 1
    shares = rng.normal(0.5, 0.3, size=(30, 2))
    dense = fit(X[:20], shares[:20], 0.2, X)(X)
    sparse = container(X.astype(dtype))
    np.testing.assert_allclose(fit(sparse[:20], shares[:20], 0.2, sparse)(sparse), dense, atol=1e-4)


def test_small_integers_do_not_overflow():
    counts = np.array([[100], [0], [120], [3]])
    expected = PoolStandardizer.of(csr_array(counts.astype(np.float64)))
    for dtype in (np.int8, np.uint8, np.int16):
        np.testing.assert_allclose(PoolStandardizer.of(csr_array(counts.astype(dtype))).scale, expected.scale)
        np.testing.assert_allclose(PoolStandardizer.of(counts.astype(dtype)).mean, expected.mean)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, -7.3e9])
def test_a_constant_column_says_nothing(constant):
    """The mean of a thousand times 0.1 is not 0.1, and must not become a measurement."""
    X, shares = made_up(3, n=1_000)
    wider = np.column_stack([X, np.full(len(X), constant)])
    model = softmax(wider, shares, 0.2, wider)
    np.testing.assert_allclose(model(wider), softmax(X, shares, 0.2, X)(X), atol=2e-3)
    assert np.isfinite(model.weights).all()
    assert np.abs(model.weights[:, -1]).max() < 1e-3


@given(seed=st.integers(0, 100))
@settings(max_examples=10, deadline=None)
def test_the_pull_back_is_the_transpose_of_the_scores(seed):
    """⟨slopes, scores(W)⟩ = ⟨pull_back(slopes), W⟩, dense and sparse."""
    rng = np.random.default_rng(seed)
    X, weights, slopes = rng.random((7, 4)), rng.normal(size=(3, 4)), rng.normal(size=(7, 3))
    for rows in (X, csr_array(X)):
        standard = PoolStandardizer.of(rows)
        one, other = standard.scores(rows, weights, np.zeros(3)) * slopes, standard.pull_back(rows, slopes) * weights
        assert one.sum() == pytest.approx(other.sum())


def test_one_public_point_gets_its_own_share_back():
    X = np.array([[3.0, 4.0]])
    model = softmax(X, np.array([[0.2, 0.8]]), 0.001, X)
    np.testing.assert_allclose(model(X), [[0.2, 0.8]], atol=0.01)
    np.testing.assert_allclose(model(X + 5), model(X))


def test_without_an_answer_all_shares_are_equal():
    X, _ = made_up(5)
    np.testing.assert_allclose(softmax(X[:0], np.zeros((0, 4)), 0.1, X)(X), 0.25)


def test_what_a_point_lacks_of_one_is_shared_equally():
    """Teachers that abstain leave the shares short of one; the model has no use for what is missing."""
    X, shares = made_up(6)
    short = shares - 0.1
    np.testing.assert_allclose(softmax(X, short, 0.2, X)(X), softmax(X, shares, 0.2, X)(X), atol=1e-3)


@pytest.mark.heavy
@given(order=st.permutations(range(4)))
@settings(max_examples=10, deadline=None)
def test_the_order_of_the_classes_does_not_matter(order):
    X, shares = made_up(7, n_classes=4)
    plain = softmax(X, shares, 0.2, X)(X)
    np.testing.assert_allclose(softmax(X, shares[:, order], 0.2, X)(X), plain[:, order], atol=2e-3)


@pytest.mark.parametrize("fit", [softmax, process])
def test_shares_are_shares(fit):
    X, shares = made_up(8)
    estimated = fit(X, shares, 0.2, X)(np.vstack([X, 1e6 * X]))
    assert (estimated >= 0).all()
    np.testing.assert_allclose(estimated.sum(axis=1), 1)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("fit", [softmax, process])
@pytest.mark.parametrize("noise_sd", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_the_noise_is_a_number_above_zero(noise_sd, fit):
    X, shares = made_up()
    with pytest.raises(InvalidParameter, match="noise_sd"):
        fit(X, shares, noise_sd, X)


@pytest.mark.parametrize("fit", [softmax, process])
@pytest.mark.parametrize("spoil", [lambda s: s[:-1], lambda s: s[:, 0], lambda s: s + np.nan])
def test_every_point_has_one_finite_row(spoil, fit):
    X, shares = made_up()
    with pytest.raises(InvalidParameter, match="one finite row"):
        fit(X, spoil(shares), 0.2, X)


def _p_value_of_errors(*, told, true, repeats=120, n=300):
    r"""Whether the errors of the shares at one new point are of the size that the model itself predicts.

    The truth is drawn from the prior, so the squared error in standard deviations is :math:`\chi^2_1` (to first
    order: :math:`J^\top J/\tau^2 + I/v` is the precision of the parameters, J the derivative of the shares).
    """
    rng = np.random.default_rng(20260821)
    total = 0.0
    for _ in range(repeats):
        X = rng.normal(size=(n, 2))
        geometry = PoolCoordinates.of(X)
        theta = rng.normal(scale=np.sqrt(PRIOR_VARIANCE), size=(2, 3))
        truth = VoteShares(geometry, theta[:, 1:], theta[:, 0])
        noisy = truth(X) + rng.normal(scale=true, size=(n, 2))
        model = fit_vote_shares(X, noisy, noise_sd=told, geometry=geometry)
        z = np.column_stack([np.ones(n), geometry.standard.scores(X, np.eye(2), np.zeros(2))])
        # The share of class 1 depends on the difference of scores alone, and the two residuals are its ±.
        ones = model(X)[:, 1]
        derivative = (ones * (1 - ones))[:, None] * np.hstack([-z, z])
        precision = 2 * derivative.T @ derivative / told**2 + np.eye(6) / PRIOR_VARIANCE
        variance = derivative[0] @ np.linalg.solve(precision, derivative[0])
        total += (ones[0] - truth(X)[0, 1]) ** 2 / variance
    return 2 * min(chi2.cdf(total, repeats), chi2.sf(total, repeats))


@pytest.mark.heavy
def test_with_known_noise_the_recovered_shares_have_the_error_that_is_predicted():
    assert _p_value_of_errors(told=0.15, true=0.15) > FALSE_ALARM


@pytest.mark.heavy
@pytest.mark.parametrize("factor", [0.6, 1.8])
def test_that_test_catches_noise_of_another_size(factor):
    assert _p_value_of_errors(told=0.15, true=0.15 * factor) < FALSE_ALARM


ROWS = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.floats(-50, 50))


@given(rows=ROWS)
def test_the_projection_is_that_of_a_slow_search_for_the_shift(rows):
    for row, projected in zip(rows, onto_simplex(rows), strict=True):
        shift = brentq(lambda t, row=row: np.maximum(row - t, 0).sum() - 1, row.min() - 2, row.max(), xtol=1e-13)
        np.testing.assert_allclose(projected, np.maximum(row - shift, 0), atol=1e-9)


@given(rows=ROWS, lack=st.floats(-5, 5))
def test_shares_are_shares_and_what_is_lacking_is_shared_equally(rows, lack):
    projected = onto_simplex(rows)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=1), 1)
    np.testing.assert_allclose(onto_simplex(projected), projected, atol=1e-12)
    np.testing.assert_allclose(onto_simplex(rows + lack), projected, atol=1e-9)


def asked_pool(seed=0, *, n=40, m=60, width=3, n_classes=3, noise_sd=0.2):
    """A pool, its first `n` points asked, and noisy shares."""
    rng = np.random.default_rng(seed)
    pool = rng.normal(size=(m, width)) * rng.uniform(0.1, 30, size=width) + 5
    shares = rng.dirichlet(np.ones(n_classes), size=n)
    return pool, pool[:n], shares + rng.normal(scale=noise_sd, size=shares.shape)


def slow_kernel(pool, A, B):
    """Term by term, in the coordinates of the pool."""
    unit = pool.std(axis=0) * np.sqrt(pool.shape[1])
    return np.array([[np.exp(-np.sum(((a - b) / unit) ** 2) / 2) for b in B] for a in A])


def slow_mean(pool, X, noisy, noise_sd, new):
    """The posterior mean by a direct solve in the space of the answers."""
    n_classes = noisy.shape[1]
    v = (1 / n_classes) * (1 - 1 / n_classes)
    known = v * (1 + slow_kernel(pool, X, X)) + noise_sd**2 * np.eye(len(X))
    across = v * (1 + slow_kernel(pool, new, X))
    return 1 / n_classes + across @ np.linalg.solve(known, noisy - 1 / n_classes)


@pytest.mark.heavy
@given(
    seed=st.integers(0, 1_000), n_classes=st.integers(2, 4), width=st.integers(1, 4),
    noise_sd=st.sampled_from([0.01, 0.1, 0.7, 5.0]),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_the_mean_is_that_of_a_direct_solve_at_every_public_point(seed, n_classes, width, noise_sd):
    pool, X, noisy = asked_pool(seed, n_classes=n_classes, width=width, noise_sd=noise_sd)
    model = process(X, noisy, noise_sd, pool)
    np.testing.assert_allclose(model.mean(pool), slow_mean(pool, X, noisy, noise_sd, pool), atol=1e-4, rtol=1e-4)


def test_between_the_public_points_it_is_the_same_to_a_thousandth():
    pool, X, noisy = asked_pool(1, width=2)
    model = process(X, noisy, 0.2, pool)
    new = pool.mean(axis=0) + 0.5 * (pool - pool.mean(axis=0))
    np.testing.assert_allclose(model.mean(new), slow_mean(pool, X, noisy, 0.2, new), atol=1e-3)


@pytest.mark.parametrize("wrong", [{"noise_sd": 0.4}, {"noise_sd": 0.1}])
def test_that_test_catches_another_noise_than_was_said(wrong):
    pool, X, noisy = asked_pool(2)
    model = process(X, noisy, **wrong, pool=pool)
    assert np.abs(model.mean(pool) - slow_mean(pool, X, noisy, 0.2, pool)).max() > 0.01


def test_a_half_lead_is_one_regression_and_its_mirror_image():
    pool, X, noisy = asked_pool(3, n_classes=2)
    pair = np.column_stack([1 - noisy[:, 1], noisy[:, 1]])
    model = process(X, pair, 0.2, pool)
    alone = slow_mean(pool, X, pair, 0.2, pool)[:, 1]
    np.testing.assert_allclose(model(pool)[:, 1], np.clip(alone, 0, 1), atol=1e-4)
    np.testing.assert_allclose(model.mean(pool).sum(axis=1), 1)


def p_value_of_a_process(*, told, true, repeats=100, n=30):
    """Whether errors at a point not asked are of the size that the posterior predicts; the truth is from the prior."""
    rng = np.random.default_rng(20260821)
    total = 0.0
    for _ in range(repeats):
        pool = rng.normal(size=(n + 1, 2))
        prior = 0.25 * (1 + slow_kernel(pool, pool, pool))
        truth = 0.5 + np.linalg.cholesky(prior + 1e-10 * np.eye(n + 1)) @ rng.normal(size=n + 1)
        ones = truth[:n] + rng.normal(scale=true, size=n)
        model = fit_process_shares(
            pool[:n], np.column_stack([1 - ones, ones]), noise_sd=told, geometry=PoolCoordinates.of(pool).kernel(pool)
        )
        known = prior[:n, :n] + told**2 * np.eye(n)
        variance = prior[n, n] - prior[n, :n] @ np.linalg.solve(known, prior[n, :n])
        total += (model.mean(pool[n:])[0, 1] - truth[n]) ** 2 / variance
    return 2 * min(chi2.cdf(total, repeats), chi2.sf(total, repeats))


@pytest.mark.heavy
def test_with_known_noise_the_errors_are_those_that_the_posterior_predicts():
    assert p_value_of_a_process(told=0.15, true=0.15) > FALSE_ALARM


@pytest.mark.heavy
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_that_test_catches_noise_that_is_not_what_it_is_said_to_be(factor):
    assert p_value_of_a_process(told=0.15, true=0.15 * factor) < FALSE_ALARM
