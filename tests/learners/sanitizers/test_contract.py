"""What every sanitizer promises, on every class that it takes."""

from dataclasses import FrozenInstanceError
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from tests.learners.sanitizers.test_tree import hard_rows, kuiper, xor_error

from quorate.accounting import PureDP
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import GenericLearner, sanitizers
from quorate.learners.concepts import FiniteClass, Intervals, PointFunctions, Rectangles, Stumps, Thresholds
from quorate.learners.concepts.domain import public_domain
from quorate.learners.sanitizers import BLR, MWEM, Boxes, BoxPlan, MedianPlan, Medians, Tree, TreePlan, XorQueries
from quorate.learners.sanitizers.protocol import least_scale, share
from quorate.noise import OSNoise, SeededNoise

CORNERS = ((0.0, 0.5), (1.0, 0.5), (1.0, 2.0), (3.0, 2.0))


class Above:
    """A classifier: 1 where the first column is above a number."""

    def __init__(self, cut):
        self.cut = cut

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.cut).astype(int)


CASES = [
    pytest.param(Tree(), Thresholds(32), id="tree-thresholds"),
    pytest.param(Tree(n_synthetic=70), Intervals(6), id="tree-intervals"),
    pytest.param(Tree(), PointFunctions(62), id="tree-points"),
    pytest.param(Medians(levels=6), Thresholds(32), id="medians-thresholds"),
    pytest.param(Medians(levels=5), Intervals(8), id="medians-intervals"),
    pytest.param(Boxes(), Rectangles((16, 2), n_features=2), id="boxes-rectangles"),
    pytest.param(BLR(size=5), Thresholds(2), id="blr-thresholds"),
    pytest.param(BLR(size=4), Rectangles(1, n_features=2), id="blr-rectangles"),
    pytest.param(BLR(size=4, domain=CORNERS), Stumps(2), id="blr-stumps"),
    pytest.param(MWEM(), Thresholds(3), id="mwem-thresholds"),
    pytest.param(MWEM(rounds=4, n_synthetic=90), Rectangles((1, 2), n_features=2), id="mwem-rectangles"),
    pytest.param(MWEM(domain=CORNERS), Stumps(2), id="mwem-stumps"),
    pytest.param(MWEM(domain=CORNERS), FiniteClass([Above(0), Above(2)], n_features=2), id="mwem-finite"),
    pytest.param(MWEM(domain=CORNERS), FiniteClass([Above(0)], n_features=2), id="mwem-one-concept"),
    pytest.param(BLR(size=2, domain=CORNERS), FiniteClass([Above(0)], n_features=2), id="blr-one-concept"),
]


def rows_for(sanitizer, concept_class, n=200):
    rng = np.random.default_rng(7)
    if getattr(sanitizer, "domain", None) is not None:
        return np.array(CORNERS)[rng.integers(0, 4, n)]
    bits = getattr(concept_class, "column_bits", None) or (concept_class.bits,)
    return np.column_stack([rng.integers(0, 2**width, n) for width in bits])


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("sanitizer", "concept_class"), CASES)
def test_synthetic_points_are_points_of_the_domain(sanitizer, concept_class):
    rows = concept_class.check(rows_for(sanitizer, concept_class))
    sanitizer.check(rows, concept_class)
    synthetic = sanitizer.sanitize(rows, concept_class, 1.0, OSNoise())

    assert synthetic.dtype == rows.dtype
    assert synthetic.shape[1] == concept_class.n_features
    assert np.array_equal(concept_class.check(synthetic), synthetic)
    if isinstance(sanitizer, Boxes):
        assert len(synthetic) == 201 * len(np.unique(synthetic, axis=0))
        return
    if isinstance(sanitizer, Medians):
        assert len(rows) < len(synthetic) < len(rows) + 2**sanitizer.levels
        return
    asked = getattr(sanitizer, "n_synthetic", None) or getattr(sanitizer, "size", None)
    if isinstance(sanitizer, Tree):
        assert len(synthetic) == (asked or len(rows))
        return
    assert len(synthetic) == (asked or 250 * len(XorQueries.of(concept_class, sanitizer.domain).domain))
    if sanitizer.domain is not None:
        assert set(map(tuple, synthetic.tolist())) <= set(CORNERS)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("sanitizer", "concept_class"), CASES)
def test_the_noise_alone_decides(sanitizer, concept_class):
    rows = rows_for(sanitizer, concept_class)
    first, again = (sanitizer.sanitize(rows, concept_class, 0.5, SeededNoise(1)) for _ in range(2))

    assert np.array_equal(first, again)
    if len(getattr(concept_class, "classifiers", "ab")) > 1:  # MWEM asks nothing of a single concept
        others = [sanitizer.sanitize(rows, concept_class, 0.01, SeededNoise(seed)) for seed in range(2, 8)]
        assert any(not np.array_equal(first, other) for other in others)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("sanitizer", "concept_class"), CASES)
def test_the_price_is_the_epsilon_that_is_asked_for(sanitizer, concept_class):
    assert sanitizer.event(0.25) == PureDP(0.25)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("sanitizer", "concept_class"), CASES)
def test_rows_needed_is_the_least_number_that_the_bound_allows(sanitizer, concept_class):
    def bound(n):
        return sanitizer.error_bound(n, concept_class, 0.1, 1.0)

    least = bound(10**12)
    alpha = least + (1 - least) * 0.6
    needed = sanitizer.rows_needed(concept_class, alpha, 0.1, 1.0)

    assert 0 <= least <= bound(needed) <= alpha < 1
    assert needed == 1 or bound(needed - 1) > alpha


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), True, "1", None])
@pytest.mark.parametrize(("sanitizer", "concept_class"), CASES[::3])
def test_numbers_out_of_range_are_refused(sanitizer, concept_class, wrong):
    rows = rows_for(sanitizer, concept_class, n=3)
    with pytest.raises(InvalidParameter, match="epsilon"):
        sanitizer.sanitize(rows, concept_class, wrong, SeededNoise(0))
    with pytest.raises(InvalidParameter, match="epsilon"):
        sanitizer.error_bound(10, concept_class, 0.1, wrong)
    if wrong != 0:  # nothing asked, nothing paid: a price of 0 is one
        with pytest.raises(InvalidParameter, match="epsilon"):
            sanitizer.event(wrong)
    with pytest.raises(InvalidParameter, match="beta"):
        sanitizer.error_bound(10, concept_class, wrong, 1.0)
    with pytest.raises(InvalidParameter, match="alpha"):
        sanitizer.rows_needed(concept_class, wrong, 0.1, 1.0)
    for n in (wrong if wrong is not None else 1.5, 0):
        with pytest.raises(InvalidParameter, match="n must"):
            sanitizer.error_bound(n, concept_class, 0.1, 1.0)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("sanitizer", "concept_class"), CASES)
def test_no_rows_are_refused(sanitizer, concept_class):
    with pytest.raises(DataRefused):
        sanitizer.sanitize(rows_for(sanitizer, concept_class, n=0), concept_class, 1.0, SeededNoise(0))


NO_WAY = {
    "BLR without a domain": (BLR(size=3), Stumps(2), "domain must be given"),
    "MWEM without a domain": (MWEM(), Stumps(2), "domain must be given"),
    "MWEM on a fine grid": (MWEM(), Thresholds(16), "got 65536"),
    "more multisets than the limit": (BLR(size=12, limit=1000), Thresholds(4), str(comb(15 + 12, 12))),
    "Tree on a plane": (Tree(), Rectangles(4, 2), "class on a line"),
    "Medians on a plane": (Medians(), Rectangles(4, 2), "class on a line"),
    "Boxes on a line": (Boxes(), Thresholds(4), "take Tree"),
    "Boxes of many columns": (Boxes(), Rectangles(1, 13), "fewer columns"),
}


@pytest.mark.parametrize(("sanitizer", "concept_class", "said"), NO_WAY.values(), ids=NO_WAY)
def test_what_a_sanitizer_does_not_take_is_named(sanitizer, concept_class, said):
    with pytest.raises(InvalidParameter, match=said):
        sanitizer.sanitize(np.zeros((3, concept_class.n_features), dtype=int), concept_class, 1.0, SeededNoise(0))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: MWEM().error_bound(10, Thresholds(12), 0.1, 1.0), "cells"),
        (lambda: BLR(size=12).error_bound(10, Thresholds(32), 0.1, 1.0), "4096 points, got 4294967296"),
        (lambda: Tree(n_synthetic=10).rows_needed(Intervals(8), 0.2, 0.1, 1.0), "raise n_synthetic"),
        (lambda: Medians(levels=2).rows_to_agree(Thresholds(32), 0.1, 0.1, 1.0), "raise levels"),
        (lambda: asked_within(100, Rectangles(5, 2), Boxes()), "limit"),
        (lambda: asked_within(100, Thresholds(32), Medians()), "fewer levels"),
    ],
)
def test_a_bound_that_there_is_not_says_what_to_change(ask, said):
    with pytest.raises(InvalidParameter, match=said):
        ask()


def asked_within(limit, concepts, sanitizer):
    return GenericLearner(concepts=concepts, sanitizer=sanitizer, epsilon=1.0, limit=limit).check(100, 100)


def box_plan(n, epsilon, bits):
    return BoxPlan.for_budget(bits=bits, n=n, epsilon=epsilon)


def median_plan(n, epsilon, bits, levels, delta):
    plan = MedianPlan.for_budget(bits=bits, n=n, epsilon=epsilon, delta=delta, levels=levels, beta=0.1)
    assert plan.delta <= delta
    assert len(plan.searches) <= min(levels, bits)
    return plan


BUDGETS = [
    *((box_plan, (bits,)) for bits in ((16, 16), (16, 1), (2, 2), (62, 16, 1), (3,) * 6)),
    *((median_plan, (*of, delta)) for of in ((1, 10), (4, 3), (16, 10), (62, 12)) for delta in (0.0, 1e-6)),
]


@pytest.mark.parametrize("epsilon", [1e-10, 1e-9, 0.1, 0.3, 1.0, 7.7, 400.0])
@pytest.mark.parametrize(("plan_of", "size"), BUDGETS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_plan_keeps_its_budget_in_exact_arithmetic_and_wastes_next_to_nothing(plan_of, size, epsilon):
    if plan_of is median_plan and size[2] and epsilon < 1e-6 and size[0] > 6:
        with pytest.raises(InvalidParameter, match="epsilon must be larger for Medians with delta"):
            median_plan(9, epsilon, *size)
        return
    for n in (1, 20_000, 10**9):
        plan = plan_of(n, epsilon, *size)
        lost = 2**40 if plan_of is box_plan else 2**30
        assert Fraction(epsilon) * (1 - Fraction(1, lost)) <= plan.epsilon <= Fraction(epsilon)


@given(bits=st.integers(1, 62), n=st.integers(1, 10**9), epsilon=st.floats(1e-6, 50))
def test_a_plan_of_a_tree_never_costs_more_than_its_budget_and_wastes_next_to_nothing(bits, n, epsilon):
    plan = TreePlan.for_budget(bits=bits, n=n, epsilon=epsilon)
    assert plan.size == 2**bits
    assert Fraction(epsilon) * (1 - Fraction(1, 2**50)) <= plan.epsilon <= Fraction(epsilon)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "domain", [[], [[1, 2], [1, 2]], [["a"]], [[float("nan")]], 3, [[True]], np.zeros((5000, 1)), np.arange(5000)]
)
def test_a_domain_that_is_no_list_of_points_is_refused(domain):
    with pytest.raises(InvalidParameter, match="domain"):
        public_domain(domain)


@given(points=st.lists(st.sampled_from(CORNERS), min_size=1, max_size=30))
def test_a_histogram_counts_each_domain_point(points):
    queries = XorQueries.of(Stumps(2), CORNERS)

    assert queries.histogram(np.array(points)).tolist() == [points.count(corner) for corner in CORNERS]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("wrong", [0, -1, True, 2.5, "9"])
@pytest.mark.parametrize(
    "of", ["Tree n_synthetic", "MWEM rounds", "MWEM n_synthetic", "BLR size", "BLR limit", "Medians levels"]
)
def test_a_field_out_of_range_is_refused_by_its_name(of, wrong):
    kind, field = of.split()
    given = {"size": 3} if kind == "BLR" else {}
    with pytest.raises(InvalidParameter, match=field):
        getattr(sanitizers, kind)(**given | {field: wrong})


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("sanitizer", [Tree(), BLR(size=3), MWEM(), Boxes(), Medians()])
def test_a_sanitizer_is_a_frozen_value(sanitizer):
    assert sanitizer == type(sanitizer)(**{name: getattr(sanitizer, name) for name in sanitizer.__slots__})
    assert hash(sanitizer) == hash(eval(repr(sanitizer)))  # noqa: S307
    with pytest.raises(FrozenInstanceError):
        setattr(sanitizer, sanitizer.__slots__[0], 5)


@given(epsilon=st.floats(1e-6, 100), parts=st.integers(1, 10**6), thirds=st.booleans())
def test_shares_and_scales_never_cost_more_than_the_whole(epsilon, parts, thirds):
    parts = Fraction(parts, 3) if thirds else parts
    part = share(epsilon, parts)

    assert Fraction(part) * parts <= Fraction(epsilon)
    assert Fraction(part) * parts >= Fraction(epsilon) * (1 - Fraction(1, 2**50))
    assert Fraction(1) / Fraction(least_scale(1, part)) <= Fraction(part)


@pytest.mark.parametrize(
    ("sanitizer", "concept_class"), [case for case in CASES if getattr(case.values[0], "domain", None) is not None]
)
def test_rows_outside_are_refused_without_a_value_by_the_check_already(sanitizer, concept_class):
    rows = concept_class.check(rows_for(sanitizer, concept_class))
    refusing = (sanitizer.check, lambda *given: sanitizer.sanitize(*given, 1.0, SeededNoise(0)))
    for place, row in ((0, [1.0, 0.75]), (117, [7.0, 0.5]), (199, [0.0, 2.0])):
        outside = rows.copy()
        outside[place] = row
        for refuse in refusing:
            with pytest.raises(DataRefused, match="lie in the domain") as refusal:
                refuse(outside, concept_class)
            assert "7" not in str(refusal.value)


BOUNDED = {  # a sanitizer, a class, rows, and a budget whose larger noise is told from that of 1; None: not tried
    "tree-thresholds-32": (Tree(), Thresholds(32), 20_000, 1 / 12),
    "tree-thresholds-8": (Tree(), Thresholds(8), 600, 1 / 12),
    "tree-intervals": (Tree(), Intervals(4), 200, 1 / 12),
    "tree-points": (Tree(), PointFunctions(4), 200, None),
    "mwem-thresholds": (MWEM(rounds=12), Thresholds(3), 40_000, 1 / 2000),
    "mwem-intervals": (MWEM(rounds=12), Intervals(2), 40_000, 1 / 2000),
    "mwem-rectangles": (MWEM(rounds=12), Rectangles(1, n_features=2), 40_000, 1 / 2000),
}
RUNS, BETA, FALSE_ALARM = 30, 0.1, 1e-6


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize("case", BOUNDED)
def test_the_error_is_beyond_its_bound_no_more_often_than_promised(case, twin):
    """And with the noise of a twin, for another budget, it is."""
    sanitizer, concept_class, n, caught = BOUNDED[case]
    if twin and caught is None:
        return
    bound = sanitizer.error_bound(n, concept_class, BETA, 1.0)
    rng = np.random.default_rng(6)
    errors = []
    for run in range(RUNS):
        if isinstance(sanitizer, Tree):
            rows = hard_rows(concept_class.bits, n, seed=run % 3)[:, np.newaxis]
        else:
            domain = XorQueries.of(concept_class).domain
            rows = domain[rng.choice(len(domain), size=n, p=rng.dirichlet(np.full(len(domain), 0.3)))]
        found = sanitizer.sanitize(rows, concept_class, caught if twin else 1.0, SeededNoise(1000 + run))
        ends = isinstance(concept_class, Thresholds)
        errors.append(kuiper(rows[:, 0], found[:, 0]) if ends else xor_error(concept_class, rows, found))
    chance = binom.sf(sum(error > bound for error in errors) - 1, RUNS, BETA)

    assert bound < 1
    assert chance < FALSE_ALARM if twin else chance > FALSE_ALARM
    assert twin or max(errors) > 0.12 * bound  # the bound is a bound, and not a hundred times what occurs
