"""From a typed learning curve to a student: against votes that are drawn from the same model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from quorate.errors import InvalidParameter
from quorate.planning.learning_curve import LearningCurve


def drawn(m: float, tau: float, rows: float, share_noise: float) -> float:
    """Accuracy of a student by simulation: points, then what it reads off the votes."""
    rng = np.random.default_rng(0)
    t = rng.normal(m, 1, 200_000)
    share = ndtr(t / (tau / np.sqrt(rows))) + rng.normal(0, share_noise, t.shape)
    return float((share > 0.5).mean())


@pytest.mark.parametrize(("m", "tau"), [(1.0, 5.0), (2.0, 3.0)])
def test_a_curve_of_the_model_is_fitted_and_its_student_is_the_simulated_one(m: float, tau: float) -> None:
    rows = np.array([5.0, 20, 80, 300])
    curve = LearningCurve.of([(r, float(ndtr(m / np.sqrt(1 + tau**2 / r)))) for r in rows])
    assert (curve.m, curve.tau) == pytest.approx((m, tau), rel=0.05)
    for noise in (0.02, 0.2, 1.0):
        assert curve.student(40, noise).accuracy == pytest.approx(drawn(m, tau, 40, noise), abs=0.01)


def test_no_noise_is_the_best_and_endless_noise_a_coin() -> None:
    curve = LearningCurve.of([(20, 0.72), (200, 0.86)])
    accuracies = [curve.student(50, noise).accuracy for noise in (0.0, 0.1, 1.0, 1e6)]
    assert accuracies == sorted(accuracies, reverse=True)
    assert accuracies[-1] == pytest.approx(0.5, abs=1e-4)


def test_a_range_widens_beyond_what_was_typed_in() -> None:
    curve = LearningCurve.of([(20, 0.72), (200, 0.86)])
    inside, beyond = curve.student(50, 0.3), curve.student(2_000, 0.3)
    assert beyond.high - beyond.low > inside.high - inside.low


@pytest.mark.parametrize("points", [[], [(0, 0.7)], [(10, 1.0)]])
def test_a_curve_that_is_none_is_refused(points: list[tuple[float, float]]) -> None:
    with pytest.raises(InvalidParameter, match="learning_curve must be pairs"):
        LearningCurve.of(points)
