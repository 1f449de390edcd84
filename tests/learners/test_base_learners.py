"""The base learners: the choice among a whole finite class or grid, its law and exact privacy, twins, its bound."""

from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.learners.exact import (
    best_of_class,
    exponential,
    labelled,
    law_of,
    on_all_rows,
    p_value,
    permute_and_flip,
    thresholds,
    true_epsilon,
)

from quorate.errors import InvalidParameter
from quorate.learners import (
    AgnosticLearner,
    AgnosticPrediction,
    EmpiricalLearner,
    ExponentialLearner,
    GridChoice,
    LabelBoost,
    NoisyThreshold,
    SubsampledAgnostic,
)
from quorate.learners.base import grid_choice
from quorate.learners.base.exponential import agnostic_choice_rows, choice_rows, chosen, whole_class
from quorate.learners.base.grid_choice import threshold_runs
from quorate.learners.concepts import (
    FiniteClass,
    Interval,
    Intervals,
    PointFunctions,
    Rectangles,
    Stumps,
    Thresholds,
)
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import Exponential, PermuteAndFlip
from quorate.noise import OSNoise, SeededNoise
from quorate.noise.table import exp_negative

FALSE_ALARM = 1e-6
EPSILON = 1.0
# Every function of an interval, and every cut, on four points.
INTERVALS = tuple({tuple(int(a <= x <= b) for x in range(4)) for a in range(4) for b in range(4)} | {(0,) * 4})
CUTS = thresholds(4)
CHOSEN = {"exponential": exponential, "permute-and-flip": permute_and_flip}
# A learner, the concepts among which it chooses, how, and how much of ε some pair of so many rows loses.
AUDITED = {
    **{
        f"interval, {name}": (
            ExponentialLearner(concepts=Intervals(bits=2), epsilon=EPSILON, selection=name), INTERVALS, choose, 3, used
        )
        for (name, choose), used in zip(CHOSEN.items(), (0.8, 0.85), strict=True)
    },
    "threshold": (NoisyThreshold(concepts=Thresholds(bits=2), epsilon=EPSILON), CUTS, exponential, 4, 0.9),
}  # fmt: skip
audited = pytest.mark.parametrize(("learner", "concepts", "choose", "n", "used"), AUDITED.values(), ids=AUDITED)


@audited
def test_the_learner_has_the_law_that_is_audited(learner, concepts, choose, n, used):
    points, labels = np.array([[0], [1], [1], [3], [2]]), np.array([1, 1, 0, 0, -1], dtype=np.int8)
    plan, noise, grid = learner._plan(4, 1, EPSILON, 0.0), SeededNoise(17), np.arange(4).reshape(-1, 1)
    drawn = [tuple(learner._learn(points, labels, noise.at("fit", i), plan).labels(grid).tolist()) for i in range(1200)]
    law, twice = (on_all_rows(best_of_class(concepts, each, choose))(points[:4], labels[:4]) for each in (1.0, 2.0))
    assert p_value(law, drawn) > FALSE_ALARM
    assert p_value(twice, drawn) < FALSE_ALARM


@audited
def test_its_true_epsilon_is_at_most_the_claim_and_most_of_it_and_an_exponent_without_its_half_is_caught(
    learner, concepts, choose, n, used
):
    worst = true_epsilon(on_all_rows(best_of_class(concepts, EPSILON, choose)), labelled(range(4), n))
    assert used * EPSILON < worst.value <= EPSILON * (1 + 1e-15)
    assert true_epsilon(on_all_rows(best_of_class(concepts, 2.0, choose)), labelled(range(4), 2)).value > EPSILON


def test_a_learner_without_noise_is_caught():
    part, law = labelled(range(4), 3), on_all_rows(best_of_class(CUTS, 5000.0, exponential))
    assert true_epsilon(law, part).value > 100

    def best(points, labels):
        chances = law(points, labels)
        return {max(chances, key=lambda cut: (chances[cut], -sum(cut))): 1}

    assert true_epsilon(best, part).value == float("inf")


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
    for domain, n in ((None, 5), ([[0], [3]], 3)):
        assert len(ExponentialLearner(concepts=Thresholds(2), epsilon=1.0, domain=domain).whole_class()) == n
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


def test_a_choice_over_runs_has_the_law_of_a_choice_over_all_candidates():
    scores, sizes = np.array([-3, 0, -1, -9, -1]), np.array([4, 1, 0, 2, 3])
    law = law_of(range(10), exponential(np.repeat(scores, sizes).tolist(), 1.3))
    drawn = [GridChoice(1.3).release(scores, sizes, noise) for noise in [SeededNoise(5)] for _ in range(4000)]
    assert p_value(law, drawn) > FALSE_ALARM
    twice = law_of(range(10), exponential(np.repeat(scores, sizes).tolist(), 2.6))
    assert p_value(twice, drawn) < FALSE_ALARM


def test_a_run_without_candidates_is_never_chosen_however_good():
    scores, sizes = np.array([0, 1000, -5]), np.array([1, 0, 1])
    assert {GridChoice(1.0).release(scores, sizes, OSNoise()) for _ in range(50)} <= {0, 1}


def test_sizes_weigh_as_much_as_candidates_would():
    scores, sizes = np.array([0, -100]), np.array([1, 2**61])  # 2^61 e^-20 is about 4.7e9
    assert all(GridChoice(0.4).release(scores, sizes, OSNoise()) > 0 for _ in range(20))
    assert all(GridChoice(4.0).release(scores, sizes, OSNoise()) == 0 for _ in range(20))


@pytest.mark.parametrize(
    ("scores", "sizes"),
    [([0], [0]), ([0, 1], [1]), ([0], [-1]), ([0.5], [1]), ([0, 0], [2**62, 1]), ([], [])],
)
def test_runs_that_are_none_are_refused(scores, sizes):
    with pytest.raises(InvalidParameter):
        GridChoice(1.0).release(np.array(scores), np.array(sizes), OSNoise())


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0, 1), (float("nan"), 1), (1, 0), (True, 1), (1, "1")])
def test_a_choice_without_a_price_is_refused(epsilon, sensitivity):
    with pytest.raises(InvalidParameter):
        GridChoice(epsilon, sensitivity)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 1)), max_size=12))
def test_runs_are_the_mistakes_of_every_cut(rows):
    values = np.array([value for value, _ in rows], dtype=np.int64)
    labels = np.array([label for _, label in rows], dtype=np.int8)
    scores, sizes = threshold_runs(values, labels, 3)
    slow = [-sum(int(value < cut) != label for value, label in rows) for cut in range(9)]
    assert np.repeat(scores, sizes).tolist() == slow


@pytest.mark.several_fits
def test_it_learns_on_a_grid_of_2_to_the_32_with_the_rows_of_its_theorem():
    learner = NoisyThreshold(concepts=Thresholds(bits=32), epsilon=1.0, alpha=0.05, rows="theorem")
    rng = np.random.default_rng(1)
    n = learner.rows_needed().labelled
    wrong = 0
    for cut in rng.integers(0, 2**32, 20):
        X = rng.integers(0, 2**32, (n, 1))
        fitted = learner.fit(X, X[:, 0] < cut)
        wrong += abs(fitted.concept_.cut - int(cut)) / 2**32 > 0.05
    assert n == 1233
    assert wrong <= 9  # a chance of 0.1 each gives 10 or more with probability 7e-6; it is far lower
    assert learner.guarantee_.epsilon == 1.0


def test_other_classes_are_refused():
    with pytest.raises(InvalidParameter, match="Thresholds"):
        NoisyThreshold(concepts=Intervals(bits=4), epsilon=1.0).fit([[1]], [1])
    with pytest.raises(InvalidParameter, match="61"):
        NoisyThreshold(concepts=Thresholds(bits=62), epsilon=1.0).rows_needed()


def test_the_largest_grid_works():
    learner = NoisyThreshold(concepts=Thresholds(bits=61), epsilon=8.0)
    X = (np.arange(400) * (2**61 // 400)).reshape(-1, 1)
    assert abs(learner.fit(X, X[:, 0] < 2**60).concept_.cut / 2**61 - 0.5) < 0.2


@pytest.mark.parametrize(("n", "largest"), [(0, 5), (1, 5), (50, 2**30), (300, 300), (5_000, 256)])
def test_values_are_counted_alike_by_a_table_and_by_a_sort(n, largest):
    random = np.random.default_rng(n)
    values, labels = random.integers(0, largest, n), random.integers(0, 2, n).astype(np.int8)
    distinct, place = np.unique(values, return_inverse=True)
    ones = np.bincount(place, weights=labels, minlength=len(distinct)).astype(np.int64)
    zeros = np.bincount(place, minlength=len(distinct)) - ones
    for found, expected in zip(grid_choice._counts(values, labels), (distinct, zeros, ones), strict=True):
        assert found.tolist() == expected.tolist()
        assert found.dtype == np.int64


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(0.1) / 2, Fraction(37, 10), Fraction(1, 10**6)])
def test_weights_from_a_table_are_the_weights_themselves(rate):
    gaps = sorted({*range(80), *np.random.default_rng(0).integers(0, 9_000, 100).tolist()})
    assert grid_choice._weights(rate, gaps) == [exp_negative(rate * gap) for gap in gaps]


class At:
    """1 at one number, 0 elsewhere: two of them are one dichotomy wherever neither number occurs."""

    def __init__(self, value):
        self.value = value

    def predict(self, X):
        return (X[:, 0] == self.value).astype(int)


WORLD = FiniteClass([At(1), At(2)], n_features=1)


def learners(concepts=WORLD):
    base = ExponentialLearner(concepts=concepts, epsilon=1.0)
    return {
        "Exponential": base,
        "Subsampled": SubsampledAgnostic(concepts=concepts, base=base, epsilon=5.0),
        "Agnostic": AgnosticLearner(concepts=concepts, base=base, epsilon=5.0),
        "Empirical": EmpiricalLearner(concepts=concepts, base=base, epsilon=5.0),
        "LabelBoost": LabelBoost(concepts=concepts, base=base, epsilon=5.0, base_rows=3),
    }


@pytest.mark.parametrize("name", learners())
def test_every_table_of_a_finite_world_gives_a_concept(name):
    learner = learners()[name]
    plan = learner._plan(3, 1, *learner._target())
    for i, (values, labels) in enumerate(product(product((0.0, 1.0, 2.0), repeat=4), product((0, 1), repeat=3))):
        if i % 3 and name != "Agnostic":  # every table once, and one in three with each of the others
            continue
        points, y = np.array(values).reshape(-1, 1), np.array([*labels, -1], dtype=np.int8)
        assert learner._learn(points, y, SeededNoise(i), plan).index in (0, 1)


@pytest.mark.parametrize("concepts", [WORLD, FiniteClass([At(777)], n_features=1)], ids=["two", "one"])
@pytest.mark.parametrize("name", learners())
@pytest.mark.several_fits
def test_a_class_that_the_rows_collapse_is_fitted_like_any_other(name, concepts):
    y = np.zeros(200, dtype=int)
    y[100:] = -1
    for value in (0.0, 1.0, 777.0):  # one row that tells two concepts apart, or none
        points = np.zeros((200, 1))
        points[0] = value
        assert learners(concepts)[name].fit(points, y).concept_.index in (0, 1)


def test_predictions_of_a_class_of_one_are_answered():
    alone = AgnosticPrediction(concepts=FiniteClass([At(777)], n_features=1), epsilon=4.0, n_queries=1)
    assert alone.fit(np.zeros((100, 1)), np.zeros(100, dtype=int)).ask([[0.0]]).tolist() in ([0], [1])


class NoWords(SeededNoise):
    def words(self, n):
        pytest.fail("drawn")


@pytest.mark.parametrize("mechanism", [Exponential(1.0), PermuteAndFlip(1.0)])
def test_a_single_candidate_is_taken_without_a_draw_and_two_are_drawn_from(mechanism):
    assert chosen(mechanism, np.array([-5]), NoWords(0)) == 0
    assert {chosen(mechanism, np.array([0, 0]), SeededNoise(seed)) for seed in range(40)} == {0, 1}
    with pytest.raises(InvalidParameter):  # what a learner that asks it directly would tell of its private rows
        mechanism.release(np.array([-5]), SeededNoise(0))
