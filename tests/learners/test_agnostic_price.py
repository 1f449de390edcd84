"""What the realizable-to-agnostic transformation costs: the formula, and the exact privacy of tiny instances."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learners import agnostic_study as study
from tests.learners import exact

from quorate.accounting import ApproxDP, PureDP
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import ExponentialLearner, NoisyThreshold
from quorate.learners.agnostic.learner import SubsampledAgnostic, SubsampledPlan, SubsampledSplit, subsampled_error
from quorate.learners.agnostic.price import AgnosticPrice, affordable_learner
from quorate.learners.concepts import Thresholds
from quorate.noise import SeededNoise

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


@given(prices, st.sampled_from(["choice_epsilon", "learner_epsilon"]), st.floats(1, 2))
def test_it_grows_with_either_epsilon(price, name, factor):
    more = {
        each: getattr(price, each) * (factor if each == name else 1) for each in ("choice_epsilon", "learner_epsilon")
    }

    assert AgnosticPrice(n=price.n, n_sampled=price.n_sampled, **more).epsilon >= price.epsilon * (1 - 1e-9)


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


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("n", 1),
        ("n", True),
        ("n_sampled", 0),
        ("n_sampled", 9),
        ("choice_epsilon", -0.1),
        ("choice_epsilon", float("nan")),
        ("learner_epsilon", "1"),
        ("learner_delta", 1.1),
    ],
)
def test_wrong_parameters_are_refused(argument, value):
    good = {"n": 9, "n_sampled": 3, "choice_epsilon": 0.1, "learner_epsilon": 1.0}

    with pytest.raises(InvalidParameter, match=argument):
        AgnosticPrice(**{**good, argument: value})


def test_a_price_beyond_every_float_is_infinite_and_cannot_be_charged():
    price = AgnosticPrice(n=10**6, n_sampled=1, choice_epsilon=1, learner_epsilon=1)

    assert price.epsilon == float("inf")
    with pytest.raises(InvalidParameter, match="beyond every float"):
        _ = price.event


# --- exact privacy ---------------------------------------------------------------------------------------------------

TWO, THREE = exact.thresholds(2), exact.thresholds(3)


def claimed(n, n_sampled, choice_epsilon, learner_epsilon):
    return AgnosticPrice(
        n=n, n_sampled=n_sampled, choice_epsilon=choice_epsilon, learner_epsilon=learner_epsilon
    ).epsilon


INSTANCES = {
    # class, points, n, s, ε_e, ε_A, mechanism, least share of the claim that is true
    "two points, half sampled": (TWO, 2, 4, 2, 0.5, 2, exact.permute_and_flip, 0.35),
    "two points, most sampled": (TWO, 2, 4, 3, 0.5, 2, exact.permute_and_flip, 0.5),
    "two points, a loud learner": (TWO, 2, 4, 2, 0.125, 5, exact.permute_and_flip, 0.7),
    "two points, one of five sampled": (TWO, 2, 5, 1, 0.125, 5, exact.exponential, 0.5),
    "three points": (THREE, 3, 3, 2, 0.5, 2, exact.exponential, 0.4),
    "point functions": (exact.point_functions(3), 3, 4, 1, 0.125, 3, exact.permute_and_flip, 0.3),
}


@pytest.mark.parametrize("instance", INSTANCES.values(), ids=INSTANCES)
def test_the_true_epsilon_of_tiny_instances_is_below_the_claim_and_not_far_below(instance):
    concepts, points, n, n_sampled, choice_epsilon, learner_epsilon, choose, share = instance
    law = exact.relabelled_then(
        exact.told_row_by_row(points, learner_epsilon),
        concepts,
        n_sampled=n_sampled,
        choice_epsilon=choice_epsilon,
        choose=choose,
        samples=exact.uniform_subsets,  # the base learner does not look at the order
    )

    worst = exact.true_epsilon(law, exact.labelled(range(points), n))

    claim = claimed(n, n_sampled, choice_epsilon, learner_epsilon)
    assert share * claim <= worst.value <= claim


def test_a_base_learner_that_looks_at_the_order_is_covered_where_the_order_is_random():
    law = exact.relabelled_then(exact.told_row_by_row(2, 3, in_order=True), TWO, n_sampled=2, choice_epsilon=0.25)

    worst = exact.true_epsilon(law, exact.labelled(range(2), 3))

    assert 0.3 * claimed(3, 2, 0.25, 3) <= worst.value <= claimed(3, 2, 0.25, 3)


def test_a_real_base_learner_stays_far_below():
    law = exact.relabelled_then(
        exact.best_of_class(THREE, 4), THREE, n_sampled=2, choice_epsilon=0.5, samples=exact.uniform_subsets
    )

    assert exact.true_epsilon(law, exact.labelled(range(3), 4)).value <= claimed(4, 2, 0.5, 4)


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


# --- the yardstick, and what the transformation needs beside it ------------------------------------------------------


FALSE_ALARM = 1e-6
GRID, FOUR = Thresholds(bits=2), exact.thresholds(4)
POINTS = np.array([[0], [1], [1], [2], [3]])
LABELS = np.array([1, 0, 0, 1, 0], dtype=np.int8)


def on_its_own(concepts, T, W, labellings):
    return [sum(label != y for (_, y), label in zip(T, h, strict=True)) for h in labellings]


def law_of(epsilon_0, learner_epsilon, concepts=FOUR):
    return exact.relabelled_then(
        exact.best_of_class(concepts, learner_epsilon),
        concepts,
        n_sampled=2,
        choice_epsilon=epsilon_0,
        choose=exact.exponential,
        scores=on_its_own,
        sensitivity=1,
    )


def test_what_is_learned_follows_the_exact_law():
    split = SubsampledSplit(n_kept=2, epsilon_0=2.0, learner_epsilon=3.0, learner_delta=0.0, excess=1.0)
    base = ExponentialLearner(concepts=GRID, epsilon=3.0)
    learner = SubsampledAgnostic(concepts=GRID, base=base, epsilon=9.0)
    plan = SubsampledPlan(
        event=split.price(5).event,
        told="a test",
        n_labels=5,
        n_rows=5,
        split=split,
        base=base,
        base_fit=learner._base_fit(base, 2),
    )
    root, domain = SeededNoise(3), np.arange(4).reshape(-1, 1)

    drawn = [
        tuple(learner._learn(POINTS, LABELS, root.at("draw", i), plan).labels(domain).tolist()) for i in range(2_000)
    ]

    assert exact.p_value(law_of(2.0, 3.0)(POINTS, LABELS), drawn) > FALSE_ALARM
    assert exact.p_value(law_of(2.0, 1.0)(POINTS, LABELS), drawn) < FALSE_ALARM


def test_the_true_epsilon_of_a_tiny_instance_is_below_the_claim():
    split = SubsampledSplit(n_kept=2, epsilon_0=1.0, learner_epsilon=2.0, learner_delta=0.0, excess=1.0)
    two = exact.thresholds(2)
    law = exact.relabelled_then(
        exact.told_row_by_row(2, 2.0),
        two,
        n_sampled=2,
        choice_epsilon=1.0,
        choose=exact.exponential,
        scores=on_its_own,
        sensitivity=1,
    )

    worst = exact.true_epsilon(law, exact.labelled(range(2), 4))

    assert 0.4 * split.price(4).epsilon <= worst.value <= split.price(4).epsilon


def test_a_fit_keeps_to_its_budget():
    random = np.random.default_rng(0)
    X = random.integers(0, 16, (3_000, 1))
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


@pytest.mark.parametrize(("alpha", "saved"), [(0.1, 1.05), (0.05, 1.4), (0.02, 2.3), (0.01, 3.8)])
def test_at_a_tenth_fewer_extra_rows_are_proven_to_be_enough_than_for_a_subsample(alpha, saved):
    found = study.extra_rows(0.1, alpha)

    assert found.beyond("subsample") > saved * found.beyond("all rows")


def test_the_extra_rows_of_a_subsample_grow_as_one_over_epsilon_and_those_of_all_rows_slower():
    small, large = study.extra_rows(0.05, 0.01), study.extra_rows(0.5, 0.01)

    assert small.beyond("subsample") > 9 * large.beyond("subsample")
    assert small.beyond("all rows") < 7 * large.beyond("all rows")


def test_measured_on_labels_that_are_nearly_coins_all_rows_beat_a_subsample_of_them():
    given = {"n": 1_000_000, "epsilon": 0.1, "gamma": 0.01, "seeds": range(5)}

    all_rows, subsample = (study.measured_excess(name, **given).mean() for name in study.LEARNERS)

    assert all_rows < 0.5 * subsample
