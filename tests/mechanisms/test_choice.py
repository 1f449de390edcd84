"""Exponential mechanism and permute-and-flip: exact laws, pure privacy on every neighbouring pair, exact bits."""

from fractions import Fraction
from itertools import permutations, product
from math import ceil, exp, factorial, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scripted_noise import ScriptedNoise

from quorate.accounting import PureDP
from quorate.errors import InvalidParameter
from quorate.mechanisms import Exponential, PermuteAndFlip, PrivatePrediction
from quorate.noise import OSNoise, SeededNoise

N = 100_000


def exponential_law(scores, epsilon, sensitivity=1.0):
    weights = np.array([exp(epsilon * (s - max(scores)) / (2 * sensitivity)) for s in scores])
    return weights / weights.sum()


def permute_and_flip_law(scores, epsilon, sensitivity=1.0):
    """Sum over every order of visit: the textbook's algorithm, not ours."""
    coins = [exp(epsilon * (s - max(scores)) / (2 * sensitivity)) for s in scores]
    law = np.zeros(len(scores))
    for order in permutations(range(len(scores))):
        alive = 1 / factorial(len(scores))
        for candidate in order:
            law[candidate] += alive * coins[candidate]
            alive *= 1 - coins[candidate]
    return law


MECHANISMS = [(Exponential, exponential_law), (PermuteAndFlip, permute_and_flip_law)]
both = pytest.mark.parametrize(("mechanism", "law"), MECHANISMS, ids=["exponential", "permute-and-flip"])


@pytest.mark.heavy
@both
@pytest.mark.parametrize("scores", [(3, 1), (0, 0, 0), (-4, -9, -5, -4), (10, 0, 9, 3, 10)], ids=str)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.5, 1.0), (2.0, 1.0), (1.0, 2.5)])
def test_choices_have_their_exact_law(exact, mechanism, law, scores, epsilon, sensitivity):
    choices = mechanism(epsilon=epsilon, sensitivity=sensitivity).release_many(exact.repeat(scores, N), SeededNoise(1))

    assert exact.fit(choices, law(scores, epsilon, sensitivity)) > exact.FALSE_ALARM


@pytest.mark.heavy
@both
def test_that_test_catches_twice_the_epsilon_and_the_other_mechanism(exact, mechanism, law):
    scores = (10, 7, 9, 3, 10)
    other = dict(MECHANISMS)[PermuteAndFlip if mechanism is Exponential else Exponential]
    choices = mechanism(epsilon=1.0).release_many(exact.repeat(scores, N), SeededNoise(2))

    assert exact.fit(choices, law(scores, 1.0)) > exact.FALSE_ALARM
    assert exact.fit(choices, law(scores, 2.0)) < exact.FALSE_ALARM
    assert exact.fit(choices, law(scores, 1.05)) < exact.FALSE_ALARM
    assert exact.fit(choices, other(scores, 1.0)) < exact.FALSE_ALARM


@pytest.mark.default_cases(2)
@both
@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
def test_no_score_that_moves_by_the_sensitivity_costs_more_than_epsilon(mechanism, law, epsilon):
    """Every pair of score vectors of which each entry moves by at most Δ = 1; the worst ratio reaches 90 % of ε."""
    worst = 0.0
    for scores in product(range(4), repeat=3):
        p = law(scores, epsilon)
        for moves in product((-1, 0, 1), repeat=3):
            worst = max(worst, np.log(p / law([s + m for s, m in zip(scores, moves, strict=True)], epsilon)).max())

    assert mechanism(epsilon=epsilon).event == PureDP(epsilon)
    assert worst <= epsilon + 1e-12
    assert worst > epsilon / 2


def test_without_the_factor_two_some_pair_loses_more():
    p, q = exponential_law((1, 0, 0), 2.0), exponential_law((0, 1, 1), 2.0)

    assert np.log(p / q).max() > 1.0  # claimed: ε = 1


@given(scores=st.lists(st.integers(-20, 20), min_size=2, max_size=5), epsilon=st.floats(0.05, 4))
def test_permute_and_flip_never_chooses_worse(scores, epsilon):
    """Its chosen score is stochastically at least that of the exponential mechanism."""
    flip, exponential = permute_and_flip_law(scores, epsilon), exponential_law(scores, epsilon)
    for level in set(scores):
        at_least = np.array(scores) >= level
        assert flip[at_least].sum() >= exponential[at_least].sum() - 1e-12


@pytest.mark.heavy
@both
def test_a_hopeless_candidate_is_never_chosen_and_a_tie_is_fair(exact, mechanism, law):
    choices = mechanism(epsilon=1.0).release_many(exact.repeat((5000, 0, 5000), N), SeededNoise(3))

    assert exact.fit(choices, np.array([0.5, 0.0, 0.5])) > exact.FALSE_ALARM


@both
def test_real_noise_serves_too(exact, mechanism, law):
    choices = mechanism(epsilon=1.0).release_many(exact.repeat((3, 1, 2), N // 4), OSNoise())

    assert exact.fit(choices, law((3, 1, 2), 1.0)) > exact.FALSE_ALARM


def test_the_exponential_mechanism_reads_256_bits():
    """Three equal candidates: the first border is 2^256/3, and only the last bits tell its two sides apart."""
    scores = np.zeros(3, dtype=np.int64)
    third = [0x5555555555555555] * 4
    just_above = [*third[:3], third[3] + 1]

    assert Exponential(epsilon=1.0).release(scores, ScriptedNoise(*third)) == 0
    assert Exponential(epsilon=1.0).release(scores, ScriptedNoise(*just_above)) == 1
    assert Exponential(epsilon=1.0).release(scores, ScriptedNoise(*[0] * 4)) == 0
    assert Exponential(epsilon=1.0).release(scores, ScriptedNoise(*[2**64 - 1] * 4)) == 2


def test_permute_and_flip_breaks_a_tie_of_words_by_further_words():
    flips, same, then = [2**63] * 3, [7, 7, 3], [1, 2, 9]

    assert PermuteAndFlip(epsilon=1.0).release(np.zeros(3, dtype=np.int64), ScriptedNoise(*[*flips, *same, *then])) == 1


def test_the_coins_scale_is_rounded_towards_more_noise():
    for epsilon in (0.1, 0.3, 1.0, 1.1, 7.0):
        for sensitivity in (1.0, 0.7, 3.0):
            scale = PermuteAndFlip(epsilon=epsilon, sensitivity=sensitivity)._scale
            assert Fraction(scale) >= 2 * Fraction(sensitivity) / Fraction(epsilon)


def test_one_private_prediction_is_a_choice_among_labels_by_their_votes(exact):
    counts = (9, 12, 8)
    labels = PrivatePrediction(epsilon=0.8).release_many(exact.repeat(counts, N), SeededNoise(4))

    assert exact.fit(labels, permute_and_flip_law(counts, 0.8)) > exact.FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_no_neighbouring_votes_lose_more_than_epsilon_in_one_prediction(exact, epsilon):
    laws = {c: permute_and_flip_law(c, epsilon) for c in exact.histograms(3, 6)}
    worst = max(np.log(laws[a] / laws[b]).max() for a in exact.histograms(3, 5) for b in exact.neighbours(a))

    assert worst <= PrivatePrediction(epsilon=epsilon).event.epsilon + 1e-12


@pytest.mark.parametrize(("epsilon", "alpha"), [(1.0, 0.1), (0.5, 0.1), (1.0, 0.01), (3.0, 0.4)])
def test_the_number_of_hypotheses_keeps_the_error_below_alpha(epsilon, alpha):
    """LWY25 Lemma 4.1, with hypotheses that err as unluckily as a mean of α/4 allows."""
    r = PrivatePrediction(epsilon=epsilon).n_hypotheses(alpha)
    assert r == ceil(6 * log(4 / alpha) / epsilon)

    def error(mistaken):
        return permute_and_flip_law((mistaken, r - mistaken), epsilon)[0]

    for k in range(max(1, ceil(r * alpha / 4)), r + 1):  # k hypotheses err together, as often as a mean of α/4 allows
        share = (alpha / 4) * r / k
        assert share * error(k) + (1 - share) * error(0) <= alpha


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("alpha", [0, 1, -0.1, float("nan"), True, "0.1"])
def test_alpha_is_an_error_rate(alpha):
    with pytest.raises(InvalidParameter, match=r"^alpha must be "):
        PrivatePrediction(epsilon=1.0).n_hypotheses(alpha)
