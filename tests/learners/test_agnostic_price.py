"""What the realizable-to-agnostic transformation costs: the formula, and the exact privacy of tiny instances."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learners import exact

from quorate.accounting import ApproxDP, PureDP
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import NoisyThreshold
from quorate.learners.agnostic.learner import AgnosticLearner, SubsampledAgnostic, SubsampledSplit, subsampled_error
from quorate.learners.agnostic.price import AgnosticPrice, affordable_learner
from quorate.learners.concepts import Thresholds
from quorate.noise import SeededNoise

DOMAIN, CUT = Thresholds(bits=16), 30_000


def noisy_rows(n=20_000, flipped=0.1, seed=0):
    """Rows of a threshold, of whose labels such a share is wrong."""
    random = np.random.default_rng(seed)
    X = random.integers(0, DOMAIN.domain_size, (n, 1))
    return X, ((X[:, 0] < CUT) ^ (random.random(n) < flipped)).astype(np.int8)


shares = st.tuples(st.integers(2, 10**7), st.floats(0, 1)).map(
    lambda t: (t[0], min(max(int(t[0] * t[1]), 1), t[0] - 1))
)


def by_the_two_bounds(price):
    """ε from the two bounds on p₁ themselves, with 50 digits: the best P₁ for every split of P₂ = 1 between a and b."""
    mp = exact.EXACT
    q = exact.exact(Fraction(price.n_sampled, price.n))
    e = mp.exp(mp.mpf(price.choice_epsilon))
    m = 4 * mp.exp(mp.mpf(price.choice_epsilon) / q + mp.mpf(price.learner_epsilon))

    def most(b):
        a = (1 - q * b) / (1 - q)
        return (1 - q) * e * a + q * min(m * a, m / e * b)

    corner = e / (1 - q + q * e)  # where the two bounds on the rows with row 1 sampled meet: b = e^{ε_e} a
    return mp.log(max(most(mp.mpf(0)), most(corner), most(1 / q)))


def paper(price):
    q = price.n_sampled / price.n
    return np.logaddexp(
        price.choice_epsilon, np.log(4 * q / (1 - q)) + price.choice_epsilon / q + price.learner_epsilon
    )


prices = st.builds(
    lambda sizes, choice, learner, delta: AgnosticPrice(
        n=sizes[0], n_sampled=sizes[1], choice_epsilon=choice * sizes[1] / sizes[0], learner_epsilon=learner,
        learner_delta=delta,
    ),
    shares,
    st.floats(0, 20),
    st.floats(0, 20),
    st.sampled_from([0.0, 1e-9, 0.1]),
)  # fmt: skip


@given(prices)
def test_epsilon_is_the_worst_case_of_the_two_bounds_rounded_up_by_a_hair(price):
    true = by_the_two_bounds(price)

    assert price.epsilon >= true
    assert price.epsilon <= true * (1 + 1e-9) + 1e-12


@given(prices)
def test_it_is_never_above_the_papers_own_price(price):
    assert price.epsilon <= paper(price) * (1 + 1e-9)
    assert price.delta >= exact.exact(Fraction(price.n_sampled, price.n)) * exact.exact(price.learner_delta)
    assert price.delta <= 4 * price.share * np.exp(price.choice_epsilon / price.share) * price.learner_delta * (
        1 + 1e-9
    )


def test_it_is_a_tenth_below_the_papers_price_where_it_is_used():
    price = AgnosticPrice(n=10_000, n_sampled=100, choice_epsilon=0.005, learner_epsilon=0.5)

    assert price.epsilon < 0.91 * paper(price)


@given(shares, st.floats(1e-4, 20), st.floats(0, 1), st.sampled_from([0.0, 1e-9, 1e-3]))
def test_what_is_affordable_costs_no_more_than_the_target_and_nearly_as_much(sizes, epsilon, share, delta):
    n, n_sampled = sizes
    choice = share * epsilon * n_sampled / n
    price = affordable_learner(epsilon, delta, n=n, n_sampled=n_sampled, choice_epsilon=choice)

    if price is None:
        least = AgnosticPrice(n=n, n_sampled=n_sampled, choice_epsilon=choice, learner_epsilon=1e-5)
        assert least.epsilon > epsilon
    else:
        assert price.epsilon <= epsilon
        assert price.delta <= delta
        assert price.epsilon >= epsilon * (1 - 1e-6)
        assert price.delta >= delta * (1 - 1e-6) or price.learner_delta == 0.5


def test_a_price_with_delta_is_charged_as_approximate():
    assert isinstance(AgnosticPrice(n=9, n_sampled=1, choice_epsilon=0.1, learner_epsilon=1).event, PureDP)
    event = AgnosticPrice(n=9, n_sampled=3, choice_epsilon=0.1, learner_epsilon=1, learner_delta=0.03).event
    assert isinstance(event, ApproxDP)
    assert event.delta == pytest.approx(0.01)


def test_wrong_parameters_are_refused():
    wrong = {
        "n": (1, True), "n_sampled": (0, 9), "choice_epsilon": (-0.1, float("nan")), "learner_epsilon": ("1",),
        "learner_delta": (1.1,),
    }  # fmt: skip
    for argument, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidParameter, match=argument):
                AgnosticPrice(
                    **{"n": 9, "n_sampled": 3, "choice_epsilon": 0.1, "learner_epsilon": 1.0, argument: value}
                )


def test_a_price_beyond_every_float_is_infinite_and_cannot_be_charged():
    price = AgnosticPrice(n=10**6, n_sampled=1, choice_epsilon=1, learner_epsilon=1)

    assert price.epsilon == float("inf")
    with pytest.raises(InvalidParameter, match="beyond every float"):
        _ = price.event


TWO, THREE = exact.thresholds(2), exact.thresholds(3)


def claimed(n, n_sampled, choice_epsilon, learner_epsilon):
    return AgnosticPrice(
        n=n, n_sampled=n_sampled, choice_epsilon=choice_epsilon, learner_epsilon=learner_epsilon
    ).epsilon


def on_its_own(concepts, T, W, labellings):
    return [sum(label != y for (_, y), label in zip(T, h, strict=True)) for h in labellings]


told, votes = exact.told_row_by_row, exact.votes_of_parts
# They agree on the first point: only a row with another point tells them apart, and then in every answer.
APART, ALL = ((0, 0, 0, 0, 0), (0, 1, 1, 1, 1)), (1, 2, 3, 4)
ANY_ORDER = {"samples": exact.uniform_subsets}  # where the base learner does not look at it
BY_EXPONENTIAL = {"choose": exact.exponential, **ANY_ORDER}
SPLIT = SubsampledSplit(n_kept=2, epsilon_0=1.0, learner_epsilon=2.0, learner_delta=0.0, excess=1.0)
INSTANCES = {
    # class, points, n, s, ε_e, the base learner, what else is not as usual, the claim, least share of it that is true
    "two points, half sampled": (TWO, 2, 4, 2, 0.5, told(2, 2), ANY_ORDER, claimed(4, 2, 0.5, 2), 0.35),
    "two points, most sampled": (TWO, 2, 4, 3, 0.5, told(2, 2), ANY_ORDER, claimed(4, 3, 0.5, 2), 0.5),
    "two points, a loud learner": (TWO, 2, 4, 2, 0.125, told(2, 5), ANY_ORDER, claimed(4, 2, 0.125, 5), 0.7),
    "two points, one of five": (TWO, 2, 5, 1, 0.125, told(2, 5), BY_EXPONENTIAL, claimed(5, 1, 0.125, 5), 0.5),
    "three points": (THREE, 3, 3, 2, 0.5, told(3, 2), BY_EXPONENTIAL, claimed(3, 2, 0.5, 2), 0.4),
    "point functions": (
        exact.point_functions(3), 3, 4, 1, 0.125, told(3, 3), ANY_ORDER, claimed(4, 1, 0.125, 3), 0.3
    ),
    "a learner that sees the order": (TWO, 2, 3, 2, 0.25, told(2, 3, in_order=True), {}, claimed(3, 2, 0.25, 3), 0.3),
    "a real base learner": (THREE, 3, 4, 2, 0.5, exact.best_of_class(THREE, 4), ANY_ORDER, claimed(4, 2, 0.5, 4), 0.0),
    "a subsample on its own": (
        TWO, 2, 4, 2, 1.0, told(2, 2.0), {"choose": exact.exponential, "scores": on_its_own, "sensitivity": 1},
        SPLIT.price(4).epsilon, 0.4,
    ),
    "four votes, one sampled": (APART, 2, 4, 1, 0.125, votes(APART, 1, 1, ALL), {}, claimed(4, 1, 0.125, 4), 0.3),
    "four votes, most sampled": (APART, 2, 4, 3, 0.125, votes(APART, 1, 1, ALL), {}, claimed(4, 3, 0.125, 4), 0.4),
    "four votes of two": (APART, 2, 4, 2, 0.125, votes(APART, 2, 1, ALL), {}, claimed(4, 2, 0.125, 4), 0.5),
    "two votes of two": (THREE, 3, 3, 2, 0.25, votes(THREE, 2, 3, (1, 2)), {}, claimed(3, 2, 0.25, 6), 0.6),
    "a single vote": (TWO, 2, 4, 2, 0.5, votes(TWO, 1, 2, (0,)), {}, claimed(4, 2, 0.5, 2), 0.05),
}  # fmt: skip


@pytest.mark.parametrize("instance", INSTANCES.values(), ids=INSTANCES)
def test_the_true_epsilon_of_tiny_instances_is_below_the_claim_and_not_far_below(instance):
    concepts, points, n, n_sampled, choice_epsilon, base, how, claim, share = instance
    law = exact.relabelled_then(base, concepts, n_sampled=n_sampled, choice_epsilon=choice_epsilon, **how)
    assert share * claim <= exact.true_epsilon(law, exact.labelled(range(points), n)).value <= claim


def approximate(rows):
    """A (0, 0.2)-DP base learner: it tells its rows, or nothing."""
    return {tuple(sorted(rows)): Fraction(1, 5), "nothing": Fraction(4, 5)}


def test_the_true_delta_is_below_the_claim_and_not_far_below():
    law = exact.relabelled_then(approximate, THREE, n_sampled=2, choice_epsilon=0.5, samples=exact.uniform_subsets)
    price = AgnosticPrice(n=4, n_sampled=2, choice_epsilon=0.5, learner_epsilon=0, learner_delta=0.2)

    worst = exact.true_delta(law, price.epsilon, exact.labelled(range(3), 4))

    assert 0.3 * price.delta <= worst.value <= price.delta


def test_without_a_secret_sample_the_claim_is_false():
    law = exact.relabelled_then(
        exact.told_row_by_row(2, 4), ((0, 0),), n_sampled=1, choice_epsilon=0.01, samples=exact.first_rows
    )

    worst = exact.true_epsilon(law, exact.labelled(range(2), 6), ordered=True)

    assert worst.value > claimed(6, 1, 0.01, 4) + 0.3


def test_with_a_sensitivity_of_one_mistake_the_claim_is_false():
    eight = {"n_sampled": 6, "choice_epsilon": 1.0, "samples": exact.uniform_subsets}
    base, constants, rows = exact.told_row_by_row(1, 1.5), ((0,), (1,)), exact.labelled([0], 8)

    right = exact.true_epsilon(exact.relabelled_then(base, constants, **eight), rows)
    wrong = exact.true_epsilon(exact.relabelled_then(base, constants, **eight, sensitivity=1), rows)

    assert right.value <= claimed(8, 6, 1.0, 1.5) < wrong.value


def test_a_fit_keeps_to_its_budget():
    X = np.random.default_rng(0).integers(0, 16, (3_000, 1))
    domain = Thresholds(bits=4)
    learner = SubsampledAgnostic(
        concepts=domain, base=NoisyThreshold(concepts=domain, epsilon=1.0), epsilon=0.5, unsafe_noise_seed=0
    )

    fitted = learner.fit(X, (X[:, 0] < 9).astype(int))

    assert fitted.guarantee_.epsilon <= 0.5
    assert fitted.plan_.split == learner.split_for(3_000)
    assert fitted.score(X, X[:, 0] < 9) > 0.8
    with pytest.raises(DataRefused, match="too few labelled rows"):
        learner.set_params(epsilon=0.01).fit(X[:5], np.ones(5))


def test_the_bound_by_hand():
    surprise = np.log(50)
    wanted = np.sqrt(surprise / 2_000) + 1e-3 + np.sqrt(1_001 * (np.log(2) + np.log(2_001) + surprise)) / 1_000
    wanted += 2 * (np.log(1_001) + surprise) / (0.5 * 1_000) + 0.03

    assert subsampled_error(1_000, 0.5, 0.03, lambda m: m + 1, 0.02) == pytest.approx(wanted)


def test_measured_on_labels_that_are_nearly_coins_all_rows_beat_a_subsample_of_them():
    """P(y = 1) = 1/2 ± γ: about 1/γ² rows show the best threshold, and a subsample of εn/3 needs n to be 1/(εγ²)."""
    n, epsilon, gamma, excess = 1_000_000, 0.1, 0.01, []
    for kind in (AgnosticLearner, SubsampledAgnostic):
        learner = kind(concepts=DOMAIN, base=NoisyThreshold(concepts=DOMAIN, epsilon=1.0), epsilon=epsilon)
        plan = learner._plan(n, 0, epsilon, 0.0)
        found = [learner._learn(*noisy_rows(n, 0.5 - gamma, seed), SeededNoise(seed), plan).cut for seed in range(5)]
        excess.append(np.mean(np.abs(np.array(found) - CUT)))
    assert excess[0] < 0.5 * excess[1]
