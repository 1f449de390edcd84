"""A learning curve that is typed in: against teachers of the model that it is fitted with."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.errors import InvalidParameter
from quorate.planning.rehearsal.made_up import LearningCurve


def accuracy(m: float, tau: float, rows: float, n_classes: int = 2) -> float:
    """Accuracy of one teacher by simulation: points, what so few rows add, and a guess where a point is not known."""
    t = np.random.default_rng(0).normal(m, 1, 400_000) + np.random.default_rng(1).normal(0, tau / rows**0.5, 400_000)
    known = 2 * float((t > 0).mean()) - 1
    return known + (1 - known) / n_classes


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize(("m", "tau"), [(1.0, 5.0), (2.0, 3.0)])
def test_a_curve_of_the_model_is_found_again_between_its_points_and_beyond(
    m: float, tau: float, n_classes: int
) -> None:
    rows = (5.0, 20.0, 80.0, 300.0)
    curve = LearningCurve.of([(r, accuracy(m, tau, r, n_classes)) for r in rows], n_classes=n_classes)
    assert (curve.m, curve.tau) == pytest.approx((m, tau), rel=0.05)
    for asked in (10.0, 40.0, 3_000.0):
        assert curve(asked) == pytest.approx(accuracy(m, tau, asked, n_classes), abs=0.01)


def test_it_goes_through_what_was_told_whatever_that_is() -> None:
    told = [(200, 0.86), (20, 0.72), (50, 0.85)]  # no curve of the model is so bent
    curve = LearningCurve.of(told)
    assert [curve(rows) for rows, _ in told] == pytest.approx([each for _, each in told])
    assert 0.72 < curve(30) < 0.85


def test_what_is_below_a_guess_is_a_curve_too() -> None:
    curve = LearningCurve.of([(10, 0.2), (100, 0.3)], n_classes=4)
    assert curve(10) == pytest.approx(0.2)
    assert 0 < LearningCurve.of([(10, 0.01)])(10) < 0.03


def test_the_doubt_is_what_was_told_and_grows_beyond_the_rows_of_the_curve() -> None:
    curve = LearningCurve.of([(20, 0.72), (200, 0.86)], uncertain=0.02)
    assert curve.doubt(20) == curve.doubt(60) == curve.doubt(200) == 0.02
    assert curve.doubt(10) == pytest.approx(curve.doubt(400))
    assert curve.doubt(1_000) > curve.doubt(400) > 0.02


@pytest.mark.parametrize("points", [[(20, 0.6), (20, 0.8)], [(100, 0.9), (20, 0.8), (20, 0.6)]])
def test_two_accuracies_for_one_number_of_rows_are_refused_in_either_order(points: list[tuple[int, float]]) -> None:
    for each in (points, points[::-1]):
        with pytest.raises(InvalidParameter, match="several accuracies for one number of rows"):
            LearningCurve.of(each)
    assert LearningCurve.of([(20, 0.6), (20, 0.6)]) == LearningCurve.of([(20, 0.6)])


@pytest.mark.parametrize("points", [[], [(0, 0.7)], [(10, 1.0)]])
def test_a_curve_that_is_none_is_refused(points: list[tuple[float, float]]) -> None:
    with pytest.raises(InvalidParameter, match="learning_curve must be pairs"):
        LearningCurve.of(points)
