"""Probabilities by margin: against votes that are drawn, and against sums by hand."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from quorate.mechanisms import (
    ConfidentNoisyMax,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    Mechanism,
    NoisyCounts,
    StableSparseVector,
)
from quorate.noise import SeededNoise
from quorate.planning.margins import MARGINS, answer_probabilities, leading, votes


def drawn_truth(mechanism: Mechanism, n_teachers: int, n_classes: int, margin: float, *, times: int = 20_000) -> float:
    """Draw votes of independent teachers and their answers; the share of answers that are the truth, the last class."""
    p = np.full(n_classes, (1 - margin) / n_classes)
    p[-1] += margin
    counts = np.random.default_rng(3).multinomial(n_teachers, p, size=times).astype(np.int64)
    released = mechanism.release_many(counts, SeededNoise(1))  # type: ignore[attr-defined]
    return float((mechanism.answers.codes(released) == n_classes - 1).mean())


@pytest.mark.parametrize(
    ("mechanism", "n_classes"),
    [
        (NoisyCounts(sigma=60.0, form="binary"), 2),
        (GaussianNoisyMax(sigma=20.0), 5),
        (ConfidentNoisyMax(threshold=70.0, sigma_threshold=30.0, sigma_answer=10.0, form="binary"), 2),
    ],
)
def test_the_truth_comes_as_often_as_drawn_votes_have_it(mechanism, n_classes):
    found = answer_probabilities(mechanism, n_teachers=100, n_classes=n_classes)
    for margin, stated in zip(MARGINS, found.truth, strict=True):
        # four standard errors; with five classes the rest is taken as shared evenly, which costs a little more
        assert drawn_truth(mechanism, 100, n_classes, margin) == pytest.approx(stated, abs=0.015)


def test_that_test_catches_another_noise():
    found = answer_probabilities(NoisyCounts(sigma=45.0, form="binary"), n_teachers=100, n_classes=2)
    honest = NoisyCounts(sigma=60.0, form="binary")
    assert any(abs(drawn_truth(honest, 100, 2, m) - t) > 0.015 for m, t in zip(MARGINS, found.truth, strict=True))


def test_two_classes_by_hand():
    """K = 3 and no noise to speak of: the truth is the majority."""
    found = answer_probabilities(GaussianNoisyMax(sigma=1e-3, form="binary"), n_teachers=3, n_classes=2)
    assert found.truth[2] == pytest.approx(binom.sf(1, 3, 0.6))
    assert found.truth[-1] == found.plurality[-1] == 1.0


def test_a_sum_over_nodes_is_the_whole_sum():
    sigma, n = 900.0, 4_000
    found = answer_probabilities(NoisyCounts(sigma=sigma, form="binary"), n_teachers=n, n_classes=2, margins=(0.2,))
    j = np.arange(n + 1)
    whole = float(binom.pmf(j, n, 0.6) @ norm.cdf((j - n / 2 - 0.5) / sigma))
    assert found.truth[0] == pytest.approx(whole, abs=2e-3)


def test_a_sparse_vector_answers_exactly_or_not_at_all():
    found = answer_probabilities(
        StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=100), n_teachers=1_000, n_classes=2
    )
    assert found.plurality[1:] == found.answered[1:]  # at a margin of 0 there is a tie, and the first class has it
    assert found.answered[0] < 1e-5 < 0.99 < found.answered[-1]


def test_votes_add_up_to_all_teachers():
    assert votes(np.array([0, 7, 10]), 10, 4).sum(axis=1).tolist() == [10, 10, 10]


def test_a_mechanism_that_asks_a_student_has_no_probabilities():
    asks = InteractiveNoisyMax(threshold=50.0, sigma_threshold=9.0, sigma_answer=5.0, n_teachers=100, confidence=0.9)
    assert answer_probabilities(asks, n_teachers=100, n_classes=2) is None


def test_a_leading_class_is_ahead_by_its_share_and_the_others_share_the_rest():
    assert [leading(margin, 100, n_classes) for margin, n_classes in ((0.2, 2), (0.2, 5), (1.0, 5))] == [60, 36, 100]
