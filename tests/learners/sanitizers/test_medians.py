"""Medians: its price by every branch of tiny tables, with twins that cheat; its scores and bounds by brute force."""

from itertools import combinations_with_replacement
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learners.exact import EXACT, exponential, hockey_stick, mixture, true_delta, true_epsilon, unlabelled
from tests.learners.sanitizers.test_boxes import widest_gap
from tests.learners.sanitizers.test_tree import kuiper

from quorate.accounting import ApproxDP, PureDP
from quorate.errors import InvalidParameter
from quorate.learners import GenericLearner, LabelBoost, SubSampling
from quorate.learners.base.grid_choice import GridChoice
from quorate.learners.concepts import Intervals, PointFunctions, Thresholds
from quorate.learners.sanitizers import MedianPlan, Medians, medians
from quorate.learners.sanitizers.medians import Search, Steps, median_score, search
from quorate.mechanisms import DistanceToInstability
from quorate.noise import SeededNoise


class Branches:
    """Runs a function again and again, each draw of a mechanism taking its next outcome, and weighs each run."""

    def __init__(self, patch):
        self.patch, self.path, self.weight = patch, [], None

    def _take(self, law):
        """Take one outcome of ``[(outcome, probability), …]``: the scripted one, then the first."""
        place = len(self.taken)
        choice = self.path[place] if place < len(self.path) else 0
        self.taken.append((choice, len(law)))
        outcome, probability = law[choice]
        self.weight *= probability
        return outcome

    def law(self, function):
        def release(mechanism, scores, sizes, noise):
            weights = exponential(scores.tolist(), mechanism.epsilon, mechanism.sensitivity)
            total = EXACT.fsum(w * s for w, s in zip(weights, sizes.tolist(), strict=True))
            each = [w / total for w, s in zip(weights, sizes.tolist(), strict=True) for _ in range(s)]
            return self._take(list(enumerate(each)))

        def stable(mechanism, counts, noise):
            (lead, other) = counts[0].tolist()
            distance = max(0, -(-(lead - other) // 2) - 1)
            below = int(mechanism.threshold) + 1 - distance  # passes where Z >= this
            r = EXACT.exp(-EXACT.mpf(1) / EXACT.mpf(float(np.nextafter(1 / mechanism.epsilon, np.inf))))
            tail = r**below / (1 + r) if below > 0 else 1 - r ** (1 - below) / (1 + r)
            return np.array([self._take([(0, tail), (-1, 1 - tail)])])

        with self.patch.context() as patch:
            patch.setattr(GridChoice, "release", release)
            patch.setattr(DistanceToInstability, "release_many", stable)
            parts, self.path = [], []
            while True:
                self.taken, self.weight = [], EXACT.mpf(1)
                outcome = function()
                parts.append((self.weight, {outcome: 1}))
                while self.taken and self.taken[-1][0] + 1 == self.taken[-1][1]:
                    self.taken.pop()
                if not self.taken:
                    return mixture(parts)
                self.path = [choice for choice, _ in self.taken[:-1]] + [self.taken[-1][0] + 1]


def split_law(patch, searches, size):
    """The law of all splits of a table; they are all that a replaced row moves but for the counts."""

    def law(points, labels):
        values = np.sort(points[:, 0])
        splits = medians.noisy_splits
        return Branches(patch).law(lambda: tuple(splits(values, size, searches, SeededNoise(0)).tolist()))

    return law


def at_once(epsilon, size, levels=2):
    return (Search.for_budget(size=size, epsilon=epsilon, delta=0.0, turns=0, beta=0.1),) * levels


def by_scales(epsilon, delta, size, turns=1, levels=1):
    plan = Search.for_budget(size=size, epsilon=epsilon, delta=delta, turns=turns, beta=0.4)
    return (plan,) * levels


def test_no_splits_of_tiny_tables_tell_more_than_their_price_and_some_tell_nearly_as_much(monkeypatch):
    searches = at_once(0.5, 4)
    found = true_epsilon(split_law(monkeypatch, searches, 4), unlabelled(range(4), 3))
    assert found.value <= 2 * 2 * 0.5
    near = true_epsilon(split_law(monkeypatch, at_once(3.0, 3, levels=1), 3), unlabelled(range(3), 4))
    assert 0.9 * 6 < near.value <= 6  # one level, a budget that leaves little to chance


@pytest.mark.parametrize("turns", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_by_scales_no_splits_tell_more_than_their_price(monkeypatch, turns):
    searches = by_scales(2.0, 0.02, 8, turns)
    (plan,) = searches
    epsilon = 2 * float(plan.epsilon)
    delta = (1 + exp(float(plan.epsilon))) * plan.stable_draws * plan.stable_delta
    law = split_law(monkeypatch, searches, 8)
    assert true_delta(law, epsilon, unlabelled((0, 1, 5, 7), 3)).value <= delta
    if turns == 1:  # the parts by themselves: no slack of the composition hides what a test of stability adds
        assert true_delta(law, epsilon / 4, unlabelled((0, 1, 5, 7), 3)).value > 0


def test_a_score_of_twice_the_step_is_caught(monkeypatch):
    """A twin that forgets that doubled scores move by 1 where they are centred, and by 2 where they are not."""
    honest = median_score

    def twice(values, size, floor):
        steps = honest(values, size, floor)
        return Steps(steps.starts, 2 * steps.scores, steps.size, 2 * steps.floor)

    searches = at_once(3.0, 3, levels=1)
    law = split_law(monkeypatch, searches, 3)
    assert true_epsilon(law, unlabelled(range(3), 4)).value <= 6
    monkeypatch.setattr(medians, "median_score", twice)
    assert true_epsilon(law, unlabelled(range(3), 4)).value > 6


def test_one_budget_for_all_levels_is_caught(monkeypatch):
    """A twin that takes the nodes of all levels to be disjoint parts of the rows."""
    claimed = 2 * 3.0
    assert true_epsilon(split_law(monkeypatch, at_once(3.0, 4, 2), 4), unlabelled((0, 1, 3), 4)).value > claimed


def test_a_split_at_the_exact_median_is_caught(monkeypatch):
    monkeypatch.setattr(medians, "search", lambda steps, plan, noise: int(steps.starts[np.argmax(steps.scores)]))
    assert true_epsilon(split_law(monkeypatch, at_once(0.5, 4), 4), unlabelled(range(4), 3)).value > 100


SIZE, WIDTH = 32, 8
PLACES = (0, 3, 9, 14, 21, 31)  # in each cell of either partition, at ends and within
STABLE = Search.for_budget(size=SIZE, epsilon=5.0, delta=0.01, turns=1, beta=0.4)


def worst_cell(patch):
    """The largest δ, beside the test's own ε, by which a row more or less moves the cell that is released.

    The test of stability by itself: in a whole search the slack of the other steps hides what it lets through.
    """
    factor, worst = EXACT.exp(EXACT.mpf(STABLE.stable_epsilon)), EXACT.mpf(0)

    def law(rows, offset):
        steps = median_score(np.array(sorted(rows), dtype=np.int64), SIZE, STABLE.floor)
        return Branches(patch).law(
            lambda: medians._released_cell(steps, WIDTH, offset, STABLE, SeededNoise(0).at("cell", 0))
        )

    for offset in (0, WIDTH // 2):
        laws = {rows: law(rows, offset) for m in range(6) for rows in combinations_with_replacement(PLACES, m)}
        for rows, more in ((rows, tuple(sorted((*rows, x)))) for rows in laws if len(rows) < 5 for x in PLACES):
            p, q = laws[rows], laws[more]
            worst = max(worst, hockey_stick(p, q, factor), hockey_stick(q, p, factor))
    return worst


def test_a_released_cell_tells_no_more_of_a_row_than_the_test_of_stability_costs(monkeypatch):
    assert 0 < worst_cell(monkeypatch) <= STABLE.stable_delta


def test_a_cell_that_is_released_without_a_test_is_caught(monkeypatch):
    """A twin that takes what leads for stable."""
    monkeypatch.setattr(
        medians,
        "_released_cell",
        lambda steps, width, offset, plan, noise: steps.leading_cell(width, offset)[0],
    )
    assert worst_cell(monkeypatch) == 1


def test_a_test_for_a_lead_that_moves_by_one_is_caught(monkeypatch):
    """A twin that takes the whole lead for the distance, which is half of it."""
    honest = Steps.leading_cell

    def whole(steps, width, offset):
        first, lead = honest(steps, width, offset)
        return first, 2 * lead + 2

    monkeypatch.setattr(Steps, "leading_cell", whole)
    assert worst_cell(monkeypatch) > STABLE.stable_delta


def naive_score(rows, x):
    return 2 * min(sum(row <= x for row in rows), sum(row >= x for row in rows)) - len(rows)


@given(
    rows=st.lists(st.integers(0, 19), max_size=25),
    extra=st.integers(0, 4),
    floor=st.integers(1, 30),
    other=st.integers(0, 19),
)
def test_the_score_of_a_median_is_what_it_says_and_one_row_moves_it_by_one(rows, extra, floor, other):
    size = 20 + extra
    steps, more = (median_score(np.array(sorted(each), dtype=np.int64), size, floor) for each in (rows, [*rows, other]))
    points = np.arange(size)
    assert steps.at(points).tolist() == [max(-floor, naive_score(rows, x)) for x in range(size)]
    assert np.abs(steps.at(points) - more.at(points)).max() <= 1
    assert steps.scores.max() >= 0
    assert int(steps.sizes().sum()) == size
    assert steps.at(np.array([-1, size])).tolist() == [-floor, -floor]
    assert np.abs(steps.levels() - more.levels()).max() <= 1
    for width in (1, 2, 4, 8):
        for offset in (0, width // 2):
            (cell, lead), (other_cell, other_lead) = (each.leading_cell(width, offset) for each in (steps, more))
            assert (abs(lead - other_lead) if cell == other_cell else lead + other_lead) <= 2


@given(rows=st.lists(st.integers(0, 19), max_size=25), size=st.integers(20, 33), floor=st.integers(1, 30))
def test_levels_and_leads_are_what_they_say(rows, size, floor):
    steps = median_score(np.array(sorted(rows), dtype=np.int64), size, floor)
    scores = steps.at(np.arange(size)).tolist()
    for i, level in enumerate(steps.levels().tolist()):
        cells = [scores[a : a + 2**i] for a in range(0, size, 2**i)]
        assert level == max((min(cell) for cell in cells if len(cell) == 2**i), default=-floor)
    for width in (1, 3, 8):
        for offset in (0, 1):
            first, lead = steps.leading_cell(width, offset)
            tops = {}
            for x, score in enumerate(scores):
                key = (x - offset) // width
                tops[key] = max(tops.get(key, -floor), score)
            own = tops.pop((first - offset) // width)
            assert lead == own - max([-floor, *tops.values()])
            assert lead >= 0


@pytest.mark.parametrize("turns", [0, 1, 2])
@pytest.mark.parametrize("size", [2**12, 2**20 - 3])
def test_a_search_loses_no_more_than_its_error(turns, size):
    plan = Search.for_budget(size=2**20, epsilon=1.0, delta=1e-4, turns=turns, beta=0.05)
    random = np.random.default_rng(0)
    bad = 0
    for seed in range(20):
        centre, spread = random.integers(0, size), 10 ** random.uniform(0, 5)
        rows = np.clip(random.normal(centre, spread, 3_000), 0, size - 1).astype(np.int64)
        rows = np.sort(rows)
        steps = median_score(rows, size, plan.floor)
        bad += int(steps.at(np.array([search(steps, plan, SeededNoise(seed))]))[0]) < -plan.error
    assert bad <= 4  # 20 draws at β = .05: more than 4 less often than 3 in 1,000


def test_a_budget_beyond_floats_is_taken_at_once_and_refused_by_scales():
    plan = MedianPlan.for_budget(bits=8, n=9, epsilon=5_000.0, delta=0.0, levels=3, beta=0.1)
    assert plan.delta == 0 < plan.epsilon <= 5_000
    with pytest.raises(InvalidParameter, match="epsilon must be at most 500 for Medians"):
        MedianPlan.for_budget(bits=8, n=9, epsilon=5_000.0, delta=1e-6, levels=3, beta=0.1)


def test_rows_by_scales_hardly_grow_with_the_domain_and_at_once_they_do():
    at_once, scales = (
        [Medians(delta=delta, levels=9).rows_to_agree(Thresholds(bits), 0.0075, 0.025, 1.0) for bits in (16, 32, 62)]
        for delta in (0.0, 1e-6)
    )
    assert scales[-1] < 1.03 * scales[0]
    assert at_once[-1] > 2 * at_once[0]
    assert at_once[-1] < scales[-1]  # and it never pays on a grid that is shipped


BITS, N = 20, 8_000


def shapes():
    random = np.random.default_rng(0)
    return {
        "one point": np.full(N, 123_456),
        "two points": np.where(np.arange(N) % 2, 0, 2**BITS - 1),
        "spread": random.integers(0, 2**BITS, N),
        "halving": (2.0 ** random.uniform(0, BITS, N)).astype(np.int64) - 1,
        "comb": 4096 * random.integers(0, 2**BITS // 4096, N),
        "beside a power of two": 2**19 + random.integers(-3, 3, N),
    }


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("shape", shapes())
def test_the_errors_stay_below_their_bounds_on_hard_shapes(shape, delta):
    rows, sanitizer = shapes()[shape], Medians(delta=delta, levels=6)
    agree, bound = (f(N, Thresholds(BITS), 0.1, 2.0) for f in (sanitizer.agreement_bound, sanitizer.error_bound))
    assert 0 < agree < bound
    for seed in range(2):
        released = sanitizer.sanitize(rows[:, np.newaxis], Thresholds(BITS), 2.0, SeededNoise(seed))
        assert widest_gap(rows[:, np.newaxis], released) <= agree
        assert kuiper(rows, released[:, 0]) <= bound


def test_splits_that_ignore_the_rows_break_the_bound(monkeypatch):
    monkeypatch.setattr(medians, "search", lambda steps, plan, noise: steps.size // 2)
    rows = shapes()["beside a power of two"][:, np.newaxis] + 4
    released = Medians().sanitize(rows, Thresholds(BITS), 2.0, SeededNoise(0))
    assert widest_gap(rows, released) > Medians().agreement_bound(N, Thresholds(BITS), 0.1, 2.0)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("concepts", [Thresholds(32), Intervals(32), PointFunctions(20)])
def test_a_class_on_a_fine_line_is_learned(concepts, delta):
    random = np.random.default_rng(0)
    X = random.integers(0, 2**concepts.bits, (4_000, 1))
    if isinstance(concepts, PointFunctions):
        X[::2] = 77
        truth = X[:, 0] == 77
    else:
        truth = X[:, 0] < 2 ** (concepts.bits - 1)
    y = np.where(np.arange(len(X)) < 1_000, truth, -1)
    learner = GenericLearner(concepts=concepts, sanitizer=Medians(), epsilon=2.0, delta=delta, unsafe_noise_seed=0).fit(
        X, y
    )
    assert learner.score(X, truth) > 0.9
    assert learner.guarantee_.delta == (delta or 0.0)
    assert learner.plan_.event == (ApproxDP(2.0, delta) if delta else PureDP(2.0))


def test_a_delta_is_the_sanitizers_where_the_learner_names_none_and_theorems_are_reached():
    learner = GenericLearner(concepts=Thresholds(16), sanitizer=Medians(delta=1e-6), epsilon=1.0)
    pure = GenericLearner(concepts=Thresholds(16), sanitizer=Medians(delta=1e-6), epsilon=1.0, delta=0.0)
    assert not learner.pure
    assert pure.pure
    assert pure.rows_needed().unlabelled < learner.rows_needed().unlabelled
    assert learner.rows_needed().labelled == pure.rows_needed().labelled
    fine = GenericLearner(concepts=Thresholds(32), sanitizer=Medians(), epsilon=1.0, alpha=0.01)
    assert fine.rows_needed().labelled > pure.rows_needed().labelled  # the splits follow α


def test_learners_around_it_pass_their_delta_on():
    base = GenericLearner(concepts=Thresholds(32), sanitizer=Medians(delta=1e-6), epsilon=1.0)
    with pytest.raises(InvalidParameter, match="delta must be > 0"):
        SubSampling(base=base, epsilon=0.5).check(1_000, 1_000)
    for kind, unlabelled_rows in ((SubSampling, 0), (LabelBoost, 50_000)):
        outer = kind(base=base, epsilon=1.0, delta=1e-6)
        plan = outer._plan(50_000, unlabelled_rows, *outer._target())
        assert 0 < plan.event.delta <= 1e-6
        assert plan.event.epsilon <= 1.0
