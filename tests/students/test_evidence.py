"""The student of coordinates against its definition: a posterior mean, and the variance of the largest evidence."""

import numpy as np
import pytest

from quorate.students.student import LinearPrior
from quorate.students.values import fit_linear_shares, linear_share_student

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
