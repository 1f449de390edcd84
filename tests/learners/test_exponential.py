"""The choice among a whole finite class: its law, its exact privacy, mistakes that must be caught, its bound."""

from math import log

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.learners.exact import exponential, labelled, law_of, p_value, permute_and_flip, true_epsilon

from quorate.accounting import PureDP
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import ExponentialLearner, NoisyThreshold
from quorate.learners.base.exponential import agnostic_choice_rows, choice_rows, whole_class
from quorate.learners.concepts import FiniteClass, Interval, Intervals, PointFunctions, Rectangles, Stumps, Thresholds
from quorate.ledger import Budget, Ledger
from quorate.noise import SeededNoise

FALSE_ALARM = 1e-6
EPSILON = 1.0
LAWS = {"exponential": exponential, "permute-and-flip": permute_and_flip}


def every_interval(size):
    """All functions of an interval on a small grid, as tuples of labels."""
    found = {tuple(int(a <= x <= b) for x in range(size)) for a in range(size) for b in range(size)}
    return sorted(found | {(0,) * size})


def law_of_interval(points, labels, *, selection="exponential", epsilon=EPSILON, size=4):
    """Every interval, its mistakes counted row by row."""
    functions = every_interval(size)
    scores = [-sum(f[x] != y for x, y in zip(points[:, 0], labels, strict=True)) for f in functions]
    return law_of(functions, LAWS[selection](scores, epsilon))


@pytest.mark.parametrize("selection", LAWS)
def test_the_learner_has_the_law_that_is_audited(selection):
    learner = ExponentialLearner(concepts=Intervals(bits=2), epsilon=EPSILON, selection=selection)
    points, labels = np.array([[0], [1], [1], [3], [2]]), np.array([1, 1, 0, 0, -1], dtype=np.int8)
    plan = learner._plan(4, 1, EPSILON, 0.0)
    noise, grid = SeededNoise(17), np.arange(4).reshape(-1, 1)
    drawn = [tuple(learner._learn(points, labels, noise.at("fit", i), plan).labels(grid).tolist()) for i in range(1200)]
    law = law_of_interval(points[:4], labels[:4], selection=selection)
    assert p_value(law, drawn) > FALSE_ALARM
    assert p_value(law_of_interval(points[:4], labels[:4], selection=selection, epsilon=2.0), drawn) < FALSE_ALARM


@pytest.mark.parametrize(("selection", "used"), [("exponential", 0.8), ("permute-and-flip", 0.85)])
def test_its_true_epsilon_is_at_most_the_claim_and_most_of_it(selection, used):
    worst = true_epsilon(lambda X, y: law_of_interval(X, y, selection=selection), labelled(range(4), 3))
    assert used * EPSILON < worst.value <= EPSILON * (1 + 1e-15)


@pytest.mark.parametrize("selection", LAWS)
def test_an_exponent_without_its_half_is_caught(selection):
    def law(points, labels):
        return law_of_interval(points, labels, selection=selection, epsilon=2 * EPSILON)

    assert true_epsilon(law, labelled(range(4), 2)).value > EPSILON


def test_candidates_that_come_from_the_private_rows_are_caught():
    """The dichotomies on private points are no whole class: which cuts stand in for them tells the points."""
    concepts = Thresholds(bits=2)

    def law(points, labels):
        listed = concepts.dichotomies(points)
        return law_of(list(listed), exponential((-listed.mistakes(points, labels)).tolist(), EPSILON))

    assert true_epsilon(law, labelled(range(4), 2)).value == float("inf")


def test_a_whole_class_is_every_function_once():
    assert len(whole_class(Thresholds(bits=5), 100)) == 33
    assert len(whole_class(PointFunctions(bits=5), 100)) == 32
    assert len(whole_class(Intervals(bits=5), 1000)) == 32 * 33 // 2 + 1
    assert len(whole_class(Rectangles(bits=2, n_features=2), 10_000)) == 101
    with pytest.raises(InvalidParameter, match="limit"):
        whole_class(Thresholds(bits=5), 32)
    with pytest.raises(InvalidParameter):
        whole_class(Stumps(n_features=2), 10**6)


def test_a_list_of_classifiers_fitted_on_public_rows_is_a_class():
    rng = np.random.default_rng(0)
    public = rng.normal(size=(200, 2))
    trees = [
        DecisionTreeClassifier(max_depth=2, random_state=k).fit(public, public @ w > 0)
        for k, w in enumerate(rng.normal(size=(20, 2)))
    ]
    concepts = FiniteClass(trees, n_features=2)
    X = rng.normal(size=(600, 2))
    y = trees[7].predict(X).astype(int)
    ledger = Ledger(budget=Budget(1.0, 0.0))
    learner = ExponentialLearner(concepts=concepts, epsilon=1.0, ledger=ledger).fit(X, y)
    assert learner.score(X, y) > 0.9
    assert "one of all 20 concepts of FiniteClass" in learner.guarantee_.mechanism
    again = ExponentialLearner(concepts=concepts, epsilon=1.0, ledger=ledger).fit(X, y)
    assert again.concept_ == learner.concept_
    assert (again.predict(X) == learner.predict(X)).all()
    assert ledger.spent.epsilon == 1.0
    with pytest.raises(InvalidParameter, match="limit"):
        ExponentialLearner(concepts=concepts, epsilon=1.0, limit=19).fit(X, y)


def test_the_bound_holds_where_it_is_tight_enough_to_fail():
    """One good concept and many whose error is just above α: with a quarter of the rows they are chosen often."""
    alpha, beta, epsilon, n_bad = 0.1, 0.1, 1.0, 63
    constants = [DummyClassifier(strategy="constant", constant=c).fit([[0.0]], [c]) for c in (0, 1)]
    concepts = FiniteClass([constants[0], *[constants[1]] * n_bad], n_features=1)
    learner = ExponentialLearner(concepts=concepts, epsilon=epsilon, alpha=alpha, beta=beta, selection="exponential")
    n = learner.rows_needed().labelled
    assert n == choice_rows(log(1 + n_bad), alpha=alpha, beta=beta, epsilon=epsilon) == 161
    rng = np.random.default_rng(1)

    def chance_of_bad(rows):
        # c = 0 is the truth; a bad concept errs where the row lies in a set of measure α
        mistakes = rng.binomial(rows, alpha, size=(2000, n_bad))
        weights = np.exp(-epsilon / 2 * mistakes).sum(axis=1)
        return (weights / (1 + weights)).mean()

    assert chance_of_bad(n) <= beta
    assert chance_of_bad(n) > beta / 2  # the union bound is the whole slack
    assert chance_of_bad(n // 4) > 4 * beta


def test_the_share_of_a_best_concept_that_errs_costs_rows():
    kept = {"alpha": 0.1, "beta": 0.1, "epsilon": 1.0}
    assert choice_rows(5.0, **kept) < choice_rows(5.0, share=0.1, **kept) < choice_rows(5.0, share=0.5, **kept)
    # more ε helps only until mistakes of the best concept weigh as much: s = log(1/κ)/2
    rows = [
        choice_rows(5.0, alpha=0.1, beta=0.1, epsilon=epsilon, share=0.25) for epsilon in (0.5, 1.0, 1.4, 5.0, 50.0)
    ]
    assert rows == sorted(rows, reverse=True)
    assert rows[-1] == rows[-2]


@pytest.mark.several_fits
def test_on_thresholds_it_agrees_with_noisy_threshold():
    X = np.random.default_rng(2).integers(0, 1024, (1500, 1))
    y = (X[:, 0] < 700).astype(int)
    for kind in (ExponentialLearner, NoisyThreshold):
        learner = kind(concepts=Thresholds(bits=10), epsilon=1.0).fit(X, y)
        assert abs(learner.concept_.cut - 700) < 60
        assert learner.plan_.event == PureDP(1.0)
        assert learner.rows_needed() == ExponentialLearner(concepts=Thresholds(bits=10), epsilon=1.0).rows_needed()


def test_a_table_without_labels_is_refused():
    with pytest.raises(DataRefused, match="no label"):
        ExponentialLearner(concepts=Intervals(bits=3), epsilon=1.0).fit([[1]], [-1])


def test_what_was_learned_is_a_plain_value():
    learner = ExponentialLearner(concepts=Intervals(bits=3), epsilon=50.0, unsafe_noise_seed=0)
    X = np.arange(8).repeat(5).reshape(-1, 1)
    assert isinstance(learner.fit(X, (X[:, 0] >= 2) & (X[:, 0] <= 4)).concept_, Interval)


def test_what_public_rows_lose_is_bounded_by_both_terms_and_covers_what_happens():
    """Semi-private: concepts on public rows alone, labels paid for. Each term by its own formula."""
    n_public, n_labelled, truth = 500, 1_500, 2**31
    learner = ExponentialLearner(concepts=Thresholds(bits=32), epsilon=EPSILON)
    random, beyond = np.random.default_rng(0), []
    for seed in range(8):
        X, public = (random.integers(0, 2**32, (n, 1)) for n in (n_labelled, n_public))
        learner.set_params(domain=np.unique(public, axis=0), unsafe_noise_seed=seed)
        chosen_one = learner.fit(X, (X[:, 0] < truth) ^ (random.random(n_labelled) < 0.2)).concept_
        beyond.append(0.6 * abs(chosen_one.cut - truth) / 2**32)
    bound = learner.excess(n_labelled, n_public=n_public)
    missed = 2 * np.log2(2 * (2 * n_public + 1) ** 2 / 0.05) / n_public
    alpha = bound - missed
    at = {"alpha": alpha, "beta": 0.05, "epsilon": EPSILON}
    assert agnostic_choice_rows(log(n_public + 1), **at) <= n_labelled
    assert agnostic_choice_rows(log(n_public + 1), **{**at, "alpha": alpha - 1e-3}) > n_labelled
    assert max(beyond) < bound < 0.5
    assert (
        alpha > learner.excess(n_labelled) > alpha - 0.02
    )  # where all points that a row can be are listed, β is whole
