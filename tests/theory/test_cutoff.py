"""Cut-offs: as printed, and the one that holds for a mean error, checked by exact tails and by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from quorate import theory

rates = st.floats(0, 1)
betas = st.floats(1e-9, 0.5)


def test_the_printed_value_at_a_hand_computed_point():
    """(γ+α)m = 25, m/β = e^8: 3 (25 + sqrt(25 · 8 / 2)) = 3 (25 + 10)."""
    assert theory.btt18_cutoff(0.05, 500, 500 / math.exp(8)) == pytest.approx(105)


@pytest.mark.parametrize(("error", "m"), [(0.01, 1_000), (0.1, 1_000), (0.3, 10_000)])
def test_at_the_printed_constant_a_teacher_passes_b_far_more_often_than_the_proof_needs(error, m):
    beta = 0.05
    b = theory.btt18_cutoff(error, m, beta) / 3
    passing = stats.binom.sf(math.floor(b), m, error)

    assert passing > 50 * beta / m  # what a union over m or more teachers would need
    assert passing < (beta / m) ** 0.25


def test_at_a_small_beta_the_printed_cutoff_is_passed_more_often_than_beta():
    """On a share 3e of the queries a third of the teachers, drawn anew, is mistaken: each errs with rate e.

    How many such queries there are is binomial, and T has to bound it.
    """
    error, m, beta = 0.005, 200, 1e-9
    printed, ours = math.ceil(theory.btt18_cutoff(error, m, beta)), theory.cutoff_for_mean_error(error, m, beta)

    assert stats.binom.sf(printed - 1, m, 3 * error) > 1e3 * beta
    assert stats.binom.sf(ours - 1, m, 3 * error) <= beta


@given(error=st.floats(0, 0.3), m=st.integers(1, 5_000), beta=betas)
def test_the_worst_teachers_pass_it_with_at_most_beta(error, m, beta):
    """Mean e means that a share 1/3 (and a hair) errs together on as many queries as 3e allows; T is passed rarely."""
    cut = theory.cutoff_for_mean_error(error, m, beta)
    if cut < m:
        assert stats.binom.sf(cut - 1, m, min(3 * error, 1.0)) <= beta * (1 + 1e-9)


@pytest.mark.parametrize("error", [0.02, 0.1, 0.2])
def test_simulated_ensembles_stay_below_it(error):
    """30 teachers, some better, some worse, that err on the same hard queries: failures no more often than β."""
    rng = np.random.default_rng(5)
    m, beta, trials, k = 200, 0.1, 400, 30
    own = np.linspace(0.5, 1.5, k) * error
    cut = theory.cutoff_for_mean_error(error, m, beta)
    failures = 0
    for _ in range(trials):
        hard = rng.random(m) < 2 * error  # on hard queries teachers err with half their rate over 2e, else elsewhere
        rate = np.where(hard[:, None], 0.5 * own / (2 * error), 0.5 * own / (1 - 2 * error))
        mistaken = (rng.random((m, k)) < rate).mean(axis=1)
        failures += int((mistaken > 1 / 3).sum() >= cut)
    assert stats.binom.sf(failures - 1, trials, beta) > 1e-6


def test_that_simulation_catches_a_cut_at_the_mean_itself():
    """Without the deviation term: 3 e m of queries are passed about half of the time by the worst teachers."""
    error, m, beta = 0.1, 200, 0.1
    rng = np.random.default_rng(6)
    passed = (rng.random((400, m)) < 3 * error).sum(axis=1) >= math.ceil(3 * error * m)

    assert stats.binom.sf(passed.sum() - 1, 400, beta) < 1e-6


@given(error=rates, m=st.integers(1, 10**6), beta=betas)
def test_it_is_a_number_of_queries_that_grows_with_the_error_and_with_certainty(error, m, beta):
    cut = theory.cutoff_for_mean_error(error, m, beta)

    assert 1 <= cut <= m
    assert cut <= theory.cutoff_for_mean_error(min(1.0, error + 0.1), m, beta)
    assert cut <= theory.cutoff_for_mean_error(error, m, beta / 2)
    assert cut >= min(m, math.floor(3 * error * m))


def test_no_error_at_all_still_leaves_one_answer():
    assert theory.cutoff_for_mean_error(0, 1_000, 0.05) == pytest.approx(1, abs=10)
    assert theory.cutoff_for_mean_error(1, 1_000, 0.05) == 1_000
