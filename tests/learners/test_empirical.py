"""EmpiricalLearner: its price on tiny data, its law, its planner, and the empirical error that it is for."""

from __future__ import annotations

from math import exp, log1p

import numpy as np
import pytest
from tests.learners.exact import exponential as exponential_law
from tests.learners.exact import labelled, mixture, p_value, true_epsilon, uniform_draws
from tests.learners.exact_relabelling import added, draws, worst_epsilon

from quorate.accounting import PureDP
from quorate.errors import InvalidParameter
from quorate.learners import UNLABELLED, EmpiricalLearner, ExponentialLearner
from quorate.learners.amplification import Price, cheapest_with_replacement, lwy25_lemma_2_13
from quorate.learners.concepts import Thresholds
from quorate.noise import SeededNoise

FALSE_ALARM = 1e-6
DOMAIN = Thresholds(bits=2)


def learner(**given: object) -> EmpiricalLearner:
    arguments = {
        "concepts": DOMAIN,
        "base": ExponentialLearner(concepts=DOMAIN, epsilon=1.0, selection="exponential"),
        "epsilon": 1.5,
        "unsafe_noise_seed": 3,
        **given,
    }
    return EmpiricalLearner(**arguments)  # type: ignore[arg-type]


def law_of(m: int, epsilon: float = 1.0) -> object:
    """All sequences of m draws, then the exponential mechanism over five thresholds."""

    def law(points: np.ndarray, labels: np.ndarray) -> dict[object, object]:
        parts = []
        for weight, drawn in uniform_draws(len(points), m):
            scores = [-sum(int(points[i, 0] < cut) != labels[i] for i in drawn) for cut in range(5)]
            parts.append((weight, dict(zip(range(5), exponential_law(scores, epsilon), strict=True))))
        return mixture(parts)

    return law


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2), (3, 3), (2, 4)])
def test_every_neighbouring_pair_is_within_the_planned_price(n: int, m: int) -> None:
    plan = learner(n_draws=m, epsilon=3.0)._plan(n, 0, 3.0, 0.0)
    assert plan.event.epsilon == pytest.approx(m * log1p((exp(1) - 1) / n))
    found = true_epsilon(law_of(m), labelled((0, 1, 2, 3), n))  # type: ignore[arg-type]
    assert 0.3 * plan.event.epsilon < found.value <= plan.event.epsilon


@pytest.mark.parametrize(("n", "m"), [(3, 2), (6, 4), (5, 6)])
def test_the_planned_price_is_that_of_the_worst_base_learner(n: int, m: int) -> None:
    plan = learner(n_draws=m, epsilon=4.0)._plan(n, 0, 4.0, 0.0)
    rows = ((2, 0),) * (n - 1)
    p, q = (added(draws(((x, 0), *rows), m)) for x in (0, 1))
    assert worst_epsilon(p, q, 1.0) == pytest.approx(plan.event.epsilon, abs=1e-6)


def test_a_delta_of_the_target_is_used() -> None:
    """At the price of the rule that was held against the worst learner in test_amplification."""
    spent = learner(n_draws=3, epsilon=4.0, delta=0.1)._plan(4, 0, 4.0, 0.1)
    assert Price.of_event(spent.event) == cheapest_with_replacement(Price(1.0), n_rows=4, n_draws=3, delta=0.1)
    assert spent.event.epsilon < learner(n_draws=3, epsilon=4.0)._plan(4, 0, 4.0, 0.0).event.epsilon


def drawn_cuts(m: int, runs: int = 1_000) -> list[int]:
    fitted = learner(n_draws=m, epsilon=10.0)
    plan = fitted._plan(4, 1, 10.0, 0.0)
    points = np.array([[0], [2], [1], [3], [3]])
    labels = np.array([1, UNLABELLED, 1, 0, 0], dtype=np.int8)
    noise = SeededNoise(9)
    return [fitted._learn(points, labels, noise.at("run", i), plan).cut for i in range(runs)]  # type: ignore[attr-defined]


def test_what_runs_has_the_law_that_was_priced_and_a_learner_that_draws_more_is_caught() -> None:
    law = law_of(3)(np.array([[0], [1], [3], [3]]), np.array([1, 1, 0, 0]))  # type: ignore[operator]
    assert p_value(law, drawn_cuts(3)) > FALSE_ALARM
    assert p_value(law, drawn_cuts(6)) < FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_as_many_draws_are_made_as_the_target_allows(epsilon: float) -> None:
    plan = learner(epsilon=epsilon)._plan(1_000, 0, epsilon, 0.0)
    assert plan.event.epsilon <= epsilon < (plan.n_draws + 1) * log1p((exp(1) - 1) / 1_000)


def test_the_planner_needs_a_third_of_the_rows_of_lemma_2_12_at_most() -> None:
    """n = ⌈6εm⌉ there, for ε' = 1."""
    needed = learner(epsilon=1.0).rows_needed()
    draws_ = learner().base.rows_needed().labelled
    assert needed.unlabelled == 0
    assert lwy25_lemma_2_13(Price(1.0), n_rows=6 * draws_, n_draws=draws_).epsilon == pytest.approx(1.0)
    assert 3 * needed.labelled < 6 * draws_
    assert learner(epsilon=1.0)._plan(needed.labelled, 0, 1.0, 0.0).n_draws >= draws_
    assert learner(epsilon=1.0)._plan(needed.labelled - 1, 0, 1.0, 0.0).n_draws < draws_


def test_the_empirical_error_is_small_on_rows_that_are_a_sample_of_nothing() -> None:
    domain = Thresholds(bits=8)
    X = np.concatenate([np.full(900, 3), np.full(900, 200)])[:, None]
    y = (X[:, 0] < 100).astype(int)
    fitted = learner(
        concepts=domain, base=ExponentialLearner(concepts=domain, epsilon=1.0), epsilon=1.0, rows="theorem"
    ).fit(X, y)
    assert fitted.score(X, y) > 0.9
    assert fitted.plan_.event == PureDP(fitted.plan_.event.epsilon)
    assert fitted.guarantee_.epsilon <= 1.0
    assert fitted.n_labels_used_ == 1_800
    assert fitted.transcript_covered_


def test_rows_without_a_label_are_left_out() -> None:
    X, y = np.zeros((400, 1), dtype=int), np.zeros(400, dtype=int)
    y[100:] = UNLABELLED
    assert learner().fit(X, y).plan_.n_rows == 100


@pytest.mark.parametrize(
    ("given", "n", "message"),
    [
        ({"n_draws": 9}, 4, "labels for 9 draws"),
        ({"epsilon": 0.001}, 4, "labels for 1 draws"),
        ({}, 0, "labels"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, object], n: int, message: str) -> None:
    X, y = np.zeros((9, 1), dtype=int), np.full(9, UNLABELLED)
    y[:n] = 0
    with pytest.raises(InvalidParameter, match=message):
        learner(**given).fit(X, y)
