"""MWEM: the exact price of its transcripts, with twins; its weights, rounding and bound. BLR: its whole law."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learners.exact import EXACT, exact, exponential, law_of, p_value, true_epsilon, unlabelled
from tests.learners.sanitizers.test_tree import xor_error

from quorate.learners.concepts import Intervals, PointFunctions, Rectangles, Thresholds
from quorate.learners.sanitizers import BLR, MWEM, XorQueries, small_domains, theorem_size
from quorate.learners.sanitizers.small_domains import multiplicative_weights, multiset_scores, multisets
from quorate.learners.sanitizers.tree import rounded_weights
from quorate.noise import SeededNoise

FALSE_ALARM = 1e-6
QUIET = SeededNoise(0)
QUERIES = XorQueries.of(Thresholds(2))


class Scripted:
    """Runs the shipped rounds with given choices and given noise; keeps the scores that each choice was made from."""

    def __init__(self, patch):
        self.patch = patch

    def run(self, rows, choices, noise, *, rounds, epsilon):
        """`noise(round)` gives the noise on a measurement. Returns mean and measurements, all scores and scales."""
        scores, chosen = [], iter(choices)

        class Choice:
            def __init__(self, epsilon, sensitivity=1.0):
                self.price = (epsilon, sensitivity)

            def release_many(self, counts, source):
                (only,) = counts
                scores.append((self.price, only.copy()))
                return np.array([next(chosen)])

        drawn = []

        def laplace(scale, size, source):
            drawn.append(scale)
            return np.array([noise(len(drawn) - 1)], dtype=np.int64)

        with self.patch.context() as patch:
            patch.setattr(small_domains, "Exponential", Choice)
            patch.setattr(small_domains, "discrete_laplace", laplace)
            counts = QUERIES.counts(np.bincount(rows, minlength=4))
            return multiplicative_weights(QUERIES, counts, len(rows), rounds, epsilon, QUIET), scores, drawn


def loss_of(patch, rows, neighbour, choices, noise, *, rounds=2, epsilon=1.0):
    """Log-likelihood ratio of a transcript, with the prices that the code itself used."""
    script = Scripted(patch)
    (_, released), scores, scales = script.run(rows, choices, lambda k: noise[k], rounds=rounds, epsilon=epsilon)

    def same(k):
        mask = QUERIES.table[released[k].query]
        return released[k].rows - sum(int(mask[x]) for x in neighbour)

    (_, again), other_scores, _ = script.run(neighbour, choices, same, rounds=rounds, epsilon=epsilon)
    assert again == released
    loss = EXACT.mpf(0)
    for k, ((price, first), (_, second)) in enumerate(zip(scores, other_scores, strict=True)):
        p, q = (exponential(each.tolist(), *price)[choices[k]] for each in (first, second))
        loss += EXACT.log(p / q)
        loss += exact(Fraction(abs(same(k)) - abs(noise[k])) / Fraction(scales[k]))
    return loss


@st.composite
def cases(draw):
    rows = draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    place, other = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, 3))
    neighbour = [*rows[:place], other, *rows[place + 1 :]]
    choices = draw(st.lists(st.integers(0, len(QUERIES.table) - 1), min_size=2, max_size=2))
    return rows, neighbour, choices, draw(st.lists(st.integers(-5, 5), min_size=2, max_size=2))


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_no_transcript_tells_more_than_epsilon_between_neighbours(case):
    with pytest.MonkeyPatch.context() as patch:
        assert loss_of(patch, *case) <= 1 + EXACT.mpf(10) ** -12


def worst_loss(patch, n=3):
    """Over all neighbours of n rows on four points, all choices of one round and some noises."""
    found = EXACT.mpf(0)
    for common in combinations_with_replacement(range(4), n - 1):
        for a, b in product(range(4), repeat=2):
            for choice in range(len(QUERIES.table)) if a != b else ():
                for noise in (0, 3, -3):
                    found = max(found, loss_of(patch, [*common, a], [*common, b], [choice], [noise], rounds=1))
    return found


def test_a_round_costs_its_share_and_not_much_less(monkeypatch):
    assert 0.75 < worst_loss(monkeypatch) <= 1


def test_that_search_catches_a_choice_at_half_the_noise(monkeypatch):
    shipped = small_domains.share
    monkeypatch.setattr(small_domains, "share", lambda epsilon, parts: 2 * shipped(epsilon, parts))

    assert worst_loss(monkeypatch) > 1.5


def test_that_search_catches_scores_that_one_row_moves_by_two(monkeypatch):
    class Doubled:
        def __getattr__(self, name):
            return getattr(np, name)

        @staticmethod
        def abs(values):
            return 4 * np.abs(values)

    monkeypatch.setattr(small_domains, "np", Doubled())
    assert worst_loss(monkeypatch) > 1


def test_one_round_has_the_exact_law_of_choice_and_measurement():
    rows, epsilon, n_draws = [0, 0, 0, 1, 3, 3], 4.0, 3000
    counts = QUERIES.counts(np.bincount(rows, minlength=4))
    expected = [round(len(rows) * sum(mask) / 4) for mask in QUERIES.table.tolist()]
    scores = [abs(sum(mask[x] for x in rows) - e) for mask, e in zip(QUERIES.table.tolist(), expected, strict=True)]
    ratio = EXACT.exp(-EXACT.mpf(epsilon) / 4)

    def law(budget):
        return {
            (query, int(counts[query]) + z): p * (1 - ratio) / (1 + ratio) * ratio ** abs(z)
            for query, p in enumerate(exponential(scores, 3 * budget / 4))
            for z in range(-40, 41)
        }

    noise = SeededNoise(8)
    drawn = []
    for _ in range(n_draws):
        _, (released,) = multiplicative_weights(QUERIES, counts, len(rows), 1, epsilon, noise)
        drawn.append((released.query, released.rows))

    assert p_value(law(epsilon), drawn) > FALSE_ALARM
    assert p_value(law(epsilon / 3), drawn) < FALSE_ALARM  # a twin


def test_weights_follow_the_measurements_by_the_stated_rule(monkeypatch):
    script, noise = Scripted(monkeypatch), [1, -2, 0]
    (mean, released), _, _ = script.run([0, 0, 1, 3], [2, 4, 2], lambda k: noise[k], rounds=3, epsilon=1.0)

    weights, seen = [0.25] * 4, []
    for measured in released:
        seen.append(weights)
        mask = QUERIES.table[measured.query].tolist()
        step = 4 * (measured.rows / 4 - sum(w for w, inside in zip(weights, mask, strict=True) if inside))
        weights = [w * np.exp(step * inside) for w, inside in zip(weights, mask, strict=True)]
        weights = [w / sum(weights) for w in weights]
    np.testing.assert_allclose(mean, np.mean(seen, axis=0))


@given(
    weights=st.lists(st.floats(0, 1), min_size=2, max_size=8).filter(lambda w: sum(w) > 0.01),
    size=st.integers(1, 50),
)
def test_rounding_moves_no_query_by_more_than_it_says(weights, size):
    shares = np.array(weights) / sum(weights)
    copies = rounded_weights(shares, size)
    gap = copies / size - shares

    assert copies.sum() == size
    assert copies.min() >= 0
    # over all subsets of the domain, the largest error is that of the points rounded up
    assert max(gap[gap > 0].sum(), -gap[gap < 0].sum()) <= len(weights) / (4 * size) + 1e-9


def test_with_no_noise_to_speak_of_the_rounds_alone_decide():
    """ln|X|/2T is what is left of the bound, and the error keeps below it."""
    n, rounds = 2000, 40
    rng = np.random.default_rng(2)
    bound = MWEM(rounds=rounds).error_bound(n, Thresholds(4), 0.1, 1e6)
    for seed in range(5):
        rows = rng.choice(16, size=(n, 1), p=rng.dirichlet(np.full(16, 0.2)))
        synthetic = MWEM(rounds=rounds).sanitize(rows, Thresholds(4), 1e6, SeededNoise(seed))
        assert xor_error(Thresholds(4), rows, synthetic) <= bound

    assert bound == pytest.approx(np.sqrt(np.log(16) / (2 * rounds)), rel=0.02)


def test_a_class_of_one_concept_asks_nothing_and_errs_by_nothing():
    queries = XorQueries(np.arange(2)[:, np.newaxis], np.zeros((0, 2), dtype=np.uint8))
    weights, released = multiplicative_weights(queries, np.zeros(0, dtype=np.int64), 5, 3, 1.0, QUIET)

    assert (weights.tolist(), released) == ([0.5, 0.5], ())


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


def test_the_size_for_an_error_is_far_below_the_papers_on_a_tiny_domain():
    chosen = BLR.for_error(Thresholds(2), 0.2)

    assert chosen.net_error(Thresholds(2)) <= 0.1
    assert BLR(size=chosen.size - 1).net_error(Thresholds(2)) > 0.1
    assert chosen.size < theorem_size(1, 0.1)
    assert theorem_size(2, 0.1) == int(1000 / Fraction(1, 100) * Fraction(log(10))) + 1
