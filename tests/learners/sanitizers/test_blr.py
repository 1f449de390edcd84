"""BLR: its whole law on tiny domains, for every data set and every neighbour, none of it sampled."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, log

import numpy as np
import pytest
from tests.learners.exact import exponential, law_of, p_value, true_epsilon, unlabelled

from quorate.errors import InvalidParameter
from quorate.learners.concepts import Intervals, PointFunctions, Rectangles, Thresholds
from quorate.learners.sanitizers import BLR, XorQueries, theorem_size
from quorate.learners.sanitizers.small_domains import multiset_scores, multisets
from quorate.noise import SeededNoise

FALSE_ALARM = 1e-6


def labellings(concept_class, points):
    """All members of C⊕ on the points, by pairs of concepts; slowly."""
    everything = np.array(points)
    concepts = concept_class.dichotomies(everything)
    rows = {tuple(concepts[i].labels(everything).tolist()) for i in range(len(concepts))}
    return {tuple(a ^ b for a, b in zip(first, second, strict=True)) for first, second in product(rows, repeat=2)}


def domain_of(concept_class):
    sides = [2**bits for bits in getattr(concept_class, "column_bits", [concept_class.bits])]
    return [list(point) for point in product(*(range(side) for side in sides))]


def slow_law(concept_class, size, rows, *, epsilon, sensitivity=None):
    """P(multiset) from the definition: exp(ε q / 2Δ) with q = −max |m c(D) − n c(M)|."""
    domain = domain_of(concept_class)
    queries = [dict(zip(map(tuple, domain), labels, strict=True)) for labels in labellings(concept_class, domain)]
    outcomes = list(combinations_with_replacement(map(tuple, domain), size))
    rows = [tuple(row) for row in rows]
    scores = [
        -max(abs(size * sum(q[x] for x in rows) - len(rows) * sum(q[x] for x in outcome)) for q in queries)
        for outcome in outcomes
    ]
    return law_of(outcomes, exponential(scores, epsilon, size if sensitivity is None else sensitivity))


TINY = [
    pytest.param(Thresholds(1), 3, 3, id="thresholds-1"),
    pytest.param(Thresholds(2), 2, 3, id="thresholds-2"),
    pytest.param(Intervals(2), 2, 2, id="intervals-2"),
    pytest.param(PointFunctions(2), 2, 3, id="points-2"),
]


def worst(concept_class, size, n, *, epsilon=1.0, sensitivity=None):
    def law(points, labels):
        return slow_law(concept_class, size, points.tolist(), epsilon=epsilon, sensitivity=sensitivity)

    return true_epsilon(law, unlabelled([tuple(point) for point in domain_of(concept_class)], n))


@pytest.mark.parametrize(("concept_class", "size", "n"), TINY)
def test_the_exact_epsilon_is_at_most_the_claimed_one_and_not_far_below(concept_class, size, n):
    found = worst(concept_class, size, n)

    assert found.value <= BLR(size=size).event(1.0).epsilon
    assert found.value > 0.4
    assert found.n_pairs >= 3


def test_that_search_catches_a_third_of_the_sensitivity():
    """One replaced row moves m·c(D) by m, not by 1 (as it would if scores were counted in rows)."""
    assert worst(Thresholds(2), 3, 3, sensitivity=1).value > 1


@pytest.mark.heavy_cases(2)
@pytest.mark.parametrize(("concept_class", "size", "n"), TINY)
def test_draws_have_the_slow_law(concept_class, size, n):
    domain = np.array(domain_of(concept_class))
    rows = domain[np.array([0, 0, 1, 1])[:n]]
    noise = SeededNoise(4)
    drawn = [tuple(map(tuple, BLR(size=size).sanitize(rows, concept_class, 2.0, noise).tolist())) for _ in range(800)]

    assert p_value(slow_law(concept_class, size, rows.tolist(), epsilon=2.0), drawn) > FALSE_ALARM
    # a twin at a quarter of the budget, and one at four times, would be seen
    assert p_value(slow_law(concept_class, size, rows.tolist(), epsilon=0.5), drawn) < FALSE_ALARM
    assert p_value(slow_law(concept_class, size, rows.tolist(), epsilon=8.0), drawn) < FALSE_ALARM


@pytest.mark.parametrize("concept_class", [Thresholds(3), Intervals(2), PointFunctions(2), Rectangles(1, n_features=2)])
def test_the_table_holds_one_of_each_pair_of_complements_and_nothing_else(concept_class):
    queries = XorQueries.of(concept_class)
    assert queries.domain.tolist() == domain_of(concept_class)

    rows = [tuple(row) for row in queries.table.tolist()]
    assert len(set(rows)) == len(rows)
    both = {(0,) * len(queries.domain), (1,) * len(queries.domain)}
    both |= set(rows) | {tuple(1 - label for label in row) for row in rows}
    members = labellings(concept_class, queries.domain)
    assert members <= both
    assert all(row in members or tuple(1 - label for label in row) in members for row in rows)


def test_multisets_are_all_there_once():
    found = multisets(4, 3)

    assert found.shape == (comb(6, 3), 4)
    assert set(found.sum(axis=1).tolist()) == {3}
    assert len({tuple(row) for row in found.tolist()}) == len(found)


def test_one_replaced_row_moves_no_score_by_more_than_the_sensitivity_and_some_by_all_of_it():
    queries, size = XorQueries.of(Thresholds(2)), 3
    copies = multisets(4, size)
    rng = np.random.default_rng(0)
    largest = 0
    for _ in range(200):
        rows = rng.integers(0, 4, 5)
        other = rows.copy()
        other[0] = rng.integers(0, 4)
        first, second = (multiset_scores(queries, np.bincount(each, minlength=4), copies) for each in (rows, other))
        largest = max(largest, int(np.abs(first - second).max()))

    assert largest == size


@pytest.mark.parametrize(("concept_class", "size"), [(Thresholds(2), 3), (Thresholds(2), 8), (Intervals(2), 5)])
def test_some_multiset_is_as_near_as_the_net_bound_says_whatever_the_data(concept_class, size):
    queries, copies, n = XorQueries.of(concept_class), multisets(4, size), 7
    farthest = max(
        -multiset_scores(queries, np.bincount(rows, minlength=4), copies).max() / (size * n)
        for rows in combinations_with_replacement(range(4), n)
    )

    assert farthest <= BLR(size=size).net_error(concept_class)


@pytest.mark.parametrize("n", [40, 150])
def test_the_exact_probability_of_an_error_beyond_the_bound_is_at_most_beta(n):
    """Coverage without sampling: the law of the whole output, on data sets of many shapes."""
    concept_class, size, epsilon, beta = Thresholds(2), 6, 1.0, 0.2
    sanitizer = BLR(size=size)
    bound = sanitizer.error_bound(n, concept_class, beta, epsilon)
    queries, copies = XorQueries.of(concept_class), multisets(4, size)
    beyond, at_all = [], []
    for shares in ((1, 0, 0, 0), (1, 1, 1, 1), (5, 2, 2, 1), (0, 1, 1, 0)):
        histogram = np.array(shares) * n // sum(shares)
        histogram[1] += n - histogram.sum()
        scores = multiset_scores(queries, histogram, copies)
        errors = -scores / (size * n)
        chances = [float(p) for p in exponential(scores.tolist(), epsilon, size)]
        beyond.append(sum(p for p, error in zip(chances, errors, strict=True) if error > bound))
        at_all.append(sum(p for p, error in zip(chances, errors, strict=True) if error > bound / 3))

    assert max(beyond) <= beta
    assert max(at_all) > beta  # a third of the bound would not be one


def test_the_bound_is_the_net_and_the_price_of_choosing():
    sanitizer = BLR(size=10)
    number = comb(13, 10)

    assert sanitizer.error_bound(1000, Thresholds(2), 0.1, 2.0) == pytest.approx(0.1 + 2 / 2000 * log(number / 0.1))
    needed = sanitizer.rows_needed(Thresholds(2), 0.2, 0.1, 2.0)
    assert sanitizer.error_bound(needed, Thresholds(2), 0.1, 2.0) <= 0.2
    assert sanitizer.error_bound(needed - 1, Thresholds(2), 0.1, 2.0) > 0.2


def test_the_size_for_an_error_is_far_below_the_papers_on_a_tiny_domain():
    chosen = BLR.for_error(Thresholds(2), 0.2)

    assert chosen.net_error(Thresholds(2)) <= 0.1
    assert BLR(size=chosen.size - 1).net_error(Thresholds(2)) > 0.1
    assert chosen.size < theorem_size(1, 0.1)
    assert theorem_size(2, 0.1) == int(1000 / Fraction(1, 100) * Fraction(log(10))) + 1


def test_too_many_multisets_are_refused_with_their_number():
    with pytest.raises(InvalidParameter, match=str(comb(15 + 12, 12))):
        BLR(size=12, limit=1000).sanitize(np.array([[1]]), Thresholds(4), 1.0, SeededNoise(0))
    with pytest.raises(InvalidParameter, match=r"4096 points, got 4294967296"):
        BLR(size=12).error_bound(10, Thresholds(32), 0.1, 1.0)
