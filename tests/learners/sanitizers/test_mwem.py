"""MWEM: the exact price of its transcripts, with twins that cheat; its weights, its rounding and its bound."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learners.exact import EXACT, exact, exponential, p_value
from tests.learners.sanitizers.test_tree_bound import xor_error

from quorate.errors import InvalidParameter
from quorate.learners.concepts import Thresholds
from quorate.learners.sanitizers import MWEM, XorQueries, small_domains
from quorate.learners.sanitizers.small_domains import multiplicative_weights
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
        """`noise(round, query)` gives the noise on a measurement. Returns the measurements and all scores."""
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
            _, released = multiplicative_weights(QUERIES, counts, len(rows), rounds, epsilon, QUIET)
        return released, scores, drawn


def loss_of(patch, rows, neighbour, choices, noise, *, rounds=2, epsilon=1.0):
    """Log-likelihood ratio of a transcript, with the prices that the code itself used."""
    script = Scripted(patch)
    released, scores, scales = script.run(rows, choices, lambda k: noise[k], rounds=rounds, epsilon=epsilon)

    def same(k):
        mask = QUERIES.table[released[k].query]
        return released[k].rows - sum(int(mask[x]) for x in neighbour)

    again, other_scores, _ = script.run(neighbour, choices, same, rounds=rounds, epsilon=epsilon)
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
    rows, choices, noise = [0, 0, 1, 3], [2, 4, 2], [1, -2, 0]
    released, _, _ = Scripted(monkeypatch).run(rows, choices, lambda k: noise[k], rounds=3, epsilon=1.0)
    with monkeypatch.context() as patch:
        script = iter(choices)
        one = type("C", (), {"release_many": lambda *_: np.array([next(script)])})
        patch.setattr(small_domains, "Exponential", lambda epsilon: one())
        drawn = iter(noise)
        patch.setattr(small_domains, "discrete_laplace", lambda *_: np.array([next(drawn)]))
        counts = QUERIES.counts(np.bincount(rows, minlength=4))
        mean, _ = multiplicative_weights(QUERIES, counts, 4, 3, 1.0, QUIET)

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


def test_a_domain_beyond_the_limit_is_refused_with_its_size():
    with pytest.raises(InvalidParameter, match="got 65536"):
        MWEM().sanitize(np.array([[1]]), Thresholds(16), 1.0, QUIET)
    with pytest.raises(InvalidParameter, match="cells"):
        MWEM().error_bound(10, Thresholds(12), 0.1, 1.0)
