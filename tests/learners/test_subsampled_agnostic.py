"""The yardstick, and what LWY25's transformation needs beside it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.learners import agnostic_study as study
from tests.learners import exact

from quorate.errors import DataRefused
from quorate.learners import ExponentialLearner, NoisyThreshold
from quorate.learners.agnostic.learner import SubsampledAgnostic, SubsampledPlan, SubsampledSplit, subsampled_error
from quorate.learners.concepts import Thresholds
from quorate.noise import SeededNoise

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
