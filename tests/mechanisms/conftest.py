"""Exact laws, summed term by term, for the tests of every mechanism: nothing here comes from the package."""

from itertools import product
from math import exp

import numpy as np
import pytest
from scipy import stats


class Exact:
    """Laws as pairs (values z, probabilities p); answers 0..C-1 as arrays of probabilities."""

    FALSE_ALARM = 1e-6  # how often a statistical test may fail on correct code

    @staticmethod
    def law(weight, low, high):
        z = np.arange(low, high + 1)
        p = np.array([weight(int(v)) for v in z])
        return z, p / p.sum()

    @classmethod
    def gaussian(cls, sigma):
        far = int(12 * sigma) + 8
        return cls.law(lambda z: exp(-z * z / (2 * sigma * sigma)), -far, far)

    @classmethod
    def laplace(cls, scale):
        far = int(45 * scale) + 8
        return cls.law(lambda z: exp(-abs(z) / scale), -far, far)

    @classmethod
    def geometric(cls, scale):
        return cls.law(lambda z: exp(-z / scale), 0, int(45 * scale) + 8)

    @staticmethod
    def wins(counts, z, p):
        """P(class c wins the noisy max), ties to the lowest index."""
        below = np.concatenate([[0.0], np.cumsum(p)])  # below[i] = P(Z < z[0] + i)
        wins = np.zeros(len(counts))
        for c, n_c in enumerate(counts):
            for v, p_v in zip(z.tolist(), p.tolist(), strict=True):
                others = 1.0
                for other, n in enumerate(counts):
                    if other != c:
                        limit = v + n_c - n + (other > c)  # a higher class may tie and still lose
                        others *= below[min(max(limit - z[0], 0), len(p))]
                wins[c] += p_v * others
        return wins

    @staticmethod
    def half_lead_wins(counts, z, p):
        """P(answer 0), P(answer 1) of the binary form."""
        lead = -((counts[0] - counts[1]) // 2)
        one = p[z + lead > 0].sum()
        return np.array([1 - one, one])

    @staticmethod
    def fit(answers, expected):
        """Return the p-value of answers 0..C-1 against their probabilities: Pearson's, and one for the rare answers."""
        observed = np.bincount(answers, minlength=len(expected))
        assert len(observed) == len(expected), "an answer out of range"
        rare = expected * answers.size < 10
        p_value = stats.binom.sf(observed[rare].sum() - 1, answers.size, expected[rare].sum()) if rare.any() else 1.0
        if (~rare).sum() > 1:
            observed, expected = observed[~rare], expected[~rare] * answers.size
            p_value = min(p_value, stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))
        return 2 * p_value

    @staticmethod
    def repeat(counts, n=100_000):
        return np.tile(np.array(counts, dtype=np.int64), (n, 1))

    @staticmethod
    def histograms(n_classes, n_teachers):
        return [c for c in product(range(n_teachers + 1), repeat=n_classes) if sum(c) <= n_teachers]

    @staticmethod
    def neighbours(counts):
        """Return every histogram that one teacher, by another vote or by abstaining or not, can turn this into."""
        n = len(counts)
        for a, b in product(range(-1, n), repeat=2):  # from class a to class b; -1 is an abstention
            if a != b:
                changed = list(counts)
                if a >= 0:
                    changed[a] -= 1
                if b >= 0:
                    changed[b] += 1
                if min(changed) >= 0:
                    yield tuple(changed)

    @classmethod
    def worst_delta(cls, output_law, n_classes, n_teachers, epsilon):
        """Return the largest Σ max(0, P − e^ε P′) over all neighbouring histograms of at most `n_teachers` votes."""
        laws = {c: output_law(c) for c in cls.histograms(n_classes, n_teachers + 1)}
        return max(
            np.maximum(laws[a] - np.exp(epsilon) * laws[b], 0).sum()
            for a in cls.histograms(n_classes, n_teachers)
            for b in cls.neighbours(a)
        )


@pytest.fixture(scope="session")
def exact():
    return Exact
