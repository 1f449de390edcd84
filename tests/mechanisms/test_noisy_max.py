"""Noisy maxima: exact output laws summed term by term, the draws against them, and the price against both."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from quorate.accounting import delta, epsilon
from quorate.mechanisms import GaussianNoisyMax, LaplaceNoisyMax, NoisyCounts
from quorate.noise import OSNoise, SeededNoise, discrete_gaussian

N = 100_000


HISTOGRAMS = [(4, 3, 0), (5, 5, 5), (10, 0), (0, 0, 1, 0), (9, 12, 8, 11)]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("counts", HISTOGRAMS, ids=str)
@pytest.mark.parametrize("sigma", [0.5, 3.0, 20.0])
def test_the_histogram_form_has_its_exact_law(exact, counts, sigma):
    answers = GaussianNoisyMax(sigma=sigma).release_many(exact.repeat(counts), SeededNoise(1))

    assert exact.fit(answers, exact.wins(counts, *exact.gaussian(sigma))) > exact.FALSE_ALARM


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("counts", [(4, 3), (3, 4), (5, 5), (0, 0), (0, 7), (6, 0)], ids=str)
@pytest.mark.parametrize("sigma", [0.5, 3.0, 20.0])
def test_the_binary_form_has_its_exact_law(exact, counts, sigma):
    answers = GaussianNoisyMax(sigma=sigma, form="binary").release_many(exact.repeat(counts), SeededNoise(2))

    assert exact.fit(answers, exact.half_lead_wins(counts, *exact.gaussian(sigma))) > exact.FALSE_ALARM


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("n_teachers", [1, 2, 7, 10])
def test_the_binary_form_asks_for_more_than_half_of_the_votes(exact, n_teachers):
    """With every teacher voting it is 1{n_1 + Z > K/2}, word for word."""
    for ones in range(n_teachers + 1):
        counts = exact.repeat((n_teachers - ones, ones), 300)
        answers = GaussianNoisyMax(sigma=2.0, form="binary").release_many(counts, SeededNoise(3))
        noisy = ones + discrete_gaussian(2.0, 300, SeededNoise(3))

        np.testing.assert_array_equal(answers, noisy > n_teachers / 2)


def test_noisy_counts_are_what_the_noisy_max_is_the_maximum_of():
    counts = np.random.default_rng(0).multinomial(30, [0.4, 0.4, 0.2], 500)
    values = NoisyCounts(sigma=4.0).release_many(counts, SeededNoise(4))
    answers = GaussianNoisyMax(sigma=4.0).release_many(counts, SeededNoise(4))
    np.testing.assert_array_equal(values.argmax(axis=1), answers)

    leads = NoisyCounts(sigma=4.0, form="binary").release_many(counts[:, :2], SeededNoise(5))
    answers = GaussianNoisyMax(sigma=4.0, form="binary").release_many(counts[:, :2], SeededNoise(5))
    np.testing.assert_array_equal(leads > 0, answers)


@pytest.mark.parametrize("form", ["histogram", "binary"])
def test_noisy_counts_add_independent_noise_to_every_value(exact, form):
    counts = exact.repeat((7, 3))
    noise = NoisyCounts(sigma=2.0, form=form).release_many(counts, SeededNoise(6)) - (
        counts if form == "histogram" else -2
    )
    z, p = exact.gaussian(2.0)
    columns = noise.reshape(N, -1).T

    for column in columns:
        assert exact.fit(column - z[0], p) > exact.FALSE_ALARM
    if form == "histogram":
        assert abs(np.corrcoef(columns)[0, 1]) < 5 / np.sqrt(N)


def shared_noise(counts, sigma, source):
    return (counts + discrete_gaussian(sigma, (len(counts), 1), source)).argmax(axis=1)


def sigma_as_variance(counts, sigma, source):
    return (counts + discrete_gaussian(np.sqrt(sigma), counts.shape, source)).argmax(axis=1)


def half_the_noise(counts, sigma, source):
    return (counts + discrete_gaussian(sigma / 2, counts.shape, source)).argmax(axis=1)


def one_seed_for_every_query(counts, sigma, source):
    return (counts + discrete_gaussian(sigma, (1, counts.shape[1]), source)).argmax(axis=1)


def noise_for_the_winner_alone(counts, sigma, source):
    noisy = counts.copy()
    noisy[np.arange(len(counts)), counts.argmax(axis=1)] += discrete_gaussian(sigma, len(counts), source)
    return noisy.argmax(axis=1)


def ties_to_the_highest(counts, sigma, source):
    noisy = counts + discrete_gaussian(sigma, counts.shape, source)
    return counts.shape[1] - 1 - noisy[:, ::-1].argmax(axis=1)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "cheat",
    [
        shared_noise,
        sigma_as_variance,
        half_the_noise,
        one_seed_for_every_query,
        noise_for_the_winner_alone,
        ties_to_the_highest,
    ],
)
def test_that_test_catches_a_mechanism_that_cheats(exact, cheat):
    counts, sigma = (9, 12, 8, 11), 3.0

    assert (
        exact.fit(cheat(exact.repeat(counts), sigma, SeededNoise(7)), exact.wins(counts, *exact.gaussian(sigma)))
        < exact.FALSE_ALARM
    )


def test_the_binary_test_catches_a_half_lead_rounded_down_or_not_halved(exact):
    z, p = exact.gaussian(3.0)
    for counts, twin in [((3, 6), (6 - 3) // 2), ((3, 6), 6 - 3)]:
        answers = (twin + discrete_gaussian(3.0, N, SeededNoise(8)) > 0).astype(int)

        assert exact.fit(answers, exact.half_lead_wins(counts, z, p)) < exact.FALSE_ALARM


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("n_classes", "n_teachers"), [(2, 6), (3, 4)])
@pytest.mark.parametrize("sigma", [0.6, 1.0, 2.0])
@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 2.0])
def test_no_neighbouring_pair_loses_more_than_the_price(exact, n_classes, n_teachers, sigma, eps):
    """The exact privacy loss of one answer, over all neighbouring histograms, stays within the accountant's curve."""
    forms = {"histogram": exact.wins} | ({"binary": exact.half_lead_wins} if n_classes == 2 else {})
    for form, wins in forms.items():
        worst = exact.worst_delta(lambda c: wins(c, *exact.gaussian(sigma)), n_classes, n_teachers, eps)  # noqa: B023

        assert worst <= delta(GaussianNoisyMax(sigma=sigma, form=form).event, eps) + 1e-12


def test_a_claim_of_twice_the_noise_is_refuted_by_some_pair(exact):
    worst = exact.worst_delta(lambda c: exact.half_lead_wins(c, *exact.gaussian(1.0)), 2, 6, 0.3)

    assert worst > delta(GaussianNoisyMax(sigma=2.0, form="binary").event, 0.3)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("counts", HISTOGRAMS, ids=str)
@pytest.mark.parametrize("scale", [0.5, 3.0, 20.0])
def test_the_laplace_noisy_max_has_its_exact_law(exact, counts, scale):
    answers = LaplaceNoisyMax(laplace_scale=scale).release_many(exact.repeat(counts), SeededNoise(9))

    assert exact.fit(answers, exact.wins(counts, *exact.laplace(scale))) > exact.FALSE_ALARM


@pytest.mark.parametrize("scale", [2.7, 3.3, 3.0 * np.sqrt(2)])
def test_that_test_catches_another_scale(exact, scale):
    counts = (9, 12, 8, 11)
    answers = LaplaceNoisyMax(laplace_scale=scale).release_many(exact.repeat(counts), SeededNoise(9))

    assert exact.fit(answers, exact.wins(counts, *exact.laplace(3.0))) < exact.FALSE_ALARM


@pytest.mark.heavy
@pytest.mark.parametrize(("n_classes", "n_teachers"), [(2, 6), (3, 4)])
@pytest.mark.parametrize("scale", [0.6, 1.0, 2.0])
def test_no_neighbouring_pair_loses_more_than_the_price_of_laplace_noise(exact, n_classes, n_teachers, scale):
    event = LaplaceNoisyMax(laplace_scale=scale).event
    for eps in (0.0, 0.4, 1.0, 2.0):
        worst = exact.worst_delta(lambda c: exact.wins(c, *exact.laplace(scale)), n_classes, n_teachers, eps)

        assert worst <= delta(event, eps) + 1e-12
    assert_allclose(epsilon(event, 0.0), 2 / scale, rtol=1e-9)


@pytest.mark.parametrize("eps", [0.0, 0.5, 1.0])
def test_noisy_counts_spend_their_whole_price(exact, eps):
    """The half-lead is where the price is exact: the loss of a shift by one equals the accountant's delta."""
    sigma = 1.5
    _z, p = exact.gaussian(sigma)
    shifted = np.roll(p, 1)
    shifted[0] = 0
    loss = np.maximum(shifted - np.exp(eps) * p, 0).sum()

    assert_allclose(delta(NoisyCounts(sigma=sigma, form="binary").event, eps), loss, rtol=1e-6)


def test_a_price_without_the_root_of_two_would_be_caught(exact):
    """Sensitivity 1 instead of √2: some pair of histograms loses more than that event's curve allows."""
    sigma, eps = 1.0, 1.0
    _z, p = exact.gaussian(sigma)
    # The vector of counts moves by (+1, −1); its loss is that of the difference of the two coordinates.
    joint = np.outer(p, p)
    moved = np.roll(np.roll(joint, 1, axis=0), -1, axis=1)
    loss = np.maximum(moved - np.exp(eps) * joint, 0).sum()

    assert loss <= delta(NoisyCounts(sigma=sigma).event, eps) * (1 + 1e-9)
    assert loss > delta(NoisyCounts(sigma=sigma, form="binary").event, eps)


def test_answers_of_real_noise_have_the_exact_law(exact):
    counts = (9, 12, 8, 11)
    answers = GaussianNoisyMax(sigma=3.0).release_many(exact.repeat(counts), OSNoise())

    assert exact.fit(answers, exact.wins(counts, *exact.gaussian(3.0))) > exact.FALSE_ALARM


@pytest.mark.heavy
def test_a_million_rows_need_no_more_memory_than_a_block_at_a_time():
    import tracemalloc

    counts = np.broadcast_to(np.array([3, 1, 0], dtype=np.int64), (1_000_000, 3))
    tracemalloc.start()
    answers = GaussianNoisyMax(sigma=1.0).release_many(counts, OSNoise())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < answers.nbytes + 64e6
