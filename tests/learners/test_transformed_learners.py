"""SubSampling, EmpiricalLearner: price on tiny data, law, planner; who is asked; the error on the rows themselves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import exp, log1p

import numpy as np
import pytest
from tests.learners.exact import EXACT, Part, labelled, mixture, p_value, true_epsilon, uniform_draws, uniform_subsets
from tests.learners.exact import exponential as exponential_law
from tests.learners.exact_relabelling import added, draws, worst_epsilon

from quorate.accounting import PureDP
from quorate.errors import DataRefused, InvalidParameter, LedgerMismatch
from quorate.learners import UNLABELLED, EmpiricalLearner, ExponentialLearner, SubSampling
from quorate.learners.amplification import Price, cheapest_with_replacement, lwy25_lemma_2_13
from quorate.learners.concepts import Thresholds
from quorate.learners.sub_sampling import bns15_claim_5_7, subsampling
from quorate.ledger import Budget, Ledger
from quorate.noise import SeededNoise

FALSE_ALARM = 1e-6
DOMAIN = Thresholds(bits=2)
DATA = np.array([[0], [1], [3], [3], [2]]), np.array([1, 1, 0, 0, 1], dtype=np.int8)


def learner(**given: object) -> SubSampling:
    arguments = {
        "concepts": DOMAIN,
        "base": ExponentialLearner(concepts=DOMAIN, epsilon=1.0, selection="exponential"),
        "epsilon": 2.0,
        "unsafe_noise_seed": 3,
        **given,
    }
    return SubSampling(**arguments)  # type: ignore[arg-type]


def law_of(n: int, m: int, which: str, epsilon: float) -> object:
    """The whole learner: all samples, all choices of labels, and the exponential mechanism over five thresholds."""

    def law(points: np.ndarray, labels: np.ndarray) -> dict[object, object]:
        def chosen(K: tuple[int, ...]) -> dict[object, object]:
            scores = [-sum(int(points[i, 0] < cut) != labels[i] for i in K) for cut in range(5)]
            return dict(zip(range(5), exponential_law(scores, epsilon), strict=True))

        parts = []
        for weight, sample in uniform_subsets(len(points), n):
            known = [sample[:m]] if which == "first" else list(combinations(sample, m))
            parts += [(weight / len(known), chosen(K)) for K in known]
        return mixture(parts)

    return law


@pytest.mark.parametrize(("which", "t", "n", "m"), [("random", 4, 2, 1), ("first", 4, 3, 1), ("first", 3, 2, 1)])
def test_every_neighbouring_pair_is_within_the_claim(which, t, n, m):
    claimed = subsampling(Price(1.0), n_rows=t, n_kept=n, labelled=which).epsilon  # type: ignore[arg-type]
    rows: Part = labelled((0, 1, 3), t)
    found = true_epsilon(law_of(n, m, which, 1.0), rows, ordered=which == "first")  # type: ignore[arg-type]
    assert 0.2 < found.value <= claimed


def test_a_learner_that_samples_nothing_is_caught():
    """All rows, all labels, and the price of one row in four."""
    claimed = subsampling(Price(1.0), n_rows=4, n_kept=1).epsilon
    found = true_epsilon(law_of(4, 4, "random", 1.0), labelled((0, 3), 4))  # type: ignore[arg-type]
    assert found.value > claimed + 0.1


def cuts(which: str, runs: int, *, m: int = 2) -> list[int]:
    fitted = learner(labelled=which, base_rows=3, n_labels=m)
    plan = fitted._plan(5, 0, 5.0, 0.0)
    noise = SeededNoise(9)
    return [fitted._learn(*DATA, noise.at("run", i), plan).cut for i in range(runs)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("which", ["random", "first"])
def test_what_runs_has_the_law_that_was_priced(which):
    law = law_of(3, 2, which, 1.0)(*DATA)  # type: ignore[operator]
    assert EXACT.fsum(law.values()) == pytest.approx(1)
    assert p_value(law, cuts(which, 1_000)) > FALSE_ALARM


def test_that_test_catches_a_learner_that_asks_for_all_labels():
    law = law_of(3, 1, "first", 1.0)(*DATA)  # type: ignore[operator]
    assert p_value(law, cuts("first", 2_000, m=3)) < FALSE_ALARM


def test_the_plan_is_the_exact_price_of_its_sizes():
    plan = learner(base_rows=2, n_labels=1)._plan(3, 0, 2.0, 0.0)
    assert plan.event == PureDP(plan.event.epsilon)
    assert plan.event.epsilon == pytest.approx(np.log1p(2 / 3 * (exp(1) - 1)))
    first = learner(base_rows=2, n_labels=1, labelled="first")._plan(3, 0, 2.0, 0.0)
    assert first.event.epsilon == pytest.approx(0.8966, abs=1e-4)
    both = learner(base_rows=2, n_labels=2, labelled="first")._plan(3, 0, 2.0, 0.0)
    assert both.event == plan.event  # nobody gains or loses a label


@pytest.mark.parametrize("which", ["random", "first"])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 0.9])
def test_as_many_rows_are_sampled_as_the_target_allows(which, epsilon):
    plan = learner(labelled=which, n_labels=10)._plan(1_000, 0, epsilon, 0.0)
    assert plan.event.epsilon <= epsilon
    more = subsampling(Price(1.0), n_rows=1_000, n_kept=plan.n_kept + 1, labelled=which)  # type: ignore[arg-type]
    assert more.epsilon > epsilon
    assert plan.n_labels == 10


def test_the_labels_asked_for_do_not_grow_as_epsilon_falls():
    needs = {epsilon: learner(epsilon=epsilon).rows_needed() for epsilon in (0.01, 0.1, 1.0)}
    assert len({each.labelled for each in needs.values()}) == 1
    total = {epsilon: each.labelled + each.unlabelled for epsilon, each in needs.items()}
    assert total[0.01] == pytest.approx(10 * total[0.1], rel=0.06)
    for epsilon, rows in total.items():  # Claim 5.7 asks for more
        kept = needs[epsilon].labelled
        assert rows <= bns15_claim_5_7(Price(1.0), epsilon=epsilon, n_kept=kept)[0]


def test_a_callable_is_asked_once_for_the_labels_of_m_rows():
    X = np.random.default_rng(2).integers(0, 4, (500, 1))
    y = (X[:, 0] < 2).astype(int)
    asked = []

    def owner(indices: np.ndarray) -> np.ndarray:
        asked.append(indices)
        return y[indices]

    fitted = learner(epsilon=0.5, n_labels=40).fit(X, owner)
    assert len(asked) == 1
    assert asked[0].tolist() == sorted(set(asked[0].tolist()))
    assert len(asked[0]) == 40 == fitted.n_labels_used_
    assert fitted.concept_ == learner(epsilon=0.5, n_labels=40).fit(X, y).concept_
    assert not fitted.transcript_covered_
    assert any("must not be told" in caveat for caveat in fitted.guarantee_.caveats)
    assert not hasattr(fitted, "_asked")


def test_with_first_labels_the_smallest_indices_of_the_sample_are_asked():
    X = np.zeros((30, 1), dtype=int)
    found: list[list[int]] = []

    def owner(indices: np.ndarray) -> list[int]:
        found.append(indices.tolist())
        return [1] * len(indices)

    for seed in range(30):
        learner(labelled="first", n_labels=3, base_rows=15, unsafe_noise_seed=seed).fit(X, owner)
    assert max(map(max, found)) < 20  # P[the third of 15 out of 30 is beyond 20] < 1e-7
    found.clear()
    for seed in range(30):
        learner(labelled="random", n_labels=3, base_rows=15, unsafe_noise_seed=seed).fit(X, owner)
    assert max(map(max, found)) >= 20


@pytest.mark.parametrize("answers", [[1], [0, 1, UNLABELLED], [[0, 1, 0]], ["a", "b", "c"]])
def test_answers_that_are_no_labels_are_refused(answers):
    with pytest.raises(DataRefused):
        learner(n_labels=3).fit(np.zeros((9, 1), dtype=int), lambda _: answers)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_labels": 5, "base_rows": 4}, "base_rows"),
        ({"base_rows": 10, "n_labels": 3}, "at least"),
        ({"epsilon": 0.001, "n_labels": 3}, "at least 1,718 rows"),
        ({"base": ExponentialLearner(concepts=DOMAIN, epsilon=300.0), "labelled": "first"}, "no number of rows"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(InvalidParameter, match=message):
        learner(**given).fit(np.zeros((9, 1), dtype=int), np.zeros(9, dtype=int))


def test_a_row_without_a_label_is_refused():
    with pytest.raises(DataRefused, match="label for every row"):
        learner().fit(np.zeros((9, 1), dtype=int), [0] * 8 + [UNLABELLED])


def test_each_oracle_is_asked_and_paid_for_in_one_and_the_same_ledger():
    domain, ledger = Thresholds(bits=10), Ledger(budget=Budget(2.5, 0.0))
    X = np.random.default_rng(0).integers(0, 1024, (3_000, 1))
    base = ExponentialLearner(concepts=domain, epsilon=3.0)
    fitted = SubSampling(concepts=domain, base=base, epsilon=1.0, n_labels=150, base_rows=150, ledger=ledger)
    asked: list[int] = []

    def oracle(cut: int) -> Callable[[np.ndarray], np.ndarray]:
        def answer(indices: np.ndarray) -> np.ndarray:
            asked.append(cut)
            return (X[indices, 0] < cut).astype(int)

        return answer

    found = [fitted.fit(X, oracle(cut)).concept_.cut for cut in (900, 100, 100)]  # type: ignore[attr-defined]
    assert asked == [900, 100, 100]
    assert found[0] > 700
    assert max(found[1:]) < 300
    assert len(ledger.reservations()) == 3
    once = ledger.reservations()[0].event.epsilon  # type: ignore[union-attr]
    assert ledger.spent.epsilon == pytest.approx(3 * once, abs=1e-8)


def test_labels_that_an_oracle_has_not_told_are_not_taken_for_zeros():
    ledger, X = Ledger(budget=Budget(5.0, 0.0)), np.arange(400).reshape(-1, 1) % 4
    fitted = learner(base_rows=3, n_labels=2, ledger=ledger)
    fitted.fit(X, lambda indices: np.zeros(len(indices), dtype=int))
    with pytest.raises(LedgerMismatch):
        fitted.fit(X, np.zeros(400, dtype=int))


def test_a_fit_on_the_same_labels_in_an_array_is_recalled():
    ledger, X = Ledger(budget=Budget(5.0, 0.0)), np.arange(400).reshape(-1, 1) % 4
    fitted = learner(base_rows=3, n_labels=2, ledger=ledger)
    for _ in range(2):
        fitted.fit(X, np.zeros(400, dtype=int))
    assert len(ledger.reservations()) == 1


# --- EmpiricalLearner ----------------------------------------------------------------------------------------------


def empirical(**given: object) -> EmpiricalLearner:
    arguments = {
        "concepts": DOMAIN,
        "base": ExponentialLearner(concepts=DOMAIN, epsilon=1.0, selection="exponential"),
        "epsilon": 1.5,
        "unsafe_noise_seed": 3,
        **given,
    }
    return EmpiricalLearner(**arguments)  # type: ignore[arg-type]


def law_of_draws(m: int, epsilon: float = 1.0) -> object:
    """All sequences of m draws, then the exponential mechanism over five thresholds."""

    def law(points: np.ndarray, labels: np.ndarray) -> dict[object, object]:
        parts = []
        for weight, drawn in uniform_draws(len(points), m):
            scores = [-sum(int(points[i, 0] < cut) != labels[i] for i in drawn) for cut in range(5)]
            parts.append((weight, dict(zip(range(5), exponential_law(scores, epsilon), strict=True))))
        return mixture(parts)

    return law


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2), (3, 3), (2, 4)])
def test_every_neighbouring_pair_is_within_the_planned_price(n, m):
    plan = empirical(n_draws=m, epsilon=3.0)._plan(n, 0, 3.0, 0.0)
    assert plan.event.epsilon == pytest.approx(m * log1p((exp(1) - 1) / n))
    found = true_epsilon(law_of_draws(m), labelled((0, 1, 2, 3), n))  # type: ignore[arg-type]
    assert 0.3 * plan.event.epsilon < found.value <= plan.event.epsilon


@pytest.mark.parametrize(("n", "m"), [(3, 2), (6, 4), (5, 6)])
def test_the_planned_price_is_that_of_the_worst_base_learner(n, m):
    plan = empirical(n_draws=m, epsilon=4.0)._plan(n, 0, 4.0, 0.0)
    rows = ((2, 0),) * (n - 1)
    p, q = (added(draws(((x, 0), *rows), m)) for x in (0, 1))
    assert worst_epsilon(p, q, 1.0) == pytest.approx(plan.event.epsilon, abs=1e-6)


def test_a_delta_of_the_target_is_used():
    """At the price of the rule that was held against the worst learner in test_amplification."""
    spent = empirical(n_draws=3, epsilon=4.0, delta=0.1)._plan(4, 0, 4.0, 0.1)
    assert Price.of_event(spent.event) == cheapest_with_replacement(Price(1.0), n_rows=4, n_draws=3, delta=0.1)
    assert spent.event.epsilon < empirical(n_draws=3, epsilon=4.0)._plan(4, 0, 4.0, 0.0).event.epsilon


def cuts_of_draws(m: int, runs: int = 1_000) -> list[int]:
    fitted = empirical(n_draws=m, epsilon=10.0)
    plan = fitted._plan(4, 1, 10.0, 0.0)
    points = np.array([[0], [2], [1], [3], [3]])
    labels = np.array([1, UNLABELLED, 1, 0, 0], dtype=np.int8)
    noise = SeededNoise(9)
    return [fitted._learn(points, labels, noise.at("run", i), plan).cut for i in range(runs)]  # type: ignore[attr-defined]


def test_what_runs_has_the_law_that_was_priced_and_a_learner_that_draws_more_is_caught():
    law = law_of_draws(3)(np.array([[0], [1], [3], [3]]), np.array([1, 1, 0, 0]))  # type: ignore[operator]
    assert p_value(law, cuts_of_draws(3)) > FALSE_ALARM
    assert p_value(law, cuts_of_draws(6)) < FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_as_many_draws_are_made_as_the_target_allows(epsilon):
    plan = empirical(epsilon=epsilon)._plan(1_000, 0, epsilon, 0.0)
    assert plan.event.epsilon <= epsilon < (plan.n_draws + 1) * log1p((exp(1) - 1) / 1_000)


def test_the_planner_needs_a_third_of_the_rows_of_lemma_2_12_at_most():
    """n = ⌈6εm⌉ there, for ε' = 1."""
    needed = empirical(epsilon=1.0).rows_needed()
    draws_ = empirical().base.rows_needed().labelled
    assert needed.unlabelled == 0
    assert lwy25_lemma_2_13(Price(1.0), n_rows=6 * draws_, n_draws=draws_).epsilon == pytest.approx(1.0)
    assert 3 * needed.labelled < 6 * draws_
    assert empirical(epsilon=1.0)._plan(needed.labelled, 0, 1.0, 0.0).n_draws >= draws_
    assert empirical(epsilon=1.0)._plan(needed.labelled - 1, 0, 1.0, 0.0).n_draws < draws_


def test_the_empirical_error_is_small_on_rows_that_are_a_sample_of_nothing():
    domain = Thresholds(bits=8)
    X = np.concatenate([np.full(900, 3), np.full(900, 200)])[:, None]
    y = (X[:, 0] < 100).astype(int)
    fitted = empirical(
        concepts=domain, base=ExponentialLearner(concepts=domain, epsilon=1.0), epsilon=1.0, rows="theorem"
    ).fit(X, y)
    assert fitted.score(X, y) > 0.9
    assert fitted.plan_.event == PureDP(fitted.plan_.event.epsilon)
    assert fitted.guarantee_.epsilon <= 1.0
    assert fitted.n_labels_used_ == 1_800
    assert fitted.transcript_covered_


def test_rows_without_a_label_are_left_out():
    X, y = np.zeros((400, 1), dtype=int), np.zeros(400, dtype=int)
    y[100:] = UNLABELLED
    assert empirical().fit(X, y).plan_.n_rows == 100


@pytest.mark.parametrize(
    ("given", "n", "message"),
    [
        ({"n_draws": 9}, 4, "labels for 9 draws"),
        ({"epsilon": 0.001}, 4, "labels for 1 draws"),
        ({}, 0, "labels"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given, n, message):
    X, y = np.zeros((9, 1), dtype=int), np.full(9, UNLABELLED)
    y[:n] = 0
    with pytest.raises(InvalidParameter, match=message):
        empirical(**given).fit(X, y)
