"""SubSampling, EmpiricalLearner: price on tiny data, law, planner; who is asked; the error on the rows themselves."""

from functools import partial
from itertools import combinations
from math import exp, log1p

import numpy as np
import pytest
from tests.learners import exact

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


CUTS = exact.thresholds(4)
CHOSEN = exact.best_of_class(CUTS, 1.0, exact.exponential)


def made(kind, **given):
    base = ExponentialLearner(concepts=DOMAIN, epsilon=1.0, selection="exponential")
    return kind(**{"concepts": DOMAIN, "base": base, "epsilon": 2.0, "unsafe_noise_seed": 3, **given})


learner, empirical = partial(made, SubSampling), partial(made, EmpiricalLearner)


def rows_of(points, labels):
    return list(zip(points[:, 0].tolist(), labels.tolist(), strict=True))


def law_of(n, m, which):
    """The whole learner: all samples, all choices of labels, and the exponential mechanism over five thresholds."""

    def law(points, labels):
        rows, parts = rows_of(points, labels), []
        for weight, sample in exact.uniform_subsets(len(rows), n):
            known = [sample[:m]] if which == "first" else list(combinations(sample, m))
            parts += [(weight / len(known), CHOSEN(tuple(rows[i] for i in K))) for K in known]
        return exact.mixture(parts)

    return law


@pytest.mark.parametrize(("which", "t", "n", "m"), [("random", 4, 2, 1), ("first", 4, 3, 1), ("first", 3, 2, 1)])
def test_every_neighbouring_pair_is_within_the_claim(which, t, n, m):
    claimed = subsampling(Price(1.0), n_rows=t, n_kept=n, labelled=which).epsilon
    found = exact.true_epsilon(law_of(n, m, which), exact.labelled((0, 1, 3), t), ordered=which == "first")
    assert 0.2 < found.value <= claimed


def test_a_learner_that_samples_nothing_is_caught():
    """All rows, all labels, and the price of one row in four."""
    claimed = subsampling(Price(1.0), n_rows=4, n_kept=1).epsilon
    found = exact.true_epsilon(law_of(4, 4, "random"), exact.labelled((0, 3), 4))
    assert found.value > claimed + 0.1


def cuts(fitted, plan, data, runs=1_000):
    noise = SeededNoise(9)
    return [CUTS[fitted._learn(*data, noise.at("run", i), plan).cut] for i in range(runs)]


@pytest.mark.parametrize(
    ("which", "m", "asked", "runs"), [("random", 2, 2, 1_000), ("first", 2, 2, 1_000), ("first", 1, 3, 2_000)]
)
def test_what_runs_has_the_law_that_was_priced_and_a_learner_that_asks_for_all_labels_is_caught(which, m, asked, runs):
    law = law_of(3, m, which)(*DATA)
    assert exact.EXACT.fsum(law.values()) == pytest.approx(1)
    fitted = learner(labelled=which, base_rows=3, n_labels=asked)
    drawn = cuts(fitted, fitted._plan(5, 0, 5.0, 0.0), DATA, runs)
    assert (exact.p_value(law, drawn) > FALSE_ALARM) is (asked == m)


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
    more = subsampling(Price(1.0), n_rows=1_000, n_kept=plan.n_kept + 1, labelled=which)
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

    def owner(indices):
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
    X, largest = np.zeros((30, 1), dtype=int), {}

    for which in ("first", "random"):
        found = largest[which] = []
        for seed in range(30):
            learner(labelled=which, n_labels=3, base_rows=15, unsafe_noise_seed=seed).fit(
                X, lambda indices, found=found: found.append(max(indices)) or [1] * len(indices)
            )
    assert max(largest["first"]) < 20  # P[the third of 15 out of 30 is beyond 20] < 1e-7
    assert max(largest["random"]) >= 20


SIX = [0] * 4 + [UNLABELLED] * 5


@pytest.mark.parametrize(
    ("kind", "given", "labels", "error", "message"),
    [
        *(
            (SubSampling, {"n_labels": 3}, lambda _, answers=answers: answers, DataRefused, None)
            for answers in ([1], [0, 1, UNLABELLED], [[0, 1, 0]], ["a", "b", "c"])
        ),
        (SubSampling, {"n_labels": 5, "base_rows": 4}, [0] * 9, InvalidParameter, "base_rows"),
        (SubSampling, {"base_rows": 10, "n_labels": 3}, [0] * 9, InvalidParameter, "at least"),
        (SubSampling, {"epsilon": 0.001, "n_labels": 3}, [0] * 9, InvalidParameter, "at least 1,718 rows"),
        (
            SubSampling, {"base": ExponentialLearner(concepts=DOMAIN, epsilon=300.0), "labelled": "first"}, [0] * 9,
            InvalidParameter, "no number of rows",
        ),
        (SubSampling, {}, [0] * 8 + [UNLABELLED], DataRefused, "label for every row"),
        (EmpiricalLearner, {"n_draws": 9}, SIX, InvalidParameter, "labels for 9 draws"),
        (EmpiricalLearner, {"epsilon": 0.001}, SIX, InvalidParameter, "labels for 1 draws"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(kind, given, labels, error, message):
    with pytest.raises(error, match=message):
        made(kind, **given).fit(np.zeros((9, 1), dtype=int), labels if callable(labels) else np.array(labels))


def test_each_oracle_is_asked_and_paid_for_in_one_and_the_same_ledger():
    domain, ledger = Thresholds(bits=10), Ledger(budget=Budget(2.5, 0.0))
    X = np.random.default_rng(0).integers(0, 1024, (3_000, 1))
    base = ExponentialLearner(concepts=domain, epsilon=3.0)
    fitted = SubSampling(concepts=domain, base=base, epsilon=1.0, n_labels=150, base_rows=150, ledger=ledger)
    asked = []

    def oracle(cut):
        return lambda indices: asked.append(cut) or (X[indices, 0] < cut).astype(int)

    found = [fitted.fit(X, oracle(cut)).concept_.cut for cut in (900, 100, 100)]
    assert asked == [900, 100, 100]
    assert found[0] > 700
    assert max(found[1:]) < 300
    assert len(ledger.reservations()) == 3
    once = ledger.reservations()[0].event.epsilon
    assert ledger.spent.epsilon == pytest.approx(3 * once, abs=1e-8)


def test_labels_that_an_oracle_has_not_told_are_not_taken_for_zeros_and_those_in_an_array_are_known_again():
    X, zeros = np.arange(400).reshape(-1, 1) % 4, np.zeros(400, dtype=int)
    asked, given = (
        learner(base_rows=3, n_labels=2, ledger=Ledger(budget=Budget(5.0, 0.0))).fit(X, labels)
        for labels in (lambda indices: zeros[indices], zeros)
    )
    with pytest.raises(LedgerMismatch):
        asked.fit(X, zeros)
    given.fit(X, zeros)
    assert len(given.ledger.reservations()) == 1


def law_of_draws(m):
    """All sequences of m draws, then the exponential mechanism over five thresholds."""

    def law(points, labels):
        rows = rows_of(points, labels)
        return exact.mixture(
            (weight, CHOSEN(tuple(rows[i] for i in drawn))) for weight, drawn in exact.uniform_draws(len(rows), m)
        )

    return law


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2), (3, 3), (2, 4)])
def test_every_neighbouring_pair_is_within_the_planned_price(n, m):
    plan = empirical(n_draws=m, epsilon=3.0)._plan(n, 0, 3.0, 0.0)
    assert plan.event.epsilon == pytest.approx(m * log1p((exp(1) - 1) / n))
    found = exact.true_epsilon(law_of_draws(m), exact.labelled((0, 1, 2, 3), n))
    assert 0.3 * plan.event.epsilon < found.value <= plan.event.epsilon


def test_a_delta_of_the_target_is_used():
    """At the price of the rule that was held against the worst learner in test_amplification."""
    spent = empirical(n_draws=3, epsilon=4.0, delta=0.1)._plan(4, 0, 4.0, 0.1)
    assert Price.of_event(spent.event) == cheapest_with_replacement(Price(1.0), n_rows=4, n_draws=3, delta=0.1)
    assert spent.event.epsilon < empirical(n_draws=3, epsilon=4.0)._plan(4, 0, 4.0, 0.0).event.epsilon


def test_what_runs_has_the_law_that_was_priced_and_a_learner_that_draws_more_is_caught():
    data = np.array([[0], [2], [1], [3], [3]]), np.array([1, UNLABELLED, 1, 0, 0], dtype=np.int8)
    law = law_of_draws(3)(np.array([[0], [1], [3], [3]]), np.array([1, 1, 0, 0]))
    for m, honest in ((3, True), (6, False)):
        fitted = empirical(n_draws=m, epsilon=10.0)
        drawn = cuts(fitted, fitted._plan(4, 1, 10.0, 0.0), data)
        assert (exact.p_value(law, drawn) > FALSE_ALARM) is honest


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
