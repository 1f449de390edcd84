"""AgnosticLearner: what it draws against its exact law, what it needs, what it refuses."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from tests.learners import exact
from tests.learners.test_agnostic_price import DOMAIN, noisy_rows, on_its_own

from quorate.accounting import ApproxDP
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import ExponentialLearner, GenericLearner, NoisyThreshold
from quorate.learners.agnostic.bound import (
    agnostic_error,
    disagreement,
    errs_little_on_any_rows,
    learner_error,
    relabelling_error,
)
from quorate.learners.agnostic.learner import (
    AgnosticLearner,
    AgnosticPlan,
    SubsampledAgnostic,
    SubsampledPlan,
    SubsampledSplit,
)
from quorate.learners.agnostic.prediction import AgnosticPrediction
from quorate.learners.agnostic.price import (
    AgnosticPrice,
    affordable_learner,
    best_split,
    choice_at,
    least_rows,
    relabelled_sample,
    rows_for,
)
from quorate.learners.base.exponential import consistent_error, growth_of
from quorate.learners.concepts import Rectangles, Thresholds
from quorate.learners.fit_charge import inner_at
from quorate.learners.sanitizers import Tree
from quorate.learners.transformed_learner import EmpiricalLearner
from quorate.ledger import Budget, Ledger
from quorate.noise import SeededNoise

FALSE_ALARM = 1e-6
DRAWS = 4_000
GRID = Thresholds(bits=2)
FOUR = exact.thresholds(4)

# Labels that the lowest errors on T, on all rows and on W disagree about.
POINTS = np.array([[0], [1], [1], [2], [3]])
LABELS = np.array([1, 0, 0, 1, 0], dtype=np.uint8)
PRICE = AgnosticPrice(n=5, n_sampled=2, choice_epsilon=4.0, learner_epsilon=2.0)


def seeds(n=DRAWS):
    root = SeededNoise(20261120)
    return (root.at("draw", i) for i in range(n))


@pytest.fixture(scope="module")
def relabelled():
    drawn = []
    for noise in seeds():
        T, new = relabelled_sample(POINTS, LABELS, GRID, PRICE, "permute-and-flip", noise)
        drawn.append(tuple(zip(T[:, 0].tolist(), new.tolist(), strict=True)))
    return drawn


def law_of_T(**cheat):
    told = exact.relabelled_then(lambda rows: {rows: 1}, FOUR, n_sampled=2, choice_epsilon=4.0, **cheat)
    return told(POINTS, LABELS)


def test_sample_order_and_labels_follow_the_exact_law(relabelled):
    assert exact.p_value(law_of_T(), relabelled) > FALSE_ALARM


def by_all_rows(concepts, T, W, labellings):
    """A wrong score: the errors, on all rows, of the first concept with that labelling of T."""
    found = []
    for h in labellings:
        f = next(f for f in concepts if all(f[x] == label for (x, _), label in zip(T, h, strict=True)))
        found.append(len(T) * sum(f[x] != y for x, y in T + W))
    return found


def by_T_alone(concepts, T, W, labellings):
    """A wrong score: BNS15's, which does not use the other rows."""
    return [len(W) * sum(label != y for (_, y), label in zip(T, h, strict=True)) for h in labellings]


@pytest.mark.parametrize(
    "cheat",
    [
        {"scores": by_all_rows},
        {"scores": by_T_alone},
        {"samples": exact.uniform_subsets},
        {"samples": exact.first_rows},
        {"sensitivity": 1},
        {"choose": exact.exponential},
    ],
    ids=["errors on all rows", "errors on T", "T in table order", "no sample", "sensitivity 1", "another mechanism"],
)
def test_that_test_catches_every_wrong_variant(relabelled, cheat):
    assert exact.p_value(law_of_T(**cheat), relabelled) < FALSE_ALARM


def planned(learner, price):
    base = inner_at(learner.base, epsilon=price.learner_epsilon, delta=price.learner_delta)
    fit = learner._base_fit(base, price.n_sampled)
    return AgnosticPlan(
        event=price.event, told="a test", n_labels=price.n, price=price, excess=1.0, base=base, base_fit=fit
    )


@pytest.mark.parametrize("selection", ["permute-and-flip", "exponential"])
def test_what_is_learned_follows_the_exact_law(selection):
    base = ExponentialLearner(concepts=GRID, epsilon=9.0)
    learner = AgnosticLearner(concepts=GRID, base=base, epsilon=9.0, selection=selection)
    plan = planned(learner, PRICE)
    choose = {"permute-and-flip": exact.permute_and_flip, "exponential": exact.exponential}[selection]
    base = exact.best_of_class(FOUR, plan.base_fit.price.epsilon)
    law = exact.relabelled_then(base, FOUR, n_sampled=2, choice_epsilon=4.0, choose=choose)(POINTS, LABELS)
    # A row without a label takes no part.
    drawn = learned(learner, np.concatenate([POINTS, [[3]]]), np.append(LABELS, -1).astype(np.int8), plan)

    assert exact.p_value(law, drawn) > FALSE_ALARM
    assert exact.p_value(exact.best_of_class(FOUR, 2.0)(((0, 1), (1, 0))), drawn) < FALSE_ALARM


def learned(learner, points, labels, plan):
    domain = np.arange(4).reshape(-1, 1)
    return [tuple(learner._learn(points, labels, noise, plan).labels(domain).tolist()) for noise in seeds(2_000)]


def test_what_is_learned_of_a_subsample_follows_the_exact_law():
    split = SubsampledSplit(n_kept=2, epsilon_0=2.0, learner_epsilon=3.0, learner_delta=0.0, excess=1.0)
    base = ExponentialLearner(concepts=GRID, epsilon=3.0)
    learner = SubsampledAgnostic(concepts=GRID, base=base, epsilon=9.0)
    told = {"event": split.price(5).event, "told": "a test", "n_labels": 5, "n_rows": 5, "split": split, "base": base}
    drawn = learned(
        learner, POINTS, LABELS.astype(np.int8), SubsampledPlan(**told, base_fit=learner._base_fit(base, 2))
    )
    how = {"choice_epsilon": 2.0, "choose": exact.exponential, "scores": on_its_own, "sensitivity": 1}
    for epsilon, honest in ((3.0, True), (1.0, False)):
        law = exact.relabelled_then(exact.best_of_class(FOUR, epsilon), FOUR, n_sampled=2, **how)
        assert (exact.p_value(law(POINTS, LABELS), drawn) > FALSE_ALARM) is honest


def learner(**changes):
    base = NoisyThreshold(concepts=DOMAIN, epsilon=1.0)
    return AgnosticLearner(**{"concepts": DOMAIN, "base": base, "epsilon": 1.0, "unsafe_noise_seed": 0, **changes})


def test_a_fit_charges_what_its_plan_costs_and_says_so():
    X, y = noisy_rows(20_000)
    ledger = Ledger(budget=Budget(3.0, 1e-5))

    fitted = learner(ledger=ledger).fit(X, y)

    assert fitted.plan_.event.epsilon == fitted.plan_.price.epsilon
    assert 0.999 < ledger.spent.epsilon <= 1.0
    assert fitted.guarantee_.neighbours == "replace one record"
    assert fitted.guarantee_.epsilon == ledger.spent.epsilon
    assert fitted.n_labels_used_ == 20_000
    assert fitted.transcript_covered_
    assert "sampled in secret" in fitted.guarantee_.mechanism


def test_as_many_rows_as_it_needs_meet_the_bound():
    flipped, wanted, excess = 0.2, learner(alpha=0.15, beta=0.1), []
    needed = wanted.rows_needed()
    n = needed.labelled
    assert needed.theorem.startswith("LWY25 Theorem 3.6")
    assert wanted.split_for(n).excess <= 0.15 < wanted.split_for(n // 2).excess
    for seed in range(12):
        fitted = learner(alpha=0.15, rows="theorem", unsafe_noise_seed=seed).fit(*noisy_rows(n, flipped, seed))
        excess.append(abs(fitted.concept_.cut - 30_000) / 2**16 * (1 - 2 * flipped))
    assert max(excess) <= 0.15


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
def test_fewer_rows_than_any_split_needs_are_refused(epsilon):
    needed = least_rows(epsilon)
    X, y = noisy_rows(needed)

    assert learner(epsilon=epsilon).fit(X, y).guarantee_.epsilon <= epsilon
    if needed > 2:
        with pytest.raises(DataRefused, match=f"needs {needed:,} at least"):
            learner(epsilon=epsilon).fit(X[:-1], y[:-1])


def test_an_error_that_no_number_of_rows_proves_is_refused_by_the_planner_and_only_told_by_a_fit():
    boxes = Rectangles(bits=4, n_features=2)
    given = {"concepts": boxes, "base": ExponentialLearner(concepts=boxes, epsilon=1.0), "limit": 100}
    X = np.random.default_rng(0).integers(0, 16, (300, 2))

    with pytest.raises(InvalidParameter, match="no number of rows"):
        learner(**given).rows_needed()
    with pytest.raises(InvalidParameter, match="no number of rows"):
        learner(**given, rows="theorem").fit(X, (X[:, 0] < 9).astype(int))
    fitted = learner(**given).fit(X, (X[:, 0] < 9).astype(int))
    assert growth_of(boxes)(fitted.plan_.price.n_sampled) <= 100
    assert any("rows_needed() says" in caveat for caveat in fitted.guarantee_.caveats)


def test_any_learner_may_be_the_base_and_what_is_not_proven_is_said():
    grid = Thresholds(bits=4)
    X = np.random.default_rng(0).integers(0, 16, (3_000, 1))
    y = (X[:, 0] < 9).astype(int)
    plain = GenericLearner(concepts=grid, sanitizer=Tree(), epsilon=1.0)
    resampled = EmpiricalLearner(concepts=grid, base=ExponentialLearner(concepts=grid, epsilon=1.0), epsilon=1.0)

    for base, proven in ((plain, False), (resampled, True)):
        fitted = AgnosticLearner(concepts=grid, base=base, epsilon=2.0, unsafe_noise_seed=0).fit(X, y)
        assert errs_little_on_any_rows(base) is proven
        assert any("EmpiricalLearner" in caveat for caveat in fitted.guarantee_.caveats) is not proven
        assert fitted.plan_.base.epsilon == fitted.plan_.price.learner_epsilon
        assert base.epsilon == 1.0  # the base learner that was given is left as it was


@dataclass(kw_only=True, eq=False, repr=False)
class Approximate(ExponentialLearner):
    """A base learner with a δ that it plans to spend."""

    pure: ClassVar[bool] = False

    delta: float

    def _plan(self, n_labelled, n_unlabelled, epsilon, delta):
        return replace(super()._plan(n_labelled, n_unlabelled, epsilon, delta), event=ApproxDP(epsilon, delta))


def test_a_base_learner_with_delta_gets_delta_over_the_share_that_is_sampled():
    grid = Thresholds(bits=4)
    X = np.random.default_rng(0).integers(0, 16, (3_000, 1))
    given = {"concepts": grid, "base": Approximate(concepts=grid, epsilon=1.0, delta=1e-9), "epsilon": 1.0}

    fitted = AgnosticLearner(**given, delta=1e-6, unsafe_noise_seed=0).fit(X, (X[:, 0] < 9).astype(int))

    price = fitted.plan_.price
    assert price.learner_delta == pytest.approx(1e-6 / price.share)
    assert fitted.plan_.base.delta == price.learner_delta
    assert 0.99e-6 < fitted.guarantee_.delta <= 1e-6
    with pytest.raises(InvalidParameter, match="delta"):
        AgnosticLearner(**given).fit(X, (X[:, 0] < 9).astype(int))


def test_the_bound_by_hand():
    price = AgnosticPrice(n=110_000, n_sampled=10_000, choice_epsilon=0.02, learner_epsilon=0.5)
    surprise = np.log(50)
    a0 = np.sqrt(surprise / 200_000)
    a1 = 1e-5 + np.sqrt(100_001 * (np.log(2) + np.log(200_001) + surprise)) / 100_000
    a2 = 2 * (np.log(10_001) + surprise) / (0.02 * 100_000)
    scale = 4 * (np.log(4) + 2 * np.log(20_001) + surprise) / 10_000
    p = a0 + a1 + a2 + 0.01

    assert relabelling_error(price, lambda m: m + 1, 0.02) == pytest.approx(a0 + a1 + a2)
    assert agnostic_error(price, lambda *_: 0.01, lambda m: m + 1, 0.1) == pytest.approx(
        p + scale / 2 + np.sqrt(scale * p + scale**2 / 4)
    )
    assert consistent_error(1000, lambda m: m + 1, 0.01) == pytest.approx(2 * np.log2(2 * 2001**2 / 0.01) / 1000)


def test_disagreements_of_thresholds_stay_below_the_bound():
    """For two thresholds the worst pair is the interval that the sample misses most: simulated, and far below."""
    random = np.random.default_rng(5)
    passed = 0
    for _ in range(200):
        places = np.sort(random.random(300))
        k = np.arange(300)
        # The interval between places i and j has length l and holds j − i − 1 of 300: all pairs at once.
        length = places[np.newaxis, :] - places[:, np.newaxis]
        seen = (k[np.newaxis, :] - k[:, np.newaxis] - 1) / 300
        wide = length > 0
        bound = np.vectorize(lambda p: disagreement(p, 300, lambda m: m + 1, 0.1))(np.arange(300) / 300)
        passed += bool((length[wide] <= bound[np.maximum(seen[wide] * 300, 0).astype(int)]).all())
    assert passed >= 180  # it may fail with probability 0.1


def test_the_search_finds_what_a_fine_grid_finds():
    error = learner_error(NoisyThreshold(concepts=DOMAIN, epsilon=1.0), alpha=0.1, beta=0.02)

    def excess(price):
        return agnostic_error(price, error, lambda m: m + 1, 0.1)

    n, epsilon = 200_000, 0.5
    fine = []
    for n_sampled in np.unique(np.geomspace(100, 30_000, 60).astype(int)).tolist():
        for choice in np.geomspace(1e-4, 0.4, 60).tolist():
            price = affordable_learner(epsilon, 0.0, n=n, n_sampled=n_sampled, choice_epsilon=choice)
            if price is not None:
                fine.append(excess(price))

    assert best_split(n, epsilon=epsilon, delta=0.0, excess=excess).excess <= min(fine) * 1.005


def test_rows_for_is_enough_and_gives_up_at_the_limit():
    assert 1 / rows_for(1e-4, lambda n: 1 / n, start=3) <= 1e-4
    with pytest.raises(InvalidParameter, match="alpha must be larger"):
        rows_for(1e-4, lambda n: 1.0, start=3, limit=1000)


@pytest.mark.parametrize("epsilon", [1e-5, 1e-6, 1e-8])
def test_the_choice_of_every_plan_can_be_made(epsilon):
    """Permute-and-flip takes no ε below 2^-39 of its sensitivity: told by the plan, never after the charge."""
    n = least_rows(epsilon)
    for n_rows in (n, n + n // 10, 2 * n):
        for selection in ("permute-and-flip", "exponential"):
            price = learner(epsilon=epsilon, selection=selection)._plan(n_rows, 0, epsilon, 0.0).price
            choice = choice_at(price, selection)
            assert choice.release(np.array([0, -1]), SeededNoise(0)) in (0, 1)
            assert price.epsilon <= epsilon
    with pytest.raises(DataRefused, match="too few"):
        learner(epsilon=epsilon)._plan(n - 1, 0, epsilon, 0.0)


def test_a_plan_whose_choice_cannot_be_made_is_refused_before_the_charge(monkeypatch):
    monkeypatch.setattr(
        "quorate.learners.agnostic.price.affordable_learner",
        lambda epsilon, delta, **sizes: AgnosticPrice(**sizes | {"choice_epsilon": 1e-13}, learner_epsilon=0.1),
    )
    ledger = Ledger(budget=Budget(1.0, 0.0))
    with pytest.raises(InvalidParameter, match="2\\^-39") as refusal:
        learner(ledger=ledger).fit(*noisy_rows(100))
    assert refusal.value.charged == "nothing was charged"
    assert ledger.spent.epsilon == 0


class Lucky(NoisyThreshold):
    """A base learner whose guarantee rests on something."""

    def _plan(self, *given):
        return replace(super()._plan(*given), caveats=("it rests on luck",))


@pytest.mark.parametrize("kind", [AgnosticLearner, SubsampledAgnostic, EmpiricalLearner])
def test_what_the_base_learners_guarantee_rests_on_is_said_of_the_whole(kind):
    base = Lucky(concepts=DOMAIN, epsilon=1.0)
    fitted = kind(concepts=DOMAIN, base=base, epsilon=1.0).fit(*noisy_rows(500))
    assert "it rests on luck" in fitted.guarantee_.caveats


class Fickle(Thresholds):
    """Takes the first sample of a table that it is asked about, the largest, and no smaller one."""

    largest: ClassVar[dict[int, int]] = {}

    def refuse_relabelling(self, n_T, n_W):
        if n_T < Fickle.largest.setdefault(n_T + n_W, n_T):
            raise InvalidParameter("points: not so few")


@pytest.mark.parametrize("kind", [AgnosticLearner, AgnosticPrediction])
def test_a_plan_that_the_class_would_refuse_is_refused_before_the_charge(kind):
    Fickle.largest.clear()
    ledger, concepts = Ledger(budget=Budget(1.0, 0.0)), Fickle(bits=16)
    base = {} if kind is AgnosticPrediction else {"base": NoisyThreshold(concepts=concepts, epsilon=1.0)}
    with pytest.raises(InvalidParameter, match="not so few") as refusal:
        kind(concepts=concepts, **base, epsilon=1.0, ledger=ledger).fit(*noisy_rows(2_000))
    assert refusal.value.charged == "nothing was charged"
    assert ledger.spent.epsilon == 0
