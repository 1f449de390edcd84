"""What a learner says before and after a fit, from public facts alone; that it says it soon, and by the right name.

A fit is charged under a digest of its class, arguments and plan: a ledger that was begun knows the same fit again. The
digests were written down once. Where one of them changes, whoever fits again pays twice: give a class that moves its
old name by :func:`quorate.stored_names.stored_as`, and leave what a plan says as it is.
"""

from dataclasses import replace
from itertools import product
from math import ceil

import numpy as np
import pytest
from tests.learners.test_private_learner import AROUND

from quorate.errors import DataRefused, InvalidParameter, QuorateError
from quorate.learners import (
    AgnosticLearner,
    AgnosticPrediction,
    EmpiricalLearner,
    ExponentialLearner,
    GenericLearner,
    LabelBoost,
    NoisyThreshold,
    SubsampledAgnostic,
    SubSampling,
)
from quorate.learners.agnostic.bound import disagreement
from quorate.learners.base.exponential import agnostic_choice_rows
from quorate.learners.concepts import Intervals, PointFunctions, Rectangles, Stumps, Thresholds
from quorate.learners.fit_charge import charge_of
from quorate.learners.label_boost.schedule import rows_to_generalise
from quorate.learners.private_learner import BOUND_DOES_NOT_HOLD, BOUND_OF_LISTED_POINTS
from quorate.learners.sample import Sample, read_sample
from quorate.learners.sanitizers import BLR, MWEM, Boxes, Medians, Tree
from quorate.learners.sub_sampling import FEWER_LABELS
from quorate.learners.transformed_learner import BASE_ALONE
from quorate.ledger import Budget, Ledger
from quorate.theory import bns15_theorem_b_5
from quorate.types import Secret

GRID = Thresholds(bits=16)
BASE = NoisyThreshold(concepts=GRID, epsilon=1.0)


def applying(learner, n_labelled, n_unlabelled=0):
    return {each.code: each.words for each in learner.check(n_labelled, n_unlabelled) if each.applies}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
@pytest.mark.parametrize("around", [kind for kind in AROUND if kind is not SubSampling])
def test_a_construction_that_asks_for_no_fewer_labels_than_its_base_says_so(around, epsilon):
    said = applying(around(base=BASE, epsilon=epsilon), 100_000)
    assert "NoisyThreshold alone asks for" in said[BASE_ALONE]


@pytest.mark.heavy
def test_a_construction_that_asks_for_fewer_does_not():
    assert BASE_ALONE not in applying(SubSampling(base=BASE, epsilon=0.1), 100_000)
    assert BASE_ALONE in applying(SubSampling(base=BASE, epsilon=1.0), 100_000)
    much = LabelBoost(base=BASE, epsilon=1.0, base_rows=10_000_000)
    assert much.rows_needed().labelled < 10_000_000


def test_a_learner_with_no_base_has_no_such_caution():
    assert applying(GenericLearner(concepts=GRID, sanitizer=Tree(), epsilon=1.0), 600, 200_000) == {}


def test_cautions_stand_on_the_fitted_learner_and_depend_on_no_row():
    random = np.random.default_rng(0)
    learner = SubSampling(base=BASE, epsilon=0.5, unsafe_noise_seed=0)
    found = []
    for labels in (np.zeros(3_000), np.ones(3_000), random.integers(0, 2, 3_000)):
        found.append(learner.fit(random.integers(0, 2**16, (3_000, 1)), labels.astype(int)).cautions_)
    assert found[0] == found[1] == found[2] == learner.check(3_000)


@pytest.mark.heavy
def test_the_rows_of_a_choice_for_any_labels_keep_the_bound_where_it_is_hardest():
    """Many bad concepts that are just α worse, labels that are nearly coins: simulated exactly as a walk."""
    alpha, beta, epsilon, n_bad = 0.2, 0.1, 1.0, 500
    m = agnostic_choice_rows(np.log(n_bad + 1), alpha=alpha, beta=beta, epsilon=epsilon)
    random = np.random.default_rng(0)

    def share_bad(rows):
        worse = 2 * random.binomial(rows, (1 + alpha) / 2, (2_000, n_bad)) - rows  # mistakes beyond the best one's
        weights = np.exp(-epsilon / 2 * worse)
        return float(np.mean(weights.sum(axis=1) / (1 + weights.sum(axis=1))))

    assert share_bad(m) <= beta
    assert share_bad(m // 3) > beta  # the bound is not idle: a third of the rows would break it


def test_fewer_labels_than_requested_are_said_and_the_best_base_epsilon_is_offered():
    learner = SubSampling(base=BASE, epsilon=0.1, n_labels=400)
    said = applying(learner, 4_000)[FEWER_LABELS]
    assert "only 244 labels are asked for, and 400 were requested" in said
    offered = float(said.rpartition("base.epsilon=")[2].partition(" ")[0])
    assert said.endswith("asks for most, 400")
    better = SubSampling(base=NoisyThreshold(concepts=GRID, epsilon=offered), epsilon=0.1, n_labels=400)
    assert FEWER_LABELS not in applying(better, 4_000)
    larger = SubSampling(base=NoisyThreshold(concepts=GRID, epsilon=offered * 1.05), epsilon=0.1, n_labels=400)
    assert FEWER_LABELS in applying(larger, 4_000)
    as_many = SubSampling(base=BASE, epsilon=0.1, n_labels=200)
    assert FEWER_LABELS not in applying(as_many, 4_000)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("epsilon", [1e-9, 400.0, 1_000.0])
@pytest.mark.parametrize("base_epsilon", [1.0, 400.0, 1_000.0])
@pytest.mark.parametrize("around", AROUND)
def test_any_epsilon_is_answered_or_refused_by_the_name_that_was_given(around, base_epsilon, epsilon):
    learner = around(base=NoisyThreshold(concepts=GRID, epsilon=base_epsilon), epsilon=epsilon)
    try:
        learner.check(2_000, 2_000 if around is LabelBoost else 0)
    except QuorateError as refusal:
        told = str(refusal)
        assert "learner_epsilon" not in told
        assert "inf" not in told
        assert "these parameters" not in told  # what to change has a name
        if epsilon > 500:
            assert told.startswith("epsilon must be")
        elif base_epsilon > 500 and not told.startswith("epsilon"):
            assert told.startswith("base.epsilon must be")


@pytest.mark.heavy
@pytest.mark.parametrize("epsilon", [1e-9, 400.0, 1_000.0])
def test_any_epsilon_of_a_learner_without_a_base(epsilon):
    x = np.arange(300)[:, None]
    labels = np.where(x[:, 0] % 2, -1, (x[:, 0] < 100).astype(int))
    for learner in (
        NoisyThreshold(concepts=GRID, epsilon=epsilon, unsafe_noise_seed=0),
        ExponentialLearner(concepts=Thresholds(9), epsilon=epsilon, unsafe_noise_seed=0),
        GenericLearner(concepts=GRID, sanitizer=Tree(), epsilon=epsilon, unsafe_noise_seed=0),
    ):
        assert learner.fit(x, labels).guarantee_.epsilon <= epsilon
    single = AgnosticPrediction(concepts=GRID, epsilon=epsilon, unsafe_noise_seed=0)
    with pytest.raises((InvalidParameter, DataRefused), match="epsilon"):
        single.fit(x, labels)


@pytest.mark.heavy
def test_a_fit_searches_for_no_number_that_a_caution_would_name():
    boxes = Rectangles(bits=4, n_features=2)
    learner = AgnosticLearner(base=ExponentialLearner(concepts=boxes, epsilon=1.0), epsilon=1.0)
    learner._rows_needed = None  # calling it would fail
    assert "rows_needed() says" in applying(learner, 500)[BOUND_DOES_NOT_HOLD]


def test_a_fingerprint_is_of_the_rows_in_any_order_and_of_every_bit():
    key, other = Secret(bytes(32)), Secret(bytes(31) + b"1")
    random = np.random.default_rng(0)
    X, y = 2**60 + random.integers(0, 2**40, (200, 1)), random.integers(-1, 2, 200)  # which no double tells apart
    grid = Thresholds(bits=62)
    order = random.permutation(200)
    found = read_sample(grid, X, y).fingerprint(key)
    assert found == read_sample(grid, X[order], y[order]).fingerprint(key)
    assert found != read_sample(grid, X, y).fingerprint(other)
    moved, turned = X.copy(), y.copy()
    moved[7] += 1
    turned[7] = 1 - abs(turned[7])
    assert found != read_sample(grid, moved, y).fingerprint(key)
    assert found != read_sample(grid, X, turned).fingerprint(key)
    swapped = y.copy()
    swapped[[0, np.flatnonzero(y != y[0])[0]]] = swapped[[np.flatnonzero(y != y[0])[0], 0]]
    assert found != read_sample(grid, X, swapped).fingerprint(key)  # the same labels, of other rows


def test_a_zero_has_one_fingerprint_whatever_its_sign():
    key, rows = Secret(bytes(32)), np.array([[0.0], [1.0], [0.0]])
    points = Sample(
        points=Secret(rows), labels=Secret(np.array([1, 0, 0], dtype=np.int8)), n_labelled=3, n_unlabelled=0
    )
    minus = replace(points, points=Secret(np.where(rows == 0, -0.0, rows)))
    assert points.fingerprint(key) == minus.fingerprint(key)


SIXTEEN = Thresholds(bits=4)
ONE_COLUMN = Rectangles(bits=4, n_features=1)
COLUMN = np.arange(16.0)[:, None]
EMPIRICAL = EmpiricalLearner(base=NoisyThreshold(concepts=SIXTEEN, epsilon=1.0), concepts=SIXTEEN, epsilon=1.0)
OUTER = {
    "concepts": SIXTEEN, "base": ExponentialLearner(concepts=SIXTEEN, epsilon=1.0), "epsilon": 0.5,
}  # fmt: skip
KEYS = {
    "9277c996257ee42d7db9dc69c92e0d91": ExponentialLearner(concepts=SIXTEEN, epsilon=0.5),
    "615f40cd1698af1f9a7d8196df0cdac9": ExponentialLearner(concepts=SIXTEEN, epsilon=0.5, selection="exponential"),
    "fd5038d1d21dfa9416656b1cecd6eb89": ExponentialLearner(concepts=Stumps(1), epsilon=0.5, domain=COLUMN),
    "ba8ccaebd60c69ffa148e6a80ef53628": ExponentialLearner(concepts=PointFunctions(bits=4), epsilon=0.5),
    "9ba057550e65a6a4c560639f6ca1b0c6": ExponentialLearner(concepts=Intervals(bits=4), epsilon=0.5),
    "de6278cd96ba013b5f739a1aa13f3a07": ExponentialLearner(concepts=ONE_COLUMN, epsilon=0.5),
    "528c7bb07ed6f904cf158611e757b498": NoisyThreshold(concepts=SIXTEEN, epsilon=0.5),
    "31d45c467b812c89665492cda7a68082": GenericLearner(concepts=SIXTEEN, sanitizer=Tree(), epsilon=0.5),
    "efc0b14707b020459b1c3c8971b3602f": GenericLearner(concepts=SIXTEEN, sanitizer=MWEM(), epsilon=0.5),
    "d1945580e310298d6818c960f9c89919": GenericLearner(concepts=SIXTEEN, sanitizer=BLR(size=2), epsilon=0.5),
    "8c2e989f9d7884fec40a1bc95131f3ca": GenericLearner(concepts=ONE_COLUMN, sanitizer=Boxes(), epsilon=0.5),
    "d74ff060378304b3c46e7591deaae068": GenericLearner(concepts=SIXTEEN, sanitizer=Medians(delta=1e-6), epsilon=0.5),
    "8e0111e4cda662d07d0353abf2e5d3c2":
        GenericLearner(concepts=SIXTEEN, sanitizer=Medians(delta=1e-6), epsilon=0.5, delta=1e-7),
    "1cb9da3d84d5a0f4a129aedbdf912f9d": GenericLearner(concepts=Stumps(1), sanitizer=MWEM(domain=COLUMN), epsilon=0.5),
    "5e6dd2aac06396709d53433b427c0d99": LabelBoost(**OUTER),
    "4678fa8c6e927c2fa966492285834f23": LabelBoost(**OUTER | {"delta": 1e-6}, constants="paper"),
    "b12fb5953b0ca084ee1387d2442aa0ab": SubSampling(**OUTER),
    "0c0dc715460efcae8fb8ade5f1bf041f": SubSampling(**OUTER, labelled="first"),
    "5520f02017267d2c9541ba149fc5fa22": EmpiricalLearner(**OUTER),
    "097b334f9d305438ddecb14cf6b40339": AgnosticLearner(**OUTER),
    "d07712c333e4c044b95abd2de4f7ae44": AgnosticLearner(**OUTER | {"base": EMPIRICAL}),
    "16432f9c7481c3f7824e3d921c1865e7": SubsampledAgnostic(**OUTER),
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_ledger_that_was_begun_knows_the_fit_again(key):
    learner = KEYS[key]
    n_unlabelled = 0 if isinstance(learner, SubSampling) else 4_000
    plan, _ = learner._planned(8_000 - n_unlabelled, n_unlabelled, *learner._target())
    assert charge_of(learner, plan, "rows", seeded=False).key == f"learner {key}"


def test_what_is_no_argument_of_the_fit_changes_no_key_and_every_argument_does():
    learner = ExponentialLearner(concepts=SIXTEEN, epsilon=0.5)
    plan, _ = learner._planned(40, 0, *learner._target())
    keys = {
        name: charge_of(learner.__class__(**learner.get_params() | {name: value}), plan, "rows", seeded=False).key
        for name, value in {"alpha": 0.1, "ledger": "a.db", "classes": ["no", "yes"], "beta": 0.2, "limit": 9}.items()
    }
    assert keys["alpha"] == keys["ledger"] == keys["classes"]
    assert len(set(keys.values())) == 3


def test_a_ledger_that_was_begun_knows_the_rows_again_in_any_order():
    X, y, key = np.array([[3], [1], [2], [1]]), np.array([1, 0, -1, -1]), Secret(b"k" * 32)
    digests = {
        "7dcdfb2416df4f1d1dcfefe9ba836a921701bf89291a4ed5d9e9b6cddec8ed2b": (SIXTEEN, X),
        "2b57208f2f6e0ba9bd314a67254f06d89cc42b80d6e065635afa7e8ab7df2174": (Stumps(1), X * 1.0),
    }
    for digest, (concepts, points) in digests.items():
        assert read_sample(concepts, points, y).fingerprint(key) == f"sorted rows: {digest}"
        assert read_sample(concepts, points[::-1], y[::-1]).fingerprint(key) == f"sorted rows: {digest}"


LINE = Thresholds(bits=16)
LISTED = [(0,), (1,), (2,)]
SAID = "the bound on the error is about rows that are among the 3 listed points of domain"
rng = np.random.default_rng(0)
X = rng.integers(0, 2**16, (3_000, 1))
Y = (X[:, 0] < 30_000).astype(int)
WHOLE = {"concepts": LINE, "epsilon": 1.0, "domain": LISTED}


@pytest.mark.parametrize(
    "learner",
    [
        ExponentialLearner(**WHOLE, rows="theorem", unsafe_noise_seed=0),
        EmpiricalLearner(base=ExponentialLearner(**WHOLE), epsilon=1.0, unsafe_noise_seed=0),
    ],
    ids=["alone", "inside another"],
)
def test_the_bound_of_a_listed_domain_is_said_in_guarantee_plan_and_check(learner):
    fitted = learner.fit(X, Y)
    for said in (fitted.guarantee_.caveats, fitted.plan_.caveats):
        assert any(each.startswith(SAID) for each in said)
    assert BOUND_OF_LISTED_POINTS in applying(learner, 3_000)
    assert fitted.predict(X).shape == Y.shape  # a row elsewhere is taken all the same


def test_a_domain_that_is_all_the_grid_or_none_needs_no_word_and_a_sanitizers_does():
    for domain in ([(0,), (1,), (2,), (3,)], None):
        learner = ExponentialLearner(concepts=Thresholds(bits=2), epsilon=1.0, domain=domain)
        assert BOUND_OF_LISTED_POINTS not in applying(learner, 300)
    points = tuple((float(a), float(b)) for a in range(3) for b in range(3))
    learner = GenericLearner(concepts=Stumps(2), sanitizer=MWEM(domain=points), epsilon=1.0)
    assert BOUND_OF_LISTED_POINTS in applying(learner, 300, 300)


def test_a_fit_is_known_by_the_key_that_it_had_before_this_was_said(monkeypatch):
    """Neither the key nor the scope of the charge has the sentence: begun ledgers go on, and pay nothing again."""
    ledger = Ledger(budget=Budget(5.0, 0.0))
    with monkeypatch.context() as before:
        before.setattr(ExponentialLearner, "_listed_points", lambda _: None)
        ExponentialLearner(**WHOLE, ledger=ledger, unsafe_noise_seed=0).fit(X, Y)
    spent = ledger.spent.epsilon
    again = ExponentialLearner(**WHOLE, ledger=ledger, unsafe_noise_seed=0).fit(X, Y)
    assert ledger.spent.epsilon == spent
    assert any(each.startswith(SAID) for each in again.guarantee_.caveats)


def test_the_smaller_of_two_bounds_says_how_many_rows_generalise():
    printed, found = bns15_theorem_b_5(1, 1 / 11, 0.05), rows_to_generalise(1, 0.1 / 11, 0.05)
    assert found < printed / 30
    growth = lambda n_points: n_points + 1  # noqa: E731
    assert disagreement(0.1 / 11, found, growth, 0.05) <= 1 / 11 < disagreement(0.1 / 11, found - 1, growth, 0.05)
    assert rows_to_generalise(1, 0.9, 0.05) <= ceil(bns15_theorem_b_5(1, 9, 0.05))
    learner = LabelBoost(base=NoisyThreshold(concepts=Thresholds(32), epsilon=1.0), epsilon=1.0)
    assert learner.rows_needed().labelled == 12_072  # one bound alone asked for 41,179


FOUR = tuple(product(range(4), repeat=6))
SMALL = tuple(product(range(3), repeat=2))


def test_six_columns_of_four_values_have_38_stumps_and_are_learned():
    assert Stumps(6).growth(len(FOUR)) == 49_142  # bounds the number of those that there are
    random = np.random.default_rng(0)
    X = random.integers(0, 4, (20_000, 6)).astype(float)
    y = (X[:, 3] > 1).astype(int)
    few = np.where(np.arange(len(X)) < 300, y, -1)
    choice = ExponentialLearner(concepts=Stumps(6), epsilon=1.0, domain=FOUR, unsafe_noise_seed=0)
    sanitized = GenericLearner(concepts=Stumps(6), sanitizer=MWEM(domain=FOUR), epsilon=1.0, unsafe_noise_seed=0)
    assert choice.fit(X, few).score(X, y) == sanitized.fit(X, few).score(X, y) == 1.0
    assert "one of all 38 concepts" in choice.guarantee_.mechanism


def test_a_class_without_a_domain_asks_for_one_and_one_with_too_many_concepts_says_how_many():
    with pytest.raises(InvalidParameter, match="domain must be given"):
        ExponentialLearner(concepts=Stumps(2), epsilon=1.0).rows_needed()
    with pytest.raises(InvalidParameter, match="up to 10 dichotomies"):
        ExponentialLearner(concepts=Stumps(2), epsilon=1.0, domain=SMALL, limit=9).rows_needed()
    with pytest.raises(InvalidParameter, match="Boxes for Rectangles"):
        ExponentialLearner(concepts=Rectangles(16, 2), epsilon=1.0).rows_needed()


def test_a_large_grid_with_a_listed_domain_has_the_rectangles_of_that_domain():
    learner = ExponentialLearner(concepts=Rectangles(16, 2), epsilon=1.0, domain=SMALL, unsafe_noise_seed=0)
    assert len(learner.whole_class()) == 37
    X = np.array(SMALL)[np.random.default_rng(0).integers(0, 9, 600)]
    y = (X >= 1).all(axis=1).astype(int)
    assert learner.fit(X, y).score(X, y) == 1.0
    outside = np.vstack([X, [[60_000, 60_000]]])  # taken: no row decides on a refusal
    assert learner.fit(outside, np.append(y, 1)).predict(outside).shape == (601,)
