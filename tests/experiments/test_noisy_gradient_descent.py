"""The direct competitor: its sensitivity and its noise are those of its claim, and it is given a fair chance."""

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from quorate.errors import InvalidParameter
from quorate.experiments import noisy_gradient_descent as module
from quorate.experiments.noisy_gradient_descent import CLIP, noisy_gradient_descent, sum_of_clipped, unit_rows
from quorate.experiments.sources import mushroom, split


class Recorded:
    """A generator that adds no noise and keeps the standard deviation that it was asked for."""

    def __init__(self) -> None:
        self.scales: list[float] = []

    def normal(self, mean: float, scale: float, size: int) -> np.ndarray:
        self.scales.append(scale)
        return np.zeros(size)


def delta_of(epsilon: float, mu: float) -> float:
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize(("neighbours", "moved"), [("replace", 2.0), ("add or remove", 1.0)])
def test_all_steps_together_have_the_noise_of_their_price(neighbours, moved):
    rng = Recorded()
    noisy_gradient_descent(
        np.eye(3), np.array([0, 1, 1]), epsilon=0.7, delta=1e-4, rng=rng, neighbours=neighbours, steps=25
    )
    assert len(rng.scales) == 25
    mu = math.sqrt(sum((moved * CLIP / scale) ** 2 for scale in rng.scales))
    assert delta_of(0.7, mu) == pytest.approx(1e-4, rel=1e-3)


@pytest.mark.parametrize("neighbours", ["replace", "add or remove"])
def test_no_row_moves_the_sum_of_gradients_further_than_is_claimed(neighbours):
    rng = np.random.default_rng(0)
    rows = unit_rows(rng.normal(size=(2_000, 4)))
    for _ in range(20):
        weights = 30 * rng.normal(size=5)
        codes = rng.integers(0, 2, 2_000)
        slopes = expit(rows @ weights[:-1] + weights[-1]) - codes
        slopes *= np.minimum(1.0, CLIP / np.maximum(math.sqrt(2) * np.abs(slopes), 1e-12))
        parts = slopes[:, None] * np.column_stack([rows, np.ones(2_000)])
        lengths = np.linalg.norm(parts, axis=1)
        assert lengths.max() <= CLIP * (1 + 1e-9)
        if neighbours == "replace":
            pairs = np.linalg.norm(parts[:1_000] - parts[1_000:], axis=1)
            assert pairs.max() <= 2 * CLIP * (1 + 1e-9)
    assert lengths.max() > 0.9 * CLIP  # the bound is not idle


def test_unclipped_long_rows_would_break_the_claim():
    """The cheat: rows as they are. One of length 10 moves the sum ten times as far."""
    row = np.array([[6.0, 8.0]])
    slope = expit(0.0) - 1
    assert np.linalg.norm(slope * np.append(row, 1.0)) > 2 * CLIP
    assert np.linalg.norm(slope * np.append(unit_rows(row), 1.0)) <= CLIP


def test_with_no_noise_to_speak_of_it_is_logistic_regression():
    parts = split(mushroom(), 0)
    rule = noisy_gradient_descent(parts.X_private, parts.y_private, epsilon=1e3, delta=1e-4, rng=Recorded(), steps=400)
    plain = LogisticRegression(max_iter=1_000).fit(unit_rows(parts.X_private), parts.y_private)
    ours, theirs = (np.mean(model.predict(x) == parts.y_test)
                    for model, x in ((rule, parts.X_test), (plain, unit_rows(parts.X_test))))  # fmt: skip
    assert ours > theirs - 0.01


def test_more_budget_gives_a_better_rule():
    parts = split(mushroom(), 1)

    def accuracy(epsilon: float) -> float:
        found = [
            np.mean(noisy_gradient_descent(parts.X_private, parts.y_private, epsilon=epsilon, delta=1e-4,
                                           rng=np.random.default_rng(seed)).predict(parts.X_test) == parts.y_test)
            for seed in range(4)
        ]  # fmt: skip
        return float(np.mean(found))

    assert accuracy(0.02) + 0.05 < accuracy(1.0)
    assert accuracy(1.0) > 0.95


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_no_person_moves_the_sum_further_than_the_clip(n_outputs):
    rng = np.random.default_rng(0)
    rows, slopes = unit_rows(rng.normal(size=(200, 6))), 3 * rng.normal(size=(200, n_outputs))
    people = [np.arange(start, start + 20) for start in range(0, 200, 20)]
    whole = sum_of_clipped(rows, slopes, people)
    for left_out in range(10):
        others = [own for at, own in enumerate(people) if at != left_out]
        assert np.linalg.norm(whole - sum_of_clipped(rows, slopes, others)) <= CLIP * (1 + 1e-9)
    alone = [sum_of_clipped(rows[[i]], slopes[[i]], None) for i in range(200)]
    assert max(np.linalg.norm(each) for each in alone) <= CLIP * (1 + 1e-9)
    assert np.allclose(sum(alone), sum_of_clipped(rows, slopes, None))
    unclipped = np.vstack([rows[people[0]].T @ slopes[people[0]], slopes[people[0]].sum(axis=0)])
    assert np.linalg.norm(unclipped) > CLIP  # the cheat: what a person adds without the cut


def test_many_classes_and_persons_are_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    codes = X[:, :3].argmax(axis=1)
    asked = {"epsilon": 40.0, "delta": 1e-5, "n_classes": 3, "steps": 30}
    for groups in (None, np.arange(600) // 3):
        rule = noisy_gradient_descent(X, codes, rng=rng, groups=groups, **asked)
        assert np.mean(rule.predict(X) == codes) > 0.8


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": 1.0}, {"steps": 0}, {"neighbours": "any"}], ids=str
)
def test_what_makes_no_sense_is_refused(wrong):
    arguments = {"epsilon": 1.0, "delta": 1e-4, "rng": np.random.default_rng(0), **wrong}
    with pytest.raises(InvalidParameter):
        noisy_gradient_descent(np.eye(2), np.array([0, 1]), **arguments)


def test_it_is_told_to_be_a_yardstick_and_no_tool():
    assert "no tool" in module.__doc__
